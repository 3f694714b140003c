"""Vector forward mode, several directions at once: the primal runs once, and its tangents have one axis more.

Runs of tangent statements become loops over the directions.  Tangents that only one such loop accesses stay as they
were; other tangents become tables.  Where every tangent is a scalar or an element, the directions are the last axis,
so that the loops over them access contiguous memory; else they are the first axis, and the tangents of one direction
are an array.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from tapegen.analysis.activity import is_view
from tapegen.analysis.side_effects import effects_of
from tapegen.ir import builders, intrinsics, traversal
from tapegen.ir.names import NameSupply
from tapegen.ir.nodes import (
    Assign,
    Block,
    Break,
    Call,
    Const,
    Continue,
    Effect,
    Expr,
    For,
    Function,
    If,
    Load,
    Raise,
    Return,
    Routine,
    Slice,
    Stmt,
    Store,
    Tuple,
    Var,
    While,
)
from tapegen.ir.types import INT, Array, Scalar


@dataclass(frozen=True, slots=True)
class Several:
    """A program in several directions.

    Attributes
    ----------
    function : Function
        Its last parameters and results are tables of tangents.
    last : bool
        Whether the directions are the last axis of all tables; else the first.
    """

    function: Function
    last: bool


def _runs_routine(value: Expr) -> bool:
    return isinstance(value, Call) and isinstance(value.func, Routine)


class _NotCovered(Exception):
    """The vectorized program; computing one direction at a time is always possible."""


def several(
    function: Function, tangents: Mapping[Var, Var], wrt: tuple[Var, ...], count: int, names: NameSupply
) -> Several | None:
    """Vectorize a program with tangents in one direction: as many directions as its tables of tangents have.

    Parameters
    ----------
    function : Function
        A program with tangents, as `forward` makes it.
    tangents : mapping
        Values to their tangents.
    wrt : tuple of Var
        The tangents among its parameters.
    count : int
        The number of its last results that are tangents.
    names : NameSupply
        Knows every name of the program.

    Returns
    -------
    Several or None
        None where no vectorized variant exists (lists of tangents, arrays of tangents whose aliasing is not clear).
    """
    try:
        return _Widener(function, tangents, wrt, count, names).run()
    except _NotCovered:
        return None


@dataclass(eq=False, slots=True)
class _Run:
    """A run of consecutive tangent statements."""

    statements: list[Stmt] = field(default_factory=list)

    def mentioned(self) -> Iterator[Var]:
        for stmt in self.statements:
            yield from traversal.reads(stmt)
            yield from traversal.assigns(stmt)


_Item = Stmt | _Run
_Plan = list[tuple[_Item, list["_Plan"]]]  # with the plans of nested blocks


class _Widener:
    def __init__(
        self, function: Function, tangents: Mapping[Var, Var], wrt: tuple[Var, ...], count: int, names: NameSupply
    ) -> None:
        self.function, self.wrt, self.count, self.names = function, wrt, count, names
        self.values = {dot: value for value, dot in tangents.items()}
        self.effects = effects_of(function)
        self.carrying = self._carrying()
        self._check_flattened()
        self.outside: set[Stmt] = set()  # statements on whole tables
        self.later: dict[Stmt, Stmt] = {}  # tangents before their values, and the statements that assign these
        self.tables: dict[Var, Var] = {}
        self.many = Var(names.fresh("directions"), INT)
        self.last = True

    def run(self) -> Several:
        *body, end = self.function.body
        assert isinstance(end, Return)
        body = list(self._filled(tuple(body)))
        while True:
            plan = self._plan(tuple(body))
            crossing = self._crossing(plan, end)
            if not self._moved_outside(plan, crossing):
                break
        runs = list(_runs(plan))
        self.last = all(self._by_elements(stmt) for run in runs for stmt in run.statements)
        self.tables = {var: self._table(var) for var in sorted(crossing, key=lambda var: var.name)}
        first = next(iter(self.wrt))
        axis = first.type.rank if self.last and isinstance(first.type, Array) else 0
        params = tuple(self.tables.get(param, param) for param in self.function.params)
        made = self._block(plan)
        dots = tuple(self._result(value) for value in end.values[len(end.values) - self.count :])
        head = Assign((self.many,), Call(intrinsics.dim, (self.tables[first], Const(axis)), (), INT))
        scalars = [
            Assign((table,), self._zeros((self.many,), table.type))
            for var, table in self.tables.items()
            if isinstance(var.type, Scalar) and var not in self.function.params
        ]
        values = (*end.values[: len(end.values) - self.count], *dots)
        return Several(
            Function(
                f"{self.function.name}_several",
                params,
                (head, *scalars, *made, Return(values, end.origin)),
                (),
                (),
                self.function.origin,
                self.function.globals,
            ),
            self.last,
        )

    # ---- what carries tangents -----------------------------------------------------------------------------------

    def _carrying(self) -> frozenset[Var]:
        """Everything that depends on a tangent, and the arrays that are tangents."""
        found = {*self.values, *self.wrt}
        known = {var.name: var for stmt in traversal.statements(self.function.body) for var in stmt.targets}
        known |= {param.name: param for param in self.function.params}
        before = -1
        while before != len(found):
            before = len(found)
            for stmt in traversal.statements(self.function.body):
                if isinstance(stmt, Assign) and traversal.free_vars(stmt.value) & found:
                    found.update(stmt.targets)
                elif isinstance(stmt, Store) and traversal.reads(stmt) & found:
                    roots = self.effects.roots(stmt.array)
                    found.update(
                        var for name, var in known.items() if not roots.isdisjoint(self.effects.by_name.get(name, ()))
                    )
        for stmt in traversal.statements(self.function.body):
            if isinstance(stmt, (If, For, While, Effect)) and any(
                traversal.free_vars(header) & found for header in stmt.headers
            ):
                raise _NotCovered
            if isinstance(stmt, Assign) and _runs_routine(stmt.value) and traversal.free_vars(stmt.value) & found:
                raise _NotCovered  # one call gives values and tangents, and values are computed once
        if any(not isinstance(var.type, (Array, Scalar)) for var in found):
            raise _NotCovered
        return frozenset(found)

    def _check_flattened(self) -> None:
        """Tables are in C order: a reshape may be a view of an array in another order, but a copy of its table."""
        layouts = {var.name: var.type.layout for var in self.carrying if isinstance(var.type, Array)}
        for stmt in traversal.statements(self.function.body):
            match stmt:
                case Assign((target,), Call(np.reshape | np.ravel, (Var() as base, *_))) if (
                    target in self.carrying
                    and self.effects.is_written(target)
                    and any(layouts.get(root, "C") != "C" for root in self.effects.roots(base))
                ):
                    raise _NotCovered

    def _is_carrying(self, stmt: Stmt) -> bool:
        return not (traversal.reads(stmt) | traversal.assigns(stmt)).isdisjoint(self.carrying)

    def _filled(self, block: Block) -> Block:
        """Vectors that are built from scalars, like zeros that are filled in: elements, not an array."""
        out: list[Stmt] = []
        for stmt in block:
            inner = stmt.blocks
            if inner:
                out.append(traversal.with_blocks(stmt, tuple(map(self._filled, inner))))
                continue
            match stmt:
                case Assign((target,), Call(np.array, (Tuple(items),), ()), origin) if target in self.values and all(
                    isinstance(item.type, Scalar) for item in items
                ):
                    out.append(Assign((target,), builders.zero_like(self.values[target]), origin))
                    out += [Store(target, (Const(k),), item, False, origin) for k, item in enumerate(items)]
                case _:
                    out.append(stmt)
        return tuple(out)

    # ---- runs ----------------------------------------------------------------------------------------------------

    def _plan(self, block: Block) -> _Plan:
        """The items of a block; a run moves down over other statements until one changes what the run reads."""
        self._note_later(block)
        out: _Plan = []
        run = _Run()

        def flush() -> None:
            nonlocal run
            if run.statements:
                out.append((run, []))
                run = _Run()

        for stmt in block:
            inner = stmt.blocks
            if not self._is_carrying(stmt):
                if self._disturbs(stmt, run):
                    flush()
                out.append((stmt, [self._plan(part) for part in inner]))
            elif inner:
                flush()
                out.append((stmt, [self._plan(part) for part in inner]))
            elif isinstance(stmt, Assign) and self._is_creation(stmt):
                if stmt.targets[0] in run.mentioned():
                    flush()
                out.append((stmt, []))
            elif stmt in self.outside:
                flush()
                out.append((stmt, []))
            else:
                run.statements.append(stmt)
        flush()
        return out

    def _note_later(self, block: Block) -> None:
        """Note the tangents that precede the statement that assigns their value: it may change the shape."""
        counts: Counter[Var] = Counter()
        for k, stmt in enumerate(block):
            counts.update(stmt.targets)
            for value in self._sized_by(stmt):
                if counts[value] < counts[stmt.targets[0]]:
                    given = next((other for other in block[k + 1 :] if value in other.targets), None)
                    if given is not None:
                        self.later[stmt] = given

    def _disturbs(self, stmt: Stmt, run: _Run) -> bool:
        """Whether a run cannot move over a statement: it exits the block, or changes what the run reads.

        The sizes with which its tables are created are read as well.
        """
        if any(isinstance(inner, (Break, Continue, Raise, Return)) for inner in traversal.statements((stmt,))):
            return True
        mentioned = set(run.mentioned())
        for inner in run.statements:
            mentioned.update(self._sized_by(inner))
        if traversal.assigns(stmt) & mentioned:
            return True
        read = frozenset().union(*(self.effects.roots(var) for var in mentioned))
        return any(not self.effects.written_by(part).isdisjoint(read) for part in traversal.statements((stmt,)))

    def _is_creation(self, stmt: Assign) -> bool:
        """Whether this allocates the tangent of a value: zeros, or an array that is overwritten."""
        match stmt.targets, stmt.value:
            case (Var(type=Array()),), Call(np.zeros_like | np.empty_like, (Var() as like,), ()):
                return like not in self.carrying
        return False

    def _crossing(self, plan: _Plan, end: Return) -> set[Var]:
        """Tangent variables that more than one run accesses, or a statement outside of all runs."""
        homes: dict[Var, set[object]] = {}
        for item in _items(plan):
            home = item if isinstance(item, _Run) else None
            mentioned = item.mentioned() if isinstance(item, _Run) else _own(item)
            for var in mentioned:
                if var in self.carrying:
                    homes.setdefault(var, set()).add(home)
        outer = {var for value in end.values for var in traversal.free_vars(value)} | set(self.wrt)
        outer |= set(self.function.params)
        return {var for var, found in homes.items() if len(found) > 1 or None in found or var in outer} | set(self.wrt)

    def _moved_outside(self, plan: _Plan, crossing: set[Var]) -> bool:
        """Take views of tables, and moves between tables, out of the runs; return whether there were any."""
        before = len(self.outside)
        for run in _runs(plan):
            for stmt in run.statements:
                if not isinstance(stmt, Assign):
                    continue
                arrays = [var for var in stmt.targets if isinstance(var.type, Array) and var in crossing]
                if not arrays:
                    continue
                value = stmt.value
                if isinstance(value, Load) and is_view(value):
                    value = value.array
                if isinstance(value, Var) and value in crossing:
                    self.outside.add(stmt)
                elif isinstance(stmt.value, Tuple):
                    if not all(isinstance(item, Var) and item in crossing for item in stmt.value.items) or len(
                        arrays
                    ) != len(stmt.targets):
                        raise _NotCovered
                    self.outside.add(stmt)
                else:
                    self._check_copied(stmt, arrays, crossing)
        return len(self.outside) != before

    def _check_copied(self, stmt: Assign, arrays: list[Var], crossing: set[Var]) -> None:
        """The result of a run is copied into its table: no other table may share that memory."""
        if len(stmt.targets) != 1 or not self._sized_by(stmt):
            raise _NotCovered
        if stmt.value == arrays[0] or any(
            other != arrays[0] and self.effects.may_alias(other, arrays[0]) and self.effects.is_written(other)
            for other in crossing
        ):
            raise _NotCovered

    def _sized_by(self, stmt: Stmt) -> tuple[Var, ...]:
        """The value whose shape the array that a statement makes has: its primal."""
        if not isinstance(stmt, Assign) or len(stmt.targets) != 1 or not isinstance(stmt.targets[0].type, Array):
            return ()
        like = stmt.value if isinstance(stmt.value, Var) else stmt.targets[0]
        return (self.values[like],) if like in self.values else ()

    def _by_elements(self, stmt: Stmt) -> bool:
        """Whether a statement reads and writes only scalars and elements of tangents."""
        if isinstance(stmt, Store):
            if not (_is_element(stmt.array, stmt.index) and isinstance(stmt.value.type, Scalar)):
                return False
            parts: tuple[Any, ...] = (*stmt.index, stmt.value)
        elif isinstance(stmt, Assign) and all(isinstance(target.type, Scalar) for target in stmt.targets):
            parts = (stmt.value,)
        else:
            return False
        for part in parts:
            whole = {
                load.array for load in traversal.loads(part) if not _is_element(load.array, load.index)
            } | traversal.unindexed_reads(part)
            if any(var in self.carrying for var in whole):
                return False
        return True

    # ---- tables --------------------------------------------------------------------------------------------------

    def _table(self, var: Var) -> Var:
        assert isinstance(var.type, (Array, Scalar))
        rank = var.type.rank if isinstance(var.type, Array) else 0
        layout = var.type.layout if isinstance(var.type, Array) and var not in self.wrt else "C"
        return Var(var.name, Array(var.type.dtype, rank + 1, layout))

    def _index(self, var: Var, direction: Expr | Slice, index: tuple[Any, ...] = ()) -> tuple[Any, ...]:
        """The index into a table that corresponds to an index into one tangent."""
        if not self.last:
            return (direction, *index)
        rank = var.type.rank if isinstance(var.type, Array) else 0
        missing = rank - sum(not (isinstance(item, Const) and item.value is None) for item in index)
        return (*index, *(Slice() for _ in range(missing)), direction)

    def _zeros(self, extents: tuple[Expr, ...], type_: Any) -> Call:
        dtype = Const(getattr(np, type_.dtype))
        return Call(np.zeros, (Tuple(extents), dtype), (), Array(type_.dtype, len(extents), "C"))

    def _tangent_zeros(self, like: Var, dtype: str) -> Call:
        """Allocate the tangents of a value in all directions."""
        rank = like.type.rank if isinstance(like.type, Array) else 0
        extents: list[Expr] = [Call(intrinsics.dim, (like, Const(axis)), (), INT) for axis in range(rank)]
        extents.insert(len(extents) if self.last else 0, self.many)
        return self._zeros(tuple(extents), Scalar(dtype))

    def _result(self, value: Expr) -> Expr:
        if isinstance(value, Var) and value in self.tables:
            table = self.tables[value]
            # a table that is part of another one is not contiguous
            whole = value in self.wrt or self.effects.roots(value) <= {value.name} or isinstance(value.type, Scalar)
            return table if whole else builders.copy(table)
        if isinstance(value, Const):
            return self._zeros((self.many,), Scalar("float64"))
        raise _NotCovered

    # ---- statements ----------------------------------------------------------------------------------------------

    def _block(self, plan: _Plan) -> Block:
        out: list[Stmt] = []
        moved: dict[Stmt, Stmt] = {}
        for k, (item, inner) in enumerate(plan):
            if isinstance(item, _Run):
                following = plan[k + 1][0] if k + 1 < len(plan) else None
                sizes: dict[Var, Var] = {}
                for given in {self.later[stmt] for stmt in item.statements if stmt in self.later}:
                    if given is not following or not isinstance(given, Assign) or len(given.targets) != 1:
                        raise _NotCovered
                    (value,) = given.targets
                    sizes[value] = Var(self.names.fresh(value.name), value.type)
                    out.append(Assign((sizes[value],), given.value, given.origin))
                    moved[given] = Assign((value,), sizes[value], given.origin)
                out += self._loop(item, sizes)
            elif item in moved:
                out.append(moved[item])
            elif inner:
                out.append(traversal.with_blocks(item, tuple(map(self._block, inner))))
            elif self._is_carrying(item):
                out.append(self._on_tables(item))
            else:
                out.append(item)
        return tuple(out)

    def _on_tables(self, stmt: Stmt) -> Stmt:
        """Zeros, views and moves of tables."""
        assert isinstance(stmt, Assign)
        targets = tuple(self.tables[target] for target in stmt.targets)
        match stmt.value:
            case Call(np.zeros_like | np.empty_like, (Var() as like,)):
                assert isinstance(targets[0].type, Array)
                return Assign(targets, self._tangent_zeros(like, targets[0].type.dtype), stmt.origin)
            case Load(array, index):
                new = Load(self.tables[array], self._index(array, Slice(), index), targets[0].type)
                return Assign(targets, new, stmt.origin)
            case Var() as source:
                return Assign(targets, self.tables[source], stmt.origin)
            case Tuple(items):
                return Assign(targets, Tuple(tuple(self.tables[item] for item in items)), stmt.origin)  # type: ignore[index]
        raise AssertionError("not a statement on tables")

    def _loop(self, run: _Run, sizes: Mapping[Var, Var]) -> list[Stmt]:
        """A run as a loop over the directions; `sizes` are new variables that are assigned after it."""
        direction = Var(self.names.fresh("d"), INT)
        held: dict[Var, Var] = {}
        before: list[Stmt] = []
        body: list[Stmt] = []
        after: list[Stmt] = []
        afterwards: list[Stmt] = []

        def hold(var: Var) -> Var:
            """The part of a table for this direction, as a variable."""
            if var not in held:
                held[var] = Var(self.names.fresh(var.name), var.type)
                type_ = Array(var.type.dtype, var.type.rank, "A") if isinstance(var.type, Array) else var.type
                held[var] = Var(held[var].name, type_)
                body.append(Assign((held[var],), Load(self.tables[var], self._index(var, direction), type_)))
            return held[var]

        def change(node: Any) -> Any:
            direct = isinstance(node, Load) and node.array in self.tables and node.array not in held
            if direct and _is_element(node.array, node.index):
                index = tuple(change_index(item) for item in node.index)
                return Load(self.tables[node.array], self._index(node.array, direction, index), node.type)
            if isinstance(node, Var):
                return hold(node) if node in self.tables else node
            match node:
                case Call(func, args, kwargs, type_):
                    return Call(
                        func, tuple(map(change, args)), tuple((name, change(arg)) for name, arg in kwargs), type_
                    )
                case Tuple(items):
                    return Tuple(tuple(map(change, items)))
                case Load(array, index, type_):
                    return Load(change(array), tuple(map(change_index, index)), type_)
            return node

        def change_index(item: Any) -> Any:
            if isinstance(item, Slice):
                return Slice(*(None if part is None else change(part) for part in (item.lo, item.hi, item.step)))
            return change(item)

        for stmt in run.statements:
            if isinstance(stmt, Store):
                value = change(stmt.value)
                index = tuple(change_index(item) for item in stmt.index)
                array: Var = stmt.array
                if array in self.tables and array not in held and _is_element(array, index):
                    index = self._index(array, direction, index)
                    array = self.tables[array]
                elif array in self.tables:
                    array = hold(array)
                body.append(Store(array, index, value, stmt.accumulate, stmt.origin))
                continue
            assert isinstance(stmt, Assign)
            value = change(stmt.value)
            targets: list[Var] = []
            for target in stmt.targets:
                if target not in self.tables:
                    targets.append(target)
                    continue
                local = Var(self.names.fresh(target.name), target.type)
                targets.append(local)
                held[target] = local
            body.append(Assign(tuple(targets), value, stmt.origin))
            for target in stmt.targets:
                if target not in self.tables:
                    continue
                table = self.tables[target]
                if isinstance(target.type, Array):
                    like = self._sized_by(stmt)[0]
                    like = sizes.get(like, like)
                    room = Var(self.names.fresh(target.name), table.type)
                    before.append(Assign((room,), self._tangent_zeros(like, target.type.dtype)))
                    after.append(Store(room, self._index(target, direction), held[target]))
                    afterwards.append(Assign((table,), room))
                else:
                    after.append(Store(table, (direction,), held[target]))
        loop = For(direction, Const(0), self.many, Const(1), (*body, *after), run.statements[0].origin)
        return [*before, loop, *afterwards]


def _is_element(array: Var, index: tuple[Any, ...]) -> bool:
    """Whether an index denotes one element."""
    if not isinstance(array.type, Array) or len(index) != array.type.rank:
        return False
    return all(not isinstance(item, Slice) and isinstance(item.type, Scalar) for item in index)


def _items(plan: _Plan) -> Iterator[_Item]:
    for item, inner in plan:
        yield item
        for part in inner:
            yield from _items(part)


def _runs(plan: _Plan) -> Iterator[_Run]:
    return (item for item in _items(plan) if isinstance(item, _Run))


def _own(stmt: Stmt) -> set[Var]:
    """The variables that a statement itself accesses."""
    found = set(stmt.targets)
    for header in stmt.headers:
        found |= traversal.free_vars(header)
    return found
