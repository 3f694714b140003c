"""Bounds of values: no run leaves them, and they say where a derivative needs no care."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tapegen import differentiable
from tapegen.analysis.value_ranges import ranges_of
from tapegen.frontend.source.synthesize import function_from_text
from tapegen.ir.nodes import Return
from tests.lowering import lower

ONE = (
    *(
        "-{}",
        "{} * {}",
        "{} ** 2",
        "np.exp({})",
        "np.sqrt({})",
        "np.log({})",
        "np.abs({})",
        "np.tanh({})",
        "np.sin({})",
    ),
    *("1.0 / {}", "{} ** -1.5", "{} ** 0.5", "np.square({})", "np.cosh({})", "np.maximum({}, 0.5)", "np.arctan({})"),
    *(
        "np.minimum({}, -0.5)",
        "1.0 + {}",
        "2.0 * {}",
        "{} - 3.0",
        "np.sum({}) * np.ones(3)",
        "np.mean({}) + np.zeros(3)",
    ),
    *(
        "np.log2({})",
        "np.reciprocal({})",
        "{}[::-1]",
        "np.where(x > 0.0, {}, 1.0)",
        "-2.0 * {}",
        "{} ** 3",
        "np.log10({})",
    ),
)
TWO = ("{} + {}", "{} - {}", "{} * {}", "{} / {}", "np.maximum({}, {})", "np.hypot({}, {})", "np.where(x > y, {}, {})")


@st.composite
def programs(draw: Any) -> str:
    """Text that computes one thing after another and returns all of them."""
    names, lines = ["x", "y"], []
    for k in range(draw(st.integers(1, 9))):
        form = draw(st.sampled_from(ONE * 2 + TWO * 3))
        operand = st.sampled_from(names)
        chosen = [draw(operand)] * form.count("{}") if form in ONE else [draw(operand), draw(operand)]
        lines.append(f"    t{k} = {form.format(*chosen)}")
        names.append(f"t{k}")
    return "\n".join(["def f(x, y):", *lines, f"    return {', '.join(names[2:])},"])


POINTS = st.lists(st.sampled_from([0.0, -0.0, 1.0, -1.0, 0.3, -2.5, 1e-3, 40.0, -700.0, 800.0]), min_size=3, max_size=3)


@given(programs(), POINTS, POINTS)
@settings(max_examples=100, deadline=None)
def test_no_run_leaves_the_bounds(text: str, x: list[float], y: list[float]) -> None:
    f = function_from_text(text, {"np": np})
    args = np.array(x), np.array(y)
    function = lower(f, *args).function
    ranges = ranges_of(function)
    last = function.body[-1]
    assert isinstance(last, Return)
    with np.errstate(all="ignore"):
        values = f(*args)
    for value, result in zip(values, last.values, strict=True):
        finite = value[np.isfinite(value)]
        if np.abs(finite).max(initial=0.0) > 1e60:  # sums and products of finite numbers are taken to be finite
            break
        found = ranges.of(result)
        assert found is not None
        assert found.worst > 0 or finite.size == value.size, (text, result, found)
        assert found.worst > 1 or not np.isnan(value).any(), (text, result, found)
        assert (finite >= found.low - 1e-9 * abs(found.low)).all(), (text, result, found)
        assert (finite <= found.high + 1e-9 * abs(found.high)).all(), (text, result, found)


def counts_up(x: np.ndarray) -> float:
    low, total = 1.0, 0.0
    for k in range(3):
        low += x[k] * x[k]
        total += np.sqrt(low) / low
    return total


def falls(x: np.ndarray) -> float:
    low, total = 1.0, 0.0
    for k in range(3):
        low -= x[k] * x[k]
        total += np.sqrt(low) / low
    return total


def stored(x: np.ndarray) -> float:
    held = np.zeros(3)
    held += 0.5
    held[1:] = np.exp(-x[1:] * x[1:])
    return np.sum(1.0 / (held + 1e-3))


def stored_anything(x: np.ndarray) -> float:
    held = np.ones(3)
    held[0] = x[0]
    return np.sum(1.0 / held)


def through_a_view(x: np.ndarray) -> float:
    held = np.ones(3)
    part = held[1:]
    part[:] = x[1:]
    return np.sum(1.0 / held)


def norms(x: np.ndarray) -> float:
    return np.sum(x / np.sqrt(np.sum(x * x) + 1e-12)) + np.sum(np.log(1.0 + np.abs(x)) / (1.0 + np.exp(-x)))


@pytest.mark.parametrize(
    ("func", "cares"),
    [
        (counts_up, False),
        (falls, True),
        (stored, False),
        (stored_anything, True),
        (through_a_view, True),
        (norms, True),
    ],
)
def test_care_is_taken_where_it_must_be(func: Callable[..., Any], cares: bool) -> None:
    def weighted(x: np.ndarray, weight: float) -> Any:
        return weight * func(x)  # a weight of 0 sets aside what is not finite

    text = str(differentiable(weighted, backend="python").inspect(np.array([0.5, 0.25, -0.5]), 1.0).backward)
    assert ("!= 0.0" in text or "== 0.0, 0.0," in text) == cares
