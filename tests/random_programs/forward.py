"""Run a program on dual numbers, over floats or over residues."""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from tests.random_programs.dual_numpy import DualMath
from tests.random_programs.duals import NAMESPACES, Dual, FieldDual, Monitor, is_float, reset_monitor, value
from tests.random_programs.field import FieldNumpy
from tests.random_programs.program import Program
from tests.random_programs.residues import Residue, lift

FIELD_NUMPY = FieldNumpy()


@dataclass(frozen=True)
class Derivative:
    """What a run on duals found.

    Attributes
    ----------
    outputs : list
        The floating leaves of the result, as duals.
    result : object
        The result itself.
    args : tuple
        The arguments after the run (duals where floating).
    monitor : Monitor
        Margins and non-finite partial derivatives on the way.
    """

    outputs: list[Dual]
    result: Any
    args: tuple[Any, ...]
    monitor: Monitor

    def result_values(self) -> list[Any]:
        """The primal values of the outputs."""
        return [output.v for output in self.outputs]


def leaves(x: Any) -> list[Any]:
    """The floating leaves of a result, in order."""
    if isinstance(x, tuple | list):
        return [leaf for item in x for leaf in leaves(item)]
    if isinstance(x, dict):
        return [leaf for item in x.values() for leaf in leaves(item)]
    return [x] if isinstance(x, Dual) or is_float(x) else []


def _names(dual: type[Dual]) -> dict[str, Any]:
    def to_float(x: Any = 0.0) -> Any:
        if not isinstance(x, Dual):
            return float(x) if dual.real else lift(x)
        return dual(float(x.v), x.t * 1.0, x.s * 1.0) if dual.real else x

    def total(items: Any, start: Any = 0) -> Any:
        for item in items:
            start = start + item
        return start

    def power(x: Any, y: Any) -> Any:
        return x**y

    names = {"float": to_float, "sum": total, "pow": power}
    return names if dual.real else {**names, "__float__": lift}


def differentiate(program: Program, directions: Sequence[Any], dual: type[Dual] = Dual) -> Derivative:
    """Push the tangents `directions` (one per entry of `wrt`) through a program.

    Raises whatever the program raises.
    """
    monitor = reset_monitor()
    numpy = np if dual.real else FIELD_NUMPY
    primal, tangent, size = program.arguments(numpy), program.tangents(numpy), program.tangents(numpy)
    args = list(primal)
    for k, arg in enumerate(primal):
        if not is_float(arg):
            args[k] = dual.wrap(arg)
            continue
        if not dual.real and not isinstance(arg, np.ndarray):
            arg = lift(arg)
        if k in program.wrt:
            direction = directions[program.wrt.index(k)]
        else:
            direction = 0.0 if dual.real else Residue(0)
        if not isinstance(arg, np.ndarray):
            args[k] = dual(arg, direction, abs(direction) if dual.real else None)
            continue
        # the same expression made all three, so they share one memory layout
        tangent[k][...] = direction
        size[k][...] = np.abs(direction) if dual.real else None
        args[k] = dual(arg, tangent[k], size[k] if dual.real else None)
    f = program.load_with(NAMESPACES[dual], DualMath(dual), _names(dual))
    with np.errstate(all="ignore"):
        result = f(*args)
    outputs = [leaf if isinstance(leaf, Dual) else dual.constant(leaf) for leaf in leaves(result)]
    return Derivative(outputs, result, tuple(args), replace(monitor))


def random_like(x: Any, rng: random.Random, number: Callable[[random.Random], Any]) -> Any:
    """Random numbers in the shape of a float or array."""
    if not isinstance(x, np.ndarray):
        return number(rng)
    out = np.empty(x.shape, dtype=object)
    for index in np.ndindex(x.shape):
        out[index] = number(rng)
    return out


def random_float(rng: random.Random) -> float:
    return rng.uniform(0.5, 1.5) * rng.choice((-1.0, 1.0))


def random_residue(rng: random.Random) -> Residue:
    return Residue(rng.getrandbits(61))


def inner(a: Any, b: Any) -> Any:
    """The inner product of two equally shaped numbers or arrays."""
    total: Any = 0
    for x, y in zip(np.ravel(np.asarray(a, dtype=object)), np.ravel(np.asarray(b, dtype=object)), strict=True):
        total = total + x * y
    return total


__all__ = [
    "Derivative",
    "FieldDual",
    "differentiate",
    "inner",
    "leaves",
    "random_float",
    "random_like",
    "random_residue",
    "value",
]
