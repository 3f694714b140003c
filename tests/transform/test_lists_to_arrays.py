"""Lists whose length is known before they are filled become arrays; others stay lists."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import tapegen as tg
from tests.oracle import numerical_gradient

X = np.random.default_rng(4).uniform(0.5, 1.5, 12)


def last_item(x, n):
    states = [x[0]]
    for t in range(n):
        states.append(states[-1] * x[t])
    return states[-1]


def own_index(x, n):
    states = [1.0, x[0]]
    for t in range(1, n):
        states.append(states[t] * x[t] + states[t - 1] + states[0])
    return sum(states)


def downwards(x, n):
    states = [1.0]
    for t in range(n - 1, -1, -1):
        states.append(states[n - 1 - t] * x[t])
    return states[0] + states[-1] ** 2


def two_loops(x, n):
    states = []
    for t in range(n):
        states.append(x[t] ** 2)
        states.append(x[t] ** 3)
    for t in range(len(x)):
        states.append(math.sin(x[t]))
    states.append(5.0 * x[1])
    return sum([states[k] * k for k in range(len(states))])


def earlier_items(x, n):
    states = [x[0]]
    for t in range(1, n):
        total = 0.0
        for s in range(t):
            total += states[s] * x[t - s]
        states.append(total)
    return sum(states) + states[len(states) // 2]


def changed_items(x, n):
    states = [0.0] * (n + 1)
    for t in range(n):
        states[t + 1] = states[t] + x[t] ** 2
        states[t] += x[t]
    return np.sum(np.array(states) ** 2)


def least_of_each(x, n):
    total = 0.0
    for t in range(n):
        total += min([(x[t] - x[s]) ** 2 + x[s] for s in range(len(x))])
    return total


def length_on_the_way(x, n):
    states = [x[0]]
    for t in range(n):
        if len(states) > 2:
            states[1] = x[t] * len(states)
        states.append(x[t])
    return sum(states)


KNOWN = [last_item, own_index, downwards, two_loops, earlier_items, changed_items, least_of_each, length_on_the_way]


@pytest.mark.parametrize("f", KNOWN)
def test_a_list_of_known_length_is_an_array(f: Callable[..., Any]) -> None:
    text = _checked(f)
    assert "append" not in text
    assert "[0.0] *" not in text


def in_a_branch(x, n):
    states = [x[0]]
    for t in range(n):
        if x[t] > 1.0:
            states.append(x[t] * states[-1])
    return sum(states)


def left_early(x, n):
    states = [x[0]]
    for t in range(n):
        if x[t] > 1.4:
            break
        states.append(x[t] * states[-1])
    return sum(states)


def taken_back(x, n):
    states = [x[0]]
    for t in range(n):
        states.append(x[t])
    return states.pop() * states[-1]


def counted_from_the_end(x, n):
    states = [x[0]]
    for t in range(n):
        states.append(x[t] * states[t - 1])
    return sum(states)


@pytest.mark.parametrize("f", [in_a_branch, left_early, taken_back, counted_from_the_end])
def test_other_lists_stay(f: Callable[..., Any]) -> None:
    assert "append" in _checked(f)


def too_early(x, n):
    states = [x[0]]
    for t in range(n):
        states.append(x[t])
        states[2] = x[t]
    return sum(states)


def too_far_back(x, n):
    states = [x[0]]
    for t in range(n):
        states.append(x[t] * states[-2])
    return sum(states)


def later_item(x, n):
    states = [x[0]]
    for t in range(n):
        for s in range(2):
            states[s] = x[t] + states[s]
        states.append(x[t])
    return sum(states)


@pytest.mark.parametrize("backend", ["python", pytest.param("numba", marks=pytest.mark.compiled)])
@pytest.mark.parametrize("f", [too_early, too_far_back, later_item])
def test_an_item_that_is_not_there_yet_raises(f: Callable[..., Any], backend: str) -> None:
    ours = tg.differentiable(backend=backend)(f)
    with pytest.raises(IndexError, match=r"list (assignment )?index out of range"):
        ours.value_and_grad(X, 5)
    assert ours.value_and_grad(X, 0)[0] == f(X, 0)


def overflowing(x, n):
    states = [x]
    for t in range(n):
        states.append(states[t] ** 2)
    return states[-1]


def dividing(x, n):
    states = [x]
    for _ in range(n):
        states.append(1.0 / states[-1])
        states[0] = 0.0
        states.append(1.0 / states[0])
    return states[-1]


def test_items_are_numbers_of_python() -> None:
    with pytest.raises(OverflowError):
        tg.value_and_grad(overflowing, backend="python")(10.0, 12)
    with pytest.raises(ZeroDivisionError):
        tg.value_and_grad(dividing, backend="python")(10.0, 3)


def narrow(x, n):
    states = [np.float32(x)]
    for t in range(n):
        states.append(states[t] * np.float32(1.1))
    return states[-1]


def rotated(x, n):
    states = [1j * x]
    for _ in range(n):
        states.append(states[-1] * (0.3 + 0.1j * x))
    return abs(states[-1]) + states[1].real


@pytest.mark.parametrize("f", [narrow, rotated])
def test_items_keep_their_precision(f: Callable[..., Any]) -> None:
    ours = tg.differentiable(backend="python")(f)
    value, x_bar = ours.value_and_grad(1.3, 4)
    assert value == f(1.3, 4)
    assert type(value) is type(f(1.3, 4))
    assert "append" not in _statements(ours.inspect(1.3, 4))
    step = 1e-2 if f is narrow else 1e-6
    np.testing.assert_allclose(x_bar, (f(1.3 + step, 4) - f(1.3 - step, 4)) / (2 * step), rtol=1e-4)


def _checked(f: Callable[..., Any]) -> str:
    ours = tg.differentiable(backend="python")(f)
    for n in (2, 5, 9):
        value, gradient = ours.value_and_grad(X, n)
        assert value == f(X, n)
        want = numerical_gradient(f, (X, n), paths=[(0,)]).value[(0,)]
        np.testing.assert_allclose(gradient, want, rtol=1e-6, atol=1e-9)
    return _statements(ours.inspect(X, 5))


def _statements(inspection: Any) -> str:
    return "\n".join(line for line in str(inspection.joint).splitlines() if "#" not in line)
