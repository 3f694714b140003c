"""Passes as data: a pipeline is a tuple of passes, run in order; optimizations can be switched off by name."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

Program = TypeVar("Program")

_DISABLED: ContextVar[frozenset[str]] = ContextVar("disabled passes", default=frozenset())

disabled_passes: Callable[[], frozenset[str]] = _DISABLED.get
"""The names of the optimizations that do not run here."""


@dataclass(frozen=True)
class Pass(Generic[Program]):
    """One step from program to program.

    Attributes
    ----------
    name : str
        A verb and its object.
    run : callable
        Gives the new program for the old one.
    purpose : str
        What it is for.
    optimization : bool
        Whether results are the same without it.
    options : tuple of str
        Options of the pipeline that it takes by keyword.
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
    """The program that the last pass gives.

    Parameters
    ----------
    passes : sequence of Pass
        The pipeline.
    program : Program
        What the first pass takes.
    watch : callable, optional
        Is shown the program after each pass, with the name of the stage; see `stage_names`.
    **options
        What passes ask for.
    """
    disabled = disabled_passes()
    for stage, each in zip(stage_names(passes), passes, strict=True):
        if each.name not in disabled or not each.optimization:
            program = each.run(program, **{name: options[name] for name in each.options})
        if watch is not None:
            watch(stage, program)
    return program


def stage_names(passes: Sequence[Pass[Any]]) -> list[str]:
    """The names of passes, with a number from the second time on that one runs."""
    found: list[str] = []
    for each in passes:
        times = 1 + sum(earlier.name == each.name for earlier in passes[: len(found)])
        found.append(each.name if times == 1 else f"{each.name}_{times}")
    return found


@contextmanager
def without_passes(names: frozenset[str]) -> Iterator[None]:
    """Inside, exactly these optimizations do not run."""
    token = _DISABLED.set(names)
    try:
        yield
    finally:
        _DISABLED.reset(token)
