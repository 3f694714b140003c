"""Random calls of functions and methods: what they are given, how it lies in memory, and what becomes of the result."""

from __future__ import annotations

import math
import random
import re
import warnings
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from tapegen.rules import Rule, all_rules, rule_of
from tests.grown.api_targets import UNDEFINED_IF_EMPTY, Case, Raw, Target, name_of
from tests.grown.calls_apart import Trying
from tests.grown.program import SEPARATION
from tests.grown.reference import real_leaves
from tests.grown.values import is_real, leaves, tame

HEAD = "import cmath\nimport math\n\nimport numpy as np\nimport scipy.{}\n\n\n"
ODD = ["0.0", "1.0", "-1.0", "np.inf", "np.nan", "-np.inf", "1e300"]


class Unspeakable(Exception):
    """An argument that cannot be written as text."""


class Caller:
    """Makes calls of one function.

    Parameters
    ----------
    target : Target
        What is called.
    seed : int
        The same seed makes the same calls.
    """

    def __init__(self, target: Target, seed: int) -> None:
        self.target = target
        self.name = target.name
        self.seed = seed
        rule = None if target.func is None else rule_of(target.func)
        self.phases = rule is not None and rule.phases
        self.rng = random.Random()
        self.trying: Trying = str
        self.given: list[tuple[str, str]] = []
        self.lines: list[str] = []
        """Statements before the call."""
        self.written = ""
        """The array that the call writes into; `o` is one of the program."""

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
        if not value.ndim or roll < 0.55:
            return listed
        if roll < 0.65:
            return f"np.asfortranarray({listed})"
        if roll < 0.72:
            return f"np.repeat({listed}, 2, axis=-1)[..., ::2]"
        if roll < 0.79:
            return f"{listed}[::-1].copy()[::-1]"
        if roll < 0.85:
            return f"{listed}[..., ::-1].copy()[..., ::-1]"
        if roll < 0.9 and value.ndim > 2:
            return f"{listed}.swapaxes(0, 1).copy().swapaxes(0, 1)"
        return f"{listed}.astype(np.float32)"

    def reshaped(self, value: np.ndarray) -> np.ndarray:
        """Another array: of one element, of none, of no axes, with equal or whole numbers, with another axis."""
        roll = self.rng.random()
        if roll < 0.6 or not value.size:
            return value
        if roll < 0.66:
            return value[:1] if value.ndim else value
        if roll < 0.70:
            return value[:0] if value.ndim and self.name not in UNDEFINED_IF_EMPTY else value
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

    def kind_changed(self, value: Any) -> Any:
        """The same with an imaginary part, or as integers; mostly the same.

        The phases of complex eigenvectors and singular vectors are arbitrary, and so are derivatives of their parts.
        """
        roll = self.rng.random()
        if roll < 0.06 and np.all(np.isfinite(value)) and not self.phases:
            return value + 1j * np.round(0.7 * np.cos(3.0 * np.asarray(value)), 3)
        if roll < 0.11 and np.all(np.isfinite(value)):
            return np.round(value).astype(int) if isinstance(value, np.ndarray) else round(float(value))
        return value

    def text(self, value: Any) -> str:
        """An argument; floating numbers become parameters of the program."""
        if isinstance(value, Raw):
            return str(value)
        if is_real(value):
            value = self.kind_changed(value)
        if isinstance(value, np.ndarray) and value.dtype.kind == "c":
            return f"({self.parameter(value.real.copy())} + 1j * {self.parameter(value.imag.copy())})"
        if isinstance(value, complex | np.complexfloating):
            return f"({self.parameter(float(value.real))} + 1j * {self.parameter(float(value.imag))})"
        if is_real(value):
            return self.parameter(value)
        if isinstance(value, np.ndarray):
            shown = self.array(self.reshaped(value))
            return self.named(shown) if value.dtype.kind == "i" and self.rng.random() < 0.3 else shown
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

    def parameter(self, value: Any) -> str:
        """A parameter for a floating number or array."""
        if isinstance(value, np.ndarray):
            return self.named(self.array(self.reshaped(value)))
        if math.isfinite(value):
            shown = repr(float(value))
            return self.named(f"np.float32({shown})" if self.rng.random() < 0.04 else shown)
        return f"float('{float(value)}')"

    def named(self, shown: str) -> str:
        """A parameter for an argument with this text."""
        self.given.append((f"a{len(self.given)}", shown))
        return self.given[-1][0]

    # ---- calls -------------------------------------------------------------------------------------------------------

    def call(self) -> str:
        """The text of a call."""
        rng = self.rng
        case: Case = rng.choice(self.target.cases)
        self.given, self.lines, self.written = [], [], ""
        if self.name.endswith("!"):
            return f"{self.text(case.args[0])}{self.name[:-1]}"
        shown = [self.text(value) for value in case.args]
        words = {name: self.text(value) for name, value in case.kwargs.items()}
        taken = self.target.parameters[: len(case.args)]
        choices = {**self.target.options, **case.options}
        free = [name for name in choices if name not in words and name not in taken]
        for name in rng.sample(free, min(len(free), rng.choice([0, 1, 1, 2, 3]))):
            if name == "out":
                self.written = self.written or "o"
            elif name == "where":
                words["where"] = self.where()
                if isinstance(self.target.func, np.ufunc):
                    self.written = "o"
            elif choices[name]:
                words[name] = rng.choice(choices[name])
        if self.written:
            words["out"] = "o"
        for name in self.target.parameters[len(shown) :]:  # options by position
            if name not in words or name == "out" or rng.random() > 0.3 or self.name[0] == ".":
                break
            shown.append(words.pop(name))
        return self.spelled(shown, words)

    def spelled(self, shown: list[str], words: dict[str, str]) -> str:
        """A call with these arguments."""
        called = f"{self.name}("
        method = self.name.rpartition(".")[2]
        if self.name.startswith("np.random."):
            maker, _, method = self.name.rpartition(".")
            self.lines, called = [f"rng = {maker}"], f"rng.{method}("
        elif self.name.startswith(".") or (
            shown and self.name.count(".") == 1 and self.rng.random() < 0.25 and hasattr(np.ndarray, method)
        ):
            called = f"{shown.pop(0)}.{method}("
        return called + ", ".join([*shown, *(f"{name}={value}" for name, value in words.items())]) + ")"

    def where(self) -> str:
        """A mask of the first argument's shape, or one that is broadcast; where it is false may be NaN and its like."""
        shape = self.first_shape()
        roll = self.rng.random()
        mask = self.mask(shape[1:] if roll < 0.15 and not self.name.startswith("scipy.") else shape)
        if not mask.size or not self.given:
            return "True"
        name, first = self.given[0]
        if roll > 0.7 and mask.ndim and not mask.all() and mask.shape == shape and "[" in first:
            odd = self.rng.choice(["np.nan", "np.inf", "-np.inf", "0.0"])
            self.given[0] = (name, f"np.where({mask.tolist()}, {first}, {odd})")
        return f"np.array({mask.tolist()})"

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
            call = self.call()
        except Unspeakable:
            return ""
        if not self.given:
            return ""
        if self.written:
            made = self.value(re.sub(r"(, )?out=o(, )?", lambda found: ", " if all(found.groups()) else "", call))
            if not isinstance(made, np.ndarray | np.generic) or made.dtype.kind not in "fc":
                return ""
            call = self.with_room(call, made)
        result = self.value(call)
        lines = [f"def f({', '.join(name for name, _ in self.given)}):", *(f"    {line}" for line in self.lines)]
        lines += [f"    r = {call}", f"    return {self.ending(result)}"]
        given = f"    return ({', '.join(text for _, text in self.given)},)"
        return self.head() + "\n".join(lines) + f"{SEPARATION}\n{given}\n"

    def with_room(self, call: str, made: Any) -> str:
        """A call with an array for the result: a new one in some layout, or one of the arguments.

        `np.choose` (2.4) writes behind the end of arrays whose elements do not lie side by side.
        """
        shape, kind, roll = np.shape(made), made.dtype, self.rng.random()
        if self.name == "np.choose":
            roll = 0.8
        fitting = [
            name
            for name, shown in self.given
            if isinstance(value := eval(shown, {"np": np}), np.ndarray) and (value.shape, value.dtype) == (shape, kind)
        ]
        if fitting and roll < 0.3:
            self.written = self.rng.choice(fitting)
        else:
            room = f"np.full({shape}, 0.5, dtype=np.{kind})"
            if roll < 0.5 and shape:
                room = f"np.full({shape}, 0.5, dtype=np.{kind}, order='F')" if len(shape) > 1 else f"{room}[::-1]"
            elif roll < 0.6 and shape and shape[-1]:
                room = f"np.full({(*shape[:-1], 2 * shape[-1])}, 0.5, dtype=np.{kind})[..., ::2]"
            elif roll < 0.7 and kind == np.float32:
                room = f"np.full({shape}, 0.5)"
            self.lines.append(f"o = {room}")
        form = "({},)" if isinstance(self.target.func, np.ufunc) and roll > 0.9 else "{}"
        return call.replace("out=o", f"out={form.format(self.written)}")

    def value(self, call: str) -> Any:
        """What a call gives."""
        params = ", ".join(name for name, _ in self.given)
        body = "\n".join(f"    {line}" for line in [*self.lines, f"return {call}"])
        text = (
            f"{self.head()}def f({params}):\n{body}{SEPARATION}\n    return ({', '.join(t for _, t in self.given)},)\n"
        )
        self.trying(text)
        names: dict[str, Any] = {}
        try:
            exec(text, names)
            return names["f"](*names["arguments"]())
        except Exception:
            return None

    def ending(self, result: Any) -> str:
        """How the result becomes floating numbers."""
        found = [leaf for leaf in leaves(result) if isinstance(leaf, np.ndarray | np.generic | float | complex | int)]
        if isinstance(result, list | tuple) and len(found) == len(result):
            parts = [part for k, leaf in enumerate(found) for part in self.ends(f"r[{k}]", leaf)]
        else:
            parts = self.ends("r", result)
        if self.written:
            parts = parts[: self.rng.choice([0, 1])] + self.ends(self.written, result)
        if not parts:
            return f"np.sum(np.sin({self.given[0][0]} * 2.0))"
        if self.rng.random() < 0.6:  # a zero more, in a set that grows where equal numbers move apart, is a jump, too
            form = "np.sum(np.sin({0} + 0.5))"
            if self.phases:  # eigenvalues that change places are a jump: at a diagonal matrix, of schur
                form = "np.dot(np.cos(np.arange(np.size({0}))), np.sin(np.ravel({0}) + 0.5))"
            return " + ".join(map(form.format, parts))
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
        """Different programs that run in plain Python, with their numbers; not every number is one of a program."""
        self.trying = trying
        seen: set[str] = set()
        for number in range(first, first + 2 * count):
            if count <= 0:
                return
            with warnings.catch_warnings(), np.errstate(all="ignore"):
                warnings.simplefilter("ignore")
                text = self.program(number)
                if text in seen:
                    continue
                seen.add(text)
                if text:
                    trying(text)
            if text and runs(text):
                count -= 1
                yield number, text


def runs(text: str) -> bool:
    """Whether a program of floating numbers runs without a warning, with finite results, the same when it runs again.

    SciPy gives memory as it is for some empty arguments (`solve_sylvester` of a stack).
    """
    names: dict[str, Any] = {"__name__": "api"}
    try:
        with warnings.catch_warnings(), np.errstate(all="raise", under="ignore"):
            warnings.simplefilter("error")
            exec(text, names)
            result, other = (names["f"](*names["arguments"]()) for _ in range(2))
            given = real_leaves(names["arguments"]())
    except Exception:
        return False
    if not given:
        return False
    if not all(map(np.array_equal, leaves(result), leaves(other))):
        return False
    return bool(real_leaves(result)) and len(real_leaves(result)) == len(list(leaves(result))) and tame(result)


@dataclass(frozen=True)
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
