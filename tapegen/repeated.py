"""Calls of compiled gradients after the first one: nothing is looked up that the first one has found.

Between two gradients the processor has gone through other memory, and each line of Python that a call runs has to come
back from there: a short gradient took less time than what stood around it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from types import FunctionType
from typing import Any

import numpy as np

from tapegen.backend.watch import watching
from tapegen.frontend.structure import Slot, map_leaves
from tapegen.generators import states_of
from tapegen.ir.nodes import Return
from tapegen.ir.types import Array, Scalar, python_class
from tapegen.program import WIDE, Program

_NUMPY_NUMBERS: dict[str, type] = {np.dtype(kind).name: np.dtype(kind).type for kind in np.typecodes["All"][:-2]}


class Repeated:
    """Value and gradient of one program, which has run before.

    Parameters
    ----------
    program : Program
        One that stores into no argument and draws nothing.
    built : callable
        Its compiled code.
    seeds : sequence
        What that takes after the leaves of the arguments.
    """

    __slots__ = ("built", "gradient", "leaves", "seeds", "value", "wanted")

    def __init__(self, program: Program, built: Callable[..., Any], seeds: Sequence[Any]) -> None:
        self.built, self.seeds = built, tuple(seeds)
        self.leaves = program.lowered.leaves
        self.value, self.gradient = program.restored or value_of(program), gradient_of(program)
        self.wanted = len(program.wrt_vars())

    @classmethod
    def of(cls, program: Program, leaves: Sequence[Any], seeds: Sequence[Any]) -> Repeated | None:
        """For a program that has just run on these leaves; None where each call has more to look at."""
        built = program.parts.built.get("joint")
        if built is None or isinstance(built, FunctionType) or program.mutated or program.is_complex:
            return None
        if states_of(leaves) or program.never_returns:
            return None
        return cls(program, built, seeds)

    def run(self, arguments: Mapping[str, Any]) -> tuple[Any, Any] | None:
        """Value and gradient; None where compiled code raises an error, or the call needs other code."""
        leaves = self.leaves(arguments)
        for leaf in leaves:
            if type(leaf) is int and not -WIDE < leaf < WIDE:
                return None
        if watching():
            return None
        try:
            values = self.built(*leaves, *self.seeds)
        except Exception:  # it has left nothing behind, so the whole call may be made once more, and say what is wrong
            return None
        count = len(values) - self.wanted
        return self.value(values[:count]), self.gradient(values[count:])


def value_of(program: Program) -> Callable[[Sequence[Any]], Any]:
    """What puts computed numbers together as the value that plain Python returns."""
    lowered = program.lowered
    last = lowered.function.body[-1]
    assert isinstance(last, Return)
    types = [expr.type for expr in last.values]
    output = lowered.output
    if isinstance(output, Slot):
        index = output.index
        return lambda values: as_type(values[index], types[index])
    return lambda values: lowered.restore(as_types(values, types))


def gradient_of(program: Program) -> Callable[[Sequence[Any]], Any]:
    """What puts cotangents of the inputs together as the gradient, in the structure of `wrt`."""
    types = [var.type for var in program.wrt_vars()]
    templates = program.gradient_templates
    single = isinstance(program.options.wrt, int | str)

    def gradient(values: Sequence[Any]) -> Any:
        typed = as_types(values, types)
        results = [
            typed[found.index] if isinstance(found, Slot) else map_leaves(found, lambda slot: typed[slot.index])
            for found in templates
        ]
        return results[0] if single else tuple(results)

    return gradient


def as_types(values: Sequence[Any], types: Sequence[Any]) -> list[Any]:
    """Numbers and arrays as plain Python would have them."""
    return [as_type(value, type_) for value, type_ in zip(values, types, strict=True)]


def as_type(value: Any, type_: Any) -> Any:
    """A number or array as plain Python would have it (compiled code hands over bare numbers)."""
    if type(value) is np.ndarray and isinstance(type_, Array):
        return value
    if isinstance(type_, Scalar):
        if type_.python:
            return python_class(type_)(value)
        return _NUMPY_NUMBERS[type_.dtype](value)
    if isinstance(type_, Array) and not isinstance(value, np.ndarray):
        return np.asarray(value, type_.dtype)
    return value
