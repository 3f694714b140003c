"""Templates of functions that loops and numba support in part only: axes, stacks, modes, more operands.

Templates are plain Python, like the bodies of rules, and call only functions that are supported; the call selects one.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from tapegen.ir.nodes import Call, Const, Expr, Tuple
from tapegen.ir.types import Array, is_complex
from tapegen.rules.arrays.indexing import indices_in_range
from tapegen.rules.arrays.shape_manipulation import pad_after, pad_before, pad_edge
from tapegen.rules.helpers import axes_tuple, slice_axis
from tapegen.rules.linalg.contractions import (
    einsum_axes,
    einsum_first,
    einsum_named,
    einsum_rest,
    einsum_whole,
    ranks_of,
)
from tapegen.rules.signal.stencils import continued
from tapegen.rules.templates import template, template_by_call

Chosen = Callable[..., Any] | None


def known(call: Call, position: int, name: str, default: Any) -> Any:
    """An argument that is known at compile time."""
    given: Expr = call.args[position] if position < len(call.args) else dict(call.kwargs).get(name, Const(default))
    if isinstance(given, Tuple):
        return tuple(item.value if isinstance(item, Const) else None for item in given.items)
    return given.value if isinstance(given, Const) else default


def rank_of(expr: Expr) -> int:
    return expr.type.rank if isinstance(expr.type, Array) else 0


# ---- scalars ---------------------------------------------------------------------------------------------------------


@template(np.divmod)
def divmod_text(x, y):
    return np.floor_divide(x, y), np.remainder(x, y)


@template(np.modf)
def modf_text(x):
    whole = np.trunc(x)
    return np.copysign(np.where(np.isinf(x), 0.0, x - whole), x), whole


@template(np.frexp)
def frexp_text(x):
    if np.ndim(x) == 0:
        return math.frexp(x)
    row = np.ravel(x)
    mantissa = np.zeros_like(row)
    exponent = np.zeros(np.size(row), dtype=np.int32)
    for k in range(np.size(row)):
        mantissa[k], exponent[k] = math.frexp(row[k])
    return np.reshape(mantissa, np.shape(x)), np.reshape(exponent, np.shape(x))


@template(np.select)
def select_text(condlist, choicelist, default=0):
    chosen = default
    for k, _ in enumerate(condlist):
        chosen = np.where(condlist[-1 - k], choicelist[-1 - k], chosen)
    return chosen


# ---- sorting and searching -------------------------------------------------------------------------------------------


def _along_last(call: Call, position: int) -> bool:
    axis = known(call, position, "axis", -1)
    rank = rank_of(call.args[0])
    return axis is not None and axis % rank == rank - 1


@template_by_call(np.sort)
def _sort(call: Call) -> Chosen:
    return None if _along_last(call, 1) else sort_along


def sort_along(a, axis=-1, kind=None):
    if axis is None:
        return np.sort(np.ravel(a))
    return np.moveaxis(np.sort(np.moveaxis(a, axis, -1)), -1, axis)


@template_by_call(np.argsort)
def _argsort(call: Call) -> Chosen:
    return None if rank_of(call.args[0]) == 1 and _along_last(call, 1) else argsort_along


def argsort_along(a, axis=-1, kind=None):
    if axis is None:
        return np.argsort(np.ravel(a))
    moved = np.copy(np.moveaxis(a, axis, -1))
    n = np.shape(moved)[-1]
    rows = np.reshape(moved, (np.size(a) // max(n, 1), n))
    order = np.zeros(np.shape(rows), dtype=np.int64)
    for k in range(np.shape(rows)[0]):
        order[k] = np.argsort(rows[k])
    return np.moveaxis(np.reshape(order, np.shape(moved)), -1, axis)


@template(np.argpartition)
def argpartition_text(a, kth, axis=-1, kind=None):
    n = np.size(a) if axis is None else np.shape(a)[axis]
    if np.ndim(kth) == 0:
        if kth < -n or kth >= n:
            raise ValueError("kth is out of bounds")
    else:
        for k in np.ravel(kth):
            if k < -n or k >= n:
                raise ValueError("kth is out of bounds")
    return np.argsort(a, axis=axis)


@template_by_call(np.searchsorted)
def _searchsorted(call: Call) -> Chosen:
    return searchsorted_text if rank_of(call.args[1]) > 1 or len(call.args) > 2 or len(call.kwargs) > 1 else None


def searchsorted_text(a, v, side="left"):
    return np.reshape(np.searchsorted(a, np.ravel(v), side=side), np.shape(v))


@template(np.digitize)
def digitize_text(x, bins, right=False):
    side = "left" if right else "right"
    n = np.size(bins)
    if not (np.all(bins[1:] >= bins[:-1]) or np.all(bins[1:] <= bins[:-1])):
        raise ValueError("bins must be monotonically increasing or decreasing")
    rising = n == 0 or bins[0] <= bins[n - 1]
    return np.where(rising, np.searchsorted(bins, x, side=side), n - np.searchsorted(bins[::-1], x, side=side))


@template(np.isin)
def isin_text(element, test_elements, assume_unique=False, invert=False):
    known = np.sort(np.ravel(test_elements))
    row = np.ravel(element)
    found = np.zeros(np.size(row), dtype=np.bool_)
    if np.size(known) > 0:
        places = np.minimum(np.searchsorted(known, row), np.size(known) - 1)
        found = known[places] == row
    found = np.reshape(found, np.shape(element))
    return np.logical_not(found) if invert else found


@template(np.bincount)
def bincount_text(x, weights=None, minlength=0):
    count = minlength
    for k in range(np.size(x)):
        if x[k] < 0:
            raise ValueError("'list' argument must have no negative elements")
        count = max(count, x[k] + 1)
    if weights is None:
        counts = np.zeros(count, dtype=np.int64)
        for k in range(np.size(x)):
            counts[int(x[k])] += 1
        return counts
    if np.size(x) != np.size(weights):
        raise ValueError("The weights and list don't have the same length.")
    sums = np.zeros(count)
    for k in range(np.size(x)):
        sums[int(x[k])] += weights[k]
    return sums


@template_by_call(np.flatnonzero)
def _flatnonzero(call: Call) -> Chosen:
    return None if rank_of(call.args[0]) == 1 else flatnonzero_text


def flatnonzero_text(a):
    return np.flatnonzero(np.ravel(np.copy(a)))


@template_by_call(np.nonzero)
def _nonzero(call: Call) -> Chosen:
    return {1: nonzero_of_vector, 2: nonzero_of_matrix, 3: nonzero_of_three}.get(rank_of(call.args[0]))


def nonzero_of_vector(a):
    return (np.flatnonzero(a),)


def nonzero_of_matrix(a):
    at = np.flatnonzero(a)
    n = np.shape(a)[1]
    return at // n, at % n


def nonzero_of_three(a):
    at = np.flatnonzero(a)
    m = np.shape(a)[1]
    n = np.shape(a)[2]
    return at // n // m, at // n % m, at % n


@template(np.argwhere)
def argwhere_text(a):
    return np.stack(np.nonzero(a), axis=1)


@template_by_call(np.count_nonzero)
def _count_nonzero(call: Call) -> Chosen:
    return None if known(call, 1, "axis", None) is None else count_nonzero_along


def count_nonzero_along(a, axis=None, keepdims=False):
    return np.sum(a != 0, axis=axis, keepdims=keepdims)


# ---- shapes ----------------------------------------------------------------------------------------------------------


@template_by_call(np.reshape)
def _reshape(call: Call) -> Chosen:
    return reshape_columns if known(call, 2, "order", "C") == "F" else None


def reshape_columns(a, shape, order="F"):
    if not isinstance(shape, tuple):
        shape = (shape,)
    return np.transpose(np.reshape(np.transpose(a), shape[::-1]))


@template_by_call(np.ravel)
def _ravel(call: Call) -> Chosen:
    return ravel_columns if known(call, 1, "order", "C") == "F" else None


def ravel_columns(a, order="F"):
    return np.ravel(np.transpose(a))


@template(np.broadcast_arrays)
def broadcast_arrays_text(*args):
    common = np.zeros(())
    for a in args:
        common = common + np.zeros(np.shape(a))
    parts = ()
    for a in args:
        parts = parts + (np.broadcast_to(a, np.shape(common)),)
    return parts


@template(getattr(np, "row_stack", "row_stack"))
def row_stack_text(tup):
    return np.vstack(tup)


@template_by_call(np.diagflat)
def _diagflat(call: Call) -> Chosen:
    return None if rank_of(call.args[0]) == 1 else diagflat_text


def diagflat_text(v, k=0):
    return np.diag(np.ravel(v), k)


@template_by_call(np.trace)
def _trace(call: Call) -> Chosen:
    return None if rank_of(call.args[0]) == 2 and len(call.args) == 1 and not call.kwargs else trace_text


def trace_text(a, offset=0, axis1=0, axis2=1, dtype=None):
    return np.sum(np.diagonal(a, offset, axis1, axis2), axis=-1)


@template_by_call(np.repeat)
def _repeat(call: Call) -> Chosen:
    if rank_of(call.args[0]) == 0:
        return repeat_number
    by_array = len(call.args) > 1 and rank_of(call.args[1]) == 1
    return repeat_rows if by_array and known(call, 2, "axis", None) is not None else None


def repeat_number(a, repeats, axis=None):
    return np.full(repeats, a)


def repeat_rows(a, repeats, axis):
    return np.take(a, np.repeat(np.arange(np.shape(a)[axis]), repeats), axis=axis)


@template_by_call(np.pad)
def _pad(call: Call) -> Chosen:
    return None if known(call, 2, "mode", "constant") == "constant" else pad_beyond


def pad_beyond(array, pad_width, mode):
    for axis in axes_tuple(None, np.ndim(array)):
        before, after = pad_before(pad_width, axis), pad_after(pad_width, axis)
        array = continued(array, axis, before, after, pad_edge(mode), 0.0)
    return array


@template_by_call(np.take)
def _take(call: Call) -> Chosen:
    if known(call, 3, "mode", "raise") != "raise":
        return take_in_range
    flat = known(call, 2, "axis", None) is None and rank_of(call.args[0]) > 1
    return take_flat if flat or rank_of(call) == 0 else None


def take_in_range(a, indices, axis=None, *, mode):
    return np.take(a, indices_in_range(a, indices, axis, mode), axis=axis)


def take_flat(a, indices, axis=None):
    return np.ravel(a)[indices]  # of a vector also with an axis


def _parts(sections, ary, axis):
    """The parts of an array along an axis, of nearly equal size or cut at given positions."""
    n = np.shape(ary)[axis]
    found = ()
    start = 0
    if isinstance(sections, (tuple, list)):
        for stop in sections:
            found = found + (slice_axis(ary, axis, start, stop),)
            start = stop
        return found + (slice_axis(ary, axis, start, None),)
    for k in axes_tuple(None, sections):
        stop = start + n // sections + (1 if k < n % sections else 0)
        found = found + (slice_axis(ary, axis, start, stop),)
        start = stop
    return found


@template_by_call(np.array_split)
def _array_split(call: Call) -> Chosen:
    return None if isinstance(call.args[1], Tuple) else array_split_text


def array_split_text(ary, indices_or_sections, axis=0):
    return _parts(indices_or_sections, ary, axis)


@template(np.dsplit)
def dsplit_text(ary, indices_or_sections):
    return _parts(indices_or_sections, ary, 2)


@template_by_call(np.linspace)
def _linspace(call: Call) -> Chosen:
    return linspace_rows if any(isinstance(arg.type, Array) or is_complex(arg.type) for arg in call.args[:2]) else None


def linspace_rows(start, stop, num=50, endpoint=True, dtype=None):
    count = max(num - 1, 1) if endpoint else max(num, 1)
    rank = max(np.ndim(start), np.ndim(stop))
    k = np.reshape(np.arange(num), (-1,) + (1,) * rank)
    made = np.where((k == num - 1) & endpoint & (num > 1), stop, start + k * ((stop - start) / count))
    return np.astype(made, np.result_type(start, stop, 0.0) if dtype is None else dtype)


# ---- products --------------------------------------------------------------------------------------------------------


@template(np.linalg.matmul)
def matmul_text(a, b):
    return a @ b


@template(np.linalg.tensordot)
def tensordot_text(a, b, axes=2):
    return np.tensordot(a, b, axes)


@template_by_call(np.outer, np.linalg.outer)
def _outer(call: Call) -> Chosen:
    vectors = all(rank_of(arg) == 1 for arg in call.args)
    return outer_text if call.func is np.linalg.outer or not vectors else None


def outer_text(a, b):
    return np.expand_dims(np.ravel(a), 1) * np.ravel(b)


@template_by_call(np.vdot)
def _vdot(call: Call) -> Chosen:
    if any(is_complex(arg.type) for arg in call.args):
        return vdot_complex
    return None if all(rank_of(arg) == 1 for arg in call.args) else vdot_text


def vdot_complex(a, b):
    return np.dot(np.conj(np.ravel(a)), np.ravel(b))


def vdot_text(a, b):
    return np.dot(np.ravel(a), np.ravel(b))


@template_by_call(np.convolve)
def _convolve(call: Call) -> Chosen:
    return convolve_part if len(call.args) > 2 or call.kwargs else None


def convolve_part(a, v, mode="full"):
    full = np.convolve(a, v)
    longer = max(np.size(a), np.size(v))
    shorter = min(np.size(a), np.size(v))
    if mode == "same" or mode == 1:
        return full[(shorter - 1) // 2 : (shorter - 1) // 2 + longer]
    if mode == "valid" or mode == 0:
        return full[shorter - 1 : longer]
    return full


@template_by_call(np.einsum)
def _einsum(call: Call) -> Chosen:
    spec = known(call, 0, "subscripts", "")
    if "..." in spec:
        return einsum_of_letters
    inputs, arrow, output = spec.replace(" ", "").partition("->")
    if not arrow:
        output = "".join(sorted(c for c in set(inputs) - {","} if inputs.count(c) == 1))
    terms = inputs.split(",")
    if any(len(set(term)) < len(term) for term in terms):
        return None
    if len(terms) == 1:
        return einsum_one
    return None if len(terms) == 2 and output else einsum_folded


def einsum_of_letters(subscripts, *operands):
    return np.einsum(einsum_named(subscripts, ranks_of(operands)), *operands)


def einsum_one(subscripts, a):
    summed, order = einsum_axes(subscripts)
    if summed:
        a = np.sum(a, axis=summed)
    if len(order) > 1:
        return np.transpose(a, order)
    return a


def einsum_folded(subscripts, *operands):
    if len(operands) == 2:
        return np.sum(np.einsum(einsum_whole(subscripts), operands[0], operands[1]))
    pair = np.einsum(einsum_first(subscripts), operands[0], operands[1])
    return np.einsum(einsum_rest(subscripts), pair, *operands[2:])
