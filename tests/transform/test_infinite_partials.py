"""Derivatives that are infinite: the backward sweep must not raise where the primal did not."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import pytest

from tapegen import check_grads, differentiable, jacobian


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


@pytest.mark.parametrize("backend", ["python", pytest.param("numba", marks=pytest.mark.compiled)])
@pytest.mark.parametrize("zero", [0, 0.0])
@pytest.mark.parametrize("x", [2.0, np.array([1.0, -3.0])])
def test_division_by_a_constant_zero(x, zero, backend):
    function = differentiable(lambda x: np.sum(np.divide(x, zero)), backend=backend)
    with np.errstate(all="ignore"):
        np.testing.assert_array_equal(function.grad(x), np.full(np.shape(x), np.inf))
        np.testing.assert_array_equal(function.jvp((x,), (np.ones_like(x)[()],))[1], np.inf)


@pytest.mark.parametrize("number", [1, 1.0, -1.0, 0.5, -4.0, 3.0, 2.0**-1000, 2.0**500])
@pytest.mark.parametrize("x", [0.7, -3.0, 2.0**-60, 2.0**450, 2.0**-200, 0.0, math.inf])
def test_constant_divided_by_value(number, x):
    """Its derivative divides by nothing where that rounds and overflows no more than a division does."""

    def quotient(x):
        return number / x

    ends = {0.0: -number * math.inf, math.inf: 0.0}
    wanted = ends[x] if x in ends else float(-Fraction(number) / Fraction(x) ** 2)
    args, options = (np.array([x]),), {"backend": "python"}
    with np.errstate(all="ignore"):
        gradient = differentiable(lambda v: np.sum(quotient(v)), **options).grad(*args)
        _, tangent = differentiable(lambda v: np.sum(quotient(v)), **options).jvp(args, (np.ones(1),))
    np.testing.assert_allclose(gradient, [wanted], rtol=1e-15)
    np.testing.assert_allclose(tangent, wanted, rtol=1e-15)


def powers_set_aside(x):
    return np.where(x > 0.0, x**1.5 + x**2.5, 0.0)


@pytest.mark.parametrize("mode", ["forward", "reverse"])
def test_derivatives_of_any_order_of_what_is_set_aside(mode):
    """Higher derivatives of a power can be infinite where the first is not."""
    function = powers_set_aside
    expected = [lambda x: 1.5 * x**0.5 + 2.5 * x**1.5, lambda x: 0.75 * x**-0.5 + 3.75 * x**0.5]
    expected.append(lambda x: -0.375 * x**-1.5 + 1.875 * x**-0.5)
    for slope in expected:
        function = jacobian(function, mode=mode, backend="python")
        for x in (0.0, 1.7):
            with np.errstate(all="ignore"):
                assert function(x) == pytest.approx(slope(x) if x else 0.0, rel=1e-13)


def impossible_paths(x, y):
    a = np.array([x, -np.inf, -np.inf])
    b = np.array([-np.inf, -np.inf, y])
    c = np.logaddexp(a + x, b + y)
    d = np.logaddexp2(a + y, b + x)
    return np.logaddexp(np.logaddexp(c[0], c[1]), c[2]) * np.logaddexp2(np.logaddexp2(d[0], d[1]), d[2])


def test_logarithms_of_zero_may_have_tangents():
    """Their weights are finite also where both are -inf: what follows multiplies them by zero."""
    check_grads(impossible_paths, 0.3, 0.8, order=2, modes=("forward", "reverse"), backend="python")
