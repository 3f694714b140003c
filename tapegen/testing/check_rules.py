"""Numerical check of a derivative rule, and the calls at which it is checked."""

from __future__ import annotations

import contextlib
import inspect
import warnings
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial
from typing import Any

import numpy as np

from tapegen.errors import MissingRule, NotDifferentiable
from tapegen.ir.intrinsics import sum_to
from tapegen.rules import Rule, rule_of
from tapegen.rules.rule import wrong_count
from tapegen.runtime.tracebacks import hides_frames
from tapegen.testing.finite_differences import FLOAT32_TOLERANCE, STEP, WEIGHTS, is_float, to_float64

#: Positional and keyword arguments of one call.
Case = tuple[tuple[Any, ...], dict[str, Any]]


@hides_frames
def check_rule(func: Callable[..., Any], *, cases: Iterable[Case] | None = None, rtol: float = 1e-8) -> None:
    """Check the derivative rule of a function.

    The cotangents that the rule gives are compared with differences of the function itself, element by element; a
    linear rule must also satisfy `<f(v), w> == <v, transpose(w)>` to rounding, a pushforward must agree with its
    pullback, and a formula (`expands`) must have the value of the function around the point.  float32 has to stay
    float32, arguments must be left alone, and arrays whose elements do not lie side by side have the same cotangents.
    A rule that is declared for complex numbers (`of_complex`) is checked at every call once more, with imaginary
    parts, unless the function itself refuses these.

    Parameters
    ----------
    func : callable
        A function with a registered rule.
    cases : iterable of (args, kwargs), optional
        The calls to check at.  By default they are drawn from `domain` or `shapes` of the rule.
    rtol : float
        Accepted error relative to the largest element.

    Raises
    ------
    AssertionError
        The rule is wrong; the message names the argument and the call.
    MissingRule
        There is no rule to check.
    """
    rule = rule_of(func)
    if rule is None:
        raise MissingRule(f"{_name(func)} has no derivative rule.", "Register one with partials, linear or pullback.")
    for args, kwargs in default_cases(rule) if cases is None else cases:
        call = _Call(rule, args, kwargs)
        if rule.kind == "inactive":
            _check_inactive(call, rtol)
            continue
        _check_call(call, rtol)
        with_imaginary_parts = _complex_call(call) if rule.of_complex else None
        if with_imaginary_parts is not None:
            with contextlib.suppress(NotDifferentiable):  # of this call
                _check_call(with_imaginary_parts, rtol)


def default_cases(rule: Rule) -> list[Case]:
    """Calls drawn from `domain` or `shapes` of a rule."""
    rng = np.random.default_rng(0)
    if rule.domain is not None:
        points = [tuple(rng.uniform(lo, hi) for lo, hi in rule.domain) for _ in range(4)]
        arrays = tuple(np.array(column) for column in zip(*points))
        if getattr(rule.func, "__module__", None) in ("math", "builtins") or not _takes_arrays(rule.func, arrays):
            return [(point, {}) for point in points]
        empty = tuple(np.empty((0,)) for _ in rule.domain)
        return [(arrays, {}), (tuple(np.array(x) for x in points[0]), {}), (points[1], {}), (empty, {})]
    if rule.shapes is not None:
        return [(tuple(_draw(shape, rng) for shape in rule.shapes), {})]
    raise ValueError(f"the rule of {_name(rule.func)} has neither domain nor shapes: pass cases=")


def _takes_arrays(func: Callable[..., Any], arrays: tuple[np.ndarray, ...]) -> bool:
    """Whether a function of scalars is also one of arrays, element-wise."""
    try:
        return np.shape(func(*(array.copy() for array in arrays))) == np.shape(arrays[0])
    except Exception:  # whatever error a function of scalars raises for an array
        return False


def _draw(shape: Any, rng: np.random.Generator) -> Any:
    """One argument: an array of well separated values (so that differences meet no kink), or a list of them."""
    if callable(shape):
        return shape(rng)
    if isinstance(shape, list):
        return [_draw(item, rng) for item in shape]
    size = int(np.prod(shape))
    values = np.linspace(-1.4, 1.6, size) if size > 1 else np.full(size, 0.7)
    jitter = rng.uniform(-0.1, 0.1, size) + rng.uniform(-0.15, 0.15)
    values = rng.permutation(values) + jitter * min(1.0, 3.0 / max(size, 1))
    return np.where(np.abs(values) < 0.05, values + 0.1, values).reshape(shape)  # 0 is where sizes have a kink


# ---- one call of a function and its rule ---------------------------------------------------------------------------


class _Call:
    """A function, its rule, and bound arguments whose floating leaves can be replaced."""

    def __init__(self, rule: Rule, args: Sequence[Any], kwargs: dict[str, Any]) -> None:
        self.rule = rule
        if rule.body is None:
            self.bound = None
            self.args, self.kwargs = tuple(args), kwargs
            self.names: tuple[str, ...] = ()
            return
        signature = inspect.signature(rule.body)
        self.bound = signature.bind_partial(*args, **kwargs)
        given = self.bound.arguments
        positional = [p.name for p in signature.parameters.values() if p.kind is not p.KEYWORD_ONLY]
        candidates = rule.wrt if rule.kind in ("linear", "pullback") or rule.wrt else positional
        self.names = tuple(name for name in candidates if name in given and any(True for _ in _leaves(given[name])))

    def values(self) -> dict[str, Any]:
        """The arguments that carry derivatives, by name."""
        assert self.bound is not None
        return {name: self.bound.arguments[name] for name in self.names}

    def function(self, changed: dict[str, Any]) -> Any:
        return self._run(self.rule.func, changed, {})

    def projected(self, out_bar: Any, name: str, value: Any) -> float:
        """`<out_bar, f>` as a function of one argument."""
        return _dot(out_bar, self.function({name: value}))

    def body(self, changed: dict[str, Any], extra: dict[str, Any]) -> Any:
        assert self.rule.body is not None
        declared = {name: value for name, value in extra.items() if self.rule.reads(name)}
        return self._run(self.rule.body, changed, declared)

    def pushforward(self, tangents: dict[str, Any], out: Any) -> Any:
        assert self.rule.pushforward is not None
        extra = {f"{name}_dot": tangents.get(name, 0.0) for name in self.rule.wrt}
        if "out" in inspect.signature(self.rule.pushforward).parameters:
            extra["out"] = out
        found = self._run(self.rule.pushforward, {}, extra)
        if not isinstance(out, tuple):
            return found
        return tuple(np.zeros_like(value) if dot is None else dot for value, dot in zip(out, found, strict=True))

    def cotangents(self, changed: dict[str, Any], out: Any, out_bar: Any) -> dict[str, Any]:
        """The derivatives of the rule, by argument name, summed to the shapes of the arguments as the compiler does."""
        assert self.bound is not None
        with np.errstate(all="ignore"):  # generated code leaves out the parts that are not wanted
            result = self.body(changed, {"out": out, "out_bar": out_bar})
        if self.rule.kind == "partials":
            parts = result if isinstance(result, tuple) else (result,)
            self._check_count(len(parts))
            order = self.rule.wrt or [name for name in self.bound.signature.parameters if name in self.bound.arguments]
            by_name = {name: part for name, part in zip(order, parts) if part is not None}
            with np.errstate(invalid="ignore"):
                by_name = {name: np.multiply(out_bar, part) for name, part in by_name.items()}
        else:
            parts = result if len(self.rule.wrt) > 1 and isinstance(result, tuple) else (result,)
            self._check_count(len(parts))
            by_name = {name: part for name, part in zip(self.rule.wrt, parts) if part is not None}
        arguments = {**self.bound.arguments, **changed}
        return {
            name: _map(_fitted, by_name[name], arguments[name])
            if name in by_name
            else _map(np.zeros_like, arguments[name])
            for name in self.names
        }

    def _check_count(self, count: int) -> None:
        wrong = wrong_count(self.rule, count)
        assert wrong is None, " ".join(wrong or ())

    def _run(self, func: Callable[..., Any], changed: dict[str, Any], extra: dict[str, Any]) -> Any:
        assert self.bound is not None
        bound = inspect.BoundArguments(self.bound.signature, dict(self.bound.arguments))
        bound.arguments.update(changed)
        if not self.rule.written:
            return func(*bound.args, **bound.kwargs, **extra)
        bound.arguments.update(_map(np.copy, dict(bound.arguments)))
        result = func(*bound.args, **bound.kwargs, **extra)
        return next(iter(bound.arguments.values())) if result is None else result  # it has written into this one

    def __str__(self) -> str:
        shown = [f"{name}={_shape_text(value)}" for name, value in (self.bound.arguments if self.bound else {}).items()]
        return f"{_name(self.rule.func)}({', '.join(shown)})"


def _complex_call(call: _Call) -> _Call | None:
    """The call with imaginary parts; None where it has some, or the function does not accept them."""
    if call.bound is None or call.rule.phases or any(map(np.iscomplexobj, _leaves(call.values()))):
        return None
    rng = np.random.default_rng(5)
    arguments = {
        name: _map(lambda x: np.add(x, 1j * rng.uniform(-0.6, 0.6, np.shape(x)))[()], value)
        for name, value in call.values().items()
    }
    bound = inspect.BoundArguments(call.bound.signature, {**call.bound.arguments, **arguments})
    found = _Call(call.rule, bound.args, bound.kwargs)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("error", np.exceptions.ComplexWarning)
            found.function({})
            found.function(_map(_to_float32, found.values()))
    except Exception:  # whatever error it raises for complex numbers
        return None
    return found


# ---- the checks ----------------------------------------------------------------------------------------------------


def _check_call(call: _Call, rtol: float) -> None:
    if call.rule.kind == "expands":
        _check_formula(call, rtol)
    else:
        _check_cotangents(call, rtol)
        _check_strided(call)
        _check_float32(call)


def _check_cotangents(call: _Call, rtol: float) -> None:
    rng = np.random.default_rng(1)
    values = _frozen(call.values())
    out = _frozen(call.function(values))
    before = _copied(values), _copied(out)
    identity_rtol = 1e-11
    if _all_float32(out):  # a cast: its result is coarse
        rtol = max(rtol, FLOAT32_TOLERANCE)
        identity_rtol = FLOAT32_TOLERANCE
    out_bar = _frozen(_map(lambda x: _random_leaf(x, rng), out))
    bars = call.cotangents(values, out, out_bar)
    assert _same(before, (values, out)), f"the rule changed an argument or the result of {call}"
    for name in call.names:
        value, bar = values[name], bars[name]
        _check_fresh(call, name, bar, (values, out))
        for k, (bar_leaf, leaf) in enumerate(zip(_leaves(bar, every=True), _leaves(value, every=True), strict=True)):
            assert np.shape(bar_leaf) == np.shape(leaf), (
                f"cotangent of {name} in {call} has shape {np.shape(bar_leaf)}, not {np.shape(leaf)}"
            )
            if is_float(leaf):
                expected = _differences(partial(call.projected, out_bar, name), value, k)
                _assert_close(bar_leaf, expected, rtol, f"cotangent of {name} in {call}")
    if call.rule.kind == "linear":
        _check_transpose(call, bars, out_bar, rng, identity_rtol)
    if call.rule.pushforward is not None:
        tangents = _map(lambda x: _random_leaf(x, rng), values)
        forward = _dot(out_bar, call.pushforward(tangents, out))
        _assert_close(forward, _dot(bars, tangents), 1e-10, f"pushforward against pullback of {call}")


def _check_transpose(call: _Call, bars: dict[str, Any], out_bar: Any, rng: np.random.Generator, rtol: float) -> None:
    tangents = _map(lambda x: _random_leaf(x, rng), call.values())
    origin = _map(np.zeros_like, tangents)
    # the difference removes a constant part (the border of np.pad)
    forward = _dot(out_bar, call.function(tangents)) - _dot(out_bar, call.function(origin))
    _assert_close(forward, _dot(bars, tangents), rtol, f"dot-product identity of {call}")


def _check_formula(call: _Call, rtol: float) -> None:
    rng = np.random.default_rng(1)
    for size in (0.0, STEP, -STEP):
        values = _frozen(_map(lambda x, size=size: x + size * _random_leaf(x, rng), call.values()))
        expected = call.function(values)
        got = call.body(values, {})
        for left, right in zip(_leaves(got, every=True), _leaves(expected, every=True), strict=True):
            assert np.shape(left) == np.shape(right), f"formula of {call}: {np.shape(left)}, not {np.shape(right)}"
            _assert_close(left, right, min(rtol, 1e-12), f"formula of {call}")
    single = _map(_to_float32, call.values())
    if _all_float32(call.function(single)):
        assert _all_float32(call.body(single, {})), f"the formula of {call} does not keep float32"


def _check_inactive(call: _Call, rtol: float) -> None:
    out = call.rule.func(*call.args, **call.kwargs)
    if not any(True for _ in _leaves(out)):
        return
    for k in range(len(list(_leaves(call.args, every=True)))):
        slope = _differences(lambda args: _dot(out, call.rule.func(*args, **call.kwargs)), call.args, k)
        _assert_close(slope, np.zeros_like(slope), rtol, f"derivative of inactive {_name(call.rule.func)}")


def _check_float32(call: _Call) -> None:
    values = _map(_to_float32, call.values())
    out = call.function(values)
    if not _all_float32(out):
        return  # the function itself widens
    assert call.bound is not None
    fixed = [value for name, value in call.bound.arguments.items() if name not in call.names]
    # functions of scipy make a float64 of a Python scalar; generated code narrows what that widens
    may_widen = call.rule.kind == "partials" and any(type(value) is float for value in fixed)
    wide = _map(to_float64, values)
    rng = np.random.default_rng(2)
    out_bar = _map(lambda x: _random_leaf(x, rng), out)
    bars = call.cotangents(values, out, out_bar)
    exact = call.cotangents(wide, call.function(wide), _map(to_float64, out_bar))
    for name, bar in bars.items():
        assert may_widen or _all_float32(bar), f"cotangent of {name} in {call} does not keep float32"
        for left, right in zip(_leaves(bar), _leaves(exact[name]), strict=True):
            _assert_close(left, right, FLOAT32_TOLERANCE, f"float32 cotangent of {name} in {call}")


def _check_strided(call: _Call) -> None:
    """Check that arrays which are not contiguous, or in Fortran order, have the same cotangents."""
    values = call.values()
    strided = _frozen(_map(_apart, values), np.asarray)
    out = call.function(values)
    out_bar = _map(lambda x: _random_leaf(x, np.random.default_rng(4)), out)
    expected = call.cotangents(values, out, out_bar)
    got = call.cotangents(strided, call.function(strided), out_bar)
    for name in call.names:
        for left, right in zip(_leaves(got[name]), _leaves(expected[name]), strict=True):
            _assert_close(left, right, 1e-10, f"cotangent of {name}, which is not contiguous, in {call}")


def _apart(x: Any) -> Any:
    """Every other element of an array in Fortran order, backwards along its first axis."""
    if not isinstance(x, np.ndarray) or x.ndim == 0:
        return x
    wide = np.asfortranarray(np.repeat(x[::-1], 2, axis=-1))
    return wide[::-1, ..., ::2] if x.ndim > 1 else wide[::-2]


def _check_fresh(call: _Call, name: str, bar: Any, others: Any) -> None:
    """Check that a cotangent is a view of `out_bar` at most, never of an argument or of the result."""
    for leaf in _leaves(bar):
        for other in _leaves(others):
            assert not np.may_share_memory(leaf, other), f"cotangent of {name} in {call} is a view of a primal value"


def _differences(func: Callable[[Any], Any], value: Any, leaf: int) -> np.ndarray:
    """Derivative of a scalar function with respect to each element of one leaf of `value`.

    For a complex element `x + 1j * y` it is the derivative by x minus 1j times the derivative by y.
    """
    leaves = list(_leaves(value, every=True))
    is_complex = np.iscomplexobj(leaves[leaf])
    x = np.array(leaves[leaf], dtype=np.complex128 if is_complex else np.float64)
    result = np.zeros_like(x)
    for index in np.ndindex(x.shape):
        units: tuple[Any, ...] = (1.0, 1j) if is_complex else (1.0,)
        for unit in units:
            for steps, weight in WEIGHTS:
                for sign in (1, -1):
                    moved = x.copy()
                    moved[index] += unit * sign * steps * STEP
                    new = moved if isinstance(leaves[leaf], np.ndarray) else moved[()]
                    shifted = iter([*leaves[:leaf], new, *leaves[leaf + 1 :]])
                    result[index] += sign * weight / (unit * STEP) * func(_rebuild(value, shifted))
    return result


def _assert_close(got: Any, expected: Any, rtol: float, what: str) -> None:
    got, expected = np.asarray(got) * 1, np.asarray(expected) * 1  # booleans cannot be subtracted
    scale = 1.0 + float(np.max(np.abs(expected), initial=0.0))
    error = float(np.max(np.abs(got - expected), initial=0.0))
    assert error <= rtol * scale, f"{what}: error {error:.2e}\ngot\n{got}\nexpected\n{expected}"


# ---- nested values -------------------------------------------------------------------------------------------------


def _is_floating(x: Any) -> bool:
    return isinstance(x, float | complex | np.inexact | np.ndarray) and np.asarray(x).dtype.kind in "fc"


def _leaves(tree: Any, every: bool = False) -> Iterator[Any]:
    """The floating leaves in order; all of them with `every`."""
    if isinstance(tree, dict):
        tree = tuple(tree.values())
    if isinstance(tree, tuple | list):
        for item in tree:
            yield from _leaves(item, every)
    elif every or _is_floating(tree):
        yield tree


def _rebuild(tree: Any, leaves: Iterator[Any]) -> Any:
    if isinstance(tree, tuple | list):
        return type(tree)([_rebuild(item, leaves) for item in tree])
    return next(leaves)


def _map(func: Callable[..., Any], tree: Any, *others: Any) -> Any:
    """Apply `func` to the floating leaves; other leaves stay."""
    if isinstance(tree, dict):
        return {key: _map(func, value, *(other[key] for other in others)) for key, value in tree.items()}
    if isinstance(tree, tuple | list):
        assert all(len(other) == len(tree) for other in others), "a cotangent has another structure than its argument"
        parts = [_map(func, *items) for items in zip(tree, *others)]
        return parts if isinstance(tree, list) else tuple(parts)
    return func(tree, *others) if others or _is_floating(tree) else tree


def _dot(left: Any, right: Any) -> float:
    """Sum of products over all floating leaves; for complex ones the real part."""
    pairs = zip(_leaves(left, every=True), _leaves(right, every=True), strict=True)
    return sum(float(np.sum(np.real(np.multiply(a, b)))) for a, b in pairs if _is_floating(a))


def _fitted(bar: Any, argument: Any) -> Any:
    """A cotangent in the shape of its argument, and real if that is."""
    bar = sum_to(bar, argument)
    return bar if np.iscomplexobj(argument) or not _is_floating(argument) else np.real(bar)


def _random_leaf(x: Any, rng: np.random.Generator) -> Any:
    drawn = rng.uniform(0.5, 1.5, np.shape(x)) * rng.choice([-1.0, 1.0], np.shape(x))
    if np.iscomplexobj(x):
        drawn = drawn + 1j * rng.uniform(0.5, 1.5, np.shape(x))
    return np.asarray(drawn, dtype=np.asarray(x).dtype)[()]


def _to_float32(x: Any) -> Any:
    return np.asarray(x, dtype=np.complex64 if np.iscomplexobj(x) else np.float32)[()]


def _all_float32(tree: Any) -> bool:
    return all(getattr(leaf, "dtype", None) in (np.float32, np.complex64) for leaf in _leaves(tree))


def _frozen(tree: Any, copied: Callable[[np.ndarray], np.ndarray] = np.copy) -> Any:
    """Read-only copies of arrays."""

    def freeze(x: Any) -> Any:
        if isinstance(x, np.ndarray):
            x = copied(x)
            x.flags.writeable = False
        return x

    return _map(freeze, tree)


def _copied(tree: Any) -> list[Any]:
    return [np.array(leaf) for leaf in _leaves(tree)]


def _same(before: tuple[list[Any], list[Any]], after: tuple[Any, Any]) -> bool:
    now = list(_leaves(after))
    return all(np.array_equal(old, new, equal_nan=True) for old, new in zip([*before[0], *before[1]], now, strict=True))


def _shape_text(value: Any) -> str:
    return f"array{value.shape}" if isinstance(value, np.ndarray) else repr(value)


def _name(func: Callable[..., Any]) -> str:
    return getattr(func, "__name__", repr(func))
