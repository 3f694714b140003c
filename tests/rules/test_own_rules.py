"""Rules that users write for functions of their own, and what they are told where such a rule is wrong."""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable, Iterator
from typing import Any

import numba
import numpy as np
import pytest

import tapegen as tg
from tapegen.errors import BadArgument, BuildError, MissingRule, NotDifferentiable, PerformanceWarning
from tapegen.frontend.calls.library_calls import is_library
from tapegen.rules import registry
from tests.judged import both

X = np.array([0.4, -1.1, 0.7])


def _is_own(func: Any) -> bool:
    return (getattr(func, "__module__", "") or "").startswith("tapegen.")


_OWN: list[tuple[Callable[..., Any], Callable[..., Any]]] = []


def _in_each_test(register: Callable[..., Any]) -> Callable[..., Any]:
    """Give the function its rule while a test of this file runs: other tests have no rules of users."""

    def note(rule: Callable[..., Any]) -> Callable[..., Any]:
        _OWN.append((register, rule))
        return rule

    return note


@pytest.fixture(autouse=True)
def fresh_registry() -> Iterator[None]:
    before = dict(registry._RULES)
    for register, rule in _OWN:
        register(rule)
    yield
    # those of the package are loaded once
    loaded = {func: rule for func, rule in registry._RULES.items() if is_library(func) or _is_own(func)}
    registry._RULES.clear()
    registry._RULES.update({**loaded, **before})


# ---- functions, each with a rule that differs from what its text would give ------------------------------------------

FACTOR = 2.0


def scaled(x: Any) -> Any:
    return FACTOR * x * x


def twice_as_steep(x: Any) -> Any:
    return 4.0 * FACTOR * x


@numba.njit
def cubed(x: Any) -> Any:
    return x * x * x


def steep_cube(x: Any) -> Any:
    return 6.0 * x * x


def hidden(x: Any) -> Any:
    return eval("x * x")


def two_results(x: Any) -> Any:
    return 2.0 * x, 3.0 * x


def two_results_back(x: Any, *, out_bar: Any) -> Any:
    return 2.0 * out_bar[0] + 3.0 * out_bar[1]


def of_numbers(x: float) -> float:
    total = 0.0
    for k in range(3):
        total = total + scaled(x) * k
    while scaled(total) < 100.0:
        total = total * 2.0
    return total if scaled(total) > 0.0 and x > 0.0 else x


def of_arrays(x: np.ndarray) -> float:
    return (scaled(x) * x).sum()


def of_a_dispatcher(x: np.ndarray) -> float:
    return (cubed(x) * x).sum() + cubed(x[0])


def of_two(x: np.ndarray) -> float:
    a, b = two_results(x)
    return (a * b).sum()


@both
def test_the_rule_is_used_not_the_text(backend: str) -> None:
    tg.partials(scaled)(twice_as_steep)
    tg.partials(cubed)(steep_cube)
    steep = tg.differentiable(of_arrays, backend=backend)
    assert steep(X) == of_arrays(X)
    np.testing.assert_allclose(steep.grad(X), 8.0 * X * X + 2.0 * X * X)
    np.testing.assert_allclose(tg.jvp(of_arrays, (X,), (X,), backend=backend)[1], (10.0 * X**3).sum())
    expected = 6.0 * X**3 + X**3
    expected[0] += 6.0 * X[0] ** 2
    np.testing.assert_allclose(tg.grad(of_a_dispatcher, backend=backend)(X), expected)
    assert tg.grad(scaled, backend=backend)(3.0) == 24.0
    assert tg.grad(cubed, backend=backend)(3.0) == 54.0
    assert tg.grad(tg.differentiable(scaled, backend=backend).grad, backend=backend)(3.0) == 8.0


@both
def test_right_rules_in_loops_tests_and_tuples(backend: str) -> None:
    @tg.partials(scaled)
    def partials(x):
        return 2.0 * FACTOR * x

    tg.linear(two_results, in_="x", shapes=[(3,)])(two_results_back)
    tg.check_rule(two_results)
    with warnings.catch_warnings():
        warnings.simplefilter("error")  # all of it is compiled
        tg.check_grads(of_numbers, 0.3, order=2, modes=("forward", "reverse"), backend=backend)
        tg.check_grads(of_two, X, order=2, modes=("forward", "reverse"), backend=backend)
        assert tg.grad(of_numbers, backend=backend)(-2.0) == 1.0


@numba.njit
def discounted(x: np.ndarray) -> np.ndarray:
    out = np.empty_like(x)
    total = 0.0
    for i in range(x.size):
        total = 0.5 * total + x[i]
        out[i] = total
    return out


@both
def test_the_body_of_a_rule_may_call_its_own_function(backend: str) -> None:
    @tg.linear(discounted, in_="x", shapes=[(4,)])
    def backwards(x, *, out_bar):
        return discounted(out_bar[::-1].copy())[::-1]

    tg.check_rule(discounted)

    def energy(x: np.ndarray) -> float:
        return np.sum(discounted(x) ** 2)

    matrix = np.array([[1.0, 0.0, 0.0], [0.5, 1.0, 0.0], [0.25, 0.5, 1.0]])
    np.testing.assert_allclose(tg.grad(energy, backend=backend)(X), 2.0 * matrix.T @ matrix @ X)
    np.testing.assert_allclose(
        tg.hvp(energy, (X,), (np.ones(3),), backend=backend), 2.0 * matrix.T @ matrix.sum(axis=1)
    )


@both
def test_globals_that_change(backend: str, monkeypatch: pytest.MonkeyPatch) -> None:
    tg.partials(scaled)(twice_as_steep)
    derived = tg.differentiable(of_arrays, backend=backend)
    for factor in (2.0, 5.0):
        monkeypatch.setattr(f"{__name__}.FACTOR", factor)
        assert derived(X) == of_arrays(X)
        np.testing.assert_allclose(derived.grad(X), 5.0 * factor * X * X)


@both
def test_the_last_rule_holds(backend: str) -> None:
    derived = tg.differentiable(of_arrays, backend=backend)
    np.testing.assert_allclose(derived.grad(X), 6.0 * X * X)
    tg.partials(scaled)(twice_as_steep)
    np.testing.assert_allclose(derived.grad(X), 10.0 * X * X)
    tg.inactive(scaled)
    np.testing.assert_allclose(derived.grad(X), 2.0 * X * X)


def test_a_differentiable_function_has_the_rule_of_its_function() -> None:
    decorated = tg.differentiable(scaled)
    tg.partials(decorated, domain=[(0.5, 2.0)])(twice_as_steep)
    assert decorated.grad(3.0) == 24.0
    with pytest.raises(AssertionError, match="cotangent of x in scaled"):
        tg.check_rule(decorated)

    def around(x: float) -> float:
        return decorated(x) * 1.0

    assert tg.grad(around)(3.0) == 24.0


def uses_hidden(x: float) -> float:
    return hidden(x) * x


def test_what_cannot_be_compiled_says_so_once() -> None:
    @tg.partials(hidden, domain=[(-2.0, 2.0)])
    def partials(x):
        return 2.0 * x

    tg.check_rule(hidden)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        derived = tg.differentiable(uses_hidden)
        assert derived.grad(3.0) == 27.0
        derived.vjp(3.0)
        derived.jvp((3.0,), (1.0,))
    (warning,) = caught
    assert warning.category is PerformanceWarning
    assert f":{uses_hidden.__code__.co_firstlineno + 1}: {__name__}.hidden has no compiled form" in str(warning.message)
    with pytest.raises(BuildError, match="hidden"):
        tg.differentiable(uses_hidden, backend="numba").grad(3.0)


def eighth_root(x: Any) -> Any:
    return x**0.125


def with_roots(x: Any) -> float:
    return (eighth_root(x) * x).sum()


@both
def test_a_formula_with_a_loop_of_its_own(backend: str) -> None:
    """In the backward sweep the name that the loop carries means the value before the iteration, the result has its
    own.
    """

    @tg.expands(eighth_root, domain=[(0.5, 2.0)])
    def formula(x):
        root = x
        for _ in range(3):
            root = np.sqrt(root)
        return root

    tg.check_rule(eighth_root)
    tg.check_grads(with_roots, np.array([0.7, 1.9]), modes=("forward", "reverse"), backend=backend)


# ---- wrong rules -----------------------------------------------------------------------------------------------------


def product(x: Any, y: Any, scale: float = 1.0) -> Any:
    return x * y * scale


def square_by_product(x: float) -> float:
    return product(x, x)


def scale_by_product(x: float) -> float:
    return product(1.0, 2.0, x)


DOMAIN = [(0.5, 2.0), (0.5, 2.0)]


@pytest.mark.parametrize("count", [1, 4])
def test_wrong_count_of_partials(count: int) -> None:
    if count == 1:
        tg.partials(product, domain=DOMAIN)(lambda x, y, scale=1.0: y)
    else:
        tg.partials(product, domain=DOMAIN)(lambda x, y, scale=1.0: (y, x, x, x))
    text = f"the rule of product gives {count} derivatives?; its arguments are x, y"
    with pytest.raises(BadArgument, match=text) as caught:
        tg.grad(square_by_product)(2.0)
    assert caught.value.span is not None
    assert caught.value.span.line == square_by_product.__code__.co_firstlineno + 1
    with pytest.raises(AssertionError, match=text):
        tg.check_rule(product)


def test_an_argument_without_a_partial() -> None:
    tg.partials(product, domain=DOMAIN)(lambda x, y, scale=1.0: (y * scale, x * scale))
    tg.check_rule(product)
    assert tg.grad(square_by_product)(2.0) == 4.0
    with pytest.raises(MissingRule, match="no derivative with respect to 'scale'"):
        tg.grad(scale_by_product)(2.0)


def test_wrong_count_of_cotangents() -> None:
    tg.pullback(product, wrt=("x", "y"), shapes=[(3,), (3,)])(lambda x, y, scale=1.0, *, out_bar: y * out_bar)
    text = "the rule of product gives 1 derivative; it is to give those of x, y"
    with pytest.raises(BadArgument, match=text):
        tg.grad(square_by_product)(2.0)
    with pytest.raises(AssertionError, match=text):
        tg.check_rule(product)


def test_a_body_that_stores_into_what_it_is_given() -> None:
    def square(x: Any) -> Any:
        return x * x

    @tg.pullback(square, wrt="x", shapes=[(3,)])
    def pulled(x: Any, *, out_bar: Any) -> Any:
        out_bar *= 2.0
        return x * out_bar

    @pulled.pushforward
    def pushed(x: Any, *, x_dot: Any) -> Any:
        first = x_dot[:1]
        first[0] = 0.0
        return 2.0 * x * x_dot

    def f(x: Any) -> Any:
        return np.sum(square(x) * x)

    with pytest.raises(BadArgument, match="pulled stores into an array that it is given"):
        tg.grad(f, backend="python")(np.ones(3))
    with pytest.raises(BadArgument, match="pushed stores into an array that it is given"):
        tg.jvp(f, (np.ones(3),), (np.ones(3),), backend="python")


def test_wrong_shape_is_found_by_the_check() -> None:
    tg.pullback(scaled, shapes=[(3,)])(lambda x, *, out_bar: (x * out_bar)[1:])
    with pytest.raises(AssertionError, match=r"has shape \(2,\), not \(3,\)"):
        tg.check_rule(scaled)


@pytest.mark.parametrize(
    ("register", "body", "message"),
    [
        (tg.partials(product), lambda x, z: (x, z), "parameter 'z' that product does not have"),
        (tg.partials(product), lambda y, x: (x, y), "not in the order of product"),
        (tg.linear(product, in_="w"), lambda x, y, *, out_bar: y, "no parameter 'w'"),
        (tg.pullback(product), lambda x, y: (y, x), "needs a keyword out_bar"),
        (tg.expands(product), lambda x, y, *, out: x * y, "does not get the result"),
    ],
)
def test_what_registration_sees(register: Callable, body: Callable, message: str) -> None:
    with pytest.raises(BadArgument, match=message) as caught:
        register(body)
    assert caught.value.advice


def test_a_pushforward_with_a_keyword_of_nobody() -> None:
    rule = tg.pullback(scaled)(lambda x, *, out_bar: 2.0 * FACTOR * x * out_bar)
    with pytest.raises(BadArgument, match="keyword 'y_dot' that nothing is given for"):
        rule.pushforward(lambda x, *, y_dot: y_dot)


def test_what_cannot_be_found_again() -> None:
    import ctypes

    with pytest.raises(BadArgument, match="not hashable"):
        tg.partials(ctypes.pythonapi.Py_GetVersion)(lambda: None)
    with pytest.raises(TypeError, match="cannot be called"):
        tg.partials(1.5)(lambda x: x)  # type: ignore[arg-type]


# ---- functions that a rule is not for --------------------------------------------------------------------------------

TABLE = np.array([1.0, 2.0, 3.0])


def tail(x: np.ndarray) -> np.ndarray:
    return x[1:]


def uses_tail(x: np.ndarray) -> float:
    return tail(x).sum()


def overwrites(x: np.ndarray) -> np.ndarray:
    x[0] = 1.0
    return x.copy()


def uses_overwrites(x: np.ndarray) -> float:
    return overwrites(x).sum()


def test_functions_that_share_memory_or_write() -> None:
    tg.linear(tail, in_="x")(lambda x, *, out_bar: np.append(np.zeros(1), out_bar))
    tg.linear(overwrites, in_="x")(lambda x, *, out_bar: 1.0 * out_bar)
    for func in (uses_tail, uses_overwrites):
        with pytest.raises(NotDifferentiable, match="changes its arguments, returns a part of one"):
            tg.grad(func)(X)


def test_a_body_that_reads_a_global_array() -> None:
    tg.partials(scaled)(lambda x: 2.0 * TABLE)
    with pytest.raises(NotDifferentiable, match="reads the array 'TABLE'"):
        tg.grad(of_arrays)(X)
    tg.partials(scaled)(lambda x: (lambda factor: factor * TABLE)(2.0 * x))
    with pytest.raises(NotDifferentiable, match="reads the array 'TABLE'"):
        tg.grad(of_arrays)(X)


def test_a_global_array_with_the_name_of_an_attribute(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(globals(), "ones_like", TABLE)
    tg.partials(scaled)(lambda x: 4.0 * FACTOR * x * np.ones_like(x))
    np.testing.assert_allclose(tg.grad(of_arrays, backend="python")(X), 5.0 * FACTOR * X * X)


def failing(x: float) -> float:
    return math.log(scaled(x) - 8.0)


@both
def test_errors_of_plain_python_stay(backend: str) -> None:
    tg.partials(scaled)(twice_as_steep)
    with pytest.raises(ValueError, match=r"math domain error|expected a positive input"):
        tg.grad(failing, backend=backend)(1.0)


def smooth_ramp(x: Any) -> Any:
    with np.errstate(all="ignore"):
        return np.logaddexp(0.0, x)


@_in_each_test(tg.pullback(smooth_ramp))
def smooth_ramp_pullback(x, *, out, out_bar):
    return out_bar * (1.0 - np.exp(-out))


def squares_of_ramps(x: Any) -> Any:
    return np.sum(smooth_ramp(x) ** 2)


def curvature(x: Any) -> Any:
    return np.sum(tg.hessian(squares_of_ramps)(x) @ x)


def test_a_pullback_alone_has_jacobians_and_hessians() -> None:
    x = np.array([0.3, -1.2])
    slope, value = 1.0 / (1.0 + np.exp(-x)), np.log1p(np.exp(x))
    np.testing.assert_allclose(tg.jacobian(smooth_ramp, backend="python")(x), np.diag(slope), rtol=1e-14)
    expected = np.diag(2.0 * slope**2 + 2.0 * value * slope * (1.0 - slope))
    np.testing.assert_allclose(tg.hessian(squares_of_ramps, backend="python")(x), expected, rtol=1e-13)
    assert tg.differentiable(curvature, backend="python")(x) == pytest.approx(np.sum(expected @ x), rel=1e-13)
    forward = tg.jacobian(squares_of_ramps, mode="forward", backend="python")(x)
    np.testing.assert_allclose(forward, 2.0 * value * slope, rtol=1e-13)
    np.testing.assert_allclose(tg.hvp(squares_of_ramps, (x,), (x,), backend="python"), expected @ x, rtol=1e-13)


def mixed(x: Any, y: Any) -> Any:
    with np.errstate(all="ignore"):
        return x * y, np.sin(x).sum()


@_in_each_test(tg.pullback(mixed, wrt=("x", "y")))
def mixed_pullback(x, y, *, out, out_bar):
    first, second = out_bar
    return first * y + second * np.cos(x), first * x


def joined(*parts: Any) -> Any:
    with np.errstate(all="ignore"):
        return np.concatenate(parts)


@_in_each_test(tg.pullback(joined, wrt="parts"))
def joined_pullback(*parts, out_bar):
    return out_bar[:2], out_bar[2:]


def third_power(z: Any, scale: float = 2.0) -> Any:
    with np.errstate(all="ignore"):
        return scale * z**3


@_in_each_test(tg.pullback(third_power, of_complex=True))
def third_power_pullback(z, scale=2.0, *, out_bar):
    return 3.0 * scale * z**2 * out_bar


AT, ALONG = np.array([0.3, -1.2]), np.array([0.7, 0.4])


@pytest.mark.parametrize(
    ("function", "x", "v", "expected"),
    [
        (lambda x: mixed(x, x[::-1])[0], AT, ALONG, ALONG * AT[::-1] + AT * ALONG[::-1]),
        (lambda x: mixed(x[:, None], AT)[0], AT, ALONG, np.outer(ALONG, AT)),
        (lambda x: mixed(x, AT)[1], AT, ALONG, np.cos(AT) @ ALONG),
        (lambda x: mixed(2.0, x)[0], 0.3, 1.0, 2.0),
        (lambda x: joined(x * x, x) ** 2, AT, ALONG, np.concatenate([4.0 * AT**3 * ALONG, 2.0 * AT * ALONG])),
        (lambda x: joined(AT, x), AT, ALONG, np.concatenate([0.0 * ALONG, ALONG])),
        (lambda z: third_power(z, scale=0.5), 0.3 - 0.4j, 1.0 + 2.0j, 1.5 * (0.3 - 0.4j) ** 2 * (1.0 + 2.0j)),
    ],
)
def test_the_transpose_of_a_pullback_is_a_pushforward(function: Any, x: Any, v: Any, expected: Any) -> None:
    np.testing.assert_allclose(tg.jvp(function, (x,), (v,), backend="python")[1], expected, rtol=1e-14)


def identity(x: Any) -> Any:
    with np.errstate(all="ignore"):
        return x + 0.0


@pytest.mark.parametrize(
    "pullback",
    [
        lambda x, *, out_bar: np.clip(out_bar, -1.0, 1.0),
        lambda x, *, out_bar: out_bar / np.linalg.norm(out_bar),
        lambda x, *, out_bar: np.where(np.isnan(out_bar), 0.0, out_bar),
        lambda x, *, out_bar: out_bar if out_bar[0] > 0.0 else 2.0 * out_bar,
    ],
)
def test_a_pullback_that_is_not_linear_has_no_transpose(pullback: Any) -> None:
    tg.pullback(identity)(pullback)
    with pytest.raises(MissingRule, match=r"identity has no forward derivative.*not linear in out_bar"):
        tg.jvp(lambda x: identity(x), (AT,), (ALONG,), backend="python")


@pytest.mark.parametrize("way", ["grad", "vjp"])
def test_a_cotangent_of_a_wrong_shape_is_told(way: str) -> None:
    tg.pullback(identity)(lambda x, *, out_bar: out_bar[:1])
    function = tg.differentiable(lambda x: np.sum(identity(x)), backend="python")
    with pytest.raises(
        BadArgument, match=r"gradient with respect to 'x' has shape \(1,\), the argument \(2,\)(.|\n)*see identity"
    ):
        function.grad(AT) if way == "grad" else function.vjp(AT)[1](1.0)


def test_an_error_inside_a_rule_names_the_function() -> None:
    def slope(x: Any) -> Any:
        if x > 0:
            return 1.0
        return -1.0

    tg.partials(identity)(slope)
    assert tg.grad(lambda x: identity(x), backend="python")(-0.5) == -1.0
    with pytest.raises(BadArgument, match=r"truth value(.|\n)*fault may be in a rule of yours: that of identity"):
        tg.grad(lambda x: np.sum(identity(x)), backend="python")(AT)
