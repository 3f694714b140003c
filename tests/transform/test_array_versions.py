"""What an array held before it was overwritten is kept once, for all that can be recomputed from it."""

import re

import numpy as np
import pytest

import tapegen as tg
from tests.oracle import numerical_gradient

U = 0.3 + 0.1 * np.sin(np.arange(6.0))


def whole(u, n):
    u = u.copy()
    for _ in range(n):
        u += 0.1 * u * (1.0 - u)
    return np.sum(u**2)


def inner(u, n):
    u = u.copy()
    for _ in range(n):
        u[1:-1] += 0.1 * u[1:-1] * (1.0 - u[1:-1])
    return np.sum(u**2)


def two_names(u, n):
    u = u.copy()
    v = u[:3]
    for _ in range(n):
        growth = 0.1 * v
        rest = 1.0 - v
        u += 0.05 * u
        v += growth * rest
    return np.sum(u**2)


def changed_in_between(u, n):
    u = u.copy()
    for _ in range(n):
        growth = 0.1 * u
        u[0] = 0.5
        rest = 1.0 - u
        u += growth * rest
    return np.sum(u**2)


def changed_by_an_inner_loop(u, n):
    u = u.copy()
    for k in range(n):
        growth = 0.1 * u
        if k % 2 == 0:
            for i in range(u.size):
                u[i] *= 1.1
        rest = (1.0 - u) * (2.0 + u)
        u += growth * rest
    return np.sum(u**2)


def another_name_every_trip(u, n):
    u, w = u.copy(), u**2
    for _ in range(n):
        u, w = w, u
        w += 0.1 * w * (1.0 - w) + 0.01 * u
    return np.sum(u * w)


@pytest.mark.parametrize(
    "function", [whole, inner, two_names, changed_in_between, changed_by_an_inner_loop, another_name_every_trip]
)
def test_gradients(function):
    got = tg.grad(function, backend="python")(U, 4)
    np.testing.assert_allclose(got, numerical_gradient(function, (U, 4)).value[0,], rtol=1e-8, atol=1e-11)


@pytest.mark.parametrize("function", [whole, inner])
def test_one_array_is_kept_for_both_factors(function):
    forward = tg.differentiable(function).inspect(U, 4).forward
    assert re.findall(r"recorded: +(.*)", forward) == ["u_1_kept"]
    assert forward.count("_tape[") == 1
    assert "np.copy" not in forward
