"""Dispatch keys: a cheap summary of the types of the arguments of a call, and the arguments that a program reads.

Two calls with the same key have arguments of the same types, so the second one can use what the first one
found (`runtime.inline_cache`, `runtime.specialization`).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np

from tapegen.errors import BadArgument
from tapegen.frontend.lower import Lowered
from tapegen.frontend.values.assumptions import guards_hold
from tapegen.frontend.values.pytree import leaf_type, same_static

_SEEN_FLAGS = 0x1 | 0x2 | 0x100 | 0x400  # C-contiguous, Fortran-contiguous, aligned, writeable
_SEEN_KINDS = frozenset({float, complex, type(None), np.random.Generator})


def signature_key(args: Iterable[Any], *context: Any) -> tuple[Any, ...] | None:
    """The context, and the properties of arguments that determine their types; None if these do not suffice."""
    seen = list(context)
    for value in args:
        kind = type(value)
        if kind is np.ndarray:
            shape = value.shape
            unit = tuple([n == 1 for n in shape]) if 1 in shape else len(shape)
            seen += (value.dtype, unit, value.flags.num & _SEEN_FLAGS)
        elif kind in _SEEN_KINDS or (kind is int and -(2**63) <= value < 2**63):
            seen.append(kind)
        elif kind is bool or kind is str:  # known to the program
            seen += (kind, value)
        else:
            return None
    return tuple(seen)


class ArgumentBinder:
    """Binds the arguments of a call, given by position, to the parameters that a program reads.

    Parameters
    ----------
    lowered : Lowered
        The program.
    positions : mapping
        The position of an argument in a call, by its name and path.

    Raises
    ------
    KeyError
        If the program reads other parts of them.
    """

    __slots__ = ("_guards", "_hidden", "_not_negative", "_params", "_seen", "_statics", "_types", "count")

    def __init__(self, lowered: Lowered, positions: Mapping[tuple[str, tuple[Any, ...]], int]) -> None:
        self._guards = tuple(map(tuple, lowered.guards))  # which are unpacked sooner
        self._statics = [(positions[name, path], value) for name, path, value in lowered.statics]
        self._not_negative = [positions[where] for where in lowered.not_negative]
        self.count = len(positions)
        own = [param for param in lowered.params if param.getter is None]
        params = [positions[param.argument, param.path] for param in own]
        self._params = None if params == list(range(self.count)) else params  # None: all, in order
        self._hidden = [(param.getter, param.var.type) for param in lowered.params if param.getter is not None]
        self._seen: tuple[Any, ...] | None = None  # of captured values, after their types have been compared

    def values(self, given: tuple[Any, ...]) -> tuple[Any, ...] | None:
        """The values of the parameters; None where the program does not fit these arguments, or is outdated."""
        if not guards_hold(self._guards):
            return None
        for k, known in self._statics:
            found = given[k]
            if not same_static(found.shape if isinstance(found, np.ndarray) else found, known):
                return None
        for k in self._not_negative:
            if given[k] < 0:
                return None
        if self._params is not None:
            given = tuple([given[k] for k in self._params])
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
