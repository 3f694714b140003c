"""Dispatch keys: a cheap summary of the types of the arguments of a call, and the arguments that a program reads.

Two calls with the same key have arguments of the same types, so the second one can use what the first one
found (`runtime.inline_cache`, `runtime.specialization`).
"""

from __future__ import annotations

import functools
import operator
from collections.abc import Callable, Iterable, Iterator, Mapping
from itertools import groupby
from types import BuiltinFunctionType, FunctionType, ModuleType
from typing import Any

import numpy as np

from tapegen.errors import BadArgument
from tapegen.frontend.lowered import Lowered
from tapegen.frontend.values.assumptions import guards_hold
from tapegen.frontend.values.pytree import DTYPES, Abstract, Leaf, StaticValue, Struct, leaf_type, same_static

_SEEN_FLAGS = 0x1 | 0x2 | 0x100 | 0x400  # C-contiguous, Fortran-contiguous, aligned, writeable
_NUMPY_NUMBERS = frozenset({np.dtype(name).type for name in DTYPES}) - {np.bool_}
_SEEN_KINDS = frozenset({float, complex, type(None), np.random.Generator}) | _NUMPY_NUMBERS
_BY_VALUE = frozenset({bool, str, np.bool_, np.ufunc, FunctionType, BuiltinFunctionType})  # known to the program
_DEEPEST = 8
_LARGEST = 4096  # entries of a key, after which structures are too large: parts may occur again and again


def signature_key(args: Iterable[Any], *context: Any) -> tuple[Any, ...] | None:
    """The context, and the properties of arguments that determine their types; None if these do not suffice."""
    seen = list(context)
    return tuple(seen) if _note(seen, args, 0) else None


def _note(seen: list[Any], values: Iterable[Any], depth: int) -> bool:
    """Append the properties of values; False where they do not suffice."""
    for value in values:
        kind = type(value)
        if kind is np.ndarray:
            shape = value.shape
            unit = tuple([n == 1 for n in shape]) if 1 in shape else len(shape)
            seen += (value.dtype, unit, value.flags.num & _SEEN_FLAGS)
        elif kind in _SEEN_KINDS or (kind is int and -(2**63) <= value < 2**63):
            seen.append(kind)
        elif kind in _BY_VALUE:
            seen += (kind, value)
        else:
            content = _content(value, kind)
            if content is None or depth == _DEEPEST or len(seen) > _LARGEST:
                return False
            layout, parts = content
            seen += (kind, layout)
            if not _note(seen, parts, depth + 1):
                return False
    return True


def _content(value: Any, kind: type) -> tuple[Any, Iterable[Any]] | None:
    """The keys of a structure, or how many items it has, and its parts; None for anything else."""
    if kind is list or kind is tuple or _is_named_tuple(kind):
        return len(value), value
    if kind is dict:
        return (tuple(value), value.values()) if all(type(key) is str for key in value) else None
    if _has_attributes(kind):
        attributes = value.__dict__
        return tuple(attributes), attributes.values()
    return None


@functools.cache
def _is_named_tuple(kind: type) -> bool:
    return issubclass(kind, tuple) and hasattr(kind, "_fields")


@functools.cache
def _has_attributes(kind: type) -> bool:
    """Whether all attributes of an object are in its `__dict__`, as far as its class tells."""
    if issubclass(kind, (list, tuple, dict, np.ndarray, type, ModuleType)):
        return False
    return kind.__dictoffset__ != 0 and not any(vars(base).get("__slots__") for base in kind.__mro__)


def describes(value: Any, abstract: Abstract) -> bool:
    """Whether the properties in a dispatch key determine the abstract value of an argument."""
    kind = type(value)
    content = None if kind in _BY_VALUE else _content(value, kind)
    if content is None:
        return isinstance(abstract, Leaf | StaticValue)
    if not isinstance(abstract, Struct) or abstract.cls is not kind:
        return False
    parts = dict(zip(abstract.keys, abstract.children, strict=True))
    if abstract.kind == "object" or kind is dict:
        held = value if kind is dict else value.__dict__
        return held.keys() == parts.keys() and all(describes(held[key], part) for key, part in parts.items())
    return len(value) == len(parts) and all(map(describes, value, abstract.children))


def _steps(position: int, path: tuple[Any, ...], abstract: Abstract) -> Iterator[Any]:
    """The keys from the arguments of a call to a part of one; None stands for the attributes of an object."""
    yield position
    for key in path:
        if not isinstance(abstract, Struct):
            raise KeyError(key)
        if abstract.kind == "object":
            yield None
        yield key if abstract.kind in ("object", "dict") else abstract.keys.index(key)
        abstract = abstract.get(key)


def _followed(given: Any, steps: Iterable[Any]) -> Any:
    for key in steps:
        given = given.__dict__ if key is None else given[key]
    return given


class ArgumentBinder:
    """Binds the arguments of a call, given by position, to the parameters that a program reads.

    Parameters
    ----------
    lowered : Lowered
        The program.
    abstracts : mapping
        The arguments that it was lowered for, by name.
    positions : mapping
        The position of an argument in a call, by its name; for each item of `*args`, by name and position.
    count : int
        The number of arguments of the call.

    Raises
    ------
    KeyError
        If the program reads other parts of them.
    """

    __slots__ = ("_groups", "_guards", "_hidden", "_not_negative", "_seen", "_statics", "count")

    def __init__(
        self,
        lowered: Lowered,
        abstracts: Mapping[str, Abstract],
        positions: Mapping[Any, int],
        count: int,
    ) -> None:
        def steps(name: str, path: tuple[Any, ...]) -> tuple[Any, ...]:
            abstract = abstracts[name]
            if name in positions:
                return tuple(_steps(positions[name], path, abstract))
            assert isinstance(abstract, Struct)
            return tuple(_steps(positions[name, path[0]], path[1:], abstract.get(path[0])))

        self._guards = tuple([(guard.getter, guard.value) for guard in lowered.guards])
        self._statics = [(steps(name, path), value) for name, path, value in lowered.statics]
        self._not_negative = [steps(*where) for where in lowered.not_negative]
        self.count = count
        params = [steps(param.argument, param.path) for param in lowered.params if param.getter is None]
        self._groups: list[tuple[tuple[Any, ...], Callable[[Any], Any], bool]] | None = None  # None: all, in order
        if params != [(k,) for k in range(count)]:
            self._groups = []
            for around, parts in groupby(params, lambda part: part[:-1]):
                keys = [part[-1] for part in parts]
                self._groups.append((around, operator.itemgetter(*keys), len(keys) == 1))
        self._hidden = [(param.getter, param.var.type) for param in lowered.params if param.getter is not None]
        self._seen: tuple[Any, ...] | None = None  # of captured values, after their types have been compared

    def values(self, given: tuple[Any, ...]) -> tuple[Any, ...] | None:
        """The values of the parameters; None where the program does not fit these arguments, or is outdated."""
        if not guards_hold(self._guards):
            return None
        for steps, known in self._statics:
            found = _followed(given, steps)
            if not same_static(found.shape if isinstance(found, np.ndarray) else found, known):
                return None
        for steps in self._not_negative:
            if _followed(given, steps) < 0:
                return None
        if self._groups is not None:
            taken: list[Any] = []
            for around, get, is_single in self._groups:
                found = get(_followed(given, around) if around else given)
                if is_single:
                    taken.append(found)
                else:
                    taken += found
            given = tuple(taken)
        if self._hidden:
            try:
                captured = [getter() for getter, _ in self._hidden]
                seen = signature_key(captured)
                if seen is None or seen != self._seen:
                    for value, (_, type_) in zip(captured, self._hidden, strict=True):
                        if leaf_type(value) != type_:
                            return None
                    self._seen = seen
            except (NameError, AttributeError, LookupError, BadArgument):
                return None
            given = (*given, *captured)
        return given
