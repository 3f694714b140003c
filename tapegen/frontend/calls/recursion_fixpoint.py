"""Fixpoint iteration for recursive functions: the body is lowered until the result is the assumed one."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator, Mapping
from typing import Any, NoReturn

import numpy as np

from tapegen.errors import AliasError, CompileLimit, NotDifferentiable, TapegenError
from tapegen.frontend.calls.communication import refuse_communication
from tapegen.frontend.calls.recursion_signatures import (
    Body,
    Form,
    Parameter,
    Path,
    Summary,
    canonical_type,
    is_parameter,
)
from tapegen.frontend.expressions.expressions import enter, put_name
from tapegen.frontend.lowering.control_flow import body_of, run_body
from tapegen.frontend.lowering.finalize import finish, resolved, surroundings
from tapegen.frontend.values.context import Builder, Context, NeedsConstant, Restart, Unreachable
from tapegen.frontend.values.materialize import adopt, const_expr, export, expr_of, flat_result
from tapegen.frontend.values.pytree import Leaf, StaticValue, Struct
from tapegen.frontend.values.state import FLAGS, RESULT, Cell, Frame, is_number, known_value
from tapegen.frontend.values.type_sets import note_kinds, several_kinds
from tapegen.ir import builders, intrinsics, traversal
from tapegen.ir.names import NameSupply, identifier
from tapegen.ir.nodes import Assign, Block, Call, Effect, Expr, Function, Return, Routine, Store, Var
from tapegen.ir.types import Array, ListOf, Scalar

PASSES = 10
"""Limit of fixpoint iterations for one routine."""


def solve(cx: Context, form: Form, frame: Frame, values: Mapping[str, Any]) -> None:
    """Lower a routine, and the routines that it calls, until every result is the assumed one."""
    routines = cx.routines
    routines.settling = True
    try:
        for _ in range(PASSES):
            routines.changed = False
            for other in routines.forms:
                other.lowered = other.final
            lower_form(cx, form, frame, values)
            routines.forms = [other for other in routines.forms if other.lowered]  # others belong to old assumptions
            if not routines.changed:
                _finish([other for other in routines.forms if not other.final])
                return
        raise cx.refusal(
            CompileLimit,
            f"what '{frame.name}' returns has another type each time it calls itself.",
            "Return values of one type on all paths.",
        )
    except TapegenError as error:
        refuse(cx, form, error)
    finally:
        routines.settling = False


def refuse(cx: Context, form: Form, error: TapegenError) -> NoReturn:
    """Lower again without this routine: where the depth is known, the function is inlined."""
    cx.recursion.refused.setdefault(form.identity, error)
    cx.recursion.called.discard(form.identity)
    raise Restart from None


def lower_form(cx: Context, form: Form, frame: Frame, values: Mapping[str, Any]) -> None:
    """Lower the body once, under the assumed results of the calls in it."""
    form.lowered = True
    form.seen = cx.state.copy()
    params: list[Parameter] = []
    builder, state = Builder(), cx.state.copy()
    for key in (*FLAGS, RESULT):
        state.vars.pop(key, None)
    state.escape_live = None
    before = form.summary
    outer = cx.frame, cx.node, cx.origin, cx.fixed_origin, cx.calls
    cx.frame, cx.calls = frame, []
    node = frame.node
    cx.node = node
    cx.origin = frame.parsed.span(node)
    cells = dict(state.cells)
    try:
        with cx.block(builder, state):
            enter(cx, frame)
            for name, value in values.items():
                put_name(cx, name, adopt(cx, _parameter(cx, form, value, (name,), params)))
            try:
                result = export(cx, run_body(cx, body_of(node)))
            except Unreachable:
                _refuse_changes(cx, frame, cells)
                raise
            output, exprs = flat_result(cx, _generalized(result))
            _refuse_changes(cx, frame, cells)
            sources, results, shares = _results(cx, exprs, params)
            written = [params[k].place for k in before.written]
    except Unreachable:
        return  # no path returns anything, as far as is known
    except NeedsConstant as need:
        _fix(cx, form, params, need)
        raise
    finally:
        cx.frame, cx.node, cx.origin, cx.fixed_origin, cx.calls = outer
    supply = NameSupply(user_names=frame.locals)
    supply.fresh(frame.name)
    given = [param.var for param in params]
    done = finish(cx, builder, [*results, *written], given, supply)
    final = [done.rename(resolved(cx, expr)) for expr in (*results, *written)]
    form.body = Body(tuple(done.names[var] for var in given), done.body, tuple(final), supply, frame.parsed.span(node))
    names = {new: old for old, new in done.names.items()}
    _refuse_surroundings(cx, frame, form.body, names)
    form.summary = Summary(
        output,
        sources,
        tuple(canonical_type(expr.type) for expr in results),
        tuple(several_kinds(cx, expr) for expr in results),
        _stored_params(cx, done.body, names, params),
        shares,
    )
    cx.routines.changed |= form.summary != before


def _refuse_changes(cx: Context, frame: Frame, cells: Mapping[int, Cell]) -> None:
    if any(cx.state.cells[key].content is not cell.content for key, cell in cells.items()):
        raise cx.refusal(
            NotDifferentiable,
            f"'{frame.name}' calls itself and changes a variable, list, dict or object of the function around it.",
            "Return what is new instead.",
        )


def _parameter(cx: Context, form: Form, value: Any, path: Path, params: list[Parameter]) -> Any:
    """An argument as the body sees it."""
    if isinstance(value, Struct):
        children = zip(value.keys, value.children, strict=True)
        made = tuple(_parameter(cx, form, child, (*path, key), params) for key, child in children)
        return dataclasses.replace(value, children=made, whole=None)
    fixed = cx.recursion.fixed.get(form.identity, set())
    if not is_parameter(cx, value, path, fixed):
        return StaticValue(known_value(value)) if path in fixed else value
    expr = expr_of(cx, value)
    name = identifier("_".join(map(str, path)))
    var = place = cx.new_var(name, canonical_type(expr.type))
    if len(params) in form.summary.written:
        place = cx.assign(name, builders.copy(var))
    note_kinds(cx, var, (expr,))
    params.append(Parameter(path, var, place))
    return Leaf(place)


def _generalized(value: Any) -> Any:
    """A result without known scalars: other calls may return other values."""
    if isinstance(value, Struct):
        return dataclasses.replace(value, children=tuple(map(_generalized, value.children)), whole=None)
    if isinstance(value, StaticValue) and (
        isinstance(value.value, np.generic) or (is_number(value.value) and not isinstance(value.value, bool))
    ):
        return Leaf(const_expr(value.value))
    return value


def _results(
    cx: Context, exprs: list[Expr], params: list[Parameter]
) -> tuple[tuple[tuple[str, int], ...], list[Expr], tuple[frozenset[int], ...]]:
    """The origins of the leaves of the result, the results, and the arguments that each may alias."""
    places = {param.place: k for k, param in enumerate(params) if isinstance(param.place.type, Array)}
    sources: list[tuple[str, int]] = []
    results: list[Expr] = []
    arrays: list[Var] = []
    shares: list[frozenset[int]] = []
    positions: dict[Expr, int] = {}
    for expr in exprs:
        expr = cx.symbols.resolve(expr)
        if expr in places:
            sources.append(("argument", places[expr]))  # type: ignore[index]
            continue
        if expr in positions:
            sources.append(("result", positions[expr]))
            continue
        sources.append(("result", len(results)))
        shared: frozenset[int] = frozenset()
        if isinstance(expr, Var) and isinstance(expr.type, Array):
            positions[expr] = len(results)
            if any(cx.symbols.may_overlap(expr, other) for other in arrays):
                raise cx.refusal(
                    AliasError, "two arrays that are returned here may share memory.", "Return copies (x.copy())."
                )
            arrays.append(expr)
            shared = frozenset(k for place, k in places.items() if cx.symbols.may_overlap(expr, place))
            if shared or cx.symbols.roots_of(expr) != frozenset({expr}):
                expr = cx.assign("result", builders.copy(expr))
        results.append(expr)
        shares.append(shared)
    return tuple(sources), results, tuple(shares)


def _fix(cx: Context, form: Form, params: list[Parameter], need: NeedsConstant) -> None:
    """Lower again with the parameters static that must be known at compile time."""
    sources = cx.symbols.int_sources(need.expr)
    wanted = {param.path for param in params if param.var in sources and isinstance(param.var.type, Scalar)}
    fixed = cx.recursion.fixed.setdefault(form.identity, set())
    if wanted - fixed:
        fixed |= wanted
        raise Restart
    if not sources.isdisjoint({param.var for param in params}):
        raise need.refusal


def _stored_params(cx: Context, block: Block, old: Mapping[Var, Var], params: list[Parameter]) -> tuple[int, ...]:
    """The parameters that a body writes into."""
    places = [(k, param.place) for k, param in enumerate(params) if isinstance(param.place.type, Array)]
    found: set[int] = set()
    for array in _stored(block):
        before = old.get(array, array)
        found |= {k for k, place in places if cx.symbols.may_overlap(before, place)}
    return tuple(sorted(found))


def _stored(block: Block) -> Iterator[Var]:
    for stmt in traversal.statements(block):
        match stmt:
            case Store(array):
                yield array
            case Assign(_, Call(_, _, kwargs)):
                yield from (value for name, value in kwargs if name == "out" and isinstance(value, Var))
            case Effect(Call(func, args)) if not intrinsics.tells(func) and not isinstance(func, Routine):
                yield from (arg for arg in args if isinstance(arg, Var) and isinstance(arg.type, Array))


def _refuse_surroundings(cx: Context, frame: Frame, body: Body, old: Mapping[Var, Var]) -> None:
    """Refuse a routine that changes its surroundings: they are passed to it, and it may not write them."""
    refuse_communication(cx, body.block)
    around = list(surroundings(body.block, body.values, body.params))
    stored = [old.get(array, array) for array in _stored(body.block)]
    for var in around:
        if isinstance(var.type, Array) and any(cx.symbols.may_overlap(array, var) for array in stored):
            raise cx.refusal(
                AliasError,
                f"'{frame.name}' calls itself and may write into '{var.name.partition('#')[0]}', an array from "
                "outside of it.",
                "Make the array an argument.",
            )
    calls = (
        part
        for stmt in traversal.statements(body.block)
        for header in stmt.headers
        for part in traversal.subexpressions(header)
        if isinstance(part, Call)
    )
    if any(intrinsics.is_draw(call.func) for call in calls):
        raise cx.refusal(
            NotDifferentiable,
            f"'{frame.name}' calls itself and draws random numbers, which its derivative would draw anew.",
            "Draw them outside and pass them, or write it as a loop.",
        )
    if any(isinstance(var.type, ListOf) for var in around):
        raise cx.refusal(
            NotDifferentiable,
            f"'{frame.name}' calls itself and uses a list that grows of the function around it.",
            "Use an array.",
        )


def _finish(forms: list[Form]) -> None:
    """Turn free variables of the bodies into parameters, also of routines that only pass them on."""
    by_routine = {form.routine: form for form in forms}
    free = {
        form: surroundings(form.body.block, form.body.values, form.body.params)
        for form in forms
        if form.body is not None
    }
    changed = True
    while changed:
        changed = False
        for form, mine in free.items():
            assert form.body is not None
            for callee in traversal.routines(form.body.block):
                theirs = free[by_routine[callee]] if callee in by_routine else {}
                changed |= not theirs.keys() <= mine.keys()
                mine.update(theirs)
    for form, mine in free.items():
        body = form.body
        assert body is not None
        names = {var: Var(body.supply.fresh(var.name.partition("#")[0]), var.type) for var in mine}

        def extended(node: Any) -> Any:
            if isinstance(node, Call) and isinstance(node.func, Routine) and node.func in by_routine:
                more = tuple(free[by_routine[node.func]])
                return dataclasses.replace(node, args=(*node.args, *more))
            return node

        block = _mapped(body.block, lambda node: traversal.map_expr(node, extended))
        block = traversal.rename_block(block, names)
        values = tuple(traversal.substitute(value, names) for value in body.values)
        form.free = tuple(mine)
        form.routine.function = Function(
            form.routine.name, (*body.params, *names.values()), (*block, Return(values)), origin=body.origin, inner=True
        )
        form.routine.shares = form.summary.shares + (frozenset(),) * len(form.summary.written)
    for form in forms:
        form.final = True
        form.body = None


def _mapped(block: Block, change: Any) -> Block:
    out = []
    for stmt in block:
        new = traversal.map_headers(stmt, change)
        out.append(traversal.with_blocks(new, tuple(_mapped(inner, change) for inner in new.blocks)))
    return tuple(out)
