"""Derivatives taken inside a program: `tg.grad(f)(x)`, `f.value_and_grad(x)`, `tg.jvp(f, primals, tangents)`.

The function is lowered into a block of its own, the pipeline derives that, and the derived text is written out in the
place of the call, like any other Python function.  So derivatives nest to any depth.
"""

from __future__ import annotations

import dataclasses
import inspect
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from types import MethodType
from typing import Any

import numpy as np

from tapegen.errors import AliasError, BadArgument, NotDifferentiable, TapegenError
from tapegen.frontend.callables import unwrap
from tapegen.frontend.lower_context import Builder, Context, PathEnds
from tapegen.frontend.lower_finish import finish, resolved
from tapegen.frontend.lower_merged_types import converted
from tapegen.frontend.lower_numpy import is_library
from tapegen.frontend.lower_state import Bound, Closure, known_value
from tapegen.frontend.lower_twins import draw_as, refuse_unseeded, twin
from tapegen.frontend.lower_values import adopt, describe, export, flat_result
from tapegen.frontend.structure import UNKNOWN, Leaf, Slot, StaticValue, Struct, tuple_of
from tapegen.ir import build, rewrite
from tapegen.ir.names import NameSupply
from tapegen.ir.nodes import Assign, Block, Call, Const, Expr, Function, Return, Store, Var
from tapegen.ir.ops import VIEW_CALLS
from tapegen.ir.protocols import Mark, Mode, Pipeline, is_opaque, mark_of
from tapegen.ir.types import Array, ListOf, RandomGenerator, Scalar, is_complex, is_floating


@dataclass(frozen=True, slots=True, eq=False)
class Derivative:
    """The function that `tg.grad(f)` makes: `f` with what is asked of it."""

    mark: Mark
    func: Any
    wrt: Any = 0
    has_aux: bool = False
    mode: Mode | None = None
    holomorphic: bool = False


@dataclass(frozen=True, slots=True, eq=False)
class Pullback:
    """The second result of `tg.vjp`.

    Attributes
    ----------
    program : Program
        The program, whose arguments are as they were.
    wrt : object
        Where its gradients go.
    drawn : tuple of Expr
        Its generators as they were: a pullback runs the program again, and must draw the same.
    """

    program: Program
    wrt: Any
    drawn: tuple[Expr, ...]


@dataclass(frozen=True, slots=True, eq=False)
class Program:
    """A call lowered into a program of its own.

    Attributes
    ----------
    function : Function
        Its first parameters are the floating leaves of the chosen arguments, the others what else it reads.
    given : tuple of Expr
        What the parameters are in the surrounding program.
    output : object
        The structure of the result; its leaves are Slots.
    chosen : dict
        Place of each argument of `wrt` to its abstract value, whose leaves are the parameters while lowering.
    wrt : dict
        Parameter while lowering to the parameter of the program.
    pipeline : Pipeline
        Derives the program.
    """

    function: Function
    given: tuple[Expr, ...]
    output: Any
    chosen: dict[int | str, Any]
    wrt: dict[Expr, Var]
    pipeline: Pipeline

    @property
    def values(self) -> tuple[Expr, ...]:
        last = self.function.body[-1]
        assert isinstance(last, Return)
        return last.values

    @property
    def generators(self) -> tuple[Expr, ...]:
        """What it draws from, in the surrounding program."""
        return tuple(expr for expr in self.given if isinstance(expr.type, RandomGenerator))


def is_objective(type_: Any) -> bool:
    """Whether a result of this type has a gradient: one real number."""
    if not is_floating(type_) or is_complex(type_) or isinstance(type_, ListOf):
        return False
    return isinstance(type_, Scalar) or (isinstance(type_, Array) and type_.rank == 0)


_BUILD_OPTIONS = frozenset({"backend", "boundscheck", "fastmath"})  # those of the function around hold


# ---- calls -----------------------------------------------------------------------------------------------------------


def marked_call(cx: Context, func: Any, mark: Mark, args: list[Any], kwargs: dict[str, Any]) -> Any:
    """A call of a marked function (`tg.grad(f)`) or method (`f.grad(x)`)."""
    if isinstance(func, MethodType):
        owner: Any = func.__self__
        target, wrt, has_aux = StaticValue(owner.python), owner.options.wrt, owner.options.has_aux
        if mark.kind == "jvp":
            args = [target, *args]
            return _jvp(cx, mark, args, kwargs)
    else:
        if not args:
            raise cx.refusal(BadArgument, "the function to differentiate is missing.", "Pass it first.")
        target, *args = args
        kwargs = {name: value for name, value in kwargs.items() if name not in _BUILD_OPTIONS}
        if mark.kind == "jvp":
            return _jvp(cx, mark, [target, *args], kwargs)
        if mark.kind == "jacobian":
            return StaticValue(_jacobian_of(cx, mark, target, args, kwargs))
        wrt = _static_wrt(cx, kwargs.pop("wrt", args.pop(0) if args and mark.kind != "vjp" else StaticValue(0)))
        aux = kwargs.pop("has_aux", None)
        has_aux = bool(known_value(aux)) if aux is not None else _own_aux(target)
        if mark.kind != "vjp":
            if args or kwargs:
                raise cx.refusal(
                    BadArgument, f"tg.{mark.kind} takes a function, wrt and options.", "Leave out the rest."
                )
            return StaticValue(Derivative(mark, target, wrt, has_aux))
    return derivative_call(cx, _with_options(Derivative(mark, target, wrt, has_aux), func), args, kwargs)


def _with_options(derivative: Derivative, method: Any) -> Derivative:
    """A derivative as the object of a marked method makes it."""
    owner = getattr(method, "__self__", None)
    mode, holomorphic = getattr(owner, "mode", None), getattr(owner, "holomorphic", False)
    return dataclasses.replace(derivative, mode=mode, holomorphic=holomorphic)


def bound_derivative(func: Any, first: tuple[Any, ...], name: str) -> StaticValue | None:
    """`obj.f.grad` where `obj.f` is a differentiable method; None if it is not, or has no derivative of that name."""
    method: Any = func.value if isinstance(func, StaticValue) else None
    mark = mark_of(getattr(method, name, None))
    if mark is None or not is_opaque(method):
        return None
    options = method.options
    target = Bound(StaticValue(method.python), first)
    return StaticValue(Derivative(mark, target, options.wrt, options.has_aux, getattr(method, "mode", None)))


def _jacobian_of(cx: Context, mark: Mark, target: Any, args: list[Any], kwargs: dict[str, Any]) -> Derivative:
    given = dict(zip(("wrt", "mode", "holomorphic"), args, strict=False)) | kwargs
    mode = known_value(given.get("mode", StaticValue(None)))
    if mode not in (None, "forward", "reverse"):
        raise cx.refusal(BadArgument, "the mode of a Jacobian must be known.", 'Write "forward", "reverse" or None.')
    holomorphic = known_value(given.get("holomorphic", StaticValue(False)))
    if not isinstance(holomorphic, bool):
        raise cx.refusal(BadArgument, "holomorphic= of a Jacobian must be known.", "Write True or False.")
    return Derivative(mark, target, _static_wrt(cx, given.get("wrt", StaticValue(0))), False, mode, holomorphic)


def _own_aux(target: Any) -> bool:
    options = getattr(target.value, "options", None) if isinstance(target, StaticValue) else None
    return bool(getattr(options, "has_aux", False))


def _static_wrt(cx: Context, value: Any) -> Any:
    known = known_value(value)
    if known is not UNKNOWN:
        return known
    if isinstance(value, Struct):
        return tuple(_static_wrt(cx, child) for child in value.children)
    raise cx.refusal(BadArgument, f"wrt is {describe(cx, value)}.", "Write an int, a name, or a tuple of them.")


def derivative_call(cx: Context, derivative: Derivative, args: list[Any], kwargs: dict[str, Any]) -> Any:
    """`tg.grad(f)(*args)` and its kin."""
    kind, wrt = derivative.mark.kind, derivative.wrt
    if kind == "jvp":
        return _jvp(cx, derivative.mark, [derivative.func, *args], kwargs)
    several = not isinstance(wrt, int | str)
    places = [_place(cx, derivative.func, item, args) for item in (wrt if several else (wrt,))]
    program = _program(cx, derivative.mark.pipeline, derivative.func, args, kwargs, places)
    if kind == "vjp":
        refuse_unseeded(program.function)
        held = tuple(_held(cx, expr) for expr in program.given)
        drawn = _twins(cx, program)
        value = cx.call(cx, derivative.func, args, kwargs)
        return tuple_of((value, StaticValue(Pullback(dataclasses.replace(program, given=held), wrt, drawn))))
    if kind == "jacobian":
        return _jacobian(cx, program, derivative, several)
    objective = program.output
    if derivative.has_aux:
        if not isinstance(objective, Struct) or len(objective.children) != 2:
            raise cx.refusal(BadArgument, "has_aux=True needs a function that returns (objective, aux).", "Return two.")
        objective = objective.children[0]
    if not isinstance(objective, Slot) or not is_objective(program.values[objective.index].type):
        if isinstance(objective, Slot) and is_complex(program.values[objective.index].type):
            raise cx.refusal(
                BadArgument, "the function returns a complex number, which has no gradient.", "Return a real number."
            )
        if not (isinstance(objective, StaticValue) and isinstance(objective.value, float)):
            raise cx.refusal(
                BadArgument, "the function does not return a float, so it has no gradient.", "Return one number."
            )
        active = tuple(False for _ in program.values)
        seeds: list[Any] = []
    else:
        active = tuple(k == objective.index for k in range(len(program.values)))
        seeds = [StaticValue(1.0)]
    value, gradient = _reversed(cx, program, active, seeds, several)
    if kind == "value_and_grad":
        return tuple_of((value, gradient))
    if derivative.has_aux:
        content = value.children[1]
        return tuple_of((gradient, content))
    return gradient


def _jacobian(cx: Context, program: Program, derivative: Derivative, several: bool) -> Any:
    wrt = tuple(program.wrt.values())
    active = tuple(is_floating(value.type) for value in program.values)
    make = partial(program.pipeline.jacobian, holomorphic=derivative.holomorphic)
    text = make(program.function, wrt, active, cx.modules, derivative.mode)
    blocks = iter(_written_out(cx, text, [*map(Leaf, program.given)]))
    rows = {k: {var: next(blocks) for var in wrt} for k, is_active in enumerate(active) if is_active}

    def by_argument(k: int) -> Any:
        if k not in rows:
            return None
        parts = [_gradient(cx, template, program, rows[k]) for template in program.chosen.values()]
        return tuple_of(parts) if several else parts[0]

    return restored(cx, program.output, by_argument)


def pullback_call(cx: Context, pullback: Pullback, args: list[Any], kwargs: dict[str, Any]) -> Any:
    """The cotangents of the arguments for cotangents of the value."""
    if len(args) != 1 or kwargs:
        raise cx.refusal(BadArgument, "a pullback takes one argument, the cotangent of the value.", "Pass that.")
    program = pullback.program
    active = tuple(is_floating(value.type) for value in program.values)
    bars = dict(_matched(cx, program.output, export(cx, args[0])))
    seeds = [_tangent_of(cx, program.values[k], bars[k]) for k, is_active in enumerate(active) if is_active]
    if any(isinstance(stmt, Store) for stmt in rewrite.statements(program.function.body)):
        program = dataclasses.replace(program, given=tuple(_held(cx, expr) for expr in program.given))
    now = _twins(cx, program)
    _draw_as(cx, program, pullback.drawn)
    gradient = _reversed(cx, program, active, seeds, not isinstance(pullback.wrt, int | str))[1]
    _draw_as(cx, program, now)
    return gradient


def _twins(cx: Context, program: Program) -> tuple[Expr, ...]:
    """The generators that a program draws from, as they are now."""
    return tuple(twin(cx, expr).expr for expr in program.generators)


def _draw_as(cx: Context, program: Program, others: Sequence[Expr]) -> None:
    """Let the generators of a program draw what others would draw next."""
    for expr, other in zip(program.generators, others, strict=True):
        draw_as(cx, expr, other)


def _jvp(cx: Context, mark: Mark, args: list[Any], kwargs: dict[str, Any]) -> Any:
    target, rest = args[0], args[1:]
    for name in ("primals", "tangents"):
        if name in kwargs:
            rest.append(kwargs.pop(name))
    if len(rest) != 2:
        raise cx.refusal(BadArgument, "jvp takes primals and tangents.", "Pass two tuples of the same length.")
    primals, tangents = (export(cx, part) for part in rest)
    if not all(isinstance(part, Struct) for part in (primals, tangents)) or len(primals.children) != len(
        tangents.children
    ):
        raise cx.refusal(BadArgument, "primals and tangents differ in length.", "Pass two tuples of the same length.")
    given = list(primals.children)
    places: list[int | str] = [k for k, part in enumerate(tangents.children) if known_value(part) is not None]
    program = _program(cx, mark.pipeline, target, given, kwargs, places)
    dots: dict[Var, Any] = {}
    for place in places:
        for leaf, dot in _matched(cx, program.chosen[place], tangents.children[place]):
            dots[program.wrt[leaf]] = _tangent_of(cx, program.wrt[leaf], dot)
    active = tuple(is_floating(value.type) for value in program.values)
    wrt = tuple(program.wrt.values())
    text = program.pipeline.forward(program.function, wrt, active, cx.modules)
    values = _written_out(cx, text, [*map(Leaf, program.given), *(dots[var] for var in wrt)])
    count = len(program.values)
    positions = [k for k, is_active in enumerate(active) if is_active]
    tangent = dict(zip(positions, values[count:], strict=True))
    return tuple_of((restored(cx, program.output, values.__getitem__), restored(cx, program.output, tangent.get)))


# ---- the program of a call -------------------------------------------------------------------------------------------


def _place(cx: Context, func: Any, item: Any, args: Sequence[Any]) -> int | str:
    """Where an argument of `wrt` stands in a call: its position, or its keyword."""
    names = _parameters(cx, func)
    if isinstance(item, str):
        if item not in names:
            raise cx.refusal(BadArgument, f"wrt={item!r} is not an argument.", f"The arguments are {', '.join(names)}.")
        item = names.index(item)
    if item < 0:
        item += len(names)
    if item < len(args):
        return int(item)
    if not 0 <= item < len(names):
        raise cx.refusal(BadArgument, f"wrt={item}: the function has {len(names)} arguments.", "Count from 0.")
    return names[item]


def _parameters(cx: Context, func: Any) -> list[str]:
    """The names of the arguments that a caller gives."""
    if isinstance(func, Bound):
        names = _parameters(cx, func.func)[len(func.args) :]
        return [name for name in names if name not in func.kwargs]
    value = func.value if isinstance(func, StaticValue) else func
    if isinstance(value, Closure):
        return [arg.id for arg in (*value.node.args.posonlyargs, *value.node.args.args, *value.node.args.kwonlyargs)]
    if isinstance(value, Derivative):
        return _parameters(cx, value.func)
    try:
        function, bound, named = unwrap(value)
    except NotDifferentiable as error:
        raise cx.refusal(type(error), error.reason, error.advice) from None
    names = list(inspect.signature(function).parameters)[len(bound) :]
    return [name for name in names if name not in named]


def _program(
    cx: Context,
    pipeline: Pipeline,
    func: Any,
    args: Sequence[Any],
    kwargs: dict[str, Any],
    places: Sequence[int | str],
) -> Program:
    """Lower `func(*args, **kwargs)` into a program of its own; the leaves at `places` are its first parameters."""
    given_args, given_kwargs = list(args), dict(kwargs)
    chosen: dict[int | str, Any] = {}
    params: dict[Var, Expr] = {}
    for place in places:
        if place in chosen:
            continue
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
    state = cx.state.copy()
    try:
        with cx.block(builder, state):
            output, exprs = flat_result(cx, export(cx, cx.call(cx, func, given_args, given_kwargs)))
    except PathEnds:
        if not builder.dead:
            raise
        cx.call(cx, func, args, kwargs)  # raises in the surrounding program
        raise
    if any(state.cells[key].content is not content for key, content in cells.items()):
        raise cx.refusal(
            NotDifferentiable,
            "the function changes a list, dict or object of the surrounding function.",
            "Return what is new instead.",
        )
    supply = NameSupply()
    name = supply.fresh(_name_of(func))
    done = finish(cx, builder, exprs, list(params), supply)
    values = tuple(done.rename(resolved(cx, expr)) for expr in exprs)
    final, others = _closed_over(done.body, values, {done.names[var] for var in params}, supply)
    rename = {other: new for new, other in zip(final, others, strict=True)}
    body = rewrite.rename_block(done.body, rename)
    values = tuple(rewrite.substitute(value, rename) for value in values)
    first = tuple(done.names[var] for var in params)
    function = Function(name, (*first, *final), (*body, Return(values)), origin=cx.span())
    _check_stores(cx, function, (*params.values(), *others))
    return Program(
        function, (*params.values(), *others), output, chosen, {var: done.names[var] for var in params}, pipeline
    )


def _fresh(cx: Context, value: Any, params: dict[Var, Expr]) -> Any:
    """An argument whose floating leaves are parameters of the program."""
    if isinstance(value, Struct):
        return dataclasses.replace(
            value, children=tuple(_fresh(cx, child, params) for child in value.children), whole=None
        )
    if isinstance(value, StaticValue) and isinstance(value.value, float | np.floating):
        expr: Expr = cx.assign("x", Const(value.value))
    elif isinstance(value, Leaf) and isinstance(value.type, Array) and not is_floating(value.type):
        raise cx.refusal(BadArgument, "integers have no gradient.", "Pass floats, or leave the argument out of wrt.")
    elif isinstance(value, Leaf) and is_floating(value.type):
        if isinstance(value.type, ListOf):
            raise cx.refusal(NotDifferentiable, "a list that grows has no gradient here.", "Use an array.")
        expr = cx.resolve(value.expr)
    else:
        return value
    var = cx.new_var(expr.name.partition("#")[0] if isinstance(expr, Var) else "x", expr.type)
    if isinstance(expr, Var) and expr in cx.shapes:
        cx.shapes[var] = cx.shapes[expr]
    cx.definitions[var] = expr  # what must be known of it must be known of what is given
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
    """What the program reads of the surrounding one: its new parameters, and what they are there."""
    defined = {var for stmt in rewrite.statements(body) for var in rewrite.defines(stmt)} | known
    others: dict[Var, Var] = {}
    headers = [header for stmt in rewrite.statements(body) for header in rewrite.headers(stmt)]
    for node in (*headers, *values):
        for part in rewrite.subexpressions(node):
            if isinstance(part, Var) and part not in defined and part not in others:
                others[part] = Var(supply.fresh(part.name.partition("#")[0]), part.type)
    return list(others.values()), list(others)


def _check_stores(cx: Context, function: Function, given: Sequence[Expr]) -> None:
    """Refuse a program that writes an argument which may share memory with another one."""
    for var in function.params:
        if isinstance(var.type, ListOf):
            raise cx.refusal(
                NotDifferentiable, "a list that grows is used inside a derivative taken here.", "Use an array."
            )
    if _written(function.body).isdisjoint(function.params):
        return
    arrays = [expr for expr in given if isinstance(expr.type, Array) and isinstance(expr, Var)]
    for k, left in enumerate(arrays):
        if any(cx.may_overlap(left, right) for right in arrays[k + 1 :] if isinstance(right, Var)):
            raise cx.refusal(
                AliasError,
                "the function writes arrays, and two arrays that it uses may share memory.",
                "Pass a copy of one of them.",
            )


def _written(body: Block) -> set[Var]:
    """The arrays that statements store into, and all whose memory these may be part of."""
    sources: dict[Var, set[Var]] = {}
    written: set[Var] = set()
    for stmt in rewrite.statements(body):
        if isinstance(stmt, Store):
            written.add(stmt.array)
        elif isinstance(stmt, Assign):
            fresh = isinstance(stmt.value, Call) and is_library(stmt.value.func) and stmt.value.func not in VIEW_CALLS
            arrays = (
                () if fresh else [var for var in rewrite.free_vars(stmt.value) if isinstance(var.type, Array | ListOf)]
            )
            for target in stmt.targets:
                sources.setdefault(target, set()).update(arrays)
    work = list(written)
    while work:
        new = sources.get(work.pop(), set()) - written
        written |= new
        work.extend(new)
    return written


# ---- derived texts ---------------------------------------------------------------------------------------------------


def _reversed(
    cx: Context, program: Program, active: tuple[bool, ...], seeds: Sequence[Any], several: bool
) -> tuple[Any, Any]:
    """Value and gradient of a program, written out."""
    wrt = tuple(program.wrt.values())
    text = program.pipeline.reverse(program.function, wrt, active, cx.modules)
    values = _written_out(cx, text, [*map(Leaf, program.given), *seeds])
    found = dict(zip(wrt, values[len(program.values) :], strict=True))
    gradients = [_gradient(cx, template, program, found) for template in program.chosen.values()]
    value = restored(cx, program.output, values.__getitem__)
    return value, tuple_of(gradients) if several else gradients[0]


def _written_out(cx: Context, text: Any, args: list[Any]) -> list[Any]:
    """Inline a derived text at the place of the call; refusals point at the call."""
    origin, fixed = cx.origin, cx.fixed_origin
    cx.fixed_origin = True
    try:
        result = cx.call(cx, StaticValue(text), args, {})
    except TapegenError as error:
        if error.span is None or not error.span.file.startswith("<tapegen "):
            raise
        line = error.span.source_line().strip()
        raise cx.refusal(type(error), f"{error.reason} (in its derivative: {line})", error.advice) from None
    finally:
        cx.origin, cx.fixed_origin = origin, fixed
    return list(result.children) if isinstance(result, Struct) else [result]


def _gradient(cx: Context, template: Any, program: Program, found: dict[Var, Any]) -> Any:
    if isinstance(template, Leaf):
        return found[program.wrt[template.expr]] if template.expr in program.wrt else StaticValue(None)
    if isinstance(template, Struct):
        return _container(cx, template, [_gradient(cx, child, program, found) for child in template.children])
    return StaticValue(None)


def restored(cx: Context, template: Any, value_of: Any) -> Any:
    """The result of the program in its structure."""
    if isinstance(template, Slot):
        found = value_of(template.index)
        return StaticValue(None) if found is None else found
    if isinstance(template, Struct):
        return _container(cx, template, [restored(cx, child, value_of) for child in template.children])
    return template


def _container(cx: Context, template: Struct, children: list[Any]) -> Any:
    made = dataclasses.replace(template, children=tuple(children), whole=None)
    return made if made.kind == "tuple" else cx.new_cell(made)


def _held(cx: Context, expr: Expr) -> Expr:
    """An argument as it is now: a pullback may run after its array has changed."""
    if isinstance(expr.type, Array):
        return cx.assign("held", build.copy(expr))
    return expr


def _matched(cx: Context, template: Any, value: Any) -> Iterator[tuple[Any, Any]]:
    """Leaves of an argument or result, with what stands in their places in another structure."""
    if isinstance(template, Leaf):
        if is_floating(template.type):
            yield template.expr, value
    elif isinstance(template, Slot):
        yield template.index, value
    elif isinstance(template, Struct):
        if not isinstance(value, Struct) or value.keys != template.keys:
            raise cx.refusal(
                BadArgument,
                "tangents or cotangents do not have the structure of the value.",
                "Give the same structure.",
            )
        for child, part in zip(template.children, value.children, strict=True):
            yield from _matched(cx, child, part)


def _tangent_of(cx: Context, like: Expr, value: Any) -> Any:
    """A tangent or cotangent for a value of the type of `like`, in an array of its own."""
    type_ = like.type
    if isinstance(type_, Scalar):
        known = known_value(value)
        if known is not UNKNOWN and isinstance(known, int | float):
            return StaticValue(complex(known) if is_complex(type_) else float(known))
        if known is not UNKNOWN and isinstance(known, complex) and is_complex(type_):
            return StaticValue(known)
        if isinstance(value, Leaf) and isinstance(value.type, Scalar) and is_complex(value.type) <= is_complex(type_):
            if is_complex(value.type) == is_complex(type_):
                return value
            return Leaf(cx.assign("tangent", converted(value.expr, type_)))
    found = value.type if isinstance(value, Leaf) else None
    if is_complex(found) and not is_complex(type_):
        found = None
    if isinstance(found, Array) and isinstance(type_, Array) and found.rank == type_.rank and is_floating(found):
        given = cx.resolve(value.expr)
        return Leaf(
            cx.assign("tangent", build.copy(given) if found.dtype == type_.dtype else build.cast(given, type_.dtype))
        )
    raise cx.refusal(
        BadArgument,
        f"{describe(cx, value)} does not fit the value whose tangent or cotangent it is.",
        "Give it the dtype and the number of axes of the value.",
    )
