"""Two arrays of equal size, known to be so only at run time, cost no more than one that is copied."""

from __future__ import annotations

import re
from typing import Any

import numpy as np
import pytest

import tapegen as tg
from tests.grown.loop_texts import uncompiled

R = np.random.default_rng(3)


def smoothed(a0: Any, b0: Any, steps: Any) -> Any:
    a = a0.copy()
    b = b0.copy()
    for _ in range(steps):
        b[1:-1] = 0.3 * (a[:-2] + a[1:-1] + a[2:])
        a[1:-1] = 0.3 * (b[:-2] + b[1:-1] + b[2:])
    return np.sum(a * a) + np.sum(b)


def weighted(u: Any, w: Any) -> Any:
    flux = np.sin(u[1:]) - u[:-1]
    return np.sum(flux * w[1:] * w[:-1])


def apart(u: Any, v: Any, twice: Any) -> Any:
    """The sizes agree in one branch only."""
    if twice > 0:
        r = np.sum(u[2:] * v[2:])
    else:
        r = np.sum(u[2:]) * np.sum(v[2:] * v[2:])
    return r


CASES: dict[Any, list[tuple[Any, ...]]] = {
    smoothed: [(R.random(n), R.random(n), steps) for n, steps in ((7, 3), (2, 1), (3, 2), (4, 0))]
    + [(R.random(5), R.random(6), 0)],
    weighted: [(R.random(n), R.random(n)) for n in (6, 2)],
    apart: [(R.random(6), R.random(6), 1), (R.random(6), R.random(5), 0), (R.random(6), R.random(3), 0)],
}


@pytest.mark.parametrize("function", CASES, ids=lambda function: function.__name__)
def test_values_are_those_of_numpy(function: Any) -> None:
    with uncompiled():
        ours = tg.differentiable(function, wrt=(0, 1), backend="numba", cache=False)
        plain = tg.differentiable(function, wrt=(0, 1), backend="python")
        for args in CASES[function]:
            value, parts = ours.value_and_grad(*args)
            want, expected = plain.value_and_grad(*args)
            assert value == pytest.approx(want, rel=1e-13)
            for part, right in zip(parts, expected, strict=True):
                np.testing.assert_allclose(part, right, rtol=1e-13, atol=1e-15)


def test_nothing_is_recorded_or_scattered() -> None:
    inspection = tg.differentiable(smoothed, wrt=(0, 1)).inspect(R.random(7), R.random(7), 3)
    assert inspection.report.recorded_bytes == 0
    text = str(inspection.compiled)
    _, backward = text.split("backward sweep")
    assert backward.count("+=") == 2  # a gathering nest for each statement
    assert "np.empty" not in backward.split("for _ in", 1)[1]


def test_a_part_of_size_one_is_refused_by_compiled_code() -> None:
    """NumPy would broadcast it."""

    def inner(a: Any, b: Any) -> Any:
        c = b.copy()
        c[1:-1] = 2.0 * a[1:-1]
        return np.sum(c * c)

    with uncompiled():
        ours = tg.differentiable(inner, wrt=(0, 1), backend="numba", cache=False)
        ours.value_and_grad(R.random(7), R.random(7))
        with pytest.raises(tg.BadArgument, match="Plain Python has a value here"):
            ours.value_and_grad(R.random(3), R.random(6))


def test_other_sizes_raise_what_numpy_raises() -> None:
    with uncompiled():
        ours = tg.differentiable(smoothed, wrt=(0, 1), backend="numba", cache=False)
        with pytest.raises(ValueError, match="could not broadcast"):
            ours.value_and_grad(R.random(7), R.random(6), 1)


@pytest.mark.parametrize("dtype", ["float64", "float32"])
def test_factors_of_one_element_are_added_in_the_backward_sweep(dtype: str) -> None:
    def curvature(u: Any, v: Any) -> Any:
        w = v.copy()
        w[1:-1, 1:-1] = 0.5 * (u[2:, 1:-1] - 2.0 * u[1:-1, 1:-1] + u[:-2, 1:-1]) + 0.5 * (
            u[1:-1, 2:] - 2.0 * u[1:-1, 1:-1] + u[1:-1, :-2]
        )
        return np.sum(w * w)

    args = R.random((5, 4)).astype(dtype), R.random((5, 4)).astype(dtype)
    text = str(tg.differentiable(curvature, wrt=(0, 1)).inspect(*args).compiled)
    factor = re.escape("2.0" if dtype == "float64" else "np.float32(2.0)")
    assert len(re.findall(rf"- {factor} \* \w+\[i \+ 1, j \+ 1\]\n", text)) == 1
    with uncompiled():
        ours = tg.differentiable(curvature, wrt=(0, 1), backend="numba", cache=False).value_and_grad(*args)
    plain = tg.differentiable(curvature, wrt=(0, 1), backend="python").value_and_grad(*args)
    for part, right in zip(ours[1], plain[1], strict=True):
        np.testing.assert_allclose(part, right, rtol=64 * np.finfo(dtype).eps, atol=4 * np.finfo(dtype).eps)


def test_the_primal_adds_in_its_own_order() -> None:
    def assembled(x: Any) -> Any:
        t = np.empty(x.shape[0])
        y = np.full(x.shape[0] + 2, 0.1)
        for i in range(x.shape[0]):
            t[i] = x[i] * x[i]
        for i in range(x.shape[0]):
            y[i] += t[i]
        for i in range(x.shape[0]):
            y[i + 2] += t[i]
        return y

    x = R.random(50)
    text = str(tg.differentiable(assembled).inspect(x).compiled)
    assert "t[i + 2] + t[i]" in text or "t[i_1 + 2] + t[i_1]" in text
    with uncompiled():
        np.testing.assert_array_equal(
            tg.differentiable(assembled, backend="numba", cache=False).vjp(x)[0], assembled(x)
        )
