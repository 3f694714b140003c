"""Recording decisions: for each value that the backward sweep reads, how it becomes available there, and tapes."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Literal

from tapegen.analysis.scopes import Scope
from tapegen.ir.nodes import Block, Expr, For, Var, While

Way = Literal["live", "induction", "recompute", "record"]
Key = tuple[Var, Scope]
"""A Var and the scope whose value is meant."""


@dataclass(slots=True)
class Decision:
    """How one value becomes available to the backward sweep, and why."""

    var: Var
    scope: Scope
    way: Way
    why: str
    tape: str = ""  # of a recorded value: the key of its tape (a variable may be recorded in two scopes)


@dataclass(slots=True)
class Recorded:
    """What `plan` returns: both sweeps with Push and Pop in place, and the decisions."""

    forward: Block
    backward: Block
    decisions: list[Decision]


@dataclass(eq=False, slots=True)
class Cut:
    """A loop that is checkpointed (`checkpoints`).

    Attributes
    ----------
    loop : For or While
        The loop of the primal.
    interval : Var
        The number of iterations of a segment, a parameter of the derivative.
    checkpoints : Var
        The most checkpoints that are held at a time, another one.
    first : Var
        The counter of the first iteration of a segment; the number of iterations before it where iterations are
        counted.
    create : tuple of Stmt
        The statements that create the tapes of a segment (set by `tape_layout`).
    state : tuple of Var
        The values of a checkpoint (set by `checkpoints`).
    """

    loop: For | While
    interval: Var
    checkpoints: Var
    first: Var
    create: Block = ()
    state: tuple[Var, ...] = ()


MANY = 200
"""Runs of a segment beyond which their exact number is of no interest."""


@dataclass(frozen=True, slots=True)
class Schedule:
    """The segments of a checkpointed loop.

    Attributes
    ----------
    interval : int
        The iterations of a segment.
    checkpoints : int
        The most checkpoints that are held at a time.
    """

    interval: int
    checkpoints: int

    def runs(self, count: int) -> int:
        """How many of its iterations run again (Griewank and Walther, revolve); what follows it counts as a segment.

        At least so many if a segment runs more than `MANY` times.
        """
        segments, times = -(-count // self.interval) + 1, 0
        while math.comb(self.checkpoints + times, times) < segments:
            times += 1
            if times > MANY:
                return self.interval * segments * times // 2
        return self.interval * (times * segments - math.comb(self.checkpoints + times, times - 1)) if times else 0


@dataclass(slots=True)
class Tape:
    """The storage of the values of one recorded Var.

    Attributes
    ----------
    var : Var
        The recorded value.
    store : Var
        The array (or, for arrays whose shape changes, the list) that holds its values.
    index : tuple of Expr or None
        Position of the current value; None for a list.
    shape : tuple of Expr
        Extents on creation.
    counter : Var or None
        The counter of a growing tape.
    exact : bool
        Whether the tape never grows.
    scope : Scope
        The scope whose value it holds.
    cut : Cut or None
        The checkpointed loop of whose segment it holds the values.
    """

    var: Var
    store: Var
    index: tuple[Expr, ...] | None
    shape: tuple[Expr, ...]
    counter: Var | None
    exact: bool
    scope: Scope
    cut: Cut | None = None
