"""What does not change in a loop is computed before it, and nothing else is."""

from __future__ import annotations

import numpy as np
import pytest

from tapegen import differentiable
from tapegen.testing import check_grads

C = np.array([0.5, -0.3, 0.8, 0.2])
W = np.array([[1.0, 0.5, -1.0, 2.0], [0.3, -0.7, 0.1, 0.9]])


def invariant(c, w):
    total = 0.0
    for k in range(w.shape[0]):
        total += np.sum(np.exp(c * 2.0) ** 2 * w[k])
    return total


def operand_written(c, w):
    c = c.copy()
    total = 0.0
    for k in range(w.shape[0]):
        total += np.sum(np.exp(c) * w[k])
        c[k] += 1.0
    return total


def written_through_a_view(c, w):
    c = c.copy()
    part = c[1:]
    total = 0.0
    for k in range(w.shape[0]):
        total += np.sum(np.exp(c) * w[k])
        part *= 0.5
    return total


def result_written(c, w):
    total = 0.0
    for k in range(w.shape[0]):
        e = np.exp(c)
        e[0] += w[k, 0]
        total += np.sum(e * w[k])
    return total


def may_raise(c, w):
    total = np.sum(c * c)
    for _ in range(w.shape[0] - 2):
        total += np.sum(c * w[0, 1:])
    return total


HOISTED = [invariant]
KEPT = [operand_written, written_through_a_view, result_written, may_raise]


@pytest.mark.parametrize("function", [*HOISTED, *KEPT])
def test_gradient(function):
    check_grads(function, C, W, backend="python")


@pytest.mark.parametrize("function", [*HOISTED, *KEPT])
def test_place(function):
    """Whether the arithmetic stands before the loop."""
    text = differentiable(function, backend="python").inspect(C, W).joint
    before = text[: text.index("for ")]
    assert ("np.exp(" in before) == (function in HOISTED)


def test_no_trip():
    value, gradient = differentiable(invariant, backend="python").value_and_grad(C, W[:0])
    assert value == 0.0
    np.testing.assert_array_equal(gradient, np.zeros(4))
