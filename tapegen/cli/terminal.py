"""What the command line prints: in color where a person reads it on a terminal."""

from __future__ import annotations

import os
import re
import sys

from tapegen.pipeline.highlight import ansi, sgr
from tapegen.pipeline.html_view import LEGEND
from tapegen.pipeline.inspection import Report

_SHADES = {"record": "33", "recompute": "36", "induction": "35", "copied": "31"}
_WAYS = {label: _SHADES[way] for way, (label, *_) in LEGEND.items()}


def has_color() -> bool:
    """Whether standard output is a terminal that shows colors, and the user has not asked for none (no-color.org)."""
    plain = os.environ.get("NO_COLOR") or os.environ.get("TERM") == "dumb"
    return not plain and sys.stdout is not None and sys.stdout.isatty()


def print_source(text: str) -> None:
    """Print generated Python."""
    print(ansi(text) if has_color() else text)


def print_report(report: Report) -> None:
    """Print what is active and recorded."""
    print("\n".join(map(_shaded, enumerate(str(report).split("\n")))) if has_color() else report)


def _shaded(numbered: tuple[int, str]) -> str:
    """A line of the report: its title bold, heads dim, and ways in their colors."""
    number, line = numbered
    if number == 0:
        return sgr("1", line)
    cells = re.split(r"(\s{2,})", line)
    if len(cells) > 2 and cells[1].isspace() and cells[2] and not cells[0]:
        way = cells[4] if len(cells) > 4 else ""
        if way in _WAYS:
            cells[2], cells[4] = sgr("1", cells[2]), sgr(_WAYS[way], way)
        elif way == "how":
            return sgr("2", line)
        else:
            cells[2] = sgr("2", cells[2])
    return "".join(cells)
