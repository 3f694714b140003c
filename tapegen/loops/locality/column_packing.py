"""Array packing: columns of matrices that a loop accesses repeatedly, in contiguous memory while it runs.

The elements of a column lie in as many cache lines as there are rows, and several such columns fill a cache of which
they use an eighth.  So a column is copied to a buffer before the loop, and back after it if it has changed.  Legal
where the loop accesses nothing else of the array, or only reads it; it pays where an outer loop accesses the column
again.

Before::

    def f(a: "f8[:, :]", q: "f8[:, :]", k: "i8", n: "i8", m: "i8"):
        for j in range(m):
            s = 0.0
            for i in range(n):
                s = s + q[i, k] * a[i, j]
            for i in range(n):
                a[i, j] = a[i, j] - q[i, k] * s
        return a

After::

    def f(a, q, k, n, m):
        q_column = np.empty(q.shape[0])
        if 0 < m:
            for i_1 in range(n):
                q_column[i_1] = q[i_1, k]
            for j in range(m):
                s = 0.0
                for i in range(n):
                    s += q_column[i] * a[i, j]
                for i in range(n):
                    a[i, j] = a[i, j] - q_column[i] * s
        return a
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

from tapegen.ir import traversal
from tapegen.ir.nodes import Assign, Comment, Const, Expr, For, Function, If, Load, Stmt, Store, Var
from tapegen.ir.types import INT, Array, Scalar
from tapegen.loops.analysis.dependence import Access, LoopNest, in_loops
from tapegen.loops.analysis.loop_visitor import unconditional_loads
from tapegen.loops.analysis.trip_counts import constant_trip_count
from tapegen.loops.locality.packing_buffers import PackingPass, has_matrices
from tapegen.loops.locality.scalar_replacement import has_iteration

_FEW = 4  # iterations that take less time than a copy


def pack_columns(function: Function) -> Function:
    """The same program with buffers for the columns that loops access repeatedly."""
    return traversal.with_body(function, _Columns(function).whole()) if has_matrices(function) else function


@dataclass(frozen=True)
class _Column:
    """The elements of an array along an axis other than its last.

    Attributes
    ----------
    array : Var
        The array.
    axis : int
        The axis along which they lie.
    index : tuple of Expr or None
        Their position on the other axes; None at the axis.
    stop : Expr
        How many there are.
    """

    array: Var
    axis: int
    index: tuple[Expr | None, ...]
    stop: Expr

    def at(self, counter: Var) -> tuple[Expr, ...]:
        """The index of one of the elements."""
        return tuple(counter if item is None else item for item in self.index)


class _Columns(PackingPass):
    def loop(self, loop: For) -> list[Stmt]:
        """A loop with the copies before and after it."""
        found = self._columns(loop)
        test = has_iteration(loop)
        if not found or test is None:
            return [traversal.with_blocks(loop, (self.block(loop.body),))]
        before: list[Stmt] = []
        after: list[Stmt] = []
        rows: dict[Var, tuple[_Column, Var]] = {}
        for column, is_written in found.items():
            array = column.array
            row = self.room(f"{array.name}_column", array, column.axis)
            counter = Var(self.names.fresh("i"), INT)
            rows[array] = column, row
            there = Store(row, (counter,), Load(array, column.at(counter), _element(array)))
            before.append(For(counter, Const(0), column.stop, Const(1), (there,), loop.origin))
            if is_written:
                back = Store(array, column.at(counter), Load(row, (counter,), _element(array)))
                after.append(For(counter, Const(0), column.stop, Const(1), (back,), loop.origin))
        body = tuple(_with_rows(stmt, rows) if isinstance(stmt, For) else stmt for stmt in loop.body)
        return [If(test, (*before, replace(loop, body=self.block(body)), *after), (), loop.origin)]

    def _columns(self, loop: For) -> dict[_Column, bool]:
        """The columns that every iteration accesses exclusively of their arrays; and whether it changes them."""
        if constant_trip_count(loop) < _FEW or any(
            not isinstance(stmt, _CALM) for stmt in traversal.statements(loop.body)
        ):
            return {}
        varying = {loop.target, *traversal.assigned_in(*loop.body)}
        found: dict[Var, _Column | None] = {}  # by the alias set of the array; None where there is more than one
        written: set[Var] = set()
        sure: set[Var] = set()
        for stmt in loop.body:
            nest = in_loops((stmt,), stmt.body) if isinstance(stmt, For) else None
            if nest is None or nest.checks or nest.loops[0].start != Const(0) or nest.loops[0].step != Const(1):
                found |= {self.memory.group(var): None for var in _arrays(stmt)}
                continue
            for access in nest.accesses:
                column = _column(access, nest, varying)
                group = self.memory.group(access.array)
                found[group] = column if found.setdefault(group, column) == column else None
                if access.writes:
                    written.add(group)
            sure |= {self.memory.group(array) for array in _surely_touched(nest)}
        return {column: group in written for group, column in found.items() if column is not None and group in sure}


_CALM = (Assign, Store, For, If, Comment)
"""Statements after which the next statement is reached."""


def _column(access: Access, nest: LoopNest, varying: set[Var]) -> _Column | None:
    """The column that an access runs along."""
    (loop,) = nest.loops
    array, index = access.array, access.index
    if not isinstance(array.type, Array) or array.type.dtype != "float64" or array.type.layout != "C":
        return None
    axes = [axis for axis, item in enumerate(index) if item == loop.target]
    if len(axes) != 1 or axes[0] == len(index) - 1:
        return None
    others = [item for axis, item in enumerate(index) if axis != axes[0]]
    if any(traversal.free_vars(item) & varying or traversal.loads(item) for item in (*others, loop.stop)):
        return None
    place = tuple(None if axis == axes[0] else item for axis, item in enumerate(index))
    return _Column(array, axes[0], place, loop.stop)


def _surely_touched(nest: LoopNest) -> Iterator[Var]:
    """Arrays of which a loop accesses an element in each iteration, so that these are within bounds."""
    for stmt in nest.body:
        if isinstance(stmt, Store):
            yield stmt.array
        if isinstance(stmt, (Assign, Store)):
            yield from (load.array for load in unconditional_loads(stmt.value))


def _arrays(stmt: Stmt) -> set[Var]:
    return {var for var in traversal.reads(stmt) | traversal.assigns(stmt) if isinstance(var.type, Array)}


def _element(array: Var) -> Scalar:
    assert isinstance(array.type, Array)
    return Scalar(array.type.dtype, False)


def _with_rows(loop: For, rows: dict[Var, tuple[_Column, Var]]) -> For:
    """A loop that accesses its columns in buffers."""

    def change(part: Any) -> Any:
        return Load(rows[part.array][1], (loop.target,), part.type) if _is_in(part, rows) else part

    body: list[Stmt] = []
    for stmt in loop.body:
        new = traversal.map_headers(stmt, lambda part: traversal.map_expr(part, change))
        if isinstance(new, Store) and new.array in rows:
            new = replace(new, array=rows[new.array][1], index=(loop.target,))
        body.append(new)
    return replace(loop, body=tuple(body))


def _is_in(part: Any, rows: dict[Var, tuple[_Column, Var]]) -> bool:
    return isinstance(part, Load) and part.array in rows
