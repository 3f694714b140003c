"""What tapegen itself does grows with the length of a program, not with its square."""

from __future__ import annotations

import sys
from typing import Any

from benchmarks.transform import function_of, transform
from tapegen import differentiable
from tests.programs.language import chained_integers


def calls_for(lines: int) -> int:
    """How many functions are called for a program of so many lines: the same on every machine."""
    count = 0

    def seen(frame: Any, event: str, argument: Any) -> None:
        nonlocal count
        count += 1

    function = function_of(lines)
    sys.setprofile(seen)
    try:
        transform(function)
    finally:
        sys.setprofile(None)
    return count


def test_four_times_the_lines_take_four_times_the_work() -> None:
    calls_for(50)  # rules are traced once
    short, long = calls_for(50), calls_for(200)
    assert long < 4 * short * 1.25


def test_a_chain_of_integers_is_not_written_out() -> None:
    text = differentiable(chained_integers.f).inspect(*chained_integers.ARGS).compiled
    assert len(text) < 4000  # 2,200; it doubled with each of them
