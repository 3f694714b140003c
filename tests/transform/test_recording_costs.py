"""What is recorded: values that take longer to compute again than to send to memory and back."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from tapegen import differentiable

X = np.random.default_rng(2).uniform(0.5, 1.5, (9, 3))


def periodic_pairs(x, size):
    energy = 0.0
    for i in range(len(x)):
        for j in range(i):
            dx = x[j, 0] - x[i, 0]
            dx -= size * round(dx / size)
            dy = x[j, 1] - x[i, 1]
            dy -= size * np.rint(dy / size)
            energy += 1.0 / (dx * dx + dy * dy)
    return energy


def pairs_of_vectors(x, size):
    total = np.zeros_like(x)
    for i in range(len(x)):
        for j in range(i):
            d = x[j] - x[i]
            total[i] += size * d / (d[0] + 3.0)
    return np.sum(total**2)


def clipped_rows(x, size):
    total = 0.0
    for row in x:
        low = np.floor(row)
        part = (row - low) * size
        total += np.sum(part * part * part)
    return total


@pytest.mark.parametrize("f", [periodic_pairs, pairs_of_vectors, clipped_rows])
def test_arithmetic_is_not_recorded(f: Callable[..., Any]) -> None:
    assert differentiable(backend="python")(f).inspect(X, 2.0).report.recorded_bytes == 0


def exponentials(x, size):
    total = 1.0
    for row in x:
        total += np.sum(np.exp(row * size)) ** 2
    return total


def powers(x, size):
    total = 0.0
    for i in range(len(x)):
        total += (x[i, 0] ** size) ** 2
    return total


@pytest.mark.parametrize("f", [exponentials, powers])
def test_elementary_functions_are_recorded(f: Callable[..., Any]) -> None:
    assert differentiable(backend="python")(f).inspect(X, 2.0).report.recorded_bytes > 0
