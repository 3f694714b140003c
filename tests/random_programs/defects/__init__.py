"""Wrong things planted in tapegen, to see whether the random programs find them.

A defect is a small change of the text of one function of tapegen, made from here while a program is judged.  A program
finds a defect if it fails with the defect and passes without.  `python -m tests.random_programs.defects` hunts for them
and prints within how many programs each was found; with `--store` the smallest program that finds a defect is kept, and
the test suite replays it.
"""

from __future__ import annotations

from tests.random_programs.defects import (
    calls,
    formulas,
    integers,
    kept,
    knowledge,
    loops,
    lowering,
    modes,
    nests,
    places,
    recorded,
    recording,
    sweeps,
)
from tests.random_programs.defects.switch import Defect, Stale

LAYERS: dict[str, tuple[Defect, ...]] = {
    "keywords of calls": lowering.KEYWORDS,
    "results in arrays": lowering.OUTPUTS,
    "values of two kinds": lowering.KINDS,
    "try and with": lowering.TRY,
    "objects of the caller": lowering.CALLER,
    "calls": calls.DEFECTS,
    "rules": formulas.DEFECTS,
    "knowledge": knowledge.DEFECTS,
    "views and reshapes": (*places.VIEWS, *places.RESHAPES),
    "dead code": places.DEAD,
    "backward sweep": sweeps.DEFECTS,
    "recording": recording.DEFECTS,
    "bounds and winners of loops": modes.WINNERS,
    "zeros": modes.ZEROS,
    "forward mode": modes.FORWARD,
    "directions": modes.DIRECTIONS,
    "loops put together": (*loops.FUSED, *loops.GATHERED),
    "elements that loops come back to": (*loops.HELD, *loops.FILLED),
    "iterations that wait": (*loops.WAITING, *loops.NEIGHBOURS, *loops.PEELED, *loops.STRIPS, *loops.DOTS),
    "loops around loops": (*nests.OUTER, *nests.CONTRACTED, *nests.SHORT, *nests.EXCLUDED),
    "lists, merges and chunks": (*nests.LISTS, *nests.MERGES, *nests.CHUNKS),
    "bounds of integers": (*integers.BOUNDS, *integers.OVERFLOW),
    "cache": kept.DEFECTS,
    "tapes": recorded.DEFECTS,
}
"""By what they are wrong about."""

DEFECTS: tuple[Defect, ...] = tuple(defect for defects in LAYERS.values() for defect in defects)

__all__ = ["DEFECTS", "LAYERS", "Defect", "Stale"]
