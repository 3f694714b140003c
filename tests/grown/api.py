"""Every function that has a rule, called with random combinations of its parameters: `python -m tests.grown.api`.

A combination is a program of one call, judged as grown programs are.  NumPy says which combinations there are.
Each function has a process of its own.
"""

from __future__ import annotations

import argparse
import collections
import dataclasses
import inspect
import math
import random
import re
import sys
import time
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np

import tapegen.cli.rules as names_of_rules
from tapegen.rules import Rule, all_rules
from tapegen.testing.check_rules import default_cases
from tests.grown.calls_apart import Trying, judged
from tests.grown.checks import FINE, INVALID, RIGHT, WRONG, Verdict
from tests.grown.reference import real_leaves
from tests.grown.values import is_real, leaves, tame
from tests.rule_cases import VARIANTS

HEAD = "import cmath\nimport math\n\nimport numpy as np\nimport scipy.{}\n\n\n"
STAGES = ("primal", "reverse", "forward", "jacobian", "second")
FORMS = {
    "axis": ["None", "0", "-1", "1", "(0, 1)", "(0,)", "(-1, 0)"],
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
UNDEFINED = {"np.empty_like", "np.empty", "np.intersect1d", "np.trim_zeros"}
"""Values of memory as it is, and choices by equality of what is moved."""

ODD = ["0.0", "1.0", "-1.0", "np.inf", "np.nan", "-np.inf", "1e300"]


class Unspeakable(Exception):
    """An argument that cannot be written as text."""


def name_of(rule: Rule) -> str:
    """The name by which a program calls a function; empty for syntax and for what has no name."""
    name = names_of_rules._name(rule)
    if name.startswith("."):
        name = name[1:]
    return name if re.match(r"(np|math|cmath|scipy)\.|(abs|max|min|sum|round|pow|float|complex)$", name) else ""


def options(func: Callable[..., Any], rule: Rule) -> dict[str, list[str]]:
    """Parameters with a default, with texts of values for each."""
    if isinstance(func, np.ufunc):
        return {name: FORMS.get(name, []) for name in UFUNC}
    try:
        parameters = inspect.signature(func).parameters
    except (TypeError, ValueError):
        parameters = inspect.signature(rule.body).parameters if rule.body is not None else {}
    found = {}
    document = inspect.getdoc(func) or ""
    for name, parameter in parameters.items():
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


class Caller:
    """Makes calls of one function.

    Parameters
    ----------
    rule : Rule
        Whose function.
    seed : int
        The same seed makes the same calls.
    """

    def __init__(self, rule: Rule, seed: int) -> None:
        self.rule = rule
        self.name = name_of(rule)
        self.seed = seed
        self.rng = random.Random()
        self.trying: Trying = str
        self.options = options(rule.func, rule)
        try:
            cases = [*default_cases(rule), *VARIANTS.get(rule.func, [])]
        except Exception:  # a rule that says nothing of its arguments
            numbers = np.array([0.7, -1.2, 1.6])
            cases = [((numbers,), {}), ((np.outer(numbers, [1.0, 0.6]),), {}), ((numbers, numbers[::-1].copy()), {})]
        self.cases = [case for case in cases if not any(map(callable, case[0]))]
        self.given: list[tuple[str, str]] = []

    # ---- arguments ---------------------------------------------------------------------------------------------------

    def array(self, value: np.ndarray) -> str:
        """The text of an array, in some layout."""
        if value.dtype.kind in "iub":
            return (
                f"np.array({value.tolist()}, dtype=np.{value.dtype})"
                if not value.size
                else f"np.array({value.tolist()})"
            )
        listed = f"np.array({value.tolist()})" if value.size else f"np.zeros({value.shape})"
        listed = listed.replace("nan", "np.nan").replace("inf", "np.inf")
        roll = self.rng.random()
        if not value.ndim or roll < 0.6:
            return listed
        if roll < 0.7:
            return f"np.asfortranarray({listed})"
        if roll < 0.8:
            return f"np.repeat({listed}, 2, axis=-1)[..., ::2]"
        if roll < 0.9:
            return f"{listed}[::-1].copy()[::-1]"
        return f"{listed}.astype(np.float32)"

    def reshaped(self, value: np.ndarray) -> np.ndarray:
        """Another array: of one element, of none, of no axes, with equal or whole numbers, with another axis."""
        roll = self.rng.random()
        if roll < 0.6 or not value.size:
            return value
        if roll < 0.66:
            return value[:1] if value.ndim else value
        if roll < 0.70:
            return value[:0] if value.ndim else value
        if roll < 0.76:
            return np.array(value.flat[0])
        if roll < 0.82 and value.ndim and len(value) > 1 and value.dtype.kind == "f":
            same = value.copy()
            same[1] = same[0]
            return same
        if roll < 0.85 and value.dtype.kind == "f":
            return np.round(value)
        if roll < 0.90:
            return np.stack([value, value + 0.171 if value.dtype.kind == "f" else value])
        if roll < 0.95 and value.ndim > 1:
            return value[:, :1]
        return np.abs(value) if value.dtype.kind == "f" else value

    def text(self, value: Any, names: str = "a") -> str:
        """An argument; floating numbers become parameters of the program."""
        if isinstance(value, np.ndarray) and value.dtype.kind == "c":
            return f"({self.text(value.real.copy())} + 1j * {self.text(value.imag.copy())})"
        if isinstance(value, complex | np.complexfloating):
            return f"({self.text(float(value.real))} + 1j * {self.text(float(value.imag))})"
        if is_real(value):
            if isinstance(value, np.ndarray):
                shown = self.array(self.reshaped(value))
            elif math.isfinite(value):
                shown = repr(float(value))
            else:
                return f"float('{float(value)}')"
            self.given.append((f"{names}{len(self.given)}", shown))
            return self.given[-1][0]
        if isinstance(value, np.ndarray):
            return self.array(self.reshaped(value))
        if isinstance(value, list):
            return f"[{', '.join(map(self.text, value))}]"
        if type(value) is tuple:
            return f"({', '.join(map(self.text, value))}{',' * (len(value) == 1)})"
        if value is None or isinstance(value, bool | int | str):
            return repr(value)
        if isinstance(value, np.integer | np.bool_):
            return repr(value.item())
        if isinstance(value, slice):
            return repr(value)
        raise Unspeakable

    def call(self) -> tuple[str, bool]:
        """The text of a call, and whether it writes into an array `o`."""
        rng = self.rng
        args, kwargs = rng.choice(self.cases)
        self.given = []
        shown = [self.text(value) for value in args]
        words = {name: self.text(value) for name, value in kwargs.items()}
        taken = list(inspect_names(self.rule))[: len(args)]
        free = [name for name in self.options if name not in words and name not in taken]
        writes = False
        for name in rng.sample(free, min(len(free), rng.choice([0, 1, 1, 2, 3]))):
            if name == "out":
                writes = True
                words["out"] = "o"
            elif name == "where":
                mask = self.mask(self.first_shape())
                words["where"] = f"np.array({mask.tolist()})" if mask.size else "True"
                if isinstance(self.rule.func, np.ufunc):
                    writes, words["out"] = True, "o"
            elif self.options[name]:
                words[name] = rng.choice(self.options[name])
        called = f"{self.name}("
        method = self.name.rpartition(".")[2]
        if shown and self.name.count(".") == 1 and rng.random() < 0.25 and hasattr(np.ndarray, method):
            called = f"{shown.pop(0)}.{method}("
        return called + ", ".join([*shown, *(f"{name}={value}" for name, value in words.items())]) + ")", writes

    def mask(self, shape: tuple[int, ...]) -> np.ndarray:
        """Where a function is applied.

        The compiled loops of `scipy.special` (1.17) advance the pointers that they are given, and NumPy advances these
        once more: after one run of places that a mask allows they read and write elsewhere, also past the ends of
        arrays, and the process ends at some later call.  Their masks allow one run of places.
        """
        size = int(np.prod(shape))
        if not self.name.startswith("scipy."):
            return np.array([self.rng.random() < 0.7 for _ in range(size)]).reshape(shape)
        first, last = sorted((self.rng.randint(0, size), self.rng.randint(0, size)))
        if len(shape) != 1:  # in memory the places may be in another order
            first, last = self.rng.choice([(0, size), (size, size)])
        places = np.arange(size)
        return ((first <= places) & (places < last)).reshape(shape)

    def first_shape(self) -> tuple[int, ...]:
        """The shape of the first argument."""
        for _, shown in self.given:
            return np.shape(eval(shown, {"np": np}))
        return ()

    def head(self) -> str:
        """The imports of a program."""
        return HEAD.format(self.name.split(".")[1] if self.name.startswith("scipy.") else "special")

    # ---- programs ----------------------------------------------------------------------------------------------------

    def program(self, number: int) -> str:
        """One program; empty where there is none."""
        self.rng = random.Random(f"{self.name} {self.seed} {number}")
        try:
            call, writes = self.call()
        except Unspeakable:
            return ""
        if not self.given:
            return ""
        params = ", ".join(name for name, _ in self.given)
        lines = [f"def f({params}):"]
        if writes:
            made = self.value(call.replace(", out=o", "").replace("out=o, ", "").replace("out=o", ""))
            if not isinstance(made, np.ndarray | np.generic) or made.dtype.kind not in "fc":
                return ""
            lines.append(f"    o = np.full({np.shape(made)}, 0.5, dtype=np.{made.dtype})")
        lines.append(f"    r = {call}")
        result = self.value(call, np.full(np.shape(made), 0.5, made.dtype) if writes else None)
        lines += [f"    return {self.ending(result, writes)}"]
        given = f"    return ({', '.join(text for _, text in self.given)},)"
        return self.head() + "\n".join(lines) + f"\n\n\ndef arguments():\n{given}\n"

    def value(self, call: str, room: Any = None) -> Any:
        """What a call gives."""
        given = [*self.given] if room is None else [*self.given, ("o", f"np.full({room.shape}, 0.5, np.{room.dtype})")]
        params = ", ".join(f"{name}={text}" for name, text in given)
        self.trying(f"{self.head()}def f({params}):\n    return {call}\n\n\ndef arguments():\n    return ()\n")
        names: dict[str, Any] = {"np": np, "math": math, "o": room}
        exec("import cmath, scipy, scipy.special, scipy.linalg, scipy.stats, scipy.fft, scipy.signal", names)
        exec("import scipy.ndimage, scipy.integrate, scipy.interpolate, scipy.optimize, scipy.spatial", names)
        names.update({name: eval(text, {"np": np}) for name, text in self.given})
        try:
            return eval(call, names)
        except Exception:
            return None

    def ending(self, result: Any, writes: bool) -> str:
        """How the result becomes floating numbers."""
        found = [leaf for leaf in leaves(result) if isinstance(leaf, np.ndarray | np.generic | float | complex | int)]
        if isinstance(result, tuple) and len(found) == len(result):
            parts = [part for k, leaf in enumerate(found) for part in self.ends(f"r[{k}]", leaf)]
        else:
            parts = self.ends("r", result)
        if writes:
            parts = parts[: self.rng.choice([0, 1])] + self.ends("o", result)
        if not parts:
            return f"np.sum({self.given[0][0]} * 2.0)"
        if self.rng.random() < 0.6:  # a zero more, in a set that grows where equal numbers move apart, is a jump, too
            return " + ".join(f"np.sum(np.sin({part} + 0.5))" for part in parts)
        return parts[0] if len(parts) == 1 else f"({', '.join(parts)})"

    def ends(self, name: str, value: Any) -> list[str]:
        """Floating parts of a value."""
        if isinstance(value, list | tuple):
            return []
        kind = np.asarray(value).dtype.kind
        if kind == "f":
            return [name]
        return [f"{name}.real", f"{name}.imag"] if kind == "c" else []

    def programs(self, count: int, first: int = 0, trying: Trying = str) -> Iterator[tuple[int, str]]:
        """Some programs that run in plain Python, with their numbers; not every number is one of a program."""
        self.trying = trying
        for number in range(first, first + 4 * count):
            if count <= 0:
                return
            with warnings.catch_warnings(), np.errstate(all="ignore"):
                warnings.simplefilter("ignore")
                text = self.program(number)
                if text:
                    trying(text)
            if text and runs(text):
                count -= 1
                yield number, text


def inspect_names(rule: Rule) -> list[str]:
    """The parameters of a function."""
    try:
        return list(inspect.signature(rule.func).parameters)
    except (TypeError, ValueError):
        return list(inspect.signature(rule.body).parameters) if rule.body is not None else []


def runs(text: str) -> bool:
    """Whether a program runs without a warning, and its numbers are finite, and the same when it runs again.

    SciPy gives memory as it is for some empty arguments (`solve_sylvester` of a stack).
    """
    names: dict[str, Any] = {"__name__": "api"}
    try:
        with warnings.catch_warnings(), np.errstate(all="raise", under="ignore"):
            warnings.simplefilter("error")
            exec(text, names)
            result, other = (names["f"](*names["arguments"]()) for _ in range(2))
    except Exception:
        return False
    if not all(map(np.array_equal, leaves(result), leaves(other))):
        return False
    return bool(real_leaves(result)) and len(real_leaves(result)) == len(list(leaves(result))) and tame(result)


@dataclasses.dataclass(frozen=True)
class InactivePlaces:
    """Functions of one number at points without a value, which a choice sets aside."""

    seed: int
    name = "inactive"

    def programs(self, count: int, first: int = 0, trying: Trying = str) -> Iterator[tuple[int, str]]:
        """One program for each function with a real result."""
        rules = [rule for rule in all_rules() if isinstance(rule.func, np.ufunc) and rule.func.nin == 1]
        for number, rule in enumerate(rules):
            if number >= first and rule.domain and name_of(rule) and is_real(rule.func(rule.domain[0][0])):
                yield number, self.text(rule)

    def text(self, rule: Rule) -> str:
        """The program of a function."""
        rng = random.Random(f"{name_of(rule)} {self.seed}")
        low, high = rule.domain[0]
        good = round(rng.uniform(low, high), 3)
        chosen = f"np.where(np.array([True, False]), {name_of(rule)}(a0), 0.5)"
        return (
            f"{HEAD.format('special')}def f(a0):\n    r = {chosen}\n"
            f"    return {rng.choice(['np.sum(r)', 'np.sum(r * r)', 'r'])}\n\n\n"
            f"def arguments():\n    return (np.array([{good}, {rng.choice(ODD)}]),)\n"
        )


def chosen(only: str = "") -> list[Rule]:
    """Rules whose functions are called."""
    return [rule for rule in all_rules() if name_of(rule) not in ("", *UNDEFINED) and only in name_of(rule)]


def main(given: list[str] | None = None) -> int:
    """Run the command; 1 if something is wrong."""
    parser = argparse.ArgumentParser(prog="python -m tests.grown.api", description=__doc__)
    parser.add_argument("--combinations", type=int, default=20, help="for each function")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--only", default="", help="functions whose name holds this text")
    parser.add_argument("--part", default="0/1", help="K/N: every N-th function, from the K-th")
    parser.add_argument("--compiled", action="store_true", help="also compiled code")
    parser.add_argument("--minutes", type=float, default=float("inf"))
    parser.add_argument("--report", type=Path)
    wanted = parser.parse_args(given)
    began, count = time.monotonic(), collections.Counter[str]()
    found: dict[tuple[str, str, str, str], list[tuple[Verdict, str]]] = {}
    stages = (*STAGES, "compiled") if wanted.compiled else STAGES
    first, _, step = wanted.part.partition("/")
    made: list[Caller | InactivePlaces] = [
        caller for rule in chosen(wanted.only)[int(first) :: int(step)] if (caller := Caller(rule, wanted.seed)).cases
    ]
    made += [] if wanted.only else [InactivePlaces(wanted.seed)]
    for each in made:
        if time.monotonic() - began > 60 * wanted.minutes:
            break
        for text, verdict in judged(each, stages, wanted.combinations):
            count[verdict.kind] += 1
            if verdict.kind != RIGHT:
                place = text if isinstance(each, InactivePlaces) else verdict.key()
                found.setdefault((verdict.kind, each.name, verdict.stage, place), []).append((verdict, text))
            if verdict.kind not in FINE:
                print(f"{verdict.kind} {each.name} in {verdict.stage}: {verdict.detail[:200]}", flush=True)
    lines = [f"{sum(count.values())} programs in {time.monotonic() - began:.0f} s: {dict(count)}"]
    for (kind, name, stage, _), group in sorted(found.items(), key=lambda item: item[0]):
        verdict, text = min(group, key=lambda pair: len(pair[1]))
        lines += ["", f"## {kind} {name} in {stage} ({len(group)}): {verdict.detail[:300]}"]
        if kind != "refused":
            lines.append(text[text.index("def f") :])
    shown = "\n".join(lines)
    print(shown)
    if wanted.report:
        wanted.report.write_text(shown, encoding="utf-8")
    return int(any(count[kind] for kind in count if kind not in (*FINE, INVALID)) or bool(count[WRONG]))


if __name__ == "__main__":
    sys.exit(main())
