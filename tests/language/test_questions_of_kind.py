"""`bool`, `isinstance`, `callable` and `hasattr` of values that are of another kind on another path."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from tests.judged import both, right

Function = Callable[[float, int], Any]


def truth_of_none_or_number(x, n):
    y = None if n > 1 else x
    return y * 2.0 if bool(y) else x


def class_of_none_or_number(x, n):
    y = None if n > 1 else x
    is_number = isinstance(y, float)
    if is_number and x > 0.0:
        return y * y
    return x


def class_of_none_or_array(x, n):
    y = None if n > 1 else np.array([x, 1.0])
    if not isinstance(y, np.ndarray):
        return x * 1.5
    y[0] *= 2.0
    return float(y.sum())


def class_of_list_or_number(x, n):
    y = [x, 2.0] if n > 1 else x
    z = y
    if isinstance(y, list):
        z[0] = z[0] * x
        return y[0] * z[1]
    return y


def has_a_shape(x, n):
    y = None if n > 1 else np.array([x, 1.0])
    return float(y[0] * 3.0) if hasattr(y, "shape") else x


def carried_by_a_loop(x, n):
    y = None
    for _ in range(n):
        if isinstance(y, float):
            x = x * y
        y = x * 1.5
        if bool(y):
            x += y
    return x


@pytest.mark.parametrize("n", [1, 3])
@pytest.mark.parametrize(
    "function",
    [
        truth_of_none_or_number,
        class_of_none_or_number,
        class_of_none_or_array,
        class_of_list_or_number,
        has_a_shape,
        carried_by_a_loop,
    ],
)
@both
def test_what_a_value_is(function: Function, n: int, backend: str) -> None:
    right(function, 0.7, n, backend=backend)
