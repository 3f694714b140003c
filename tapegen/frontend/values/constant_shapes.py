"""Constant shape propagation: extents of arrays with constant sizes, and of arguments where they are needed.

A function whose recursion or unrolled loop depends on the size of an argument is specialized for that size.
"""

from __future__ import annotations

import warnings
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from tapegen.frontend.values.context import Context
from tapegen.frontend.values.pytree import UNKNOWN, Leaf, StaticValue
from tapegen.ir import intrinsics, traversal
from tapegen.ir.nodes import Call, Const, Expr, Load, Slice, Tuple, Var
from tapegen.ir.types import INT, Array, is_floating

LARGEST = 4096
"""Limit of the size of an array whose extents are propagated."""


def extent(cx: Context, array: Expr, axis: int) -> Leaf | StaticValue:
    """`array.shape[axis]`, with its value if it is known."""
    assert isinstance(array.type, Array)
    if array.type.is_unit(axis):
        return StaticValue(1)
    shape = known_shape(cx, array)
    return Leaf(Call(intrinsics.dim, (array, Const(axis)), (), INT), shape[axis] if shape is not None else UNKNOWN)


def known_shape(cx: Context, array: Expr) -> tuple[int, ...] | None:
    """The shape of an array, if it is known at compile time."""
    array = cx.symbols.resolve(array)
    return cx.symbols.shapes.get(array) if isinstance(array, Var) else None


def sampled_shape(cx: Context, array: Var) -> tuple[int, ...] | None:
    """The shape of an array in the call at hand, if its definitions determine it; other calls may differ."""
    known, cx.symbols.shapes = cx.symbols.shapes, {**_small(cx.symbols.sample_shapes), **cx.symbols.shapes}
    try:
        needed: dict[Var, Expr] = {}
        work = [array]
        while work:
            var = work.pop()
            if var in cx.symbols.definitions and var not in needed and var not in cx.symbols.shapes:
                needed[var] = cx.symbols.definitions[var]
                parts = (cx.symbols.resolve(part) for part in traversal.free_vars(needed[var]))
                work += [part for part in parts if isinstance(part, Var)]
        for var in sorted(needed, key=cx.age):
            made = needed[var]
            if isinstance(made, Load):
                note_part(cx, var, made)
            elif isinstance(made, Call):
                note_result(cx, var, made)
        return cx.symbols.shapes.get(array)
    finally:
        cx.symbols.shapes = known


def may_be_fixed(cx: Context, sizes: Expr) -> bool:
    """Whether sizes depend on arguments whose shapes are not static yet, but can be taken from the call at hand."""
    return any(
        var in cx.symbols.sample_shapes and var not in cx.symbols.shapes for var in cx.symbols.int_sources(sizes)
    )


def _small(shapes: Mapping[Var, tuple[int, ...]]) -> dict[Var, tuple[int, ...]]:
    return {var: shape for var, shape in shapes.items() if np.prod(shape, dtype=int) <= LARGEST}


def known_size(cx: Context, array: Expr) -> Any:
    """The number of elements, or UNKNOWN."""
    shape = known_shape(cx, array)
    return UNKNOWN if shape is None else int(np.prod(shape, dtype=int))


def note_result(cx: Context, var: Var, call: Call) -> None:
    """Infer the shape of a result by running the function on arrays of the known shapes."""
    if isinstance(var.type, Array):
        _note_shape(cx, var, _run(cx, call))


def note_results(cx: Context, targets: Sequence[Var], call: Call) -> None:
    """Find the shapes of several results, and record what they depend on."""
    arrays = any(isinstance(target.type, Array) for target in targets)
    results = _run(cx, call) if arrays else None
    for k, target in enumerate(targets):
        cx.symbols.depends[target] = call.args
        if results is not None:
            _note_shape(cx, target, results[k])


def _run(cx: Context, call: Call) -> Any:
    """The result of a call for arrays of the known shapes; None where one is not known, or prototypes are refused."""
    if hasattr(call.func, "type_like"):  # a solver: its result depends on values
        return None
    try:
        args = [_prototype(cx, arg) for arg in call.args]
        kwargs = {name: _prototype(cx, value) for name, value in call.kwargs}
        with warnings.catch_warnings(), np.errstate(all="ignore"):
            warnings.simplefilter("ignore")
            return call.func(*args, **kwargs)
    except Exception:
        return None


def _note_shape(cx: Context, var: Var, result: Any) -> None:
    shape = np.shape(result)
    if isinstance(var.type, Array) and len(shape) == var.type.rank and np.prod(shape, dtype=int) <= LARGEST:
        cx.symbols.shapes[var] = shape


def note_part(cx: Context, var: Var, load: Load) -> None:
    """Find the shape of a part of an array of known shape."""
    shape = known_shape(cx, load.array)
    if shape is None or not isinstance(var.type, Array):
        return
    try:
        part = np.broadcast_to(np.int8(0), shape)[tuple(_index(cx, item) for item in load.index)]
    except (_NotKnown, IndexError, ValueError):
        return
    cx.symbols.shapes[var] = part.shape


class _NotKnown(Exception):
    pass


def _prototype(cx: Context, expr: Expr) -> Any:
    if isinstance(expr, Tuple):
        return tuple(_prototype(cx, item) for item in expr.items)
    if isinstance(expr.type, Array):
        shape = known_shape(cx, expr)
        if shape is None or not isinstance(expr, Var):
            raise _NotKnown
        array = np.ones(shape, expr.type.dtype)
        return array + np.eye(*shape[-2:], dtype=array.dtype) if len(shape) > 1 and array.dtype.kind in "fc" else array
    if isinstance(expr, Const):
        return expr.value
    if is_floating(expr.type):
        return 0.5
    return _integer(cx, expr)


def _integer(cx: Context, expr: Expr) -> int:
    """The value of an integer expression."""
    found = traversal.map_expr(cx.symbols.resolve(expr), lambda part: _replaced(cx, part))
    if not isinstance(found, Const) or not isinstance(found.value, int):
        raise _NotKnown
    return found.value


def _replaced(cx: Context, part: Any) -> Any:
    """An integer expression, reduced by one step."""
    match part:
        case Var() if part in cx.symbols.definitions and not isinstance(part.type, Array):
            return traversal.map_expr(cx.symbols.definitions[part], lambda inner: _replaced(cx, inner))
        case Call(intrinsics.dim, (array, Const(int(axis)))):
            shape = known_shape(cx, array)
            return part if shape is None else Const(shape[axis])
        case Call(np.size, (array,)):
            shape = known_shape(cx, array)
            return part if shape is None else Const(int(np.prod(shape, dtype=int)))
        case Call(func, args, ()):
            known = [arg.value for arg in args if isinstance(arg, Const)]
            if len(known) < len(args):
                return part
            try:
                value = func(*known)
            except Exception:
                return part
            return Const(value) if isinstance(value, int) else part
    return part


def _index(cx: Context, item: Any) -> Any:
    if isinstance(item, Slice):
        return slice(*(None if part is None else _integer(cx, part) for part in (item.lo, item.hi, item.step)))
    if isinstance(item, Const):
        return item.value
    if isinstance(item.type, Array):
        shape = known_shape(cx, item)
        if shape is None or item.type.dtype == "bool":
            raise _NotKnown
        return np.zeros(shape, int)
    return 0  # any element will do
