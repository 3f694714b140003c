"""Lists of a fixed length that are read and stored into at computed positions: the loop around them stays a loop."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from tapegen import check_grads, differentiable

X = np.linspace(-0.7, 1.3, 9)


def delayed(x: Any) -> Any:
    """Zeros of Python, in whose place scalars of NumPy are stored."""
    buffer, at, out = [0.0] * 3, 0, 0.0
    for k in range(len(x)):
        before = buffer[at]
        buffer[at] = x[k] + 0.5 * before
        out += before * before
        at = (at + 1) % len(buffer)
    return out


def of_both_kinds(x: Any) -> Any:
    """The first item is a scalar of NumPy, the others are Python's."""
    weights, total = [x[0], 0.5, 2.0], 0.0
    for k in range(len(x)):
        total += weights[k % 3] * x[k] * x[k]
    return total


def not_zero(x: Any) -> Any:
    state, total = [1.0, -0.0, 2.0], 0.0
    for k in range(len(x)):
        total += state[-1 - k % 3] * x[k]
        state[k % 3] = np.sin(x[k]) * state[(k + 1) % 3]
    return total + state[0] * state[1]


PROGRAMS: tuple[Callable[[Any], Any], ...] = (delayed, of_both_kinds, not_zero)
each = pytest.mark.parametrize("program", PROGRAMS, ids=lambda program: program.__name__)


@each
def test_gradient(program: Callable[[Any], Any]) -> None:
    assert differentiable(program, backend="python")(X) == program(X)
    check_grads(program, X, modes=("forward", "reverse"), backend="python")


@each
def test_the_loop_stays(program: Callable[[Any], Any]) -> None:
    function = differentiable(program)
    assert str(function.inspect(X).compiled) == str(function.inspect(np.ones(14)).compiled)


def test_an_array_takes_the_place_of_the_list() -> None:
    text = str(differentiable(delayed).inspect(X).compiled)
    assert "buffer = np.zeros(3)" in text
    assert "buffer = np.empty(3)" not in text


def test_a_negative_zero_is_kept() -> None:
    def at(x: Any, k: int) -> Any:
        items = [-0.0, -0.0]
        items[k] = items[k] * x
        return items[0]

    assert np.copysign(1.0, differentiable(at, backend="numba")(2.0, 1)) == -1.0


def test_compiled() -> None:
    function = differentiable(delayed, backend="numba")
    assert function(X) == delayed(X)
    check_grads(delayed, X, backend="numba")


def test_the_class_of_an_item_of_both_kinds() -> None:
    def which(x: Any, k: int) -> Any:
        item = [x[0], 0.5][k]
        return x[0] * (2.0 if isinstance(item, np.floating) else 3.0)

    for k in (0, 1):
        assert differentiable(which, backend="python")(X, k) == which(X, k)


@pytest.mark.parametrize("k", [3, -4])
def test_positions_outside_raise(k: int) -> None:
    def out_of(x: Any, k: int) -> Any:
        items = [x[0], 0.5, 1.0]
        items[k] = x[1]
        return items[0]

    with pytest.raises(IndexError, match="list assignment index out of range"):
        differentiable(out_of, backend="python")(X, k)
    with pytest.raises(IndexError, match="list assignment index out of range"):
        differentiable(out_of, backend="numba").grad(X, k)
