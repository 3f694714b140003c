"""Recursive functions whose depth depends on run-time values: lowered once, as routines that are called by name.

A routine is lowered for the types of its arguments, separately from the surrounding program; known scalars become
parameters too.  The result type is a least fixpoint: it starts as bottom, so that a path with a recursive call ends
there, and the body is lowered again until the result is the assumed one.  Variables of enclosing functions and modules
that the body reads become further parameters.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from tapegen.errors import AliasError, NotDifferentiable
from tapegen.frontend.calls.recursion_fixpoint import lower_form, refuse, solve
from tapegen.frontend.calls.recursion_signatures import Form, Path, canonical_type, form_of, is_parameter
from tapegen.frontend.calls.repack import restored
from tapegen.frontend.values.context import Context, NeedsStatements
from tapegen.frontend.values.materialize import export, expr_of
from tapegen.frontend.values.pytree import Leaf, Struct
from tapegen.frontend.values.state import Frame, Ref, RunList
from tapegen.ir.nodes import Assign, Call, Expr, Var
from tapegen.ir.types import Array, TupleOf


def call_routine(cx: Context, frame: Frame, identity: Any, values: Mapping[str, Any]) -> Any:
    """Call a recursive function as a routine."""
    if cx.whole:
        raise NeedsStatements
    values = {name: _exported(cx, value) for name, value in values.items()}
    form = form_of(cx, frame, identity, values)
    if not form.final:
        if not cx.routines.settling:
            solve(cx, form, frame, values)
        elif not form.lowered:
            lower_form(cx, form, frame, values)
    return _call(cx, form, values)


def _exported(cx: Context, value: Any) -> Any:
    if isinstance(value, Ref) and isinstance(cx.state.cells[value.cell].content, RunList):
        raise cx.refusal(
            NotDifferentiable,
            "a list that grows is passed to a function that calls itself as often as a value says.",
            "Pass an array.",
        )
    return export(cx, value) if isinstance(value, (Ref, Struct)) else value


def _call(cx: Context, form: Form, values: Mapping[str, Any]) -> Any:
    """The statements of a call, and its result."""
    summary = form.summary
    if summary.output is None:  # the result is not known yet, or the function never returns
        cx.raise_(RecursionError, "maximum recursion depth exceeded")
    fixed = cx.recursion.fixed.get(form.identity, set())
    given = [cx.atom(expr) for name, value in values.items() for expr in _leaves(cx, value, (name,), fixed)]
    args = (*given, *form.free)
    _refuse_overlap(cx, form, given, args)
    types = (*summary.types, *(canonical_type(given[k].type) for k in summary.written))
    targets = tuple(cx.new_var("t", type_) for type_ in types)
    if targets:
        call = Call(form.routine, args, (), types[0] if len(types) == 1 else TupleOf(types))
        cx.emit(Assign(targets, call, cx.origin))
    else:
        cx.effect(Call(form.routine, args, (), TupleOf(())))
    for target, kinds in zip(targets, summary.kinds, strict=False):
        if kinds:
            cx.symbols.kinds[target] = kinds
    for k, content in zip(summary.written, targets[len(summary.types) :], strict=True):
        array = given[k]
        assert isinstance(array, Var)
        cx.store(array, (), content)
    leaves = [Leaf(targets[k]) if source == "result" else Leaf(given[k]) for source, k in summary.sources]
    return restored(cx, summary.output, leaves.__getitem__)


def _leaves(cx: Context, value: Any, path: Path, fixed: set[Path]) -> Iterator[Expr]:
    """The leaves that a call passes for an argument."""
    if isinstance(value, Struct):
        for key, child in zip(value.keys, value.children, strict=True):
            yield from _leaves(cx, child, (*path, key), fixed)
    elif is_parameter(cx, value, path, fixed):
        yield expr_of(cx, value)


def _refuse_overlap(cx: Context, form: Form, given: list[Expr], args: tuple[Expr, ...]) -> None:
    """Refuse arguments that alias an array that the routine writes."""
    for k in form.summary.written:
        for j, other in enumerate(args):
            if j != k and isinstance(other, Var) and isinstance(other.type, Array):
                array = given[k]
                assert isinstance(array, Var)
                if cx.symbols.may_overlap(array, other):
                    error = cx.refusal(
                        AliasError,
                        f"'{form.routine.name}' writes into an argument that may share memory with another one.",
                        "Pass a copy of one of them.",
                    )
                    if form.final:
                        refuse(cx, form, error)
                    raise error
