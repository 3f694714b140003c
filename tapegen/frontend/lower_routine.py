"""Recursion that a value ends: the function becomes a routine, lowered once and called by its name.

A routine is lowered for the types of its arguments, apart from the program around it; numbers that the call knows
become parameters too.  What a call returns is a least fixpoint: at first nothing is known of it, so that a path which
calls itself ends there, and the body is lowered again until the result is what was assumed.  What the body reads of
the functions around it and of modules becomes further parameters.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, NoReturn

import gast
import numpy as np

from tapegen.errors import AliasError, CompileLimit, NotDifferentiable, Span, TapegenError
from tapegen.frontend.lower_context import Builder, Context, NeedsStatic, NotWhole, PathEnds
from tapegen.frontend.lower_derivative import restored
from tapegen.frontend.lower_expr import enter, put_name
from tapegen.frontend.lower_finish import finish, resolved
from tapegen.frontend.lower_flow import run_body
from tapegen.frontend.lower_state import (
    FLAGS,
    RESULT,
    Captured,
    Cell,
    Frame,
    Ref,
    RunList,
    State,
    is_number,
    known_value,
)
from tapegen.frontend.lower_values import adopt, const_expr, export, expr_of, flat_result
from tapegen.frontend.structure import UNKNOWN, Itself, Leaf, StaticValue, Struct
from tapegen.ir import build, ops, rewrite
from tapegen.ir.names import NameSupply, identifier
from tapegen.ir.nodes import Assign, Block, Call, Effect, Expr, Function, Return, Routine, Store, Var
from tapegen.ir.types import Array, ListOf, Scalar, TupleOf, Type

PASSES = 10
"""Times a routine is lowered at most until its result is what was assumed."""

MOST = 24
"""Forms of one function, for different types and options."""

Path = tuple[Any, ...]


class Again(Exception):
    """Something was learned of a recursive function; the program is lowered once more."""


@dataclass(slots=True)
class Recursion:
    """What is known of the recursive functions of a program, from one attempt to lower it to the next.

    Attributes
    ----------
    called : set
        Functions that are routines.
    refused : dict
        Functions that cannot be, with the reason.
    fixed : dict
        Their parameters that must be known when compiling.
    """

    called: set[Any] = field(default_factory=set)
    refused: dict[Any, TapegenError] = field(default_factory=dict)
    fixed: dict[Any, set[Path]] = field(default_factory=dict)


@dataclass(eq=False, slots=True)
class _Parameter:
    """A parameter: where it is found, and its name in the body, which is a copy if the body writes into it."""

    path: Path
    var: Var
    place: Var


@dataclass(slots=True)
class _Summary:
    """What a call of a routine does.  The leaves of the result come from its results or are arguments themselves."""

    output: Any = None  # None: not known yet
    sources: tuple[tuple[str, int], ...] = ()
    types: tuple[Type, ...] = ()
    mixed: tuple[bool, ...] = ()
    written: tuple[int, ...] = ()
    shares: tuple[frozenset[int], ...] = ()


@dataclass(eq=False, slots=True)
class _Body:
    """The parts of a finished program: names are final, but for those of its surroundings."""

    params: tuple[Var, ...]
    block: Block
    values: tuple[Expr, ...]
    supply: NameSupply
    origin: Span | None


@dataclass(eq=False, slots=True)
class _Form:
    """A function for one set of types and options."""

    identity: Any
    key: Any
    routine: Routine
    summary: _Summary = field(default_factory=_Summary)
    body: _Body | None = None
    free: tuple[Var, ...] = ()  # what it reads of its surroundings
    lowered: bool = False  # in this pass
    final: bool = False
    seen: State | None = None  # where it was lowered


@dataclass(slots=True)
class Routines:
    """The routines of one attempt."""

    forms: list[_Form] = field(default_factory=list)
    settling: bool = False
    changed: bool = False


def call_routine(cx: Context, frame: Frame, identity: Any, values: Mapping[str, Any]) -> Any:
    """Call a recursive function by its name."""
    if cx.whole:
        raise NotWhole
    values = {name: _exported(cx, value) for name, value in values.items()}
    form = _form(cx, frame, identity, values)
    if not form.final:
        if not cx.routines.settling:
            _settle(cx, form, frame, values)
        elif not form.lowered:
            _lower(cx, form, frame, values)
    return _call(cx, form, values)


def _exported(cx: Context, value: Any) -> Any:
    if isinstance(value, Ref) and isinstance(cx.state.cells[value.cell].content, RunList):
        raise cx.refusal(
            NotDifferentiable,
            "a list that grows is passed to a function that calls itself as often as a value says.",
            "Pass an array.",
        )
    return export(cx, value) if isinstance(value, Ref | Struct) else value


# ---- which routine ---------------------------------------------------------------------------------------------------


def _form(cx: Context, frame: Frame, identity: Any, values: Mapping[str, Any]) -> _Form:
    fixed = cx.recursion.fixed.get(identity, set())
    key = tuple((name, _kind(cx, value, (name,), fixed)) for name, value in values.items())
    forms = [form for form in cx.routines.forms if form.identity is identity]
    for form in forms:
        if form.key == key and _still_holds(cx, form):
            return form
    if len(forms) >= MOST:
        raise cx.refusal(
            CompileLimit,
            f"'{frame.name}' calls itself with more and more kinds of arguments.",
            "Pass numbers and arrays of the same types and the same options in each call.",
        )
    form = _Form(identity, key, Routine(frame.name))
    cx.routines.forms.append(form)
    return form


def _kind(cx: Context, value: Any, path: Path, fixed: set[Path]) -> Any:
    """What a routine is lowered for, of an argument."""
    if isinstance(value, Struct):
        children = zip(value.keys, value.children, strict=True)
        return (
            value.kind,
            value.keys,
            value.cls,
            tuple(_kind(cx, child, (*path, key), fixed) for key, child in children),
        )
    if not _is_parameter(cx, value, path, fixed):
        known = known_value(value)
        if path in fixed and known is not UNKNOWN:
            return StaticValue(known)
        if isinstance(value, Captured):
            return "captured", value.path
        return value if isinstance(value, StaticValue) else Itself(value)
    expr = expr_of(cx, value)
    return _plain(expr.type), expr in cx.mixed


def _is_parameter(cx: Context, value: Any, path: Path, fixed: set[Path]) -> bool:
    """Whether an argument is passed when the program runs."""
    if path in fixed:
        if known_value(value) is UNKNOWN:
            refusal = cx.refusal(CompileLimit, "this must be known when compiling.", "Use an argument or a constant.")
            raise NeedsStatic(expr_of(cx, value), refusal)
        return False
    if isinstance(value, Leaf):
        if isinstance(value.type, ListOf | TupleOf):
            raise cx.refusal(
                NotDifferentiable, "a list that grows is passed to a recursive function.", "Pass an array."
            )
        return isinstance(value.type, Array | Scalar)
    if not isinstance(value, StaticValue):
        return False
    known = value.value
    return isinstance(known, np.generic) or (is_number(known) and not isinstance(known, bool))


def _plain(type_: Type) -> Type:
    """The type of a parameter or a result: calls differ in sizes and layout."""
    return Array(type_.dtype, type_.rank) if isinstance(type_, Array) else type_


def _still_holds(cx: Context, form: _Form) -> bool:
    """Whether the variables of enclosing functions are what they were where the routine was lowered."""
    if form.seen is None or not form.final:
        return True
    captured = {key: value for key, value in form.seen.vars.items() if key[0] and key[1] in key[0].live.captured}
    return all(cx.state.vars.get(key) is value for key, value in captured.items()) and (
        not captured
        or all(cx.state.cells.get(key) is cell for key, cell in form.seen.cells.items() if key in cx.state.cells)
    )


# ---- the fixpoint ----------------------------------------------------------------------------------------------------


def _settle(cx: Context, form: _Form, frame: Frame, values: Mapping[str, Any]) -> None:
    """Lower a routine, and those that it needs, until every call returns what was assumed of it."""
    routines = cx.routines
    routines.settling = True
    try:
        for _ in range(PASSES):
            routines.changed = False
            for other in routines.forms:
                other.lowered = other.final
            _lower(cx, form, frame, values)
            routines.forms = [other for other in routines.forms if other.lowered]  # others belong to earlier guesses
            if not routines.changed:
                _finish([other for other in routines.forms if not other.final])
                return
        raise cx.refusal(
            CompileLimit,
            f"what '{frame.name}' returns has another type each time it calls itself.",
            "Return values of one type on all paths.",
        )
    except TapegenError as error:
        _refuse(cx, form, error)
    finally:
        routines.settling = False


def _refuse(cx: Context, form: _Form, error: TapegenError) -> NoReturn:
    """Lower again without this routine: where the depth is known, the function is written out."""
    cx.recursion.refused.setdefault(form.identity, error)
    cx.recursion.called.discard(form.identity)
    raise Again from None


def _lower(cx: Context, form: _Form, frame: Frame, values: Mapping[str, Any]) -> None:
    """Lower the body once, with what is assumed of the calls in it."""
    form.lowered = True
    form.seen = cx.state.copy()
    params: list[_Parameter] = []
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
                result = export(cx, run_body(cx, _body_of(node)))
            except PathEnds:
                _refuse_changes(cx, frame, cells)
                raise
            output, exprs = flat_result(cx, _generalised(result))
            _refuse_changes(cx, frame, cells)
            sources, results, shares = _results(cx, exprs, params)
            written = [params[k].place for k in before.written]
    except PathEnds:
        return  # no path returns anything, as far as is known
    except NeedsStatic as need:
        _fix(cx, form, params, need)
        raise
    finally:
        cx.frame, cx.node, cx.origin, cx.fixed_origin, cx.calls = outer
    supply = NameSupply(user_names=frame.locals)
    supply.fresh(frame.name)
    given = [param.var for param in params]
    done = finish(cx, builder, [*results, *written], given, supply)
    final = [done.rename(resolved(cx, expr)) for expr in (*results, *written)]
    form.body = _Body(tuple(done.names[var] for var in given), done.body, tuple(final), supply, frame.parsed.span(node))
    names = {new: old for old, new in done.names.items()}
    _refuse_surroundings(cx, frame, form.body, names)
    form.summary = _Summary(
        output,
        sources,
        tuple(_plain(expr.type) for expr in results),
        tuple(expr in cx.mixed for expr in results),
        _written(cx, done.body, names, params),
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


def _body_of(node: Any) -> list[Any]:
    return node.body if isinstance(node.body, list) else [gast.copy_location(gast.Return(node.body), node.body)]


def _parameter(cx: Context, form: _Form, value: Any, path: Path, params: list[_Parameter]) -> Any:
    """An argument as the body sees it."""
    if isinstance(value, Struct):
        children = zip(value.keys, value.children, strict=True)
        made = tuple(_parameter(cx, form, child, (*path, key), params) for key, child in children)
        return dataclasses.replace(value, children=made, whole=None)
    fixed = cx.recursion.fixed.get(form.identity, set())
    if not _is_parameter(cx, value, path, fixed):
        return StaticValue(known_value(value)) if path in fixed else value
    expr = expr_of(cx, value)
    name = identifier("_".join(map(str, path)))
    var = place = cx.new_var(name, _plain(expr.type))
    if len(params) in form.summary.written:
        place = cx.assign(name, build.copy(var))
    if expr in cx.mixed:
        cx.mixed.add(var)
    params.append(_Parameter(path, var, place))
    return Leaf(place)


def _generalised(value: Any) -> Any:
    """A result whose numbers are not known: other calls return others."""
    if isinstance(value, Struct):
        return dataclasses.replace(value, children=tuple(map(_generalised, value.children)), whole=None)
    if isinstance(value, StaticValue) and (
        isinstance(value.value, np.generic) or (is_number(value.value) and not isinstance(value.value, bool))
    ):
        return Leaf(const_expr(value.value))
    return value


def _results(
    cx: Context, exprs: list[Expr], params: list[_Parameter]
) -> tuple[tuple[tuple[str, int], ...], list[Expr], tuple[frozenset[int], ...]]:
    """Where the leaves of the result come from, the results, and the arguments that each may share memory with."""
    places = {param.place: k for k, param in enumerate(params) if isinstance(param.place.type, Array)}
    sources: list[tuple[str, int]] = []
    results: list[Expr] = []
    arrays: list[Var] = []
    shares: list[frozenset[int]] = []
    positions: dict[Expr, int] = {}
    for expr in exprs:
        expr = cx.resolve(expr)
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
            if any(cx.may_overlap(expr, other) for other in arrays):
                raise cx.refusal(
                    AliasError, "two arrays that are returned here may share memory.", "Return copies (x.copy())."
                )
            arrays.append(expr)
            shared = frozenset(k for place, k in places.items() if cx.may_overlap(expr, place))
            if shared or cx.roots_of(expr) != frozenset({expr}):
                expr = cx.assign("result", build.copy(expr))
        results.append(expr)
        shares.append(shared)
    return tuple(sources), results, tuple(shares)


def _fix(cx: Context, form: _Form, params: list[_Parameter], need: NeedsStatic) -> None:
    """Lower again with parameters known that must be."""
    sources = cx.int_sources(need.expr)
    wanted = {param.path for param in params if param.var in sources and isinstance(param.var.type, Scalar)}
    fixed = cx.recursion.fixed.setdefault(form.identity, set())
    if wanted - fixed:
        fixed |= wanted
        raise Again
    if not sources.isdisjoint({param.var for param in params}):
        raise need.refusal


def _written(cx: Context, block: Block, old: Mapping[Var, Var], params: list[_Parameter]) -> tuple[int, ...]:
    """The parameters that a body writes into."""
    places = [(k, param.place) for k, param in enumerate(params) if isinstance(param.place.type, Array)]
    found: set[int] = set()
    for array in _stored(block):
        before = old.get(array, array)
        found |= {k for k, place in places if cx.may_overlap(before, place)}
    return tuple(sorted(found))


def _stored(block: Block) -> Iterator[Var]:
    for stmt in rewrite.statements(block):
        match stmt:
            case Store(array):
                yield array
            case Assign(_, Call(_, _, kwargs)):
                yield from (value for name, value in kwargs if name == "out" and isinstance(value, Var))
            case Effect(Call(func, args)) if func is not print and not isinstance(func, Routine):
                yield from (arg for arg in args if isinstance(arg, Var) and isinstance(arg.type, Array))


def _refuse_surroundings(cx: Context, frame: Frame, body: _Body, old: Mapping[Var, Var]) -> None:
    """What is around a routine is passed to it, and it changes nothing that is passed."""
    around = list(_surroundings(body))
    stored = [old.get(array, array) for array in _stored(body.block)]
    for var in around:
        if isinstance(var.type, Array) and any(cx.may_overlap(array, var) for array in stored):
            raise cx.refusal(
                AliasError,
                f"'{frame.name}' calls itself and may write into '{var.name.partition('#')[0]}', an array from "
                "outside of it.",
                "Make the array an argument.",
            )
    calls = (
        part
        for stmt in rewrite.statements(body.block)
        for header in rewrite.headers(stmt)
        for part in rewrite.subexpressions(header)
        if isinstance(part, Call)
    )
    if any(ops.is_draw(call.func) for call in calls):
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


# ---- the finished functions ------------------------------------------------------------------------------------------


def _surroundings(body: _Body) -> dict[Var, None]:
    """What a body reads and does not define."""
    defined = {var for stmt in rewrite.statements(body.block) for var in rewrite.defines(stmt)} | set(body.params)
    headers = [header for stmt in rewrite.statements(body.block) for header in rewrite.headers(stmt)]
    found: dict[Var, None] = {}
    for node in (*headers, *body.values):
        for part in rewrite.subexpressions(node):
            if isinstance(part, Var) and part not in defined:
                found.setdefault(part)
    return found


def _finish(forms: list[_Form]) -> None:
    """Make what the bodies read of their surroundings parameters, also of those that only pass it on."""
    by_routine = {form.routine: form for form in forms}
    free = {form: _surroundings(form.body) for form in forms if form.body is not None}
    changed = True
    while changed:
        changed = False
        for form, mine in free.items():
            assert form.body is not None
            for callee in rewrite.routines(form.body.block):
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

        block = _mapped(body.block, lambda node: rewrite.map_expr(node, extended))
        block = rewrite.rename_block(block, names)
        values = tuple(rewrite.substitute(value, names) for value in body.values)
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
        new = rewrite.map_headers(stmt, change)
        out.append(rewrite.with_blocks(new, tuple(_mapped(inner, change) for inner in rewrite.blocks(new))))
    return tuple(out)


# ---- calls -----------------------------------------------------------------------------------------------------------


def _call(cx: Context, form: _Form, values: Mapping[str, Any]) -> Any:
    """The statements of a call, and its result."""
    summary = form.summary
    if summary.output is None:  # nothing is known of the result, or nothing ever returns
        cx.raise_(RecursionError, "maximum recursion depth exceeded")
    fixed = cx.recursion.fixed.get(form.identity, set())
    given = [cx.atom(expr) for name, value in values.items() for expr in _leaves(cx, value, (name,), fixed)]
    args = (*given, *form.free)
    _refuse_overlap(cx, form, given, args)
    types = (*summary.types, *(_plain(given[k].type) for k in summary.written))
    targets = tuple(cx.new_var("t", type_) for type_ in types)
    if targets:
        call = Call(form.routine, args, (), types[0] if len(types) == 1 else TupleOf(types))
        cx.emit(Assign(targets, call, cx.origin))
    else:
        cx.effect(Call(form.routine, args, (), TupleOf(())))
    for target, mixed in zip(targets, summary.mixed, strict=False):
        if mixed:
            cx.mixed.add(target)
    for k, content in zip(summary.written, targets[len(summary.types) :], strict=True):
        array = given[k]
        assert isinstance(array, Var)
        cx.store(array, (), content)
    leaves = [Leaf(targets[k]) if source == "result" else Leaf(given[k]) for source, k in summary.sources]
    return restored(cx, summary.output, leaves.__getitem__)


def _leaves(cx: Context, value: Any, path: Path, fixed: set[Path]) -> Iterator[Expr]:
    """What a call passes for an argument."""
    if isinstance(value, Struct):
        for key, child in zip(value.keys, value.children, strict=True):
            yield from _leaves(cx, child, (*path, key), fixed)
    elif _is_parameter(cx, value, path, fixed):
        yield expr_of(cx, value)


def _refuse_overlap(cx: Context, form: _Form, given: list[Expr], args: tuple[Expr, ...]) -> None:
    """What a routine writes into must have no other name in it."""
    for k in form.summary.written:
        for j, other in enumerate(args):
            if j != k and isinstance(other, Var) and isinstance(other.type, Array):
                array = given[k]
                assert isinstance(array, Var)
                if cx.may_overlap(array, other):
                    error = cx.refusal(
                        AliasError,
                        f"'{form.routine.name}' writes into an argument that may share memory with another one.",
                        "Pass a copy of one of them.",
                    )
                    if form.final:
                        _refuse(cx, form, error)
                    raise error
