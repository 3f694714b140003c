"""Sizes of axes as text: `100` for every axis, `x=4000,3` for those of one argument."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, field

from tapegen.errors import BadArgument, printable

_ADVICE = "Write --size 100 for every axis, --size x=4000,3 for those of one argument, params.w=3 for a part of it."


@dataclass(frozen=True)
class Sizes:
    """Sizes of axes.

    Attributes
    ----------
    every : int
        The size of an axis of an argument that has none of its own.
    given : dict
        Sizes by path: a position or a name of an argument, then keys of a part of it.
    """

    every: int
    given: dict[tuple[int | str, ...], tuple[int, ...]] = field(default_factory=dict)

    def of(self, path: tuple[int | str, ...], axes: Sequence[str]) -> tuple[int, ...]:
        """The shape of the array at a path; `1` among its axes is the size of that one."""
        count = next((n for n in range(len(path), 0, -1) if path[:n] in self.given), 0)
        chosen = self.given[path[:count]] if count else (self.every,)
        if len(chosen) == 1:
            return tuple(1 if axis == "1" else chosen[0] for axis in axes)
        if len(chosen) != len(axes) or any(axis == "1" and n != 1 for axis, n in zip(axes, chosen)):
            raise BadArgument(
                f"--size gives {', '.join(map(str, chosen))} for an array [{', '.join(axes)}].",
                "Give one size for each axis, 1 where the type says 1.",
            )
        return chosen


def read_sizes(texts: Sequence[str], names: Sequence[str], every: int) -> Sizes:
    """The sizes that `--size` gives, each time one text.

    Parameters
    ----------
    texts : sequence of str
        What follows `--size`.
    names : sequence of str
        The arguments of the function in order.
    every : int
        The size of axes that no text names.

    Raises
    ------
    BadArgument
        For a text that is no size, or names no argument.
    """
    given: dict[tuple[int | str, ...], tuple[int, ...]] = {}
    for text in texts:
        match = re.fullmatch(r"(?:\s*([^=\s]+)\s*=)?\s*([0-9]{1,18}(?:\s*,\s*[0-9]{1,18})*)\s*", text)
        sizes = tuple(int(part) for part in match[2].split(",")) if match else ()
        if not match or 0 in sizes or (match[1] is None and len(sizes) > 1):
            raise BadArgument(f"--size {printable(text)} gives no sizes.", _ADVICE)
        if match[1] is None:
            every = sizes[0]
            continue
        name, *parts = match[1].split(".")
        if name not in names:
            raise BadArgument(
                f"--size names '{printable(name)}', which is no argument.", f"The arguments are {', '.join(names)}."
            )
        keys = [int(part) if part.isdigit() else part for part in parts]
        given[(names.index(name), *keys)] = given[(name, *keys)] = sizes
    return Sizes(every, given)
