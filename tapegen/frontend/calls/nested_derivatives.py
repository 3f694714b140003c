"""Nested derivatives, taken inside a program: `tg.grad(f)(x)`, `f.value_and_grad(x)`, `tg.jvp(f, x, x_dot)`.

The function is outlined, the pipeline derives the outlined program, and the derived text is inlined at the call like
any other Python function.  So derivatives nest to any depth.
"""

from __future__ import annotations

import dataclasses
import operator
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from types import MethodType
from typing import Any

import numpy as np

from tapegen.errors import BadArgument, TapegenError
from tapegen.frontend.calls.outline import Derivative, Program, outline_call, parameters_of
from tapegen.frontend.calls.random_replay import copy_generator, refuse_unseeded, replay_draws
from tapegen.frontend.calls.repack import container, matched, restored, tangent_of
from tapegen.frontend.lowering.emit import emit_call
from tapegen.frontend.mutation.outlined_containers import apply_changes, slots_of
from tapegen.frontend.values.constant_shapes import extent
from tapegen.frontend.values.context import Context
from tapegen.frontend.values.materialize import adopt, describe, export, struct_of, truth, type_of
from tapegen.frontend.values.pytree import (
    UNKNOWN,
    Leaf,
    Slot,
    StaticValue,
    Struct,
    leaves_of,
    tangent_of_constant,
    tuple_of,
)
from tapegen.frontend.values.state import Bound, known_value
from tapegen.ir import builders, traversal
from tapegen.ir.names import bar_name
from tapegen.ir.nodes import Comment, Expr, Store, Var
from tapegen.ir.protocols import Kind, Mark, is_opaque, mark_of
from tapegen.ir.types import Array, ListOf, Scalar, Type, is_complex, is_floating
from tapegen.settings import CHOOSE, DIRECTIONS, NAMES_OF_WRT, Keywords, refuse_keywords


@dataclass(frozen=True, slots=True, eq=False)
class Pullback:
    """The second result of `tg.vjp`.

    Attributes
    ----------
    program : Program
        The program, whose arguments are as they were.
    wrt : object
        The arguments that its gradients belong to.
    value : object
        What is differentiated of the value.
    drawn : tuple of Expr
        Copies of its generators in their original state: a pullback reruns the program with the same draws.
    """

    program: Program
    wrt: Any
    value: Any
    drawn: tuple[Expr, ...]


@dataclass(frozen=True, slots=True, eq=False)
class Linear:
    """The second result of `tg.linearize`.

    Attributes
    ----------
    program : Program
        The program with its original arguments; differentiated by all arguments that have tangents.
    count : int
        How many arguments the function has.
    drawn : tuple of Expr
        Copies of its generators in their original state.
    """

    program: Program
    count: int
    drawn: tuple[Expr, ...]


def is_objective(type_: Any) -> bool:
    """Whether a result of this type has a gradient: a real scalar."""
    if not is_floating(type_) or is_complex(type_) or isinstance(type_, ListOf):
        return False
    return isinstance(type_, Scalar) or (isinstance(type_, Array) and type_.rank == 0)


_PARAMETERS: dict[Kind, tuple[str, ...]] = {
    "vjp": ("wrt", "wrt_out"),
    "jacobian": ("wrt", "mode", "holomorphic"),
    "jvp": ("primals", "tangents"),
    "linearize": (),
}
"""Keywords other than options of `differentiable`."""


# ---- calls -----------------------------------------------------------------------------------------------------------


def marked_call(cx: Context, func: Any, mark: Mark, args: list[Any], kwargs: dict[str, Any]) -> Any:
    """A call of a marked function (`tg.grad(f)`) or method (`f.grad(x)`)."""
    if isinstance(func, MethodType):
        owner: Any = func.__self__
        target, wrt, has_aux = StaticValue(owner.python), owner.options.wrt, owner.options.has_aux
        if mark.kind == "jvp":
            return _jvp(cx, Derivative(mark, target, wrt, has_aux), args, kwargs)
    else:
        if not args:
            raise cx.refusal(BadArgument, "the function to differentiate is missing.", "Pass it first.")
        target, *args = args
        takes = _PARAMETERS.get(mark.kind, ("wrt",))
        others = [name for name in kwargs if name not in takes]
        ignored: Iterable[str] = Keywords.__optional_keys__  # those of the enclosing function apply
        if mark.kind == "vjp":  # the rest are arguments of the function
            others = [name for name in others if name in NAMES_OF_WRT]
            ignored = ("backend", "boundscheck", "fastmath", "parallel")
        try:
            refuse_keywords(f"tg.{mark.kind}", others, CHOOSE if "wrt" in takes else DIRECTIONS)
        except BadArgument as error:
            raise cx.refusal(BadArgument, error.reason, error.advice) from None
        kwargs = {name: value for name, value in kwargs.items() if name not in ignored}
        if mark.kind == "vjp" and "wrt_out" in kwargs:
            advice = "Pass a function of yours that calls this one and returns the arrays."
            raise cx.refusal(BadArgument, "tg.vjp takes no wrt_out in a differentiated function.", advice)
        aux = kwargs.pop("has_aux", None)
        has_aux = bool(known_value(aux)) if aux is not None else _own_aux(target)
        if mark.kind == "jvp":
            return _jvp(cx, Derivative(mark, target, 0, has_aux), args, kwargs)
        if mark.kind == "linearize":
            return _linearized(cx, Derivative(mark, target, 0, has_aux), args)
        if mark.kind == "jacobian":
            return StaticValue(_jacobian_of(cx, Derivative(mark, target, 0, has_aux), args, kwargs))
        wrt = _static_wrt(cx, kwargs.pop("wrt", args.pop(0) if args and mark.kind != "vjp" else StaticValue(0)))
        if mark.kind != "vjp":
            if args or kwargs:
                raise cx.refusal(
                    BadArgument, f"tg.{mark.kind} takes a function, wrt and options.", "Leave out the rest."
                )
            return StaticValue(Derivative(mark, target, wrt, has_aux))
    return derivative_call(cx, _with_options(Derivative(mark, target, wrt, has_aux), func), args, kwargs)


def _with_options(derivative: Derivative, method: Any) -> Derivative:
    """A derivative with the options of the object of a marked method."""
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


def _jacobian_of(cx: Context, derivative: Derivative, args: list[Any], kwargs: dict[str, Any]) -> Derivative:
    given = dict(zip(("wrt", "mode", "holomorphic"), args, strict=False)) | kwargs
    mode = known_value(given.get("mode", StaticValue(None)))
    if mode not in (None, "forward", "reverse"):
        raise cx.refusal(BadArgument, "the mode of a Jacobian must be known.", 'Write "forward", "reverse" or None.')
    holomorphic = known_value(given.get("holomorphic", StaticValue(False)))
    if not isinstance(holomorphic, bool):
        raise cx.refusal(BadArgument, "holomorphic= of a Jacobian must be known.", "Write True or False.")
    wrt = _static_wrt(cx, given.get("wrt", StaticValue(0)))
    return dataclasses.replace(derivative, wrt=wrt, mode=mode, holomorphic=holomorphic)


def _own_aux(target: Any) -> bool:
    options = getattr(target.value, "options", None) if isinstance(target, StaticValue) else None
    return bool(getattr(options, "has_aux", False))


def _static_wrt(cx: Context, value: Any) -> Any:
    known = known_value(value)
    if known is not UNKNOWN:
        return known
    content = struct_of(cx, value)
    if content is not None and content.kind in ("tuple", "list"):
        return tuple(_static_wrt(cx, child) for child in content.children)
    raise cx.refusal(BadArgument, f"wrt is {describe(cx, value)}.", "Write an int, a name, or a tuple of them.")


def derivative_call(cx: Context, derivative: Derivative, args: list[Any], kwargs: dict[str, Any]) -> Any:
    """`tg.grad(f)(*args)` and similar calls."""
    kind, wrt = derivative.mark.kind, derivative.wrt
    if kind == "jvp":
        return _jvp(cx, derivative, args, kwargs)
    several = not isinstance(wrt, (int, str))
    places = [_place(cx, derivative.func, item, args) for item in (wrt if several else (wrt,))]
    program = outline_call(cx, derivative, args, kwargs, places)
    if kind == "vjp":
        refuse_unseeded(program.function)
        held = tuple(_saved_copy(cx, expr) for expr in program.given)
        drawn = _generator_copies(cx, program)
        value = cx.call(cx, derivative.func, args, kwargs)
        content = export(cx, value)
        objective = content.children[0] if derivative.has_aux else content
        pullback = StaticValue(Pullback(dataclasses.replace(program, given=held), wrt, objective, drawn))
        return _with_function(cx, derivative, value, pullback)
    if kind == "jacobian":
        return _jacobian(cx, program, derivative, several)
    objective = program.objective
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
        if isinstance(program.values[objective.index].type, Array):  # a scalar in a zero-dimensional array
            seeds = [emit_call(cx, np.array, (StaticValue(1.0),))]
    value, gradient = _reversed(cx, program, active, seeds, several, stores=True)
    if kind == "value_and_grad":
        return tuple_of((value, gradient))
    if derivative.has_aux:
        content = value.children[1]
        return tuple_of((gradient, content))
    return gradient


def _jacobian(cx: Context, program: Program, derivative: Derivative, several: bool) -> Any:
    wrt = tuple(program.wrt.values())
    active = program.active
    aux = program.output.children[1] if derivative.has_aux else StaticValue(None)
    kept = tuple(leaf.index for leaf in leaves_of(aux) if isinstance(leaf, Slot))
    kept += tuple(slots_of(program.changes))
    make = partial(program.pipeline.jacobian, holomorphic=derivative.holomorphic, kept=kept)
    text = make(program.function, wrt, active, cx.assumptions.modules, derivative.mode)
    blocks = iter(inline_derivative(cx, text, [*map(Leaf, program.given)]))
    others = {k: next(blocks) for k in kept}
    apply_changes(cx, program.changes, others.__getitem__)
    rows = {k: {var: next(blocks) for var in wrt} for k, is_active in enumerate(active) if is_active}

    def by_argument(k: int) -> Any:
        if k not in rows:
            return None
        parts = [_gradient(cx, template, program, rows[k]) for template in program.chosen.values()]
        return tuple_of(parts) if several else parts[0]

    made = restored(cx, program.objective, by_argument, lambda constant: None)
    return tuple_of((made, restored(cx, aux, others.get))) if derivative.has_aux else made


def pullback_call(cx: Context, pullback: Pullback, args: list[Any], kwargs: dict[str, Any]) -> Any:
    """The cotangents of the arguments for cotangents of the value."""
    if len(args) != 1 or kwargs:
        raise cx.refusal(BadArgument, "a pullback takes one argument, the cotangent of the value.", "Pass that.")
    program = pullback.program
    active = program.active
    bars = dict(matched(cx, program.objective, export(cx, args[0])))
    seeds = [tangent_of(cx, program.values[k], bars[k]) for k, is_active in enumerate(active) if is_active]
    results = dict(matched(cx, program.objective, pullback.value))
    for seed, value in zip(seeds, (results[k] for k, is_active in enumerate(active) if is_active), strict=True):
        if isinstance(value, Leaf):
            _check_extents(cx, seed, value.expr, "a cotangent has another shape than its result")
    with _rerun(cx, program, pullback.drawn) as program:
        return _reversed(cx, program, active, seeds, not isinstance(pullback.wrt, int | str))[1]


@contextmanager
def _rerun(cx: Context, program: Program, drawn: tuple[Expr, ...]) -> Iterator[Program]:
    """A program with saved arguments, for a rerun with the same draws."""
    if any(isinstance(stmt, Store) for stmt in traversal.statements(program.function.body)):
        program = dataclasses.replace(program, given=tuple(_saved_copy(cx, expr) for expr in program.given))
    now = _generator_copies(cx, program)
    _draw_as(cx, program, drawn)
    yield program
    _draw_as(cx, program, now)


def _generator_copies(cx: Context, program: Program) -> tuple[Expr, ...]:
    """Copies of the generators that a program draws from, in their current state."""
    return tuple(copy_generator(cx, expr).expr for expr in program.generators)


def _draw_as(cx: Context, program: Program, others: Sequence[Expr]) -> None:
    """Set the generators of a program to the states of others."""
    for expr, other in zip(program.generators, others, strict=True):
        replay_draws(cx, expr, other)


def _jvp(cx: Context, derivative: Derivative, args: list[Any], kwargs: dict[str, Any]) -> Any:
    rest = list(args)
    for name in ("primals", "tangents"):
        if name in kwargs:
            rest.append(kwargs.pop(name))
    if len(rest) != 2:
        raise cx.refusal(BadArgument, "jvp takes primals and tangents.", "Pass two tuples of the same length.")
    primals, tangents = struct_of(cx, rest[0]), export(cx, rest[1])  # the function may store into its arguments
    if primals is None or not isinstance(tangents, Struct) or len(primals.children) != len(tangents.children):
        raise cx.refusal(BadArgument, "primals and tangents differ in length.", "Pass two tuples of the same length.")
    given = list(primals.children)
    dots = {k: part for k, part in enumerate(tangents.children) if known_value(part) is not None}
    if not dots:
        raise cx.refusal(BadArgument, "all tangents are None.", "Give a direction for one argument at least.")
    program = outline_call(cx, derivative, given, kwargs, tuple(dots))
    value, tangent = _pushed(cx, program, dots, stores=True)
    return _with_function(cx, derivative, value, tangent)


def _pushed(cx: Context, program: Program, tangents: Mapping[int, Any], *, stores: bool = False) -> tuple[Any, Any]:
    """Inline a program with tangents of some arguments: its value, and the tangent of its objective."""
    dots: dict[Var, Any] = {}
    given = dict(zip(program.function.params, program.given, strict=True))
    for place, direction in tangents.items():
        for leaf, dot in matched(cx, program.chosen[place], direction):
            var = program.wrt[leaf]
            dots[var] = tangent_of(cx, var, dot)
            _check_extents(cx, dots[var], given[var], "a tangent has another shape than its argument")
    active, wrt = program.active, tuple(dots)
    text = program.pipeline.forward(program.function, wrt, active, cx.assumptions.modules)
    values = inline_derivative(cx, text, [*map(Leaf, program.given), *(dots[var] for var in wrt)])
    count = len(program.values)
    positions = [k for k, is_active in enumerate(active) if is_active]
    pushed = zip(positions, values[count:], strict=True)
    found = {k: _of_class(tangent, program.values[k].type) for k, tangent in pushed}
    if stores:
        apply_changes(cx, program.changes, values.__getitem__)
    tangent = restored(cx, program.objective, found.get, tangent_of_constant)
    return restored(cx, program.output, values.__getitem__), tangent


def _of_class(tangent: Any, type_: Type) -> Any:
    """A tangent that is known when compiling, as a number of the class of its value."""
    known = known_value(tangent)
    if isinstance(known, int | float | complex) and isinstance(type_, Scalar) and not type_.python:
        return StaticValue(np.dtype(type_.dtype).type(known))
    return tangent


def _check_extents(cx: Context, tangent: Any, given: Expr, otherwise: str) -> None:
    """Raise an error where a tangent or cotangent has another shape than its value; it could be broadcast."""
    if not isinstance(given.type, Array) or not isinstance(tangent, Leaf):
        return
    for axis in range(given.type.rank):
        pair = (extent(cx, tangent.expr, axis), extent(cx, given, axis))
        differs = truth(cx, cx.call(cx, StaticValue(operator.ne), pair, {}))
        if differs is True:
            cx.raise_(ValueError, otherwise)
        if differs is not False:
            cx.raise_if(differs, ValueError, otherwise)


def _with_function(cx: Context, derivative: Derivative, value: Any, second: Any) -> Any:
    """The value with its derivative; auxiliary results of the function come last."""
    if not derivative.has_aux:
        return tuple_of((value, second))
    objective, aux = export(cx, value).children
    return tuple_of((adopt(cx, objective), second, adopt(cx, aux)))


def _linearized(cx: Context, derivative: Derivative, primals: list[Any]) -> Any:
    places = [k for k, value in enumerate(primals) if _has_tangent(export(cx, value))]
    program = outline_call(cx, derivative, primals, {}, places)
    refuse_unseeded(program.function)
    held = dataclasses.replace(program, given=tuple(_saved_copy(cx, expr) for expr in program.given))
    linear = Linear(held, len(primals), _generator_copies(cx, program))
    value = cx.call(cx, derivative.func, primals, {})
    return _with_function(cx, derivative, value, StaticValue(linear))


def _has_tangent(value: Any) -> bool:
    """Whether an argument can have a tangent: it contains floats, and no integer arrays."""
    types = [leaf.type for leaf in leaves_of(value) if isinstance(leaf, Leaf)]
    if any(isinstance(type_, Array | ListOf) and not is_floating(type_) for type_ in types):
        return False
    return any(map(is_floating, types)) or _holds_float(value)


def _holds_float(value: Any) -> bool:
    if isinstance(value, Struct):
        return any(map(_holds_float, value.children))
    return isinstance(value, StaticValue) and isinstance(value.value, float)


def linear_call(cx: Context, linear: Linear, args: list[Any], kwargs: dict[str, Any]) -> Any:
    """The tangent of the value for tangents of the arguments."""
    if len(args) != linear.count or kwargs:
        raise cx.refusal(
            BadArgument,
            f"{len(args)} tangents are given for {linear.count} arguments.",
            "Pass None for a constant argument.",
        )
    tangents = {k: export(cx, value) for k, value in enumerate(args) if known_value(value) is not None}
    for place in tangents:
        if place not in linear.program.chosen:
            raise cx.refusal(BadArgument, f"argument {place} has no floats, and no tangent.", "Pass None for it.")
    if not tangents:
        raise cx.refusal(BadArgument, "all tangents are None.", "Give a direction for one argument at least.")
    with _rerun(cx, linear.program, linear.drawn) as program:
        return _pushed(cx, program, tangents)[1]


def _place(cx: Context, func: Any, item: Any, args: Sequence[Any]) -> int | str:
    """The position or keyword of an argument of `wrt` in a call."""
    names = parameters_of(cx, func)
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


# ---- derived texts ---------------------------------------------------------------------------------------------------


def _reversed(
    cx: Context,
    program: Program,
    active: tuple[bool, ...],
    seeds: Sequence[Any],
    several: bool,
    *,
    stores: bool = False,
) -> tuple[Any, Any]:
    """Inline value and gradient of a program; with `stores`, its side effects are applied."""
    wrt = tuple(program.wrt.values())
    text = program.pipeline.reverse(program.function, wrt, active, cx.assumptions.modules)
    values = inline_derivative(cx, text, [*map(Leaf, program.given), *seeds])
    found = dict(zip(wrt, values[len(program.values) :], strict=True))
    if stores:
        apply_changes(cx, program.changes, values.__getitem__)
    gradients = [_gradient(cx, template, program, found) for template in program.chosen.values()]
    value = restored(cx, program.output, values.__getitem__)
    return value, tuple_of(gradients) if several else gradients[0]


def inline_derivative(cx: Context, text: Any, args: list[Any]) -> list[Any]:
    """Inline a derived text at the call; refusals point at the call."""
    origin, fixed = cx.origin, cx.fixed_origin
    cx.fixed_origin = True
    start = len(cx.builder.items)
    try:
        result = cx.call(cx, StaticValue(text), args, {})
    except TapegenError as error:
        if error.span is None or not error.span.file.startswith("<tapegen "):
            raise
        line = error.span.source_line().strip()
        raise cx.refusal(type(error), f"{error.reason} (in its derivative: {line})", error.advice) from None
    finally:
        cx.origin, cx.fixed_origin = origin, fixed
    written = cx.builder.items[start:]
    cx.sweep = next((item for item in reversed(written) if isinstance(item, Comment)), None)
    cx.sweep_ends = (id(cx.builder), len(cx.builder.items))
    if known_value(result) is None:  # the text has no results
        return []
    return list(result.children) if isinstance(result, Struct) else [result]


def _gradient(cx: Context, template: Any, program: Program, found: dict[Var, Any]) -> Any:
    if isinstance(template, Leaf):
        if template.expr not in program.wrt:
            return StaticValue(None)
        var = program.wrt[template.expr]
        return _of_kind(cx, found[var], var)
    if isinstance(template, Struct):
        return container(cx, template, [_gradient(cx, child, program, found) for child in template.children])
    return StaticValue(None)


def _of_kind(cx: Context, value: Any, var: Var) -> Any:
    """A gradient by a scalar is a scalar of its kind, as in calls outside of differentiated functions.

    Where the call is the whole function - `tg.grad(f)` that is differentiated again - its caller does this conversion.
    """
    type_ = var.type
    found = type_of(value)
    if isinstance(type_, Scalar) and not type_.python and isinstance(found, Scalar) and found.dtype != type_.dtype:
        return cx.call(cx, StaticValue(getattr(np, type_.dtype)), [value], {})  # a constant has Python's type
    if not isinstance(type_, Scalar) or not type_.python or not isinstance(value, Leaf):
        return value
    if not isinstance(value.expr.type, Scalar) or value.expr.type == type_:  # an array: a column of a Jacobian
        return value
    if cx.frame.parsed.file.startswith("<tapegen "):
        return value
    made = cx.call(cx, StaticValue(complex if is_complex(type_) else float), [value], {})
    return Leaf(cx.assign(bar_name(var.name), made.expr))


def _saved_copy(cx: Context, expr: Expr) -> Expr:
    """A saved copy of an argument: a pullback may run after its array has changed."""
    if isinstance(expr.type, Array):
        return cx.assign("held", builders.copy(expr))
    return expr
