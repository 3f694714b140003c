"""Pictures: what they plot, where they draw, and what they say without matplotlib."""

from __future__ import annotations

import math
import sys
from typing import Any

import matplotlib as mpl
import numpy as np
import pytest

import tapegen as tg
from tapegen.rules import registry

mpl.use("Agg")


@pytest.fixture(autouse=True)
def _figures_are_closed() -> Any:
    yield
    mpl.pyplot.close("all")


def march(u0: Any, n: Any) -> Any:
    u = u0
    for _ in range(n):
        u = np.sin(u) * u
    s = u
    while s[0] > 0.1:
        s = np.sin(s)
    return np.sum(s)


def bars(axes: Any) -> dict[str, list[tuple[str, float, float]]]:
    """For each loop the names, beginnings and lengths of its segments."""
    found: dict[str, list[tuple[str, float, float]]] = {}
    labels = [text.get_text() for text in axes.get_yticklabels()]
    for container in axes.containers:
        (patch,) = container.patches
        row = labels[round(patch.get_y() + patch.get_height() / 2)]
        found.setdefault(row, []).append((container.get_label(), patch.get_x(), patch.get_width()))
    return found


def test_tapes_are_segments_of_the_bar_of_their_loop() -> None:
    """A loop whose iterations are counted by running it grows its tape; the others are known before."""
    function = tg.differentiable(march, backend="python")
    start = march.__code__.co_firstlineno
    axes = tg.plot.memory(function, np.full(4, 1.2), 3)
    found = bars(axes)
    assert list(found) == [f"{start + 2}: for _ in range(n)", f"{start + 5}: while s[0] > 0.1"]
    counted = found[f"{start + 2}: for _ in range(n)"]
    assert all(width == 3 * 4 * 8 for _, _, width in counted)
    assert [begin for _, begin, _ in counted] == [k * 96 for k in range(len(counted))]
    ((_, _, grown),) = found[f"{start + 5}: while s[0] > 0.1"]
    assert grown > 0
    assert grown % (4 * 8) == 0
    total = sum(width for segments in found.values() for _, _, width in segments)
    assert axes.get_title() == f"march: {int(total):,} bytes recorded"
    assert {label for segments in found.values() for label, *_ in segments} == {
        value.name for value in function.inspect(np.full(4, 1.2), 3).report.recorded
    }


def test_nothing_recorded_is_an_empty_picture() -> None:
    axes = tg.plot.memory(tg.differentiable(lambda x: 2.0 * x, backend="python"), 1.0)
    assert not axes.containers
    assert axes.get_title().endswith(": 0 bytes recorded")


def test_the_function_sees_its_arguments_once_and_unchanged() -> None:
    x = np.ones(3)

    @tg.differentiable(backend="python")
    def writes(x: Any) -> Any:
        while x[0] < 4.0:
            x *= np.exp(x)
        return x.sum()

    tg.plot.memory(writes, x)
    tg.plot.check(writes, x)
    assert np.array_equal(x, np.ones(3))


def lines(axes: Any) -> dict[str, tuple[np.ndarray, np.ndarray]]:
    return {line.get_label(): line.get_data() for line in axes.lines}


def test_errors_fall_with_the_square_of_the_step() -> None:
    def func(x: Any, y: Any) -> Any:
        return np.exp(x[0]) * x[1] + y**3

    axes = tg.plot.check(func, np.array([0.3, 0.8]), 1.5, backend="python")
    found = lines(axes)
    assert list(found) == ["x", "y", "step²"]
    for name in ("x", "y"):
        steps, errors = found[name]
        assert (steps[0], steps[-1]) == (0.1, 1e-12)
        assert math.isclose(errors[0] / errors[3], 100.0, rel_tol=0.1)  # one decade
        assert errors.min() < 1e-8
        assert errors[-1] > errors.min()  # rounding
    assert axes.get_xscale() == axes.get_yscale() == "log"


def test_a_wrong_gradient_stays_level() -> None:
    def sine(x: Any) -> float:
        return float(np.sin(x))

    def calls(x: Any) -> Any:
        return sine(x)

    tg.partials(sine)(lambda x: 1.01 * np.cos(x))
    try:
        _, errors = lines(tg.plot.check(calls, 0.4, backend="python"))["x"]
    finally:
        del registry._RULES[sine]  # other tests look at what users have registered
    assert errors[6:20].min() > 1e-3


def test_steps_out_of_the_domain_are_not_drawn() -> None:
    _, errors = lines(tg.plot.check(lambda x: math.log(x), 0.01, backend="python"))["x"]
    assert np.isnan(errors[0])
    assert errors[~np.isnan(errors)].min() < 1e-7


@pytest.mark.parametrize("draw", [tg.plot.memory, tg.plot.check])
def test_pictures_go_where_they_are_told(draw: Any) -> None:
    _, axes = mpl.pyplot.subplots()
    function = tg.differentiable(lambda x: np.sum(x * x), backend="python")
    assert draw(function, np.ones(3), ax=axes) is axes
    assert len(mpl.pyplot.get_fignums()) == 1
    with pytest.raises(tg.BadArgument, match="ax is of type str"):
        draw(function, np.ones(3), ax="here")


@pytest.mark.parametrize("draw", [tg.plot.memory, tg.plot.check])
def test_without_matplotlib_the_message_names_what_to_install(draw: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    with pytest.raises(ImportError, match=r"pip install 'tapegen\[plot\]'"):
        draw(lambda x: x, 1.0)
