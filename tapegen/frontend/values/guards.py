"""Guards: values that a program assumed constant, and the check that they still hold."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

from tapegen.frontend.values.pytree import same_static


class Guard(NamedTuple):
    """A value that was assumed constant: the program is valid as long as `getter()` returns it."""

    getter: Callable[[], Any]
    value: Any


def guards_hold(guards: tuple[tuple[Callable[[], Any], Any], ...]) -> bool:
    """Whether all guarded values are unchanged."""
    try:
        for getter, value in guards:
            found = getter()
            if found is not value and not same_static(found, value):
                return False
    except (NameError, AttributeError, LookupError, TypeError):
        return False
    return True
