"""Derivatives that are infinite: the backward sweep must not raise where the primal did not."""

from __future__ import annotations

import math

import numpy as np
import pytest

from tapegen import differentiable


def root_of_product(x, v):
    return x + math.sqrt(v[0] * x)


def cube_root(x, v):
    return x + math.cbrt(v[1] * x)


@pytest.mark.parametrize("backend", ["python", pytest.param("numba", marks=pytest.mark.compiled)])
@pytest.mark.parametrize("function", [root_of_product, cube_root])
def test_python_result_of_numpy_number(function, backend):
    """`math.sqrt` of a NumPy number is a Python float, by which Python would not divide at 0."""
    value, gradient = differentiable(function, backend=backend).value_and_grad(0.0, np.array([1.0, 2.0]))
    assert value == 0.0
    assert gradient == math.inf
