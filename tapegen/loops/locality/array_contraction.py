"""Array contraction: arrays of which each iteration of a loop accesses a slice of its own keep that slice alone.

Fused outer loops write a row of a new array and read it in the same iteration: the row is enough, and stays in cache.
What is left without axes becomes a scalar.  Legal where the loop holds every access of the array, each with the
loop's counter as the index of one axis, and runs once for each array.

Before::

    def f(x: "f8[:, :]", y: "f8[:]"):
        z = np.empty((x.shape[0], x.shape[1]))
        t = np.empty(x.shape[0])
        for i in range(x.shape[0]):
            for j in range(x.shape[1]):
                z[i, j] = x[i, j] * x[i, j]
            t[i] = 0.0
            for j in range(x.shape[1]):
                t[i] += z[i, j]
            y[i] = t[i]
        return y

After::

    def f(x, y):
        z = np.empty(x.shape[1])
        for i in range(x.shape[0]):
            for j in range(x.shape[1]):
                z[j] = x[i, j] * x[i, j]
            t = 0.0
            for j in range(x.shape[1]):
                t += z[j]
            y[i] = t
        return y
"""

from __future__ import annotations

import operator
from collections import Counter
from collections.abc import Callable
from dataclasses import replace
from functools import cached_property
from typing import Any

import numpy as np

from tapegen.ir import intrinsics, traversal
from tapegen.ir.nodes import Assign, Block, Call, Const, Expr, For, Function, If, Load, Stmt, Store, Tuple, Var
from tapegen.ir.types import Array, Scalar
from tapegen.loops.analysis.dependence import alias_sets
from tapegen.loops.analysis.symbolic_bounds import dim
from tapegen.loops.legalize import precision
from tapegen.loops.locality.block_items import is_new


def contract_arrays(function: Function) -> Function:
    """The same program with arrays of fewer axes where each iteration of a loop has a slice of its own."""
    return _Contraction(function).run()


class _Contraction:
    def __init__(self, function: Function) -> None:
        self.function = function
        self.memory = alias_sets(function)
        self.made: dict[Var, Assign] = {}  # the allocations of new arrays, also of those that have lost axes
        self.uses: dict[Var, int] = {}
        self.replaced: dict[Stmt, Stmt | None] = {}

    def run(self) -> Function:
        """The function with contracted arrays."""
        body = self._block(self.function.body, set())
        return traversal.with_body(self.function, self._allocated(body) if self.replaced else body)

    def _block(self, block: Block, fresh: set[Var]) -> Block:
        """A block, given the arrays from before it that are new whenever it runs."""
        fresh = set(fresh)
        out: list[Stmt] = []
        for stmt in block:
            if isinstance(stmt, Assign) and is_new(stmt) and self.memory.own(stmt.targets[0]) is stmt:
                (array,) = stmt.targets
                fresh.add(array)
                self.made[array], self.uses[array] = stmt, self.memory.uses[array]
            elif isinstance(stmt, For):
                stmt = self._loop(stmt, fresh)
            elif stmt.blocks:
                inner = fresh if isinstance(stmt, If) else set()
                stmt = traversal.with_blocks(stmt, tuple(self._block(each, inner) for each in stmt.blocks))
            out.append(stmt)
        return tuple(out)

    def _loop(self, loop: For, fresh: set[Var]) -> For:
        """A loop with slices in place of the arrays that only it uses."""
        contracted: set[Var] = set()
        here = fresh & traversal.reads(loop)
        if here and loop.target not in traversal.assigned_in(*loop.body):
            counts = Counter(var for var in traversal.occurring(loop) if var in here)
            for array in sorted(here, key=lambda var: var.name):
                if counts[array] == self.uses[array] and (found := self._slice(loop, array)) is not None:
                    loop, new = found
                    if new is not None:
                        contracted.add(new)
        return traversal.with_blocks(loop, (self._block(loop.body, contracted),))  # type: ignore[return-value]

    def _slice(self, loop: For, array: Var) -> tuple[For, Var | None] | None:
        """The loop with a slice or a scalar in place of an array, and the new array."""
        indices, sizes = element_indices(loop.body, array), _sizes_read(loop.body, array)
        made, type_ = self.made[array], array.type
        assert isinstance(type_, Array)
        axis = next((k for k in range(type_.rank) if all(index[k] == loop.target for index in indices)), None)
        if axis is None or not indices or len(indices) + sizes != self.uses[array]:
            return None
        if sizes and not self._is_fixed(made):
            return None
        rest = {index[:axis] + index[axis + 1 :] for index in indices}
        body = _with_sizes(loop.body, array, _shape_of(made)) if sizes else loop.body
        if len(rest) == 1 and all(isinstance(item, Const) for item in next(iter(rest))):
            if not starts_with_store(body, array):
                return None
            self._replace(made, None)
            return replace(loop, body=as_number(body, array)), None
        unit = type_.unit[:axis] + type_.unit[axis + 1 :]
        new = Var(array.name, Array(type_.dtype, type_.rank - 1, type_.layout, unit))
        self._replace(made, _without_axis(made, new, axis))
        self.uses[new] = len(indices)
        return replace(loop, body=_with_slice(body, array, new, axis)), new

    def _is_fixed(self, made: Assign) -> bool:
        """Whether the shape of a new array is written in terms of what never changes."""
        return all(self.assigned[var] <= 1 for size in _shape_of(made) for var in traversal.free_vars(size))

    @cached_property
    def assigned(self) -> Counter[Var]:
        """The number of assignments of each variable; a call assigns parameters."""
        assigned = [var for stmt in traversal.statements(self.function.body) for var in stmt.targets]
        return Counter([*self.function.params, *assigned])

    def _replace(self, made: Assign, new: Assign | None) -> None:
        """Replace an allocation, or what is in its place by now."""
        first = next((stmt for stmt, now in self.replaced.items() if now is made), made)
        self.replaced[first] = new
        if new is not None:
            self.made[new.targets[0]] = new

    def _allocated(self, block: Block) -> Block:
        """A block with the new allocations."""
        out: list[Stmt] = []
        for stmt in block:
            new = self.replaced.get(stmt, stmt)
            if new is not None:
                out.append(traversal.with_blocks(new, tuple(map(self._allocated, new.blocks))))
        return tuple(out)


def element_indices(block: Block, array: Var) -> list[tuple[Any, ...]]:
    """The indices of the elements of an array that a block accesses."""
    found: list[tuple[Any, ...]] = []
    for stmt in traversal.statements(block):
        if array not in traversal.reads(stmt):
            continue
        parts = stmt.headers
        if isinstance(stmt, Store) and stmt.array == array:
            parts = parts[1:]
            if all(type(getattr(item, "type", None)) is Scalar for item in stmt.index):
                found.append(stmt.index)
        found += [
            load.index
            for part in parts
            for load in traversal.loads(part)
            if load.array == array and type(load.type) is Scalar
        ]
    return found


def _sizes_read(block: Block, array: Var) -> int:
    """How often a block reads a size of an array."""
    parts = [part for stmt in traversal.statements(block) if array in traversal.reads(stmt) for part in stmt.headers]
    return sum(_axis_of(each, array) is not None for part in parts for each in traversal.subexpressions(part))


def _axis_of(expr: Any, array: Var) -> int | None:
    """The axis of an array whose size an expression is."""
    match expr:
        case Call(intrinsics.dim, (Var() as measured, Const(int() as axis))) if measured == array:
            return axis
    return None


def _with_sizes(block: Block, array: Var, sizes: tuple[Expr, ...]) -> Block:
    """A block that does not read the sizes of an array."""

    def size(part: Any) -> Any:
        axis = _axis_of(part, array)
        return part if axis is None else sizes[axis]

    def changed(stmt: Stmt) -> Stmt:
        new = traversal.map_headers(stmt, lambda part: traversal.map_expr(part, size))
        return traversal.with_blocks(new, tuple(traversal.map_block(each, changed) for each in new.blocks))

    return traversal.map_block(block, changed)


def starts_with_store(block: Block, array: Var) -> bool:
    """Whether the first access of an array in a block stores an element."""
    for stmt in block:
        if array in traversal.reads(stmt):
            stores = isinstance(stmt, Store) and stmt.array == array and not stmt.accumulate
            return stores and not any(array in traversal.free_vars(part) for part in stmt.headers[1:])
    return False


def as_number(block: Block, array: Var) -> Block:
    """A block with a scalar in place of the only element of an array that it accesses."""
    assert isinstance(array.type, Array)
    dtype = array.type.dtype
    number = Var(array.name, Scalar(dtype, False))

    def element(part: Any) -> Any:
        return number if isinstance(part, Load) and part.array == array else part

    def stored(stmt: Store) -> Stmt:
        value = traversal.map_expr(stmt.value, element)
        if stmt.accumulate:
            value = Call(operator.add, (number, value), (), number.type)
        return Assign((number,), precision.stored(value, dtype), stmt.origin)

    return _rewritten(block, array, element, stored)


def _with_slice(block: Block, array: Var, new: Var, axis: int) -> Block:
    """A block with an array of one axis less."""

    def element(part: Any) -> Any:
        if isinstance(part, Load) and part.array == array:
            return replace(part, array=new, index=part.index[:axis] + part.index[axis + 1 :])
        return part

    def stored(stmt: Store) -> Stmt:
        index = tuple(traversal.map_expr(item, element) for item in stmt.index)
        value = traversal.map_expr(stmt.value, element)
        return Store(new, index[:axis] + index[axis + 1 :], value, stmt.accumulate, stmt.origin)

    return _rewritten(block, array, element, stored)


def _rewritten(block: Block, array: Var, element: Callable[[Any], Any], stored: Callable[[Store], Stmt]) -> Block:
    """A block with the elements that it reads of an array, and its stores into the array, replaced."""
    out: list[Stmt] = []
    for stmt in block:
        if array not in traversal.reads(stmt):
            new = stmt
        elif isinstance(stmt, Store) and stmt.array == array:
            new = stored(stmt)
        else:
            new = traversal.map_headers(stmt, lambda part: traversal.map_expr(part, element))
            new = traversal.with_blocks(new, tuple(_rewritten(each, array, element, stored) for each in new.blocks))
        out.append(new)
    return tuple(out)


def _without_axis(made: Assign, new: Var, axis: int) -> Assign:
    """The allocation of an array of one axis less."""
    call, sizes = made.value, _shape_of(made)
    assert isinstance(call, Call)
    remaining = sizes[:axis] + sizes[axis + 1 :]
    shape = remaining[0] if len(remaining) == 1 else Tuple(remaining)
    return Assign((new,), Call(np.empty, (shape, *call.args[1:]), call.kwargs, new.type), made.origin)


def _shape_of(made: Assign) -> tuple[Expr, ...]:
    """The sizes of a new array."""
    assert isinstance(made.value, Call) and isinstance(made.value.type, Array)
    match made.value.args[0]:
        case Tuple(items):
            return items
        case Call(intrinsics.shape, (Var() as like,)):
            return tuple(dim(like, k) for k in range(made.value.type.rank))
        case size:
            return (size,)
