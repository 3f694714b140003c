"""Forward and backward sweep side by side: one row for each statement of the primal."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from difflib import SequenceMatcher

from tapegen.backend.printer.source import PythonSource
from tapegen.errors import Span

Place = tuple[str, int]
"""File and first line of a statement of the user."""


@dataclass(frozen=True, slots=True)
class Row:
    """The lines of both sweeps that belong to one statement of the primal; line numbers count from 1.

    Attributes
    ----------
    origin : Span or None
        The statement; None for lines that belong to none.
    forward, backward : tuple of int
        The lines.
    """

    origin: Span | None
    forward: tuple[int, ...] = ()
    backward: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True)
class _Part:
    """Consecutive statements of one origin, or one compound statement with its branches."""

    origin: Span | None
    lines: tuple[int, ...]  # without the branches after the first header
    branches: tuple[tuple[tuple[int, ...], tuple[_Part, ...]], ...] = ()  # lines of the header, body

    @property
    def key(self) -> object:
        return (place_of(self.origin), bool(self.branches)) if self.origin else self


def place_of(span: Span | None) -> Place | None:
    """Where a statement of the user stands."""
    return None if span is None else (span.file, span.line)


def aligned(forward: PythonSource, backward: PythonSource) -> list[Row]:
    """The rows, in the order of the forward sweep.

    The parts of a block of the backward sweep stand from its last to its first, since they run in the opposite order:
    read from the bottom up, except that the header of a loop or branch stands above its body in both columns.
    """
    left, right = _Reader(forward), _Reader(backward)
    return [Row(left.entry.origin, left.entry.lines, right.entry.lines), *_rows(left.body(), right.body())]


def _rows(forward: Sequence[_Part], backward: Sequence[_Part]) -> Iterator[Row]:
    mirrored = backward[::-1]
    matcher = SequenceMatcher(None, [part.key for part in forward], [part.key for part in mirrored], autojunk=False)
    for kind, i, i_end, j, j_end in matcher.get_opcodes():
        if kind == "equal":
            for left, right in zip(forward[i:i_end], mirrored[j:j_end], strict=True):
                yield from _matched(left, right)
            continue
        for part in forward[i:i_end]:
            yield from _matched(part, None)
        for part in mirrored[j:j_end]:
            yield from _matched(None, part)


def _matched(left: _Part | None, right: _Part | None) -> Iterator[Row]:
    origin = left.origin if left else right.origin if right else None
    yield Row(origin, left.lines if left else (), right.lines if right else ())
    ours, theirs = left.branches if left else (), right.branches if right else ()
    for k in range(max(len(ours), len(theirs))):
        head, body = ours[k] if k < len(ours) else ((), ())
        other_head, other_body = theirs[k] if k < len(theirs) else ((), ())
        if k:
            yield Row(origin, head, other_head)
        yield from _rows(body, other_body)


class _Reader:
    """The parts of a printed sweep."""

    def __init__(self, source: PythonSource) -> None:
        self.source = source
        self.lines = source.text.splitlines()
        functions = (node for node in ast.parse(source.text).body if isinstance(node, ast.FunctionDef))
        self.function = next(node for node in functions if node.name == source.entry)
        header = self._header(self.function.lineno, self.function.args)
        self.entry = _Part(source.origin(self.function.lineno), header)

    def body(self) -> tuple[_Part, ...]:
        """The parts of the function, without its docstring."""
        body, start = self.function.body, self.entry.lines[-1]
        if ast.get_docstring(self.function) is not None:
            start, body = body[0].end_lineno or start, body[1:]
        return self._parts(body, start)

    def _parts(self, block: Sequence[ast.stmt], before: int) -> tuple[_Part, ...]:
        """The parts of a block, whose first line follows `before`."""
        parts: list[_Part] = []
        loose: tuple[int, ...] = ()  # lines without origin: they prepare what follows
        for stmt in block:
            lead = tuple(n for n in range(before + 1, stmt.lineno) if self._is_shown(n))
            part = self._part(stmt)
            part = replace(part, lines=(*loose, *lead, *part.lines))
            before, loose = stmt.end_lineno or stmt.lineno, ()
            last = parts[-1] if parts else None
            if part.origin is None and not part.branches and not isinstance(stmt, ast.Return):
                loose = part.lines
            elif last and part.origin and place_of(last.origin) == place_of(part.origin) and not part.branches:
                if last.branches:
                    parts.append(part)
                else:
                    parts[-1] = replace(last, lines=(*last.lines, *part.lines))
            else:
                parts.append(part)
        return (*parts, _Part(None, loose)) if loose else tuple(parts)

    def _part(self, stmt: ast.stmt) -> _Part:
        origin = self.source.origin(stmt.lineno)
        match stmt:
            case ast.For(iter=header) | ast.While(test=header):
                branches = [self._branch(stmt.lineno, header, stmt.body)]
            case ast.If():
                branches = self._branches(stmt)
            case _:
                return _Part(origin, tuple(range(stmt.lineno, (stmt.end_lineno or stmt.lineno) + 1)))
        return _Part(origin, branches[0][0], tuple(branches))

    def _branches(self, stmt: ast.If) -> list[tuple[tuple[int, ...], tuple[_Part, ...]]]:
        branches = [self._branch(stmt.lineno, stmt.test, stmt.body)]
        while stmt.orelse:
            end, orelse = stmt.body[-1].end_lineno or 0, stmt.orelse
            inner = orelse[0]
            if isinstance(inner, ast.If) and self.lines[inner.lineno - 1].lstrip().startswith("elif"):
                stmt = inner
                branches.append(self._branch(stmt.lineno, stmt.test, stmt.body))
            else:
                header = next(n for n in range(end + 1, orelse[0].lineno) if self.lines[n - 1].strip() == "else:")
                return [*branches, ((header,), self._parts(orelse, header))]
        return branches

    def _branch(
        self, line: int, header: ast.AST, body: Sequence[ast.stmt]
    ) -> tuple[tuple[int, ...], tuple[_Part, ...]]:
        lines = self._header(line, header)
        return lines, self._parts(body, lines[-1])

    def _header(self, line: int, header: ast.AST) -> tuple[int, ...]:
        """The lines of a header, to its colon."""
        last = getattr(header, "end_lineno", None) or line
        last = next(n for n in range(last, len(self.lines) + 1) if self.lines[n - 1].endswith(":"))
        return tuple(range(line, last + 1))

    def _is_shown(self, line: int) -> bool:
        """Whether a line between statements is a comment that says more than the row does."""
        origin = self.source.origin(line)
        return bool(self.lines[line - 1].strip()) and not (origin and origin.adjoint)
