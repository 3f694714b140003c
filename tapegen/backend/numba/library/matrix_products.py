"""Matrix products and linear systems in compiled code, for all memory layouts.

numba compiles each again for every order of its operands, a dozen functions every time: for `np.dot` half a second, for
`np.linalg.solve` nearly two.  Here a product is a function emitted without its compiler, and a system is solved by
one function for all orders.  They call the same functions of BLAS and LAPACK in the same way.
"""

# mypy: disable-error-code="no-untyped-call"

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from llvmlite.ir import IRBuilder, Value
from numba.core import cgutils, types
from numba.core.extending import intrinsic
from numba.core.typing.templates import Signature, signature
from numba.np import linalg
from numba.np.arrayobj import _empty_nd_impl, make_array
from numba.np.numpy_support import as_dtype

from tapegen.backend.numba.list_operations import called


def _product_of(context: Any, builder: IRBuilder, sig: Signature, args: Sequence[Value]) -> Value:
    linalg.ensure_blas()
    with linalg.make_contiguous(context, builder, sig, args) as (given, (left, right)):
        return _contiguous_product(context, builder, given, left, right)


def _contiguous_product(context: Any, builder: IRBuilder, sig: Any, left: Value, right: Value) -> Value:
    a, b = sig.args
    if a.ndim == b.ndim == 1:
        return linalg.dot_2_vv(context, builder, sig, (left, right))
    rows = cgutils.unpack_tuple(builder, make_array(a)(context, builder, left).shape)
    columns = cgutils.unpack_tuple(builder, make_array(b)(context, builder, right).shape)
    out = _empty_nd_impl(context, builder, sig.return_type, (*rows[:-1], *columns[1:]))._getvalue()
    fill = linalg.dot_3_mm if a.ndim == b.ndim else linalg.dot_3_vm
    filled = fill(context, builder, signature(sig.return_type, a, b, sig.return_type), (left, right, out))
    context.nrt.decref(builder, sig.return_type, out)  # that is one more reference
    return filled


def _product(context: Any, builder: IRBuilder, sig: Signature, args: Sequence[Value]) -> Value:
    return called(_product_of, context, builder, sig, args)


@intrinsic
def product(typing: Any, a: Any, b: Any) -> Any:
    """`np.dot` of vectors and matrices."""
    if not _match(a, b) or a.ndim not in (1, 2):
        return None
    rank = a.ndim + b.ndim - 2
    return (types.Array(a.dtype, rank, "C") if rank else a.dtype)(a, b), _product


def _match(a: Any, b: Any) -> bool:
    return isinstance(a, types.Array) and isinstance(b, types.Array) and a.dtype == b.dtype and b.ndim in (1, 2)


@functools.cache
def _solver(dtype: Any, rank: int) -> Callable[..., Any]:
    """The solution of a linear system of one scalar type, with one right-hand side or several."""
    gesv = linalg._LAPACK().numba_xgesv(dtype)
    kind = ord(linalg.get_blas_kind(dtype, "solve"))
    numbers, integers = as_dtype(dtype), linalg.F_INT_nptype

    def solution(a: Any, b: Any) -> Any:
        n = a.shape[0]
        if a.shape[1] != n:
            raise np.linalg.LinAlgError("Last 2 dimensions of the array must be square")
        if b.shape[0] != n:
            raise np.linalg.LinAlgError("Incompatible array sizes, system is not dimensionally valid.")
        count = 1 if rank == 1 else b.shape[-1]
        factors = np.empty((n, n), numbers)
        found = np.empty((count, n), numbers)
        pivots = np.empty(n, integers)
        for i in range(n):
            for j in range(n):
                if not np.isfinite(a[i, j]):
                    raise np.linalg.LinAlgError("Array must not contain infs or NaNs.")
                factors[j, i] = a[i, j]
            for j in range(count):
                item = b[i] if rank == 1 else b[i, j]
                if not np.isfinite(item):
                    raise np.linalg.LinAlgError("Array must not contain infs or NaNs.")
                found[j, i] = item
        if n > 0:
            linalg._inv_err_handler(gesv(kind, n, count, factors.ctypes, n, pivots.ctypes, found.ctypes, n))
        linalg._dummy_liveness_func([factors.size, pivots.size, found.size])
        return found.ravel() if rank == 1 else found.T

    return solution


def _solved(context: Any, builder: IRBuilder, sig: Any, args: Sequence[Value]) -> Value:
    linalg.ensure_lapack()
    a, b = sig.args
    general = signature(sig.return_type, a.copy(layout="A"), b.copy(layout="A"))
    return context.compile_internal(builder, _solver(a.dtype, b.ndim), general, args)


@intrinsic
def solve(typing: Any, a: Any, b: Any) -> Any:
    """`np.linalg.solve` of one matrix."""
    if not _match(a, b) or a.ndim != 2:
        return None
    return types.Array(a.dtype, b.ndim, "C" if b.ndim == 1 else "F")(a, b), _solved
