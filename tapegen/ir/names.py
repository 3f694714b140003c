"""Fresh names, and how cotangents, tangents, tapes and the headers of sweeps are spelled.

Names are a pure function of the program: the first name asked for `x` is `x`, then `x_1`, `x_2`, ...
"""

from __future__ import annotations

import builtins
import keyword
from collections.abc import Iterable

LONGEST = 80
"""Longer identifiers are cut; generated text must stay readable, and numba fails on very long ones."""

_MODULES = ("np", "math", "operator", "njit", "numba", "prange", "scipy", "_")
RESERVED = frozenset({*dir(builtins), *keyword.kwlist, *_MODULES})
"""Reserved names of generated text."""

FORWARD = "---- forward sweep ---------------------------------------------------"
BACKWARD = "---- backward sweep --------------------------------------------------"
"""The comments above the two sweeps."""

TEMPORARY = "t'"
"""The base of the names of intermediate results, which `NameSupply` spells so that none equals a user's name."""


class NameSupply:
    """Names that differ from each other and from those in use.

    Parameters
    ----------
    used : iterable of str
        Names that must not be given out.
    user_names : iterable of str
        Names of the user.
    """

    __slots__ = ("_next", "_temporary", "_used", "_user_names")

    def __init__(self, used: Iterable[str] = (), user_names: Iterable[str] = ()) -> None:
        self._used = set(used)
        self._next: dict[str, int] = {}
        self._user_names = frozenset(user_names)
        self._temporary = next((stem for stem in ("t", "tmp", "aux") if stem not in self._user_names), "t")

    def copy(self) -> NameSupply:
        """A copy in the same state."""
        new = NameSupply(self._used, self._user_names)
        new._next = dict(self._next)
        return new

    def __contains__(self, name: str) -> bool:
        return name in self._used or name in RESERVED

    def reserve(self, names: Iterable[str]) -> None:
        """Mark names as used."""
        self._used.update(names)

    def fresh(self, base: str) -> str:
        """`base` itself if it is free, else the first free one of `base_1`, `base_2`, ..."""
        base = base.replace(TEMPORARY, self._temporary, 1)[:LONGEST]
        name = base
        number = self._next.get(base, 0)
        while name in self._used or name in RESERVED:
            number += 1
            name = f"{base}_{number}"
        self._next[base] = number
        self._used.add(name)
        return name

    def fresh_temporary(self, base: str) -> str:
        """A name of an intermediate result: no variable of the user gets another one because of it."""
        return self.fresh(f"{base}_value" if base in self._user_names or base in RESERVED else base)


def identifier(text: object) -> str:
    """A valid identifier for any label of a program: keys of dicts, `<lambda>`."""
    name = "".join(ch if ch.isalnum() or ch == "_" else "_" for ch in str(text)) or "_"
    return name if name.isidentifier() else f"_{name}" if f"_{name}".isidentifier() else "_"


def bar_name(name: str) -> str:
    """Name of the cotangent."""
    return f"{name}_bar"


def dot_name(name: str) -> str:
    """Name of the tangent."""
    return f"{name}_dot"


def tape_name(name: str) -> str:
    """Name of the recorded values."""
    return f"{name}_tape"
