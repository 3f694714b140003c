"""Pass pipelines as data: a tuple of passes, run in order; optimizations can be disabled by name.

Passes recurse as deeply as the user's calls and expressions nest, and their programs are many small objects, few of
them in cycles: Python's garbage collector would traverse them every few hundred allocations, and all objects of numba
repeatedly.  `deep` prepares the interpreter for both.
"""

from __future__ import annotations

import gc
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

Program = TypeVar("Program")

_DISABLED: ContextVar[frozenset[str]] = ContextVar("disabled passes", default=frozenset())

disabled_passes: Callable[[], frozenset[str]] = _DISABLED.get
"""The names of the disabled optimizations."""


@dataclass(frozen=True)
class Pass(Generic[Program]):
    """One step from program to program.

    Attributes
    ----------
    name : str
        A verb and its object.
    run : callable
        Maps a program to the transformed program.
    purpose : str
        Why the pass exists.
    optimization : bool
        Whether the program has the same results without it.
    options : tuple of str
        Pipeline options that it takes by keyword.
    """

    name: str
    run: Callable[..., Program]
    purpose: str
    optimization: bool = True
    options: tuple[str, ...] = ()


def run_passes(
    passes: Sequence[Pass[Program]],
    program: Program,
    watch: Callable[[str, Program], None] | None = None,
    **options: Any,
) -> Program:
    """The program after the last pass.

    Parameters
    ----------
    passes : sequence of Pass
        The pipeline.
    program : Program
        The input of the first pass.
    watch : callable, optional
        Called with the stage name and the program after each pass; see `stage_names`.
    **options
        Options of the passes.
    """
    disabled = disabled_passes()
    for stage, each in zip(stage_names(passes), passes, strict=True):
        if each.name not in disabled or not each.optimization:
            program = each.run(program, **{name: options[name] for name in each.options})
        if watch is not None:
            watch(stage, program)
    return program


def stage_names(passes: Sequence[Pass[Any]]) -> list[str]:
    """The names of passes, numbered from the second run of a pass on."""
    found: list[str] = []
    for each in passes:
        times = 1 + sum(earlier.name == each.name for earlier in passes[: len(found)])
        found.append(each.name if times == 1 else f"{each.name}_{times}")
    return found


@contextmanager
def without_passes(names: frozenset[str]) -> Iterator[None]:
    """Within this context, exactly these optimizations are disabled."""
    token = _DISABLED.set(names)
    try:
        yield
    finally:
        _DISABLED.reset(token)


# ---- the interpreter -------------------------------------------------------------------------------------------------


RECURSION = 20_000
"""Depth of Python calls inside the passes."""

YOUNG = 200_000
"""Allocations inside the passes before the collector runs."""

PROMOTED = 1_000_000
"""Objects of passes that are promoted before all garbage is collected: at least so many, and a quarter of all."""


class _Promotions:
    """Objects that joined the oldest generation without a collection: Python does not count them for the next one."""

    def __init__(self) -> None:
        self.count = 0
        self.most = 0

    def note(self, count: int) -> None:
        """Note that objects have been promoted; collect garbage where they are many."""
        self.count += count
        if self.count > max(self.most, PROMOTED):
            gc.collect()
            self.count, self.most = 0, len(gc.get_objects()) // 4


_promotions = _Promotions()


@contextmanager
def deep() -> Iterator[None]:
    """Raise the recursion limit and pause garbage collection while passes run."""
    limit, (young, *older) = sys.getrecursionlimit(), gc.get_threshold()
    sys.setrecursionlimit(max(limit, RECURSION))
    gc.set_threshold(max(young, YOUNG) if young else 0, *older)  # 0: no collections at all
    try:
        yield
    finally:
        if not gc.get_freeze_count():  # objects that the user has frozen stay frozen
            made = gc.get_count()[0]
            gc.freeze()  # with unfreeze: new objects become old without the collection that a lower threshold starts
            gc.unfreeze()
            if young and gc.isenabled():
                _promotions.note(made)
        gc.set_threshold(young, *older)
        sys.setrecursionlimit(limit)
