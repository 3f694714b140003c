"""Why a call needs a program of its own beside the earlier ones of its function, for the logger `tapegen`."""

from __future__ import annotations

import reprlib
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import fields
from typing import Any, NamedTuple

from tapegen.frontend.values.assumptions import changed_guard
from tapegen.frontend.values.pytree import Abstract, Leaf, StaticValue, Struct, same_static
from tapegen.ir.types import Array, Scalar
from tapegen.pipeline.artifacts.program import Program
from tapegen.pipeline.options import Options


def reason_for_program(
    earlier: Iterable[Program], abstracts: Mapping[str, Abstract], arguments: Mapping[str, Any], options: Options
) -> str:
    """What differs from the most similar earlier program.

    Parameters
    ----------
    earlier : iterable of Program
        The programs of the function.
    abstracts, arguments : mapping
        The arguments of the call, by parameter.
    options : Options
        The options of the call.
    """
    differences = [
        (list(_differences(program, abstracts, arguments, options)), program.last_used) for program in earlier
    ]
    if not differences:
        return "first call"
    closest, _ = min(differences, key=lambda found: (sum(each.weight for each in found[0]), -found[1]))
    return ", ".join(each.text for each in closest) or "a rule or a function that it calls has changed"


class _Difference(NamedTuple):
    text: str
    weight: int = 1  # how far apart it makes two calls


def _differences(
    program: Program, abstracts: Mapping[str, Abstract], arguments: Mapping[str, Any], options: Options
) -> Iterator[_Difference]:
    for item in fields(options):
        now, before = getattr(options, item.name), getattr(program.options, item.name)
        if now != before:
            yield _Difference(f"{item.name}={now!r}, not {before!r}")
    types = [change for name, now in abstracts.items() for change in _changes(name, now, program.abstracts.get(name))]
    yield from types
    if not types:
        for name, path, value, found in program.lowered.changed_statics(arguments):
            yield _Difference(f"{_part(name, path)} is {_short(found)}, not {_short(value)}")
    for name in program.lowered.changed_captures():
        yield _Difference(f"the type of the captured {name} has changed")
    guard = changed_guard(program.lowered.guards)
    if guard is not None:
        what = f"the captured value {guard.name}" if guard.name else "something that it reads"
        yield _Difference(f"{what} has changed")


def _changes(name: str, now: Abstract, before: Abstract | None) -> Iterator[_Difference]:
    match now, before:
        case Leaf(), Leaf():
            if now.type != before.type:
                yield _type_change(name, now.type, before.type)
        case Struct(), Struct() if (now.kind, now.keys, now.cls) == (before.kind, before.keys, before.cls):
            for key, child, other in zip(now.keys, now.children, before.children, strict=True):
                yield from _changes(_part(name, (key,)), child, other)
        case Struct(), Struct() if now.cls is before.cls:
            yield _Difference(f"{name} has {_items(now)}, not {_items(before)}")
        case StaticValue(), StaticValue():
            if not same_static(now.value, before.value):
                yield _Difference(f"{name} is {_short(now.value)}, not {_short(before.value)}")
        case _ if before is not None:
            yield _Difference(f"{name} is {_kind(now)}, not {_kind(before)}", 4)


def _type_change(name: str, now: Any, before: Any) -> _Difference:
    if isinstance(now, Array) and isinstance(before, Array):
        if now.rank != before.rank:
            return _Difference(f"{name} has {now.rank} {'axis' if now.rank == 1 else 'axes'}, not {before.rank}", 3)
        if now.dtype != before.dtype:
            return _Difference(f"{name} is an array of {now.dtype}, not of {before.dtype}", 2)
        axes = [k for k in range(now.rank) if now.is_unit(k) != before.is_unit(k)]
        if axes:
            sizes = ["has size 1" if now.is_unit(k) else "is longer than 1" for k in axes]
            return _Difference(", ".join(f"axis {k} of {name} {size}" for k, size in zip(axes, sizes, strict=True)))
        return _Difference(f"the memory layout of {name} is {now.layout}, not {before.layout}")
    return _Difference(f"{name} is {_kind(now)}, not {_kind(before)}", 4)


def _kind(found: Any) -> str:
    """A kind of value, as a user calls it: `an array of float64`, `of class list`, `None`."""
    match found:
        case Leaf():
            return _kind(found.type)
        case Array():
            return f"an array of {found.dtype}"
        case Scalar():
            return f"a {'Python' if found.python else 'NumPy'} {found.dtype}"
        case Struct():
            return f"of class {found.cls.__name__}"
        case StaticValue(value):
            return _short(value)
    return "of another kind"


def _items(struct: Struct) -> str:
    if struct.kind in ("tuple", "list"):
        return f"{len(struct.keys)} items"
    return f"the {'keys' if struct.kind == 'dict' else 'attributes'} {', '.join(map(str, struct.keys))}"


def _part(name: str, path: Iterable[Any]) -> str:
    return name + "".join(f".{key}" if isinstance(key, str) else f"[{key!r}]" for key in path)


def _short(value: object) -> str:
    return reprlib.repr(value)


__all__ = ["reason_for_program"]
