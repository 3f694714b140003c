"""Residuals: the primal values that the backward sweep reads, as they were at a statement of the forward sweep."""

from __future__ import annotations

import itertools

from tapegen.analysis.activity import is_view
from tapegen.ir import builders, traversal
from tapegen.ir.names import NameSupply
from tapegen.ir.nodes import (
    Assign,
    Block,
    Call,
    Expr,
    Function,
    Index,
    Load,
    Slice,
    Stmt,
    Var,
)
from tapegen.ir.types import INT, Array, Scalar
from tapegen.transform.analyses import Facts
from tapegen.transform.autodiff.shadow_memory import ShadowArrays


class Residuals:
    """Reads of primal values, and the copies that are saved for them."""

    def __init__(self, function: Function, facts: Facts, shadows: ShadowArrays, names: NameSupply) -> None:
        self.function = function
        self.facts = facts
        self.scopes, self.shapes, self.effects = facts.scopes, facts.shapes, facts.effects
        self.names = names
        self.shadows = shadows.of
        self.views = {var: value for var, value in _views(function.body).items() if not self.scopes.is_merge(var)}
        self.before: dict[Stmt, list[Assign]] = {}
        self.after: dict[Stmt, list[Assign]] = {}
        self.captured: dict[tuple[Stmt, Expr], Var] = {}
        self.captures: set[Var] = set()
        self.kept_at: dict[Stmt, list[Expr]] = {}  # the values that `capture` saves at a statement

    def expression(self, stmt: Stmt, expr: Expr) -> Expr:
        """An integer or boolean expression of a forward statement, for use in the backward sweep."""
        loads, places = traversal.loads(expr), traversal.unindexed_reads(expr)
        if all(self.facts.is_final(stmt, load.array, load.index) for load in loads) and all(
            self.facts.is_final(stmt, place, ()) for place in places
        ):
            return expr
        is_test = isinstance(expr.type, Scalar) and expr.type.dtype == "bool"
        return self.capture(stmt, expr, "test" if is_test else "k")

    def index(self, stmt: Stmt, index: tuple[Index, ...]) -> tuple[Index, ...]:
        """An index of a forward statement, for use in the backward sweep."""
        return tuple(self._index_item(stmt, item) for item in index)

    def _index_item(self, stmt: Stmt, item: Index) -> Index:
        if isinstance(item, Slice):
            parts = (None if part is None else self.expression(stmt, part) for part in (item.lo, item.hi, item.step))
            return Slice(*parts)
        if isinstance(item, Var) and isinstance(item.type, Array):
            return self.operand(stmt, item)
        return self.expression(stmt, item)

    def operand(self, stmt: Stmt, var: Var) -> Var:
        """An array operand of a forward statement: itself when its contents are final, else a captured copy."""
        if not isinstance(var.type, Array) or self.facts.is_final(stmt, var, ()):
            return var
        return self.capture(stmt, builders.copy(var), self._root_name(var))

    def _root_name(self, var: Var) -> str:
        """The array that a view refers to."""
        while var in self.views:
            value = self.views[var]
            base = value.array if isinstance(value, Load) else value.args[0]
            if not isinstance(base, Var):
                break
            var = base
        return var.name

    def result(self, stmt: Assign, var: Var) -> Var:
        """The result of a forward statement, as the statement left it."""
        if not isinstance(var.type, Array) or self.facts.is_final(stmt, var, ()):
            return var
        return self._save_after(stmt, var, builders.copy(var), f"{var.name}_kept")

    def length_at(self, stmt: Stmt, after: bool, items: Var) -> Expr:
        """The length of a run-time list before or after a forward statement."""
        length = Call(len, (items,), (), INT)
        after &= items in traversal.assigns(stmt) or any(
            self.effects.written_by(inner) & self.effects.roots(items) for inner in traversal.statements((stmt,))
        )
        if self.facts.is_final(stmt, items, (), after=after):
            return length
        if not after:
            return self.capture(stmt, length, f"{items.name}_n0")
        return self._save_after(stmt, items, length, f"{items.name}_n0")

    def _save_after(self, stmt: Stmt, var: Var, expr: Expr, name: str) -> Var:
        """Save a property of a variable as a forward statement leaves it."""
        key = (stmt, var)
        if key not in self.captured:
            kept = Var(self.names.fresh(name), expr.type)
            self._own_capture(stmt, Assign((kept,), expr, stmt.origin), self.after)
            self.captured[key] = kept
        return self.captured[key]

    def capture(self, stmt: Stmt, expr: Expr, base: str) -> Var:
        """Save the value that an expression has at a forward statement."""
        key = (stmt, expr)
        if key not in self.captured:
            # the forward sweep itself may read a saved condition or index, but never a saved copy of an array
            kept = self._saved_later(stmt, expr) if isinstance(expr.type, Array) else None
            if kept is None:
                kept = Var(self.names.fresh(f"{base}_kept" if isinstance(expr.type, Array) else base), expr.type)
                self._own_capture(stmt, Assign((kept,), expr, stmt.origin), self.before)
            self.captured[key] = kept
            self.kept_at.setdefault(stmt, []).append(expr)
        return self.captured[key]

    def version(self, stmt: Stmt, var: Var) -> Var:
        """The contents of an array at a forward statement, saved before the statement that changes them.

        All statements that read the same contents share the saved copy.
        """
        expr = builders.copy(var)
        kept = self._saved_later(stmt, expr)
        return self.capture(self._changing(stmt, expr), expr, self._root_name(var)) if kept is None else kept

    def _changing(self, stmt: Stmt, expr: Expr) -> Stmt:
        """The first statement of the block, from a given one on, that changes an expression's value; or the last."""
        reads = traversal.free_vars(expr)
        roots = frozenset[str]().union(*(self.effects.roots(var) for var in reads))
        after = stmt
        for after in itertools.dropwhile(lambda each: each is not stmt, self.scopes.at[stmt].block):
            for inner in traversal.statements((after,)):
                if reads.intersection(inner.targets) or self.effects.written_by(inner) & roots:
                    return after
        return after

    def _saved_later(self, stmt: Stmt, expr: Expr) -> Var | None:
        """The same value, saved at a later statement of the same block.

        Nothing in between may assign a variable of the expression or write to memory that it reads.  A block runs to
        its end once it has begun (escapes are tails), and the backward block has its saved values from its start.
        """
        wanted = self._spelled(expr)
        reads = traversal.free_vars(expr) | traversal.free_vars(wanted)
        roots = frozenset[str]().union(*(self.effects.roots(var) for var in reads if not isinstance(var.type, Scalar)))
        scope = self.scopes.at[stmt]
        for after in itertools.dropwhile(lambda each: each is not stmt, scope.block):
            for found in self.kept_at.get(after, ()) if after is not stmt else ():
                if found.type == expr.type and self._spelled(found) == wanted:
                    kept = self.captured[after, found]
                    return kept if self.scopes.owner[kept] is scope else None
            for inner in traversal.statements((after,)):
                if reads.intersection(inner.targets) or self.effects.written_by(inner) & roots:
                    return None
        return None

    def _spelled(self, expr: Expr) -> Expr:
        """An expression with views inlined, so that two names of the same part of an array have the same spelling.

        What the index of a view reads must have a single value for as long as the names are visible.
        """
        views = {
            var: self.views[var]
            for var in traversal.free_vars(expr) & self.views.keys()
            if not any(map(self.scopes.is_merge, traversal.free_vars(self.views[var]))) and not _reads(self.views[var])
        }
        return self._spelled(traversal.substitute(expr, views)) if views else expr

    def saved_items(self, stmt: Stmt, sequence: Var) -> Var:
        """The shadow arrays in a list, as they were at a forward statement."""
        key = (stmt, sequence)
        if key not in self.captured:
            kept = Var(self.names.fresh(f"{self.shadows[sequence].name}_kept"), sequence.type)
            items = Call(list, (self.shadows[sequence],), (), sequence.type)
            self._own_capture(stmt, Assign((kept,), items, stmt.origin), self.before)
            self.captured[key] = kept
        return self.captured[key]

    def _own_capture(self, stmt: Stmt, kept: Assign, where: dict[Stmt, list[Assign]]) -> None:
        where.setdefault(stmt, []).append(kept)
        (var,) = kept.targets
        self.captures.add(var)
        self.scopes.owner[var] = self.scopes.at[kept] = self.scopes.at[stmt]
        self.scopes.assigns[var] = [kept]


def _reads(view: Load | Call) -> bool:
    """Whether the index of a view reads elements of arrays."""
    return bool(traversal.loads(view)[1:] if isinstance(view, Load) else traversal.loads(view))


def _views(block: Block) -> dict[Var, Load | Call]:
    """Views and the expressions that create them."""
    return {
        stmt.targets[0]: stmt.value
        for stmt in traversal.statements(block)
        if isinstance(stmt, Assign)
        and len(stmt.targets) == 1
        and isinstance(stmt.value, (Load, Call))
        and is_view(stmt.value)
    }
