"""The tables of derivative rules: `python -m tapegen rules`, and the pages docs/rules*.md."""

from __future__ import annotations

import argparse
import importlib
import inspect
import operator
import textwrap
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from tapegen.ir import intrinsics
from tapegen.ir.printer import callable_text
from tapegen.rules import random
from tapegen.rules.gradient_modifiers import SURGERY
from tapegen.rules.registry import all_refusals, all_rules, awaited
from tapegen.rules.rule import Refusal, Rule
from tapegen.rules.saved_values import values_read

_KINDS = {
    "partials": "element-wise; the rule gives the partial derivative for each argument",
    "linear": "a linear function: it is its own pushforward, and its transpose is the pullback",
    "pullback": "the rule gives a pullback and a pushforward",
    "expands": "a formula of functions that have rules",
    "inactive": "no derivative by definition",
}

_PAGES = {"rules_numpy.md": "NumPy", "rules_scipy.md": "SciPy", "rules_python.md": "Python"}

_TITLES = {
    "fft": "Fourier transforms",
    "functional": "Functions of functions",
    "gamma": "Gamma and related functions",
    "inplace": "Functions that write into an array",
    "interpolate": "Interpolation",
    "math_special": "Special functions of math",
    "nan_reductions": "Reductions without NaN",
    "ode": "Differential equations",
    "optimize": "Roots and minima",
    "quadrature": "Integrals",
    "scans": "Cumulative functions",
    "scipy_dct": "Cosine and sine transforms",
    "scipy_eigen": "Eigenvalues",
    "scipy_fft": "Fourier transforms",
    "scipy_linalg": "Linear algebra",
    "scipy_matrix_functions": "Functions of matrices",
    "scipy_ndimage": "Images",
    "scipy_signal": "Signals",
    "scipy_special_matrices": "Special matrices",
    "scipy_spectral": "Spectral factorizations",
    "solve": "Linear algebra",
    "special": "Special functions",
    "stats": "Probability distributions",
    "stdlib_math": "Other functions of math",
}
"""Titles of areas whose module name does not serve as one."""

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

_SYNTAX = {"transpose_view": "x.T", "real_part": "z.real", "imaginary_part": "z.imag"}
"""Functions of tapegen that stand for attributes in the user's program."""

_OF_ONE_MATRIX = "one_matrix"
_OF_VECTORS = frozenset({"np.trim_zeros", "np.poly"})


def add_parser(commands: argparse._SubParsersAction) -> None:
    """The arguments of the command."""
    parser = commands.add_parser("rules", help="print the tables of derivative rules")
    parser.add_argument("--pages", metavar="DIRECTORY", help="write the pages of the documentation instead")
    parser.set_defaults(run=run)


def run(options: argparse.Namespace) -> int:
    """Print the tables, or write the pages."""
    for name, page in pages().items():
        if options.pages is None:
            print(page)
        else:
            Path(options.pages, name).write_text(page, encoding="utf-8")
    return 0


def pages() -> dict[str, str]:
    """All rules as Markdown: a page per library, on it a table per area; and what they share, first."""
    for module in awaited():  # their rules are registered when they are imported
        importlib.import_module(module)
    found: dict[str, dict[str, list[Rule]]] = {name: {} for name in _PAGES}
    for rule in all_rules():
        if not _is_inner(rule):
            found[_page(_name(rule))].setdefault(_area(rule), []).append(rule)
    tables = {name: _tables(_PAGES[name], areas) for name, areas in found.items()}
    return {"rules.md": "\n".join(_overview(found)) + "\n", **tables, "rules_refused.md": _refused()}


def _overview(found: dict[str, dict[str, list[Rule]]]) -> list[str]:
    lines = [
        "# Rules",
        "",
        "A rule is the derivative of one function. These pages list the functions that have one. Functions written in",
        "Python need none, since their source is read. Where a derivative would pass through any other function, the",
        "program is refused; [rules of your own](own_rules.md) says how to add one.",
        "",
        "| page | areas |",
        "|---|---|",
    ]
    for name, areas in found.items():
        listed = ", ".join(_title(area) for area in _sorted(areas) if area != "inactive")
        lines.append(f"| [{_PAGES[name]}]({name}) | {listed} |")
    lines += [
        "| [Random draws](#random-draws) | methods of generators |",
        "| [Refused](rules_refused.md) | functions that have no derivative here, with the reason and what to write |",
        "",
        "The site's search finds a function by its name, with or without its module.",
        "",
        "## Columns of the tables",
        "",
        "* **kind**: how the rule is written.",
        *(f"    * `{kind}`: {meaning}." for kind, meaning in _KINDS.items()),
        "* **modes**: forward, reverse, or both.",
        "* **ranks**: numbers of axes that arguments may have. `0`: numbers only; `all`: what the function itself",
        "  takes; `no stacks`: the same, but one matrix instead of a stack of them.",
        "* **numbers**: real, or real and complex.",
        "* **compiled**: a program that calls a function with `no` here runs as generated Python, and a",
        "  `PerformanceWarning` says so.",
        "* **the derivative reads**: arguments, or the result (`out`), whose values the derivative needs. In a loop",
        "  these may have to be [recorded](how_it_works.md); a function that reads nothing records nothing.",
        "",
        "The tables are printed by `python -m tapegen rules`.",
    ]
    return [*lines, "", *_draws()]


def _sorted(areas: Iterable[str]) -> list[str]:
    return sorted(areas, key=lambda name: (name == "inactive", _title(name)))


def _title(area: str) -> str:
    return _TITLES.get(area, area.replace("_", " ").capitalize())


def _tables(library: str, areas: dict[str, list[Rule]]) -> str:
    """The page of one library."""
    lines = [f"# Rules: {library}", "", "What the columns mean: [rules](rules.md#columns-of-the-tables)."]
    for area in _sorted(areas):
        rules = sorted(areas[area], key=_name)
        if area == "inactive":
            names = dict.fromkeys(f"`{_name(rule)}`" for rule in rules)
            lines += ["", "## No derivative by definition", "", *textwrap.wrap(", ".join(names), 118)]
            continue
        lines += ["", f"## {_title(area)}", ""]
        lines += ["| function | kind | modes | ranks | numbers | compiled | the derivative reads |", f"|{'---|' * 7}"]
        lines += dict.fromkeys(f"| {' | '.join(_cells(rule))} |" for rule in rules)
    return "\n".join(lines) + "\n"


def _refused() -> str:
    """The page of functions that are refused by name."""
    refusals = sorted(all_refusals(), key=_name)
    sections = {
        "NumPy": [found for found in refusals if _page(_name(found)) == "rules_numpy.md"],
        "SciPy": [found for found in refusals if _page(_name(found)) == "rules_scipy.md"],
        "Python": [found for found in refusals if _page(_name(found)) == "rules_python.md"],
    }
    random = [found for found in sections["NumPy"] if _name(found).startswith("np.random.")]
    sections["NumPy"] = [found for found in sections["NumPy"] if found not in random]
    lines = [
        "# Refused functions",
        "",
        "Functions that raise an error by name where they are called, unless a [rule of your own](own_rules.md) is",
        "registered. A function in none of these tables and without a [rule](rules.md) is refused as well, if a",
        "derivative would pass through it.",
    ]
    for title, rows in {**sections, "Random draws": random}.items():
        if rows:
            lines += ["", f"## {title}", "", *_refusals(rows)]
    return "\n".join(lines) + "\n"


def _refusals(rows: Sequence[Refusal]) -> list[str]:
    lines = ["| function | why | instead |", "|---|---|---|"]
    return [*lines, *dict.fromkeys(f"| `{_name(row)}` | {row.reason} | {row.advice} |" for row in rows)]


def _page(name: str) -> str:
    """The page of a function, by the name under which users call it."""
    library = name.partition(".")[0]
    return {"np": "rules_numpy.md", "scipy": "rules_scipy.md"}.get(library, "rules_python.md")


def _draws() -> list[str]:
    """Functions that draw random numbers, and the parameters with respect to which they have derivatives."""
    lines = [
        "## Random draws",
        "",
        "Methods of `np.random.Generator` and `np.random.RandomState`, and functions of `np.random`. Draws are held",
        "fixed; what that means is on the page about [random draws](random.md).",
        "",
        "| method | derivative with respect to |",
        "|---|---|",
    ]
    rows = {func.__name__: random.differentiable_by(func) for func in random.all_written()}
    lines += [f"| `{name}` | {', '.join(rows[name])} |" for name in sorted(rows)]
    others = sorted({func.__name__ for func in intrinsics.DRAWS} - rows.keys() - random.NOT_FOLLOWED - {"seed"})
    listed = textwrap.wrap(
        "Drawn and held fixed, without derivatives with respect to their parameters: " + _listed(others) + ".", 118
    )
    return [*lines, "", *listed, "", *textwrap.wrap("Refused: " + _listed(sorted(random.NOT_FOLLOWED)) + ".", 118)]


def _is_inner(rule: Rule) -> bool:
    """Whether a rule is only a building block of other rules: users do not call its function."""
    module = getattr(rule.func, "__module__", None) or ""
    if hasattr(rule.func, "type_like") or (module.startswith("tapegen.rules.") and rule.func not in SURGERY):
        return True
    return module.startswith("tapegen.") and rule.func not in SURGERY and rule.func.__name__ not in _SYNTAX


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
        return _SYNTAX.get(name, name)
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
