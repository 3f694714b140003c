"""Batches of batches, batches inside of functions, derivatives of batches."""

from __future__ import annotations

import inspect
import pickle
from typing import Any

import numpy as np
import pytest

import tapegen as tg
from tapegen.errors import BadArgument, NotDifferentiable
from tests.api.test_batch import COUNT, drawn, energy, halvings
from tests.judged import both

rows = tg.batch(halvings, (0, None), backend="python")
double = tg.batch(rows, (0, None), backend="python")


@both
def test_a_batch_of_a_batch(backend: str) -> None:
    x = drawn(2, COUNT, 3)
    wanted = [[halvings(each, 0.7) for each in row] for row in x]
    np.testing.assert_allclose(tg.batch(rows, (0, None), backend=backend)(x, 0.7), wanted)
    gradients = tg.batch(rows.grad, (0, None), backend=backend)(x, 0.7)
    single = tg.grad(halvings, backend="python")
    np.testing.assert_allclose(gradients, [[single(each, 0.7) for each in row] for row in x])


@both
def test_a_batch_inside_a_function(backend: str) -> None:
    def loss(x, k):
        return np.sum(rows(x, k) ** 2) + np.sum(rows.grad(x, k))

    def by_loop(x, k):
        total = 0.0
        for each in x:
            total = total + halvings(each, k) ** 2 + np.sum(tg.grad(halvings)(each, k))
        return total

    x = drawn(COUNT, 3)
    value, (of_x, of_k) = tg.value_and_grad(loss, (0, 1), backend=backend)(x, 0.7)
    wanted, (x_wanted, k_wanted) = tg.value_and_grad(by_loop, (0, 1), backend="python")(x, 0.7)
    np.testing.assert_allclose(value, wanted)
    np.testing.assert_allclose(of_x, x_wanted)
    np.testing.assert_allclose(of_k, k_wanted)


@both
def test_derivatives_of_a_batch(backend: str) -> None:
    x = drawn(COUNT, 3)
    jacobian = tg.jacobian(tg.batch(halvings, (0, None), backend=backend), backend=backend)(x, 0.7)
    for k in range(COUNT):
        np.testing.assert_allclose(jacobian[k, k], tg.grad(halvings, backend="python")(x[k], 0.7))
    assert np.count_nonzero(jacobian) == x.size
    hessian = tg.jacobian(rows.grad, backend=backend)(x, 0.7)
    np.testing.assert_allclose(hessian[1, :, 1], tg.hessian(halvings, backend="python")(x[1], 0.7))


@both
def test_a_batch_made_inside_a_function(backend: str) -> None:
    def loss(x, k):
        def energy_of(y):
            return np.sum(y**3) * k

        batched = tg.batch(energy_of)
        total = np.sum(batched(x)) + np.sum(batched.grad(x)) + np.sum(batched.value_and_grad(x)[0])
        return total + np.sum(batched.jvp((x,), (x,))[1]) + np.sum(tg.batch(halvings, (0, None)).grad(x, 0.7))

    def by_hand(x, k):
        total = np.sum(x**3) * k * 5.0 + np.sum(3.0 * x**2) * k
        for each in x:
            total = total + np.sum(tg.grad(halvings)(each, 0.7))
        return total

    x = drawn(COUNT, 3)
    value, (of_x, of_k) = tg.value_and_grad(loss, (0, 1), backend=backend)(x, 0.7)
    wanted, (x_wanted, k_wanted) = tg.value_and_grad(by_hand, (0, 1), backend="python")(x, 0.7)
    np.testing.assert_allclose(value, wanted)
    np.testing.assert_allclose(of_x, x_wanted)
    np.testing.assert_allclose(of_k, k_wanted)


def test_what_a_batch_inside_a_function_cannot_do() -> None:
    def products(x):
        return np.sum(tg.batch(lambda y: np.sum(y * x[0])).hvp((x,), (x,)))

    def pulled(x):
        return np.sum(rows.vjp(x, 0.7)[1](np.ones(COUNT)))

    x = drawn(COUNT, 3)
    with pytest.raises(NotDifferentiable, match="'hvp' of the batch of a function that is defined here"):
        tg.grad(products, backend="python")(x)
    with pytest.raises(NotDifferentiable, match=r"'Batch.vjp' is called here"):
        tg.grad(pulled, backend="python")(x)
    wanted = np.sum(rows.grad(x, 0.7))
    assert tg.differentiable(lambda y: np.sum(tg.vjp(rows, y, 0.7)[1](np.ones(COUNT)))).python(x) == pytest.approx(
        wanted
    )


@pytest.mark.parametrize(
    ("options", "reason"),
    [
        ({"in_axes": "x"}, "in_axes holds 'x', which is no axis"),
        ({"in_axis": 0}, "tg.batch takes no 'in_axis'"),
        ({"in_axes": 2}, "'y' has 2 axes, and in_axes says that its instances lie along axis 2"),
    ],
)
def test_bad_options_inside_a_function(options: dict[str, Any], reason: str) -> None:
    def of_a_local_function(x):
        return np.sum(tg.batch(lambda y: np.sum(y * x[0]), **options)(x))

    def of_another(x):
        return np.sum(tg.batch(cube_sum, **options)(x))

    for func in (of_a_local_function, of_another):
        with pytest.raises(BadArgument, match=reason) as raised:
            tg.grad(func, backend="python")(drawn(COUNT, 3))
        assert raised.value.span is not None
        assert raised.value.span.file == __file__


def cube_sum(y):
    return np.sum(y**3)


def test_axes_of_one_element_that_a_function_makes() -> None:
    """Only arguments of the whole program say of each axis whether it has one element."""
    products = tg.batch(lambda a, b: a * b, backend="python")

    def loss(x, w, k):
        return np.sum(products(x[:, :k], w))

    x, w = drawn(COUNT, 3), drawn(COUNT, 3)[::-1]
    for k in (1, 3):
        value, gradient = tg.value_and_grad(loss, backend="python")(x, w, k)
        assert value == pytest.approx(np.sum(x[:, :k] * w))
        wanted = np.zeros_like(x)
        wanted[:, :k] = np.sum(w, axis=1, keepdims=True) if k == 1 else w
        np.testing.assert_allclose(gradient, wanted)


def test_one_object_for_one_function() -> None:
    """A batch that is made in a loop compiles once."""
    assert tg.batch(halvings, [0, None]) is tg.batch(halvings, (0, None))
    assert tg.batch(halvings, {"x": 0, "k": None}) is tg.batch(halvings, {"x": 0, "k": None})
    assert tg.batch(halvings, (0, None)) is not tg.batch(halvings, (1, None))
    assert tg.batch(halvings, (0, None), backend="python") is tg.batch(halvings, (0, None), backend="python")
    assert pickle.loads(pickle.dumps(rows)) is pickle.loads(pickle.dumps(rows))


def test_a_differentiable_function_keeps_its_options() -> None:
    decorated = tg.differentiable(energy, has_aux=True, backend="python")
    assert tg.batch(decorated).options == decorated.options
    assert tg.batch(decorated, wrt="x").options.wrt == "x"


def test_pickles_and_signatures() -> None:
    copied = pickle.loads(pickle.dumps(rows))
    np.testing.assert_array_equal(copied(drawn(COUNT, 3), 0.7), rows(drawn(COUNT, 3), 0.7))
    assert list(inspect.signature(rows.python).parameters) == ["x", "k"]
    assert "halvings" in repr(rows)
