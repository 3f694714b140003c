"""The table of derivative rules: the output of `python -m tapegen rules`, and the contents of docs/rules.md."""

from __future__ import annotations

import argparse
import importlib
import inspect
import operator
import textwrap
from collections.abc import Callable, Iterable
from typing import Any

import numpy as np

from tapegen.ir import intrinsics
from tapegen.ir.printer import callable_text
from tapegen.rules import random
from tapegen.rules.gradient_modifiers import SURGERY
from tapegen.rules.registry import Refusal, Rule, all_refusals, all_rules, awaited
from tapegen.rules.saved_values import values_read

_KINDS = {
    "partials": "local partial derivatives",
    "linear": "linear: the function itself forwards, its transpose backwards",
    "pullback": "a pushforward and a pullback",
    "expands": "a formula in functions that have rules",
    "inactive": "no derivative by definition",
}

UNCOMPILED = frozenset(
    {
        *("scipy.optimize.root", "scipy.optimize.root_scalar", "scipy.optimize.brentq", "scipy.optimize.bisect"),
        *("scipy.optimize.newton", "scipy.optimize.fixed_point", "scipy.optimize.minimize"),
        *("scipy.optimize.minimize_scalar", "scipy.integrate.quad", "scipy.integrate.quad_vec"),
        *("scipy.integrate.odeint", "scipy.integrate.solve_ivp"),
        "scipy.special.sph_harm_y",
    }
)
"""Functions that are never compiled, however they are called: their programs run as Python."""

_METHODS = {
    "_PPolyBase.__call__": "PPoly.__call__",
    "PPoly.__call__": "PPoly.__call__",  # since scipy 1.18
    "PPoly.integrate": "PPoly.integrate",
    "_Interpolator1D.__call__": "interp1d.__call__",
    "RegularGridInterpolator.__call__": "RegularGridInterpolator.__call__",
}
"""Methods that have rules, by the class that users know."""

_OF_ONE_MATRIX = "one_matrix"
_OF_VECTORS = frozenset({"np.trim_zeros", "np.poly"})


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
    for module in awaited():  # their rules are registered when they are imported
        importlib.import_module(module)
    areas: dict[str, list[Rule]] = {}
    for rule in all_rules():
        if not _is_inner(rule):
            areas.setdefault(_area(rule), []).append(rule)
    lines = [
        "# Rules",
        "",
        "Printed by `python -m tapegen rules`. Where a derivative would pass through a function that has no",
        "rule, and is not written in Python, the program is refused.",
        "",
        *(f"* **{kind}**: {meaning}." for kind, meaning in _KINDS.items()),
        "",
        "Ranks are those of the arguments: `0` are numbers alone, `all` what the function itself takes, `no stacks`",
        "the same without stacks of it. A program with a function that is not compiled runs as Python, and says so by",
        "a PerformanceWarning.",
    ]
    for area in sorted(areas, key=lambda name: (name == "inactive", name)):
        rules = sorted(areas[area], key=_name)
        lines += ["", f"## {area.replace('_', ' ').capitalize()}", ""]
        if area == "inactive":
            lines += textwrap.wrap(", ".join(dict.fromkeys(f"`{_name(rule)}`" for rule in rules)), 118)
            continue
        lines += ["| function | kind | modes | ranks | numbers | compiled | the derivative reads |", f"|{'---|' * 7}"]
        lines += dict.fromkeys(f"| {' | '.join(_cells(rule))} |" for rule in rules)
    lines += ["", *_draws(), "", "## Refused", "", "| function | why | instead |", "|---|---|---|"]
    refusals = sorted(all_refusals(), key=_name)
    lines += dict.fromkeys(f"| `{_name(found)}` | {found.reason} | {found.advice} |" for found in refusals)
    return "\n".join(lines)


def _draws() -> list[str]:
    """Functions that draw random numbers, and the parameters with respect to which they have derivatives."""
    lines = [
        "## Random draws",
        "",
        "Methods of `np.random.Generator` and `np.random.RandomState`, and functions of `np.random`:",
        "[random.md](random.md).",
        "",
        "| method | derivative by |",
        "|---|---|",
    ]
    rows = {func.__name__: random.differentiable_by(func) for func in random.all_written()}
    lines += [f"| `{name}` | {', '.join(rows[name])} |" for name in sorted(rows)]
    others = sorted({func.__name__ for func in intrinsics.DRAWS} - rows.keys() - random.NOT_FOLLOWED - {"seed"})
    listed = textwrap.wrap("Held as a whole, their parameters without derivatives: " + _listed(others) + ".", 118)
    return [*lines, "", *listed, "", *textwrap.wrap("Refused: " + _listed(sorted(random.NOT_FOLLOWED)) + ".", 118)]


def _is_inner(rule: Rule) -> bool:
    """Whether a rule is only a building block of other rules: users do not call its function."""
    module = getattr(rule.func, "__module__", None) or ""
    return hasattr(rule.func, "type_like") or (module.startswith("tapegen.rules.") and rule.func not in SURGERY)


def _listed(names: Iterable[str]) -> str:
    return ", ".join(f"`{name}`" for name in names)


def _area(rule: Rule) -> str:
    return "inactive" if rule.body is None else rule.body.__module__.rpartition(".")[2]


def _cells(rule: Rule) -> tuple[str, ...]:
    name = _name(rule)
    compiled = "no" if name in UNCOMPILED else "yes"
    return f"`{name}`", rule.kind, _modes(rule), _ranks(rule, name), _numbers(rule), compiled, _reads(rule)


def _ranks(rule: Rule, name: str) -> str:
    if name.startswith(("math.", "cmath.")) or name == "float":
        return "0"
    if name in _OF_VECTORS:
        return "1"
    called = getattr(getattr(rule.body, "__code__", None), "co_names", ())
    return "no stacks" if _OF_ONE_MATRIX in called else "all"


def _name(rule: Rule | Refusal) -> str:
    """The name by which users call the function; marker functions represent syntax."""
    module = getattr(rule.func, "__module__", None) or ""
    name: str = getattr(rule.func, "__name__", "")
    if not name and isinstance(rule, Rule) and rule.body is not None:
        name = rule.body.__name__  # families of functions of scipy before 1.17 have no name
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
            method = getattr(rule.func, "__qualname__", name)
            return f"{package}.{_METHODS.get(method, name)}"
        found = next(key for key, value in vars(importlib.import_module(package)).items() if value is owner)
        return f"{package}.{found}.{name}"
    if module == np.random.Generator.__module__:
        return f"np.random.Generator.{name}"
    if module in ("_operator", operator.__name__):
        return f"operator.{name}"
    module = module.removeprefix("builtins").replace("numpy", "np")
    return f"{module}.{name}" if module else name


def _modes(rule: Rule) -> str:
    return "reverse" if rule.kind == "pullback" and rule.pushforward is None else "forward, reverse"


def _numbers(rule: Rule) -> str:
    """The numbers for which it holds: functions of `math` accept no others."""
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
    linear = rule.wrt if rule.kind == "linear" else ()  # at most their structure
    values = [name for name in found if not name.endswith(("_bar", "_dot")) and name not in linear]
    return ", ".join(values) or "nothing"


def _without_options(body: Callable[..., Any]) -> Iterable[str]:
    """Parameters without a default, and `out`, whose values a body reads."""
    read = values_read(body)
    return [p.name for p in inspect.signature(body).parameters.values() if p.default is p.empty and p.name in read]
