"""TensorFlow's "Advanced automatic differentiation", block by block (but for SavedModel)."""

from __future__ import annotations

import matplotlib as mpl

mpl.use("Agg")
import matplotlib.pyplot as plt
import numpy as np
import pytest

import tapegen.tf as tf


@pytest.fixture(autouse=True)
def _seed() -> None:
    tf.random.set_seed(4)


def test_stop_recording() -> None:
    x, y = tf.Variable(2.0), tf.Variable(3.0)
    with tf.GradientTape() as t:
        x_sq = x * x
        with t.stop_recording():
            y_sq = y * y
        z = x_sq + y_sq
    grad = t.gradient(z, {"x": x, "y": y})
    assert grad["x"].numpy() == 4.0 and grad["y"] is None


def test_start_from_scratch() -> None:
    x, y = tf.Variable(2.0), tf.Variable(3.0)
    with tf.GradientTape() as t:
        y_sq = y * y
        t.reset()
        z = x * x + y_sq
    grad = t.gradient(z, {"x": x, "y": y})
    assert grad["x"].numpy() == 4.0 and grad["y"] is None


def test_stop_gradient() -> None:
    x, y = tf.Variable(2.0), tf.Variable(3.0)
    with tf.GradientTape() as t:
        y_sq = y**2
        z = x**2 + tf.stop_gradient(y_sq)
    grad = t.gradient(z, {"x": x, "y": y})
    assert grad["x"].numpy() == 4.0 and grad["y"] is None


@tf.custom_gradient
def clip_gradients(y: tf.Tensor) -> object:
    def backward(dy: tf.Tensor) -> tf.Tensor:
        return tf.clip_by_norm(dy, 0.5)

    return y, backward


def test_a_custom_gradient() -> None:
    v = tf.Variable(2.0)
    with tf.GradientTape() as t:
        output = clip_gradients(v * v)
    assert t.gradient(output, v).numpy() == 2.0


class Model(tf.Module):
    @tf.function(input_signature=[tf.TensorSpec(None)])
    def call_custom_grad(self, x: tf.Tensor) -> tf.Tensor:
        return clip_gradients(x)


def test_a_custom_gradient_in_a_module() -> None:
    model = Model()
    v = tf.Variable(2.0)
    with tf.GradientTape() as t:
        output = model.call_custom_grad(v * v)
    assert t.gradient(output, v).numpy() == 2.0


def test_two_tapes() -> None:
    x0, x1 = tf.constant(0.0), tf.constant(0.0)
    with tf.GradientTape() as tape0, tf.GradientTape() as tape1:
        tape0.watch(x0)
        tape1.watch(x1)
        y0 = tf.math.sin(x0)
        y1 = tf.nn.sigmoid(x1)
        y = y0 + y1
        ys = tf.reduce_sum(y)
    assert tape0.gradient(ys, x0).numpy() == 1.0
    assert tape1.gradient(ys, x1).numpy() == 0.25


def test_higher_order() -> None:
    x = tf.Variable(1.0)
    with tf.GradientTape() as t2:
        with tf.GradientTape() as t1:
            y = x * x * x
        dy_dx = t1.gradient(y, x)
    d2y_dx2 = t2.gradient(dy_dx, x)
    assert dy_dx.numpy() == 3.0 and d2y_dx2.numpy() == 6.0


def test_input_gradient_regularization() -> None:
    x = tf.random.normal([7, 5])
    layer = tf.keras.layers.Dense(10, activation=tf.nn.relu)
    with tf.GradientTape() as t2:
        with tf.GradientTape(watch_accessed_variables=False) as t1:
            t1.watch(x)
            y = layer(x)
            out = tf.reduce_sum(layer(x) ** 2)
        g1 = t1.gradient(out, x)
        g1_mag = tf.norm(g1)
    dg1_mag = t2.gradient(g1_mag, layer.trainable_variables)
    assert y.shape == (7, 10)
    assert [var.shape for var in dg1_mag] == [(5, 10), (10,)]
    kernel, bias = (v.numpy().astype(float) for v in layer.trainable_variables)

    def magnitude(k: np.ndarray) -> float:
        h = np.maximum(x.numpy() @ k + bias, 0)
        return float(np.linalg.norm(2 * h @ k.T))

    step = np.zeros_like(kernel)
    step[2, 3] = 1e-5
    slope = (magnitude(kernel + step) - magnitude(kernel - step)) / 2e-5
    np.testing.assert_allclose(dg1_mag[0].numpy()[2, 3], slope, rtol=1e-3)


def test_the_jacobian_of_a_scalar_source() -> None:
    x = tf.linspace(-10.0, 10.0, 200 + 1)
    delta = tf.Variable(0.0)
    with tf.GradientTape() as tape:
        y = tf.nn.sigmoid(x + delta)
    dy_dx = tape.jacobian(y, delta)
    assert y.shape == (201,) and dy_dx.shape == (201,)
    plt.plot(x.numpy(), y, label="y")
    plt.plot(x.numpy(), dy_dx, label="dy/dx")
    plt.close()
    np.testing.assert_allclose(dy_dx, y.numpy() * (1 - y.numpy()), atol=1e-7)


def test_the_jacobian_of_a_tensor_source() -> None:
    x = tf.random.normal([7, 5])
    layer = tf.keras.layers.Dense(10, activation=tf.nn.relu)
    with tf.GradientTape(persistent=True) as tape:
        y = layer(x)
    assert y.shape == (7, 10) and layer.kernel.shape == (5, 10)
    j = tape.jacobian(y, layer.kernel)
    assert j.shape == (7, 10, 5, 10)
    g = tape.gradient(y, layer.kernel)
    j_sum = tf.reduce_sum(j, axis=[0, 1])
    delta = tf.reduce_max(abs(g - j_sum)).numpy()
    assert delta < 1e-5


def test_a_newton_step_with_the_hessian() -> None:
    x = tf.random.normal([7, 5])
    layer1 = tf.keras.layers.Dense(8, activation=tf.nn.relu)
    layer2 = tf.keras.layers.Dense(6, activation=tf.nn.relu)
    with tf.GradientTape() as t2:
        with tf.GradientTape() as t1:
            loss = tf.reduce_mean(layer2(layer1(x)) ** 2)
        g = t1.gradient(loss, layer1.kernel)
    h = t2.jacobian(g, layer1.kernel)
    assert layer1.kernel.shape == (5, 8) and h.shape == (5, 8, 5, 8)
    n_params = tf.reduce_prod(layer1.kernel.shape)
    g_vec = tf.reshape(g, [n_params, 1])
    h_mat = tf.reshape(h, [n_params, n_params])
    lim = tf.reduce_max(abs(h_mat))
    plt.imshow(h_mat, vmin=-lim, vmax=lim, cmap="seismic")
    plt.colorbar()
    plt.close()
    np.testing.assert_allclose(h_mat, h_mat.numpy().T, atol=1e-6)
    eps = 1e-3
    eye_eps = tf.eye(h_mat.shape[0]) * eps
    update = tf.linalg.solve(h_mat + eye_eps, g_vec)
    before = layer1.kernel.numpy().copy()
    _ = layer1.kernel.assign_sub(tf.reshape(update, layer1.kernel.shape))
    np.testing.assert_allclose(layer1.kernel.numpy(), before - update.numpy().reshape(5, 8), rtol=1e-6)
    smaller = tf.reduce_mean(layer2(layer1(x)) ** 2)
    assert smaller.numpy() < loss.numpy()


def test_batch_jacobians() -> None:
    x = tf.random.normal([7, 5])
    layer1 = tf.keras.layers.Dense(8, activation=tf.nn.elu)
    layer2 = tf.keras.layers.Dense(6, activation=tf.nn.elu)
    with tf.GradientTape(persistent=True, watch_accessed_variables=False) as tape:
        tape.watch(x)
        y = layer1(x)
        y = layer2(y)
    assert y.shape == (7, 6)
    j = tape.jacobian(y, x)
    assert j.shape == (7, 6, 7, 5)
    j_sum = tf.reduce_sum(j, axis=2)
    j_select = tf.einsum("bxby->bxy", j)
    np.testing.assert_allclose(j_sum, j_select, atol=1e-6)
    jb = tape.batch_jacobian(y, x)
    assert jb.shape == (7, 6, 5)
    assert tf.reduce_max(abs(jb - j_sum)).numpy() < 1e-5


def test_rows_that_depend_on_each_other() -> None:
    x = tf.random.normal([7, 5])
    layer1 = tf.keras.layers.Dense(8, activation=tf.nn.elu)
    bn = tf.keras.layers.BatchNormalization()
    layer2 = tf.keras.layers.Dense(6, activation=tf.nn.elu)
    with tf.GradientTape(persistent=True, watch_accessed_variables=False) as tape:
        tape.watch(x)
        y = layer1(x)
        y = bn(y, training=True)
        y = layer2(y)
    j = tape.jacobian(y, x)
    assert j.shape == (7, 6, 7, 5)
    jb = tape.batch_jacobian(y, x)
    j_sum = tf.reduce_sum(j, axis=2)
    j_select = tf.einsum("bxby->bxy", j)
    np.testing.assert_allclose(jb, np.moveaxis(j.numpy().sum(axis=0), 0, 1), atol=1e-5)  # sums over the batch
    assert tf.reduce_max(abs(j_sum - j_select)).numpy() > 1e-3
