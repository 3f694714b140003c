"""Random draws: calls of methods of NumPy's generators, each bound to a variable at once and never repeated.

A generator is an argument like an array; `np.random.normal` and the like are methods of NumPy's global generator.
"""

from __future__ import annotations

import functools
import inspect
import random
from collections.abc import Mapping
from dataclasses import replace
from types import FunctionType
from typing import Any

import numpy as np

from tapegen.errors import NotDifferentiable
from tapegen.frontend.calls.handlers import PASSED_ON, handles
from tapegen.frontend.calls.inline import inline_function
from tapegen.frontend.calls.random_replay import copy_generator, emit_once, replay_draws
from tapegen.frontend.calls.resolve import call_value
from tapegen.frontend.expressions.subscript_stores import store_place
from tapegen.frontend.expressions.subscripts import Place
from tapegen.frontend.lowering.emit import call_type, emit_call
from tapegen.frontend.values.captures import capture
from tapegen.frontend.values.context import Context
from tapegen.frontend.values.materialize import describe, operand, struct_of, type_of
from tapegen.frontend.values.pytree import Leaf, StaticValue, Struct, tuple_of
from tapegen.frontend.values.result_types import shape_items, units
from tapegen.frontend.values.state import Captured, Ref
from tapegen.ir import intrinsics
from tapegen.ir.nodes import Call, Expr
from tapegen.ir.types import Array, RandomGenerator, Scalar, Type, is_floating
from tapegen.rules import random as rules_random
from tapegen.rules.random import NOT_FOLLOWED, OPTIONS, body_of, decisive

_VECTORS = frozenset({"multivariate_normal", "multinomial", "multivariate_hypergeometric", "dirichlet"})
_HALVES = StaticValue((0.5, 0.5))


def draw_method(cx: Context, owner: Leaf, name: str) -> Any:
    """The method of a generator that is called `name`."""
    assert isinstance(owner.type, RandomGenerator)
    kind = intrinsics.GENERATORS.get(owner.type.kind)
    method = getattr(kind, name, None)
    if kind is not None and method is None:
        cx.raise_(AttributeError, f"{owner.type.kind!r} object has no attribute {name!r}")
    if method not in intrinsics.DRAWS or name in NOT_FOLLOWED:
        raise cx.refusal(
            NotDifferentiable,
            f"'{name}' of a generator of random numbers is not followed.",
            "Use it outside of the function, and pass the generator.",
        )
    return StaticValue(method)


def _draw(func: Any, cx: Context, args: list[Any], kwargs: dict[str, Any], hint: str | None) -> Any:
    """A call of a method of a generator."""
    name = func.__name__
    if cx.rules:
        raise cx.refusal(NotDifferentiable, f"a rule draws random numbers ('{name}').", "Make them an argument.")
    if not args or not isinstance(args[0], Leaf) or not isinstance(args[0].type, RandomGenerator):
        raise cx.refusal(
            NotDifferentiable,
            f"'{name}' draws from {describe(cx, args[0]) if args else 'nothing'}, which is no single generator.",
            "Pass one np.random.Generator.",
        )
    rng, *rest = args
    if name in ("rand", "randn"):
        drawn = np.random.RandomState.random_sample if name == "rand" else np.random.RandomState.standard_normal
        return _draw(drawn, cx, [rng, tuple_of(rest)] if rest else [rng], {}, hint)
    try:
        bound = inspect.signature(func).bind(*args, **kwargs)
    except TypeError as error:
        cx.raise_(TypeError, f"{name}: {error}")
    given = bound.arguments
    if name == "shuffle" and not isinstance(type_of(given["x"]), Array):
        raise cx.refusal(
            NotDifferentiable,
            f"'shuffle' puts {describe(cx, given['x'])} in an order that is known only at run time.",
            "Shuffle an array, or take the elements of an array by rng.permutation(n).",
        )
    for key, value in given.items():
        if key not in OPTIONS:
            given[key] = _parameter(cx, value)
    if name == "seed":
        cx.effect(Call(func, tuple(operand(cx, value) for value in bound.args)))
        return StaticValue(None)
    out = given.pop("out", None)
    if out is not None and type_of(out) is not None:
        assert isinstance(out.type, Array)
        shape, dtype = (cx.call(cx, StaticValue(np.shape), (out,), {}), StaticValue(np.dtype(out.type.dtype).type))
        made = _draw(func, cx, [*bound.args], {**bound.kwargs, "size": shape, "dtype": dtype}, None)
        store_place(cx, Place(out, []), made)
        return out
    body = body_of(func)
    written = cx.frame.parsed.file == rules_random.__file__  # draws inside a decomposition are not decomposed
    if body is not None and not written and _is_decomposed(func, given):
        assert isinstance(body, FunctionType)
        numbers = {key: value if key in OPTIONS else _number(cx, value) for key, value in given.items()}
        return inline_function(cx, body, (), numbers)
    return _emit(cx, func, bound, _type(cx, func, given), hint)


def _parameter(cx: Context, value: Any) -> Any:
    """A parameter of a distribution; a sequence as an array."""
    if isinstance(value, (Struct, Ref, Captured)) and type_of(value) is None and struct_of(cx, value) is not None:
        return emit_call(cx, np.array, (value,))
    return value


def _number(cx: Context, value: Any) -> Any:
    """A scalar converted as NumPy's C code does."""
    type_ = type_of(value)
    if isinstance(value, Leaf) and (isinstance(type_, Scalar) or (isinstance(type_, Array) and not type_.rank)):
        return value if "int" in type_.dtype else call_value(cx, StaticValue(float), [value], {})
    return value


def _is_decomposed(func: Any, given: Mapping[str, Any]) -> bool:
    """Whether a draw is decomposed: a parameter may be active, or compiled code needs the decomposition."""
    leaves = [given[key] for key in decisive(func) if key in given and isinstance(given[key], Leaf)]
    return any(is_floating(leaf.type) for leaf in leaves) or func.__name__ in ("shuffle", "triangular")


def _type(cx: Context, func: Any, given: Mapping[str, Any]) -> Type:
    """The type of a draw: a new array, of whose size only the rank is known."""
    name = func.__name__
    known = {key: value for key, value in given.items() if key not in ("self", "size", "p")}
    if name == "multinomial":
        known["pvals"] = _HALVES
    elif name in ("geometric", "logseries", "negative_binomial", "binomial") and "p" in given:
        known["p"] = given["p"]
    found = call_type(cx, func, (given["self"],), known)
    if not isinstance(found, (Array, Scalar)):
        raise cx.refusal(NotDifferentiable, f"the result of '{name}' is no array.", "Call it outside.")
    size = given.get("size")
    if size is None or _is_none(size):
        return replace(found, layout="C") if isinstance(found, Array) else found
    items = shape_items(_size_type(cx, size))
    alone = (False,) if name in _VECTORS else ()
    unit = (*(units(items) or (False,) * len(items)), *alone)
    return Array(found.dtype, len(unit), "C", unit if any(unit) else ())


def _is_none(value: Any) -> bool:
    return isinstance(value, StaticValue) and value.value is None


def _size_type(cx: Context, size: Any) -> Any:
    content = struct_of(cx, size)
    if content is not None:
        return tuple(child if isinstance(child, StaticValue) else child.type for child in content.children)
    return size if isinstance(size, StaticValue) else type_of(size)


def _emit(cx: Context, func: Any, bound: inspect.BoundArguments, type_: Type, hint: str | None) -> Leaf:
    if "size" in bound.arguments and _is_none(bound.arguments["size"]):
        del bound.arguments["size"]
    args = tuple(operand(cx, value) for value in bound.args)
    kwargs = tuple((name, operand(cx, value)) for name, value in bound.kwargs.items())
    return emit_once(cx, Call(func, args, kwargs, type_), hint)


for _func in intrinsics.DRAWS:
    handles(_func, takes=PASSED_ON)(functools.partial(_draw, _func))

# ---- NumPy's global generator --------------------------------------------------------------------------------------


_KEPT: np.random.RandomState = np.random.mtrand._rand


def _kept(func: Any, method: Any) -> None:
    @handles(func, takes=PASSED_ON)
    def call(cx: Context, args: list[Any], kwargs: dict[str, Any], hint: str | None) -> Any:
        rng = capture(cx, _KEPT, lambda: _KEPT, "np_random", ("generator", id(_KEPT)))
        return call_value(cx, draw_method(cx, rng, method.__name__), [rng, *args], kwargs, hint)


for _func in vars(np.random).values():
    if getattr(_func, "__self__", None) is _KEPT:
        _kept(_func, _func)
for _func in (np.random.ranf, np.random.sample):
    _kept(_func, np.random.RandomState.random_sample)
_kept(np.random.seed, np.random.RandomState.seed)

# ---- Python's own generator ----------------------------------------------------------------------------------------


def _not_followed(func: Any) -> None:
    @handles(func, takes="*args, **kwargs")
    def call(cx: Context, args: list[Any], kwargs: dict[str, Any], hint: str | None) -> Any:
        raise cx.refusal(
            NotDifferentiable,
            f"random.{func.__name__} draws from Python's own generator, which is not followed.",
            "Draw with the methods of np.random.default_rng(seed), or draw outside and pass the numbers.",
        )


for _func in vars(random).values():
    if getattr(_func, "__self__", None) is random.random.__self__:  # type: ignore[attr-defined]
        _not_followed(_func)

# ---- generators that the program makes -----------------------------------------------------------------------------


def _made(func: Any, kind: str) -> None:
    @handles(func, takes="bit_generator" if func is np.random.Generator else "seed=None")
    def call(cx: Context, args: list[Any], kwargs: dict[str, Any], hint: str | None) -> Any:
        (seed,) = args or [StaticValue(None)]
        if isinstance(seed, Leaf) and isinstance(seed.type, RandomGenerator) and func is np.random.default_rng:
            return seed
        expr: Expr = operand(cx, seed)
        return emit_once(cx, Call(func, (expr,), (), RandomGenerator(kind)), hint)


@handles(intrinsics.copy_generator, takes="rng, /")
def _copy_generator(cx: Context, args: list[Any], kwargs: dict[str, Any], hint: str | None) -> Any:
    (rng,) = args
    return copy_generator(cx, rng.expr)


@handles(intrinsics.replay_draws, takes="rng, other, /")
def _draw_as(cx: Context, args: list[Any], kwargs: dict[str, Any], hint: str | None) -> Any:
    rng, other = args
    replay_draws(cx, rng.expr, other.expr)
    return StaticValue(None)


_made(np.random.default_rng, "Generator")
_made(np.random.RandomState, "RandomState")
_made(np.random.Generator, "Generator")
for _bits in intrinsics.BIT_GENERATORS:
    _made(_bits, _bits.__name__)
