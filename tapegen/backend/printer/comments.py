"""Comments and docstrings of generated source."""

from __future__ import annotations

import textwrap
from collections.abc import Sequence

from tapegen.backend.printer.formatter.document import INDENT, WIDTH


def comment(text: str, indent: int) -> list[str]:
    """Comment lines; a ruler is cut to the width, other text wraps."""
    lead = " " * indent + "#"
    width = max(WIDTH - len(lead) - 1, 20)
    lines = []
    for line in text.splitlines():
        is_ruler = line.startswith("--") and line.endswith("--")
        lines += [f"{lead} {piece}" for piece in ([line[:width]] if is_ruler else _wrap(line, width))] or [lead]
    return lines


def docstring(doc: Sequence[str], indent: int) -> list[str]:
    """The docstring of a function, as ruff's formatter leaves it."""
    if not doc:
        return []
    lead, quotes = " " * indent, '"""'
    width = WIDTH - indent - (len(quotes) if len(doc) == 1 else 0)
    lines: list[str] = []
    for line in doc:
        escaped = line.rstrip().replace("\\", "\\\\").replace(quotes, r"\"\"\"")
        # a quote next to the opening quotes would be read as one of them
        start = "" if lines else quotes + (" " if escaped.startswith('"') else "")
        lines += _wrap(escaped, width, start) or [start]
    if len(lines) == 1:
        return [lead + lines[0] + (" " if lines[0].endswith('"') else "") + quotes]
    rest = textwrap.dedent("\n".join(lines[1:])).split("\n")
    return [(lead + line).rstrip() for line in [lines[0], *rest, quotes]]


def _wrap(line: str, width: int, start: str = "") -> list[str]:
    """A line in pieces; continuation lines are indented further than its beginning."""
    if len(start) + len(line) <= width and line.isprintable() and line.strip():
        return [start + line.rstrip()]
    return textwrap.wrap(
        line,
        width=width,
        initial_indent=start,
        subsequent_indent=" " * (len(line) - len(line.lstrip()) + INDENT),
        break_long_words=False,
        break_on_hyphens=False,
    )
