"""Functions of `scipy.linalg` in compiled code: calls of LAPACK as `scipy.linalg.cython_lapack` exports it.

Compiled code knows each by a symbol, not by an address, so that kept code finds it in another process.  LAPACK keeps
matrices column by column: a C array holds there what is its transpose here.
"""

# mypy: disable-error-code="no-untyped-call, untyped-decorator"

from __future__ import annotations

import functools
import sys
from collections.abc import Callable
from typing import Any

import llvmlite.binding as llvm
import numpy as np
from numba import njit, types
from numba.extending import get_cython_function_address, overload
from numba.np.numpy_support import as_dtype

from tapegen.rules.libraries import matrices

_MODULE = "scipy.linalg.cython_lapack"
_provided: set[Any] = set()


def provide() -> None:
    """Let numba compile calls of the functions that rules have declared; nothing while scipy.linalg is not there."""
    if "scipy.linalg" not in sys.modules:
        return
    if not _provided:
        from scipy.linalg import cython_lapack

        for name in _CALLED:  # all of them: kept code looks for its own before anything is compiled
            for full in (letter + name for letter in _LETTERS.values() if letter + name in cython_lapack.__pyx_capi__):
                llvm.add_symbol(f"scipy_lapack_{full}", get_cython_function_address(_MODULE, full))
    for func in matrices():
        if func not in _provided:
            _provided.add(func)
            overload(func, strict=False)(_FORMS[func.__name__])


_LETTERS = {"f": "s", "d": "d", "F": "c", "D": "z"}
"""LAPACK's letters for types of numbers."""

_CALLED = {"gees": 15, "trsyl": 13, "stevd": 11}
"""How many arguments functions of LAPACK have, all of which are addresses."""


def _external(name: str, dtype: np.dtype[Any]) -> Any:
    """A function of LAPACK for a type of numbers."""
    signature = types.void(*(types.voidptr,) * _CALLED[name])
    return types.ExternalFunction(f"scipy_lapack_{_LETTERS[dtype.char]}{name}", signature)


def _common(*arrays: Any, least: str = "f") -> np.dtype[Any]:
    """The type of numbers in which LAPACK computes with arrays."""
    dtype = np.result_type(*(as_dtype(array.dtype) for array in arrays), np.dtype(least))
    return dtype if dtype.char in _LETTERS else np.dtype("d")


# ---- Schur's form --------------------------------------------------------------------------------------------------


@functools.cache
def _factors(dtype: np.dtype[Any]) -> Any:
    """The factors t and z of a matrix, in Fortran's order."""
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
            return t.T, z.T
        words = np.array([ord("V"), ord("N")], np.uint8)
        counts = np.array([n, 0, -1, 0], np.int32)
        w = np.empty(2 * n, real)
        flags = np.empty(n, np.int32)
        more = np.empty(n, real)
        work = np.empty(1, dtype)
        for _ in range(2):  # the first time it says how much room it wants
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
        return t.T, z.T

    return factors


def _schur(least: str) -> Callable[..., Any]:
    def chosen(a: Any) -> Any:
        factors = _factors(_common(a, least=least))

        def implementation(a: Any) -> Any:
            t, z = factors(a)
            return np.ascontiguousarray(t), np.ascontiguousarray(z)

        return implementation

    return chosen


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
        found = np.asfortranarray(np.dot(np.dot(np.conj(u).T, q.astype(dtype)), v))
        words = np.array([ord("N"), ord("C")], np.uint8)
        counts = np.array([1, m, n, 0], np.int32)
        scale = np.ones(1, real)
        trsyl(
            words.ctypes, words[1:].ctypes, counts.ctypes, counts[1:].ctypes, counts[2:].ctypes, r.ctypes,
            counts[1:].ctypes, s.ctypes, counts[2:].ctypes, found.ctypes, counts[1:].ctypes, scale.ctypes,
            counts[3:].ctypes,
        )  # fmt: skip
        return np.dot(np.dot(u, scale[0] * found), np.conj(v).T)

    return implementation


# ---- symmetric tridiagonal matrices --------------------------------------------------------------------------------


@functools.cache
def _eigenpairs(dtype: np.dtype[Any], with_vectors: bool) -> Any:
    """The eigenvalues of a diagonal and what is beside it, and the eigenvectors in Fortran's order."""
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


_FORMS: dict[str, Callable[..., Any]] = {
    "quasi_triangular": _schur("f"),
    "triangular": _schur("F"),
    "solve_sylvester": _solve_sylvester,
    "tridiagonal_values": _tridiagonal_values,
    "tridiagonal_pairs": _tridiagonal_pairs,
}
