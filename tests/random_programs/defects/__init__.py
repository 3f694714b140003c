"""Wrong things planted in tapegen, to see whether the random programs find them.

A defect is a small change of the text of one function of tapegen, made from here while a program is judged.  A program
finds a defect if it fails with the defect and passes without.  `python -m tests.random_programs.defects` hunts for them
and prints within how many programs each was found; with `--store` the smallest program that finds a defect is kept, and
the test suite replays it.
"""

from __future__ import annotations

from tests.random_programs.defects import calls, formulas, knowledge, recording, sweeps
from tests.random_programs.defects.switch import Defect, Stale

DEFECTS: tuple[Defect, ...] = (
    *sweeps.DEFECTS,
    *recording.DEFECTS,
    *knowledge.DEFECTS,
    *calls.DEFECTS,
    *formulas.DEFECTS,
)

__all__ = ["DEFECTS", "Defect", "Stale"]
