"""The table of derivative rules: what `python -m tapegen rules` prints, and what docs/rules.md holds."""

from __future__ import annotations

import argparse
import importlib
import inspect
import operator
import textwrap
from collections.abc import Callable, Iterable
from typing import Any

import numpy as np

from tapegen.ir.text import callable_text
from tapegen.rules.reading import values_read
from tapegen.rules.registry import Rule, all_rules, awaited
from tapegen.rules.surgery import SURGERY

_KINDS = {
    "partials": "local partial derivatives",
    "linear": "linear: the function itself forwards, its transpose backwards",
    "pullback": "a pushforward and a pullback",
    "expands": "a formula in functions that have rules",
    "inactive": "no derivative by definition",
}


def add_parser(commands: argparse._SubParsersAction) -> None:
    """The arguments of the command."""
    parser = commands.add_parser("rules", help="print the table of derivative rules")
    parser.set_defaults(run=run)


def run(options: argparse.Namespace) -> int:
    """Print the table."""
    print(table())
    return 0


def table() -> str:
    """All rules as Markdown, area by area."""
    for module in awaited():  # their rules are registered once they are there
        importlib.import_module(module)
    areas: dict[str, list[Rule]] = {}
    for rule in all_rules():
        areas.setdefault(_area(rule), []).append(rule)
    lines = [
        "# Rules",
        "",
        "Printed by `python -m tapegen rules`. Where a derivative would pass through a function that has no",
    ]
    lines += ["rule, and is not written in Python, the program is refused.", ""]
    lines += [f"* **{kind}**: {meaning}." for kind, meaning in _KINDS.items()]
    for area in sorted(areas, key=lambda name: (name == "inactive", name)):
        rules = sorted(areas[area], key=_name)
        lines += ["", f"## {area.replace('_', ' ').capitalize()}", ""]
        if area == "inactive":
            lines += textwrap.wrap(", ".join(dict.fromkeys(f"`{_name(rule)}`" for rule in rules)), 118)
            continue
        lines += ["| function | kind | modes | numbers | the derivative reads |", "|---|---|---|---|---|"]
        rows = (
            f"| `{_name(rule)}` | {rule.kind} | {_modes(rule)} | {_numbers(rule)} | {_reads(rule)} |" for rule in rules
        )
        lines += dict.fromkeys(rows)
    return "\n".join(lines)


def _area(rule: Rule) -> str:
    return "inactive" if rule.body is None else rule.body.__module__.rpartition(".")[2]


def _name(rule: Rule) -> str:
    """The name by which users call the function; marker functions stand for syntax."""
    module = getattr(rule.func, "__module__", None) or ""
    name = rule.func.__name__
    if isinstance(rule.func, np.ufunc):
        return callable_text(rule.func)
    if rule.func in SURGERY:
        return f"tg.{name}"
    if module.startswith("tapegen"):
        return {"transpose_view": "x.T", "real_part": "z.real", "imaginary_part": "z.imag"}.get(name, name)
    if module.startswith("scipy."):
        package = ".".join(module.split(".")[:2])
        owner = getattr(rule.func, "__self__", None)
        if owner is None:
            return f"{package}.{name}"
        found = next(key for key, value in vars(importlib.import_module(package)).items() if value is owner)
        return f"{package}.{found}.{name}"
    if module in ("_operator", operator.__name__):
        return f"operator.{name}"
    module = module.removeprefix("builtins").replace("numpy", "np")
    return f"{module}.{name}" if module else name


def _modes(rule: Rule) -> str:
    return "reverse" if rule.kind == "pullback" and rule.pushforward is None else "forward, reverse"


def _numbers(rule: Rule) -> str:
    """Of which numbers it holds: functions of `math` have no others."""
    is_complex = rule.of_complex and getattr(rule.func, "__module__", None) != "math"
    return "real, complex" if is_complex else "real"


def _reads(rule: Rule) -> str:
    """Parameters whose values the derivatives need; shapes alone do not count."""
    if rule.kind == "expands":
        return "what its formula reads"
    found: dict[str, None] = {}
    for body in (rule.body, rule.pushforward):
        if body is not None:
            found.update(dict.fromkeys(_without_options(body)))
    linear = rule.wrt if rule.kind == "linear" else ()  # their structure at most
    values = [name for name in found if not name.endswith(("_bar", "_dot")) and name not in linear]
    return ", ".join(values) or "nothing"


def _without_options(body: Callable[..., Any]) -> Iterable[str]:
    """Parameters without a default, and `out`, whose values a body reads."""
    read = values_read(body)
    return [p.name for p in inspect.signature(body).parameters.values() if p.default is p.empty and p.name in read]
