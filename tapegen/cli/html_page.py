"""Side-by-side HTML page of a function and its backward sweep, whose corresponding lines are linked."""

from __future__ import annotations

import html
import inspect
from collections.abc import Sequence
from pathlib import Path
from types import FunctionType

from tapegen.backend.printer.source import PythonSource
from tapegen.errors import PACKAGE
from tapegen.export.module import printable
from tapegen.pipeline.inspection import Inspection

_STYLE = """
:root { color-scheme: light dark; }
body { font: 15px/1.45 system-ui, sans-serif; margin: 1.5rem; }
h1 { font-size: 1.3rem; } h2 { font-size: 1rem; margin: 1rem 0 .3rem; }
table { border-collapse: collapse; font-size: .87rem; margin: .4rem 0; }
th, td { text-align: left; padding: .1rem .9rem .1rem 0; vertical-align: top; }
main { display: grid; grid-template-columns: minmax(0, 1fr) minmax(0, 1fr); gap: 1.5rem; align-items: start; }
section { overflow-x: auto; }
main > section:first-child { position: sticky; top: 0; max-height: 100vh; overflow: auto; }
.code { font: 13px/1.4 ui-monospace, "DejaVu Sans Mono", monospace; white-space: pre; min-width: max-content; }
.code div { padding: 0 .4rem; border-left: 3px solid transparent; }
.code a { color: inherit; text-decoration: none; display: block; }
.code .n { opacity: .45; user-select: none; }
.linked:hover, .on, .chosen { background: #ffd86b66; border-left-color: #d98a00; }
"""
# a line is linked to the lines of the other column with the same number in `data-of`
_SCRIPT = """
"use strict";
for (const line of document.querySelectorAll("[data-of]")) {
  const same = document.querySelectorAll(`[data-of="${line.dataset.of}"]`);
  line.addEventListener("mouseenter", () => same.forEach(each => each.classList.add("on")));
  line.addEventListener("mouseleave", () => same.forEach(each => each.classList.remove("on")));
}
function choose() {
  document.querySelectorAll(".chosen").forEach(each => each.classList.remove("chosen"));
  const line = document.getElementById(location.hash.slice(1));
  if (line && line.dataset.of) {
    document.querySelectorAll(`[data-of="${line.dataset.of}"]`).forEach(each => each.classList.add("chosen"));
  }
}
addEventListener("hashchange", choose);
choose();
"""

_Place = tuple[str, int]


def page(inspection: Inspection, functions: Sequence[FunctionType]) -> str:
    """The complete page.

    Parameters
    ----------
    inspection : Inspection
        The generated programs.
    functions : sequence of function
        The functions that they were generated from.
    """
    texts = [("backward sweep", inspection.backward_source), ("forward sweep", inspection.forward_source)]
    numbers: dict[_Place, int] = {}  # the user's lines that generated lines come from
    for _, source in texts:
        for span in source.line_map:
            if span is not None:
                numbers.setdefault((span.file, span.line), len(numbers))
    first = {k: place for place, k in numbers.items()}
    right, targets = _generated(texts, numbers)
    left, present = _primal(functions, numbers, targets)
    for k, place in first.items():  # a line whose origin is not shown has no link
        if place not in present:
            right = right.replace(f' href="#p{k}"', "")
    title = _text(inspection.report.function)
    return f"""<!DOCTYPE html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta http-equiv="Content-Security-Policy" content="default-src 'none'; style-src 'unsafe-inline'; \
script-src 'unsafe-inline'">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>{title}</title>
<style>{_STYLE}</style>
</head>
<body>
<h1>{title}</h1>
{inspection.report._repr_html_()}
<main>
<section>{left}</section>
<section>{right}</section>
</main>
<script>{_SCRIPT}</script>
</body>
</html>
"""


def _generated(texts: list[tuple[str, PythonSource]], numbers: dict[_Place, int]) -> tuple[str, dict[int, str]]:
    """The generated code, and for each line of the user the first line generated from it."""
    parts: list[str] = []
    targets: dict[int, str] = {}
    for which, (title, source) in enumerate(texts):
        rows = []
        for n, line in enumerate(source.text.splitlines(), 1):
            span = source.origin(n)
            k = numbers[span.file, span.line] if span is not None and line.strip() else None
            name = f"g{which}-{n}"
            if k is None:
                rows.append(f"<div>{_text(line) or ' '}</div>")
            else:
                targets.setdefault(k, name)
                rows.append(f'<div id="{name}" class="linked" data-of="{k}"><a href="#p{k}">{_text(line)}</a></div>')
        parts.append(f'<h2>{title}</h2><div class="code">{"".join(rows)}</div>')
    return "".join(parts), targets


def _primal(
    functions: Sequence[FunctionType], numbers: dict[_Place, int], targets: dict[int, str]
) -> tuple[str, set[_Place]]:
    """The user's functions, and those of their lines that generated lines come from."""
    parts: list[str] = []
    present: set[_Place] = set()
    for function in functions:
        file = function.__code__.co_filename
        if file.startswith(PACKAGE):  # inlined from this package
            continue
        try:
            lines, start = inspect.getsourcelines(function)
        except OSError:
            continue
        rows = []
        for n, line in enumerate(lines, start):
            number = f'<span class="n">{n:4}  </span>'
            k = numbers.get((file, n))
            if k is None or (file, n) in present:
                rows.append(f"<div>{number}{_text(line)}</div>")
                continue
            present.add((file, n))
            link = f'<a href="#{targets[k]}">{number}{_text(line)}</a>' if k in targets else number + _text(line)
            rows.append(f'<div id="p{k}" class="linked" data-of="{k}">{link}</div>')
        place = f"{function.__qualname__}  ({Path(file).name})"
        parts.append(f'<h2>{_text(place)}</h2><div class="code">{"".join(rows)}</div>')
    return "".join(parts), present


def _text(text: str) -> str:
    """A line as text of the page, with markup and unprintable characters escaped."""
    return html.escape(printable(text.rstrip().expandtabs(4)))
