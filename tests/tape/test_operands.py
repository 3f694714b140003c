"""What stands beside a tensor, on either side; what tensors refuse to be."""

from __future__ import annotations

import copy
import operator
import pickle
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import scipy.special

import tapegen as tg

BESIDE: dict[str, Callable[[], Any]] = {
    "int": lambda: 2,
    "float": lambda: 2.5,
    "float64": lambda: np.float64(2.5),
    "array": lambda: np.array([2.0, 3.0]),
    "wide": lambda: np.array([[2.0, 3.0], [4.0, 5.0]]),
    "number": lambda: np.array(2.5),
    "list": lambda: [2.0, 3.0],
    "tensor": lambda: tg.constant([2.0, 3.0]),
    "variable": lambda: tg.Variable([2.0, 3.0]),
}
OPERATORS = [operator.add, operator.sub, operator.mul, operator.truediv, operator.pow, operator.mod]


def plain(value: Any) -> Any:
    return value.numpy() if isinstance(value, tg.Tensor | tg.Variable) else np.asarray(value)


@pytest.mark.parametrize("swap", [False, True])
@pytest.mark.parametrize("beside", BESIDE)
@pytest.mark.parametrize("apply", OPERATORS, ids=lambda f: f.__name__)
def test_operators_on_either_side(apply: Callable[..., Any], beside: str, swap: bool) -> None:
    other = BESIDE[beside]()
    x = tg.Variable([1.3, 0.7])

    def function(x: Any, other: Any) -> Any:
        return apply(other, x) if swap else apply(x, other)

    with tg.GradientTape() as tape:
        y = function(x, other)
    assert isinstance(y, tg.Tensor)
    np.testing.assert_array_equal(y.numpy(), function(x.numpy(), plain(other)))
    step = 1e-7
    ahead = [function(x.numpy() + step * unit, plain(other)).sum() for unit in np.eye(2)]
    behind = [function(x.numpy() - step * unit, plain(other)).sum() for unit in np.eye(2)]
    slope = (np.array(ahead) - np.array(behind)) / (2 * step)
    np.testing.assert_allclose(tape.gradient(y, x).numpy(), slope, rtol=1e-6, atol=1e-6)


@pytest.mark.parametrize("beside", [2, 2.5, [2.5, 3.5], [1, 2], np.float32(2.5)])
def test_numbers_do_not_widen(beside: Any) -> None:
    x = tg.Variable([1.0, 2.0], dtype=np.float32)
    assert (x * beside).dtype == (beside * x).dtype == np.float32
    assert (x * np.array([1.0, 2.0])).dtype == np.float64
    whole = tg.constant([1, 2])
    assert (whole * [1, 2]).dtype == whole.dtype
    assert (whole * [0.5, 2.0]).dtype == np.float64


def test_products_of_matrices_on_either_side() -> None:
    w = tg.Variable(np.arange(6.0).reshape(3, 2))
    a = np.arange(3.0).reshape(1, 3)
    with tg.GradientTape(persistent=True) as tape:
        left = a @ w
        rows = [[0.0, 1.0, 2.0]] @ w
        right = w @ [1.0, 2.0]
    for y in (left, rows):
        assert tape.gradient(y, w).numpy().tolist() == [[0.0, 0.0], [1.0, 1.0], [2.0, 2.0]]
    assert tape.gradient(right, w).numpy().tolist() == [[1.0, 2.0]] * 3


def test_comparisons_steer_and_are_not_differentiated() -> None:
    x = tg.Variable([1.0, 3.0])
    with tg.GradientTape() as tape:
        mask = (x > 2.0) & ~(x > 5.0) | (x == 7.0)
        y = np.where(mask, x * x, -x)
        if np.any(x > 2.0) and not np.all(x > 2.0) and x[1] > x[0]:
            y = y * 2.0
    assert mask.dtype == bool
    assert tape.gradient(y, x).numpy().tolist() == [-2.0, 12.0]


@pytest.mark.parametrize(
    "index",
    [0, -1, slice(1, None), (0, 1), (slice(None), 1), (None, 0), ..., [2, 0, 2], (slice(None, None, -1), [1, 1])],
)
def test_indices(index: Any) -> None:
    a = np.arange(12.0).reshape(3, 4)
    x = tg.Variable(a)
    with tg.GradientTape() as tape:
        y = x[index]
    np.testing.assert_array_equal(y.numpy(), a[index])
    want = np.zeros_like(a)
    np.add.at(want, index, 1.0)
    np.testing.assert_array_equal(tape.gradient(y, x).numpy(), want)


def test_indices_that_are_tensors() -> None:
    x = tg.Variable([1.0, 2.0, 3.0])
    with tg.GradientTape(persistent=True) as tape:
        y = x[tg.constant([0, 0])]
        z = x[x > 1.5]
        w = x[tg.constant(1)] + x[tg.constant(1) : tg.constant(3)]
    assert tape.gradient(y, x).numpy().tolist() == [2.0, 0.0, 0.0]
    assert tape.gradient(z, x).numpy().tolist() == [0.0, 1.0, 1.0]
    assert tape.gradient(w, x).numpy().tolist() == [0.0, 3.0, 1.0]


def test_methods_and_unpacking() -> None:
    x = tg.Variable(np.arange(6.0).reshape(2, 3) + 1.0)
    with tg.GradientTape() as tape:
        first, second = x
        y = first.dot(second) + x.T.reshape(-1)[1:3].sum() + x.mean(axis=0).max() + abs(-x).astype("float64").prod()
        y = y + x.clip(2.0, max=3.0).std() + x.flatten().cumsum()[-1] + sum(x[0])
    with tg.GradientTape() as again:
        a, b = x[0], x[1]
        z = np.dot(a, b) + np.sum(np.reshape(np.transpose(x), -1)[1:3]) + np.max(np.mean(x, axis=0)) + np.prod(x)
        z = z + np.std(np.clip(x, 2.0, 3.0)) + np.sum(x) + np.sum(a)
    np.testing.assert_allclose(y.numpy(), z.numpy())
    np.testing.assert_allclose(tape.gradient(y, x).numpy(), again.gradient(z, x).numpy())


def test_functions_of_scipy() -> None:
    x = tg.Variable([0.3, 0.6])
    with tg.GradientTape() as tape:
        y = scipy.special.erf(x) + scipy.special.expit(x)
    s = scipy.special.expit(x.numpy())
    want = 2.0 / np.sqrt(np.pi) * np.exp(-(x.numpy() ** 2)) + s * (1 - s)
    np.testing.assert_allclose(tape.gradient(y, x).numpy(), want)


def test_ufunc_methods() -> None:
    x, y = tg.Variable([1.0, 2.0]), tg.Variable([3.0, 4.0, 5.0])
    with tg.GradientTape(persistent=True) as tape:
        outer = np.multiply.outer(x, y)
        total = np.add.reduce(outer)
        scan = np.add.accumulate(y)
    assert outer.shape == (2, 3)
    assert tape.gradient(total, x).numpy().tolist() == [12.0, 12.0]
    assert tape.gradient(scan, y).numpy().tolist() == [3.0, 2.0, 1.0]


# ---- what tensors are not --------------------------------------------------------------------------------------------


def test_tensors_are_immutable_and_unhashable() -> None:
    x = tg.constant([1.0, 2.0])
    with pytest.raises(tg.NotDifferentiable, match="a Tensor cannot be changed in place"):
        x[0] = 5.0
    with pytest.raises(TypeError, match="unhashable"):
        hash(x)
    y = x
    y += 1.0
    assert x.numpy().tolist() == [1.0, 2.0] and y.numpy().tolist() == [2.0, 3.0]
    a = np.ones(2)
    made = tg.Tensor(a)
    a[:] = 7.0
    assert made.numpy().tolist() == [1.0, 1.0]


def test_copies_and_pickles() -> None:
    x, v = tg.constant([1.0, 2.0]), tg.Variable([1.0, 2.0], name="v", trainable=False)
    assert copy.copy(x) is x and copy.deepcopy(x) is x
    assert pickle.loads(pickle.dumps(x)).numpy().tolist() == [1.0, 2.0]
    for twin in (copy.deepcopy(v), pickle.loads(pickle.dumps(v))):
        twin.assign([5.0, 6.0])
        assert (twin.name, twin.trainable, v.numpy().tolist()) == ("v", False, [1.0, 2.0])


def test_variables_check_what_they_are_given() -> None:
    v = tg.Variable([1.0, 2.0], name="v", dtype="float32")
    assert v.assign_add(1.0).assign_sub([0.5, 1.0]).numpy().tolist() == [1.5, 2.0]
    with pytest.raises(tg.BadArgument, match="of shape"):
        v.assign([1.0, 2.0, 3.0])
    with pytest.raises(tg.BadArgument, match="of type complex128"):
        v.assign([1j, 2.0])
    v[1:] = tg.constant([7.0])
    assert v.numpy().tolist() == [1.5, 7.0] and v.dtype == np.float32


def test_printing() -> None:
    assert repr(tg.constant(6.0)) == "<tg.Tensor: shape=(), dtype=float64, numpy=6.0>"
    assert str(tg.constant([1.0, 2.0])) == "tg.Tensor([1. 2.], shape=(2,), dtype=float64)"
    assert str(tg.constant([[1, 2], [3, 4]])) == "tg.Tensor(\n[[1 2]\n [3 4]], shape=(2, 2), dtype=int64)"
    assert repr(tg.Variable([1.0], name="w")) == "<tg.Variable 'w' shape=(1,) dtype=float64, numpy=array([1.])>"
    assert f"{tg.constant(2.0):.2f}" == "2.00"


def test_conversions() -> None:
    x = tg.Variable(2.0)
    with tg.GradientTape(persistent=True) as tape:
        stacked = tg.convert_to_tensor([x, [x * x, 1.0][0], 3.0])
        read = tg.convert_to_tensor(x)
        half = tg.cast(x, "float32")
    assert tape.gradient(stacked, x).numpy() == 5.0
    assert tape.gradient(read, x).numpy() == 1.0 and tape.gradient(half, x).dtype == np.float64
    assert tg.constant(1.0, shape=(2, 2)).numpy().tolist() == [[1.0, 1.0], [1.0, 1.0]]
    assert tg.constant([1, 2, 3, 4], shape=(2, 2), dtype="float32").dtype == np.float32


def test_derivatives_called_with_tensors() -> None:
    @tg.differentiable(backend="python")
    def cube(x: Any) -> Any:
        return np.sum(x**3)

    x = tg.Variable([1.0, 2.0])
    with tg.GradientTape(persistent=True) as tape:
        gradient = cube.grad(x)
        value, same = cube.value_and_grad(x)
    assert gradient.numpy().tolist() == same.numpy().tolist() == [3.0, 12.0] and value.numpy() == 9.0
    assert tape.gradient(gradient, x).numpy().tolist() == [6.0, 12.0]
    assert tape.gradient([value, same], x).numpy().tolist() == [9.0, 24.0]
    with pytest.raises(tg.BadArgument, match="vjp takes arrays and numbers, no tensors"):
        cube.vjp(x)
    with pytest.raises(tg.BadArgument, match="jvp takes arrays and numbers, no tensors"):
        cube.jvp((x,), (np.ones(2),))


def test_lists_of_tensors_beside_a_tensor() -> None:
    a, b = tg.Variable(2.0, dtype="float32"), tg.Variable(3.0, dtype="float32")
    with tg.GradientTape(persistent=True) as tape:
        y = tg.constant([10.0, 20.0], dtype="float32") * [a, b]
        z = np.add([[a], [1.0]], b)
    assert y.dtype == z.dtype == np.float32
    assert z.numpy().tolist() == [[5.0], [4.0]]
    assert [g.numpy() for g in tape.gradient(y, [a, b])] == [10.0, 20.0]
    assert [g.numpy() for g in tape.gradient(z, [a, b])] == [1.0, 2.0]


@pytest.mark.parametrize(
    "write",
    [
        lambda x, out: np.sum(x, 0, None, out),
        lambda x, out: np.cumsum(x, out=out),
        lambda x, out: np.clip(x, 0.0, 5.0, out=out),
        lambda x, out: np.concatenate([x], out=out),
        lambda x, out: np.dot(x, np.eye(2), out),
        lambda x, out: np.add(x, 1.0, out),
        lambda x, out: np.copyto(dst=out, src=x),
        lambda x, out: np.einsum("i->i", x, out=out),
    ],
)
def test_nothing_is_written_into_arrays_behind_the_tape(write: Any) -> None:
    x, out = tg.Variable([1.0, 2.0]), np.zeros(2)
    with tg.GradientTape(), pytest.raises(tg.NotDifferentiable, match="leaves the tape"):
        write(x, out)
    assert out.tolist() == [0.0, 0.0]
    with pytest.raises((tg.NotDifferentiable, TypeError), match=r"cannot write into a tensor|must be"):
        write(np.ones(2), x)


def test_results_are_written_into_arrays_where_nobody_records() -> None:
    x, out = tg.constant([1.0, 2.0]), np.zeros(2)
    assert np.cumsum(x, out=out) is out and out.tolist() == [1.0, 3.0]


class Own(np.ndarray):
    pass


def test_arrays_of_other_kinds() -> None:
    x = tg.Variable(np.eye(2))
    own = np.array([[1.0, 2.0], [3.0, 4.0]]).view(Own)
    with tg.GradientTape(persistent=True) as tape:
        y = own * x + np.sum(np.stack([own, x]), axis=0)
    assert type(y.numpy()) is np.ndarray and type(tg.constant(own).numpy()) is np.ndarray
    assert type(tape.gradient(y, x).numpy()) is np.ndarray
    assert tape.gradient(y, x).numpy().tolist() == [[2.0, 3.0], [4.0, 5.0]]
    with pytest.warns(PendingDeprecationWarning):
        matrix = np.matrix([[1.0, 2.0], [3.0, 4.0]])
    masked = np.ma.array([1.0, 2.0], mask=[False, True])
    uses: list[Callable[[Any], Any]] = [
        *(lambda m: x * m, lambda m: x @ m, lambda m: np.add(x, m), lambda m: np.concatenate([x, m])),
        *(tg.constant, tg.Variable, x.assign),
    ]
    with pytest.raises(tg.BadArgument, match="of the kind 'matrix'"):
        matrix * x
    with tape, pytest.raises(tg.NotDifferentiable, match="leaves the tape"):
        masked * x
    for other in (matrix, masked):
        for use in uses:
            with pytest.raises(tg.BadArgument, match=f"of the kind '{type(other).__name__}'") as caught:
                use(other)
            assert caught.value.span is not None and caught.value.span.file == __file__


@pytest.mark.parametrize(
    "join",
    [
        lambda x, dtype: np.concatenate([x, [2.0, 3.0]], dtype=dtype),
        lambda x, dtype: np.stack([x, x], dtype=dtype),
        lambda x, dtype: np.hstack([x, x], dtype=dtype, casting="unsafe"),
        lambda x, dtype: np.einsum("i,i->i", x, x, dtype=dtype),
    ],
)
def test_results_of_a_type(join: Callable[..., Any]) -> None:
    x = tg.Variable([1.0, 2.0], dtype=np.float32)
    with tg.GradientTape(persistent=True) as tape:
        y = join(x, np.float64)
        whole = join(x, np.float64).astype(int)
        same = join(x, None)
    assert y.dtype == np.float64
    np.testing.assert_array_equal(y.numpy(), join(x.numpy(), np.float64))
    assert tape.gradient(y, x).dtype == np.float32
    np.testing.assert_array_equal(tape.gradient(y, x), tape.gradient(same, x))
    assert tape.gradient(whole, x) is None
