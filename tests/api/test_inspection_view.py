"""Inspection as HTML: sweeps aligned by statement, highlighting, colors, nothing from outside."""

from __future__ import annotations

import html
import re
from html.parser import HTMLParser
from typing import Any

import numpy as np
import pytest

from tapegen import differentiable
from tapegen.pipeline.aligned_sweeps import aligned
from tapegen.pipeline.highlight import ansi, html_lines, pieces
from tests.test_programs import Program, collect, each


def march(u0: Any, k: Any, n: Any, damped: Any) -> Any:
    u = u0.copy()
    for _ in range(n):
        if damped > 0.0:
            u = k * np.sin(u)
            u = u * u
        else:
            u = np.tanh(u)
    return np.sum(u)


def inspection() -> Any:
    return differentiable(march, wrt=(0, 1), backend="python").inspect(np.ones(5), 0.5, 3, 1.0)


def texts(source: Any, lines: tuple[int, ...]) -> list[str]:
    return [source.text.split("\n")[n - 1].strip() for n in lines]


def test_sweeps_are_aligned_by_statement() -> None:
    shown = inspection()
    forward, backward = shown.forward_source, shown.backward_source
    start = march.__code__.co_firstlineno
    rows = [
        (row.origin and row.origin.line - start, texts(forward, row.forward), texts(backward, row.backward))
        for row in aligned(forward, backward)
    ]
    tapes = "u_tape", "sin_u_tape", "u_2_1_tape"
    assert rows[0][0] == 0
    assert rows[1:] == [
        (None, [], ["return u0_bar, k_bar"]),  # the backward sweep reads from the bottom up
        (1, ["u = u0.copy()"], ["u0_bar = u_bar.copy()"]),
        (
            2,
            [*(f"{name} = np.empty((max(n, 0), u0.shape[0]))" for name in tapes), "for trip in range(n):"],
            ["for trip in range(n - 1, -1, -1):"],
        ),
        (3, ["u_tape[trip] = u", "if damped > 0.0:"], ["if damped > 0.0:"]),
        (
            4,
            ["sin_u = np.sin(u)", "sin_u_tape[trip] = sin_u", "u_1 = k * sin_u"],
            ["u_bar += np.cos(u) * (k * u_1_bar)", "k_bar += np.sum(sin_u * u_1_bar)"],
        ),
        (5, ["u = u_1 * u_1"], ["u_1_bar = 2.0 * u_1 * u_bar_1"]),
        (4, [], ["sin_u = sin_u_tape[trip]", "u_1 = k * sin_u"]),
        (3, ["else:"], ["else:"]),
        (
            7,
            ["u = np.tanh(u)", "u_2_1_tape[trip] = u"],
            ["u_bar += (1.0 - u_2_1_tape[trip] * u_2_1_tape[trip]) * u_bar_1"],
        ),
        (3, [], ["u_bar = np.zeros_like(u)"]),
        (2, [], ["u = u_tape[trip]", "u_bar_1 = u_bar"]),
        (2, [], ["k_bar = 0.0"]),
        (8, ["result = np.sum(u)"], ["u_bar = np.full_like(u, result_bar)"]),
        (None, ["return result, damped, k, n, sin_u_tape, u, u_2_1_tape, u_tape"], []),
    ]


@each(collect()[::60])
def test_rows_hold_each_line_once(program: Program) -> None:
    shown = program.decorated("python").inspect(*program.args(), **program.kwargs())
    forward, backward = shown.forward_source, shown.backward_source
    rows = aligned(forward, backward)
    ours = [n for row in rows for n in row.forward]
    theirs = [n for row in rows for n in row.backward]
    assert ours == sorted(set(ours))  # the forward sweep reads from top to bottom
    assert len(theirs) == len(set(theirs))
    for source, lines in ((forward, ours), (backward, theirs)):
        text = source.text.split("\n")
        at = next(n for n, line in enumerate(text, 1) if line.startswith(f"def {source.entry}("))
        inside = {n for n in range(at, len(text) + 1) if text[n - 1].strip()}
        left = [text[n - 1] for n in sorted(inside - set(lines))]
        doc = "\n".join(left).split('"""')
        assert all(line.lstrip().startswith("#") for line in "\n".join(doc[::2]).split("\n") if line.strip())


# ---- highlighting ----------------------------------------------------------------------------------------------------


def test_tokens_have_kinds() -> None:
    (line,) = pieces("def f(x_bar): return u_tape_1[0] + 'a'  # why")
    kinds = {text: kind for kind, text in line if kind}
    assert kinds == {
        "def": "keyword",
        "f": "definition",
        "x_bar": "cotangent",
        "return": "keyword",
        "u_tape_1": "tape",
        "0": "number",
        "'a'": "string",
        "# why": "comment",
    }


@pytest.mark.parametrize(
    "text",
    [
        "x = 1\n",
        'def f():\n    """One\n    two {three}."""\n    return f"{x!r:>{width}} {{}}" + r"\\n"\n',
        "    x = (1,\n        2)\n  y\n",  # neither tokenizes to its end
        "'unclosed\n",
        "tab\tand\u2028line = '\u202e'\n",
        "",
    ],
)
def test_highlighting_keeps_the_text(text: str) -> None:
    assert "\n".join("".join(piece for _, piece in line) for line in pieces(text)) == text.removesuffix("\n")
    assert re.sub(r"\x1b\[\d*m", "", ansi(text)) == text
    shown = html.unescape(re.sub(r"</?span[^>]*>", "", "\n".join(html_lines(text))))
    assert "\u202e" not in shown
    assert shown.replace("\\u202e", "\u202e").replace("\\u2028", "\u2028") == text.expandtabs(4).removesuffix("\n")


# ---- the component ---------------------------------------------------------------------------------------------------


class Component(HTMLParser):
    """What a browser would load, mark and show."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.open: list[str] = []
        self.classes: dict[str, list[str]] = {}
        self.style = ""
        self.feed(text)
        self.close()
        assert self.open == []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        assert tag not in ("script", "link", "img", "iframe", "object", "a")
        assert {name for name, _ in attrs} <= {"class", "style", "open"}
        self.open.append(tag)
        for name in (dict(attrs).get("class") or "").split():
            self.classes.setdefault(name, []).append(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        if self.open and self.open[-1] == "style":
            self.style += data


def test_the_component_needs_nothing_from_outside() -> None:
    shown = Component(inspection()._repr_html_())
    assert "url(" not in shown.style
    assert "@import" not in shown.style
    assert "prefers-color-scheme: dark" in shown.style


def test_lines_of_one_statement_mark_each_other() -> None:
    """The user's line, the row of both sweeps, and what is recorded of the statement have one class."""
    shown = Component(inspection()._repr_html_())
    keys = re.findall(r":has\(\.(s\d+):hover\) \.(s\d+) ", shown.style)
    assert keys
    assert all(one == other for one, other in keys)
    assert {key for key, _ in keys} == {name for name in shown.classes if re.fullmatch(r"s\d+", name)}
    for key, _ in keys:
        assert {"div", "tr"} <= set(shown.classes[key])


def test_recorded_bytes_are_bars() -> None:
    shown = inspection()
    sizes = [value.bytes for value in shown.report.recorded]
    widths = re.findall(r'class="bar" style="width: (\d+)px', shown.report._repr_html_())
    assert [int(width) for width in widths] == [round(140 * size / max(sizes)) for size in sizes]
    assert "legend" not in shown._repr_html_()
    assert "a tape: recorded values" in shown.html(legend=True)
