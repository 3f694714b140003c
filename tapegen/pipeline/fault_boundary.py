"""Fault boundary: faults of tapegen become `InternalError`, with the user's location, the stage and a reproducer.

There is one boundary for each entry into the compiler: lowering (`SpecializationCache.lower`), deriving and building
(`Program`), the results of a call (`BoundCall`), and source of several programs (`export`, `higher_order`).  Other
errors pass unchanged: refusals, warnings, limits of the machine, and whatever the user's code raises while it is
lowered or run.
"""

from __future__ import annotations

import os
import sysconfig
from collections.abc import Callable, Iterator
from pathlib import Path
from types import FrameType, TracebackType

import numpy as np

from tapegen.errors import PACKAGE, InternalError, Span, TapegenError
from tapegen.frontend.source.callables import calls_instead
from tapegen.frontend.source.locate import locate
from tapegen.ir.nodes import Stmt
from tapegen.pipeline.reproducer import Subject, written_reproducer

_OTHERS = (TapegenError, Warning, MemoryError, RecursionError, OSError, ImportError)
"""Refusals, warnings that a filter turns into errors, and limits of the machine and the installation."""


class Boundary:
    """A stage of the compiler: an exception that is no refusal becomes an `InternalError`.

    Parameters
    ----------
    stage : str
        The stage, see `InternalError`.
    subject : callable
        The subject of the stage; called only in case of a fault.
    """

    __slots__ = ("stage", "subject")

    def __init__(self, stage: str, subject: Callable[[], Subject]) -> None:
        self.stage, self.subject = stage, subject

    def __enter__(self) -> None:
        pass

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        if isinstance(error, InternalError):
            if not error.reproducer or error.is_of_generated:
                cause = error.__cause__ or error
                raise internal_error(cause, error.stage or self.stage, self.subject(), error.span) from cause
        elif error is not None and is_fault(error, traceback):
            raise internal_error(error, self.stage, self.subject()) from error


def is_fault(error: BaseException, traceback: TracebackType | None) -> bool:
    """Whether an exception from the compiler is a fault of the compiler.

    Parameters
    ----------
    error : exception
        What was raised.
    traceback : traceback
        From the compiler to where it was raised; if it ends in the user's code, that has raised it.
    """
    if not isinstance(error, Exception) or isinstance(error, _OTHERS):
        return False
    if getattr(error, "__tapegen_of_program__", False):
        return False
    return not any(is_of_user(frame) for frame in _frames(traceback))


def internal_error(error: BaseException, stage: str, subject: Subject, span: Span | None = None) -> InternalError:
    """The error that the user sees in place of a fault."""
    place = span or _place(error) or _definition(subject)
    reproducer = written_reproducer(subject, stage, error)
    text = " ".join(str(error).split())
    function = calls_instead(subject.function) or subject.function
    name = function.__qualname__
    made = InternalError(
        f"tapegen itself failed while {stage} {name}: {type(error).__name__}{f': {text}' if text else ''}.",
        f"This is a fault of tapegen, not of your program: please report it"
        f"{f' with the file that reproduces it, {reproducer}' if reproducer else ''}.",
        place,
    )
    made.stage, made.reproducer = stage, reproducer
    made.is_of_generated = function.__code__.co_filename.startswith("<tapegen ")
    return made


def _frames(traceback: TracebackType | None) -> Iterator[FrameType]:
    while traceback is not None:
        yield traceback.tb_frame
        traceback = traceback.tb_next


def is_of_user(frame: FrameType) -> bool:
    """Whether a frame belongs to the user's program or to another library than those tapegen is built on."""
    file = frame.f_code.co_filename
    if file.startswith(("<frozen ", "<tapegen ", "<dynamic>", "<__array_function__", *_TOOLS)):
        return False
    return not file.startswith(_STDLIB) or "-packages" in file  # site-packages lie within Python's own directory


def is_of_tapegen(frame: FrameType) -> bool:
    """Whether a frame belongs to tapegen or to code that it has generated."""
    return frame.f_code.co_filename.startswith(("<tapegen ", _TOOLS[0]))


def _place(error: BaseException) -> Span | None:
    """The user's statement at the time: the one being lowered, or the innermost one that a pass was processing."""
    noted = getattr(error, "__tapegen_span__", None)
    if isinstance(noted, Span) and not noted.file.startswith(PACKAGE):
        return noted
    for frame in reversed(list(_frames(error.__traceback__))):
        if not frame.f_code.co_filename.startswith(PACKAGE):
            continue
        for value in reversed(list(frame.f_locals.values())):
            origin = getattr(value, "origin", None) if isinstance(value, Stmt) else None
            if isinstance(origin, Span) and not origin.file.startswith(PACKAGE):
                return origin
    return None


def _definition(subject: Subject) -> Span:
    function = calls_instead(subject.function) or subject.function
    try:
        found = locate(function)
    except TapegenError:
        return Span.of_line(function.__code__.co_filename, function.__code__.co_firstlineno)
    return Span.of_line(found.file, found.node.lineno, found.lines[found.node.lineno - 1])


_STDLIB = sysconfig.get_paths()["stdlib"]
_SITE = Path(np.__file__).parent.parent
_DEPENDENCIES = (str(_SITE / name) for name in ("numpy", "scipy", "numba", "llvmlite", "gast", "islpy"))
_TOOLS = tuple(folder + os.sep for folder in (PACKAGE, *_DEPENDENCIES))
"""The directories of the compiler and its dependencies."""

__all__ = ["Boundary", "Subject", "internal_error", "is_fault", "is_of_tapegen", "is_of_user"]
