"""Liveness analysis: the variables whose values may still be read, at each point of a program.

The backward dataflow analysis of compilers, on structured control flow.  Clients choose what counts as a read.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field

from tapegen.ir import traversal
from tapegen.ir.nodes import Block, Break, Continue, For, If, Raise, Return, Stmt, Var, While

Live = frozenset[Var]

_NONE = Live()


def variables_read(stmt: Stmt) -> Live:
    """The variables in the expressions of a statement itself."""
    return _NONE.union(*map(traversal.free_vars, stmt.headers))


@dataclass(slots=True)
class Liveness:
    """Live variables before blocks, and after each of their statements.

    Attributes
    ----------
    read : callable
        The variables that a statement itself reads (of a compound statement: its header).
    at_return : frozenset of Var
        The variables whose values the caller of the program reads.
    after : dict
        The live variables after each statement.
    exits : list of pair of frozenset of Var
        For each enclosing loop, the live variables after it and at the start of an iteration.
    """

    read: Callable[[Stmt], Iterable[Var]] = variables_read
    at_return: Live = _NONE
    after: dict[Stmt, Live] = field(default_factory=dict)
    exits: list[tuple[Live, Live]] = field(default_factory=lambda: [(_NONE, _NONE)])

    def before(self, block: Block, live: Live = _NONE) -> Live:
        """The variables live before a block, from those live after it."""
        for stmt in reversed(block):
            self.after[stmt] = live
            match stmt:
                case If(_, body, orelse):
                    live = self.before(body, live) | self.before(orelse, live)
                case For() | While():
                    live = self._before_loop(stmt, live)
                case Break():
                    live = self.exits[-1][0]
                case Continue():
                    live = self.exits[-1][1]
                case Raise():
                    live = _NONE
                case Return():
                    live = self.at_return
                case _:
                    live = live.difference(stmt.targets)
            live = live.union(self.read(stmt))
        return live

    def _before_loop(self, loop: For | While, live: Live) -> Live:
        start = live.union(self.read(loop)) if isinstance(loop, While) else live
        while True:
            self.exits.append((live, start))
            joined = start | self.before(loop.body, start).difference(loop.targets)
            self.exits.pop()
            if joined == start:
                return start
            start = joined
