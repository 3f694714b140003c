"""`check_grads` finds wrong gradients, accepts right ones, and says so where differences mean nothing."""

from __future__ import annotations

import math

import numpy as np
import pytest

from tapegen import differentiable
from tapegen.errors import BadArgument, BuildError
from tapegen.rules import registry
from tapegen.testing import check_grads


def variance_path(v, theta, noise):
    """A square-root process that touches zero: smooth in a neighbourhood of theta smaller than the first step."""
    for z in noise:
        positive = max(v, 0.0)
        v += 1.5 * (theta - positive) * 0.1 + 0.3 * math.sqrt(positive * 0.1) * z
    return v


def jump(x):
    return x if x > 1.0 else 0.0


def cube(x):
    return x * x * x


def wrong_partial(x):
    return 2.0 * x * x


def of_cubes(x):
    return np.sum(cube(x))


def of_structures(p, n):
    a, b = p["pair"]
    out = np.zeros(n)
    for i in range(n):
        out[i] = a * i + np.sum(b)
    return {"out": out, "n": n}


def test_smooth_near_a_kink():
    noise = np.random.default_rng(0).normal(size=8)
    check_grads(variance_path, 0.04, 0.04, noise, backend="python")


def test_structures():
    check_grads(of_structures, {"pair": (2.0, np.ones(3))}, 4, backend="python")


def scaled_norm(x, k):
    return k * (x @ x)


def half_of_the_gradient(x, k):
    return k * np.sum(cube(x))


def test_single_precision(monkeypatch):
    """Differences of single precision would tell right from wrong by luck."""
    rng = np.random.default_rng(1)
    for seed in range(20):
        x, k = rng.uniform(-1.6, 1.8, 5).astype(np.float32), np.float32(rng.uniform(0.2, 1.8))
        check_grads(scaled_norm, x, k, seed=seed, modes=("forward", "reverse"), backend="python")
    monkeypatch.setattr(registry, "_RULES", dict(registry._RULES))
    registry.partials(cube)(wrong_partial)
    with pytest.raises(AssertionError, match="gradient with respect to 0"):
        check_grads(half_of_the_gradient, x, k, backend="python")


def test_one_array_for_two_arguments():
    x = np.array([0.3, 1.2])
    check_grads(lambda a, b: a * b**2, x, x, modes=("forward", "reverse"), order=2, backend="python")


def test_jump_is_named():
    with pytest.raises(AssertionError, match="do not settle"):
        check_grads(jump, 1.0, backend="python")


def test_wrong_rule_is_found(monkeypatch):
    monkeypatch.setattr(registry, "_RULES", dict(registry._RULES))
    registry.partials(cube)(wrong_partial)
    with pytest.raises(AssertionError, match="gradient with respect to 0"):
        check_grads(of_cubes, np.array([0.5, 1.5]), backend="python")


def in_order(m):
    return np.sum(m[:, np.lexsort((m[1], m[0]))] ** 3 * np.arange(3.0))


def test_a_decorated_function_keeps_its_options():
    m = np.array([[0.4, 1.3, 0.2], [0.1, 0.9, 0.5]])
    check_grads(differentiable(in_order, backend="python"), m, order=2)  # a warning says what is not compiled
    compiled = differentiable(in_order, backend="numba")
    with pytest.raises(BuildError, match=r"np\.lexsort has no compiled form"):
        check_grads(compiled, m)
    check_grads(compiled, m, backend="python", wrt="m")


def test_nothing_to_check_is_refused():
    with pytest.raises(BadArgument, match="no argument holds floats"):
        check_grads(lambda n: n * 1.0, 3)
    with pytest.raises(BadArgument, match="order=0"):
        check_grads(lambda x: x * x, 3.0, order=0)
