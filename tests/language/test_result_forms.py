"""Library calls that give a number or an array, an integer or a float, as the call is written; refused calls."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import scipy.linalg
import scipy.stats

import tapegen as tg
from tapegen.errors import NotDifferentiable
from tests.grown.loop_texts import uncompiled

NUMBERS = {
    "dot of vectors": lambda v, o: np.dot(v, v, out=o),
    "dot of numbers": lambda v, o: np.dot(v[0], v[1], out=o),
    "dot by method": lambda v, o: v.dot(v, o),
    "clip of a number": lambda v, o: np.clip(v[0], 0.0, 1.0, out=o),
    "round of a number": lambda v, o: np.round(v[0], 1, out=o) * v[0],
    "nan_to_num in place": lambda v, o: np.nan_to_num(np.array(v[0]), copy=False),
    "nan_to_num in place, other numbers": lambda v, o: np.nan_to_num(np.array(v[0]), copy=False, nan=1.0),
    "sum": lambda v, o: np.sum(v, out=o),
    "matmul": lambda v, o: np.matmul(v, v, out=o),
    "clip of an array": lambda v, o: np.clip(v[0] * np.ones(()), 0.0, np.ones(()), out=o),
}


@pytest.mark.parametrize("name", NUMBERS)
def test_output_arrays_without_axes(name: str) -> None:
    """Some functions return the array that they write, some its element."""

    def f(v: np.ndarray) -> Any:
        o = np.array(0.5)
        r = NUMBERS[name](v, o)
        return r, o * v[0]

    v = np.array([0.6, 1.4, -0.3])
    (value, out), pull = tg.differentiable(f, backend="python").vjp(v)
    known = f(v)
    assert type(value) is type(known[0])
    np.testing.assert_allclose((value, out), known)
    wanted = [(np.dot((1.0, 0.7), f(v + e)) - np.dot((1.0, 0.7), f(v - e))) / 2e-6 for e in 1e-6 * np.eye(3)]
    np.testing.assert_allclose(pull((1.0, 0.7)), wanted, rtol=1e-6, atol=1e-8)


def test_refusals_of_arguments_without_a_rule() -> None:
    x = np.array([0.1, 0.4, 0.9, 1.6, 2.0])
    fit = tg.differentiable(lambda y: np.polyfit(x, y, 1, cov=True)[0][0], backend="python")
    with pytest.raises(NotDifferentiable, match=r"polyfit\(cov=\) has no rule"):
        fit.grad(x * x)
    without = tg.differentiable(lambda y: np.polyfit(x, y, 1, cov=False)[0], backend="python")
    np.testing.assert_allclose(without.grad(x * x), (x - x.mean()) / np.sum((x - x.mean()) ** 2), rtol=1e-10)
    general = tg.differentiable(lambda a: scipy.linalg.eigh(a, np.eye(2))[0][0], backend="python")
    with pytest.raises(NotDifferentiable, match=r"rule of 'eigh' has fewer parameters.*2 were given"):
        general.grad(np.diag([1.0, 2.0]))


def test_sums_of_no_elements_are_their_start() -> None:
    f = tg.differentiable(lambda x: (sum(np.zeros(0)), sum(np.zeros((0, 2)), 3), x), backend="python")
    for value, known in zip(f.vjp(1.5)[0], f(1.5), strict=True):
        assert (type(value), value) == (type(known), known)


def test_densities_of_one_row_are_numbers() -> None:
    f = tg.differentiable(lambda x: scipy.stats.multivariate_normal.logpdf(x, np.zeros(2), np.eye(2)), backend="python")
    x = np.array([[0.3, -0.4]])
    value, tangent = f.jvp((x,), (np.ones_like(x),))
    assert np.shape(value) == np.shape(tangent) == ()
    np.testing.assert_allclose(tangent, 0.1)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_edges_have_the_precision_of_the_data(dtype: type) -> None:
    x = np.array([0.1, 0.5, 0.9, 2.0], dtype=dtype)
    with uncompiled():
        made = tg.differentiable(lambda x: np.histogram_bin_edges(x, 4), cache=False)(x)
    known = np.histogram_bin_edges(x, 4)
    assert made.dtype == known.dtype
    np.testing.assert_allclose(made, known, rtol=1e-6)
