"""Errors and warnings of tapegen, and the place in the user's source they point at.

Every refusal is a `TapegenError`.  Its text holds the file, line and column, the source line with a caret,
one sentence why, and one sentence what to write instead.
"""

from __future__ import annotations

import linecache
import sys
import unicodedata
from dataclasses import dataclass, field
from pathlib import Path
from types import FrameType
from typing import Any, TypeVar

PACKAGE = str(Path(__file__).parent)
"""Where the files of this package lie: frames from there are not the user's."""


@dataclass(frozen=True, slots=True)
class Span:
    """A place in the user's source.  Lines count from 1, columns from 0 and in UTF-8 bytes (as in `ast`)."""

    file: str
    line: int
    column: int
    end_line: int
    end_column: int
    # Its own lines as they were parsed: the file may change later.  Not part of the identity of the place.
    lines: tuple[str, ...] = field(default=(), compare=False, repr=False)
    # Whether what has this origin serves the backward sweep of the user's statement, and is no part of it.
    adjoint: bool = False

    @classmethod
    def of_line(cls, file: str, line: int, text: str | None = None) -> Span:
        """A whole line, without its indentation; `text` defaults to what the file holds now."""
        if text is None:
            text = linecache.getline(file, line)
        text = text.rstrip()
        indent = len(text) - len(text.lstrip())
        return cls(file, line, indent, line, len(text.encode()), (text,) if text else ())

    @property
    def of_adjoint(self) -> Span:
        """The same place, for what serves the backward sweep of the statement there."""
        if self.adjoint:
            return self
        return Span(self.file, self.line, self.column, self.end_line, self.end_column, self.lines, adjoint=True)

    def source_line(self) -> str:
        """The first line of the place, without its newline; empty when the text cannot be read."""
        line = self.lines[0] if self.lines else linecache.getline(self.file, self.line)
        return line.rstrip("\r\n")

    def text(self) -> str:
        """The source text of the place, on one line (`energy = energy + u[i] * u[i]`)."""
        lines = list(self.lines) or [linecache.getline(self.file, n) for n in range(self.line, self.end_line + 1)]
        if not lines or not lines[0]:
            return ""
        # ast columns count UTF-8 bytes
        raw = [line.encode() for line in lines]
        raw[-1] = raw[-1][: self.end_column]
        raw[0] = raw[0][self.column :]
        return " ".join(" ".join(part.decode(errors="replace").split()) for part in raw).strip()

    def caret(self) -> str:
        """The source line with a line of carets under the place."""
        line = self.source_line()
        if not line.strip():
            return ""
        raw = line.encode()
        indent = len(raw) - len(raw.lstrip())
        start = max(self.column, indent)
        end = self.end_column if self.end_line == self.line else len(raw.rstrip())
        head = raw[indent:start].decode(errors="replace")
        marked = raw[start:end].decode(errors="replace")
        padding = "".join("\t" if character == "\t" else " " * _width(character) for character in head)
        carets = "^" * max(1, sum(map(_width, marked)))
        return f"    {raw[indent:].decode(errors='replace').rstrip()}\n    {padding}{carets}"


Raising = TypeVar("Raising", bound=BaseException)


def of_program(error: Raising) -> Raising:
    """Mark an exception as the one that plain Python raises for the user's program."""
    error.__tapegen_of_program__ = True  # type: ignore[attr-defined]
    return error


def frames_of_tapegen() -> int:
    """The `stacklevel` at which a warning of the caller points at the user's own line."""
    level = 1
    frame: FrameType | None = sys._getframe(1)
    ours = ("tapegen", "numba", "functools")  # cached properties
    while frame is not None and frame.f_globals.get("__name__", "").partition(".")[0] in ours:
        level, frame = level + 1, frame.f_back
    return level


def _width(character: str) -> int:
    """Columns that a character takes in a terminal."""
    if unicodedata.combining(character):
        return 0
    return 2 if unicodedata.east_asian_width(character) in "WF" else 1


def printable(text: str) -> str:
    """A text on one line, with escapes for what does not print."""
    return "".join(c if c.isprintable() else c.encode("unicode_escape").decode() for c in text)


class TapegenError(Exception):
    """Base of every refusal.

    Parameters
    ----------
    reason : str
        One sentence: what is refused (the construct or argument by name) and why.
    advice : str
        One sentence: what to write instead.
    span : Span, optional
        Where in the user's source.
    """

    def __init__(self, reason: str, advice: str = "", span: Span | None = None) -> None:
        super().__init__(reason)  # alone: OSError and SyntaxError give further arguments a meaning of their own
        self.reason = reason
        self.advice = advice
        self.span = span

    def __reduce__(self) -> tuple[Any, ...]:
        notes = {"__notes__": self.__notes__} if hasattr(self, "__notes__") else None
        return type(self), (self.reason, self.advice, self.span), notes

    def __str__(self) -> str:
        parts = []
        if self.span is not None:
            parts.append(f"{self.span.file}:{self.span.line}:{self.span.column + 1}: {self.reason}")
            caret = self.span.caret()
            if caret:
                parts.append(caret)
        else:
            parts.append(self.reason)
        if self.advice:
            parts.append(self.advice)
        return "\n".join(parts)


class UnsupportedSyntax(TapegenError, SyntaxError):
    """A Python construct that has no derivative form here."""

    def __init__(self, reason: str, advice: str = "", span: Span | None = None) -> None:
        super().__init__(reason, advice, span)
        # Tracebacks print a SyntaxError from these fields, not from str()
        self.msg = f"{reason}\n{advice}" if advice else reason
        if span is not None:
            line = span.source_line()
            self.filename, self.lineno, self.end_lineno = span.file, span.line, span.line
            self.text = line + "\n"
            self.offset = _character(line, span.column) + 1
            self.end_offset = _character(line, span.end_column) + 1 if span.end_line == span.line else len(line) + 1


class SourceUnavailable(TapegenError, OSError):
    """The text of the function cannot be found, or is not the text that was loaded."""


def _character(line: str, column: int) -> int:
    """The index of the character at a byte column."""
    return len(line.encode()[:column].decode(errors="replace"))


class NotDifferentiable(TapegenError, TypeError):
    """A function or value through which no derivative can be taken."""


class MissingRule(NotDifferentiable, LookupError):
    """A known function without a derivative rule."""


class BadArgument(TapegenError, ValueError, TypeError):
    """An argument of a dtype, shape, layout or structure that is refused."""


class AliasError(TapegenError, ValueError):
    """Two names for the same memory, one of them written, in a way that cannot be followed."""


class NotFinite(TapegenError, FloatingPointError):
    """A NaN or an infinity has been made, and `debug_nans` is in force."""


class TapeMemoryError(TapegenError, MemoryError):
    """The recorded values exceed the memory that may be used."""


class NameConflict(TapegenError, ValueError):
    """Two names that cannot be told apart in the output."""


class CompileLimit(TapegenError, RecursionError):
    """A function too large or too deeply nested for Python or the compiler."""


class BuildError(TapegenError, RuntimeError):
    """Building or loading compiled code failed."""


class NoCompiledForm(TapegenError):
    """A call that numba does not support and that is not lowered to loops.

    Parameters
    ----------
    call : str
        The name of the call.
    origin : Span or None
        Its location in the user's source.
    """

    def __init__(self, call: str, origin: Span | None) -> None:
        super().__init__(f"{call} has no compiled form here.", span=origin)
        self.call = call
        self.origin = origin


class InternalError(TapegenError, RuntimeError):
    """A fault of tapegen itself, not of the user's program.

    Attributes
    ----------
    stage : str
        What tapegen was doing: "lowering", "deriving", "printing", "compiling", "running" or "returning".
    reproducer : str
        A Python file that reproduces it; empty where none could be written.
    is_of_generated : bool
        Whether it is about text that tapegen made, and not about a function of the user's.
    """

    stage = ""
    reproducer = ""
    is_of_generated = False

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), (self.reason, self.advice, self.span), dict(vars(self))


class CacheWarning(UserWarning):
    """The disk cache could not be used; the result is right all the same."""


class PerformanceWarning(UserWarning):
    """The result is right, but something ran uncompiled."""
