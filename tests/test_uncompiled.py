"""What has no compiled form runs as generated Python, and says so once, at the user's own line."""

from __future__ import annotations

import warnings

import numpy as np
import pytest

from tapegen import differentiable
from tapegen.backend import build
from tapegen.errors import BuildError, PerformanceWarning


def columns_in_order(m: np.ndarray) -> float:
    weights = np.arange(3.0)
    return float(np.sum(m[:, np.lexsort((m[1], m[0]))] * weights))


M = np.array([[0.4, 1.3, 0.2], [0.1, 0.9, 0.5]])


def test_the_warning_names_the_call_and_points_at_the_user() -> None:
    decorated = differentiable(columns_in_order)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        for _ in range(3):
            value, gradient = decorated.value_and_grad(M)
    (warning,) = caught
    assert warning.category is PerformanceWarning
    line = columns_in_order.__code__.co_firstlineno + 2
    assert str(warning.message) == (
        f"{__file__}:{line}: np.lexsort has no compiled form here; "
        "the generated Python of columns_in_order_value_and_grad runs uncompiled"
    )
    assert warning.filename == __file__
    assert value == columns_in_order(M)
    np.testing.assert_array_equal(gradient, [[1.0, 2.0, 0.0], [1.0, 2.0, 0.0]])


def test_numba_or_nothing() -> None:
    decorated = differentiable(columns_in_order, backend="numba")
    with pytest.raises(BuildError, match=r"np\.lexsort"):
        decorated.value_and_grad(M)


def chain(x: float, y: float) -> float:
    for _ in range(3):
        x = x * y + 0.5
        y = y - 0.1 * x
    return x * y


def test_what_would_compile_for_minutes_runs_uncompiled(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(build, "LINES", 5)
    with pytest.warns(PerformanceWarning, match=r"more than 5 take minutes to compile; the generated Python of chain"):
        value, gradient = differentiable(chain).value_and_grad(0.3, 0.4)
    assert (value, gradient) == differentiable(chain, backend="python").value_and_grad(0.3, 0.4)
