"""Output arrays (`out=`): which results may be stored into them.

A ufunc broadcasts its result to a larger array, and converts it under casting rule "same_kind".  Other functions
compute in the array itself, or write past its end (`np.cumsum`), so for these it must have the shape and the dtype of
the result.  The program stores a complete result; a few functions of NumPy write while they still read.
"""

from __future__ import annotations

import operator
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from tapegen.errors import AliasError, BadArgument, NotDifferentiable
from tapegen.frontend.expressions.subscript_stores import store_place
from tapegen.frontend.expressions.subscripts import Place, load_place
from tapegen.frontend.values.complex_parts import is_part
from tapegen.frontend.values.constant_shapes import extent
from tapegen.frontend.values.context import Context
from tapegen.frontend.values.materialize import int_expr, operand, static, struct_of, type_of
from tapegen.frontend.values.pytree import UNKNOWN, Leaf, StaticValue, Struct, tuple_of
from tapegen.frontend.values.state import Captured, Ref, known_value
from tapegen.ir.nodes import Call, Var
from tapegen.ir.printer import callable_text
from tapegen.ir.types import BOOL, Array, Scalar

_OF_ELEMENTS = frozenset({np.clip, np.fix, np.outer})
"""Functions that behave like ufuncs, but are of another class."""
_CONVERT = _OF_ELEMENTS | {np.concatenate, np.stack}
"""Functions that convert their result to the dtype of the array."""
_SCANS = frozenset({np.cumsum, np.cumprod, np.nancumsum, np.nancumprod, np.cumulative_sum, np.cumulative_prod})
"""Functions that write beyond a zero-dimensional array: plain Python may crash there."""
_CONTIGUOUS = frozenset({np.dot, np.linalg.multi_dot})
"""Functions that require a contiguous output array, not transposed."""
_WRITE_EARLY = frozenset({np.concatenate, np.stack, np.ptp, np.vecdot})
"""Functions that write a part of the result before they have read all operands."""


def write_result(
    cx: Context, func: Any, out: Any, result: Any, operands: Iterable[Any] = (), casting: str = "same_kind"
) -> Any:
    """Store each result into its output array; returns the value of the call."""
    if isinstance(out, Leaf) and isinstance(out.type, Array):
        check_type(cx, func, out.type, result, casting)
        _check_shape(cx, func, out, result)
        if func in _WRITE_EARLY:
            refuse_overlap(cx, func, out, operands)
        store_place(cx, Place(out, []), result)
        return load_place(cx, Place(out, [])) if _gives_a_number(func, out.type, operands) else out
    places = struct_of(cx, out) if isinstance(out, (Struct, Ref, Captured)) else None
    if places is not None and len(places.children) == 1 and not isinstance(result, Struct):
        return write_result(cx, func, places.children[0], result, operands, casting)
    if places is None or not isinstance(result, Struct) or len(places.children) != len(result.children):
        raise cx.refusal(NotDifferentiable, "'out=' takes arrays here.", "Assign the result: a[:] = ...")
    for k, place in enumerate(places.children):
        refuse_overlap(cx, func, place, places.children[:k])
    pairs = zip(places.children, result.children, strict=True)
    return tuple_of(
        [
            made if known_value(place) is None else write_result(cx, func, place, made, operands, casting)
            for place, made in pairs
        ]
    )


def _gives_a_number(func: Any, out: Array, operands: Iterable[Any]) -> bool:
    """Whether a call returns the element of its output array: `np.dot` does, and methods of NumPy's scalars."""
    if out.rank:
        return False
    if func is np.dot:
        return True
    first = next((type_of(value) for value in operands), None)
    is_scalar = isinstance(first, Scalar) and not first.python
    return is_scalar and not isinstance(func, np.ufunc) and hasattr(np.generic, getattr(func, "__name__", ""))


def _is_of_elements(func: Any) -> bool:
    return (isinstance(func, np.ufunc) and func.signature is None) or func in _OF_ELEMENTS


def _runs_along_an_axis(func: Any) -> bool:
    """Whether a function is a scan, for which NumPy does not check all shapes."""
    return func in _SCANS or getattr(func, "__name__", "") == "accumulate"


def check_type(cx: Context, func: Any, out: Array, result: Any, casting: str) -> None:
    """Check that the dtype of a result can be cast to that of its output array."""
    type_ = type_of(result)
    if not isinstance(type_, (Array, Scalar)) or type_.dtype == out.dtype:
        return
    text = f"the result of {callable_text(func)} has dtype {type_.dtype} and the array for it {out.dtype}"
    if not isinstance(func, np.ufunc) and func not in _CONVERT:
        raise cx.refusal(
            BadArgument, f"{text}, in which NumPy may compute.", f"Give an array of dtype {type_.dtype} as out=."
        )
    if not np.can_cast(type_.dtype, out.dtype, casting):  # type: ignore[arg-type]
        cx.raise_(TypeError, text)


def _check_shape(cx: Context, func: Any, out: Leaf, result: Any) -> None:
    """Check the shape of an output array; for a ufunc it may be larger, which the store itself checks."""
    type_ = type_of(result)
    rank = type_.rank if isinstance(type_, Array) else 0
    assert isinstance(out.type, Array)
    text = f"the array for the result of {callable_text(func)} has another shape"
    if _is_of_elements(func):
        if rank > out.type.rank:
            cx.raise_(ValueError, text)
        return
    if rank != out.type.rank and _runs_along_an_axis(func):
        raise cx.refusal(BadArgument, f"{text}: NumPy may write past its end.", "Give an array of the same shape.")
    if rank != out.type.rank:
        cx.raise_(ValueError, text)
    if func in _CONTIGUOUS and out.type.layout != "C":
        raise cx.refusal(
            BadArgument,
            f"{callable_text(func)} takes contiguous arrays as out=, which this one may not be.",
            "Store the result instead: a[...] = ...",
        )
    place, made = _place(cx, out), operand(cx, result)
    for axis in range(rank):
        sizes = extent(cx, place, axis), extent(cx, made, axis)
        known = [known_value(size) for size in sizes]
        if UNKNOWN in known:
            test = Call(operator.ne, tuple(int_expr(cx, size) for size in sizes), (), BOOL)
            cx.raise_if(test, ValueError, text)
        elif known[0] != known[1]:
            cx.raise_(ValueError, text)


def refuse_overlap(cx: Context, func: Any, out: Any, operands: Iterable[Any]) -> None:
    """Refuse output arrays that overlap operands or each other."""
    if not isinstance(out, Leaf) or not isinstance(out.type, Array):
        return
    place = _place(cx, out)
    if any(cx.symbols.may_overlap(place, array) for array in _arrays(cx, operands)):
        raise cx.refusal(
            AliasError,
            f"{callable_text(func)} writes into an array while it still uses one that may share memory with it.",
            "Pass a copy (x.copy()).",
        )


def refuse_reading_while_writing(cx: Context, func: Any, args: Sequence[Any], kwargs: Mapping[str, Any]) -> None:
    """Refuse functions that store element by element where the stored values may alias the array."""
    names = {np.place: ("arr", "mask", "vals"), np.fill_diagonal: ("a", "val")}.get(func)
    if names is not None:
        named = dict(zip(names, args, strict=False)) | dict(kwargs)
        if names[0] in named and names[-1] in named:
            refuse_overlap(cx, func, named[names[0]], [named[names[-1]]])


def _arrays(cx: Context, values: Iterable[Any]) -> Iterator[Var]:
    """The arrays among values, and in the tuples and lists among them."""
    for value in values:
        if isinstance(value, Leaf) and isinstance(value.type, Array):
            yield _place(cx, value)
        elif isinstance(value, (Struct, Ref, Captured)) and (content := struct_of(cx, value)) is not None:
            yield from _arrays(cx, content.children)


def _place(cx: Context, array: Leaf) -> Var:
    """The array; for a real or imaginary part, the complex array."""
    place = array.expr.args[0] if is_part(array) and isinstance(array.expr, Call) else operand(cx, array)
    assert isinstance(place, Var)
    return place


def drops_output(cx: Context, func: Any, given: Mapping[str, Any]) -> bool:
    """Whether a transform of NumPy forgets the array for its result: always, or where it transforms no axis."""
    if func in (np.fft.hfft, np.fft.ifft2, np.fft.irfft2):
        return True
    if func not in (np.fft.fftn, np.fft.ifftn, np.fft.fft2):
        return False
    s, axes = given.get("s", StaticValue(None)), given.get("axes", StaticValue(None))
    if known_value(axes) is not None:
        return static(cx, axes, "'axes'") == ()
    if func is np.fft.fft2 and "axes" not in given:
        return False
    if known_value(s) is not None:
        content = struct_of(cx, s)
        return content is not None and not content.keys
    type_ = type_of(given["a"])
    return type_ is not None and not getattr(type_, "rank", 0)
