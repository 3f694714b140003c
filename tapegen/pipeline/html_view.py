"""Generated code as HTML for notebooks and pages: sweeps aligned by statement, tapes as bars.

The HTML needs nothing from outside and no script: lines that belong to one statement of the primal share a class, and a
rule with `:has()` marks all of them where the pointer is over one.
"""

from __future__ import annotations

import hashlib
import html
import inspect
import textwrap
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import FunctionType

from tapegen.backend.printer.source import PythonSource
from tapegen.errors import PACKAGE, Span, printable
from tapegen.pipeline.aligned_sweeps import Place, Row, aligned, place_of
from tapegen.pipeline.highlight import COLORS, html_lines

_LIGHT = {
    "text": "#1f2328",
    "muted": "#6a737d",
    "paper": "#ffffff",
    "line": "#d8dee4",
    "faint": "#eef1f4",
    "mark": "#fff3bf",
}
_DARK = {
    "text": "#e6edf3",
    "muted": "#8b949e",
    "paper": "#16191d",
    "line": "#373e47",
    "faint": "#22272e",
    "mark": "#4a3b10",
}
LEGEND = {
    "record": ("recorded", "written to a tape by the forward sweep", "#d4a017"),
    "recompute": ("recomputed", "computed once more by the backward sweep", "#3b82c4"),
    "induction": ("from the counter", "follows from the iteration that is reversed", "#8a63d2"),
    "copied": ("copied by the split form", "an array of the caller that the pullback reads later", "#c2570c"),
}
"""How a value becomes available to the backward sweep: label, explanation, color."""

_RULES = """
.tapegen { font: 13px/1.45 system-ui, sans-serif; color: var(--text); background: var(--paper); padding: 8px 12px;
  border: 1px solid var(--line); border-radius: 6px; overflow-x: auto; }
.tapegen h4 { font-size: 14px; margin: 2px 0 6px; } .tapegen h5 { font-size: 12px; margin: 10px 0 2px; }
.tapegen h5, .tapegen summary, .tapegen .muted, .tapegen .place { color: var(--muted); font-weight: 600; }
.tapegen .place, .tapegen .muted { font-weight: 400; user-select: none; }
.tapegen table { border-collapse: collapse; margin: 4px 0; font-size: inherit; border: none; }
.tapegen tr { background: none; }
.tapegen th, .tapegen td { text-align: left; vertical-align: top; padding: 1px 14px 1px 0; border: none;
  color: inherit; font-weight: 400; }
.tapegen th { color: var(--muted); }
.tapegen pre { font: 12px/1.45 ui-monospace, "DejaVu Sans Mono", Menlo, Consolas, monospace; margin: 0; padding: 0;
  white-space: pre; background: none; color: inherit; text-align: left; border: none; overflow: visible; }
.tapegen code { font: 12px/1.45 ui-monospace, "DejaVu Sans Mono", Menlo, Consolas, monospace; background: none;
  color: inherit; padding: 0; }
.tapegen .columns { display: flex; flex-wrap: wrap; gap: 4px 28px; align-items: flex-start; }
.tapegen .columns > div { max-width: 100%; overflow-x: auto; }
.tapegen .sweeps td { padding: 0 18px 0 0; } .tapegen .sweeps .head td { vertical-align: bottom; }
.tapegen .sweeps tr + tr td { border-top: 1px solid var(--faint); }
.tapegen .sweeps .forward { border-right: 1px solid var(--line); }
.tapegen .sweeps .backward, .tapegen .sweeps th:last-child { padding-left: 14px; }
.tapegen td:has(> .bar), .tapegen td:has(> .dot) { white-space: nowrap; }
.tapegen .bar { display: inline-block; height: 9px; min-width: 2px; border-radius: 2px; vertical-align: baseline;
  background: #d4a017; }
.tapegen .dot { display: inline-block; width: 9px; height: 9px; border-radius: 50%; margin-right: 5px; }
"""


@dataclass(frozen=True, slots=True)
class ReportRow:
    """One line of the table of what the backward sweep reads; `way` is a key of the legend."""

    name: str
    way: str
    size: str
    bytes: int | None
    why: str
    line: str
    origin: Span | None


def report_html(facts: Sequence[tuple[str, str]], rows: Sequence[ReportRow]) -> str:
    """The report alone."""
    return _component(_report(facts, rows, {}), {})


def view_html(
    title: str,
    facts: Sequence[tuple[str, str]],
    rows: Sequence[ReportRow],
    sweeps: tuple[PythonSource, PythonSource],
    functions: Sequence[FunctionType],
    more: Sequence[tuple[str, str]],
    *,
    legend: bool = False,
) -> str:
    """Report, the user's functions, and both sweeps.

    Parameters
    ----------
    title : str
        The name of the function.
    facts, rows
        The report.
    sweeps : tuple of PythonSource
        The forward and the backward sweep.
    functions : sequence of function
        The functions that they were generated from.
    more : sequence of (str, str)
        Titles of further sources that can be unfolded, and their text.
    legend : bool
        Say what the colors mean.
    """
    keys: dict[Place, str] = {}  # classes of the user's statements
    spans: dict[Place, Span] = {}
    for source in sweeps:
        for span in source.line_map:
            place = place_of(span)
            if span is not None and place is not None and place not in keys:
                keys[place], spans[place] = f"s{len(keys)}", span
    primal = "".join(_primal(function, keys, spans) for function in functions)
    table = _sweeps(sweeps, keys)
    unfolded = "".join(f"<details><summary>{name}</summary>{_pre(html_lines(text))}</details>" for name, text in more)
    body = (
        f"<h4><code>{_text(title)}</code></h4>{_legend(rows) if legend else ''}{_report(facts, rows, keys)}"
        f'<div class="columns"><div>{primal}</div><div>{table}</div></div>{unfolded}'
    )
    return _component(body, keys)


# ---- parts -----------------------------------------------------------------------------------------------------------


def _component(body: str, keys: dict[Place, str]) -> str:
    own = "tapegen-" + hashlib.sha256(body.encode()).hexdigest()[:12]
    marks = "".join(f".{own}:has(.{key}:hover) .{key} {{ background: var(--mark); }}\n" for key in keys.values())
    return f'<div class="tapegen {own}"><style>{_style()}{marks}</style>{body}</div>'


def _style() -> str:
    """Light and dark: as the notebook is themed if it says so, else as the system is."""
    light = _variables(_LIGHT | {kind: colors[0] for kind, colors in COLORS.items()})
    dark = _variables(_DARK | {kind: colors[1] for kind, colors in COLORS.items()})
    kinds = "".join(f".tapegen.tapegen.tapegen .{kind} {{ color: var(--{kind}); }}\n" for kind in COLORS)
    rules = _RULES.replace(".tapegen ", ".tapegen.tapegen.tapegen ")  # notebooks have rules for all tables and code
    return (
        f".tapegen {{ {light} color-scheme: light; }}\n"
        f"@media (prefers-color-scheme: dark) {{ .tapegen {{ {dark} color-scheme: dark; }} }}\n"
        f'[data-jp-theme-light="true"] .tapegen, .vscode-light .tapegen {{ {light} color-scheme: light; }}\n'
        f'[data-jp-theme-light="false"] .tapegen, .vscode-dark .tapegen {{ {dark} color-scheme: dark; }}\n'
        f"{rules}{kinds}"
    )


def _variables(colors: dict[str, str]) -> str:
    return " ".join(f"--{name}: {color};" for name, color in colors.items())


def _report(facts: Sequence[tuple[str, str]], rows: Sequence[ReportRow], keys: dict[Place, str]) -> str:
    listed = "".join(f"<tr><th>{_text(label)}</th><td><code>{_text(names)}</code></td></tr>" for label, names in facts)
    largest = max((row.bytes or 0 for row in rows), default=0)
    lines = "".join(_row(row, largest, keys) for row in rows)
    head = "".join(f"<th>{name}</th>" for name in ("value", "how", "bytes", "", "why", "line"))
    return f"<table>{listed}</table>" + (f"<table><tr>{head}</tr>{lines}</table>" if rows else "")


def _row(row: ReportRow, largest: int, keys: dict[Place, str]) -> str:
    label, _, color = LEGEND[row.way]
    width = round(140 * (row.bytes or 0) / largest) if largest else 0
    bar = f'<span class="bar" style="width: {width}px; background: {color}"></span>' if row.bytes else ""
    place = place_of(row.origin)
    marked = f' class="{keys[place]}"' if place in keys else ""
    return (
        f"<tr{marked}><td><code>{_text(row.name)}</code></td><td>{_dot(color)}{label}</td><td>{_text(row.size)}</td>"
        f"<td>{bar}</td><td>{_text(row.why)}</td><td><code>{_text(row.line)}</code></td></tr>"
    )


def _legend(rows: Sequence[ReportRow]) -> str:
    ways = {row.way for row in rows}
    said = [
        f"<tr><td>{_dot(color)}{name}</td><td>{text}</td></tr>"
        for way, (name, text, color) in LEGEND.items()
        if way in ways
    ]
    names = (
        ("tape", "x_tape", "a tape: recorded values"),
        ("cotangent", "x_bar", "a cotangent: the derivative of the result by x"),
    )
    said += [f'<tr><td><code class="{kind}">{name}</code></td><td>{text}</td></tr>' for kind, name, text in names]
    said.append('<tr><td><span class="bar" style="width: 40px"></span></td><td>bytes, beside the largest</td></tr>')
    said.append(
        "<tr><td>↓ ↑</td><td>the forward sweep runs down, the backward sweep runs up, from statement to statement; "
        "the header of a loop or branch stands above its body in both</td></tr>"
    )
    said.append(
        "<tr><td>hover</td><td>marks a statement, its lines in both sweeps, and what is recorded of it</td></tr>"
    )
    return f"<details open><summary>legend</summary><table>{''.join(said)}</table></details>"


def _sweeps(sweeps: tuple[PythonSource, PythonSource], keys: dict[Place, str]) -> str:
    texts = [html_lines(source.text) for source in sweeps]
    rows = "".join(_aligned_row(row, texts, keys) for row in aligned(*sweeps))
    head = "<tr><th></th><th>forward sweep ↓</th><th>backward sweep ↑</th></tr>"
    return f'<table class="sweeps">{head}{rows}</table>'


def _aligned_row(row: Row, texts: Sequence[Sequence[str]], keys: dict[Place, str]) -> str:
    place = place_of(row.origin)
    left, right = (
        _pre(text[n - 1] for n in lines) if lines else ""
        for text, lines in zip(texts, (row.forward, row.backward), strict=True)
    )
    is_header = any(
        lines and texts[k][lines[-1] - 1].endswith(":") for k, lines in enumerate((row.forward, row.backward))
    )
    marks = [*([keys[place]] if place in keys else ()), *(["head"] if is_header else ())]
    number = "" if row.origin is None else row.origin.line
    return (
        f'<tr class="{" ".join(marks)}"><td class="place">{number}</td>'
        f'<td class="forward">{left}</td><td class="backward">{right}</td></tr>'
    )


def _primal(function: FunctionType, keys: dict[Place, str], spans: dict[Place, Span]) -> str:
    """A function of the user with its line numbers; nothing where its text cannot be read."""
    file = function.__code__.co_filename
    if file.startswith(PACKAGE):  # inlined from this package
        return ""
    try:
        lines, start = inspect.getsourcelines(function)
    except OSError:
        return ""
    owners: dict[int, str] = {}
    for place, span in spans.items():
        if place[0] == file:
            owners.update(dict.fromkeys(range(span.line, span.end_line + 1), keys[place]))
            owners[span.line] = keys[place]
    width = len(str(start + len(lines)))
    text = textwrap.dedent("".join(lines))
    rows = "".join(
        f'<div class="{owners.get(n, "")}"><span class="place">{n:{width}}  </span>{line or " "}</div>'
        for n, line in enumerate(html_lines(text), start)
    )
    return f"<h5>{_text(function.__qualname__)} ({_text(Path(file).name)})</h5><pre>{rows}</pre>"


def _pre(lines: Iterable[str]) -> str:
    return "<pre>" + "\n".join(lines) + "</pre>"


def _dot(color: str) -> str:
    return f'<span class="dot" style="background: {color}"></span>'


def _text(text: str) -> str:
    return html.escape(printable(text))
