"""How numbers and strings are spelled."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass


def number(value: object) -> str:
    """A constant that is not a string; signs and the infinities are expressions, not literals."""
    if isinstance(value, float) and not math.isfinite(value):
        raise AssertionError(f"{value!r} has no literal")
    return "..." if value is Ellipsis else repr(value).replace("e+", "e")


@dataclass(frozen=True, slots=True)
class Piece:
    """A word of a string, or the text of an expression in an f-string."""

    text: str
    placeholder: bool = False


def words(text: str) -> list[Piece]:
    """Pieces of a text that may stand on different lines."""
    *spaced, last = text.split(" ")
    return [Piece(word + " ") for word in spaced] + ([Piece(last)] if last else [])


def literal(pieces: Sequence[Piece]) -> str:
    """The pieces as one literal, in double quotes unless that needs more backslashes."""
    text = "".join(piece.text for piece in pieces if not piece.placeholder)
    quote = "'" if text.count('"') > text.count("'") else '"'
    formatted = any(piece.placeholder for piece in pieces)
    parts = [f"{{{piece.text}}}" if piece.placeholder else _escaped(piece.text, quote, formatted) for piece in pieces]
    return ("f" if formatted else "") + quote + "".join(parts) + quote


def _escaped(text: str, quote: str, formatted: bool) -> str:
    literal = repr(text)
    body = literal[1:-1]
    if literal[0] == "'":
        body = body.replace("\\'", "'")
    body = body.replace(quote, "\\" + quote)
    return body.replace("{", "{{").replace("}", "}}") if formatted else body
