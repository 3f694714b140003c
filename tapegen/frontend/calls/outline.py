"""Outlining: lowers a call into a separate program, which can be derived."""

from __future__ import annotations

import dataclasses
import inspect
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from tapegen.errors import AliasError, BadArgument, NotDifferentiable
from tapegen.frontend.calls.communication import refuse_communication
from tapegen.frontend.calls.library_calls import is_library
from tapegen.frontend.lowering.finalize import finish, resolved, surroundings
from tapegen.frontend.mutation.outlined_containers import changes_of
from tapegen.frontend.source.callables import unwrap
from tapegen.frontend.values.context import Builder, Context, Unreachable
from tapegen.frontend.values.materialize import adopt, describe, export, flat_result
from tapegen.frontend.values.pytree import Leaf, Slot, StaticValue, Struct, leaves_of
from tapegen.frontend.values.state import Bound, Closure
from tapegen.ir import traversal
from tapegen.ir.intrinsics import VIEW_CALLS
from tapegen.ir.names import NameSupply
from tapegen.ir.nodes import Assign, Block, Call, Const, Expr, Function, Return, Store, Var
from tapegen.ir.protocols import Mark, Mode, Pipeline
from tapegen.ir.types import Array, ListOf, RandomGenerator, is_floating


@dataclass(frozen=True, slots=True, eq=False)
class Derivative:
    """The function that `tg.grad(f)` makes: `f` with the requested derivative."""

    mark: Mark
    func: Any
    wrt: Any = 0
    has_aux: bool = False
    mode: Mode | None = None
    holomorphic: bool = False


@dataclass(frozen=True, slots=True, eq=False)
class Program:
    """An outlined call.

    Attributes
    ----------
    function : Function
        Its first parameters are the floating leaves of the chosen arguments, the others all other values that it reads.
    given : tuple of Expr
        The values of the parameters in the surrounding program.
    output : object
        The structure of the result; its leaves are Slots.
    objective : object
        The part that is differentiated: all, or with `has_aux` the first of two.
    chosen : dict
        Position of each argument of `wrt` -> its abstract value, whose leaves are the parameters while lowering.
    wrt : dict
        Parameter while lowering -> parameter of the program.
    pipeline : Pipeline
        Derives the program.
    changes : dict
        Containers of the surrounding program that the call changes: cell -> contents afterwards.
    """

    function: Function
    given: tuple[Expr, ...]
    output: Any
    objective: Any
    chosen: dict[int | str, Any]
    wrt: dict[Expr, Var]
    pipeline: Pipeline
    changes: dict[int, Any] = dataclasses.field(default_factory=dict)

    @property
    def values(self) -> tuple[Expr, ...]:
        last = self.function.body[-1]
        assert isinstance(last, Return)
        return last.values

    @property
    def active(self) -> tuple[bool, ...]:
        """Which results have derivatives."""
        chosen = {leaf.index for leaf in leaves_of(self.objective) if isinstance(leaf, Slot)}
        return tuple(k in chosen and is_floating(value.type) for k, value in enumerate(self.values))

    @property
    def generators(self) -> tuple[Expr, ...]:
        """The random generators that it draws from, in the surrounding program."""
        return tuple(expr for expr in self.given if isinstance(expr.type, RandomGenerator))


def parameters_of(cx: Context, func: Any) -> list[str]:
    """The names of the caller's arguments."""
    if isinstance(func, Bound):
        names = parameters_of(cx, func.func)[len(func.args) :]
        return [name for name in names if name not in func.kwargs]
    value = func.value if isinstance(func, StaticValue) else func
    if isinstance(value, Closure):
        return [arg.id for arg in (*value.node.args.posonlyargs, *value.node.args.args, *value.node.args.kwonlyargs)]
    if isinstance(value, Derivative):
        return parameters_of(cx, value.func)
    try:
        function, bound, named = unwrap(value)
    except NotDifferentiable as error:
        raise cx.refusal(type(error), error.reason, error.advice) from None
    names = list(inspect.signature(function).parameters)[len(bound) :]
    return [name for name in names if name not in named]


def outline_call(
    cx: Context,
    derivative: Derivative,
    args: Sequence[Any],
    kwargs: dict[str, Any],
    places: Sequence[int | str],
) -> Program:
    """Outline a call of a function; the leaves at `places` are the first parameters of the program."""
    func = derivative.func
    given_args, given_kwargs = list(args), dict(kwargs)
    chosen: dict[int | str, Any] = {}
    params: dict[Var, Expr] = {}
    for place in places:
        if place in chosen:
            continue
        if isinstance(place, str) and place not in given_kwargs:
            raise cx.refusal(
                BadArgument, f"the argument '{place}' of wrt is not given.", "Pass it, or leave it out of wrt."
            )
        value = export(cx, given_args[place] if isinstance(place, int) else given_kwargs[place])
        before = len(params)
        chosen[place] = _fresh(cx, value, params)
        if len(params) == before:
            raise cx.refusal(
                BadArgument, f"{describe(cx, value)} has no gradient.", "Pass floats, or leave the argument out of wrt."
            )
        if isinstance(place, int):
            given_args[place] = adopt(cx, chosen[place])
        else:
            given_kwargs[place] = adopt(cx, chosen[place])
    builder, cells = Builder(), {key: cell.content for key, cell in cx.state.cells.items()}
    try:
        with cx.block(builder, cx.state.copy()):
            output, exprs = flat_result(cx, export(cx, cx.call(cx, func, given_args, given_kwargs)))
            changes = changes_of(cx, cells, exprs)
    except Unreachable:
        if not builder.dead:
            raise
        cx.call(cx, func, args, kwargs)  # raises in the surrounding program
        raise
    supply = NameSupply()
    name = supply.fresh(_name_of(func))
    done = finish(cx, builder, exprs, list(params), supply)
    values = tuple(done.rename(resolved(cx, expr)) for expr in exprs)
    final, others = _closed_over(done.body, values, {done.names[var] for var in params}, supply)
    rename = {other: new for new, other in zip(final, others, strict=True)}
    body = traversal.rename_block(done.body, rename)
    values = tuple(traversal.substitute(value, rename) for value in values)
    first = tuple(done.names[var] for var in params)
    function = Function(name, (*first, *final), (*body, Return(values)), origin=cx.span())
    _check_stores(cx, function, (*params.values(), *others))
    refuse_communication(cx, function.body)
    if derivative.has_aux and not (isinstance(output, Struct) and output.kind == "tuple" and len(output.children) == 2):
        raise cx.refusal(BadArgument, "has_aux=True needs a function that returns (objective, aux).", "Return two.")
    objective = output.children[0] if derivative.has_aux else output
    wrt: dict[Expr, Var] = {var: done.names[var] for var in params}
    given = (*params.values(), *others)
    return Program(function, given, output, objective, chosen, wrt, derivative.mark.pipeline, changes)


def _fresh(cx: Context, value: Any, params: dict[Var, Expr]) -> Any:
    """An argument with its floating leaves replaced by parameters of the program."""
    if isinstance(value, Struct):
        return dataclasses.replace(
            value, children=tuple(_fresh(cx, child, params) for child in value.children), whole=None
        )
    if isinstance(value, StaticValue) and isinstance(value.value, (float, np.floating)):
        expr: Expr = cx.assign("x", Const(value.value))
    elif isinstance(value, Leaf) and isinstance(value.type, Array) and not is_floating(value.type):
        held = "truth values (bool)" if value.type.dtype == "bool" else "integers"
        raise cx.refusal(BadArgument, f"{held} have no gradient.", "Pass floats, or leave the argument out of wrt.")
    elif isinstance(value, Leaf) and is_floating(value.type):
        if isinstance(value.type, ListOf):
            raise cx.refusal(NotDifferentiable, "a list that grows has no gradient here.", "Use an array.")
        expr = cx.symbols.resolve(value.expr)
    else:
        return value
    var = cx.new_var(expr.name.partition("#")[0] if isinstance(expr, Var) else "x", expr.type)
    if isinstance(expr, Var) and expr in cx.symbols.shapes:
        cx.symbols.shapes[var] = cx.symbols.shapes[expr]
    cx.symbols.definitions[var] = expr  # facts that are needed about the parameter come from its value
    params[var] = expr
    return Leaf(var)


def _name_of(func: Any) -> str:
    value = func.value if isinstance(func, StaticValue) else func
    if isinstance(value, Closure):
        return getattr(value.node, "name", "lambda_")
    if isinstance(value, Derivative):
        return f"{_name_of(value.func)}_{value.mark.kind}"
    name = getattr(value, "__name__", "function")
    return name if name.isidentifier() else "lambda_"


def _closed_over(body: Any, values: Sequence[Expr], known: set[Var], supply: NameSupply) -> tuple[list[Var], list[Var]]:
    """The free variables of the program: its new parameters, and their values in the surrounding program."""
    others = {var: Var(supply.fresh(var.name.partition("#")[0]), var.type) for var in surroundings(body, values, known)}
    return list(others.values()), list(others)


def _check_stores(cx: Context, function: Function, given: Sequence[Expr]) -> None:
    """Refuse a program that writes an argument which may share memory with another one."""
    for var in function.params:
        if isinstance(var.type, ListOf):
            raise cx.refusal(
                NotDifferentiable, "a list that grows is used inside a derivative taken here.", "Use an array."
            )
    if _stored_arrays(function.body).isdisjoint(function.params):
        return
    arrays = [expr for expr in given if isinstance(expr.type, Array) and isinstance(expr, Var)]
    for k, left in enumerate(arrays):
        if any(cx.symbols.may_overlap(left, right) for right in arrays[k + 1 :] if isinstance(right, Var)):
            raise cx.refusal(
                AliasError,
                "the function writes arrays, and two arrays that it uses may share memory.",
                "Pass a copy of one of them.",
            )


def _stored_arrays(body: Block) -> set[Var]:
    """The arrays that statements store into, and all arrays that they may alias."""
    sources: dict[Var, set[Var]] = {}
    written: set[Var] = set()
    for stmt in traversal.statements(body):
        if isinstance(stmt, Store):
            written.add(stmt.array)
        elif isinstance(stmt, Assign):
            fresh = isinstance(stmt.value, Call) and is_library(stmt.value.func) and stmt.value.func not in VIEW_CALLS
            arrays = (
                ()
                if fresh
                else [var for var in traversal.free_vars(stmt.value) if isinstance(var.type, (Array, ListOf))]
            )
            for target in stmt.targets:
                sources.setdefault(target, set()).update(arrays)
    work = list(written)
    while work:
        new = sources.get(work.pop(), set()) - written
        written |= new
        work.extend(new)
    return written
