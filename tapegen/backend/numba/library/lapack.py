"""LAPACK in compiled code: functions of `scipy.linalg` by the routines that `scipy.linalg.cython_lapack` exports.

Compiled code refers to each by a symbol, not by an address, so that cached code finds it in another process.  LAPACK
stores matrices by columns: a C array is the transpose of the matrix that LAPACK sees.

A root or logarithm of a real matrix may be complex, which is another type than the one that was compiled for.  Compiled
code then raises the `NotImplementedError` of `loops.library.bailout`, which no user sees: the call runs as Python.
"""

# mypy: disable-error-code="no-untyped-call, untyped-decorator"

from __future__ import annotations

import functools
import math
import sys
from collections.abc import Callable
from typing import Any

import llvmlite.binding as llvm
import numpy as np
from numba import njit, types
from numba.extending import get_cython_function_address, overload
from numba.np.numpy_support import as_dtype

from tapegen.rules.external_functions import matrices

_MODULE = "scipy.linalg.cython_lapack"
_provided: set[Any] = set()


def provide() -> None:
    """Let numba compile calls of the functions that rules have declared; no effect while scipy.linalg is not loaded."""
    if "scipy.linalg" not in sys.modules:
        return
    if not _provided:
        from scipy.linalg import cython_lapack

        for name in _CALLED:  # all of them: cached code looks for its own before anything is compiled
            for full in (letter + name for letter in _LETTERS.values() if letter + name in cython_lapack.__pyx_capi__):
                llvm.add_symbol(f"scipy_lapack_{full}", get_cython_function_address(_MODULE, full))
    for func in matrices():
        if func not in _provided:
            _provided.add(func)
            overload(func, strict=False)(_FORMS[func.__name__])


_LETTERS = {"f": "s", "d": "d", "F": "c", "D": "z"}
"""LAPACK's letters for scalar types."""

_CALLED = {"gees": 15, "trsyl": 13, "stevd": 11}
"""The number of arguments of LAPACK functions, all of which are addresses."""


def _external(name: str, dtype: np.dtype[Any]) -> Any:
    """A LAPACK function for a scalar type."""
    signature = types.void(*(types.voidptr,) * _CALLED[name])
    return types.ExternalFunction(f"scipy_lapack_{_LETTERS[dtype.char]}{name}", signature)


def _common(*arrays: Any, least: str = "f") -> np.dtype[Any]:
    """The scalar type in which LAPACK computes with arrays."""
    dtype = np.result_type(*(as_dtype(array.dtype) for array in arrays), np.dtype(least))
    return dtype if dtype.char in _LETTERS else np.dtype("d")


# ---- Schur's form --------------------------------------------------------------------------------------------------


@functools.cache
def _factors(dtype: np.dtype[Any]) -> Any:
    """The transposes of the factors t and z of a matrix."""
    gees = _external("gees", dtype)
    real = np.finfo(dtype).dtype
    is_complex = dtype.kind == "c"

    @njit
    def factors(a: Any) -> Any:
        n = a.shape[0]
        if a.shape[1] != n:
            raise ValueError("expected square matrix")
        t = np.empty((n, n), dtype)
        z = np.empty((n, n), dtype)
        for i in range(n):
            for j in range(n):
                if not np.isfinite(a[i, j]):
                    raise ValueError("array must not contain infs or NaNs")
                t[j, i] = a[i, j]
        if n == 0:
            return t, z
        words = np.array([ord("V"), ord("N")], np.uint8)
        counts = np.array([n, 0, -1, 0], np.int32)
        w = np.empty(2 * n, real)
        flags = np.empty(n, np.int32)
        more = np.empty(n, real)
        work = np.empty(1, dtype)
        for _ in range(2):  # the first call returns the size of the workspace
            if is_complex:
                gees(
                    words.ctypes, words[1:].ctypes, flags.ctypes, counts.ctypes, t.ctypes, counts.ctypes,
                    counts[1:].ctypes, w.ctypes, z.ctypes, counts.ctypes, work.ctypes, counts[2:].ctypes,
                    more.ctypes, flags.ctypes, counts[3:].ctypes,
                )  # fmt: skip
            else:
                gees(
                    words.ctypes, words[1:].ctypes, flags.ctypes, counts.ctypes, t.ctypes, counts.ctypes,
                    counts[1:].ctypes, w.ctypes, w[n:].ctypes, z.ctypes, counts.ctypes, work.ctypes,
                    counts[2:].ctypes, flags.ctypes, counts[3:].ctypes,
                )  # fmt: skip
            if counts[2] == -1:
                counts[2] = int(work[0].real)
                work = np.empty(counts[2], dtype)
        if counts[3] != 0:
            raise np.linalg.LinAlgError("Schur form not found. Possibly ill-conditioned.")
        return t, z

    return factors


def _schur(least: str) -> Callable[..., Any]:
    def chosen(a: Any) -> Any:
        factors = _factors(_common(a, least=least))

        def implementation(a: Any) -> Any:
            t, z = factors(a)
            return np.ascontiguousarray(t.T), np.ascontiguousarray(z.T)

        return implementation

    return chosen


@njit
def _product(a: Any, b: Any) -> Any:
    """The function for arrays in C order: each order would be compiled separately."""
    return np.dot(a, b)


# ---- Sylvester's equation ------------------------------------------------------------------------------------------


def _solve_sylvester(a: Any, b: Any, q: Any) -> Any:
    dtype = _common(a, b, q)
    factors = _factors(dtype)
    trsyl = _external("trsyl", dtype)
    real = np.finfo(dtype).dtype

    def implementation(a: Any, b: Any, q: Any) -> Any:
        m, n = a.shape[0], b.shape[0]
        if q.shape != (m, n):
            raise ValueError("solve_sylvester: sizes do not match")
        if m == 0 or n == 0:
            return np.empty((m, n), dtype)
        r, u = factors(a)
        s, v = factors(np.conj(b).T)
        own = np.ascontiguousarray(u.T)
        found = _product(_product(v, np.ascontiguousarray(q.T).astype(dtype)), np.conj(own))
        words = np.array([ord("N"), ord("C")], np.uint8)
        counts = np.array([1, m, n, 0], np.int32)
        scale = np.ones(1, real)
        trsyl(
            words.ctypes, words[1:].ctypes, counts.ctypes, counts[1:].ctypes, counts[2:].ctypes, r.ctypes,
            counts[1:].ctypes, s.ctypes, counts[2:].ctypes, found.ctypes, counts[1:].ctypes, scale.ctypes,
            counts[3:].ctypes,
        )  # fmt: skip
        return _product(_product(own, np.ascontiguousarray(scale[0] * found.T)), np.conj(v))

    return implementation


# ---- symmetric tridiagonal matrices --------------------------------------------------------------------------------


@functools.cache
def _eigenpairs(dtype: np.dtype[Any], with_vectors: bool) -> Any:
    """The eigenvalues of a diagonal and the off-diagonal, and the eigenvectors in Fortran order."""
    stevd = _external("stevd", dtype)
    letter = ord("V" if with_vectors else "N")

    @njit
    def eigenpairs(d: Any, e: Any) -> Any:
        n = d.size
        if e.size + 1 != n:
            raise ValueError("d must have one more element than e")
        w, beside = d.astype(dtype), np.zeros(n, dtype)
        beside[: n - 1] = e
        if not np.all(np.isfinite(w)) or not np.all(np.isfinite(beside)):
            raise ValueError("array must not contain infs or NaNs")
        v = np.ones((n, n) if with_vectors else (1, 1), dtype)
        if n == 1:
            return w, v
        counts = np.array([n, 1 + 4 * n + n * n, 3 + 5 * n, 0], np.int32)
        work, more = np.empty(counts[1], dtype), np.empty(counts[2], np.int32)
        stevd(
            np.array([letter], np.uint8).ctypes, counts.ctypes, w.ctypes, beside.ctypes, v.ctypes, counts.ctypes,
            work.ctypes, counts[1:].ctypes, more.ctypes, counts[2:].ctypes, counts[3:].ctypes,
        )  # fmt: skip
        if counts[3] != 0:
            raise np.linalg.LinAlgError("stevd did not converge")
        return w, v.T

    return eigenpairs


def _tridiagonal_values(d: Any, e: Any) -> Any:
    eigenpairs = _eigenpairs(_common(d, e), False)
    return lambda d, e: eigenpairs(d, e)[0]


def _tridiagonal_pairs(d: Any, e: Any) -> Any:
    eigenpairs = _eigenpairs(_common(d, e), True)

    def implementation(d: Any, e: Any) -> Any:
        w, v = eigenpairs(d, e)
        return w, np.ascontiguousarray(v)

    return implementation


# ---- roots and logarithms ------------------------------------------------------------------------------------------


@njit
def _root(t: Any) -> Any:
    """The square root of a real Schur form, block by block from the diagonal up (Higham 1987).

    A scalar operand of a block is that times the unit matrix; two blocks of two rows lead to a Sylvester
    equation, in which substitution of the characteristic polynomial eliminates the one on the right.
    """
    n = t.shape[0]
    root = np.zeros_like(t)
    across = np.zeros_like(t)  # its transpose, for access by columns
    stop = 0
    while stop < n:
        j = stop
        wide = j + 1 < n and t[j + 1, j] != 0.0
        stop = j + 2 if wide else j + 1
        if wide:
            middle = 0.5 * (t[j, j] + t[j + 1, j + 1])
            turn = math.sqrt(-t[j, j + 1] * t[j + 1, j])
            size = math.hypot(middle, turn)
            real = math.sqrt(0.5 * (size + middle)) if middle > 0.0 else turn / math.sqrt(2.0 * (size - middle))
            root[j, j] = real
            root[j + 1, j + 1] = real
            root[j, j + 1] = t[j, j + 1] / (2.0 * real)
            root[j + 1, j] = t[j + 1, j] / (2.0 * real)
        else:
            if t[j, j] < 0.0:
                raise NotImplementedError("a complex root of a real matrix has no compiled form here")
            root[j, j] = math.sqrt(t[j, j])
        trace = root[j, j] + root[stop - 1, stop - 1]
        determinant = root[j, j] * root[stop - 1, stop - 1] - root[j, stop - 1] * root[stop - 1, j]
        for q in range(j, stop):
            for k in range(j, stop):
                across[q, k] = root[k, q]
        i = j
        while i > 0:
            tall = i > 1 and t[i - 1, i - 2] != 0.0
            first, last = (i - 2 if tall else i - 1), i - 1
            for p in range(first, i):
                for q in range(j, stop):
                    total = t[p, q]
                    for k in range(i, j):
                        total -= root[p, k] * across[q, k]
                    root[p, q] = total
            if not wide and not tall:
                if root[last, j] != 0.0:
                    if root[last, last] + root[j, j] == 0.0:
                        raise ValueError("a singular matrix has no square root")
                    root[last, j] /= root[last, last] + root[j, j]
            elif not wide:
                root[first, j], root[last, j] = _solved(
                    root[first, first] + root[j, j], root[first, last], root[last, first],
                    root[last, last] + root[j, j], root[first, j], root[last, j],
                )  # fmt: skip
            elif not tall:
                root[last, j], root[last, j + 1] = _solved(
                    root[j, j] + root[last, last], root[j + 1, j], root[j, j + 1],
                    root[j + 1, j + 1] + root[last, last], root[last, j], root[last, j + 1],
                )  # fmt: skip
            else:
                left, right = np.copy(root[first:i, first:i]), np.copy(root[j:stop, j:stop])
                known = np.copy(root[first:i, j:stop])
                known = trace * known - _product(known, right) + _product(left, known)
                left = _product(left, left) + trace * left
                for q in range(2):
                    root[first, j + q], root[last, j + q] = _solved(
                        left[0, 0] + determinant, left[0, 1], left[1, 0], left[1, 1] + determinant,
                        known[0, q], known[1, q],
                    )  # fmt: skip
            for p in range(first, i):
                for q in range(j, stop):
                    across[q, p] = root[p, q]
            i = first
    return root


@njit
def _solved(a: Any, b: Any, c: Any, d: Any, x: Any, y: Any) -> Any:
    """Two equations with two unknowns."""
    determinant = a * d - b * c
    return (x * d - b * y) / determinant, (a * y - x * c) / determinant


@njit
def _quotient(a: Any, b: Any) -> Any:
    return np.linalg.solve(a, b)


def _sqrtm(a: Any) -> Any:
    from tapegen.rules.linalg.scipy_matrix_functions import PAIRS_STAY_REAL

    dtype = _common(a)
    factors = _factors(dtype)

    def implementation(A: Any) -> Any:
        if A.shape[0] != A.shape[1]:
            raise ValueError("Last 2 dimensions of the array must be square")
        for number in A.flat:
            if not np.isfinite(number):
                return np.full(A.shape, np.nan, dtype)
        t, z = factors(A)
        for k in range(1, A.shape[0]):
            if t[k - 1, k] != 0.0 and not PAIRS_STAY_REAL:
                raise NotImplementedError("a complex root of a real matrix has no compiled form here")
        return _product(_product(np.ascontiguousarray(z.T), _root(np.ascontiguousarray(t.T))), z)

    return implementation


@njit
def _shifted(x: Any, factor: Any, shift: Any) -> Any:
    """`factor * x + shift * unit`."""
    out = np.empty_like(x)
    for i in range(x.shape[0]):
        for j in range(x.shape[1]):
            out[i, j] = factor * x[i, j]
        out[i, i] += shift
    return out


@njit
def _largest(x: Any) -> Any:
    largest = 0.0
    for i in range(x.shape[0]):
        for j in range(x.shape[1]):
            largest = max(largest, abs(x[i, j]))
    return largest


def _logarithm(a: Any) -> Any:
    from tapegen.rules.linalg.scipy_matrix_functions import PLACES, WEIGHTS

    dtype = _common(a)
    factors = _factors(dtype)

    def implementation(a: Any) -> Any:
        """The logarithm of a repeated square root near the unit matrix, computed as an integral from there.

        The distance of a root from the unit matrix follows from the next root, without a difference of nearly equal
        numbers.
        """
        t, z = factors(a)
        n = a.shape[0]
        for k in range(n):
            alone = (k == 0 or t[k - 1, k] == 0.0) and (k + 1 == n or t[k, k + 1] == 0.0)
            if alone and t[k, k] <= 0.0:
                raise NotImplementedError("a complex logarithm of a real matrix has no compiled form here")
        root = np.ascontiguousarray(t.T)
        apart = _shifted(root, 1.0, -1.0)
        scale = 1.0
        while n * _largest(apart) > 0.25 and scale < 1e30:
            root = _root(root)
            apart = _quotient(_shifted(root, 1.0, 1.0), apart)
            scale *= 2.0
        total = np.zeros_like(root)
        for k in range(len(PLACES)):
            part = _quotient(_shifted(apart, PLACES[k], 1.0), apart)
            for i in range(n):
                for j in range(n):
                    total[i, j] += scale * WEIGHTS[k] * part[i, j]
        return _product(_product(np.ascontiguousarray(z.T), total), z)

    return implementation


_FORMS: dict[str, Callable[..., Any]] = {
    "quasi_triangular": _schur("f"),
    "triangular": _schur("F"),
    "solve_sylvester": _solve_sylvester,
    "sqrtm": _sqrtm,
    "logarithm": _logarithm,
    "tridiagonal_values": _tridiagonal_values,
    "tridiagonal_pairs": _tridiagonal_pairs,
}
