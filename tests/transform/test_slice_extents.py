"""Extents of slices that begin behind the end of an array, in loops whose counter may be negative."""

from __future__ import annotations

import numpy as np
import pytest

import tapegen as tg
from tapegen.frontend.source.synthesize import function_from_text

LOOPS = ("range(-2, n - 2)", "range(n + 2)", "range(k, n - 2)")
PARTS = (
    "x[n - 1 - i :]",
    "x[n - 1 - i : n] * x[0]",
    "x[n - 2 * i :] * 2.0",
    "x[2 + i : 3] ** 2",
    "x[3 : 2 + i] ** 2",
    "x[2:][n - 1 - i :] * x[0]",
    "np.outer(x[n - 1 - i :], x[i + 2 :])",
)


@pytest.mark.parametrize("loop", LOOPS)
@pytest.mark.parametrize("part", PARTS)
def test_slices_behind_the_end(loop: str, part: str) -> None:
    text = f"""def f(x, k):
    n = len(x)
    s = 0.0
    for i in {loop}:
        s += np.sum({part}) * x[0]
    return s
"""
    f = function_from_text(text, {"np": np})
    x = np.linspace(0.1, 0.9, 5)
    step = 1e-6 * np.eye(5)
    expected = [(f(x + h, -1) - f(x - h, -1)) / 2e-6 for h in step]
    value, gradient = tg.value_and_grad(f, wrt="x", backend="python")(x, -1)
    assert value == f(x, -1)
    np.testing.assert_allclose(gradient, expected, rtol=1e-6, atol=1e-8)
