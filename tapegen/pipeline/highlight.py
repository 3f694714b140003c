"""Syntax highlighting of Python source, for notebooks and terminals."""

from __future__ import annotations

import html
import io
import keyword
import re
import tokenize
from collections.abc import Iterator

from tapegen.errors import printable
from tapegen.ir.names import bar_name, dot_name, tape_name

COLORS = {  # kind of token: light, dark, SGR parameters of terminals
    "keyword": ("#8250df", "#d2a8ff", "35"),
    "string": ("#0a5c36", "#a5d6a7", "32"),
    "comment": ("#6a737d", "#8b949e", "90"),
    "number": ("#0550ae", "#79c0ff", "36"),
    "definition": ("#953800", "#ffa657", "1"),
    "cotangent": ("#b3261e", "#ff8f87", "31"),
    "tape": ("#9a6700", "#e3b341", "33"),
}

Piece = tuple[str, str]  # kind ("" for plain text) and text

_COTANGENT = re.compile(rf"\w*({bar_name('')}|{dot_name('')})(_\d+)?")
_TAPE = re.compile(rf"\w*{tape_name('')}(_\d+)?")
_STRINGS = {tokenize.STRING, *(getattr(tokenize, f"FSTRING_{part}", None) for part in ("START", "MIDDLE", "END"))}
_KINDS = {tokenize.COMMENT: "comment", tokenize.NUMBER: "number"}


def pieces(text: str) -> list[list[Piece]]:
    """The lines of a source, each in pieces of one kind; what does not tokenize is plain."""
    lines = text.removesuffix("\n").split("\n")
    marks: list[list[tuple[int, int, str]]] = [[] for _ in lines]
    for kind, (first, column), (last, end) in _tokens(text):
        for row in range(first, min(last, len(lines)) + 1):
            start = column if row == first else 0
            marks[row - 1].append((start, end if row == last else len(lines[row - 1]), kind))
    return [_cut(line, found) for line, found in zip(lines, marks, strict=True)]


def html_lines(text: str) -> list[str]:
    """The lines of a source as HTML, with a `span` for each highlighted piece."""
    return ["".join(map(_span, line)) for line in pieces(text)]


def ansi(text: str) -> str:
    """A source with the escape sequences of a terminal."""
    lines = ("".join(sgr(COLORS[kind][2], part) if kind else part for kind, part in line) for line in pieces(text))
    return "\n".join(lines) + "\n" * text.endswith("\n")


def sgr(parameters: str, text: str) -> str:
    """Text in a color or weight of terminals."""
    return f"\x1b[{parameters}m{text}\x1b[0m" if text else ""


def _span(piece: Piece) -> str:
    kind, text = piece
    escaped = html.escape(printable(text.expandtabs(4)))
    return f'<span class="{kind}">{escaped}</span>' if kind else escaped


def _cut(line: str, marks: list[tuple[int, int, str]]) -> list[Piece]:
    out: list[Piece] = []
    at = 0
    for start, end, kind in marks:
        out += [("", line[at:start]), (kind, line[start:end])]
        at = end
    return [(kind, text) for kind, text in [*out, ("", line[at:])] if text]


def _tokens(text: str) -> Iterator[tuple[str, tuple[int, int], tuple[int, int]]]:
    before = ""
    try:
        for token in tokenize.generate_tokens(io.StringIO(text).readline):
            kind = _kind(token, before)
            before = token.string
            if kind:
                yield kind, token.start, token.end
    except (SyntaxError, tokenize.TokenError):  # a part of a source, such as a lambda in the middle of a call
        return


def _kind(token: tokenize.TokenInfo, before: str) -> str:
    if token.type in _STRINGS:
        return "string"
    if token.type != tokenize.NAME:
        return _KINDS.get(token.type, "")
    if keyword.iskeyword(token.string):
        return "keyword"
    if before in ("def", "class"):
        return "definition"
    return "cotangent" if _COTANGENT.fullmatch(token.string) else "tape" if _TAPE.fullmatch(token.string) else ""
