"""Fast path: calls of compiled derivatives after the first one, with everything that can be resolved before."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from operator import itemgetter
from types import FunctionType
from typing import Any

import numpy as np

from tapegen.backend.numba import memory_limit
from tapegen.backend.numba.early_exits.interrupts import is_of_signal_handler
from tapegen.frontend.values.pytree import Leaf, Slot, Struct, map_leaves, tuple_of
from tapegen.ir.nodes import Return
from tapegen.ir.types import Array, ListOf, Scalar, Type, python_class
from tapegen.pipeline.artifacts.executables import WIDE, key_of
from tapegen.pipeline.artifacts.program import Form, Program
from tapegen.pipeline.debug_nans import watching
from tapegen.runtime.random_state import states_of
from tapegen.runtime.tangents import as_result, result_tangent

_NUMPY_NUMBERS: dict[str, type] = {np.dtype(kind).name: np.dtype(kind).type for kind in np.typecodes["All"][:-2]}
_AS_COMPILED = 0x1 | 0x100 | 0x400  # C-contiguous, aligned, writeable


class FastCall:
    """Value and derivative of one program that has run before.

    Parameters
    ----------
    program : Program
        A program that stores into no argument and makes no random draws.
    built : callable
        Its compiled code.
    types : sequence of Type
        The types it returns: results, then derivatives.
    """

    __slots__ = (
        "_arrays",
        "_budget",
        "_built",
        "_bytes",
        "_conversions",
        "_count",
        "_derivative",
        "_integers",
        "_outgrown",
        "_seeds",
        "_shaped",
        "_tangents",
        "_value",
    )

    def __init__(self, program: Program, built: Callable[..., Any], types: Sequence[Type]) -> None:
        self._built = built
        self._conversions = [conversion(type_) for type_ in types]
        params = enumerate(program.lowered.function.params)
        self._integers = [k for k, var in params if var.type == Scalar("int64")]
        self._seeds: tuple[Any, ...] = ()
        self._tangents: list[Type] = []  # their types
        self._shaped: list[tuple[int, int]] = []  # arrays and their tangents
        self._arrays: list[tuple[int, Array]] = []  # tangents that may share memory with an argument
        self._bytes: Callable[..., int] | None = None  # what it records
        self._budget = program.options.budget
        self._outgrown: Mapping[Form, Any] = {}  # not empty where another program runs in its place
        self._value: Callable[[Sequence[Any]], Any] | None = None
        self._derivative: Callable[[Sequence[Any]], Any] | None = None
        self._count = 0

    @classmethod
    def of_value(cls, program: Program, leaves: Sequence[Any]) -> FastCall | None:
        """The value alone, after a first run on these leaves; None where a call must take the slow path."""
        built, results = _built(program, "primal", leaves), result_types(program)
        if built is None or not results:
            return None
        made = cls(program, built, results)
        made._count, made._value = len(results), value_of(program)
        return made

    @classmethod
    def of_gradient(cls, program: Program, leaves: Sequence[Any], seeds: Sequence[Any]) -> FastCall | None:
        """Value and gradient, after a first run on these leaves; None where a call must take the slow path.

        `seeds` are the arguments of compiled code after the leaves.
        """
        built = _built(program, "joint", leaves)
        if built is None:
            return None
        results = result_types(program)
        made = cls(program, built, [*results, *(var.type for var in program.wrt_vars())])
        made._seeds, made._count = tuple(seeds), len(results)
        made._outgrown = program.outgrown
        made._bytes = program.recorded_bytes("joint") if program.outline("joint").recorded_bytes != "0" else None
        made._value, made._derivative = value_of(program), gradient_of(program, len(results))
        return made

    @classmethod
    def of_tangent(cls, program: Program, form: Form, leaves: Sequence[Any]) -> FastCall | None:
        """Value and tangent, or the tangent alone, of scalars and arrays; None where a call must take the slow path."""
        built = _built(program, form, leaves)
        if built is None or program.options.has_aux or not any(program.selection.active_results(scalar=False)):
            return None
        templates = [program.selection.template(name) for name in program.wrt_names]
        single = [isinstance(found, Leaf) and program.lowered.param_of(found) for found in templates]
        wrt = program.wrt_vars()
        if tuple(single) != wrt or any(isinstance(var.type, Array) and var.type.layout != "C" for var in wrt):
            return None
        results = [] if form == "tangent" else result_types(program)
        active = [k for k, is_active in enumerate(program.selection.active_results(scalar=False)) if is_active]
        tangents = [result_types(program)[k] for k in active]
        made = cls(program, built, [*results, *tangents])
        made._count = len(results)
        made._tangents = [var.type for var in wrt]
        arrays = [var for var in wrt if isinstance(var.type, Array)]
        made._shaped = [(program.lowered.function.params.index(var), wrt.index(var)) for var in arrays]
        made._arrays = [(k, type_) for k, type_ in enumerate(tangents, len(results)) if isinstance(type_, Array)]
        made._value = value_of(program) if results else None
        made._derivative = _tangent_of(
            program.selection.objective, {position: k for k, position in enumerate(active, len(results))}
        )
        return made

    def takes(self, tangents: Collection[Any]) -> bool:
        """Whether compiled code accepts these tangents, shapes aside."""
        return all(map(_is_compiled, tangents, self._tangents))

    def run(self, leaves: Sequence[Any], tangents: Sequence[Any] = ()) -> tuple[Any, Any] | None:
        """Value and derivative (None for what is not computed); None for the slow path.

        That is needed if compiled code raises an error, or the call needs other code, or tangents have other shapes
        than their arguments.
        """
        for k, j in self._shaped:
            if leaves[k].shape != tangents[j].shape:
                return None
        for k in self._integers:
            if type(leaves[k]) is int and not -WIDE < leaves[k] < WIDE:
                return None
        if watching():
            return None
        if self._outgrown or (self._bytes is not None and self._bytes(*leaves) > memory_limit.limit_of(self._budget)):
            return None
        try:
            if self._budget is None:
                found = self._built(*leaves, *self._seeds, *tangents)
            else:
                with memory_limit.Within(self._budget):
                    found = self._built(*leaves, *self._seeds, *tangents)
        except Exception as error:  # it had no side effects, so the whole call may be repeated, and report the error
            if is_of_signal_handler(error):
                raise
            return None
        values = found if type(found) is tuple else (found,)
        made: list[Any] = []
        for value, (kind, convert) in zip(values, self._conversions, strict=True):
            made.append(value if type(value) is kind else convert(value))
        for k, type_ in self._arrays:
            made[k] = as_result(made[k], type_, [*tangents, *made[self._count : k]])
        value, derivative = self._value, self._derivative
        return value and value(made), derivative and derivative(made)


def _is_compiled(tangent: Any, type_: Type) -> bool:
    """Whether compiled code accepts a tangent of an argument of a type as it is, shape aside."""
    if isinstance(type_, Array):
        is_array = type(tangent) is np.ndarray and tangent.dtype == type_.dtype
        return is_array and tangent.ndim == type_.rank and tangent.flags.num & _AS_COMPILED == _AS_COMPILED
    return type_ == Scalar("float64") and type(tangent) is float


def _built(program: Program, form: Form, leaves: Sequence[Any]) -> Callable[..., Any] | None:
    """The compiled code of a program that has just run; None where there is none, or the slow path is needed."""
    built = program.parts.built.get(key_of(program, form))
    if built is None or isinstance(built, FunctionType) or program.mutated or program.is_complex:
        return None
    if program.lowered.mutations:
        return None
    return None if states_of(leaves) or program.never_returns or form in program.outgrown else built


def result_types(program: Program) -> list[Type]:
    """The types that the program returns."""
    last = program.lowered.function.body[-1]
    assert isinstance(last, Return)
    return [expr.type for expr in last.values]


def value_of(program: Program) -> Callable[[Sequence[Any]], Any]:
    """The function that assembles results into the value that plain Python returns."""
    output = program.lowered.output
    return _chosen(output, {k: k for k in range(len(result_types(program)))}) or program.lowered.restore


def gradient_of(program: Program, start: int = 0) -> Callable[[Sequence[Any]], Any]:
    """The function that assembles cotangents into the gradient, in the structure of `wrt`; they begin at `start`."""
    templates = program.gradient_templates
    whole: Any = templates[0] if isinstance(program.options.wrt, int | str) else tuple_of(templates)
    chosen = _chosen(whole, {k: start + k for k in range(len(program.wrt_vars()))})
    return chosen or (lambda values: map_leaves(whole, lambda slot: values[start + slot.index]))


def _tangent_of(template: Any, places: dict[int, int]) -> Callable[[Sequence[Any]], Any]:
    """The function that assembles tangents in the structure of the value; `places` maps results to their tangents."""
    found = _chosen(template, places)
    return found or (lambda values: result_tangent(template, {k: values[place] for k, place in places.items()}))


def _chosen(template: Any, places: dict[int, int]) -> Callable[[Sequence[Any]], Any] | None:
    """The function that returns the value, or the tuple of values, of a structure; None for other structures."""
    if isinstance(template, Slot):
        return itemgetter(places[template.index]) if template.index in places else None
    if not isinstance(template, Struct) or template.kind != "tuple" or template.cls is not tuple:
        return None
    children = template.children
    if len(children) > 1 and all(isinstance(child, Slot) and child.index in places for child in children):
        return itemgetter(*(places[child.index] for child in children))
    parts = [part for child in children if (part := _chosen(child, places)) is not None]
    if len(parts) < len(children):
        return None
    if len(parts) == 2:  # a value and a tuple of gradients
        first, second = parts
        return lambda values: (first(values), second(values))
    return lambda values: tuple([part(values) for part in parts])


def conversion(type_: Type) -> tuple[type | None, Callable[[Any], Any]]:
    """The class of the values of a type in plain Python, and the conversion to it.

    Compiled code returns plain scalars.
    """
    if isinstance(type_, Scalar):
        kind = python_class(type_) if type_.python else _NUMPY_NUMBERS[type_.dtype]
        return kind, kind
    if isinstance(type_, Array):
        dtype = type_.dtype
        return np.ndarray, lambda value: value if isinstance(value, np.ndarray) else np.asarray(value, dtype)
    if isinstance(type_, ListOf):
        return None, lambda value: [as_type(item, type_.item) for item in value]
    return None, lambda value: value


def as_types(values: Sequence[Any], types: Sequence[Type]) -> list[Any]:
    """Scalars and arrays as plain Python would have them."""
    return [as_type(value, type_) for value, type_ in zip(values, types, strict=True)]


def as_type(value: Any, type_: Type) -> Any:
    """A scalar or array as plain Python would have it."""
    kind, convert = conversion(type_)
    return value if type(value) is kind else convert(value)
