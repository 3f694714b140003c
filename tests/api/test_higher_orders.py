"""Derivatives of derivatives: nested calls inside differentiated functions, and higher orders.

`python -m pytest tests/api/test_higher_orders.py -m whole` differentiates the gradient of every program, not of every
twentieth.
"""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import tapegen as tg
from tapegen.errors import AliasError, BadArgument, NotDifferentiable
from tapegen.frontend.source.synthesize import function_from_text
from tapegen.frontend.values.pytree import flatten
from tapegen.rules import Rule, registry
from tapegen.rules.registry import all_rules
from tapegen.testing import default_cases
from tests.oracle import floating, leaves, with_leaf
from tests.scipy_cases import ONE_SECTION
from tests.test_programs import ACCEPTED, Program, each
from tests.transform.test_forward_mode import direction

BACKENDS = pytest.mark.parametrize("backend", ["python", "auto"])
python = {"backend": "python"}


def is_double(program: Program) -> bool:
    return all(np.asarray(leaf).dtype != np.float32 for _, leaf in leaves((program.args(), program.plain[0])))


# These iterate until a value settles (bisection then takes one Newton step): value and slope depend smoothly on the
# arguments, as far as the iteration went; the slope of the slope has not settled.
# The slope of the compressor has a kink nearer to its point than the steps of the differences (at 1e-6 they agree).
ROUGH = {
    "textbook/bisection",
    "textbook/golden_section",
    "textbook/power_iteration",
    "users/audio_compressor",
}
# Whether a reshape copies is asked at run time, and the cotangents of pairs in a list are read at places that only the
# run knows, neither of which the gradient of the gradient follows yet.
REFUSED_TWICE = {
    "language/ravel_copy",
    "language/transpose_reshape_views-in_branch",
    "language/view_or_copy-at_top",
    "language/view_or_copy-in_for",
    "language/view_or_copy-in_branch",
    "science/lbfgs_two_loop",
}
# By name: which programs return one number is known when all have run.
SAMPLE = """
language/alias-at_top language/branch_without_effect language/chained_comparison-in_branch language/deep_nesting
language/empty_branches language/if_elif_else-in_branch language/list_order-in_for language/math_functions-in_for
language/newaxis_ellipsis-at_top language/np_creation-in_branch language/np_products-in_while language/np_where-in_while
language/popped_items-in_for language/recursive_closures-in_branch language/small_integers-in_branch
language/unpacking-in_branch language/zip_enumerate_reversed-at_top science/hamiltonian_leapfrog
textbook/bezier_arc_length textbook/fft_recursive textbook/lu_pivoting textbook/runge_kutta_4
""".split()


def check_second_order(program: Program) -> None:
    """Forward over reverse against differences of the gradient along a direction."""
    gradient, v, kwargs = program.decorated("python").grad, direction(program), program.kwargs()
    _, found = tg.differentiable(gradient, **python).jvp(program.args(), v, **kwargs)

    def at(t: float) -> dict[tuple, np.ndarray]:
        args = program.args()
        along = {(k, *path): leaf for k in program.positions() for path, leaf in floating(v[k]).items()}
        for path, slope in along.items():
            leaf = dict(leaves(args))[path]
            moved = np.copy(leaf, order="K") if isinstance(leaf, np.ndarray) else type(leaf)(leaf)
            moved += t * slope  # an array stays one of rows, or of columns
            args = with_leaf(args, path, moved)
        return floating(gradient(*args, **kwargs))

    def difference(h: float) -> dict[tuple, np.ndarray]:
        near, far = (at(h), at(-h)), (at(2 * h), at(-2 * h))
        return {k: (8 * (near[0][k] - near[1][k]) - (far[0][k] - far[1][k])) / (12 * h) for k in near[0]}

    expected, finer = difference(1e-4), difference(2.5e-5)
    have = floating(found)
    assert have.keys() == expected.keys()
    scale = max(1.0, *(float(np.max(np.abs(part), initial=0.0)) for part in expected.values()))
    for path, part in expected.items():
        doubt = float(np.max(np.abs(part - finer[path]), initial=0.0))
        assert doubt <= 1e-4 * scale, f"the differences themselves are unsure at {path}: {doubt}"
        np.testing.assert_allclose(have[path], part, rtol=0, atol=1e-6 * scale + 10 * doubt, err_msg=str(path))


@each([program for program in ACCEPTED if program.name in SAMPLE])
def test_sample_of_second_order(program: Program) -> None:
    assert program.is_scalar
    assert is_double(program)
    check_second_order(program)


@each([program for program in ACCEPTED if program.name in REFUSED_TWICE])
def test_refused_at_second_order(program: Program) -> None:
    gradient = tg.differentiable(program.decorated("python").grad, wrt=program.wrt, **python)
    with pytest.raises((NotDifferentiable, AliasError)):
        gradient.jvp(program.args(), direction(program), **program.kwargs())


@pytest.mark.whole
@each([program for program in ACCEPTED if program.name not in ROUGH | REFUSED_TWICE])
def test_second_order(program: Program) -> None:
    if program.is_scalar and is_double(program):
        check_second_order(program)


# ---- rules -----------------------------------------------------------------------------------------------------------


def _floats(args: tuple[Any, ...]) -> list[int]:
    """Positions of the arguments that can be differentiated: floats, and nothing beside them."""
    kinds = [{np.asarray(leaf).dtype.kind for leaf in flatten(arg)} for arg in args]
    return [k for k, found in enumerate(kinds) if found == {"f"}]


def _declares_floats(rule: Rule) -> bool:
    """Whether a rule declares a call with something to differentiate (np.fromfunction takes a function and sizes)."""
    declared = rule.domain is not None or rule.shapes is not None
    return declared and bool(_floats(next(iter(default_cases(rule)))[0]))


RULES = [rule for rule in all_rules() if rule.kind != "inactive" and _declares_floats(rule)]
# where the zeros at the ends are moved, for differences, the result has another size
RULES = [rule for rule in RULES if rule.func not in ONE_SECTION and rule.func is not np.trim_zeros]


def check_rule_twice(rule: Rule) -> None:
    """The first declared call of a rule, to second order in both modes."""
    args, kwargs = next(iter(default_cases(rule)))
    floats = _floats(args)
    params = ", ".join(f"x{k}" for k in floats)
    passed = ", ".join(f"x{k}" for k in range(len(args)))
    named = "".join(f", {name}={value!r}" for name, value in kwargs.items())
    text = f"def call({params}):\n    return function({passed}{named})\n"
    names = list(inspect.signature(rule.body).parameters) if rule.body is not None and rule.wrt else []
    wrt = tuple(at for at, k in enumerate(floats) if k >= len(names) or names[k] in rule.wrt)
    constants = {f"x{k}": arg for k, arg in enumerate(args) if k not in floats}
    function = function_from_text(text, {"function": rule.func, **constants})
    given = [args[k] for k in floats]
    tg.check_grads(function, *given, wrt=wrt, order=2, modes=("forward", "reverse"), rtol=1e-5, **python)


def each_rule(rules: list[Rule]) -> Any:
    return pytest.mark.parametrize("rule", [pytest.param(rule, id=rule.func.__name__) for rule in rules])


@each_rule(RULES[::6])
def test_sample_of_rules_to_second_order(rule: Rule) -> None:
    check_rule_twice(rule)


@pytest.mark.whole
@pytest.mark.filterwarnings("ignore:`row_stack` alias is deprecated:DeprecationWarning")
@each_rule(RULES)
def test_rules_to_second_order(rule: Rule) -> None:
    check_rule_twice(rule)


def test_check_grads_finds_a_wrong_second_derivative() -> None:
    def wrong(x: Any, *, out: Any, out_bar: Any) -> Any:
        return tg_exp_slope(x) * out_bar

    def right(x: Any, *, out: Any, x_dot: Any) -> Any:
        return tg_exp_slope(x) * x_dot

    registry.pullback(_exp)(wrong).pushforward(right)  # type: ignore[attr-defined]
    registry.partials(tg_exp_slope)(_two)
    try:
        tg.check_grads(lambda x: _exp(x), np.array([0.5, 1.0]), modes=("forward", "reverse"), **python)
        with pytest.raises(AssertionError, match="mode"):
            tg.check_grads(lambda x: _exp(x), np.array([0.5, 1.0]), order=2, **python)
    finally:
        del registry._RULES[_exp], registry._RULES[tg_exp_slope]


def _exp(x: np.ndarray) -> np.ndarray:
    return np.exp(x)


def tg_exp_slope(x: np.ndarray) -> np.ndarray:
    return np.exp(x)


def _two(x: Any) -> Any:
    return 2.0


def test_check_grads_refuses_unknown_modes() -> None:
    with pytest.raises(BadArgument):
        tg.check_grads(fifth, 2.0, modes=("sideways",))


def test_sequences_of_different_lengths_and_what_is_added_backwards() -> None:
    def f(signal: np.ndarray, weights: np.ndarray) -> np.ndarray:
        total = np.zeros(3)
        total[::-1] += np.convolve(signal, weights, "valid")
        return total

    signal, weights = np.array([1.0, 2.0, -0.5, 0.3, 0.8]), np.array([0.5, -1.5, 0.7])
    tg.check_grads(f, signal, weights, order=2, modes=("forward", "reverse"), **python)


# ---- nesting ---------------------------------------------------------------------------------------------------------


def fifth(x: float) -> float:
    y = 1.0
    for _ in range(5):
        y = y * x
    return y


def test_gradients_nest_to_order_five() -> None:
    derivative: Callable[..., Any] = fifth
    for expected in (80.0, 160.0, 240.0, 240.0, 120.0):
        derivative = tg.grad(derivative, **python)
        assert derivative(2.0) == pytest.approx(expected, rel=1e-13)


def growing(x: float) -> float:
    return np.exp(2.0 * x) * x


@BACKENDS
def test_modes_nest_in_any_order_to_order_four(backend: str) -> None:
    def forward(f: Callable[[float], float]) -> Callable[[float], float]:
        return lambda x: tg.jvp(f, (x,), (1.0,))[1]

    for word in ("rfrf", "frfr", "rrff", "ffrr"):
        derivative: Callable[..., Any] = growing
        for letter in word:
            derivative = tg.grad(derivative) if letter == "r" else forward(derivative)
        result = tg.differentiable(functools.partial(derivative), backend=backend)(0.3)
        assert result == pytest.approx((16.0 * 0.3 + 32.0) * np.exp(0.6), rel=1e-12), word
        if backend == "auto":
            break  # one compilation is enough


@BACKENDS
def test_newton_by_inner_gradients_in_a_while_loop(backend: str) -> None:
    def root(a: float) -> float:
        x = 1.0
        while abs(x * x - a) > 1e-13:
            value, slope = tg.value_and_grad(lambda y: y * y - a)(x)
            x = x - value / slope
        return x

    value, gradient = tg.value_and_grad(root, backend=backend)(2.0)
    assert value == pytest.approx(np.sqrt(2.0), rel=1e-14)
    assert gradient == pytest.approx(0.5 / np.sqrt(2.0), rel=1e-12)


@BACKENDS
def test_an_inner_descent_is_differentiated_through(backend: str) -> None:
    weights = np.array([1.0, 2.0, 3.0])

    def descent(k: np.ndarray) -> float:
        x = np.zeros(3)

        def loss(p: np.ndarray) -> float:
            return np.sum((p - k) ** 2 * weights)

        i = 0
        while i < 20:
            x -= 0.1 * tg.grad(loss)(x)
            i += 1
        return np.sum(x)

    gradient = tg.grad(descent, backend=backend)(np.array([1.0, 2.0, 3.0]))
    np.testing.assert_allclose(gradient, 1.0 - (1.0 - 0.2 * weights) ** 20, rtol=1e-12)


@tg.differentiable(wrt=("w", "x"))
def energy(w: dict, x: np.ndarray, n: int = 2) -> float:
    return np.sum(w["a"] * x**n) + w["b"]


def test_methods_of_a_differentiable_function_in_another_one() -> None:
    def f(x: np.ndarray) -> float:
        w = {"a": x * 2.0, "b": 1.0}
        value, (w_bar, x_bar) = energy.value_and_grad(w, x)
        first, second = energy.grad(w, x, n=3)
        return value + np.sum(w_bar["a"]) + w_bar["b"] + np.sum(x_bar) + np.sum(second) + np.sum(first["a"])

    x = np.array([1.0, 2.0])
    # value 2 x^3 + 1; w_bar = x^2, 1; x_bar = 4 x^2; second = 6 x^3; first = x^3
    expected = 6.0 * x**2 + 2.0 * x + 8.0 * x + 18.0 * x**2 + 3.0 * x**2
    np.testing.assert_allclose(tg.grad(f, **python)(x), expected, rtol=1e-13)


def test_auxiliary_results_and_no_gradient() -> None:
    def g(x: float) -> Any:
        return x * x, {"y": 3.0 * x, "name": "aux"}

    def f(x: float) -> float:
        slope, aux = tg.grad(g, has_aux=True)(x)
        (value, more), again = tg.value_and_grad(g, has_aux=True)(x)
        return slope * aux["y"] + value + again + more["y"]

    assert tg.grad(f, **python)(2.0) == pytest.approx(12.0 * 2.0 + 2.0 * 2.0 + 2.0 + 3.0)


def test_pullbacks_inside() -> None:
    def f(x: np.ndarray) -> float:
        y, pullback = tg.vjp(lambda z: {"s": z * z, "t": np.sum(z)}, x)
        x = x * 0.0
        first = pullback({"s": y["s"], "t": 1.0})
        return np.sum(first) + np.sum(x)

    x = np.array([1.0, 2.0])
    np.testing.assert_allclose(tg.grad(f, **python)(x), 6.0 * x**2, rtol=1e-13)


def test_a_pullback_remembers_the_arguments_as_they_were() -> None:
    def f(x: np.ndarray) -> float:
        buffer = x * 1.0
        _, pullback = tg.vjp(lambda z: z * z, buffer)
        buffer[:] = 7.0
        return np.sum(pullback(np.ones(2)))

    np.testing.assert_allclose(tg.grad(f, **python)(np.array([1.0, 2.0])), [2.0, 2.0])


def test_tangents_inside() -> None:
    def f(x: np.ndarray, k: float) -> float:
        value, tangent = tg.jvp(lambda z, s: s * z**3, (x, k), (x, None))
        other, along = energy.jvp(({"a": x, "b": k}, x), (None, np.ones(2)))
        return np.sum(value) + np.sum(tangent) + other + along

    x = np.array([1.0, 2.0])
    # k x^3 + 3 k x^3 + x^3 + k + 2 x^2
    expected = 12.0 * 0.5 * x**2 + 3.0 * x**2 + 4.0 * x
    np.testing.assert_allclose(tg.grad(f, **python)(x, 0.5), expected, rtol=1e-13)


def test_the_strong_product_has_the_derivative_of_a_product() -> None:
    def f(x: np.ndarray, y: np.ndarray) -> float:
        return np.sum(np.sqrt(x) * y)

    def mixed(y: np.ndarray) -> float:
        return np.sum(tg.grad(f)(np.array([1.0, 4.0]), y))

    np.testing.assert_allclose(tg.grad(mixed, **python)(np.zeros(2)), [0.5, 0.25])


def test_the_same_array_as_argument_and_closed_over() -> None:
    def f(x: np.ndarray) -> float:
        return np.sum(tg.grad(lambda y: np.sum(x * y * y))(x))

    x = np.array([1.0, 2.0])
    np.testing.assert_allclose(tg.grad(f, **python)(x), 4.0 * x)


def test_what_the_inner_function_raises_is_raised() -> None:
    def g(x: float) -> float:
        if x < 0.0:
            raise ValueError("negative")
        return x * x

    def f(x: float) -> float:
        return tg.grad(g)(x) + x

    assert tg.grad(f, **python)(1.0) == 3.0
    with pytest.raises(ValueError, match="negative"):
        tg.grad(f, **python)(-1.0)


def test_plain_python_gives_the_same() -> None:
    def f(x: np.ndarray) -> float:
        return np.sum(tg.grad(lambda y: np.sum(y**3))(x) * x)

    x = np.array([1.0, 2.0])
    assert f(x) == tg.differentiable(f)(x) == 27.0


# ---- refusals --------------------------------------------------------------------------------------------------------


def test_results_without_a_gradient_are_refused() -> None:
    def f(x: np.ndarray) -> float:
        return np.sum(tg.grad(lambda y: y * y)(x))

    with pytest.raises(BadArgument, match="no gradient"):
        tg.grad(f, **python)(np.ones(2))


def test_integers_have_no_gradient_inside() -> None:
    def f(x: np.ndarray, n: int) -> float:
        return np.sum(x) + tg.grad(lambda k: k * 2.0)(n)

    with pytest.raises(BadArgument, match="no gradient"):
        tg.grad(f, **python)(np.ones(2), 3)


def test_a_list_of_the_surrounding_function_is_changed_inside_once() -> None:
    def f(x: np.ndarray) -> float:
        kept = [0.0]

        def g(y: np.ndarray) -> float:
            kept.append(y[0])
            return np.sum(y * y)

        return np.sum(tg.grad(g)(x)) + kept[-1] * len(kept)

    value, gradient = tg.value_and_grad(f, **python)(np.array([3.0, 1.0]))
    assert value == 14.0
    assert gradient.tolist() == [4.0, 2.0]


def test_writing_one_of_two_names_of_an_array_is_refused() -> None:
    def f(x: np.ndarray) -> float:
        y = x * 1.0

        def g(z: np.ndarray) -> float:
            z[0] = 2.0 * y[1]
            return np.sum(z * y)

        return np.sum(tg.grad(g)(y))

    with pytest.raises(AliasError, match="may share memory"):
        tg.grad(f, **python)(np.ones(2))


def test_refusals_inside_point_at_the_users_code() -> None:
    def g(x: np.ndarray) -> float:
        return np.sum(np.sort_complex(x).real)

    def f(x: np.ndarray) -> float:
        return np.sum(tg.grad(g)(x))

    with pytest.raises(NotDifferentiable) as caught:
        tg.grad(f, **python)(np.ones(2))
    assert caught.value.span is not None
    assert caught.value.span.file == __file__


def scaled_by_position(v):
    s = v * 2.0
    k = 0
    while max(s) > -1.38 and k < 3:
        k += 1
        s = [s[i] * i for i in range(len(s))]
    return s[1] * s[1] * s[2]


def test_a_loop_that_is_written_out_ends_where_its_counter_says() -> None:
    """Behind an iteration that may be the last one its counter is known, where nothing else reads it."""
    found = tg.hessian(scaled_by_position, **python)(np.array([1.23, -1.43, 0.51]))
    expected = np.zeros((3, 3))
    expected[1, 1] = 16.0 * 8.0 * 0.51
    expected[1, 2] = expected[2, 1] = -16.0 * 8.0 * 1.43
    np.testing.assert_allclose(found, expected, rtol=1e-12)
