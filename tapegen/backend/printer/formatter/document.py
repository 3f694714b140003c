"""Documents (Wadler-style): text with optional line breaks, and the printer that decides which of them break.

Generated code is laid out as ruff's formatter would lay it out, so that a project that commits it sees no diff when its
own formatter runs.  The elements below and the two loops (print, and measure whether something fits) follow that
formatter's own model; `tapegen.backend.printer.formatter` defines which document each Python construct becomes.
"""

from __future__ import annotations

import unicodedata
from dataclasses import dataclass
from enum import Enum
from itertools import repeat
from typing import Any, NamedTuple

WIDTH = 88
INDENT = 4


class GroupId:
    """Identity of a group whose state (broken or flat) other elements depend on."""

    __slots__ = ()


class Line(Enum):
    """A place where the line breaks if its group does: SOFT is nothing otherwise, SPACE a space; HARD always breaks."""

    SOFT = 0
    SPACE = 1
    HARD = 2


SOFT, SPACE, HARD = Line  # plain names: members are slow to look up


@dataclass(slots=True, eq=False)
class Group:
    """Content whose own lines all break, or none.

    With `only_if` it is a group only where that other group breaks (and plain content otherwise); with `expand` its
    lines always break.
    """

    content: Doc
    id: GroupId | None = None
    expand: bool = False
    only_if: GroupId | None = None


@dataclass(slots=True, eq=False)
class Indent:
    """Content whose lines start one level deeper; with `only_if`, where that group breaks."""

    content: Doc
    only_if: GroupId | None = None


@dataclass(slots=True, eq=False)
class If:
    """Content that appears only if the group `id` (None: the enclosing one) breaks, or only if it does not."""

    breaks: bool
    content: Doc
    id: GroupId | None = None


@dataclass(slots=True, eq=False)
class FitsExpanded:
    """Brackets inside optional parentheses: as long as the group `id` is flat, breaking inside counts as fitting."""

    content: Doc
    id: GroupId


@dataclass(slots=True, eq=False)
class BestFit:
    """The first of several layouts that fits; the last one if none does."""

    variants: tuple[Doc, ...]


@dataclass(slots=True, eq=False)
class ParenthesizeIfItHelps:
    """Content in parentheses on lines of its own, if it fits there and not in its present position."""

    content: Doc
    id: GroupId


Doc = str | tuple["Doc", ...] | Line | Group | Indent | If | FitsExpanded | BestFit | ParenthesizeIfItHelps


class _Measure(Enum):
    """How much must fit: up to the first break, everything, or everything except text that nothing can break."""

    FIRST_LINE = 0
    ALL_LINES = 1
    ALL_LINES_BUT_TEXT = 2


_FIRST_LINE, _ALL_LINES, _ALL_LINES_BUT_TEXT = _Measure


class _Args(NamedTuple):
    broken: bool
    indent: int
    measure: _Measure = _FIRST_LINE

    def flat(self) -> _Args:
        return _Args(False, self.indent, self.measure)

    def expanded(self) -> _Args:
        return _Args(True, self.indent, self.measure)

    def deeper(self) -> _Args:
        return _Args(self.broken, self.indent + INDENT, self.measure)

    def measuring(self, measure: _Measure) -> _Args:
        return _Args(self.broken, self.indent, measure)


_Work = list[tuple[_Args, Doc]]


def text_width(text: str) -> int:
    """Columns that a text takes in a terminal (wide characters two, combining ones none)."""
    if text.isascii():
        return len(text)
    return sum(
        0 if unicodedata.combining(char) else 2 if unicodedata.east_asian_width(char) in "WF" else 1 for char in text
    )


def layout_lines(doc: Doc, indent: int, width: int = WIDTH) -> list[str]:
    """The document as lines; every line starts with `indent` spaces or more."""
    return _Printer(width).run(doc, indent)


class _Printer:
    def __init__(self, width: int) -> None:
        self.width = width
        self.done: list[str] = []
        self.line = ""
        self.column = 0
        self.pending_indent = 0
        self.known_to_fit = False  # the text up to the next break has been measured
        self.modes: dict[GroupId, bool] = {}  # group -> did it break

    def run(self, doc: Doc, indent: int) -> list[str]:
        self.pending_indent = indent
        work: _Work = [(_Args(True, indent), doc)]
        while work:
            self._print(*work.pop(), work)
        self.done.append(self.line)
        return self.done

    # ---- printing ----

    def _print(self, args: _Args, doc: Any, work: _Work) -> None:
        kind = type(doc)
        if kind is str:
            self._text(doc)
        elif kind is tuple:
            work.extend(zip(repeat(args), reversed(doc)))
        elif kind is Line:
            if args.broken or doc is HARD:
                self._newline(args.indent)
            elif doc is SPACE:
                self._text(" ")
        elif kind is If:
            if (args.broken if doc.id is None else self.modes[doc.id]) == doc.breaks:
                work.append((args, doc.content))
        elif kind is Group:
            self._group(args, doc, work)
        elif kind is Indent:
            deeper = doc.only_if is None or self.modes[doc.only_if]
            work.append((args.deeper() if deeper else args, doc.content))
        elif kind is FitsExpanded:
            if not self.modes[doc.id]:
                self.known_to_fit = False  # what is inside was measured broken: measure it again
            work.append((args, doc.content))
        elif kind is BestFit:
            work.append(self._best(args, doc.variants, work))
        else:
            self._parenthesize_if_it_helps(args, doc, work)

    def _text(self, text: str) -> None:
        if not text:
            return
        self.line += " " * self.pending_indent + text
        self.column += self.pending_indent + text_width(text)
        self.pending_indent = 0

    def _newline(self, indent: int) -> None:
        self.done.append(self.line)
        self.line, self.column = "", 0
        self.pending_indent = indent
        self.known_to_fit = False

    def _group(self, args: _Args, group: Group, work: _Work) -> None:
        if group.only_if is not None and not self.modes[group.only_if]:
            work.append((args, group.content))
            return
        broken = group.expand or self._must_break(args, group.content, group.id, work)
        if group.id is not None:
            self.modes[group.id] = broken
        work.append((args.expanded() if broken else args.flat(), group.content))

    def _must_break(self, args: _Args, content: Doc, id: GroupId | None, work: _Work) -> bool:
        if not args.broken and self.known_to_fit:
            return False
        self.known_to_fit = True
        if id is not None:
            self.modes[id] = False
        return not self._fits([(args.flat(), content)], work)

    def _best(self, args: _Args, variants: tuple[Doc, ...], work: _Work) -> tuple[_Args, Doc]:
        if not args.broken and self.known_to_fit:
            return args, variants[0]
        self.known_to_fit = True
        for variant in variants[:-1]:
            if self._fits([(args.flat().measuring(_FIRST_LINE), variant)], work):
                return args.flat(), variant
        return args.expanded(), variants[-1]

    def _parenthesize_if_it_helps(self, args: _Args, doc: ParenthesizeIfItHelps, work: _Work) -> None:
        parenthesized = False
        if self._must_break(args, doc.content, doc.id, work):
            self.modes[doc.id] = True
            parenthesized = self._fits(_in_parentheses(args.measuring(_ALL_LINES), doc.content), work)
        self.modes[doc.id] = parenthesized
        work.extend(_in_parentheses(args.expanded(), doc.content) if parenthesized else [(args.flat(), doc.content)])

    # ---- measuring ----

    def _fits(self, first: _Work, rest: _Work) -> bool:
        """Whether `first`, and what follows it up to the next break, fits at the printer's position."""
        column, pending_indent = self.column, self.pending_indent
        work, waiting = list[tuple[_Args, Any]](first), len(rest)
        while work or waiting:
            if work:
                args, doc = work.pop()
            else:
                waiting -= 1
                args, doc = rest[waiting]
            text = ""
            kind = type(doc)
            if kind is str:
                text = doc
            elif kind is tuple:
                work.extend(zip(repeat(args), reversed(doc)))
            elif kind is Line:
                if not args.broken and doc is HARD:
                    return True
                if args.broken and args.measure is _FIRST_LINE:
                    return True
                if args.broken:
                    column, pending_indent = 0, args.indent
                elif doc is SPACE:
                    text = " "
            elif kind is If:
                if (args.broken if doc.id is None else self.modes[doc.id]) == doc.breaks:
                    work.append((args, doc.content))
            elif kind is Group:
                inside = args
                if doc.only_if is None or self.modes[doc.only_if]:
                    inside = args.expanded() if doc.expand else args
                if doc.id is not None:
                    self.modes[doc.id] = inside.broken
                work.append((inside, doc.content))
            elif kind is Indent:
                deeper = doc.only_if is None or self.modes[doc.only_if]
                work.append((args.deeper() if deeper else args, doc.content))
            elif kind is FitsExpanded:
                if not args.broken and not self.modes[doc.id]:
                    args = args.expanded().measuring(_ALL_LINES_BUT_TEXT)
                work.append((args, doc.content))
            elif kind is BestFit:
                work.append((args, doc.variants[-1] if args.broken else doc.variants[0]))
            else:  # ParenthesizeIfItHelps
                self.modes[doc.id] = args.broken
                work.append((args, doc.content))
            if text:
                column += pending_indent + (len(text) if text.isascii() else text_width(text))
                pending_indent = 0
                if column > self.width and args.measure is not _ALL_LINES_BUT_TEXT:
                    return False
        return True


def _in_parentheses(args: _Args, content: Doc) -> _Work:
    """Work (last first) for the content on lines of its own between parentheses."""
    return [(args, ")"), (args, HARD), (args.deeper(), content), (args.deeper(), HARD), (args, "(")]
