"""Array packing: columns of matrices that inner loops run along, in contiguous memory while the loop around them runs.

The elements of a column lie in as many cache lines as there are rows, and several such columns fill a cache of which
they use an eighth; with a stride, LLVM does not use vector instructions.  So columns are copied to buffers before the
loop, and back after it where they have changed.  Legal where the loop accesses nothing else of these arrays; results
stay the same in every bit.  It pays where each iteration runs along a whole column (below), or where an inner loop is
vectorized then, as in loops over pairs of points: there the packed loop is a version for enough iterations.

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

import functools
import operator
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any

from tapegen.ir import intrinsics, traversal
from tapegen.ir.affine import linear, minus, plus
from tapegen.ir.nodes import (
    Assign,
    Block,
    Call,
    Comment,
    Const,
    Expr,
    For,
    Function,
    If,
    Load,
    Raise,
    Stmt,
    Store,
    Var,
    While,
)
from tapegen.ir.types import BOOL, INT, Array, Scalar
from tapegen.loops.analysis.dependence import Access, LoopNest, in_loops
from tapegen.loops.analysis.loop_visitor import unconditional_loads
from tapegen.loops.analysis.symbolic_bounds import dim
from tapegen.loops.analysis.trip_counts import largest_trip_count
from tapegen.loops.locality.packing_buffers import PackingPass, has_matrices
from tapegen.loops.locality.scalar_replacement import has_iteration
from tapegen.loops.vectorize.strip_mining import LONG, takes_vectors

_FEW = 16
"""Iterations of the outer loop, and of inner ones with constant trip counts, that take less time than a copy."""
_FLOATS = frozenset({"float64", "float32"})
_LONGEST = 2
"""The maximal ratio of copied elements to iterations of the outer loop."""


def pack_columns(function: Function) -> Function:
    """The same program with buffers for columns that inner loops run along."""
    return traversal.with_body(function, _Rows(function).whole()) if has_matrices(function) else function


@dataclass(frozen=True)
class _Place:
    """Where an array is accessed: along which axis, and the other indices (None at the axis)."""

    axis: int
    index: tuple[Expr | None, ...]

    def at(self, counter: Var) -> tuple[Expr, ...]:
        """The index of one of the elements."""
        return tuple(counter if item is None else item for item in self.index)


@dataclass(frozen=True)
class _Touched:
    """An element that the loops access, and the counters that may run along a column."""

    access: Access
    counters: tuple[Var, ...]


@dataclass(frozen=True)
class _Columns:
    """The columns of one array; all accesses of it are in them.

    Attributes
    ----------
    array : Var
        The array.
    places : tuple of _Place
        Their positions.
    stops : tuple of Expr
        Exclusive upper bounds of the counters along them.
    is_written : bool
        Whether they are written.
    is_whole : bool
        Whether each iteration runs along them from end to end.
    """

    array: Var
    places: tuple[_Place, ...]
    stops: tuple[Expr, ...]
    is_written: bool
    is_whole: bool

    @property
    def axis(self) -> int:
        """The axis along which the columns lie."""
        return self.places[0].axis

    @property
    def count(self) -> Expr:
        """The number of their elements that are copied."""
        return self.stops[0] if len(self.stops) == 1 else Call(max, self.stops, (), INT)


@dataclass(frozen=True)
class _Walked:
    """The columns that a loop runs along.

    Attributes
    ----------
    arrays : tuple of _Columns
        Its arrays.
    counters : tuple of Var
        Counters of the loops in it.
    """

    arrays: tuple[_Columns, ...]
    counters: tuple[Var, ...]

    @property
    def are_whole(self) -> bool:
        """Whether each iteration of the loop runs along all of them from end to end."""
        return all(each.is_whole for each in self.arrays)

    @property
    def columns(self) -> list[tuple[Var, _Place]]:
        """Each column by itself."""
        return [(columns.array, place) for columns in self.arrays for place in columns.places]


class _Rows(PackingPass):
    def __init__(self, function: Function) -> None:
        super().__init__(function)
        own = (var for stmt in function.body for var in stmt.targets if self.memory.own(var) is not None)
        self.lasting = {*own, *(set(function.params) - traversal.assigned_in(*function.body))}  # arrays of fixed size
        self.rows: dict[tuple[Var, _Place], Var] = {}
        self.chosen: dict[For, _Walked] = {}

    def whole(self) -> Block:
        """The new body.  Loops that run only once do not matter where there are such loops in a loop."""
        found = list(self._found(self.body, 0))
        deep = any(depth for depth, _, _ in found)
        self.chosen = {loop: walked for depth, loop, walked in found if depth or not deep}
        return super().whole()

    def loop(self, loop: For) -> list[Stmt]:
        """A loop that accesses buffers; a version for enough iterations unless each iteration needs whole columns."""
        walked = self.chosen.get(loop)
        if walked is None:
            return [traversal.with_blocks(loop, (self.block(loop.body),))]
        made = {column: self._row(*column) for column in walked.columns}
        before = [_copied(each, made, self._counter(), back=False) for each in walked.arrays]
        after = [_copied(each, made, self._counter(), back=True) for each in walked.arrays if each.is_written]
        along = replace(loop, body=_with_rows(loop.body, made))
        test = has_iteration(loop)
        if test is not None and walked.are_whole:
            return [If(test, (*before, along, *after), (), loop.origin)]
        own = {counter: Var(self.names.fresh(counter.name), INT) for counter in walked.counters}
        along = replace(along, body=traversal.rename_block(along.body, own))
        return [If(_all(_conditions(loop, walked)), (*before, along, *after), (loop,), loop.origin)]

    def _found(self, block: Block, depth: int) -> Iterator[tuple[int, For, _Walked]]:
        """Loops with strided column accesses, and the depth of each."""
        for stmt in block:
            walked = self._walked(stmt) if isinstance(stmt, For) else None
            if isinstance(stmt, For) and walked is not None:
                yield depth, stmt, walked
                continue
            for inner in stmt.blocks:
                yield from self._found(inner, depth + isinstance(stmt, (For, While)))

    def _walked(self, loop: For) -> _Walked | None:
        """The columns of a loop, if buffers allow LLVM to vectorize it."""
        statements, inner = traversal.statements(loop.body), _inner(loop)
        counters = tuple(dict.fromkeys(nest.loops[0].target for nest in inner))
        stops = _stops(loop, inner)
        if not stops or not self.memory.lasting.isdisjoint(counters):
            return None
        walked = _Walked(tuple(self._columns(loop, inner, stops)), counters)
        written = [columns.array for columns in walked.arrays if columns.is_written]
        if not all(map(self.memory.own, written)) and any(isinstance(stmt, Raise) for stmt in statements):
            return None  # the writes of an iteration may outlive an error
        trial = {column: Var(f"?{k}", Array(_dtype(column[0]), 1, "C")) for k, column in enumerate(walked.columns)}
        along = traversal.statements(_with_rows(loop.body, trial)) if trial else ()
        if any(map(self._takes_vectors, along)):
            return walked
        whole = tuple(each for each in walked.arrays if each.is_whole)
        return _Walked(whole, counters) if whole else None

    def _counter(self) -> Var:
        return Var(self.names.fresh("i"), INT)

    def _row(self, array: Var, place: _Place) -> Var:
        """The buffer of a column: shared by all loops while the array is live."""
        if (array, place) in self.rows:
            return self.rows[array, place]
        row = self.buffer(f"{array.name}_column", _dtype(array), array, place.axis)
        if array in self.lasting:
            self.rows[array, place] = row
        return row

    def _takes_vectors(self, stmt: Stmt) -> bool:
        nest = in_loops((stmt,), stmt.body) if isinstance(stmt, For) else None
        return nest is not None and takes_vectors(nest, self.memory.group, LONG)

    def _columns(self, loop: For, inner: list[LoopNest], stops: Mapping[Var, Mapping[Expr, None]]) -> list[_Columns]:
        """The arrays that may be packed for a loop."""
        found: dict[Var, list[_Touched]] = {}
        for touched in _touched(loop, inner):
            if touched is None:
                return []
            found.setdefault(self.memory.group(touched.access.array), []).append(touched)
        varying = {loop.target, *traversal.assigned_in(*loop.body)}
        sure = {} if any(isinstance(stmt, Raise) for stmt in traversal.statements(loop.body)) else _run_along(loop)
        columns = [_columns_of(group, stops, varying, sure) for group in found.values()]
        return [each for each in columns if each is not None]


def _ends(loop: For) -> tuple[Expr, Expr]:
    """The first value of a loop counter, and the one after the last, in ascending order."""
    return (loop.start, loop.stop) if loop.step == Const(1) else (plus(loop.stop, 1), plus(loop.start, 1))


def _inner(loop: For) -> list[LoopNest]:
    """The loops in a loop, none of which contains a loop or raises an error; empty for loops of other kinds."""
    if loop.step not in (Const(1), Const(-1)) or largest_trip_count(loop) < _FEW:
        return []
    found: list[LoopNest] = []
    for stmt in traversal.statements(loop.body):
        if isinstance(stmt, For):
            nest = in_loops((stmt,), stmt.body)
            if nest is None or nest.checks or stmt.step not in (Const(1), Const(-1)) or largest_trip_count(stmt) < _FEW:
                return []
            found.append(nest)
        elif not isinstance(stmt, (Assign, Store, If, Comment)) and not _is_plain(stmt):
            return []
    counters = [loop.target, *(nest.loops[0].target for nest in found)]
    others = [stmt for stmt in traversal.statements(loop.body) if not isinstance(stmt, For)]
    assigned = {var for stmt in others for var in stmt.targets}
    return [] if loop.target in counters[1:] or not assigned.isdisjoint(counters) else found


def _is_plain(stmt: Stmt) -> bool:
    """Whether a statement raises an error that does not depend on an array."""
    return isinstance(stmt, Raise) and all(isinstance(part, Const) for part in stmt.message)


def _stops(loop: For, inner: list[LoopNest]) -> dict[Var, dict[Expr, None]]:
    """For each counter its exclusive upper bounds; empty where these are not known before the loop."""
    if not inner:
        return {}
    low, top = _ends(loop)
    assigned = {loop.target, *traversal.assigned_in(*loop.body)}
    found: dict[Var, dict[Expr, None]] = {loop.target: {top: None}}
    for nest in inner:
        _, stop = _ends(nest.loops[0])
        if loop.target in linear(stop).without(loop.target).names:
            return {}
        last = plus(top, -1) if linear(stop).coefficient(loop.target) > 0 else low
        furthest = plus(traversal.substitute(stop, {loop.target: last}), 0)
        found.setdefault(nest.loops[0].target, {})[furthest] = None
    ends = [low, *(end for several in found.values() for end in several)]
    return {} if any(traversal.loads(end) or traversal.free_vars(end) & assigned for end in ends) else found


def _touched(loop: For, inner: list[LoopNest]) -> Iterator[_Touched | None]:
    """The elements that a loop accesses; None for a statement that uses arrays other than by elements."""
    for nest in inner:
        yield from (_Touched(access, (loop.target, *nest.counters)) for access in nest.accesses)
    within = {id(stmt) for nest in inner for stmt in nest.body}
    for stmt in traversal.statements(loop.body):
        if id(stmt) in within or isinstance(stmt, (Raise, Comment)):
            continue
        parts = stmt.headers if isinstance(stmt, (If, For)) else ()
        looked = tuple(Assign((Var("?", BOOL),), part) for part in parts)
        alone = in_loops((loop,), looked or (stmt,))
        yield from [None] if alone is None else [_Touched(access, (loop.target,)) for access in alone.accesses]


def _run_along(loop: For) -> dict[tuple[Var, tuple[Any, ...]], Expr]:
    """The elements that each iteration accesses for all values of a counter from 0, and where these end."""
    found: dict[tuple[Var, tuple[Any, ...]], Expr] = {}
    for stmt in loop.body:
        if isinstance(stmt, For):
            low, stop = _ends(stmt)
            for inner in stmt.body if low == Const(0) else ():
                if isinstance(inner, Store):
                    found[inner.array, inner.index] = stop
                if isinstance(inner, (Assign, Store)):
                    found |= {(load.array, load.index): stop for load in unconditional_loads(inner.value)}
    return found


def _columns_of(
    group: list[_Touched],
    stops: Mapping[Var, Mapping[Expr, None]],
    varying: set[Var],
    sure: Mapping[tuple[Var, tuple[Any, ...]], Expr],
) -> _Columns | None:
    """The columns of an array, if all its accesses lie in them and an inner loop runs along one."""
    first = group[0].access.array
    if not isinstance(first.type, Array) or first.type.dtype not in _FLOATS or first.type.layout != "C":
        return None
    places: dict[_Place, None] = {}
    ends: dict[Expr, None] = {}
    inside = False
    whole: dict[_Place, Expr] = {}
    for touched in group:
        access = touched.access
        moving = [axis for axis, item in enumerate(access.index) if _moves(item, varying)]
        counter = access.index[moving[0]] if len(moving) == 1 else None
        if access.array != first or not isinstance(counter, Var) or counter not in touched.counters:
            return None
        (axis,) = moving
        ends.update(stops[counter])
        inside |= counter in touched.counters[1:]
        place = _Place(axis, tuple(None if k == axis else item for k, item in enumerate(access.index)))
        places[place] = None
        if (access.array, access.index) in sure and counter in touched.counters[1:]:
            whole[place] = sure[access.array, access.index]
    is_written = any(touched.access.writes for touched in group)
    axes = {place.axis for place in places}
    if len(axes) != 1 or first.type.rank - 1 in axes or not inside:
        return None
    several = list(places)
    if is_written and not all(_differ(a, b) for k, a in enumerate(several) for b in several[:k]):
        return None
    last = _furthest(ends)
    return _Columns(first, tuple(several), last, is_written, all((whole.get(place),) == last for place in several))


def _furthest(ends: Iterable[Expr]) -> tuple[Expr, ...]:
    """Upper bounds without those that another one dominates."""
    found: dict[tuple[Any, ...], Expr] = {}
    for end in ends:
        form = linear(end)
        other = found.setdefault(form.terms, end)
        if linear(other).constant < form.constant:
            found[form.terms] = end
    return tuple(found.values())


def _moves(item: Expr, varying: set[Var]) -> bool:
    return bool(traversal.loads(item)) or not varying.isdisjoint(traversal.free_vars(item))


def _differ(a: _Place, b: _Place) -> bool:
    """Whether two columns are disjoint."""
    pairs = ((x, y) for x, y in zip(a.index, b.index, strict=True) if x is not None and y is not None)
    gaps = (linear(x) - linear(y) for x, y in pairs)
    return any(gap.is_constant and gap.constant for gap in gaps)


def _conditions(loop: For, walked: _Walked) -> Iterator[Expr]:
    """The condition under which copies pay and all elements are within bounds."""
    low, top = _ends(loop)
    count = minus(top, low)
    yield _compared(operator.ge, count, Const(_FEW))
    for columns in walked.arrays:
        for end in columns.stops:
            gap = linear(count) - linear(end)
            if not gap.is_constant or gap.constant < 0:
                yield _compared(operator.le, end, Call(operator.mul, (Const(_LONGEST), count), (), INT))
            if end != dim(columns.array, columns.axis):
                yield _compared(operator.le, end, dim(columns.array, columns.axis))
        for k, items in enumerate(zip(*(place.index for place in columns.places), strict=True)):
            constants = [item for item in items if isinstance(item, Const)]
            others = [item for item in items if item is not None and not isinstance(item, Const)]
            for item in (*others, *([max(constants, key=_value)] if constants else ())):
                yield _compared(operator.lt, item, dim(columns.array, k))
            for item in others:
                yield _compared(operator.ge, item, Const(0))


def _value(constant: Const) -> int:
    assert isinstance(constant.value, int)
    return constant.value


def _compared(func: Any, a: Expr, b: Expr) -> Expr:
    return Call(func, (a, b), (), BOOL)


def _all(conditions: Iterator[Expr]) -> Expr:
    return functools.reduce(lambda a, b: Call(intrinsics.and_, (a, b), (), BOOL), dict.fromkeys(conditions))


def _copied(columns: _Columns, made: Mapping[tuple[Var, _Place], Var], counter: Var, *, back: bool) -> For:
    """A loop that copies the columns of an array to buffers, or back."""
    array = columns.array
    type_ = Scalar(_dtype(array), False)
    body: list[Stmt] = []
    for place in columns.places:
        row = made[array, place]
        if back:
            body.append(Store(array, place.at(counter), Load(row, (counter,), type_)))
        else:
            body.append(Store(row, (counter,), Load(array, place.at(counter), type_)))
    return For(counter, Const(0), columns.count, Const(1), tuple(body))


def _dtype(array: Var) -> str:
    assert isinstance(array.type, Array)
    return array.type.dtype


def _with_rows(block: Block, made: Mapping[tuple[Var, _Place], Var]) -> Block:
    """Statements that access columns in buffers."""
    axes = {array: place.axis for array, place in made}

    def found(array: Var, index: tuple[Any, ...]) -> tuple[Var, tuple[Any, ...]]:
        axis = axes[array]
        place = _Place(axis, tuple(None if k == axis else item for k, item in enumerate(index)))
        return made[array, place], (index[axis],)

    def change(part: Any) -> Any:
        if not isinstance(part, Load) or part.array not in axes:
            return part
        return Load(*found(part.array, part.index), part.type)

    def changed(stmt: Stmt) -> Stmt:
        new: Any = traversal.map_headers(stmt, lambda part: traversal.map_expr(part, change))
        if isinstance(new, Store) and new.array in axes:
            array, index = found(new.array, new.index)
            new = replace(new, array=array, index=index)
        return traversal.with_blocks(new, tuple(tuple(map(changed, inner)) for inner in stmt.blocks))

    return tuple(map(changed, block))
