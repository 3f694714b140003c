"""Diagnostics: why a gradient is None."""

from __future__ import annotations

import linecache
from collections.abc import Iterable
from dataclasses import dataclass, field

from tapegen.tape.tensors.tensor import Traced
from tapegen.tape.tensors.variable import Variable

_WAYS = {
    "stopped": "it is stopped by stop_gradient",
    "integers": "it goes through {what}, whose result is not floating",
    "constant": "it goes through {what}, which has no derivative by definition",
    "assigned": "it is assigned to the variable '{what}': the state of a variable has no history",
    "left": "it leaves through .numpy(), as an array that nobody records",
}


@dataclass(frozen=True)
class Cut:
    """The point where a tracked value was no longer tracked.

    Attributes
    ----------
    how, what : str
        How it happened, and through which function or variable.
    number : int
        The value.
    made : tuple of int
        The values computed from it, as far as they are known.
    place : tuple, optional
        The user's line.
    """

    how: str
    what: str
    number: int
    made: tuple[int, ...]
    place: tuple[str, int] | None

    def text(self) -> str:
        """The reason in words."""
        return _WAYS[self.how].format(what=self.what) + _line(self.place)


@dataclass
class Trail:
    """The recorded graph, by numbers of tensors only.

    Attributes
    ----------
    edges : list
        The arguments and the results of each call.
    cuts : list
        Points where tracked values were no longer tracked.
    tracked : set of int
        The tracked values.
    spans : list
        For each period of recording, the first and the last number that was assigned.
    pauses : list
        The same for the periods of `stop_recording`.
    is_released : bool
        Whether all of this has been released.
    """

    edges: list[tuple[tuple[int, ...], tuple[int, ...]]] = field(default_factory=list)
    cuts: list[Cut] = field(default_factory=list)
    tracked: set[int] = field(default_factory=set)
    spans: list[tuple[int, int]] = field(default_factory=list)
    pauses: list[tuple[int, int]] = field(default_factory=list)
    is_released: bool = False

    def after(self, number: int) -> set[int]:
        """Everything that was computed from a tensor, and the tensor itself."""
        found = {number}
        for arguments, results in self.edges:
            if not found.isdisjoint(arguments):
                found.update(results)
        return found

    def before(self, number: int) -> set[int]:
        """Everything that a tensor was computed from by recorded operations, and the tensor itself."""
        found = {number}
        for arguments, results in reversed(self.edges):
            if not found.isdisjoint(results):
                found.update(arguments)
        return found

    def between(self, source: int, target: int) -> list[Cut]:
        """The cuts on paths from a tensor to another.

        The results of unrecorded operations are not known.  So these are the cuts that certainly lead to the target;
        if there are none, those that are not known to lead elsewhere; and if there are none, all others.
        """
        reached, origins = self.after(source), self.before(target)
        cuts = [cut for cut in self.cuts if cut.number in reached and not any(made > target for made in cut.made)]
        used = {number for arguments, _ in self.edges for number in arguments}
        sure = [cut for cut in cuts if not origins.isdisjoint(cut.made)]
        return sure or [cut for cut in cuts if used.isdisjoint(cut.made)] or cuts


def explanation(trail: Trail, target: Traced, source: Traced, watches_variables: bool) -> str:
    """One paragraph: why the gradient of `target` with respect to `source` is what it is."""
    for role, item in (("source", source), ("target", target)):
        if item._value.dtype.kind not in "fc":
            return f"The {role} has the dtype {item.dtype.name}: only floating numbers have derivatives."
    if target._id == source._id:
        return "The target is the source: the gradient is 1."
    if source._id not in trail.tracked:
        return _not_watched(source, watches_variables)
    reached = trail.after(source._id)
    if target._id in reached:
        return "The target depends on the source by recorded operations: there is a gradient."
    ways = [cut.text() for cut in trail.between(source._id, target._id)]
    reasons = [f"What depends on the source ends here: {'; '.join(dict.fromkeys(ways))}."] if ways else []
    if target._id not in trail.tracked:
        reasons.append(_not_made(trail, target))
    elif not reasons:
        reasons.append("The target was recorded, but nothing that it was made from depends on the source.")
    return " ".join(reasons)


def _line(place: tuple[str, int] | None) -> str:
    return "" if place is None else f" ({place[0]}:{place[1]}: {linecache.getline(*place).strip()})"


def _not_watched(source: Traced, watches_variables: bool) -> str:
    if isinstance(source, Variable):
        name = f"The variable '{source.name}'"
        if not source.trainable:
            return f"{name} is not trainable, so it is not watched by itself: call tape.watch on it."
        if not watches_variables:
            return f"{name} was not watched: the tape has watch_accessed_variables=False, so call tape.watch on it."
        return f"{name} was not read while the tape recorded in this thread (a new tensor may have taken its name)."
    return (
        "The source is a tensor that was not watched, and was not made from one that is: call tape.watch on it before "
        "it is used."
    )


def _not_made(trail: Trail, target: Traced) -> str:
    if _within(target._id, trail.pauses):
        return "The target was made while recording was stopped."
    if not _within(target._id, trail.spans):
        return "The target was made outside the `with` block of the tape."
    return (
        "The target was made in the block of the tape, but not from what the tape watches (from constants, from values "
        "that left it, or in another thread)."
    )


def _within(number: int, spans: Iterable[tuple[int, int]]) -> bool:
    return any(first < number < last for first, last in spans)
