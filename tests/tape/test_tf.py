"""TensorFlow's names: values, gradients, dtypes, and what is said of names that are not here."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import scipy.special

import tapegen.tf as tf
from tapegen.tf.keras import layers, losses
from tapegen.tf.keras.optimizers import SGD

X = np.array([[0.3, -1.2, 0.7], [1.5, 0.4, -0.6]], np.float32)
P = np.abs(X) + np.float32(0.5)

CALLS: dict[str, tuple[Callable[[Any], Any], Any]] = {
    "reduce_mean": (lambda x: tf.reduce_mean(x, axis=[0, 1], keepdims=True), np.mean(X, keepdims=True)),
    "concat": (lambda x: tf.concat([x, x * 2.0], axis=1), np.concatenate([X, X * 2], 1)),
    "stack": (lambda x: tf.stack(tf.unstack(x, axis=1)), X.T),
    "split": (lambda x: tf.split(x, [1, 2], axis=1)[1], X[:, 1:]),
    "tile": (lambda x: tf.tile(x, [2, 1]), np.tile(X, (2, 1))),
    "reverse": (lambda x: tf.reverse(x, [0, 1]), X[::-1, ::-1]),
    "gather": (lambda x: tf.gather(x, tf.constant([2, 2, 0]), axis=1), X[:, [2, 2, 0]]),
    "gather_nd": (lambda x: tf.gather_nd(x, [[0, 1], [1, 2], [0, 1]]), X[[0, 1, 0], [1, 2, 1]]),
    "boolean_mask": (lambda x: tf.boolean_mask(x, x > 0.0), X[X > 0]),
    "where": (lambda x: tf.where(x > 0.0, x, 0.1 * x), np.where(X > 0, X, np.float32(0.1) * X)),
    "newaxis": (lambda x: x[:, tf.newaxis, ..., 0], X[:, None, 0]),
    "broadcast_to": (lambda x: tf.broadcast_to(x, (2, 2, 3)), np.broadcast_to(X, (2, 2, 3))),
    "reshape": (lambda x: tf.reshape(x, [tf.shape(x)[1] * 2, -1]), X.reshape(6, 1)),
    "cumsum": (lambda x: tf.cumsum(x, axis=1), np.cumsum(X, axis=1)),
    "sort": (lambda x: tf.sort(x), np.sort(X)),
    "matmul": (lambda x: tf.matmul(x, x, transpose_b=True), X @ X.T),
    "tensordot": (lambda x: tf.tensordot(x, x, axes=[[1], [1]]), X @ X.T),
    "einsum": (lambda x: tf.einsum("ij,kj->ik", x, x), X @ X.T),
    "matvec": (lambda x: tf.linalg.matvec(x, [1.0, 2.0, 3.0]), X @ np.float32([1, 2, 3])),
    "trace": (lambda x: tf.linalg.trace(tf.matmul(x, x, transpose_a=True)), np.trace(X.T @ X)),
    "cholesky": (
        lambda x: tf.linalg.cholesky(tf.matmul(x, x, transpose_b=True) + tf.eye(2)),
        np.linalg.cholesky(X @ X.T + np.eye(2, dtype=np.float32)),
    ),
    "diag_part": (lambda x: tf.linalg.diag_part(x), np.diagonal(X)),
    "erf": (lambda x: tf.math.erf(x), scipy.special.erf(X)),
    "atan2": (lambda x: tf.math.atan2(x, 2.0), np.arctan2(X, np.float32(2.0))),
    "rsqrt": (lambda x: tf.math.rsqrt(tf.abs(x) + 0.5), 1 / np.sqrt(P)),
    "lgamma": (lambda x: tf.math.lgamma(tf.abs(x) + 0.5), scipy.special.gammaln(P)),
    "xlogy": (lambda x: tf.math.xlogy(x, tf.abs(x) + 0.5), X * np.log(P)),
    "squared_difference": (lambda x: tf.math.squared_difference(x, 1.0), (X - 1) ** 2),
    "pad": (lambda x: tf.pad(x, tf.constant([[1, 0], [0, 2]])), np.pad(X, ((1, 0), (0, 2)))),
}


@pytest.mark.parametrize("name", CALLS)
def test_values_and_gradients(name: str) -> None:
    function, want = CALLS[name]
    x = tf.Variable(X)
    with tf.GradientTape() as tape:
        y = function(x)
    assert y.dtype == tf.float32
    np.testing.assert_allclose(y, want, rtol=3e-6, atol=1e-6)
    gradient = tape.gradient(y, x)
    wide = X.astype(float)
    for place in np.ndindex(X.shape):
        step = np.zeros_like(wide)
        step[place] = 1e-6
        ahead, behind = (function(tf.constant(wide + sign * step)).numpy().sum() for sign in (1, -1))
        np.testing.assert_allclose(gradient[place], (ahead - behind) / 2e-6, rtol=1e-4, atol=1e-5)


def test_values_take_single_precision_and_tensors_as_sizes() -> None:
    n = tf.constant(2)
    assert tf.zeros([n, 3]).shape == (2, 3) and tf.ones(n).dtype == tf.float32
    assert tf.range(1, 7, delta=2).numpy().tolist() == [1, 3, 5] and tf.range(n).dtype == tf.int32
    assert tf.one_hot([1, 0], 3).numpy().tolist() == [[0.0, 1.0, 0.0], [1.0, 0.0, 0.0]]
    assert tf.where([True, False], 1.0, 2.0).dtype == tf.float32
    assert tf.where(tf.constant([0.0, 3.0, 0.0, 1.0]) > 0.0).numpy().tolist() == [[1], [3]]
    assert (tf.rank(X).numpy(), tf.size(X).numpy(), tf.argmin(X, axis=1).numpy().tolist()) == (2, 6, [1, 2])
    assert tf.Variable(lambda: tf.ones((2,))).numpy().tolist() == [1.0, 1.0]
    assert sorted(tf.random.shuffle([3, 1, 2]).numpy()) == [1, 2, 3]


def test_print(capsys: pytest.CaptureFixture[str]) -> None:
    with tf.GradientTape():
        tf.print("loss", tf.Variable(2.0) * 2.0)
    assert capsys.readouterr().out == "loss 4.0\n"


def test_names_are_modules() -> None:
    class Scaled(layers.Layer):
        def build(self, input_shape: tuple[int, ...]) -> None:
            self.scale = tf.Variable(tf.ones(input_shape[-1:]), name="scale")

        def call(self, inputs: Any) -> Any:
            return inputs * self.scale

    model = tf.keras.Sequential([layers.Dense(2), Scaled()])
    with tf.GradientTape() as tape:
        loss = losses.mean_squared_error(tf.ones((4, 2)), model(tf.ones((4, 3))))
    variables = model.trainable_variables
    before = variables[2].numpy()
    assert [v.shape for v in variables] == [(3, 2), (2,), (2,)]
    gradients = tape.gradient(loss, variables)
    SGD(0.5).apply_gradients(zip(gradients, variables, strict=True))
    np.testing.assert_allclose(variables[2], before - 0.5 * gradients[2].numpy())
    assert model.layers[1].weights == model.layers[1].trainable_weights == [variables[2]]


@pytest.mark.parametrize(
    ("owner", "name"),
    [(tf, "raw_ops"), (tf.math, "bincount"), (tf.nn, "conv2d"), (tf.linalg, "logm"), (tf.keras, "Input")]
    + [(tf.keras.layers, "LSTM"), (tf.keras.losses, "Huber"), (tf.keras.optimizers, "Ftrl")],
)
def test_names_that_are_not_here(owner: Any, name: str) -> None:
    with pytest.raises(AttributeError, match=f"has no '{name}': .*NumPy's functions take tensors and are recorded"):
        getattr(owner, name)


def test_what_layers_do_not_have() -> None:
    with pytest.raises(AttributeError, match=r"'Layer' has no 'fit'.*write the training loop"):
        tf.keras.layers.Layer().fit([3.0])
