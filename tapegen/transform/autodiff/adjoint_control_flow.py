"""Control flow in reverse order: branches and loops of the forward sweep as the backward sweep runs them."""

from __future__ import annotations

import itertools
import operator
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import Protocol

from tapegen.analysis.activity import active_operands
from tapegen.analysis.scopes import Scope
from tapegen.ir import builders, traversal
from tapegen.ir.nodes import (
    Assign,
    Block,
    Break,
    Call,
    Comment,
    Const,
    Continue,
    Effect,
    Expr,
    For,
    If,
    Stmt,
    Store,
    Tuple,
    Var,
    While,
)
from tapegen.ir.types import BOOL, INT, Scalar, is_floating
from tapegen.transform.autodiff.cotangents import CotangentMap
from tapegen.transform.autodiff.residuals import Residuals
from tapegen.transform.autodiff.selection_loops import Selection


class BlockReverser(Protocol):
    """Reverses nested blocks (`reverse.ReverseSweepBuilder`)."""

    def block(self, block: Block) -> None:
        """Reverse a block into the backward block being written."""
        ...

    def nested(self, block: Block, touched: Iterable[Var]) -> Block:
        """Reverse a nested block into a block of its own."""
        ...


class ControlFlowAdjoints:
    """Adjoints of nested statements, and what the forward sweep must save for them (see `Sweeps`)."""

    def __init__(
        self,
        blocks: BlockReverser,
        cotangents: CotangentMap,
        residuals: Residuals,
        selecting: Mapping[Stmt, Selection],
    ) -> None:
        self.blocks, self.cotangents, self.residuals = blocks, cotangents, residuals
        self.scopes = cotangents.scopes
        self.selecting = selecting
        self.scopes_of: dict[Stmt, tuple[Scope, ...]] = {}
        self.tests: dict[Stmt, Var] = {}
        self.flags: dict[Var, Expr] = {}
        self.trips: dict[Stmt, Var] = {}
        self.trip_index: dict[Stmt, Var] = {}
        self.counters: dict[Stmt, Expr] = {}

    def branches(self, stmt: If) -> None:
        """Reverse an If: the same test, and each branch in reverse order."""
        parts = self._after_both(stmt)
        around, defined = self._touched(stmt, parts)
        if not around and not defined:
            return
        self.cotangents.flush(stmt)
        for var in (*around, *defined):
            self.cotangents.materialize(var)
        state = {var: self.cotangents.of[var].named for var in defined}
        body = self.blocks.nested(parts[0], around)
        for var, named in state.items():
            self.cotangents.of[var].named = named
        orelse = self.blocks.nested(parts[1], around)
        scopes = (self.scopes.body[stmt], self.scopes.orelse[stmt])
        body, orelse = (block if _does_something(block) else () for block in (body, orelse))
        if not body and not orelse:
            return
        test = self._test(stmt)
        if not body:
            test, body, orelse, scopes = builders.not_(test), orelse, (), scopes[::-1]
        undo = If(test, body, orelse, stmt.origin)
        self.scopes_of[undo] = scopes
        self.cotangents.emit(undo)

    def _after_both(self, stmt: If) -> tuple[Block, Block]:
        """Reverse the moves that end both branches, as where one exits a loop; return the rest of the branches."""
        (body, first), (orelse, second) = map(_without_last_moves, (stmt.body, stmt.orelse))
        shared = _shared_moves(first, second)
        changed = traversal.assigned_in(*body, *orelse)
        read = frozenset().union(*map(traversal.reads, shared))
        by_reference = self.cotangents.shadowed.union(self.cotangents.shadows)
        if not shared or not read.isdisjoint(changed) or not by_reference.isdisjoint(_mentioned((shared,))):
            return stmt.body, stmt.orelse
        shared = tuple(replace(move) for move in shared)
        self.cotangents.stands_at.update(dict.fromkeys(shared, stmt))
        self.blocks.block(shared)
        return (*body, *self._without(first, shared)), (*orelse, *self._without(second, shared))

    def _without(self, run: Block, moved: Block) -> Block:
        """The other moves of a run of moves."""
        gone = {target for stmt in moved for target, _ in _pairs(stmt)}
        left: list[Stmt] = []
        for stmt in run:
            pairs = [(target, value) for target, value in _pairs(stmt) if target not in gone]
            if pairs:
                part = Assign(tuple(t for t, _ in pairs), Tuple(tuple(v for _, v in pairs)), stmt.origin)
                self.cotangents.stands_at[part] = stmt
                left.append(part)
        return tuple(left)

    def _test(self, stmt: If) -> Expr:
        """The test of an If as a variable: recording the boolean may be cheaper than recording its operands."""
        test = self.residuals.expression(stmt, stmt.test)
        is_bool = isinstance(test.type, Scalar) and test.type.dtype == "bool"
        is_flag = is_bool and not isinstance(test, (Var, Const)) and self.scopes.at[stmt].in_loop
        if not is_flag and not (isinstance(test, Var) and test in self.residuals.captures):
            return test
        if is_flag:
            flag = self.residuals.capture(stmt, test, "test")
            self.residuals.captures.discard(flag)
            self.flags[flag] = test
            test = flag
        assert isinstance(test, Var)
        self.tests[stmt] = test
        return test

    def for_loop(self, stmt: For) -> None:
        """Reverse a For: the same iterations from the last to the first."""
        if stmt in self.selecting:
            self._selection(stmt, self.selecting[stmt])
            return
        body = self._loop_body(stmt, stmt.body)
        if body is None:
            return
        start = self.residuals.expression(stmt, stmt.start)
        step = stmt.step
        if stmt in self.scopes.breaks or not isinstance(step, Const):
            k = Var(self.cotangents.names.fresh("trip"), INT)
            scaled: Expr = (
                k
                if builders.is_const(step, 1)
                else Call(operator.mul, (self.residuals.expression(stmt, step), k), (), INT)
            )
            self.counters[stmt] = builders.int_add(start, scaled)
            self._counted(stmt, k, body)
        else:
            stop = self.residuals.expression(stmt, stmt.stop)
            assert isinstance(step.value, int)
            undo = _reversed_range(stmt, start, stop, step.value, body)
            self.scopes_of[undo] = (self.scopes.body[stmt],)
            self.cotangents.emit(undo)

    def _selection(self, stmt: For, selection: Selection) -> None:
        """Reverse the single iteration of a loop that has a derivative."""
        body = self._loop_body(stmt, selection.trip)
        if body is None:
            return
        self.cotangents.emit(Assign((stmt.target,), selection.winner))
        undo = If(Call(operator.ne, (selection.winner, selection.nobody), (), BOOL), body, (), stmt.origin)
        self.scopes_of[undo] = (self.scopes.body[stmt], self.scopes.body[stmt])
        self.cotangents.emit(undo)

    def while_loop(self, stmt: While) -> None:
        """Reverse a While: as many iterations as the forward sweep made."""
        body = self._loop_body(stmt, stmt.body)
        if body is not None:
            self._counted(stmt, Var(self.cotangents.names.fresh("trip"), INT), body)

    def _counted(self, stmt: For | While, k: Var, body: Block) -> None:
        """Reverse a loop whose number of iterations is counted in the forward sweep."""
        trips = Var(self.cotangents.names.fresh("trips"), INT)
        self.trips[stmt] = trips
        self.trip_index[stmt] = k
        self.scopes.owner[trips] = self.scopes.at[stmt]
        self.residuals.captures.add(trips)
        undo = For(k, builders.int_add(trips, Const(-1)), Const(-1), Const(-1), body, stmt.origin)
        self.scopes_of[undo] = (self.scopes.body[stmt],)
        self.cotangents.emit(undo)

    def _loop_body(self, stmt: For | While, trip: Block) -> Block | None:
        """The adjoint of an iteration; None where no derivative passes through it."""
        around, _ = self._touched(stmt, (trip,))
        if not around:
            return None
        self.cotangents.flush(stmt)
        for var in around:
            self.cotangents.materialize(var)
        body = self.blocks.nested(trip, around)
        return body if _does_something(body) else None

    # ---- variables that nested blocks access -------------------------------------------------------------------------

    def _touched(self, stmt: For | While | If, blocks: tuple[Block, ...]) -> tuple[list[Var], list[Var]]:
        """Active Vars that reversing the blocks of a nested statement reads or adds to, in order of the program.

        The first list has those that are live around the statement, the second those that it defines (joins, and
        values read after it) and that hold a contribution.
        """
        inside = {id(self.scopes.body[stmt])}
        if stmt in self.scopes.orelse:
            inside.add(id(self.scopes.orelse[stmt]))
        around: dict[Var, None] = {}
        defined: dict[Var, None] = {}
        joined = self._joined(stmt)
        for var in _mentioned(blocks):
            if var not in self.cotangents.active or not is_floating(var.type):
                continue
            if var in joined or any(id(scope) in inside for scope in self.scopes.owner[var].chain):
                cot = self.cotangents.cotangent(var) if var in self.cotangents.shadows else self.cotangents.of.get(var)
                if cot is not None and not cot.empty:
                    defined.setdefault(var)
            else:
                around.setdefault(var)
        return list(around), list(defined)

    def _joined(self, stmt: Stmt) -> set[Var]:
        """Merges that an If defines: all their Assigns are inside it."""
        if not isinstance(stmt, If):
            return set()
        inside = {id(self.scopes.body[stmt]), id(self.scopes.orelse[stmt])}
        return {
            var
            for var in traversal.assigns(stmt) & self.scopes.assigns.keys()
            if all(
                any(id(scope) in inside for scope in self.scopes.at[assign].chain)
                for assign in self.scopes.assigns[var]
            )
            and not any(id(scope) in inside for scope in self.scopes.owner[var].chain)
        }


def _reversed_range(stmt: For, start: Expr, stop: Expr, step: int, body: Block) -> For:
    """`for i in range(start, stop, step)` from its last value to its first."""
    if abs(step) == 1:
        sign = -step
        return For(
            stmt.target,
            builders.int_add(stop, Const(sign)),
            builders.int_add(start, Const(sign)),
            Const(sign),
            body,
            stmt.origin,
        )
    # last value: start + ((stop - start - s) // step) * step, s being the sign of step
    sign = 1 if step > 0 else -1
    span = (
        Call(operator.sub, (builders.int_add(stop, Const(-sign)), start), (), INT)
        if not builders.is_const(start, 0)
        else builders.int_add(stop, Const(-sign))
    )
    count = Call(operator.floordiv, (span, Const(step)), (), INT)
    last = builders.int_add(start, Call(operator.mul, (count, Const(step)), (), INT))
    return For(stmt.target, last, builders.int_add(start, Const(-sign)), Const(-step), body, stmt.origin)


def _without_last_moves(block: Block) -> tuple[Block, Block]:
    """A block, and the moves at its end (an escape may follow them)."""
    end = len(block) - bool(block and isinstance(block[-1], (Break, Continue)))
    start = end
    while start and _is_move(block[start - 1]):
        start -= 1
    return (*block[:start], *block[end:]), block[start:end]


def _is_move(stmt: Stmt) -> bool:
    return isinstance(stmt, Assign) and all(isinstance(value, (Var, Const)) for _, value in _pairs(stmt))


def _pairs(stmt: Stmt) -> tuple[tuple[Var, Expr], ...]:
    """The pairs of target and source of a move."""
    return traversal.pairs(stmt) if isinstance(stmt, Assign) else ()


def _shared_moves(first: Block, second: Block) -> Block:
    """The moves that two runs of moves have in common."""
    runs = [[pair for stmt in run for pair in _pairs(stmt)] for run in (first, second)]
    if runs[0] == runs[1] and [stmt.targets for stmt in first] == [stmt.targets for stmt in second]:
        return first
    targets = Counter(target for run in runs for target, _ in run)
    values = {value for run in runs for _, value in run}
    alone = [
        (target, value)
        for target, value in runs[0]
        if (target, value) in runs[1] and targets[target] == 2 and target not in values and value not in targets
    ]
    if not alone:
        return ()
    return (Assign(tuple(target for target, _ in alone), Tuple(tuple(value for _, value in alone)), first[-1].origin),)


def _does_something(block: Block) -> bool:
    return any(not isinstance(stmt, Comment) for stmt in block)


def _mentioned(blocks: tuple[Block, ...]) -> Iterable[Var]:
    """Active Vars of blocks, in order of the program."""
    for inner in itertools.chain.from_iterable(map(traversal.statements, blocks)):
        match inner:
            case Assign(targets, value):
                yield from targets
                yield from active_operands(value)
            case Store(array, _, value):
                yield array
                yield from active_operands(value)
            case Effect(call):
                for arg in call.args:
                    yield from active_operands(arg)
