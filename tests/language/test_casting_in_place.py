"""An array of integers without axes that meets a float in place, where the path decides: NumPy's error is raised."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from tests.judged import both, raises_as_python, right


def one_of_two(x, n):
    y = np.array(3) if n > 1 else 0.5
    y -= 1.5
    return y * x


def replaced_in_a_loop(x, n):
    k = 2.5
    for i in range(n):
        k = np.array(3) if i == 1 else k
        k *= 1.5
    return k * x


def beside_another_name(x, n):
    k = np.array(3)
    y = k if n > 1 else 2.5
    y += x
    return float(k * x)


@pytest.mark.parametrize("function", [one_of_two, replaced_in_a_loop, beside_another_name])
@both
def test_a_float_does_not_fit_into_integers(function: Callable[[float, int], Any], backend: str) -> None:
    right(function, 0.7, 1, backend=backend)
    raises_as_python(function, 0.7, 3, backend=backend)
