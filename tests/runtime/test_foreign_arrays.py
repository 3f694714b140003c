"""Arrays of other libraries as arguments: taken as NumPy arrays, or refused in a line that says what to pass."""

from __future__ import annotations

import re
import warnings
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
import pytest
import xarray as xr
from numba import typed
from scipy import sparse

import tapegen as tg

python: Any = {"backend": "python"}


class Foreign:
    """An array as other libraries have them: no NumPy array, and its arithmetic is its own."""

    def __init__(self, values: Any, device: str = "cpu", requires_grad: bool = False) -> None:
        self._values, self._device, self._requires_grad = np.asarray(values), device, requires_grad

    @property
    def shape(self) -> tuple[int, ...]:
        return self._values.shape

    @property
    def dtype(self) -> Any:
        return self._values.dtype

    @property
    def device(self) -> str:
        return self._device

    @property
    def requires_grad(self) -> bool:
        return self._requires_grad

    def detach(self) -> Foreign:
        return Foreign(self._values, self._device)

    def __mul__(self, other: Any) -> Any:
        raise AssertionError("the function sees NumPy arrays")

    def __array__(self, dtype: Any = None, copy: Any = None) -> np.ndarray:
        return np.asarray(self._values, dtype)


class OnlyDlpack:
    """An array that gives its memory and nothing else."""

    def __init__(self, values: Any) -> None:
        self._values = np.asarray(values)

    @property
    def shape(self) -> tuple[int, ...]:
        return self._values.shape

    def __dlpack__(self, **options: Any) -> Any:
        return self._values.__dlpack__(**options)

    def __dlpack_device__(self) -> Any:
        return self._values.__dlpack_device__()


class ArrayTracer:
    """What stands for an array while another library traces a function."""

    shape = (2,)

    def __array__(self, dtype: Any = None, copy: Any = None) -> np.ndarray:
        raise TypeError("a traced array was converted to a concrete value")


def loss(x: Any, k: Any = 1.0) -> Any:
    return np.sum(k * x * x)


def squares(*args: Any) -> Any:
    return sum([np.sum(a * a) for a in args])


@pytest.mark.parametrize("kind", [Foreign, OnlyDlpack])
@pytest.mark.parametrize("dtype", ["float64", "float32"])
def test_they_are_numpy_arrays_to_the_function(kind: Any, dtype: str) -> None:
    x = np.array([1.0, 2.0], dtype)
    f = tg.differentiable(loss, **python)
    assert f(kind(x)) == 5.0
    for value, gradient in (f.value_and_grad(kind(x)), f.value_and_grad(x=kind(x))):
        assert value == 5.0
        assert type(gradient) is np.ndarray and gradient.dtype == dtype
        np.testing.assert_array_equal(gradient, [2.0, 4.0])
    value, tangent = f.jvp((kind(x),), (kind(x),))
    assert (value, tangent) == (5.0, 10.0)
    value, pullback = f.vjp(kind(x))
    np.testing.assert_array_equal(pullback(1.0), [2.0, 4.0])
    np.testing.assert_array_equal(tg.vjp(np.sin, kind(x), **python)[1](kind(x))[0], (x * np.cos(x))[0])
    np.testing.assert_array_equal(tg.hessian(loss, **python)(kind(x)), 2.0 * np.eye(2))
    np.testing.assert_array_equal(tg.hvp(loss, (kind(x),), (kind(x),), **python), [2.0, 4.0])


def test_they_are_taken_in_structures() -> None:
    def total(params: Any) -> Any:
        return np.sum(params["w"] ** 2) + np.sum(params["b"][0] ** 2)

    found = tg.grad(total, **python)({"w": Foreign([1.0, 2.0]), "b": [Foreign([3.0])]})
    np.testing.assert_array_equal(found["w"], [2.0, 4.0])
    np.testing.assert_array_equal(found["b"][0], [6.0])
    found = tg.grad(squares, wrt=(0, 1), **python)(Foreign([1.0]), np.array([2.0]))
    np.testing.assert_array_equal(found, [[2.0], [4.0]])


def test_gradients_are_checked_for_them() -> None:
    tg.check_grads(loss, Foreign([1.0, 2.0]), 2.0, **python)


class Bfloat:
    """An array whose dtype NumPy does not have."""

    shape = (2,)
    dtype = "bfloat16"

    def __array__(self, dtype: Any = None, copy: Any = None) -> np.ndarray:
        return np.zeros(2, "V2")


REFUSED = [
    (
        Foreign([1.0], requires_grad=True),
        "'x' is a Foreign of .* that requires a gradient there",
        r"x.detach\(\).numpy\(\)",
    ),
    (Foreign([1.0], device="cuda:0"), "'x' is a Foreign of .* on the device cuda:0", r"x.detach\(\).cpu\(\).numpy\(\)"),
    (ArrayTracer(), "'x' is an ArrayTracer of .* without numbers", "outside of what traces it"),
    (Bfloat(), "'x' is a Bfloat of .* of dtype bfloat16", r"np.asarray\(x\).astype\(np.float64\)"),
    (pd.Series(["a", "b"]), "'x' is a Series of pandas of dtype", r"x.to_numpy\(float\)"),
    (pd.Timestamp("2020-01-01"), "'x' is a Timestamp of pandas, which is no number", "Pass numbers"),
    (xr.Dataset({"a": ("t", [1.0])}), "'x' is a Dataset of xarray, which is not followed", "variables one by one"),
    (sparse.eye(3), "'x' is a dia_matrix of scipy.sparse, which is not followed", r"x.toarray\(\)"),
    (np.zeros(2, [("a", float), ("b", int)]), "'x' holds records", r"x\['a'\] and x\['b'\]"),
    (np.array(["2020"], "M8[D]"), "'x' holds dates", r"\(x - x.min\(\)\) / np.timedelta64\(1, 's'\)"),
    (np.array([1], "m8[s]"), "'x' holds durations", r"x / np.timedelta64\(1, 's'\)"),
    (np.array(["a"]), "'x' holds text", "Pass numbers"),
    (typed.List([1.0]), "'x' is a List of numba, which is not followed", r"np.array\(x\)\) or a list"),
]


@pytest.mark.parametrize(("value", "reason", "advice"), REFUSED, ids=lambda item: type(item).__name__)
def test_refusals_say_what_to_pass(value: Any, reason: str, advice: str) -> None:
    with pytest.raises(tg.BadArgument) as caught:
        tg.grad(loss, **python)(value)
    lines = str(caught.value).splitlines()
    assert lines[0].startswith(f"{__file__}:")
    assert lines[1].strip() == "def loss(x: Any, k: Any = 1.0) -> Any:"
    assert len(lines) == 4
    assert re.search(reason, lines[0]) and re.search(advice, lines[3])


def doubled(x: Any) -> Any:
    x *= 2.0
    return np.sum(x)


def appended(x: Any, log: list[float]) -> Any:
    log.append(1.0)
    return np.sum(x * x)


def test_stores_into_them_are_refused() -> None:
    for call in (tg.differentiable(doubled, **python), tg.grad(doubled, **python)):
        with pytest.raises(tg.BadArgument, match="'x' is stored into, and it is a Foreign of"):
            call(Foreign([1.0]))
    with pytest.raises(tg.BadArgument, match="stores into objects of its caller"):
        tg.grad(appended, **python)(Foreign([1.0]), [])


def test_objects_that_hold_them_are_refused() -> None:
    @dataclass
    class Model:
        w: Any

    with pytest.raises(tg.BadArgument, match=r"'model.w' is a Foreign of .*; arrays of other libraries are taken as"):
        tg.grad(lambda x, model: np.sum(x * model.w), **python)(np.ones(2), Model(Foreign([1.0, 2.0])))


TABLE = pd.DataFrame({"u": [1.0, 2.0]})
LIST, DICT = typed.List([1.0]), typed.Dict()
DICT["a"] = 1.0


@pytest.mark.parametrize(
    ("func", "said"),
    [
        (
            lambda x: np.sum(x * TABLE["u"].to_numpy()),
            r"'TABLE' is a DataFrame of pandas.*\n.*\n.*\nUse TABLE.to_numpy\(\)",
        ),
        (lambda x: x[0] * LIST[0], "'LIST' is a List of numba, which is not followed"),
        (lambda x: x[0] * DICT["a"], "'DICT' is a Dict of numba, which is not followed"),
        (lambda x: np.sum(x * pd.Series([1.0, 2.0]).to_numpy()), r"'pandas\..*' cannot be followed|Series of pandas"),
    ],
)
def test_captured_ones_are_refused_at_the_place_of_the_user(func: Any, said: str) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        with pytest.raises(tg.TapegenError, match=said) as caught:
            tg.grad(func, **python)(np.ones(2))
    assert caught.value.span is not None and caught.value.span.file == __file__
    assert "site-packages" not in str(caught.value)


def bands(x: Any) -> Any:
    return np.sum(sparse.diags([x, x[:-1]], [0, 1]) @ x)


def test_sparse_matrices_of_values() -> None:
    with pytest.raises(
        tg.MissingRule, match=r"scipy.sparse.diags is not differentiated: sparse matrices have no"
    ) as caught:
        tg.grad(bands, **python)(np.ones(3))
    assert "Write the product with slices" in str(caught.value)


# ---- labels --------------------------------------------------------------------------------------------------------


def test_pandas_gets_its_labels_back() -> None:
    series = pd.Series([1.0, 2.0, 3.0], index=list("abc"), name="height")
    pd.testing.assert_series_equal(tg.grad(loss, **python)(series), 2.0 * series)
    table = pd.DataFrame({"u": [1.0, 2.0], "device": [3.0, 4.0]}, index=[10, 20])
    f = tg.differentiable(loss, **python)
    for _ in range(2):
        value, gradient = f.value_and_grad(table)
        assert value == 30.0
        pd.testing.assert_frame_equal(gradient, 2.0 * table)
    pd.testing.assert_frame_equal(f.vjp(table)[1](1.0), 2.0 * table)
    by_both = tg.grad(loss, wrt=("k", "x"), **python)(series, 2.0)
    assert by_both[0] == 14.0
    pd.testing.assert_series_equal(by_both[1], 4.0 * series)
    found = tg.grad(lambda params: np.sum(params["w"] ** 2), **python)({"w": series})
    pd.testing.assert_series_equal(found["w"], 2.0 * series)


def test_xarray_gets_its_labels_back() -> None:
    array = xr.DataArray([[1.0, 2.0]], dims=("t", "x"), coords={"x": [10, 20]}, name="height")
    xr.testing.assert_identical(tg.grad(loss, **python)(array), 2.0 * array)


@pytest.mark.compiled
def test_compiled_gradients_of_them() -> None:
    series = pd.Series([1.0, 2.0, 3.0], index=list("abc"))
    f = tg.differentiable(loss)
    for _ in range(3):
        pd.testing.assert_series_equal(f.grad(series), 2.0 * series)
        np.testing.assert_array_equal(f.grad(Foreign([1.0, 2.0])), [2.0, 4.0])


# ---- parts of varargs ----------------------------------------------------------------------------------------------


def weighted(scale: float, *args: Any) -> Any:
    return scale * (np.sum(args[0] ** 2) + np.sum(args[1]["w"] ** 3))


def test_wrt_names_parts_of_varargs() -> None:
    x, w = np.array([1.0, 2.0]), np.array([3.0])
    arguments = (2.0, x, {"w": w})
    np.testing.assert_array_equal(tg.grad(weighted, wrt="args.1.w", **python)(*arguments), 6.0 * w**2)
    scale, first = tg.grad(weighted, wrt=("scale", "args.0"), **python)(*arguments)
    assert scale == 32.0
    np.testing.assert_array_equal(first, 4.0 * x)
    first, second = tg.grad(weighted, wrt="args", **python)(*arguments)
    np.testing.assert_array_equal(first, 4.0 * x)
    np.testing.assert_array_equal(second["w"], 6.0 * w**2)
    with pytest.raises(tg.BadArgument, match=r"wrt='args.5': there are 2 of them"):
        tg.grad(weighted, wrt="args.5", **python)(*arguments)
