"""Solver callbacks: functions of a program as Python functions, for `tapegen.rules.implicit`."""

from __future__ import annotations

from typing import Any

from tapegen.errors import NotDifferentiable
from tapegen.frontend.calls.handlers import handles
from tapegen.frontend.calls.outline import Derivative, outline_call
from tapegen.frontend.library.builtins import Args, Hint, Kwargs
from tapegen.frontend.values.context import Context
from tapegen.frontend.values.pytree import Leaf, StaticValue, Struct, tuple_of
from tapegen.ir import intrinsics
from tapegen.ir.names import BACKWARD
from tapegen.ir.nodes import Comment, Function
from tapegen.ir.protocols import mark_of
from tapegen.ir.types import RandomGenerator, is_complex, is_floating
from tapegen.rules import implicit


@handles(implicit.closed, takes="*args")
def _closed(cx: Context, args: Args, kwargs: Kwargs, hint: Hint) -> Any:
    func, *given = args
    mark = mark_of(implicit.jacobian)
    assert mark is not None
    program = outline_call(cx, Derivative(mark, func), given, {}, range(len(given)))
    if program.changes:
        raise cx.refusal(
            NotDifferentiable,
            "the function that a solver calls changes an object outside of it, as often as the solver likes.",
            "Leave that out of the function.",
        )
    if len(program.values) != 1 or not is_floating(program.values[0].type) or is_complex(program.values[0].type):
        raise cx.refusal(
            NotDifferentiable, "the function that a solver calls does not return floats.", "Return one array or number."
        )
    first = len(program.wrt)
    reads = list(zip(program.function.params[first:], program.given[first:], strict=True))
    if any(isinstance(var.type, RandomGenerator) for var, _ in reads):
        raise cx.refusal(
            NotDifferentiable, "the function that a solver calls draws random numbers.", "Draw them before the call."
        )
    floats = [(var, expr) for var, expr in reads if is_floating(var.type)]
    others = [(var, expr) for var, expr in reads if not is_floating(var.type)]
    params = (*program.function.params[:first], *(var for var, _ in floats), *(var for var, _ in others))
    function = Function(program.function.name, params, program.function.body, origin=program.function.origin)
    text = mark.pipeline.primal(function, cx.assumptions.modules)
    return tuple_of(
        (
            StaticValue(text),
            tuple_of(Leaf(expr) for _, expr in floats),
            tuple_of(Leaf(expr) for _, expr in others),
            StaticValue(getattr(program.values[0].type, "rank", 0)),
        )
    )


@handles(implicit.Found, takes="**attributes")
def _found(cx: Context, args: Args, kwargs: Kwargs, hint: Hint) -> Any:
    return cx.new_cell(Struct("object", tuple(kwargs), tuple(kwargs.values()), implicit.Found))


@handles(intrinsics.backward_sweep, takes="")
def _backward_sweep(cx: Context, args: Args, kwargs: Kwargs, hint: Hint) -> Any:
    cx.emit(Comment(BACKWARD))
    return StaticValue(None)
