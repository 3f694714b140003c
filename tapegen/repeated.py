"""Calls of compiled derivatives after the first one: nothing is looked up that the first one has found.

Between two gradients the processor has gone through other memory, and each line of Python that a call runs has to come
back from there: a short gradient took less time than what stood around it.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from types import FunctionType
from typing import Any

import numpy as np

from tapegen.backend.watch import watching
from tapegen.frontend.structure import Leaf, Slot, map_leaves
from tapegen.generators import states_of
from tapegen.ir.nodes import Return
from tapegen.ir.types import Array, Scalar, python_class
from tapegen.program import WIDE, Form, Program
from tapegen.tangents import as_result, result_tangent

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
        built = _built(program, "joint", leaves)
        return None if built is None else cls(program, built, seeds)

    def run(self, arguments: Mapping[str, Any]) -> tuple[Any, Any] | None:
        """Value and gradient; None where compiled code raises an error, or the call needs other code."""
        values = _values(self.built, self.leaves(arguments), self.seeds)
        if values is None:
            return None
        count = len(values) - self.wanted
        return self.value(values[:count]), self.gradient(values[count:])


class RepeatedTangent:
    """Value and tangent, or the tangent alone, of one program, which has run before.

    Parameters
    ----------
    program : Program
        One that stores into no argument and draws nothing.
    built : callable
        Its compiled code.
    names : sequence of str
        The arguments that have tangents: numbers and arrays.
    alone : bool
        Whether only the tangent is computed.
    """

    __slots__ = ("alone", "built", "leaves", "names", "places", "template", "value")

    def __init__(self, program: Program, built: Callable[..., Any], names: Sequence[str], *, alone: bool) -> None:
        self.built, self.alone = built, alone
        self.names = tuple((name, getattr(program.wrt_template(name), "type", None)) for name in names)
        self.leaves = program.lowered.leaves
        self.value = program.restored or value_of(program)
        self.template = program.objective
        last = program.lowered.function.body[-1]
        assert isinstance(last, Return)
        active = enumerate(program.active_results(scalar=False))
        self.places = [(k, last.values[k].type) for k, is_active in active if is_active]

    @classmethod
    def of(cls, program: Program, form: Form, leaves: Sequence[Any]) -> RepeatedTangent | None:
        """For a program that has just run on these leaves; None where each call has more to look at."""
        built = _built(program, form, leaves)
        templates = [program.wrt_template(name) for name in program.wrt_names]
        single = [isinstance(found, Leaf) and program.lowered.param_of(found) for found in templates]
        if built is None or program.options.has_aux or not any(program.active_results(scalar=False)):
            return None
        if tuple(single) != program.wrt_vars():
            return None
        return cls(program, built, program.wrt_names, alone=form == "tangent")

    def run(self, arguments: Mapping[str, Any], tangents: Collection[Any]) -> tuple[Any, Any] | None:
        """Value (or None) and tangent; None where compiled code raises an error, or there is more to look at."""
        for (name, type_), tangent in zip(self.names, tangents, strict=True):
            if not _is_alike(arguments[name], tangent, type_):
                return None
        values = _values(self.built, self.leaves(arguments), tangents)
        if values is None:
            return None
        values = values if type(values) is tuple else (values,)
        count = len(values) - len(self.places)
        found: dict[int, Any] = {}
        for (position, type_), dot in zip(self.places, values[count:], strict=True):
            found[position] = as_result(dot, type_, [*tangents, *found.values()])
        return None if self.alone else self.value(values[:count]), result_tangent(self.template, found)


def _is_alike(value: Any, tangent: Any, type_: Any) -> bool:
    """Whether compiled code takes a tangent as it is given: of the kind, the shape and the layout of the argument."""
    if type(value) is not np.ndarray or type(tangent) is not np.ndarray:
        return type(value) is type(tangent) is float
    if tangent.dtype != value.dtype or tangent.shape != value.shape or type_.layout != "C":
        return False
    flags = tangent.flags
    return flags.c_contiguous and flags.aligned and flags.writeable


def _built(program: Program, form: Form, leaves: Sequence[Any]) -> Callable[..., Any] | None:
    """The compiled code of a program that has just run; None where there is none, or a call has more to look at."""
    built = program.parts.built.get(form)
    if built is None or isinstance(built, FunctionType) or program.mutated or program.is_complex:
        return None
    return None if states_of(leaves) or program.never_returns else built


def _values(built: Callable[..., Any], leaves: Sequence[Any], more: Collection[Any]) -> Any:
    """What compiled code gives; None where it raises an error, or the call needs other code."""
    for leaf in leaves:
        if type(leaf) is int and not -WIDE < leaf < WIDE:
            return None
    if watching():
        return None
    try:
        return built(*leaves, *more)
    except Exception:  # it has left nothing behind, so the whole call may be made once more, and say what is wrong
        return None


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
