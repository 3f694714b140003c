"""Modes inside modes: small programs whose derivatives are known, or follow from the other mode or from differences."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import tapegen as tg
from tapegen.errors import BadArgument, NotDifferentiable
from tests.judged import both

python = {"backend": "python"}
X = np.array([0.7, -0.4, 1.2])
V = np.array([0.3, 1.1, -0.6])


def cube(x):
    return np.sum(x**3)


def loops_and_stores(x):
    work = x.copy()
    total = 0.0
    for i in range(1, len(x)):
        work[i] = work[i] * work[i - 1] + np.sin(x[i])
        total += work[i] * work[i]
    return total


def with_a_mask(x):
    return np.sum(np.where(x > 0.0, x**4, -(x**3))) + np.sum(x[x > 0.5] ** 2)


def with_a_branch(x):
    s = 0.0
    for v in x:
        if v < 0.0:
            s += np.exp(v) * x[0]
        else:
            s += v**3
    return s


def with_a_while(x):
    y = 1.0
    while abs(y * y - x[0]) > 1e-14:
        y = 0.5 * (y + x[0] / y)
    return y * x[1] * x[1] + x[2] ** 3


def with_matrices(x):
    m = np.outer(x, x) + 2.0 * np.eye(3)
    return np.linalg.slogdet(m)[1] + x @ np.linalg.solve(m, x)


def with_a_maximum(x):
    return np.max(x) ** 3 * np.min(x)


def with_sorting(x):
    return np.sum(np.sort(x)[1:] ** 3 * np.sort(x)[:-1])


def with_a_list(x):
    parts = []
    for v in x:
        parts.append(v * v * x[0])
    return parts[0] * parts[2] + parts[1]


def with_padding(x):
    return np.sum(np.pad(x, 2, "reflect") ** 3)


def with_views(x):
    m = np.zeros((2, 3))
    m[0] = x * x
    m[1] = m[0][::-1] * x
    return np.sum(m.T @ m)


def with_a_scan(x):
    return np.sum(np.cumsum(x) ** 3) + np.prod(x)


FUNCTIONS = [
    cube,
    loops_and_stores,
    with_a_mask,
    with_a_branch,
    with_a_while,
    with_matrices,
    with_a_maximum,
    with_sorting,
    with_a_list,
    with_padding,
    with_views,
    with_a_scan,
]
each = pytest.mark.parametrize("f", FUNCTIONS, ids=lambda f: f.__name__)


def difference(f: Callable, x: np.ndarray, v: np.ndarray) -> Any:
    """The derivative along a direction, by differences of eighth order."""
    h = 2.0**-8
    weights = ((1, 4 / 5), (2, -1 / 5), (3, 4 / 105), (4, -1 / 280))
    return sum(w * (np.asarray(f(x + k * h * v)) - np.asarray(f(x - k * h * v))) for k, w in weights) / h


@each
def test_every_way_to_a_product_of_the_hessian(f: Callable) -> None:
    expected = difference(tg.grad(f, **python), X, V)
    close = {"rtol": 1e-8, "atol": 1e-9}
    np.testing.assert_allclose(tg.hvp(f, (X,), (V,), **python), expected, **close)  # forward over reverse
    np.testing.assert_allclose(tg.hessian(f, **python)(X) @ V, expected, **close)
    np.testing.assert_allclose(tg.jvp(tg.grad(f, **python), (X,), (V,), **python)[1], expected, **close)

    def slope(x):
        return tg.jvp(f, (x,), (V,), **python)[1]

    np.testing.assert_allclose(tg.grad(slope, **python)(X), expected, **close)  # reverse over forward

    def product(x):
        return np.dot(tg.grad(f, **python)(x), V)

    np.testing.assert_allclose(tg.grad(product, **python)(X), expected, **close)  # reverse over reverse
    np.testing.assert_allclose(tg.jvp(slope, (X,), (V,), **python)[1], V @ expected, **close)  # forward over forward


@pytest.mark.parametrize("f", FUNCTIONS[1::4], ids=lambda f: f.__name__)
def test_third_order(f: Callable) -> None:
    def curvature(x):
        return np.dot(tg.hvp(f, (x,), (V,), **python), V)

    expected = difference(lambda x: tg.hvp(f, (x,), (V,), **python) @ V, X, V)
    np.testing.assert_allclose(tg.grad(curvature, **python)(X) @ V, expected, rtol=1e-7, atol=1e-8)


@pytest.mark.whole
@each
def test_third_order_of_all(f: Callable) -> None:
    test_third_order(f)


@each
def test_linear_functions_are_tangents(f: Callable) -> None:
    value, linear = tg.linearize(f, X, **python)
    assert value == f(X)
    np.testing.assert_allclose(linear(V), tg.grad(f, **python)(X) @ V, rtol=1e-12)


def test_fourth_order_of_a_power() -> None:
    def f(x):
        return x**6

    derivative = f
    for _ in range(4):
        derivative = tg.grad(derivative, **python)
    np.testing.assert_allclose(derivative(0.9), 360 * 0.9**2, rtol=1e-13)


def test_newton_inside_against_the_implicit_function_theorem() -> None:
    def residual(y, a):
        return y**3 + a * y - 2.0

    def solve(a):
        y = 1.0
        for _ in range(20):
            y = y - residual(y, a) / tg.grad(residual)(y, a)
        return y

    a = 1.7
    y = solve(a)
    slope = -y / (3 * y * y + a)
    np.testing.assert_allclose(tg.grad(solve, **python)(a), slope, rtol=1e-12)
    # d/da of -y / (3 y^2 + a), y itself depending on a
    bottom = 3 * y * y + a
    curvature = -slope / bottom + y * (6 * y * slope + 1) / bottom**2
    np.testing.assert_allclose(tg.grad(tg.grad(solve, **python), **python)(a), curvature, rtol=1e-11)


def test_newton_for_systems_with_an_inner_jacobian() -> None:
    def residual(y, p):
        return np.array([y[0] ** 2 + y[1] - p[0], y[1] ** 3 - y[0] * p[1]])

    def solve(p):
        y = np.array([1.0, 1.0])
        for _ in range(15):
            y = y - np.linalg.solve(tg.jacobian(residual)(y, p), residual(y, p))
        return y

    p = np.array([2.5, 1.4])
    y = solve(p)
    by_y = tg.jacobian(residual, wrt=0, **python)(y, p)
    by_p = tg.jacobian(residual, wrt=1, **python)(y, p)
    for mode in ("forward", "reverse"):
        found = tg.jacobian(solve, mode=mode, **python)(p)
        np.testing.assert_allclose(found, -np.linalg.solve(by_y, by_p), rtol=1e-10)


def test_jacobian_of_a_gradient_is_symmetric_and_of_pytrees_nested() -> None:
    def f(p):
        return np.sum(p["w"] ** 2 * p["b"]) + p["b"] ** 3

    p = {"w": np.array([1.0, 2.0]), "b": 0.5}
    found = tg.hessian(f, **python)(p)
    np.testing.assert_allclose(found["w"]["w"], np.diag([1.0, 1.0]))
    np.testing.assert_allclose(found["w"]["b"], 2.0 * p["w"])
    np.testing.assert_allclose(found["b"]["w"], 2.0 * p["w"])
    np.testing.assert_allclose(found["b"]["b"], 3.0)


def test_jacobian_of_a_pullback() -> None:
    def f(x):
        return np.sin(x) * x[::-1]

    def pulled(x):
        _, pullback = tg.vjp(f, x, **python)
        return pullback(V)

    expected = np.stack([difference(pulled, X, direction) for direction in np.eye(3)], axis=1)
    for mode in ("forward", "reverse"):
        np.testing.assert_allclose(tg.jacobian(pulled, mode=mode, **python)(X), expected, rtol=1e-8, atol=1e-9)


def test_a_jacobian_in_a_loop_is_differentiated() -> None:
    def step(y, k):
        return y + 0.1 * np.array([y[1] * k, -np.sin(y[0])])

    def stretch(k):
        y = np.array([0.3, 0.2])
        m = np.eye(2)
        for _ in range(4):
            m = tg.jacobian(step)(y, k) @ m
            y = step(y, k)
        return np.sum(m * m)

    expected = difference(lambda t: stretch(t[0]), np.array([1.3]), np.array([1.0]))
    np.testing.assert_allclose(tg.grad(stretch, **python)(1.3), expected, rtol=1e-9)
    np.testing.assert_allclose(tg.jvp(stretch, (1.3,), (1.0,), **python)[1], expected, rtol=1e-9)


def test_a_gradient_with_auxiliary_results_and_mutation_inside() -> None:
    def inner(x, scratch):
        scratch[0] = x[0] * x[1]
        return scratch[0] * x[2] ** 2

    def outer(x):
        return np.sum(tg.grad(inner)(x, np.zeros(1)) ** 2)

    expected = tg.grad(lambda x: (x[1] * x[2] ** 2) ** 2 + (x[0] * x[2] ** 2) ** 2 + (2 * x[0] * x[1] * x[2]) ** 2)
    np.testing.assert_allclose(tg.grad(outer, **python)(X), expected(X), rtol=1e-12)


class Counter:
    def __init__(self):
        self.n = 1


def counts_in_a_dict(x, held):
    held["n"] += 1
    held["new"] = 2.0
    return np.sum(x**3) * held["n"]


def appends(x, held):
    held.append(2.0)
    return np.sum(x**3) * len(held)


def counts_in_an_object(x, held):
    held.n += 1
    return np.sum(x**3) * held.n


HELD: list[tuple[Callable[..., Any], Callable[[], Any], Callable[[Any], float]]] = [
    (counts_in_a_dict, lambda: {"n": 1}, lambda held: held["n"] * held["new"]),
    (appends, lambda: [1.0], lambda held: len(held) + held[-1]),
    (counts_in_an_object, Counter, lambda held: held.n),
]

INSIDE: list[Callable[..., Any]] = [
    lambda f, x, held: tg.jvp(f, (x, held), (V, None))[1],
    lambda f, x, held: tg.jvp(f, [x, held], [V, None])[0],
    lambda f, x, held: tg.jvp(f, primals=(x, held), tangents=(V, None))[1],
    lambda f, x, held: np.sum(tg.hvp(f, (x, held), (V, None)) * V),
    lambda f, x, held: np.sum(tg.vjp(f, x, held)[1](1.0) * V),
    lambda f, x, held: np.sum(tg.grad(f)(x, held) * V),
    lambda f, x, held: np.sum(tg.jacobian(f)(x, held) * V),
    lambda f, x, held: np.sum(tg.hessian(f)(x, held)),
]


@pytest.mark.parametrize(("f", "make", "read"), HELD, ids=[f.__name__ for f, _, _ in HELD])
@pytest.mark.parametrize("inside", INSIDE)
def test_a_function_inside_stores_into_its_arguments(
    f: Callable, make: Callable, read: Callable, inside: Callable
) -> None:
    def outer(x):
        held = make()
        z = x * 1.0
        first = inside(f, z, held)
        return first * inside(f, z, held) * read(held)

    value, gradient = tg.value_and_grad(outer, **python)(X)
    assert value == pytest.approx(outer(X), rel=1e-12)
    np.testing.assert_allclose(gradient @ V, difference(outer, X, V), rtol=1e-7)


def test_a_decorated_function_is_not_made_inside() -> None:
    with pytest.raises(NotDifferentiable, match="is called inside of a differentiated function"):
        tg.grad(lambda x: tg.differentiable(cube)(x) * 2.0, **python)(X)


@pytest.mark.parametrize("f", [cube, with_a_branch], ids=lambda f: f.__name__)
def test_compiled_as_eager(f: Callable) -> None:
    np.testing.assert_allclose(tg.hessian(f)(X), tg.hessian(f, **python)(X), rtol=1e-12)


def test_gradients_by_numbers_of_python_are_numbers_of_python() -> None:
    def energy(k: Any, x: Any) -> Any:
        return np.sum((k * x) ** 2)

    def slope(k: Any, x: Any) -> Any:
        return tg.grad(energy)(k, x)

    x = np.arange(3.0)
    for backend in ("python", "numba"):
        found = tg.differentiable(slope, backend=backend)(2.0, x)
        assert (type(found), found) == (float, slope(2.0, x))
        assert (type(slope(2.0, x)), slope(2.0, x)) == (float, 20.0)


def test_columns_of_jacobians_by_numbers_of_python_are_arrays() -> None:
    def row(k: Any, x: Any) -> Any:
        return tg.jacobian(lambda a: np.sin(a * x))(k)

    x = np.arange(3.0)
    for backend in ("python", "numba"):
        np.testing.assert_allclose(tg.differentiable(row, backend=backend)(2.0, x), x * np.cos(2.0 * x), rtol=1e-15)


BOTH = (0, 1)


def test_arguments_of_a_derivative_inside_are_chosen_outside() -> None:
    def chosen(wrt):
        def product(p):
            a, b = tg.grad(lambda a, b: np.sum(a**2 * b), wrt=wrt)(p, 2.0 * p)
            c, d = tg.grad(lambda a, b: np.sum(a**2 * b), wrt=BOTH)(p, p)
            return a @ b + c @ d

        return product

    p = np.array([0.3, -1.2, 0.7])
    value, gradient = tg.value_and_grad(chosen((0, 1)), backend="python")(p)
    assert value == pytest.approx(6.0 * np.sum(p**4))
    np.testing.assert_allclose(gradient, 24.0 * p**3)


def test_a_product_of_the_hessian_takes_its_arguments_from_the_tangents() -> None:
    x = np.array([0.3, -1.2])
    with pytest.raises(BadArgument, match=r"hvp has no argument .wrt"):
        tg.hvp(lambda a, b: np.sum(a**2 * b), (x, x), (x, None), wrt=0, backend="python")


@both
def test_tangents_and_cotangents_of_another_shape_are_errors(backend: str) -> None:
    """They could be broadcast, or be read in part."""

    def pushed(x, v):
        return np.sum(tg.jvp(lambda u: u * u, (x,), (v,))[1])

    def pulled(x, v):
        _, pullback = tg.vjp(lambda u: u * u, x)
        return np.sum(pullback(v))

    x = np.array([1.0, 2.0, 3.0])
    for func in (pushed, pulled):
        derived = tg.differentiable(func, backend=backend)
        np.testing.assert_allclose(derived.grad(x, np.ones(3)), [2.0, 2.0, 2.0])
        for wrong in (np.ones(1), np.ones(2), np.ones(4)):
            with pytest.raises(BadArgument, match=r"(tangent of 'u'|cotangent of result 0) has shape"):
                derived(x, wrong)
