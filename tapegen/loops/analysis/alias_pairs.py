"""May-alias pairs: which variables may share memory where an array is stored into.

Variables are related in pairs, statement by statement: a swap of two buffers permutes the pairs, so double buffering
needs no copies.  Different parameters are assumed not to overlap unless the program states it; the caller checks that.
"""

from __future__ import annotations

from tapegen.analysis.alias_conflicts import pairs_at
from tapegen.ir.nodes import Function, Stmt, Var


class Sharing:
    """Pairs of variables that may share memory, at each Store."""

    def __init__(self, function: Function) -> None:
        self._at = pairs_at(function)

    def may_share(self, stmt: Stmt | None, a: Var, b: Var) -> bool:
        """Whether two variables may denote overlapping memory when a statement runs."""
        return a == b or stmt not in self._at or frozenset((a, b)) in self._at[stmt]
