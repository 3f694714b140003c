"""What random calls call: functions that have rules, methods of ufuncs, arrays and generators; with first arguments."""

from __future__ import annotations

import importlib
import inspect
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

import numpy as np

import tapegen.cli.rules as names_of_rules
from tapegen.ir.printer import callable_text
from tapegen.rules import Rule, all_rules, rule_of
from tapegen.rules.registry import awaited
from tapegen.testing.check_rules import default_cases
from tests.option_values import CALLS
from tests.rule_cases import VARIANTS, values

FORMS = {
    "axis": ["None", "0", "-1", "1", "(0, 1)", "(0,)", "(-1, 0)", "()"],
    "keepdims": ["True", "False"],
    "dtype": ["np.float64", "np.float32", "np.complex128", "float", "complex", "'f8'"],
    "order": ["'C'", "'F'", "'A'", "'K'"],
    "initial": ["0.5", "0", "1.5", "-2.0"],
    "ddof": ["0", "1", "0.5"],
    "correction": ["0", "1"],
    "ord": ["None", "1", "2", "-1", "np.inf", "3", "'fro'", "0", "-np.inf", "'nuc'"],
    "copy": ["True", "False", "None"],
    "n": ["0", "1", "2", "3"],
    "k": ["-1", "0", "1"],
    "offset": ["-1", "0", "1"],
    "casting": ["'same_kind'", "'unsafe'"],
    "subok": ["True", "False"],
    "trans": ["0", "1", "2", "'N'", "'T'", "'C'"],
}
UFUNC = ("where", "out", "dtype", "order", "casting", "subok")
GENERALIZED = ("out", "dtype", "order", "casting", "subok", "axis", "keepdims")
UNDEFINED = {"np.empty_like", "np.empty", "np.intersect1d", "np.trim_zeros"}
"""Values of memory as it is, and choices by equality of what is moved."""

UNDEFINED_IF_EMPTY = {"scipy.linalg.solve_sylvester"}
"""Memory as it is, too: the array for the result is not filled."""

V, W, M, T = values(4), np.abs(values(4, seed=1)) + 0.4, values(3, 4), values(2, 3, 2)
P = np.abs(M) + 0.3


class Raw(str):
    """The text of an argument that is no value."""


@dataclass(frozen=True)
class Case:
    """A call to begin with.

    Attributes
    ----------
    args, kwargs : tuple, dict
        Its arguments.
    options : dict of str to list of str
        Texts of values for parameters that these arguments allow.
    """

    args: tuple[Any, ...]
    kwargs: dict[str, Any] = field(default_factory=dict)
    options: dict[str, list[str]] = field(default_factory=dict)


@dataclass(frozen=True)
class Target:
    """Something to call.

    Attributes
    ----------
    name : str
        How a program calls it; a method of an array begins with a point, and one of a generator with `rng`.
    func : callable, optional
        The function; None for a method.
    cases : list of Case
        Calls to begin with.
    options : dict of str to list of str
        Texts of values for parameters with a default.
    parameters : list of str
        The names of all parameters, in their order.
    """

    name: str
    func: Callable[..., Any] | None
    cases: list[Case]
    options: dict[str, list[str]]
    parameters: list[str]


def text_of(value: Any) -> str:
    """The text of an option's value."""
    if isinstance(value, np.ndarray):
        return f"np.array({value.tolist()})"
    return re.sub(r"\binf\b", "np.inf", repr(value))


def name_of(rule: Rule) -> str:
    """The name by which a program calls a function; empty for syntax and for what has no name."""
    name = names_of_rules._name(rule)
    if name.startswith("."):
        name = name[1:]
    return name if re.match(r"(np|math|cmath|scipy)\.|(abs|max|min|sum|round|pow|float|complex)$", name) else ""


def parameters_of(func: Callable[..., Any], body: Callable[..., Any] | None) -> dict[str, inspect.Parameter]:
    """The parameters of a function, or of its rule where it does not say."""
    try:
        return dict(inspect.signature(func).parameters)
    except (TypeError, ValueError):
        return dict(inspect.signature(body).parameters) if body is not None else {}


def options(func: Callable[..., Any], body: Callable[..., Any] | None = None) -> dict[str, list[str]]:
    """Parameters with a default, with texts of values for each."""
    if isinstance(func, np.ufunc):
        return {name: FORMS.get(name, []) for name in (GENERALIZED if func.signature else UFUNC)}
    found = {}
    document = inspect.getdoc(func) or ""
    for name, parameter in parameters_of(func, body).items():
        if parameter.default is parameter.empty or parameter.kind in (parameter.VAR_KEYWORD, parameter.VAR_POSITIONAL):
            continue
        said = re.search(rf"^{name}\s*:[^\n]*?\{{([^}}]*)\}}", document, re.MULTILINE)
        texts = re.findall(r"'[^']*'|\"[^\"]*\"|True|False|None|-?\d+", said[1]) if said else []
        texts += FORMS.get(name, [])
        if isinstance(parameter.default, bool):
            texts += ["True", "False"]
        if not texts and name not in ("out", "where"):
            texts = ["None", "0", "1", "0.5", "2"]
        found[name] = texts
    return found


def documented(func: Any) -> list[Case]:
    """Calls with the values that the documentation gives for options."""
    return [
        Case(each.floats, each.rest, {name: list(map(text_of, given)) for name, given in each.options.items()})
        for each in CALLS
        if each.func is func
    ]


def of_rule(rule: Rule) -> Target:
    """A function that has a rule."""
    try:
        cases = [Case(*case) for case in [*default_cases(rule), *VARIANTS.get(rule.func, [])]]
    except Exception:  # a rule that says nothing of its arguments
        numbers = np.array([0.7, -1.2, 1.6])
        cases = [Case((numbers,)), Case((np.outer(numbers, [1.0, 0.6]),)), Case((numbers, numbers[::-1].copy()))]
    cases = [case for case in cases if not any(map(callable, case.args))]
    name = name_of(rule)
    known = FUNCTIONAL.get(name, [])
    return Target(
        name,
        rule.func,
        [*cases, *documented(rule.func), *known],
        {} if known else options(rule.func, rule.body),
        list(parameters_of(rule.func, rule.body)),
    )


FUNCTIONAL = {
    "np.apply_along_axis": [
        *(
            Case((Raw(text), axis, M))
            for text in ("np.sort", "lambda u: np.sum(u * u)", "np.cumsum")
            for axis in (0, 1)
        ),
        Case((Raw("lambda u: np.outer(u, u)"), -1, values(2, 3))),
        Case((Raw("lambda u, k: u * k"), 0, M, 1.5)),
    ],
    "np.apply_over_axes": [
        Case((Raw(text), T, axes)) for text in ("np.sum", "np.mean") for axes in ([0], [0, 2], (1,))
    ],
    "np.piecewise": [
        Case((V, [V > 0.0], [Raw("np.sin"), 0.5])),
        Case((V, [V > 0.5, V < 0.0], [Raw("lambda t: t * t"), Raw("np.exp"), Raw("lambda t: -t")])),
    ],
    "scipy.linalg.funm": [Case((M[:, :3], Raw(text))) for text in ("np.exp", "lambda z: z * z")],
}


def ufunc_methods() -> Iterator[Target]:
    """`np.add.reduce` and its like."""
    binary = (np.add, np.multiply, np.subtract, np.divide, np.maximum, np.minimum, np.fmax, np.fmin)
    shared = {name: FORMS.get(name, []) for name in ("axis", "dtype", "out")}
    reduced = {**shared, "keepdims": FORMS["keepdims"], "initial": FORMS["initial"], "where": []}
    for ufunc in (*binary, np.logaddexp, np.hypot, np.power, np.arctan2, np.copysign):
        name = f"np.{ufunc.__name__}"
        arrays = [Case((abs(each) + 0.3 if ufunc is np.power else each,)) for each in (V, M, T)]
        yield Target(f"{name}.reduce", ufunc.reduce, arrays, reduced, ["array", *reduced])
        yield Target(f"{name}.accumulate", ufunc.accumulate, arrays, shared, ["array", *shared])
        cases = [Case((abs(each), indices)) for each in (V, M) for indices in ([0, 2], np.array([0, 2, 1]), [1])]
        yield Target(f"{name}.reduceat", ufunc.reduceat, cases, shared, ["array", "indices", *shared])
        outer = {"dtype": FORMS["dtype"], "order": FORMS["order"], "out": []}
        cases = [Case((W, V)), Case((P, V[:2])), Case((W, 0.7)), Case((0.7, V)), Case((np.array(0.7), values(2, 2)))]
        yield Target(f"{name}.outer", ufunc.outer, cases, outer, ["A", "B"])
        indices = ([0, 2], np.array([0, 2, 0]), 1, Raw("slice(1, None)"), np.array([False, True, True, False]))
        cases = [Case((W, place, 0.7)) for place in indices] + [Case((W, [0, 2, 0], V[:3])), Case((P, [0, 2, 0], W))]
        yield Target(f"{name}.at", ufunc.at, cases, {}, ["a", "indices", "b"])


def array_methods() -> Iterator[Target]:
    """Methods and attributes of arrays that are not called as functions of numpy, too."""
    kinds = ["float", "np.float32", "complex", "int", "'f4'", "np.float64"]
    orders = {"order": FORMS["order"]}
    found: dict[str, tuple[list[Case], dict[str, list[str]]]] = {
        "astype": (
            [Case((each, Raw(kind))) for each in (V, M) for kind in kinds],
            {**orders, "casting": ["'unsafe'", "'same_kind'"], "subok": ["True", "False"], "copy": ["True", "False"]},
        ),
        "flatten": ([Case((each,)) for each in (V, M, T)], orders),
        "ravel": ([Case((each,)) for each in (V, M, T)], orders),
        "copy": ([Case((each,)) for each in (V, M, T)], orders),
        "fill": ([Case((each, 0.7)) for each in (V, M)], {}),
        "item": ([Case((V, 1)), Case((M, 1, 2)), Case((M, (1, 2))), Case((np.array(0.7),)), Case((M, 5))], {}),
        "tolist": ([Case((each,)) for each in (V, M, np.array(0.7))], {}),
        "view": ([Case((V,)), Case((M, Raw("np.ndarray"))), Case((M, Raw("float")))], {}),
        "conj": ([Case((V,)), Case((M + 0.5j * M,))], {}),
        "sort": (
            [Case((each,)) for each in (V, M, T)],
            {"axis": ["0", "-1", "1"], "kind": ["'stable'", "'heapsort'", "None"], "stable": ["True", "None"]},
        ),
        "partition": (
            [Case((V, 1)), Case((M, 2)), Case((M, [0, 2])), Case((V, -1))],
            {"axis": ["0", "-1"], "kind": ["'introselect'"]},
        ),
        "put": (
            [Case((M, [0, 5, 2], V[:3])), Case((V, 1, 0.7)), Case((V, [-1, 7], W[:2]))],
            {"mode": ["'wrap'", "'clip'"]},
        ),
        "reshape": ([Case((M, 2, 6)), Case((M, (4, -1))), Case((T, -1)), Case((V, 2, 2))], orders),
        "transpose": ([Case((M,)), Case((T, 1, 0, 2)), Case((T, (2, 0, 1))), Case((T, Raw("None")))], {}),
        "clip": (
            [Case((M,)), Case((V,)), Case((V, -0.4, W))],
            {
                "min": ["-0.41", "None", "np.float64(-0.41)"],
                "max": ["0.73", "None"],
                "out": [],
                "dtype": ["np.float64"],
            },
        ),
        "round": ([Case((V,)), Case((M, 1))], {"out": []}),
        "dot": ([Case((V, W)), Case((M, V)), Case((M, M.T.copy()))], {"out": []}),
        "byteswap": ([Case((V,))], {}),
        "trace": ([Case((M,)), Case((T,))], {"offset": FORMS["offset"], "axis1": ["0", "1"], "axis2": ["1", "2"]}),
        "diagonal": ([Case((M,)), Case((T,))], {"offset": FORMS["offset"], "axis1": ["0", "1"], "axis2": ["1", "2"]}),
        "repeat": ([Case((M, 2)), Case((V, [1, 0, 2, 1]))], {"axis": ["0", "1", "None"]}),
        "take": (
            [Case((M, [0, 2])), Case((V, np.array([[0, -1]])))],
            {"axis": ["0", "1", "None"], "mode": ["'wrap'"], "out": []},
        ),
        "compress": ([Case((Raw("[True, False, True]"), M))], {"axis": ["0", "None"], "out": []}),
        "searchsorted": ([Case((np.sort(V), W))], {"side": ["'left'", "'right'"]}),
        "resize": ([Case((V, (2, 2)))], {"refcheck": ["False"]}),
    }
    for name, (cases, given) in found.items():
        yield Target(f".{name}", None, cases, given, [])
    for text in (
        "T",
        "mT",
        "real",
        "imag",
        "flat[1:]",
        "flat[2]",
        "flat[[0, 3]]",
        "T.flat[1:4]",
        "size",
        "T[0]",
        "flat[::2]",
    ):
        complexes = [Case((M[:, :2] + 0.5j * M[:, 2:],))] if text in ("real", "imag", "T", "mT") else []
        yield Target(f".{text}!", None, [Case((M,)), Case((T,)), *complexes], {}, [])


def draws() -> Iterator[Target]:
    """Methods of generators, whose draws are held fixed."""
    sizes = ["None", "4", "(3, 4)", "(2, 3, 4)", "()"]
    two = [Case((0.3, 0.8)), Case((V, 0.8)), Case((0.3, W)), Case((V, W)), Case((M, W))]
    one = [Case((0.8,)), Case((W,)), Case((P,))]
    found: dict[str, list[Case]] = {
        **dict.fromkeys(("normal", "laplace", "logistic", "gumbel", "lognormal"), two),
        **dict.fromkeys(("exponential", "rayleigh", "weibull", "pareto", "power"), one),
        "uniform": [Case((0.3, 1.8)), Case((V, 2.8)), Case((-2.3, W)), Case((V, 3.0 + W))],
        "triangular": [Case((-1.5, 0.2, 1.8)), Case((-2.0 - W, V, 2.0 + W))],
        "gamma": [Case((Raw("1.5"), 0.8)), Case((Raw("1.5"), W))],
        "multivariate_normal": [Case((V[:2], Raw("np.eye(2)")))],
    }
    moved = {"permutation": [Case((V,)), Case((M,))], "shuffle": [Case((V,)), Case((M,))], "choice": [Case((V,))]}
    for name, cases in found.items():
        for maker in ("np.random.default_rng(3)", "np.random.RandomState(3)"):
            yield Target(f"{maker}.{name}", None, cases, {"size": sizes}, [])
    for name, cases in moved.items():
        given = {"size": sizes[:3], "replace": ["True", "False"]} if name == "choice" else {"axis": ["0", "1"]}
        yield Target(f"np.random.default_rng(3).{name}", None, cases, given, [])
        yield Target(f"np.random.RandomState(3).{name}", None, cases, given if name == "choice" else {}, [])
    yield Target("np.random.default_rng(3).permuted", None, moved["permutation"], {"axis": ["0", "1", "None"]}, [])


def targets(only: str = "") -> list[Target]:
    """All of them, or those whose name holds a text."""
    for module in awaited():  # their rules are registered when they are imported
        if not module.startswith(("mpi4py", "numpy.ma", "scipy.sparse")):
            importlib.import_module(module)
    rules = [rule for rule in all_rules() if name_of(rule) not in ("", *UNDEFINED) and only in name_of(rule)]
    found = [of_rule(rule) for rule in rules]
    written = {each.func for each in CALLS if rule_of(each.func) is None}  # functions whose source is read
    for func in sorted(written, key=callable_text):
        found.append(
            Target(callable_text(func), func, documented(func), options(func), list(parameters_of(func, None)))
        )
    found += [*ufunc_methods(), *array_methods(), *draws()]
    return [each for each in found if each.cases and only in each.name]
