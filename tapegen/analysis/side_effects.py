"""Side-effect (mod/ref) analysis: memory that a program writes, and variables that may alias.

Arrays and run-time lists are memory locations.  A *root* (allocation site) stands for all locations of one parameter
or one allocating statement; it is named after the parameter or the assigned variable (`u`, and `u'1`, `u'2` for
further allocations that are assigned to the same phi).  Every array variable denotes a location, or part of one, of
some of its `roots`; views share the roots of their base, phis have those of all their sources.  Parameters are assumed
not to overlap: the calling layer checks that.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cached_property

from tapegen.analysis.alias_conflicts import Conflict, conflicts_of
from tapegen.analysis.memory_access import Move, is_place, is_place_type, list_stores, moves, on_places, written
from tapegen.ir.nodes import Assign, Function, Stmt, Var
from tapegen.ir.types import ListOf

__all__ = ["Conflict", "Effects", "effects_of"]


@dataclass(frozen=True)
class Effects:
    """Facts of `effects_of`.

    Attributes
    ----------
    by_name : mapping
        Name of each array or list Var to the names of the roots it may denote.
    allocations : mapping
        Root name to the Assign that allocates it; parameters are not in here.
    writes : mapping
        Each statement that writes memory (Store, list operations, `out=`), to the roots that it may write.
    writers : mapping
        Root name to the statements that may write it, in textual order.
    mutated_params : frozenset of str
        Parameters whose memory may be written.
    """

    by_name: Mapping[str, frozenset[str]]
    allocations: Mapping[str, Assign]
    writes: Mapping[Stmt, frozenset[str]]
    writers: Mapping[str, tuple[Stmt, ...]]
    mutated_params: frozenset[str]
    _function: Function

    @cached_property
    def conflicts(self) -> tuple[Conflict, ...]:
        """Stores that another live variable may see although their relation is not known statically."""
        return conflicts_of(self._function) if self.writes else ()

    def roots(self, var: Var) -> frozenset[str]:
        """The roots that an array or list Var may denote."""
        return self.by_name.get(var.name, frozenset())

    def written_by(self, stmt: Stmt) -> frozenset[str]:
        """The roots that a statement may write; also of a statement that a transform has rewritten."""
        return frozenset().union(*(self.roots(var) for var in written(stmt)))

    def may_alias(self, a: Var, b: Var) -> bool:
        """Whether two variables may alias at some time."""
        return not self.roots(a).isdisjoint(self.roots(b))

    def is_written(self, var: Var) -> bool:
        """Whether anything writes to memory that `var` may denote."""
        return any(self.writers.get(root) for root in self.roots(var))


def effects_of(function: Function) -> Effects:
    """Find the memory locations of a lowered function, the statements that write them, and alias conflicts.

    Parameters
    ----------
    function : Function
        A lowered program (the invariants of `tapegen.ir`).
    """
    touching = on_places(function)
    places = _Places(function, touching)
    writes: dict[Stmt, frozenset[str]] = {}
    writers: dict[str, list[Stmt]] = {}
    for stmt in touching:
        targets = frozenset().union(*(places.of(var) for var in written(stmt)))
        if targets:
            writes[stmt] = targets
            for root in sorted(targets):
                writers.setdefault(root, []).append(stmt)
    params = {param.name for param in function.params}
    return Effects(
        places.roots,
        places.allocations,
        writes,
        {root: tuple(stmts) for root, stmts in writers.items()},
        frozenset(params & writers.keys()),
        function,
    )


class _Places:
    """Roots of all variables: the least fixpoint over the moves of the program (flow-insensitive)."""

    def __init__(self, function: Function, touching: Iterable[Stmt]) -> None:
        self.allocations: dict[str, Assign] = {}
        found: dict[str, set[str]] = {param.name: {param.name} for param in function.params if is_place(param)}
        items: dict[str, set[str]] = {}  # root of a list -> roots of the arrays in it
        for param in function.params:
            if isinstance(param.type, ListOf) and is_place_type(param.type.item):
                items[param.name] = {param.name}
        edges: list[tuple[str, Move]] = []
        held: list[tuple[str, str]] = []  # (list, item)
        for stmt in touching:
            held.extend((sequence.name, item.name) for sequence, item in list_stores(stmt))
            if isinstance(stmt, Assign):
                for target, move in moves(stmt):
                    edges.append((target.name, move))
                    if move.fresh or not move.sources:
                        root = self._name(target.name, found)
                        self.allocations[root] = stmt
                        found.setdefault(target.name, set()).add(root)
        changed = True
        while changed:
            changed = False
            for name, move in edges:
                mine = found.setdefault(name, set())
                before = len(mine)
                for source in move.sources:
                    theirs = found.get(source.name, set())
                    mine.update(*(items.get(root, ()) for root in theirs) if move.items else (theirs,))
                changed |= len(mine) != before
            for sequence, item in held:
                for root in found.get(sequence, ()):
                    mine = items.setdefault(root, set())
                    before = len(mine)
                    mine |= found.get(item, set())
                    changed |= len(mine) != before
        self.roots = {name: frozenset(roots) for name, roots in found.items()}

    def _name(self, name: str, found: Mapping[str, set[str]]) -> str:
        taken = sum(1 for root in found.get(name, ()) if root.partition("'")[0] == name)
        return f"{name}'{taken}" if taken else name

    def of(self, var: Var) -> frozenset[str]:
        return self.roots.get(var.name, frozenset())
