"""Constant bounds of the trip counts of loops."""

from __future__ import annotations

import builtins
import math
from collections.abc import Callable
from typing import Any

from tapegen.ir.affine import Affine, linear
from tapegen.ir.nodes import Call, Const, Expr, For


def largest_trip_count(loop: For) -> float:
    """The largest trip count that a loop can have: its trip count where that is constant; infinite if unknown."""
    start, stop = (loop.start, loop.stop) if loop.step != Const(-1) else (loop.stop, loop.start)
    gaps = [last - first for last in _alternatives(stop, builtins.min) for first in _alternatives(start, builtins.max)]
    return min((abs(gap.constant) for gap in gaps if gap.is_constant), default=math.inf)


def _alternatives(end: Expr, func: Callable[..., Any]) -> list[Affine[Expr]]:
    """The end of a range, or what it is the least (largest) of."""
    form = linear(end)
    match form.terms:
        case ((Call(called, args), 1),) if called is func:
            return [linear(arg) + form.constant for arg in args]
    return [form]
