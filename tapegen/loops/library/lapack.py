"""Matrix functions that compiled code takes from LAPACK (`backend.numba.library.lapack`)."""

from __future__ import annotations

import inspect

from tapegen.ir.nodes import Assign, Call, Expr, Var
from tapegen.ir.types import Array, TupleOf, Type
from tapegen.loops.analysis.symbolic_bounds import Extent, Extents
from tapegen.loops.legalize.builder import LoopBuilder
from tapegen.loops.legalize.registry import arguments
from tapegen.rules.external_functions import matrices


def one(w: LoopBuilder, call: Call, target: Var) -> None:
    """`target` = a call with one result."""
    ready, (extents,) = _ready(w, call)
    w.call_new(target, ready)
    w.facts.set_shape(target, extents)


def several(w: LoopBuilder, call: Call) -> tuple[Expr, ...]:
    """The results of a call, as variables."""
    assert isinstance(call.type, TupleOf)
    ready, shapes = _ready(w, call)
    results = tuple(_contiguous(w, type_) for type_ in call.type.items)
    w.emit(Assign(results, ready, w.origin))
    for result, extents in zip(results, shapes, strict=True):
        w.facts.set_shape(result, extents)
    return results


def _contiguous(w: LoopBuilder, type_: Type) -> Var:
    assert isinstance(type_, Array)
    return w.fresh("t", Array(type_.dtype, type_.rank, "C"))


def _ready(w: LoopBuilder, call: Call) -> tuple[Call, list[Extents]]:
    """The call with array operands, and the extents of its results."""
    operands, _, results = matrices()[call.func].partition("->")
    letters = operands.split(",")
    given = arguments(w, call, *inspect.signature(call.func).parameters)
    if None in given[: len(letters)] or any(option is not None for option in given[len(letters) :]):
        raise w.unsupported(call.func, "of this form")
    arrays = [w.materialize(array) for array in given[: len(letters)]]
    sizes: dict[str, Extent] = {}
    for array, letter in zip(arrays, letters, strict=True):
        extents = w.array(array).extents
        if len(extents) != len(letter):
            raise w.unsupported(call.func, "of this form")
        for name, extent in zip(letter, extents, strict=True):
            sizes.setdefault(name, extent)
    shapes = [tuple(sizes[name] for name in result) for result in results.split(",")]
    return Call(call.func, tuple(arrays), (), call.type), shapes
