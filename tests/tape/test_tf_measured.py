"""Names of TensorFlow: values and gradients as TensorFlow 2.21 gives them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import tapegen.tf as tf

X = [[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]]
A, B = [[4.0, 1.0], [1.0, 3.0]], [[1.0], [2.0]]

# what is computed, the sum of its elements weighed from 1 to 2, and that of its gradient's weighed 1, 2, 3, ...
OF_ONE: list[tuple[Callable[[Any], Any], float, float]] = [
    (lambda x: tf.concat([x, x * 2.0], axis=0), 105.0, 63.0),
    (lambda x: tf.stack([x, x], axis=-1), 69.36364, 42.0),
    (lambda x: tf.split(x, num_or_size_splits=3, axis=1)[1], 12.0, 7.0),
    (lambda x: tf.split(x, [1, 2], 1)[1], 26.33333, 16.0),
    (lambda x: tf.gather(x, [0, 0, 2], axis=1), 32.0, 19.0),
    (lambda x: tf.gather_nd(x, [[0, 1], [1, 2]]), 14.0, 8.0),
    (lambda x: tf.matmul(x, x, transpose_b=True), 264.0, 310.0),
    (lambda x: tf.linalg.matmul(x, x, transpose_a=True), 412.5, 522.0),
    (lambda x: tf.reduce_sum(x, axis=1, keepdims=True), 36.0, 21.0),
    (lambda x: tf.reduce_mean(x, axis=[0, 1]), 3.5, 3.5),
    (lambda x: tf.reduce_max(x, axis=0), 23.5, 15.0),
    (lambda x: tf.reduce_min(x), 1.0, 1.0),
    (lambda x: tf.reduce_prod(x, 1), 246.0, 378.0),
    (lambda x: tf.math.reduce_std(x, axis=0), 6.75, 4.5),
    (lambda x: tf.math.reduce_variance(x), 2.916667, 5.833334),
    (lambda x: tf.reduce_logsumexp(x, axis=1), 16.22282, 8.150421),
    (lambda x: tf.math.reduce_logsumexp(x), 6.456193, 5.432933),
    (lambda x: tf.where(x > 3.0, x**2, -x), 135.0, 148.0),
    (lambda x: tf.maximum(x, 3.5), 40.0, 15.0),
    (lambda x: tf.clip_by_value(x, 2.5, 4.5) * x, 141.2, 107.0),
    (lambda x: tf.tile(x, [1, 2]), 68.63636, 42.0),
    (lambda x: tf.repeat(x, 2, axis=0), 68.63636, 42.0),
    (lambda x: tf.reshape(x, [3, -1]), 35.0, 21.0),
    (lambda x: tf.transpose(x), 34.0, 21.0),
    (lambda x: tf.transpose(x[tf.newaxis], perm=[2, 0, 1]), 34.0, 21.0),
    (lambda x: tf.squeeze(tf.expand_dims(x, 0)), 35.0, 21.0),
    (lambda x: tf.pad(x, [[1, 0], [0, 1]]), 36.36364, 21.0),
    (lambda x: tf.pad(x, [[1, 0], [0, 1]], constant_values=2.0), 52.72727, 21.0),
    (lambda x: tf.roll(x, shift=1, axis=1), 33.8, 21.0),
    (lambda x: tf.reverse(x, axis=[1]), 33.4, 21.0),
    (lambda x: tf.cumsum(x, axis=1), 65.6, 38.0),
    (lambda x: tf.cumsum(x, axis=1, exclusive=True, reverse=True), 37.0, 25.0),
    (lambda x: tf.tensordot(x, x, axes=[[1], [1]]), 264.0, 310.0),
    (lambda x: tf.norm(x), 9.539392, 9.539391),
    (lambda x: tf.norm(x, axis=1), 21.29159, 12.51662),
    (lambda x: tf.linalg.normalize(x, axis=1)[0], 5.153705, 1.639128e-07),
    (lambda x: tf.nn.l2_normalize(x, axis=1), 5.153705, 1.639128e-07),
    (lambda x: tf.nn.l2_loss(x), 45.5, 91.0),
    (lambda x: tf.unstack(x, axis=1)[1], 12.0, 7.0),
    (lambda x: tf.slice(x, [0, 1], [2, 2]), 26.33333, 16.0),
    (lambda x: tf.math.top_k(x, k=2).values, 25.66667, 16.0),
    (lambda x: tf.sort(x, direction="DESCENDING"), 33.4, 21.0),
    (lambda x: tf.add_n([x, x, x]), 105.0, 63.0),
    (lambda x: tf.boolean_mask(x, x > 2.0), 28.66667, 18.0),
    (lambda x: tf.nn.softmax(x)[:, 0], 0.2700917, -0.2836342),
    (lambda x: tf.nn.softmax_cross_entropy_with_logits(labels=tf.one_hot([0, 2], 3), logits=x), 3.222818, 1.150421),
    (lambda x: tf.nn.sparse_softmax_cross_entropy_with_logits(labels=[0, 2], logits=x), 3.222818, 1.150421),
    (lambda x: tf.nn.sigmoid_cross_entropy_with_logits(labels=tf.ones_like(x), logits=x), 0.5796765, -0.7698697),
    (lambda x: tf.nn.leaky_relu(x - 3.0, alpha=0.1), 10.88, 15.6),
    (lambda x: tf.nn.relu6(x * 2.0), 47.6, 6.0),
    (lambda x: tf.nn.gelu(x - 3.0), 10.62026, 17.07923),
    (lambda x: tf.nn.selu(x - 3.0), 8.914088, 20.44409),
    (lambda x: tf.nn.silu(x - 3.0), 9.494872, 17.2471),
    (lambda x: tf.nn.swish(x - 3.0), 9.494872, 17.2471),
    (lambda x: tf.math.segment_sum(x, [0, 0]), 33.5, 21.0),
    (lambda x: tf.math.unsorted_segment_sum(x, [1, 0], 2), 29.6, 21.0),
    (lambda x: tf.nn.bias_add(x, [1.0, 2.0, 3.0]), 53.8, 21.0),
    (lambda x: tf.scalar_mul(2.0, x), 70.0, 42.0),
    (lambda x: tf.math.divide_no_nan(x, x - 1.0), 11.28333, -3.746944),
    (lambda x: tf.math.multiply_no_nan(x, tf.zeros_like(x)), 0.0, 0.0),
    (lambda x: tf.nn.moments(x, axes=[0])[1], 10.125, 13.5),
    (lambda x: tf.nn.embedding_lookup(x, [1, 1, 0]), 51.375, 36.0),
    (lambda x: tf.truediv(x, 2.0), 17.5, 10.5),
    (lambda x: tf.math.mod(x, 2.5), 8.5, 21.0),
    (lambda x: tf.meshgrid(x[0], x[1])[0], 27.75, 18.0),
    (lambda x: tf.tensor_scatter_nd_add(x, [[0, 1]], [9.0]), 45.8, 21.0),
    (lambda x: tf.scatter_nd([[0], [2]], x, [4, 3]), 31.45455, 21.0),
    (lambda x: x * tf.sequence_mask([1, 2], 3, dtype=tf.float32), 16.4, 10.0),
]
OF_TWO: list[tuple[Callable[[Any, Any], Any], float, float]] = [
    (lambda a, b: tf.linalg.solve(a, b), 1.363636, 1.528926),
    (lambda a, b: tf.linalg.inv(a), 0.7272727, -0.5785124),
    (lambda a, b: tf.linalg.det(a), 11.0, 14.0),
    (lambda a, b: tf.linalg.logdet(a), 2.397895, 1.272727),
    (lambda a, b: tf.linalg.slogdet(a)[1], 2.397895, 1.272727),
    (lambda a, b: tf.linalg.cholesky(a), 6.149958, 2.285501),
    (lambda a, b: tf.linalg.triangular_solve(a, b, lower=True), 1.416667, 1.763889),
    (lambda a, b: tf.linalg.cholesky_solve(tf.linalg.cholesky(a), b), 1.363636, 1.483471),
    (lambda a, b: tf.linalg.eigh(a)[0], 11.61804, 5.000001),
    (lambda a, b: tf.linalg.eigvalsh(a), 11.61804, 5.000001),
    (lambda a, b: tf.linalg.svd(a, compute_uv=False), 9.381967, 5.000001),
    (lambda a, b: tf.abs(tf.linalg.qr(a)[1]), 11.72256, 8.631415),
    (lambda a, b: tf.linalg.trace(a), 7.0, 5.0),
    (lambda a, b: tf.linalg.diag(a[0]), 6.0, 3.0),
    (lambda a, b: tf.linalg.diag_part(a), 10.0, 5.0),
    (lambda a, b: tf.linalg.matvec(a, b[:, 0]), 20.0, 65.0),
    (lambda a, b: tf.linalg.band_part(a, -1, 0), 11.66667, 8.0),
    (lambda a, b: tf.linalg.matrix_transpose(a) @ b, 20.0, 66.0),
    (lambda a, b: tf.linalg.set_diag(a, [0.0, 0.0]), 3.0, 5.0),
    (lambda a, b: tf.linalg.pinv(a), 0.7272727, -0.5785124),
    (lambda a, b: tf.linalg.lstsq(a, b), 1.363636, 1.528925),
    (lambda a, b: tf.linalg.cross([1.0, 2.0, 3.0], a[0, 0] * [0.0, 1.0, 2.0]), 0.0, 0.0),
    (lambda a, b: tf.linalg.norm(a), 5.196152, 4.041452),
    (lambda a, b: tf.linalg.tensor_diag(b[:, 0]), 5.0, 11.0),
    (lambda a, b: tf.linalg.global_norm([a, b]), 5.656854, 6.717514),
]


def measured(function: Callable[..., Any], *values: Any) -> tuple[float, float]:
    variables = [tf.Variable(value) for value in values]
    with tf.GradientTape() as tape:
        y = function(*variables)
    assert y.dtype == tf.float32
    counts = iter(range(1, 20))
    total = 0.0
    for gradient in tape.gradient(y, variables, unconnected_gradients="zero"):
        total += sum(next(counts) * float(item) for item in gradient.numpy().ravel())
    weights = np.linspace(1.0, 2.0, y.size).reshape(y.shape)
    return float(np.sum(np.asarray(y, float) * weights)), total


@pytest.mark.parametrize(("function", "value", "gradient"), OF_ONE)
def test_of_one(function: Callable[[Any], Any], value: float, gradient: float) -> None:
    np.testing.assert_allclose(measured(function, X), (value, gradient), rtol=2e-5, atol=2e-5)


@pytest.mark.parametrize(("function", "value", "gradient"), OF_TWO)
def test_of_two(function: Callable[[Any, Any], Any], value: float, gradient: float) -> None:
    np.testing.assert_allclose(measured(function, A, B), (value, gradient), rtol=2e-5, atol=2e-5)


def test_a_training_loop(capsys: pytest.CaptureFixture[str]) -> None:
    """TensorFlow's guide to basic training loops."""

    class MyModel(tf.Module):
        def __init__(self, **kwargs: Any) -> None:
            super().__init__(**kwargs)
            self.w = tf.Variable(5.0)
            self.b = tf.Variable(0.0)

        @tf.Module.with_name_scope
        def __call__(self, x: Any) -> Any:
            return self.w * x + self.b

    def loss(target_y: Any, predicted_y: Any) -> Any:
        return tf.reduce_mean(tf.square(target_y - predicted_y))

    @tf.function
    def train(model: Any, x: Any, y: Any, learning_rate: float) -> None:
        with tf.GradientTape() as t:
            current_loss = loss(y, model(x))
        dw, db = t.gradient(current_loss, [model.w, model.b])
        model.w.assign_sub(learning_rate * dw)
        model.b.assign_sub(learning_rate * db)

    x = tf.cast(tf.linspace(-2.0, 2.0, 21), tf.float32)
    y = x * 3.0 + 2.0
    model = MyModel()
    print(model.variables)
    for _ in range(10):
        train(model, x, y, learning_rate=0.1)
    print(f"{model.w.numpy():1.2f} {model.b.numpy():1.2f} {loss(y, model(x)):2.5f}")
    print(model.w)
    assert capsys.readouterr().out == (
        "(<tf.Variable 'Variable:0' shape=() dtype=float32, numpy=0.0>, "
        "<tf.Variable 'Variable:0' shape=() dtype=float32, numpy=5.0>)\n"
        "3.06 1.79 0.05178\n"
        "<tf.Variable 'Variable:0' shape=() dtype=float32, numpy=3.0621120929718018>\n"
    )


def test_control_flow_written_as_functions() -> None:
    x = tf.Variable(1.5)
    with tf.GradientTape(persistent=True) as tape:
        i, a = tf.while_loop(lambda i, a: i < 3, lambda i, a: (i + 1, a * 2.0 + 1.0), [tf.constant(0), x * 1.0])
        r = tf.cond(x > 1.0, lambda: x * x, lambda: x)
        m = tf.map_fn(lambda row: row * x, tf.constant([[1.0, 2.0], [3.0, 4.0]]))
        s = tf.scan(lambda last, row: last * x + row, tf.constant([1.0, 2.0]), tf.constant(1.0))
    assert (i.numpy(), a.numpy(), tape.gradient(a, x).numpy()) == (3, 19.0, 8.0)
    assert (r.numpy(), tape.gradient(r, x).numpy()) == (2.25, 3.0)
    assert m.shape == (2, 2) and tape.gradient(m, x).numpy() == 10.0
    assert s.numpy().tolist() == [2.5, 5.75] and tape.gradient(s, x).numpy() == 5.0


def test_keras_layers() -> None:
    class Linear(tf.keras.layers.Layer):
        def build(self, input_shape: Any) -> None:
            self.w = self.add_weight(shape=(input_shape[-1], 2), initializer="random_normal", trainable=True)
            self.b = self.add_weight(shape=(2,), initializer="zeros", trainable=True)

        def call(self, inputs: Any) -> Any:
            return tf.matmul(inputs, self.w) + self.b

    model = tf.keras.Sequential(
        [
            tf.keras.layers.Flatten(),
            tf.keras.layers.Dense(4, activation="relu", input_shape=(6,)),
            tf.keras.layers.Dropout(0.5),
            Linear(),
        ]
    )
    assert len(model.trainable_weights) == 2  # those of an input shape
    x = tf.random.truncated_normal((8, 2, 3))
    assert float(tf.reduce_max(tf.abs(x))) <= 2.0
    with tf.GradientTape() as tape:
        loss = tf.reduce_sum(model(x, training=True) ** 2)
    assert [v.shape for v in model.trainable_weights] == [(6, 4), (4,), (4, 2), (2,)]
    assert [g.shape for g in tape.gradient(loss, model.trainable_weights)] == [(6, 4), (4,), (4, 2), (2,)]
    dropped = tf.nn.dropout(tf.ones((40, 40)), 0.25).numpy()
    assert set(np.unique(dropped)) == {0.0, np.float32(1.0 / 0.75)}
    assert tf.is_tensor(x) and not tf.is_tensor(X)
    again = [tf.random.stateless_uniform((3,), seed=(1, 2)).numpy() for _ in range(2)]
    np.testing.assert_array_equal(*again)
    with pytest.raises(Exception, match="initializer='he' is unknown"):
        Linear().add_weight((2,), "he")


def test_keras_losses() -> None:
    losses = tf.keras.losses
    found = [
        losses.BinaryCrossentropy(from_logits=True)([0.0, 1.0], [0.3, -0.2]),
        losses.CategoricalCrossentropy(from_logits=True)([[0.0, 1.0]], [[0.3, -0.2]]),
        losses.MeanAbsoluteError()([0.0, 1.0], [0.3, -0.2]),
    ]
    np.testing.assert_allclose(found, [0.8262471, 0.974077, 0.75], rtol=1e-6)


@pytest.mark.parametrize(
    ("optimizer", "reached"),
    [
        (tf.keras.optimizers.SGD(0.01, momentum=0.9, nesterov=True), [0.7705585, -1.1337291, 0.1936275]),
        (tf.keras.optimizers.RMSprop(0.01), [0.9105434, -1.9098474, 0.4120054]),
        (
            tf.keras.optimizers.RMSprop(0.01, rho=0.8, momentum=0.5, epsilon=1e-3),
            [0.8957112, -1.8950353, 0.3970240],
        ),
    ],
)
def test_keras_optimizers(optimizer: Any, reached: list[float]) -> None:
    v = tf.Variable([1.0, -2.0, 0.5])
    for _ in range(4):
        with tf.GradientTape() as tape:
            y = tf.reduce_sum(v**2 * [1.0, 2.0, 3.0])
        optimizer.apply_gradients([(tape.gradient(y, v), v)])
    np.testing.assert_allclose(v.numpy(), reached, rtol=1e-6)


def test_exponential_of_a_matrix() -> None:
    x = tf.Variable([[0.5, 1.0], [-0.3, 0.2]])
    with tf.GradientTape() as tape:
        y = tf.linalg.expm(x)
        total = tf.reduce_sum(y * [[1.0, 2.0], [3.0, 4.0]])
    assert y.dtype == tf.float32
    np.testing.assert_allclose(y.numpy(), [[1.4298342, 1.3543404], [-0.4063021, 1.0235323]], rtol=1e-6)
    np.testing.assert_allclose(
        tape.gradient(total, x).numpy(), [[2.005662, 1.648073], [7.5983801, 5.0080752]], rtol=1e-6
    )


def test_shapes() -> None:
    x = tf.Variable([[1.0, 2.0, 3.0]])
    assert x.shape == (1, 3) and x.shape.as_list() == [1, 3] and str(x.shape) == "(1, 3)"
    assert (x.shape.rank, x.shape.ndims, x.shape.num_elements(), tf.constant(1.0).shape.as_list()) == (2, 2, 3, [])
    with tf.GradientTape() as tape:
        y = np.broadcast_to(tf.reshape(x, (3,)), (2, *x.shape.as_list()))
        z = np.sum(np.reshape(y, (2, *x.shape)) * np.ones(x.shape))
    assert tape.gradient(z, x).numpy().tolist() == [[2.0, 2.0, 2.0]]
