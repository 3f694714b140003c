"""Consistency of stores into objects of the caller: aliases among them, and derivatives that outlive a call."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from typing import Any

from tapegen.analysis.activity import activity_of
from tapegen.errors import AliasError, BadArgument, NotDifferentiable
from tapegen.frontend.mutation.commit import Mutation
from tapegen.frontend.values.assumptions import WHOLE, ContainerRead
from tapegen.frontend.values.pytree import children_of
from tapegen.ir.nodes import Expr, Return, Var
from tapegen.ir.types import is_floating
from tapegen.pipeline.artifacts.program import Form, Program

Place = tuple[Any, ...]


def check(program: Program, form: Form, arguments: Callable[[], Mapping[str, Any]]) -> None:
    """Refuse a call that has two names for a written object, or whose derivative would outlive the call."""
    if program.lowered.mutations:
        _check_aliases(program, arguments())
    if form != "primal" and (program.lowered.mutations or program.owner.carries):
        _check_carried(program)


def _check_aliases(program: Program, arguments: Mapping[str, Any]) -> None:
    """Refuse a call where an object is written as an argument and read under another name."""
    found: Counter[int] | None = None
    for mutation in program.lowered.mutations:
        if mutation.set_variable is not None:
            continue
        found = found or Counter(map(id, _containers(tuple(arguments.values()), set())))
        owner, is_argument = mutation.find(arguments), mutation.place[0] == "argument"
        if found[id(owner)] > is_argument:
            raise AliasError(
                f"'{mutation.names[0]}' is written, and the object that it belongs to has another name among the "
                "arguments.",
                "Pass it once, or pass a copy.",
                mutation.span,
            )
        name = next((read.name for read in program.lowered.reads if _meets(mutation, owner, read)), None)
        if is_argument and name is not None:
            raise AliasError(
                f"'{mutation.names[0]}' is written, and the object that it belongs to is also read as '{name}'.",
                "Use one name for it, or pass a copy.",
                mutation.span,
            )


def _meets(mutation: Mutation, owner: Any, read: ContainerRead) -> bool:
    """Whether stores into a container of the arguments change what is read from a captured one."""
    if read.getter() is not owner:
        return False
    if mutation.kind not in ("object", "dict") or read.key is WHOLE:
        return True  # the items of a list have two indices each, and removal moves them
    return read.key in mutation.removed or any(read.key == key for key, _ in mutation.items)


def _containers(value: Any, around: set[int]) -> Iterator[Any]:
    """The mutable containers in an argument; one that occurs several times is listed several times."""
    try:
        struct = None if isinstance(value, (int, float, str)) else children_of(value)
    except BadArgument:  # a list that is only appended to may contain anything
        struct = None
    if struct is None:
        return
    if struct.kind != "tuple":
        yield value
        if id(value) in around:
            return
        around.add(id(value))
    for child in struct.children:
        yield from _containers(child, around)


def _check_carried(program: Program) -> None:
    """Refuse a result that depends on a scalar with a derivative which an earlier call has stored."""
    carries = program.owner.carries
    carries.update(stored_actively(program))
    if not carries:
        return
    active = program.selection.active_results(scalar=False)
    results = [value for value, is_active in zip(_results(program), active, strict=True) if is_active]
    wrt = program.wrt_vars()
    for var, place in program.lowered.places.items():
        if var in wrt:  # the derivative is with respect to the value on entry
            continue
        name = next((name for carried, name in carries.items() if place[: len(carried)] == carried), None)
        if name is None or not is_floating(var.type):
            continue
        varied = activity_of(program.lowered.function, [var], ()).varied
        if any(value in varied for value in results):
            raise NotDifferentiable(
                f"the result depends on '{name}', into which a call of the function stores a number with a derivative; "
                "between two calls that derivative is lost.",
                f"Pass {name} as an argument and return its new value.",
                program.lowered.function.origin,
            )


def stored_actively(program: Program) -> dict[Place, str]:
    """The locations into which the program stores values that carry a derivative, in the user's spelling."""
    if "carried" not in program.parts.built:
        program.parts.built["carried"] = _stored_actively(program)
    found: dict[Place, str] = program.parts.built["carried"]
    return found


def _results(program: Program) -> tuple[Expr, ...]:
    last = program.lowered.function.body[-1]
    assert isinstance(last, Return)
    return last.values


def _stored_actively(program: Program) -> dict[Place, str]:
    results = _results(program)
    varied = activity_of(program.lowered.function, program.wrt_vars(), ()).varied
    found: dict[Place, str] = {}
    for mutation in program.lowered.mutations:
        names = dict(zip((key for key, _ in mutation.items), mutation.names, strict=False))
        for key, slot in mutation.slots():
            value = results[slot]
            if is_floating(value.type) and isinstance(value, Var) and value in varied:
                is_part = mutation.kind in ("object", "dict", "items")
                found[(*mutation.place, key) if is_part else mutation.place] = names[key]
    return found


__all__ = ["check", "stored_actively"]
