"""Constant trip counts of loops."""

from __future__ import annotations

import math

from tapegen.ir.affine import linear
from tapegen.ir.nodes import (
    For,
)


def constant_trip_count(loop: For) -> float:
    """The trip count of a loop, if it is a constant."""
    gap = linear(loop.stop) - linear(loop.start)
    return abs(gap.constant) if gap.is_constant else math.inf
