"""In-place operations on names that hold values of different kinds on different paths.

`python -m tests.merged_kinds [one_of=N] [backend=numba] [show=VERDICT]` runs the programs: each ordered pair of kinds,
merged in each way, changed in place by each operation, once along each path.  The oracle is plain Python: its value,
what it leaves in the caller's arrays, its exception, and its differences.
"""

from __future__ import annotations

import collections
import itertools
import sys
import traceback
import warnings
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from tapegen import differentiable
from tapegen.errors import TapegenError
from tests.sources import define

KINDS = {
    "array": "w",
    "fresh": "u",
    "view": "w[1:]",
    "matrix": "m",
    "row": "w[None]",
    "no axes": "z",
    "own no axes": "np.array(x * 1.5)",
    "number": "3.0",
    "int": "2",
    "list": "[1.0, 2.0, x]",
    "tuple": "(1.0, x)",
    "None": "None",
    "element": "w[1]",
}
OF_ARRAYS = ("array", "fresh", "view", "matrix", "row", "no axes", "own no axes")
MERGES = {
    "if": "b = {first}\nif c > 0.5:\n    b = {second}\n{operation}",
    "else": "if c > 0.5:\n    b = {second}\nelse:\n    b = {first}\n{operation}",
    "behind a loop": "b = {first}\nfor k in range(int(c)):\n    b = {second}\n{operation}",
    "in a loop": "b = {first}\nfor k in range(2):\n    {operation}\n    if c > 0.5:\n        b = {second}",
    "conditional": "b = {second} if c > 0.5 else {first}\n{operation}",
    "helper": "b = pick(w, m, u, z, x, c)\n{operation}",
}
OPERATIONS = (
    "b += 2.0",
    "b *= 3",
    "b //= 0.7",
    "b += w",
    "b[:] = x * x",
    "b[0] = x * x",
    "b[0] *= x",
    "np.multiply(b, x, out=b)",
    "np.copyto(b, x)",
    "b.sort()",
    "b.fill(x)",
    "scale(b, x)",
    "put(b, x)",
    "b = scale(b, x)",
    "r = np.ravel(b); r += 2.0",
    "r = np.reshape(b, -1); r[0] = x * x",
    "r = np.atleast_1d(b); scale(r, x)",
    "r = np.asarray(b); r[...] = x * x",
    "r = np.squeeze(b); r *= x",
    "r = b.reshape(-1); np.multiply(r, x, out=r)",
    "r = b.T; b *= x; b = b + r",
)
READS = ("", " + total(b)")
TEXT = """
import numpy as np

def scale(v, by):
    v *= by
    return v

def put(v, number):
    v[0] = number

def total(v):
    return 0.0 if v is None else np.sum(v)

def pick(w, m, u, z, x, c):
    if c > 0.5:
        return {second}
    return {first}

def f(w, m, x, c):
    u = w * x
    z = np.array(x * 1.5)
    {body}
    return np.sum(w * w) + np.sum(m * m * x) + np.sum(u * u * w) + z * z{read}
"""
WRT = ("w", "m", "x")


@dataclass(frozen=True)
class Case:
    """One program."""

    first: str
    second: str
    merge: str
    operation: str
    read: str

    @property
    def text(self) -> str:
        first, second = KINDS[self.first], KINDS[self.second]
        body = MERGES[self.merge].format(first=first, second=second, operation=self.operation)
        return TEXT.format(first=first, second=second, body=body.replace("\n", "\n    "), read=self.read)

    def __str__(self) -> str:
        return f"{self.first} / {self.second}, {self.merge}: {self.operation}{self.read}"


def cases() -> Iterator[Case]:
    """All programs, those of two values without a shape left out."""
    for first, second in itertools.permutations(KINDS, 2):
        if first in OF_ARRAYS or second in OF_ARRAYS or "list" in (first, second):
            for rest in itertools.product(MERGES, OPERATIONS, READS):
                yield Case(first, second, *rest)


def arguments(taken: bool) -> dict[str, Any]:
    return {
        "w": np.array([1.3, -0.6, 2.2]),
        "m": np.array([[0.4, 1.7, -0.9], [2.3, 0.8, -1.2]]),
        "x": 0.85,
        "c": 1.0 if taken else 0.0,
    }


def judge(case: Case, taken: bool, backend: str = "python") -> tuple[str, str]:
    """What becomes of a program along one path: a verdict, and details."""
    plain: Any = define(case.text)
    return judge_function(plain, differentiable(plain, wrt=WRT, backend=backend), taken)  # type: ignore[call-overload]


def judge_function(plain: Callable[..., float], derived: Any, taken: bool) -> tuple[str, str]:
    left, given = arguments(taken), arguments(taken)
    error: Exception | None = None
    value: Any = None
    try:
        value = plain(**left)
    except Exception as raised:
        error = raised
    try:
        found, gradients = derived.value_and_grad(**given)
    except TapegenError as refusal:
        return "refused", str(refusal)
    except Exception as raised:
        if type(raised) is type(error):
            return "raises", str(raised)
        return "INTERNAL", "".join(traceback.format_exception(raised)[-3:])
    if error is not None:
        return "WRONG", f"no {type(error).__name__}: {error}"
    if not np.allclose(found, value, rtol=1e-12):
        return "WRONG", f"value {found}, not {value}"
    for name in ("w", "m"):
        if not np.allclose(given[name], left[name], rtol=1e-12):
            return "WRONG", f"{name} is left as {given[name]}, not {left[name]}"
    for name, gradient in zip(WRT, gradients, strict=True):
        expected = differences(plain, taken, name)
        if not np.allclose(gradient, expected, rtol=1e-5, atol=1e-6):
            return "WRONG", f"gradient by {name} {gradient}, not {expected}"
    return "right", ""


def differences(plain: Callable[..., float], taken: bool, name: str, step: float = 1e-5) -> np.ndarray:
    """Central differences of the value by one argument."""
    shape = np.shape(arguments(taken)[name])
    result = np.zeros(shape)
    for index in np.ndindex(shape):
        values = []
        for sign in (1, -1):
            given = arguments(taken)
            moved = np.array(given[name])
            moved[index] += sign * step
            given[name] = moved if shape else float(moved)
            values.append(plain(**given))
        result[index] = (values[0] - values[1]) / (2 * step)
    return result


def run(one_of: int = 1, backend: str = "python", start: int = 0) -> list[tuple[Case, bool, str, str]]:
    """Every `one_of`-th program along both paths, with its verdicts."""
    done = []
    for case in itertools.islice(cases(), start, None, one_of):
        plain: Any = define(case.text)
        derived = differentiable(plain, wrt=WRT, backend=backend)  # type: ignore[call-overload]
        for taken in (False, True):
            done.append((case, taken, *judge_function(plain, derived, taken)))
    return done


def main(options: dict[str, str]) -> int:
    warnings.simplefilter("ignore")
    done = run(int(options.get("one_of", 1)), options.get("backend", "python"), int(options.get("start", 0)))
    print(dict(collections.Counter(verdict for _, _, verdict, _ in done)), "of", len(done))
    for case, taken, verdict, detail in done:
        if verdict.isupper() or verdict == options.get("show"):
            print(f"{verdict}: {case} ({'second' if taken else 'first'}): {detail}")
    return int(any(verdict.isupper() for _, _, verdict, _ in done))


if __name__ == "__main__":
    sys.exit(main(dict(option.split("=", 1) for option in sys.argv[1:])))
