"""Lines 87 to 103: Jacobians, higher orders, several tapes, forward mode."""

from __future__ import annotations

import logging
import re
from typing import Any

import numpy as np
import pytest

import tapegen as tg
from tapegen.tape import gradient_arguments


def test_line_087_shapes() -> None:
    x = tg.Variable(np.arange(6.0).reshape(3, 2))
    w = np.arange(6.0).reshape(2, 3) + 1.0
    with tg.GradientTape(persistent=True) as tape:
        y = w @ x
        scalar = np.sum(x)
        empty = x[:0, :0]
    got = tape.jacobian(y, x)
    assert got.shape == (2, 2, 3, 2)
    np.testing.assert_array_equal(got.numpy(), np.einsum("ik,jl->ijkl", w, np.eye(2)))
    assert tape.jacobian(scalar, x).shape == (3, 2)
    assert tape.jacobian(empty, x).shape == (0, 0, 3, 2)
    number = tg.Variable(3.0)
    with tg.GradientTape() as tape:
        y = number * number
    assert tape.jacobian(y, number).shape == ()
    nothing = tg.Variable(np.zeros(0))
    with tg.GradientTape() as tape:
        y = nothing * 2.0
    assert tape.jacobian(y, nothing).shape == (0, 0)


def test_line_088_structures() -> None:
    a, b = tg.Variable([1.0, 2.0]), tg.Variable(3.0)
    with tg.GradientTape() as tape:
        y = a * b
        z = a + b
    got = tape.jacobian({"y": y, "z": [z]}, {"a": a, "b": (b,)})
    assert got["y"]["a"].numpy().tolist() == [[3.0, 0.0], [0.0, 3.0]]
    assert got["y"]["b"][0].numpy().tolist() == [1.0, 2.0]
    assert got["z"][0]["a"].numpy().tolist() == [[1.0, 0.0], [0.0, 1.0]]


def test_line_089_without_persistence_and_inside() -> None:
    x = tg.Variable([1.0, 2.0])
    with tg.GradientTape() as tape:
        y = x * x
        got = tape.jacobian(y, x)
    assert got.numpy().tolist() == [[2.0, 0.0], [0.0, 4.0]]


@pytest.mark.parametrize("name", ["jacobian", "batch_jacobian"])
def test_line_090_and_098_without_pfor(name: str) -> None:
    text = (
        f"GradientTape must be created with persistent=True to compute the {name} with eager execution enabled and "
        "with  experimental_use_pfor set to False."
    )
    x = tg.Variable([[1.0, 2.0]])
    with tg.GradientTape() as tape:
        y = x * x
    with pytest.raises(RuntimeError, match=re.escape(text)):
        getattr(tape, name)(y, x, experimental_use_pfor=False)
    with tg.GradientTape(persistent=True) as tape:
        y = x * x
    assert getattr(tape, name)(y, x, experimental_use_pfor=False).size == 4


def test_line_091_unconnected() -> None:
    x, v = tg.Variable([1.0, 2.0]), tg.Variable([1.0, 2.0, 3.0])
    with tg.GradientTape(persistent=True) as tape:
        y = x * x
    assert tape.jacobian(y, v) is None
    zeros = tape.jacobian(y, v, unconnected_gradients="zero")
    assert zeros.shape == (2, 3) and not zeros.numpy().any()


def test_line_092_parallel_iterations() -> None:
    x = tg.Variable([1.0, 2.0])
    with tg.GradientTape(persistent=True) as tape:
        y = np.sin(x)
    one, two = (tape.jacobian(y, x, parallel_iterations=k).numpy() for k in (1, 10))
    assert (one == two).all()


def test_line_093_hessians() -> None:
    x = tg.Variable([1.0, 2.0])
    with tg.GradientTape() as outer:
        with tg.GradientTape() as inner:
            y = x[0] ** 3 + x[0] * x[1] + x[1] ** 3
        g = inner.gradient(y, x)
    assert outer.jacobian(g, x).numpy().tolist() == [[6.0, 1.0], [1.0, 12.0]]
    with tg.GradientTape() as outer:
        with tg.GradientTape() as inner:
            z = x * x * x[0]
        j = inner.jacobian(z, x)
    assert outer.jacobian(j, x).shape == (2, 2, 2)


# ---- batch_jacobian --------------------------------------------------------------------------------------------------


def test_line_094_rows() -> None:
    x = tg.Variable(np.arange(6.0).reshape(2, 3))
    w = np.arange(12.0).reshape(3, 4)
    with tg.GradientTape(persistent=True) as tape:
        y = (x * x) @ w
        z = np.reshape(y, (2, 2, 2))
    got = tape.batch_jacobian(y, x)
    assert got.shape == (2, 4, 3)
    np.testing.assert_array_equal(got.numpy(), np.einsum("ki,bk->bik", w, 2.0 * x.numpy()))
    assert tape.batch_jacobian(z, x).shape == (2, 2, 2, 3)


def test_line_095_refusals() -> None:
    x, flat = tg.Variable(np.ones((2, 3))), tg.Variable(np.ones(2))
    with tg.GradientTape(persistent=True) as tape:
        y = x.T * 2.0
        z = flat * 2.0
    with pytest.raises(ValueError, match=re.escape("Shape (2,) must have rank at least 2")):
        tape.batch_jacobian(z, flat)
    text = "Need first dimension of target shape ((3, 2)) and source shape ((2, 3)) to match."
    with pytest.raises(ValueError, match=re.escape(text)):
        tape.batch_jacobian(y, x)


def test_line_096_unconnected_rows_are_zero() -> None:
    x, v = tg.Variable(np.ones((2, 3))), tg.Variable(np.ones((2, 1)))
    with tg.GradientTape() as tape:
        y = x * 2.0
    got = tape.batch_jacobian(y, v)
    assert got.shape == (2, 3, 1) and not got.numpy().any()


def test_line_097_dependent_rows_are_summed() -> None:
    x = tg.Variable(np.array([[1.0], [2.0]]))
    with tg.GradientTape(persistent=True) as tape:
        y = x * np.sum(x)
        apart = x * x
    assert tape.batch_jacobian(y, x).numpy().ravel().tolist() == [6.0, 6.0]
    with pytest.raises(ValueError, match="a row of the target depends on another row of the source"):
        tape.batch_jacobian(y, x, check_rows=True)
    assert tape.batch_jacobian(apart, x, check_rows=True).numpy().ravel().tolist() == [2.0, 4.0]


def test_line_098_empty_rows() -> None:
    x = tg.Variable(np.ones((1, 0)))
    with tg.GradientTape() as tape:
        y = x * 2.0
    assert tape.batch_jacobian(y, x).shape == (1, 0, 0)


# ---- several tapes ---------------------------------------------------------------------------------------------------


def test_line_099_third_order() -> None:
    x = tg.Variable(2.0)
    with tg.GradientTape() as t3:
        with tg.GradientTape() as t2:
            with tg.GradientTape() as t1:
                y = x**4
            first = t1.gradient(y, x)
        second = t2.gradient(first, x)
    third = t3.gradient(second, x)
    assert [g.numpy() for g in (first, second, third)] == [32.0, 48.0, 48.0]


def test_line_100_inner_gradient_outside_the_outer_block() -> None:
    x = tg.Variable(2.0)
    with tg.GradientTape() as outer, tg.GradientTape() as inner:
        y = x**3
    first = inner.gradient(y, x)
    assert first.numpy() == 12.0
    assert outer.gradient(first, x) is None


def test_line_101_two_tapes_and_regularization() -> None:
    x0, x1 = tg.constant(0.0), tg.constant(0.0)
    with tg.GradientTape() as tape0, tg.GradientTape() as tape1:
        tape0.watch(x0)
        tape1.watch(x1)
        y = np.sin(x0) + 1 / (1 + np.exp(-x1))
    assert tape0.gradient(y, x0).numpy() == 1.0
    assert tape1.gradient(y, x1).numpy() == 0.25

    x = tg.Variable([1.0, 2.0])
    with tg.GradientTape() as outer:
        with tg.GradientTape() as inner:
            y = np.sum(x * x)
        g = inner.gradient(y, x)
        norm = np.sum(g * g)
    assert outer.gradient(norm, x).numpy().tolist() == [8.0, 16.0]


def test_line_102_hessian_vector_products() -> None:
    x = tg.Variable([1.0, 2.0])
    v = np.array([1.0, 0.0])
    with tg.GradientTape() as outer:
        with tg.GradientTape() as inner:
            y = np.sum(x**3)
        g = inner.gradient(y, x)
    assert outer.gradient(g, x, output_gradients=v).numpy().tolist() == [6.0, 0.0]
    x = tg.constant(3.0)
    with tg.ForwardAccumulator(x, tg.constant(1.0)) as acc:
        with tg.GradientTape() as tape:
            tape.watch(x)
            y = x**3
        g = tape.gradient(y, x)
    assert acc.jvp(g).numpy() == 18.0


def test_line_103_forward_accumulator(caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(gradient_arguments, "_counts", {})
    x, v = tg.constant([1.0, 2.0]), tg.Variable(3.0)
    with tg.ForwardAccumulator([x, v], [np.array([1.0, 0.0]), 1.0]) as acc:
        y = np.sum(x * v)
        inside = acc.jvp(y)
        with pytest.raises(ValueError, match=re.escape("Accumulator is already recording.")):
            acc.__enter__()
    assert inside.numpy() == acc.jvp(y).numpy() == 3.0 + 3.0
    other = tg.constant([1.0, 1.0])
    assert acc.jvp(other) is None
    assert acc.jvp([other], unconnected_gradients="zero")[0].numpy().tolist() == [0.0, 0.0]
    with pytest.raises(ValueError, match="of shape"):
        tg.ForwardAccumulator(x, np.ones(3))
    with caplog.at_level(logging.WARNING, "tapegen"):
        tg.ForwardAccumulator(tg.constant(1), tg.constant(1))
    text = "The dtype of the primal must be floating (e.g. float32), got int64"
    assert [record.getMessage() for record in caplog.records] == [text]


@pytest.mark.parametrize(
    "name",
    ["sin", "sort", "cumprod", "convolve", "solve", "concatenate", "where", "median", "einsum", "prod", "divide"],
)
def test_forward_equals_reverse_equals_differences(name: str) -> None:
    functions = {
        "sin": lambda x: np.sin(x) * x,
        "sort": lambda x: np.sort(x, axis=0)[::-1] * x,
        "cumprod": lambda x: np.cumprod(x, axis=1),
        "convolve": lambda x: np.convolve(x[0], x[1], "same"),
        "solve": lambda x: np.linalg.solve(x @ x.T + np.eye(2), x),
        "concatenate": lambda x: np.concatenate([x, x * x], axis=1)[:, ::2],
        "where": lambda x: np.where(x > 2.0, x, np.exp(x)),
        "median": lambda x: np.median(x * x, axis=1),
        "einsum": lambda x: np.einsum("ij,kj->ik", x, np.cos(x)),
        "prod": lambda x: np.prod(x, axis=1),
        "divide": lambda x: 1.0 / (2.0 + x) - x / 3.0,
    }
    f = functions[name]
    rng = np.random.default_rng(3)
    at, direction = rng.uniform(0.5, 3.0, (2, 3)), rng.normal(size=(2, 3))
    x = tg.constant(at)
    with tg.ForwardAccumulator(x, direction) as acc, tg.GradientTape(persistent=True) as tape:
        tape.watch(x)
        y = f(x)
    forward = acc.jvp(y).numpy()
    weights = rng.normal(size=np.shape(y))
    backward = tape.gradient(y, x, output_gradients=weights).numpy()
    step = 1e-6
    numeric = (f(at + step * direction) - f(at - step * direction)) / (2 * step)
    np.testing.assert_allclose(forward, numeric, rtol=1e-6, atol=1e-7)
    np.testing.assert_allclose(np.sum(backward * direction), np.sum(weights * forward), rtol=1e-10)


def test_a_tape_that_pauses_keeps_its_place() -> None:
    x = tg.Variable(2.0)
    with tg.GradientTape() as tape:
        with tg.ForwardAccumulator(x, 1.0) as accumulator:
            with tape.stop_recording():
                pass
            y = x**3
        slope = accumulator.jvp(y)
    assert tape.gradient(slope, x).numpy() == 12.0


@pytest.mark.parametrize("shape", [(1,), (1, 1), (2, 1), (3,)])
def test_tangents_of_numbers_beside_arrays(shape: tuple[int, ...]) -> None:
    x, others = tg.Variable(2.0), np.full(shape, 3.0)
    with tg.ForwardAccumulator(x, 1.0) as acc:
        y = others - x
        z = np.maximum(others * x, 0.0)
    np.testing.assert_array_equal(acc.jvp(y).numpy(), np.full(shape, -1.0))
    np.testing.assert_array_equal(acc.jvp(z).numpy(), others)


@pytest.mark.parametrize("options", [{}, {"ddof": 1}, {"keepdims": True}])
def test_second_order_of_deviations_from_a_given_mean(options: dict[str, Any]) -> None:
    @tg.differentiable(backend="python")
    def spread(v: Any) -> Any:
        return np.sum(np.std(v**2, mean=np.mean(v**2, keepdims=True), **options))

    start = np.array([1.0, 2.5, -0.3, 0.7])
    v = tg.Variable(start)
    with tg.GradientTape() as outer:
        with tg.GradientTape() as inner:
            y = spread.python(v)
        g = inner.gradient(y, v)
    np.testing.assert_allclose(outer.jacobian(g, v).numpy(), tg.hessian(spread)(start), rtol=1e-12)


@pytest.mark.parametrize("mode", ["mean", "median", "maximum", "minimum", "linear_ramp", "reflect", "wrap", "edge"])
def test_second_order_of_padding(mode: Any) -> None:
    @tg.differentiable(backend="python")
    def padded(v: Any) -> Any:
        return np.sum(np.pad(v**2, (1, 2), mode) ** 2)

    start = np.array([1.0, 2.5, -0.3, 0.7])
    v = tg.Variable(start)
    with tg.GradientTape() as outer:
        with tg.GradientTape() as inner:
            y = padded.python(v)
        g = inner.gradient(y, v)
    np.testing.assert_allclose(outer.jacobian(g, v).numpy(), tg.hessian(padded)(start), rtol=1e-12, atol=1e-12)
