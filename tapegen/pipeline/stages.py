"""The names of the programs between the lowered function and the loops of its derivative."""

from __future__ import annotations

from tapegen.ir.passes import stage_names
from tapegen.loops.pipeline import PASSES
from tapegen.pipeline.compile import REVERSE_PASSES

LOOP_STAGES = tuple(stage_names(PASSES))
"""Those on the way from a derivative to loops."""

STAGES = ("lower", *stage_names(REVERSE_PASSES), *LOOP_STAGES)
"""All of them in order: what was lowered, and what each pass makes of it."""
