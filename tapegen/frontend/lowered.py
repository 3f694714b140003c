"""A lowered function: the program, and how a call binds to it."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from types import FunctionType
from typing import Any

import numpy as np

import tapegen.rules  # noqa: F401  (registers them)
from tapegen.errors import BadArgument
from tapegen.frontend.expressions import comparisons, comprehensions, strings  # noqa: F401  (register what they lower)
from tapegen.frontend.library import (  # noqa: F401  (register what they lower)
    builtins,
    container_methods,
    index_grids,
    itertools,
    list_to_array,
    numpy_introspection,
    numpy_variants,
    random,
    sequences,
    sets,
    solver_callbacks,
    stdlib,
)
from tapegen.frontend.lowering import context_managers, exceptions, loops  # noqa: F401  (register what they lower)
from tapegen.frontend.mutation.commit import Mutation
from tapegen.frontend.values.assumptions import ContainerRead, Guard, guards_hold
from tapegen.frontend.values.pytree import Leaf, children_of, leaf_type, same_static, unflatten
from tapegen.ir.nodes import Function, Var


@dataclass(frozen=True, slots=True)
class Param:
    """A parameter of the program, and how its value is found.

    Attributes
    ----------
    var : Var
        The parameter.
    argument : str
        The user's argument it belongs to; of a hidden parameter, the name of the global or closure variable.
    path : tuple
        Keys and attribute names from the argument to the leaf.
    getter : callable or None
        Of a hidden parameter: reads its value at this moment.
    """

    var: Var
    argument: str
    path: tuple[Any, ...] = ()
    getter: Callable[[], Any] | None = None


Static = tuple[str, tuple[Any, ...], Any]


@dataclass(frozen=True, slots=True)
class Lowered:
    """A function lowered for one set of argument types.

    Attributes
    ----------
    function : Function
        The program.
    output : Abstract
        The structure of the result; its leaves are Slots (positions in `Return.values`) or static.
    params : tuple of Param
        The parameters, in order.
    guards : tuple of Guard
        Captured values that were assumed constant.
    statics : tuple of (str, tuple, int or tuple)
        Integer arguments that had to be known at compile time, and array arguments whose shape had to be: argument,
        path and value or shape.
    not_negative : tuple of (str, tuple)
        Integer arguments that must not be negative.
    sources : tuple of function
        Python functions whose text is part of the program.
    user_names : frozenset of str
        Names in the user's text.
    modules : dict
        The user's names for modules (`{"numpy": "np"}`).
    digest : str
        A short hash of the text of the function.
    floats : dict
        Captured floats that were assumed constant, by variable.
    mutations : tuple of Mutation
        Stores of a call into objects of the caller, whose values are results of the program outside of `output`.
    reads : tuple of ContainerRead
        Reads of captured containers.
    places : dict
        Where the parameters are read, in the notation of `Mutation.place`.
    """

    function: Function
    output: Any
    params: tuple[Param, ...]
    guards: tuple[Guard, ...]
    statics: tuple[Static, ...]
    not_negative: tuple[tuple[str, tuple[Any, ...]], ...]
    sources: tuple[FunctionType, ...]
    user_names: frozenset[str]
    modules: dict[str, str]
    digest: str
    floats: dict[Any, Any]
    mutations: tuple[Mutation, ...] = ()
    reads: tuple[ContainerRead, ...] = ()
    places: dict[Var, tuple[Any, ...]] = field(default_factory=dict)
    _by_leaf: dict[Var, Var] = field(default_factory=dict)

    def param_of(self, leaf: Leaf) -> Var | None:
        """The parameter for a leaf of an abstract argument; None when the argument was assumed constant."""
        return self._by_leaf.get(leaf.expr) if isinstance(leaf.expr, Var) else None

    def holds(self, arguments: Mapping[str, Any]) -> bool:
        """Whether the program is valid for these arguments (of the right types) and the current captured values."""
        if not guards_hold(self.guards):
            return False
        if any(self.changed_statics(arguments)):
            return False
        if self.not_negative and any(_follow(arguments[name], path) < 0 for name, path in self.not_negative):
            return False
        return not any(self.changed_captures())

    def changed_statics(self, arguments: Mapping[str, Any]) -> Iterator[tuple[str, tuple[Any, ...], Any, Any]]:
        """The entries of `statics` that these arguments differ from, each with the value or shape that they have."""
        for name, path, value in self.statics:
            found = _follow(arguments[name], path)
            found = found.shape if isinstance(found, np.ndarray) else found
            if not same_static(found, value):
                yield name, path, value, found

    def changed_captures(self) -> Iterator[str]:
        """The captured variables that now have another type than the program reads."""
        for param in self.params:
            if param.getter is not None:
                try:
                    if leaf_type(param.getter()) != param.var.type:
                        yield param.argument
                except (NameError, AttributeError, LookupError, BadArgument):
                    yield param.argument

    def leaves(self, arguments: Mapping[str, Any]) -> list[Any]:
        """The values of the parameters, in order."""
        found: list[Any] = []
        for param in self.params:
            value = arguments[param.argument] if param.getter is None else param.getter()
            found.append(_follow(value, param.path) if param.path else value)
        return found

    def restore(self, values: Sequence[Any]) -> Any:
        """The result in the structure that the user's function returns."""
        return unflatten(self.output, values)


def _follow(value: Any, path: tuple[Any, ...]) -> Any:
    for key in path:
        struct = children_of(value)
        assert struct is not None
        value = struct.get(key)
    return value
