"""Four derivatives inside each other, of loops, branches and stores, against arithmetic with fifty digits."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import mpmath
import numpy as np
import pytest

import tapegen as tg


def loop(x, exp=np.exp):
    total = 0.0
    term = 1.0
    for k in range(1, 6):
        term = term * x / k
        total += exp(-0.25 * term) / (1.0 + x * x)
    return total


def stores(x, sin=np.sin, zeros=np.zeros):
    a = zeros(4)
    a[0] = x
    for k in range(1, 4):
        a[k] = sin(a[k - 1]) * x + 1.0 / (1.0 + a[k - 1] ** 2)
        a[k - 1] *= a[k]
    return a[0] ** 2 + a[1] ** 2 + a[2] * a[3]


def branches(x, log=np.log, sqrt=np.sqrt):
    y = log(x) / x
    while y < 2.0:
        y = y * x + sqrt(x)
    return y if y > 0.0 else -y


@pytest.mark.parametrize(
    ("function", "exact"),
    [
        (loop, {"exp": mpmath.exp}),
        (stores, {"sin": mpmath.sin, "zeros": lambda n: [mpmath.mpf(0)] * n}),
        (branches, {"log": mpmath.log, "sqrt": mpmath.sqrt}),
    ],
    ids=["loop", "stores", "branches"],
)
def test_the_fourth_derivative(function: Callable, exact: dict[str, Any]) -> None:
    fourth = tg.grad(tg.grad(tg.grad(tg.grad(function))), backend="python")
    with mpmath.workdps(50):
        expected = mpmath.diff(lambda x: function(x, **exact), mpmath.mpf(1.3), 4)
    assert fourth(1.3) == pytest.approx(float(expected), rel=1e-13)
