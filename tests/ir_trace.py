"""Runs a lowered program and keeps a journal of which memory cells each statement reads and writes, and when.

Every element of every array is a cell with a number of its own.  A float is just 0.5: only integers, conditions on
integers and the cells matter.  A condition on floats comes from a stream of random bits.
"""

import operator
import random
from dataclasses import dataclass
from typing import Any

import numpy as np

from tapegen.analysis.memory_access import expressions, operands, written
from tapegen.ir import intrinsics
from tapegen.ir.nodes import (
    Assign,
    Block,
    Break,
    Call,
    Const,
    Continue,
    Effect,
    For,
    Function,
    If,
    Load,
    Raise,
    Return,
    Slice,
    Stmt,
    Store,
    Tuple,
    Var,
    While,
)
from tapegen.ir.types import FLOAT, Array, Scalar


@dataclass
class Cells:
    """An array: the numbers of its cells, and the integers in them if it is an index array."""

    ids: np.ndarray
    values: np.ndarray | None = None

    def view(self, change: Any) -> "Cells":
        return Cells(change(self.ids), None if self.values is None else change(self.values))


@dataclass(frozen=True, eq=False)
class Access:
    """One execution of a statement touching an array."""

    time: int
    stmt: Stmt
    array: Var
    index: tuple[Any, ...]
    point: tuple[Any, ...]  # the index with its numbers
    cells: tuple[int, ...]
    trips: tuple[tuple[int, int], ...]  # (identity of the loop, iteration) of the loops around
    env: dict[Var, Any]


class TooLong(Exception):
    """The program runs for longer than a test should."""


class Trace:
    """The journal of one run."""

    def __init__(self, function: Function, arguments: dict[str, Any], seed: int = 0, limit: int = 20_000) -> None:
        self.random = random.Random(seed)
        self.limit = limit
        self.time = self.cells = 0
        self.env: dict[Var, Any] = {}
        self.reads: list[Access] = []
        self.writes: list[Access] = []
        self.raised: type[Exception] | None = None
        self._trips: list[tuple[int, int]] = []
        for param in function.params:
            value = arguments[param.name]
            if isinstance(param.type, Array):
                ids = self.fresh(np.shape(value))
                self.env[param] = Cells(ids.ids, value if param.type.dtype == "int64" else None)
            else:
                self.env[param] = value
        try:
            self.block(function.body)
        except (IndexError, ValueError) as error:
            self.raised = type(error)

    def fresh(self, shape: tuple[int, ...]) -> Cells:
        count = int(np.prod(shape))
        ids = np.arange(self.cells, self.cells + count).reshape(shape)
        self.cells += count
        return Cells(ids)

    def tick(self) -> int:
        self.time += 1
        if self.time > self.limit:
            raise TooLong
        return self.time

    # ---- statements --------------------------------------------------------------------------------------------------

    def block(self, block: Block) -> str:
        for stmt in block:
            end = self.statement(stmt)
            if end != "fall":
                return end
        return "fall"

    def statement(self, stmt: Stmt) -> str:
        if not isinstance(stmt, While):
            self.note_reads(stmt)
        match stmt:
            case Assign((target,), value):
                self.env[target] = self.value(value)
            case Assign(targets, Tuple(items)):
                self.env.update(zip(targets, [self.value(item) for item in items]))
            case Store(array, index, value):
                self.value(value)
                self.note(self.writes, stmt, array, index)
            case Effect(call):
                self.value(call)
                for var in written(stmt):
                    self.note(self.writes, stmt, var, ())
            case If(test, body, orelse):
                return self.block(body if self.value(test) else orelse)
            case For(target, start, stop, step, body):
                for trip, k in enumerate(range(self.value(start), self.value(stop), self.value(step))):
                    self.env[target] = k
                    if self.trip(stmt, trip, body) == "break":
                        break
            case While(test, body):
                trip = 0
                while True:
                    self._trips.append((id(stmt), trip))
                    self.note_reads(stmt)
                    self._trips.pop()
                    if not self.value(test) or self.trip(stmt, trip, body) == "break":
                        break
                    trip += 1
            case Break():
                return "break"
            case Continue():
                return "continue"
            case Raise():
                raise ValueError
            case Return():
                return "return"
        return "fall"

    def trip(self, loop: Stmt, trip: int, body: Block) -> str:
        self._trips.append((id(loop), trip))
        self.tick()
        end = self.block(body)
        self._trips.pop()
        return end

    def note_reads(self, stmt: Stmt) -> None:
        for expr in expressions(stmt):
            for array, index in operands(expr):
                self.note(self.reads, stmt, array, index)

    def note(self, journal: list[Access], stmt: Stmt, array: Var, index: tuple[Any, ...]) -> None:
        point = tuple(self.position(item) for item in index)
        cells = np.ravel(self.env[array].ids[point])
        env = dict(self.env)
        journal.append(Access(self.tick(), stmt, array, index, point, tuple(map(int, cells)), tuple(self._trips), env))

    # ---- expressions -------------------------------------------------------------------------------------------------

    def position(self, item: Any) -> Any:
        if isinstance(item, Slice):
            return slice(*(None if part is None else self.value(part) for part in (item.lo, item.hi, item.step)))
        found = self.value(item)
        return found.values if isinstance(found, Cells) else found

    def value(self, expr: Any) -> Any:
        match expr:
            case Const(value):
                return value
            case Var():
                return self.env[expr]
            case Tuple(items):
                return tuple(self.value(item) for item in items)
            case Load(array, index):
                found = self.env[array].view(lambda a: a[tuple(self.position(item) for item in index)])
                if isinstance(expr.type, Scalar):
                    return 0.5 if found.values is None else int(found.values)
                advanced = any(isinstance(getattr(item, "type", None), Array) for item in index)
                return self.fresh(found.ids.shape) if advanced else found
            case Call(intrinsics.and_, args):
                return all(self.value(arg) for arg in args)
            case Call(intrinsics.or_, args):
                return any(self.value(arg) for arg in args)
            case Call(intrinsics.ifelse, (test, a, b)):
                return self.value(a) if self.value(test) else self.value(b)
            case Call(intrinsics.dim, (array, axis)):
                return self.value(array).ids.shape[self.value(axis)]
            case Call(func, args):
                return self.call(func, [self.value(arg) for arg in args], expr)
        raise ValueError(f"no value is known for {expr}")

    def call(self, func: Any, args: list[Any], expr: Call) -> Any:
        if func in (np.zeros, np.empty, np.ones):
            return self.fresh(args[0] if isinstance(args[0], tuple) else (args[0],))
        if func is len:
            return len(args[0].ids)
        if func in intrinsics.VIEW_CALLS:
            found = args[0].view(lambda a: func(a, *args[1:]))
            return found if np.shares_memory(found.ids, args[0].ids) else self.fresh(found.ids.shape)
        if isinstance(expr.type, Array):
            return self.fresh(np.broadcast_shapes(*(arg.ids.shape for arg in args if isinstance(arg, Cells))))
        if expr.type == FLOAT:
            return 0.5
        if func in (operator.lt, operator.gt, operator.le, operator.ge) and 0.5 in args:
            return self.random.random() < 0.5
        return func(*args)
