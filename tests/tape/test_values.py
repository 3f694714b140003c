"""Section 12: values at awkward points, as docs/tape.md states them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import tapegen as tg


def slope(function: Callable[..., Any], *at: Any) -> list[Any]:
    variables = [tg.Variable(value) for value in at]
    with np.errstate(all="ignore"), tg.GradientTape() as tape:
        y = function(*variables)
    return [g.numpy().tolist() for g in tape.gradient(y, variables)]


@pytest.mark.parametrize(
    ("function", "at", "expected"),
    [
        (np.abs, (0.0,), [0.0]),
        (np.sqrt, (0.0,), [np.inf]),
        (lambda x: 0.0 * np.sqrt(x), (0.0,), [0.0]),
        (np.linalg.norm, ([0.0, 0.0],), [[0.0, 0.0]]),
        (np.max, ([2.0, 2.0, 1.0],), [[0.5, 0.5, 0.0]]),
        (np.maximum, (2.0, 2.0), [0.5, 0.5]),
        (lambda x: np.maximum(x, 0.0), (-1.0,), [0.0]),
        (lambda x: np.clip(x, 0.0, 1.0), ([0.0, 1.0],), [[1.0, 1.0]]),
        (lambda x: np.where(x > 0, np.log(x), 0.0), (-1.0,), [0.0]),
        (lambda x: x**0.0, (0.0,), [0.0]),
        (lambda y: 0.0**y, (2.0,), [0.0]),
        (np.prod, ([0.0, 2.0, 3.0],), [[6.0, 0.0, 0.0]]),
    ],
)
def test_section_12(function: Any, at: tuple[Any, ...], expected: list[Any]) -> None:
    assert slope(function, *at) == expected
