"""Code sharing: closures that each call of an outer function creates share derived and compiled code.

So do functions that a loop makes, methods of many objects, and one function that is made differentiable twice.  Each is
lowered, since its values may differ.  If the resulting program equals that of an earlier function of the same code,
they share the derivatives.

A captured float is a constant of the program, until it is found to have changed, in the same function or from one
closure to the next: then it becomes an argument, so that a schedule or a loop over settings compiles twice, not each
time.
"""

from __future__ import annotations

import weakref
from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass
from types import CodeType, FunctionType
from typing import Any

from tapegen.errors import InternalError, TapegenError
from tapegen.frontend.lowered import Lowered
from tapegen.frontend.values.pytree import same_static
from tapegen.ir.fingerprint import Places, canonical_text
from tapegen.ir.nodes import Function
from tapegen.pipeline.artifacts.program import Parts, Program
from tapegen.rules.registry import rule_of

_MOST = 64


@dataclass(frozen=True, slots=True, eq=False)
class _Text:
    """Represents all functions of one code: whatever they read has a guard of its own."""

    code: weakref.ref[CodeType]


@dataclass(frozen=True, slots=True, eq=False)
class _Known:
    """An earlier program, without the closures that it was lowered for.

    Attributes
    ----------
    codes : tuple of weakref to code
        The functions that are inlined in the program; with the code of the outermost one the program goes.
    constants : tuple
        Values that were assumed constant, in the order in which they were read.
    function : Function
        The program; it keeps the objects alive that the key distinguishes by identity.
    parts : Parts
        Its artifacts.
    """

    codes: tuple[weakref.ref[CodeType], ...]
    constants: tuple[Any, ...]
    function: Function
    parts: Parts


_KNOWN: OrderedDict[Any, _Known] = OrderedDict()


def share_compiled_code(program: Program, key: Any) -> None:
    """Give a new program the artifacts of the last equal one; the caller holds `building`.

    Parameters
    ----------
    program : Program
        As it was lowered.
    key : hashable
        The types of its arguments, the options and the registered rules.
    """
    lowered, owner = program.lowered, program.owner
    text = canonical_text(lowered.function, Places(lowered.function.origin), within_process=True)
    names = (owner.function.__qualname__, *owner.free_names(), lowered.user_names, *sorted(lowered.modules.items()))
    codes = tuple(weakref.ref(function.__code__) for function in lowered.sources)
    constants = tuple(_constant(guard.value) for guard in lowered.guards)
    place = (text, key, names)
    known = _KNOWN.pop(place, None)
    if known is None:
        weakref.finalize(owner.function.__code__, _KNOWN.pop, place, None)
    if known is not None and _all(_same_code, codes, known.codes) and _all(_same, constants, known.constants):
        program.parts = known.parts
    _KNOWN[place] = _Known(codes, constants, lowered.function, program.parts)
    while len(_KNOWN) > _MOST:
        _KNOWN.popitem(last=False)


_CHANGED = object()
_FLOATS: OrderedDict[Any, dict[Any, Any]] = OrderedDict()
"""Captured floats by the code and the types that they were read for: the last value, or that there are several."""


def despecialize_changed_floats(code: CodeType, key: Any, lower: Callable[[frozenset[Any]], Lowered]) -> Lowered:
    """Lower a function; captured floats that have changed since the last lowering become arguments of the program.

    Parameters
    ----------
    code : code
        Of the function.
    key : hashable
        The types of its arguments, the options and the registered rules.
    lower : callable
        Lowers it with the given floats as arguments.
    """
    place = (weakref.ref(code), key)
    known = _FLOATS.pop(place, {})
    while len(_FLOATS) >= _MOST:
        _FLOATS.popitem(last=False)
    _FLOATS[place] = known
    changing = frozenset(variable for variable, value in known.items() if value is _CHANGED)
    lowered = _lowered_if_possible(lower, changing)
    if lowered is None:
        lowered = lower(frozenset())
        found = frozenset[Any]()
    else:
        read = lowered.floats.items()
        found = frozenset(var for var, now in read if var in known and not same_static(known[var], now))
    known.update(lowered.floats)
    if not found:
        return lowered
    again = _lowered_if_possible(lower, changing | found)
    known.update(dict.fromkeys(found, _CHANGED) if again is not None else {})
    return lowered if again is None else again


def _lowered_if_possible(lower: Callable[[frozenset[Any]], Lowered], changing: frozenset[Any]) -> Lowered | None:
    """None where one of the floats must be known at compile time."""
    try:
        return lower(changing)
    except InternalError:
        raise
    except TapegenError:
        return None


def _constant(value: Any) -> Any:
    """A value to compare later, without the code that the program belongs to."""
    if isinstance(value, CodeType):
        return _Text(weakref.ref(value))
    return _Text(weakref.ref(value.__code__)) if isinstance(value, FunctionType) and rule_of(value) is None else value


def _same(a: Any, b: Any) -> bool:
    return a.code is b.code if isinstance(a, _Text) and isinstance(b, _Text) else same_static(a, b)


def _same_code(a: weakref.ref[CodeType], b: weakref.ref[CodeType]) -> bool:
    return a is b  # there is one reference to one object


def _all(same: Callable[[Any, Any], bool], first: tuple[Any, ...], second: tuple[Any, ...]) -> bool:
    return len(first) == len(second) and all(map(same, first, second))


__all__ = ["despecialize_changed_floats", "share_compiled_code"]
