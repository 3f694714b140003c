"""`tapegen.nn` against formulas, differences and hand-written steps."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import tapegen as tg
from tapegen import nn
from tapegen.errors import BadArgument
from tapegen.tape.tensors.tensor import Traced

EXACT: dict[str, tuple[Callable[[Any], Any], Callable[[Any], Any]]] = {
    "relu": (lambda x: np.maximum(x, 0), lambda x: (x > 0) * 1.0),
    "elu": (
        lambda x: np.where(x > 0, x, np.expm1(np.minimum(x, 0))),
        lambda x: np.where(x > 0, 1, np.exp(np.minimum(x, 0))),
    ),
    "tanh": (np.tanh, lambda x: 1 - np.tanh(x) ** 2),
    "softplus": (lambda x: np.logaddexp(0, x), lambda x: 1 / (1 + np.exp(-x))),
    "sigmoid": (lambda x: 1 / (1 + np.exp(-x)), lambda x: np.exp(-x) / (1 + np.exp(-x)) ** 2),
}
POINTS = np.array([-30.0, -3.0, -0.5, 0.0, 0.25, 2.0, 30.0])


@pytest.mark.parametrize("name", sorted(EXACT))
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_activations(name: str, dtype: type) -> None:
    value, slope = EXACT[name]
    function = getattr(nn, name)
    x = tg.Variable(POINTS.astype(dtype))
    with tg.GradientTape() as tape:
        y = function(x)
    dy = tape.gradient(y, x)
    rtol = 1e-12 if dtype is np.float64 else 1e-5
    np.testing.assert_allclose(y, value(POINTS), rtol=rtol, atol=1e-12)
    np.testing.assert_allclose(dy, slope(POINTS), rtol=rtol, atol=1e-12)
    assert y.dtype == dy.dtype == dtype
    plain = function(POINTS.astype(dtype))
    assert type(plain) is np.ndarray and plain.dtype == dtype
    np.testing.assert_array_equal(plain, y)


@pytest.mark.parametrize("name", ["elu", "softplus", "sigmoid"])
def test_second_derivatives_of_activations_at_zero(name: str) -> None:
    x = tg.Variable(np.array(0.0))
    with tg.GradientTape() as outer:
        with tg.GradientTape() as inner:
            y = getattr(nn, name)(x)
        dy = inner.gradient(y, x)
    expected = {"elu": 1.0, "softplus": 0.25, "sigmoid": 0.0}[name]  # of elu from below
    assert outer.gradient(dy, x).numpy() == pytest.approx(expected, abs=1e-15)


@pytest.mark.parametrize("name", sorted(EXACT))
def test_no_activation_overflows(name: str) -> None:
    x = tg.Variable(np.array([-1e4, 1e4]))
    with np.errstate(all="raise", under="ignore"), tg.GradientTape() as tape:
        y = getattr(nn, name)(x)
        dy = tape.gradient(y, x)
    assert np.all(np.isfinite(y)) and np.all(np.isfinite(dy))


def test_softmax_and_its_logarithm() -> None:
    logits = tg.Variable(np.random.default_rng(0).normal(size=(4, 3)) + np.array([[0], [1e3], [-1e3], [0]]))
    with tg.GradientTape(persistent=True) as tape:
        p, log_p = nn.softmax(logits), nn.log_softmax(logits)
        columns = nn.softmax(logits, axis=0)
    np.testing.assert_allclose(np.sum(p.numpy(), axis=1), 1.0)
    np.testing.assert_allclose(np.sum(columns.numpy(), axis=0), 1.0)
    np.testing.assert_allclose(np.exp(log_p.numpy()), p.numpy(), rtol=1e-12)
    jacobian = tape.batch_jacobian(p, logits).numpy()
    exact = np.einsum("bi,ij->bij", p.numpy(), np.eye(3)) - np.einsum("bi,bj->bij", p.numpy(), p.numpy())
    np.testing.assert_allclose(jacobian, exact, atol=1e-14)


def test_cross_entropy() -> None:
    rng = np.random.default_rng(1)
    labels, scores = np.array([2, 0, 1, 1]), rng.normal(size=(4, 3))
    logits = tg.Variable(scores)
    with tg.GradientTape() as tape:
        loss = nn.sparse_softmax_cross_entropy(labels, logits)
    p = np.exp(scores) / np.sum(np.exp(scores), axis=1, keepdims=True)
    np.testing.assert_allclose(loss, -np.log(p[np.arange(4), labels]))
    np.testing.assert_allclose(tape.gradient(loss, logits), p - np.eye(3)[labels])
    for wrong, message in [
        (labels[:3], "do not fit"),
        (labels + 1, "Count the classes from 0"),
        (labels * 1.0, "number of the class"),
    ]:
        with pytest.raises(BadArgument, match=message):
            nn.sparse_softmax_cross_entropy(wrong, logits)


def test_mean_squared_error() -> None:
    x = tg.Variable(np.array([[1.0, 2.0], [3.0, 5.0]]))
    with tg.GradientTape() as tape:
        loss = nn.mean_squared_error(np.zeros((2, 2)), x)
    np.testing.assert_array_equal(loss, [2.5, 17.0])
    np.testing.assert_array_equal(tape.gradient(loss, x), x.numpy())


# ---- modules and layers --------------------------------------------------------------------------------------------


class Model(nn.Module):
    def __init__(self) -> None:
        self.scale = tg.Variable(1.0, name="scale")
        self.blocks = [nn.Dense(3), {"inner": nn.Dense(2), "again": self.scale}]
        self.fixed = tg.Variable(2.0, trainable=False)
        self.pair = (self.scale, tg.Variable(0.0, name="shift"))
        self.me = self


def test_modules_collect_variables_once() -> None:
    model = Model()
    assert [v.name for v in model.trainable_variables] == ["scale", "shift"]
    model.blocks[1]["inner"](model.blocks[0](np.ones((1, 4))))
    assert [v.name for v in model.trainable_variables] == ["scale", "kernel", "bias", "kernel", "bias", "shift"]
    assert len(model.variables) == 7


def test_a_dense_layer() -> None:
    nn.set_seed(3)
    layer = nn.Dense(4, activation="relu")
    x = np.random.default_rng(0).normal(size=(5, 3))
    assert layer.trainable_variables == ()
    y = layer(x)
    kernel, bias = layer.trainable_variables
    assert kernel.shape == (3, 4) and bias.shape == (4,) and kernel.dtype == np.float64
    assert np.all(np.abs(kernel.numpy()) <= np.sqrt(6 / 7)) and np.all(bias.numpy() == 0)
    np.testing.assert_allclose(y, np.maximum(x @ kernel.numpy(), 0))
    nn.set_seed(3)
    again = nn.Dense(4, use_bias=False)
    assert again(x.astype(np.float32)).dtype == np.float32
    np.testing.assert_allclose(again.kernel.numpy(), kernel.numpy(), rtol=1e-6)
    assert len(again.variables) == 1
    with pytest.raises(BadArgument, match="has size 2, the kernel was made for 3"):
        layer(np.ones((1, 2)))
    with pytest.raises(BadArgument, match="number as its input"):
        layer(1.0)
    with pytest.raises(BadArgument, match="no size"):
        nn.Dense(0)
    with pytest.raises(BadArgument, match="'swish' is no activation"):
        nn.Dense(2, activation="swish")
    assert nn.Dense(2)([[1, 2]]).dtype == np.float64


def test_a_network_against_differences() -> None:
    nn.set_seed(5)
    model = nn.Sequential([nn.Dense(6, "tanh"), nn.BatchNormalization(), nn.Dense(3)])
    rng = np.random.default_rng(2)
    x, labels = rng.normal(size=(8, 4)), rng.integers(0, 3, 8)

    def loss() -> Any:
        return np.mean(nn.sparse_softmax_cross_entropy(labels, model(x)))

    loss()
    with tg.GradientTape() as tape:
        value = loss()
    for variable, gradient in zip(
        model.trainable_variables, tape.gradient(value, model.trainable_variables), strict=True
    ):
        before = variable.numpy().copy()
        direction = rng.normal(size=variable.shape)
        ends = []
        for step in (1e-5, -1e-5):
            variable.assign(before + step * direction)
            ends.append(float(loss()))
        variable.assign(before)
        np.testing.assert_allclose(
            np.sum(gradient.numpy() * direction), (ends[0] - ends[1]) / 2e-5, rtol=1e-6, atol=1e-9
        )


def test_batch_normalization_learns_the_statistics() -> None:
    layer = nn.BatchNormalization(momentum=0.5)
    x = np.random.default_rng(0).normal(2.0, 3.0, size=(50, 2))
    y = layer(x, training=True).numpy()
    np.testing.assert_allclose(y.mean(axis=0), 0, atol=1e-12)
    np.testing.assert_allclose(y.var(axis=0), 1, rtol=1e-3)
    np.testing.assert_allclose(layer.moving_mean.numpy(), 0.5 * x.mean(axis=0))
    np.testing.assert_allclose(layer.moving_variance.numpy(), 0.5 + 0.5 * x.var(axis=0))
    np.testing.assert_allclose(
        layer(x), (x - layer.moving_mean.numpy()) / np.sqrt(layer.moving_variance.numpy() + 1e-3), rtol=1e-12
    )


# ---- optimizers ----------------------------------------------------------------------------------------------------


def test_gradient_descent() -> None:
    v = tg.Variable(np.array([1.0, 2.0]))
    nn.SGD(0.1).apply_gradients([(np.array([1.0, -1.0]), v)])
    np.testing.assert_allclose(v.numpy(), [0.9, 2.1])
    optimizer = nn.SGD(0.1, momentum=0.9)
    velocity, expected = np.zeros(2), v.numpy().copy()
    for gradient in ([1.0, 0.0], [0.5, 2.0], [-1.0, 1.0]):
        velocity = 0.9 * velocity + 0.1 * np.array(gradient)
        expected = expected - velocity
        optimizer.apply_gradients([(tg.constant(gradient), v)])
    np.testing.assert_allclose(v.numpy(), expected)
    assert optimizer.iterations == 3


def test_adam() -> None:
    v = tg.Variable(np.array([1.0, -2.0], np.float32))
    w = tg.Variable(5.0)
    optimizer = nn.Adam(0.01, 0.8, 0.9, 1e-7)
    first, second, expected = np.zeros(2), np.zeros(2), np.array([1.0, -2.0])
    for t, gradient in enumerate(([1.0, 0.5], [0.5, 2.0], [-1.0, 1e-4]), start=1):
        g = np.array(gradient)
        first, second = 0.8 * first + 0.2 * g, 0.9 * second + 0.1 * g * g
        expected = expected - 0.01 * np.sqrt(1 - 0.9**t) / (1 - 0.8**t) * first / (np.sqrt(second) + 1e-7)
        optimizer.apply_gradients(zip([g.astype(np.float32), None], [v, w], strict=True))
    np.testing.assert_allclose(v.numpy(), expected, rtol=1e-6)
    assert v.dtype == np.float32 and w.numpy() == 5.0


def test_optimizers_take_pairs() -> None:
    v, gradient = tg.Variable([1.0]), tg.constant([1.0])
    for given in ([(v, gradient)], [gradient, v], [(gradient, v, v)]):
        with pytest.raises(tg.BadArgument, match="is no pair of a gradient and a variable") as caught:
            nn.SGD().apply_gradients(given)  # type: ignore[arg-type]
        assert "zip(gradients, variables)" in caught.value.advice


def test_what_optimizers_refuse() -> None:
    v = tg.Variable(np.ones(2))
    with pytest.raises(BadArgument, match="no variable has a gradient"):
        nn.Adam().apply_gradients([(None, v)])
    with pytest.raises(BadArgument, match="has shape \\(3,\\)"):
        nn.SGD().apply_gradients([(np.ones(3), v)])
    with pytest.raises(BadArgument, match="no rate"):
        nn.SGD(-1.0)
    np.testing.assert_array_equal(v.numpy(), 1.0)


def test_the_documentation(capsys: pytest.CaptureFixture, monkeypatch: pytest.MonkeyPatch) -> None:
    text = (Path(__file__).parents[2] / "docs" / "networks.md").read_text(encoding="utf-8")
    network, tensorflow = re.findall(r"^```python\n(.*?)^```$", text, re.MULTILINE | re.DOTALL)
    names: dict[str, Any] = {}
    exec(network, names)
    assert float(names["loss"]) < 0.1
    exec("import tapegen.tf", {})
    monkeypatch.setattr(Traced, "printed_as", "tf")
    exec(tensorflow, {})
    assert capsys.readouterr().out == tensorflow.split("# ")[-1]


def test_modules_know_the_modules_within() -> None:
    class Block(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.layers = [nn.Dense(2), {"last": nn.Dense(1)}]
            self.first = self.layers[0]
            self.whole = self
            self.scale = tg.Variable(1.0, trainable=False)

    block = Block()
    assert block.submodules == (block.first, block.layers[1]["last"])
    assert block.non_trainable_variables == (block.scale,)
    assert nn.Sequential([block]).submodules == (block, *block.submodules)
