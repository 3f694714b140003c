"""Unroll-and-jam of inner products: two iterations multiply their rows with the same vector in one pass.

In `x[i] = b[i] - a[i, :i] @ x[:i]` the next iteration multiplies the next row with the same vector, which has one
element more by then.  Every other iteration processes both rows, and the next one adds the product of its last element:
two rows are loaded in parallel, and the vector is read half as often.  Legal where nothing else of the vectors
changes.
"""

from __future__ import annotations

import operator
from dataclasses import dataclass, replace

from tapegen.ir import builders, intrinsics, traversal
from tapegen.ir.affine import linear, minus, plus
from tapegen.ir.names import NameSupply
from tapegen.ir.nodes import (
    Assign,
    Call,
    Const,
    Expr,
    For,
    If,
    Index,
    Load,
    Slice,
    Stmt,
    Store,
    Var,
)
from tapegen.ir.types import BOOL, INT, Scalar, TupleOf
from tapegen.loops.analysis.dependence import AliasSets
from tapegen.loops.analysis.symbolic_bounds import SymbolicBounds, dim

_MOST = 7
"""Vectors in one pass; the sums of more products would not fit into registers."""


@dataclass(frozen=True, slots=True)
class _Next:
    """A vector in the next iteration: a view with the same size checks as in this one, perhaps one element longer."""

    part: Expr
    element: Expr | None


class PairedDotProducts:
    """A loop whose iterations are processed in pairs.

    Attributes
    ----------
    before : list of Stmt
        The statements before it.
    """

    def __init__(self, loop: For, facts: SymbolicBounds, memory: AliasSets, names: NameSupply) -> None:
        self.loop, self.facts, self.memory, self.names = loop, facts, memory, names
        self.counter = loop.target
        self.step = 1 if loop.step == Const(1) else -1
        self.varying = {loop.target, *traversal.assigned_in(*loop.body)}
        self.stores = [stmt for stmt in traversal.statements(loop.body) if isinstance(stmt, Store)]
        self.before: list[Stmt] = []

    def paired(self, stmt: Stmt) -> tuple[Stmt, ...]:
        """A statement of the body; products of the rows of two iterations where it multiplies rows."""
        if not isinstance(stmt, Assign) or not isinstance(stmt.value, Call) or stmt.value.func is not intrinsics.dots:
            return (stmt,)
        row = Var(self.names.fresh("row"), INT)
        vectors = stmt.value.args
        after = [each for each in (self._next(vector, row) for vector in vectors) if each is not None]
        if len(after) < len(vectors) or len({each.element is None for each in after}) > 1:
            return (stmt,)
        parts = tuple(each.part for each in after)
        moves = all(parts[k : k + 2] != vectors[k : k + 2] for k in range(0, len(parts), 2))
        if not moves or len({*vectors, *parts}) > _MOST:
            return (stmt,)
        numbers = tuple(Var(self.names.fresh(f"{target.name}_ahead"), target.type) for target in stmt.targets)
        self.before += [
            Assign((number,), builders.floating(0.0, number.type.dtype), stmt.origin)  # type: ignore[union-attr]
            for number in numbers
        ]
        targets = (*stmt.targets, *numbers)
        both = Call(intrinsics.dots, (*vectors, *parts), (), TupleOf(tuple(var.type for var in targets)))
        first = Assign((row,), self._row(), stmt.origin), Assign(targets, both, stmt.origin)
        second = []
        for target, number, a, b in zip(stmt.targets, numbers, after[::2], after[1::2], strict=True):
            total: Expr = number
            if a.element is not None and b.element is not None:
                total = builders.add(number, builders.mul(a.element, b.element))
            second.append(Assign((target,), total, stmt.origin))
        return (If(self._is_first(), first, tuple(second), stmt.origin),)

    def _is_first(self) -> Expr:
        distance = minus(self.counter, self.loop.start) if self.step > 0 else minus(self.loop.start, self.counter)
        return Call(operator.eq, (Call(operator.mod, (distance, Const(2)), (), INT), Const(0)), (), BOOL)

    def _row(self) -> Expr:
        """The row of the next iteration; in the last one, which has none, its own again."""
        last = plus(self.loop.stop, -self.step)
        return Call(min if self.step > 0 else max, (plus(self.counter, self.step), last), (), INT)

    # ---- vectors -----------------------------------------------------------------------------------------------------

    def _next(self, vector: Expr, row: Var) -> _Next | None:
        """The vector of the next iteration, as an expression in this one; None where that is not known."""
        if isinstance(vector, Var):
            return None if vector in self.varying or self._stores_into(vector) else _Next(vector, None)
        if not isinstance(vector, Load) or vector.array in self.varying:
            return None
        index = vector.index
        *front, last = index if len(index) == vector.array.type.rank else (*index, Slice())  # type: ignore[union-attr]
        if not isinstance(last, Slice) or not all(
            self._is_place(vector.array, axis, k) for axis, k in enumerate(front)
        ):
            return None
        grows = self._grows(last)
        if grows:
            if not self._is_within(vector.array, len(front)) or not self._stores_one(vector.array, front):
                return None
        elif self._stores_into(vector.array) or not self._is_fixed(last.lo, last.hi, last.step):
            return None
        moved = [row if item == self.counter else item for item in front]
        there = [self.counter if item == self.counter else item for item in front]
        part = replace(vector, index=(*moved, last) if len(index) > len(front) else tuple(moved))
        number = Scalar(vector.array.type.dtype, False)  # type: ignore[union-attr]
        element = Load(vector.array, (*there, plus(self.counter, -self.step)), number) if grows else None
        return _Next(part, element)

    def _grows(self, last: Slice) -> bool:
        """Whether a slice has the elements of the previous iterations (of the later ones when counting down)."""
        if last.step not in (None, Const(1)):
            return False
        if self.step > 0:
            return last.lo in (None, Const(0)) and last.hi == self.counter
        return last.hi is None and last.lo is not None and linear(last.lo) == linear(plus(self.counter, 1))

    def _is_place(self, array: Var, axis: int, item: Index) -> bool:
        """Whether an item of an index is invariant, or the loop counter and within bounds."""
        if isinstance(item, Slice) or (isinstance(item, Const) and item.value is None):
            return False
        return self._is_within(array, axis) if item == self.counter else self._is_fixed(item)

    def _is_within(self, array: Var, axis: int) -> bool:
        counter = self.facts.form(self.counter)
        size = self.facts.form(dim(array, axis))
        return self.facts.nonnegative(counter) and self.facts.nonnegative(size - 1 - counter)

    def _is_fixed(self, *items: Expr | None) -> bool:
        given = [item for item in items if item is not None]
        return not any(traversal.loads(item) or traversal.free_vars(item) & self.varying for item in given)

    def _stores_into(self, array: Var) -> list[Store]:
        group = self.memory.group(array)
        return [store for store in self.stores if self.memory.group(store.array) == group]

    def _stores_one(self, array: Var, front: list[Index]) -> bool:
        """Whether an iteration stores into an array only the element by which the vector grows in the next one."""
        if self.counter in front:
            return not self._stores_into(array)
        own = (*front, self.counter)
        return all(store.array == array and store.index == own for store in self._stores_into(array))
