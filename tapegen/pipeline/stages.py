"""Stages: the names of the programs between the lowered function and the loops of its derivative."""

from __future__ import annotations

from tapegen.ir.passes import stage_names
from tapegen.loops.pipeline import PASSES
from tapegen.pipeline.compile import REVERSE_PASSES

LOOP_STAGES = tuple(stage_names(PASSES))
"""The stages from a derivative to loops."""

STAGES = ("lower", *stage_names(REVERSE_PASSES), *LOOP_STAGES)
"""All stages in order: the lowered program, and the result of each pass."""
