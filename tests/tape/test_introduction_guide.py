"""TensorFlow's "Introduction to gradients and automatic differentiation", block by block, and two tutorials after it.

Every block runs with `import tapegen.tf as tf` in the place of its import, and gives the numbers that the guide prints.
Two differ on purpose: NumPy functions are recorded here, and random numbers are our own.
"""

from __future__ import annotations

import re

import matplotlib as mpl

mpl.use("Agg")
import matplotlib.pyplot as plt
import numpy as np
import pytest

import tapegen.tf as tf
from tapegen.tf import gradient_registry


def test_a_scalar() -> None:
    x = tf.Variable(3.0)
    with tf.GradientTape() as tape:
        y = x**2
    dy_dx = tape.gradient(y, x)
    assert dy_dx.numpy() == 6.0
    assert str(dy_dx) == "tf.Tensor(6.0, shape=(), dtype=float32)"


def test_several_sources() -> None:
    w = tf.Variable(tf.random.normal((3, 2)), name="w")
    b = tf.Variable(tf.zeros(2, dtype=tf.float32), name="b")
    x = [[1.0, 2.0, 3.0]]
    with tf.GradientTape(persistent=True) as tape:
        y = x @ w + b
        loss = tf.reduce_mean(y**2)
    [dl_dw, dl_db] = tape.gradient(loss, [w, b])
    assert w.shape == dl_dw.shape == (3, 2)
    grad = tape.gradient(loss, {"w": w, "b": b})
    np.testing.assert_array_equal(grad["b"], dl_db)
    np.testing.assert_allclose(dl_db, y.numpy()[0], rtol=1e-6)
    assert grad["b"].dtype == tf.float32
    assert repr(grad["b"]).startswith("<tf.Tensor: shape=(2,), dtype=float32, numpy=array([")


def test_a_model() -> None:
    layer = tf.keras.layers.Dense(2, activation="relu")
    x = tf.constant([[1.0, 2.0, 3.0]])
    with tf.GradientTape() as tape:
        y = layer(x)
        loss = tf.reduce_mean(y**2)
    grad = tape.gradient(loss, layer.trainable_variables)
    printed = [f"{var.name}, shape: {g.shape}" for var, g in zip(layer.trainable_variables, grad, strict=True)]
    assert isinstance(layer.trainable_variables, list)
    assert [re.sub(r"^dense(_\d+)?/", "dense/", text) for text in printed] == [
        "dense/kernel:0, shape: (3, 2)",
        "dense/bias:0, shape: (2,)",
    ]
    named = tf.keras.layers.Dense(2, name="dense_1", input_shape=(3,))
    assert [var.name for var in named.weights] == ["dense_1/kernel:0", "dense_1/bias:0"]


def test_what_is_watched() -> None:
    x0 = tf.Variable(3.0, name="x0")
    x1 = tf.Variable(3.0, name="x1", trainable=False)
    x2 = tf.Variable(2.0, name="x2") + 1.0
    x3 = tf.constant(3.0, name="x3")
    with tf.GradientTape() as tape:
        y = (x0**2) + (x1**2) + (x2**2)
    grad = tape.gradient(y, [x0, x1, x2, x3])
    assert [str(g) for g in grad] == ["tf.Tensor(6.0, shape=(), dtype=float32)", "None", "None", "None"]
    assert [var.name for var in tape.watched_variables()] == ["x0:0"]


def test_watching() -> None:
    x = tf.constant(3.0)
    with tf.GradientTape() as tape:
        tape.watch(x)
        y = x**2
    assert tape.gradient(y, x).numpy() == 6.0
    x0, x1 = tf.Variable(0.0), tf.Variable(10.0)
    with tf.GradientTape(watch_accessed_variables=False) as tape:
        tape.watch(x1)
        y0 = tf.math.sin(x0)
        y1 = tf.nn.softplus(x1)
        y = y0 + y1
        ys = tf.reduce_sum(y)
    grad = tape.gradient(ys, {"x0": x0, "x1": x1})
    assert grad["x0"] is None
    assert str(grad["x1"].numpy()) == "0.9999546"


def test_intermediate_results_and_persistence() -> None:
    x = tf.constant(3.0)
    with tf.GradientTape() as tape:
        tape.watch(x)
        y = x * x
        z = y * y
    assert tape.gradient(z, y).numpy() == 18.0
    x = tf.constant([1, 3.0])
    with tf.GradientTape(persistent=True) as tape:
        tape.watch(x)
        y = x * x
        z = y * y
    assert str(tape.gradient(z, x).numpy()) == "[  4. 108.]"
    assert str(tape.gradient(y, x).numpy()) == "[2. 6.]"


def test_targets_that_are_not_scalar() -> None:
    x = tf.Variable(2.0)
    with tf.GradientTape(persistent=True) as tape:
        y0 = x**2
        y1 = 1 / x
    assert tape.gradient(y0, x).numpy() == 4.0
    assert tape.gradient(y1, x).numpy() == -0.25
    assert tape.gradient({"y0": y0, "y1": y1}, x).numpy() == 3.75
    with tf.GradientTape() as tape:
        y = x * [3.0, 4.0]
    assert tape.gradient(y, x).numpy() == 7.0


def test_the_sigmoid_can_be_plotted() -> None:
    x = tf.linspace(-10.0, 10.0, 200 + 1)
    with tf.GradientTape() as tape:
        tape.watch(x)
        y = tf.nn.sigmoid(x)
    dy_dx = tape.gradient(y, x)
    (line,) = plt.plot(x, y, label="y")
    (slope,) = plt.plot(x, dy_dx, label="dy/dx")
    plt.close()
    exact = 1 / (1 + np.exp(-x.numpy().astype(float)))
    np.testing.assert_allclose(line.get_ydata(), exact, rtol=1e-6)
    np.testing.assert_allclose(slope.get_ydata(), exact * (1 - exact), rtol=2e-6)


def test_control_flow() -> None:
    x = tf.constant(1.0)
    v0, v1 = tf.Variable(2.0), tf.Variable(2.0)
    with tf.GradientTape(persistent=True) as tape:
        tape.watch(x)
        result = v0 if x > 0.0 else v1**2
    dv0, dv1 = tape.gradient(result, [v0, v1])
    assert str(dv0) == "tf.Tensor(1.0, shape=(), dtype=float32)"
    assert dv1 is None
    assert tape.gradient(result, x) is None


def test_unconnected_and_replaced() -> None:
    x, y = tf.Variable(2.0), tf.Variable(3.0)
    with tf.GradientTape() as tape:
        z = y * y
    assert tape.gradient(z, x) is None
    printed = []
    for _ in range(2):
        with tf.GradientTape() as tape:
            y = x + 1
        printed.append(f"{type(x).__name__} : {tape.gradient(y, x)!s}")
        x = x + 1
    assert printed == ["Variable : tf.Tensor(1.0, shape=(), dtype=float32)", "Tensor : None"]


def test_numpy_functions_are_recorded_here() -> None:
    x = tf.Variable([[1.0, 2.0], [3.0, 4.0]], dtype=tf.float32)
    with tf.GradientTape(persistent=True) as tape:
        x2 = x**2
        y = np.mean(x2, axis=0)
        y = tf.reduce_mean(y, axis=0)
        left = tf.reduce_mean(np.mean(x2.numpy(), axis=0), axis=0)
    np.testing.assert_allclose(tape.gradient(y, x), x.numpy() / 2)
    assert tape.gradient(left, x) is None


def test_integers(caplog: pytest.LogCaptureFixture) -> None:
    x = tf.constant(10)
    with tf.GradientTape() as g:
        g.watch(x)
        y = x * x
    assert g.gradient(y, x) is None
    assert y.dtype == tf.int32
    assert "The dtype of the watched tensor must be floating" in caplog.text


def test_state() -> None:
    x0, x1 = tf.Variable(3.0), tf.Variable(0.0)
    with tf.GradientTape() as tape:
        x1.assign_add(x0)
        y = x1**2
    assert tape.gradient(y, x0) is None


def test_an_operation_without_a_gradient(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(gradient_registry, "_REGISTERED", {})
    picture = tf.Variable([[[0.5, 0.0, 0.0]]])
    delta = tf.Variable(0.1)

    def adjusted() -> object:
        with tf.GradientTape() as tape:
            new_image = tf.image.adjust_contrast(picture, delta)
        return tape.gradient(new_image, [picture, delta])

    with pytest.raises(LookupError, match="gradient registry has no entry for: AdjustContrastv2") as caught:
        adjusted()
    assert "test_introduction_guide.py" in str(caught.value) and "adjust_contrast(picture, delta)" in str(caught.value)

    @tf.RegisterGradient("AdjustContrastv2")
    def _gradient(op: object, upstream: tf.Tensor) -> object:
        images, factor = op.inputs  # type: ignore[attr-defined]
        mean = np.mean(images, axis=(-3, -2), keepdims=True)
        return upstream * factor, np.sum(upstream * (images - mean))

    first, second = adjusted()  # type: ignore[misc]
    np.testing.assert_allclose(first, np.full((1, 1, 3), 0.1), rtol=1e-6)
    assert second.numpy() == 0.0
    tf.no_gradient("AdjustContrastv2")
    assert adjusted() == [None, None]


def test_zeros_instead_of_none() -> None:
    x, y = tf.Variable([2.0, 2.0]), tf.Variable(3.0)
    with tf.GradientTape() as tape:
        z = y**2
    found = tape.gradient(z, x, unconnected_gradients=tf.UnconnectedGradients.ZERO)
    assert str(found) == "tf.Tensor([0. 0.], shape=(2,), dtype=float32)"


# ---- the tutorial --------------------------------------------------------------------------------------------------

W = [
    [-13.394766, 16.05925, 5.238968],
    [-2.6181564, -8.322439, 5.700083],
    [19.031418, -2.5960197, 6.4040756],
    [4.195833, 5.4652596, 4.5779514],
]


def test_a_tape_is_used_once() -> None:
    x = tf.Variable(2.0)
    with tf.GradientTape() as tape:
        y1 = x**2
        y2 = x**3
    assert str(tape.gradient(y1, x)) == "tf.Tensor(4.0, shape=(), dtype=float32)"
    with pytest.raises(RuntimeError, match="A non-persistent GradientTape can only be used to compute one set"):
        tape.gradient(y2, x)
    with tf.GradientTape(persistent=True) as tape:
        targets = [x**2, x**3, 4 * x + 1]
    assert [tape.gradient(target, x).numpy() for target in targets] == [4.0, 12.0, 4.0]


def linear(case: int, watch: bool) -> tuple[list, list[str]]:
    """The five kinds of `x` of the tutorial: values and gradients, and what was watched."""
    integer = case == 2
    kind = tf.int32 if integer else tf.float32
    w = tf.Variable(np.array([[1, 2, 3], [4, 5, 6], [7, 8, 9], [1, 1, 1]]) if integer else W, name="w", dtype=kind)
    b = tf.Variable(tf.ones(3, dtype=kind), name="b")
    x = {
        1: lambda: tf.Variable([[1, 2, 3, 4]], dtype=tf.float32, name="x"),
        2: lambda: tf.Variable([[1, 2, 3, 4]], dtype=tf.int32, name="x"),
        3: lambda: tf.Variable([[1, 2, 3, 4]], dtype=tf.float32, trainable=False),
        4: lambda: tf.constant([[1, 2, 3, 4]], dtype=tf.float32),
        5: lambda: tf.Variable([[1, 2, 3, 4]], dtype=tf.float32, name="x") + 1.0,
    }[case]()
    with tf.GradientTape(persistent=True) as tape:
        if watch:
            tape.watch(x)
        y = x @ w + b
        loss = tf.reduce_mean(y**2)
    gradients = [tape.gradient(y, x), tape.gradient(loss, y), tape.gradient(loss, x)]
    return [y, loss, *gradients], [variable.name for variable in tape.watched_variables()]


Y, LOSS = [[56.246506, 14.48735, 55.163166]], 2138.8425
DY_DX = [[7.903452, -5.240513, 22.839474, 14.239044]]
DLOSS_DY, DLOSS_DX = [[37.497673, 9.658234, 36.775444]], [[-154.50319, 31.068237, 924.07367, 378.47495]]
Y5, LOSS5 = [[63.46084, 25.093401, 77.08424]], 3532.9792
DLOSS_DY5, DLOSS_DX5 = [[42.307224, 16.728935, 51.389496]], [[-28.813324, 42.9319, 1090.8401, 504.20065]]


@pytest.mark.parametrize(
    ("case", "watch", "expected", "watched"),
    [
        (1, False, [Y, LOSS, DY_DX, DLOSS_DY, DLOSS_DX], ["w:0", "b:0", "x:0"]),
        (3, False, [Y, LOSS, None, DLOSS_DY, None], ["w:0", "b:0"]),
        (4, False, [Y, LOSS, None, DLOSS_DY, None], ["w:0", "b:0"]),
        (5, False, [Y5, LOSS5, None, DLOSS_DY5, None], ["w:0", "b:0"]),
        (1, True, [Y, LOSS, DY_DX, DLOSS_DY, DLOSS_DX], ["w:0", "b:0", "x:0"]),
        (3, True, [Y, LOSS, DY_DX, DLOSS_DY, DLOSS_DX], ["w:0", "b:0", "Variable:0"]),
        (4, True, [Y, LOSS, DY_DX, DLOSS_DY, DLOSS_DX], ["w:0", "b:0"]),
        (5, True, [Y5, LOSS5, DY_DX, DLOSS_DY5, DLOSS_DX5], ["w:0", "b:0"]),
    ],
)
def test_when_to_watch(case: int, watch: bool, expected: list, watched: list[str]) -> None:
    found, names = linear(case, watch)
    for value, number in zip(found, expected, strict=True):
        if number is None:
            assert value is None
        else:
            np.testing.assert_allclose(value, number, rtol=1e-6)
            assert value.dtype == tf.float32
    assert names == watched


@pytest.mark.parametrize("watch", [False, True])
def test_integers_have_no_gradients(watch: bool) -> None:
    (y, loss, *gradients), names = linear(2, watch)
    assert y.dtype == loss.dtype == tf.int32
    assert gradients == [None, None, None]
    assert names == ["w:0", "b:0", "x:0"]


def test_lists_and_dictionaries_of_sources_and_targets() -> None:
    w, b = tf.Variable(W, name="w"), tf.Variable(tf.ones(3), name="b")
    x = tf.Variable([[1, 2, 3, 4]], dtype=tf.float32, name="x")
    with tf.GradientTape(persistent=True) as tape:
        y = x @ w + b
        loss = tf.reduce_mean(y**2)
    dw, db = tape.gradient(loss, [w, b])
    np.testing.assert_allclose(dw, np.outer([1, 2, 3, 4], DLOSS_DY[0]), rtol=1e-6)
    np.testing.assert_allclose(db, DLOSS_DY[0], rtol=1e-6)
    both = tape.gradient(loss, {"tensor_w": w, "tensor_b": b})
    np.testing.assert_array_equal(both["tensor_w"], dw)
    np.testing.assert_array_equal(both["tensor_b"], db)
    total = tape.gradient({"tensor_y": y, "tensor_loss": loss}, x)
    np.testing.assert_allclose(total, [[-146.5997, 25.82772, 946.9131, 392.71396]], rtol=1e-6)


def test_two_layers() -> None:
    layer1 = tf.keras.layers.Dense(2, activation="relu", name="dense_1")
    layer2 = tf.keras.layers.Dense(4, activation="relu", name="dense_2")
    x = tf.constant([[1.0, 2.0, 3.0]])
    with tf.GradientTape(persistent=True) as tape:
        loss = tf.reduce_mean(layer2(layer1(x)) ** 2)
    for layer, shapes in ((layer1, [(3, 2), (2,)]), (layer2, [(2, 4), (4,)])):
        gradients = tape.gradient(loss, layer.trainable_variables)
        assert [gradient.shape for gradient in gradients] == shapes
        assert [variable.shape for variable in layer.trainable_variables] == shapes


@pytest.mark.parametrize("plotted", [False, True])
def test_a_branch_chooses_a_variable(plotted: bool) -> None:
    x1 = tf.linspace(-15.0, 15.0, 150 + 1) if plotted else tf.Variable(3.0)
    x2 = tf.linspace(-15.0, 15.0, 150 + 1) if plotted else tf.Variable(3.0)
    flag = tf.constant(2.0)
    with tf.GradientTape(persistent=True) as tape:
        tape.watch(x1)
        tape.watch(x2)
        tape.watch(flag)
        res1 = 4 * (x1**2) + 3 if flag % 2 == 0 else x2**3
    d1, d2 = tape.gradient(res1, [x1, x2])
    np.testing.assert_allclose(d1, 8 * x1.numpy(), rtol=1e-6)
    assert d2 is None
    with tf.GradientTape(persistent=True) as tape2:
        tape2.watch(x1)
        tape2.watch(x2)
        res2 = x2**3 if tf.math.equal(res1, 4 * (x1**2) + 3).numpy().all() else 4 * (x1**2) + 3
    d1, d2 = tape2.gradient(res2, [x1, x2])
    assert d1 is None
    np.testing.assert_allclose(d2, 3 * x2.numpy() ** 2, rtol=1e-6)
    assert tape.gradient(res2, [x1, x2]) == [None, None]
    plt.plot(x1, res1)
    plt.plot(x1, tape.gradient(res1, x1))
    plt.close()


def test_a_custom_gradient_that_does_not_overflow() -> None:
    @tf.custom_gradient
    def log1pexp(x: tf.Tensor) -> object:
        e = np.exp(x)

        def grad(upstream: tf.Tensor) -> tf.Tensor:
            return upstream * (1 - 1 / (1 + e))

        return np.log(1 + e), grad

    x = tf.constant(100.0)
    with tf.GradientTape() as tape, np.errstate(over="ignore"):
        tape.watch(x)
        y = log1pexp(x)
    with np.errstate(over="ignore"):
        assert tape.gradient(y, x).numpy() == 1.0
