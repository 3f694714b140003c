"""Reverse mode: from a lowered program to a forward sweep and an *ideal* backward sweep.

The backward sweep has the nesting of the forward sweep in reverse order and reads any primal value that its forward
block saw; `transform.recording.plan` then makes those reads possible.  What is read from an array that the program
overwrites later is captured in a variable first, so every Load that appears in the backward sweep is final.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace

from tapegen.analysis.memory_access import moves
from tapegen.analysis.scopes import Scope
from tapegen.errors import Span
from tapegen.ir import builders, intrinsics, traversal
from tapegen.ir.names import NameSupply, bar_name
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
    Function,
    If,
    Index,
    Load,
    Raise,
    Return,
    Slice,
    Stmt,
    Store,
    Tuple,
    Var,
    While,
    primal_origin,
)
from tapegen.ir.types import Array, ListOf, Scalar
from tapegen.transform.analyses import Facts
from tapegen.transform.autodiff.adjoint_calls import CallAdjoints
from tapegen.transform.autodiff.adjoint_control_flow import ControlFlowAdjoints
from tapegen.transform.autodiff.cotangents import Cotangent, CotangentMap, full
from tapegen.transform.autodiff.residuals import Residuals
from tapegen.transform.autodiff.selection_loops import Selection
from tapegen.transform.autodiff.shadow_memory import ShadowArrays


@dataclass(slots=True)
class Sweeps:
    """What `reverse` returns: the backward sweep, and what the forward sweep must add for it.

    Attributes
    ----------
    backward : Block
        The ideal backward sweep.
    seeds : tuple of Var
        Cotangents of the active results, in order.
    gradients : tuple of Expr
        Cotangents of the `wrt` parameters, read at the end of the backward sweep.
    scopes_of : dict
        Backward For/If -> the forward scopes whose values its body (and orelse) may read.
    before, after : dict
        Captures around a forward statement.
    tests : dict
        Forward If -> the Var that saves its test.
    flags : dict
        Those of these Vars that can be recomputed -> the test.
    captured : dict
        (forward statement, expression) -> the Var that saves the value it had there.
    version : callable
        (forward statement, array) -> the Var that saves the contents it had there, for recomputed values.
    captures : set of Var
        Values that exist only because the backward sweep reads them; they cannot be recomputed.
    trips : dict
        Forward loop -> its iteration counter, where the number of iterations is not known on entry.
    trip_index : dict
        Forward loop -> the Var that counts its iterations down in the backward sweep, where there is one.
    counters : dict
        Forward For with an iteration counter -> its loop variable as a function of the iteration.
    references : frozenset of Var
        Shadow arrays: arrays of the forward sweep that the backward sweep reads and writes by reference.
    made : frozenset of Var
        Those of them that are created where they are assigned, and cannot be recomputed.
    """

    backward: Block
    seeds: tuple[Var, ...]
    gradients: tuple[Expr, ...]
    scopes_of: dict[Stmt, tuple[Scope, ...]]
    before: dict[Stmt, list[Assign]]
    after: dict[Stmt, list[Assign]]
    tests: dict[Stmt, Var]
    flags: dict[Var, Expr]
    captured: dict[tuple[Stmt, Expr], Var]
    version: Callable[[Stmt, Var], Var]
    captures: set[Var]
    trips: dict[Stmt, Var]
    trip_index: dict[Stmt, Var]
    counters: dict[Stmt, Expr]
    references: frozenset[Var]
    made: frozenset[Var]


def reverse(
    function: Function,
    wrt: tuple[Var, ...],
    active_results: tuple[bool, ...],
    facts: Facts,
    shadows: ShadowArrays,
    names: NameSupply,
    selecting: Mapping[Stmt, Selection],
) -> Sweeps:
    """Build the backward sweep of a lowered function.

    Parameters
    ----------
    function : Function
        The lowered program, expansions already inlined.
    wrt : tuple of Var
        Parameters whose cotangents are wanted.
    active_results : tuple of bool
        Which of the returned values are differentiated.
    facts : Facts
        Analyses of `function`.
    shadows : ShadowArrays
        The arrays whose cotangents the forward sweep creates.
    names : NameSupply
        Supply of fresh names; knows every name of `function`.
    selecting : mapping
        Loops of which only one iteration is reversed.
    """
    return ReverseSweepBuilder(function, wrt, active_results, facts, shadows, names, selecting).run()


class ReverseSweepBuilder:
    """Writes the backward sweep of one function, statement by statement from the last to the first."""

    def __init__(
        self,
        function: Function,
        wrt: tuple[Var, ...],
        active_results: tuple[bool, ...],
        facts: Facts,
        shadows: ShadowArrays,
        names: NameSupply,
        selecting: Mapping[Stmt, Selection],
    ) -> None:
        self.function, self.names, self.shadows = function, names, shadows.of
        self.scopes, self.shapes, self.effects = facts.scopes, facts.shapes, facts.effects
        self.residuals = Residuals(function, facts, shadows, names)
        self.cotangents = CotangentMap(function, facts, shadows, names, self.residuals, self._reverse_view)
        self.wrt = wrt
        self.active_results = active_results
        self.shares, self.made = shadows.shares, shadows.made
        self.calls = CallAdjoints(facts, self.cotangents, self.residuals)
        self.loops: list[Span | None] = []  # those that are being reversed
        self.branches: list[Span | None] = []  # the conditions of those that are being reversed
        self.explained: set[Span | None] = set()  # those of them whose own statements are reversed inside
        self.control = ControlFlowAdjoints(self, self.cotangents, self.residuals, selecting)

    # ---- driver ------------------------------------------------------------------------------------------------------

    def run(self) -> Sweeps:
        *body, last = self.function.body
        assert isinstance(last, Return)
        seeds = self._seed(last)
        self.block(tuple(body))
        gradients = tuple(self._gradient(param) for param in self.wrt)
        for param in self.function.params:
            if param in self.shadows and param not in self.wrt:
                self.cotangents.emit(Store(self.shadows[param], (), Const(0.0)))
        return Sweeps(
            tuple(self.cotangents.out),
            seeds,
            gradients,
            self.control.scopes_of,
            self.residuals.before,
            self.residuals.after,
            self.control.tests,
            self.control.flags,
            self.residuals.captured,
            self.residuals.version,
            self.residuals.captures,
            self.control.trips,
            self.control.trip_index,
            self.control.counters,
            frozenset(self.shadows.values()),
            self.made,
        )

    def _seed(self, last: Return) -> tuple[Var, ...]:
        seeds: list[Var] = []
        for position, (value, active) in enumerate(zip(last.values, self.active_results, strict=True)):
            if not active:
                continue
            base = value.name if isinstance(value, Var) else self.function.name
            taken = any(seed.name == bar_name(base) for seed in seeds)
            name = self.names.fresh(bar_name(base) if not taken else f"{bar_name(base)}_{position}")
            type_ = value.type
            if isinstance(type_, Array):
                type_ = Array(type_.dtype, type_.rank, "A", type_.unit)
            seed = Var(name, type_)
            seeds.append(seed)
            if isinstance(value, Var) and value in self.cotangents.active:
                if isinstance(type_, Scalar) and value not in self.cotangents.of:
                    self.cotangents.of[value] = Cotangent(seed, named=True)
                else:
                    self.cotangents.contribute(value, seed, owned=False)
                if isinstance(type_, ListOf) and value in self.shadows:
                    self.cotangents.materialize(
                        value
                    )  # other variables that hold its items take their cotangents without accessing the list
        return tuple(seeds)

    def _gradient(self, param: Var) -> Expr:
        if param in self.shadows:
            return self.cotangents.taken(param)
        cot = self.cotangents.cotangent(param)
        owned = cot.named or len(cot.pending) > 1 or (bool(cot.pending) and cot.pending[0].owned)
        origin = self.cotangents.origin_of(cot)
        total = self.cotangents.consume(param)
        if total is None:
            total = builders.zero_like(param)
        elif isinstance(param.type, Array):
            total = full(total, param)
            if not owned and not builders.is_fresh(total):  # results share no memory with each other or with the seed
                total = builders.copy(total)
        if total != cot.name:
            self.cotangents.emit(Assign((cot.name,), total), origin)
        return cot.name

    def _reverse_view(self, stmt: Assign, view: Var, call: Call, total: Expr) -> None:
        self.calls.call(stmt, (view,), call, (total,))

    # ---- blocks ------------------------------------------------------------------------------------------------------

    def block(self, block: Block) -> None:
        """Reverse a block into `self.cotangents.out`."""
        outer, behind, explained = self.cotangents.origin, None, False
        for stmt in reversed(block):
            start = len(self.cotangents.out)
            self.cotangents.origin, origin = stmt.origin, primal_origin(stmt)
            self.cotangents.here = (self.cotangents.stands_at.get(stmt, stmt), True)
            if isinstance(stmt, (For, While)):
                explained, behind = self._loop(stmt, origin), origin
            elif isinstance(stmt, If):
                self.branches.append(origin)
                self._statement(stmt)
                self.branches.pop()
                behind = behind if origin == behind else None
            else:
                self._statement(stmt)
                if len(self.cotangents.out) > start and origin is not None:
                    if origin in self.loops:
                        self.explained.add(origin)  # the loop moves its variables from one iteration to the next
                    elif origin == behind:  # the first values of these variables
                        if not explained and not _is_move(stmt):
                            self._comment(start, origin)
                    elif origin not in self.branches or not _is_move(stmt):
                        self._comment(start, origin)
                behind = behind if origin == behind else None
        self.cotangents.origin = outer

    def _loop(self, stmt: For | While, origin: Span | None) -> bool:
        """Reverse a loop; one comment above its header explains what it does with its variables.  False without one."""
        start = len(self.cotangents.out)
        self.loops.append(origin)
        self._statement(stmt)
        self.loops.pop()
        out = self.cotangents.out
        headers = [k for k in range(start, len(out)) if isinstance(out[k], (For, While))]
        if origin not in self.explained or not headers:
            return False
        self.explained.discard(origin)
        self._comment(headers[0], origin)
        return True

    def _comment(self, place: int, origin: Span | None) -> None:
        """Insert the user's statement above the lines that reverse it."""
        if origin is not None and (text := origin.text()):
            self.cotangents.out.insert(place, Comment(text, origin.of_adjoint))

    def nested(self, block: Block, touched: Iterable[Var]) -> Block:
        """Reverse a nested block into a block of its own; `touched` cotangents are complete at its end."""
        outer_out, self.cotangents.out = self.cotangents.out, []
        outer_guards, self.cotangents.guards.kept = self.cotangents.guards.kept, dict(self.cotangents.guards.kept)
        self.block(block)
        if block:
            self.cotangents.here = (self.cotangents.stands_at.get(block[0], block[0]), False)
        for var in touched:
            cot = self.cotangents.of[var]
            if cot.pending or not cot.named:
                self.cotangents.materialize(var)
        inner, self.cotangents.out = self.cotangents.out, outer_out
        self.cotangents.guards.kept = outer_guards
        return tuple(inner)

    # ---- statements --------------------------------------------------------------------------------------------------

    def _statement(self, stmt: Stmt) -> None:
        match stmt:
            case Assign():
                self._assign(stmt)
            case Store():
                if stmt.array in self.cotangents.active:
                    self.cotangents.flush(stmt)
                    self._store(stmt)
            case Effect(Call(intrinsics.append | intrinsics.set_item)):
                self.calls.list_effect(stmt)
            case If():
                self.control.branches(stmt)
            case For():
                self.control.for_loop(stmt)
            case While():
                self.control.while_loop(stmt)
            case Effect() | Raise() | Break() | Continue() | Comment():
                pass
            case _:
                raise AssertionError(f"cannot reverse {type(stmt).__name__}")

    def _assign(self, stmt: Assign) -> None:
        targets, value = stmt.targets, stmt.value
        if not any(target in self.cotangents.active for target in targets):
            if isinstance(value, Call) and value.func is intrinsics.pop:
                self._dropped(value, targets[0])
            return
        if stmt in self.shares:
            self._view_or_copy(stmt, targets[0])
            return
        if any(target in self.shadows for target in targets) and any(move.sources for _, move in moves(stmt)):
            self._moved(stmt)
            return
        if isinstance(value, Tuple) and len(value.items) == len(targets):
            self._latch(targets, value.items)
        elif len(targets) == 1 and isinstance(value, (Var, Const)):
            self._latch(targets, (value,))
        elif len(targets) == 1:
            self._value(stmt, targets[0], value)
        else:
            self._values(stmt)

    def _dropped(self, call: Call, target: Var) -> None:
        """A popped item that nothing reads: the list of cotangents needs as many items all the same."""
        sequence = call.args[0]
        if sequence in self.cotangents.active and sequence not in self.shadows:
            self.calls.popped(call, builders.zero_like(target))

    def _moved(self, stmt: Assign) -> None:
        """The shadow array of a move, a view or an item is the same of the shadow array of its source."""
        if isinstance(stmt.value, Call) and stmt.value.func is intrinsics.primal_as:
            self._value(stmt, stmt.targets[0], stmt.value)
        elif isinstance(stmt.value, (Tuple, Var)):
            items = stmt.value.items if isinstance(stmt.value, Tuple) else (stmt.value,)
            rest = [(t, item) for t, item in zip(stmt.targets, items, strict=True) if t not in self.shadows]
            self._latch(tuple(t for t, _ in rest), tuple(item for _, item in rest))

    def _view_or_copy(self, stmt: Assign, target: Var) -> None:
        """A copy passes its cotangent on; a view has none of its own."""
        outer, self.cotangents.out = self.cotangents.out, []
        self._value(stmt, target, stmt.value)
        inner, self.cotangents.out = self.cotangents.out, outer
        self.cotangents.emit(
            If(Call(operator.not_, (self.shares[stmt],), (), Scalar("bool")), tuple(inner), (), stmt.origin)
        )

    def _latch(self, targets: tuple[Var, ...], values: tuple[Expr, ...]) -> None:
        """`x, y = y, x`, or one move: the cotangents move back, all read before any is added."""
        moved = []
        for target, value in zip(targets, values, strict=True):
            if target not in self.cotangents.active:
                continue
            taken = self.cotangents.take(target)
            if taken is not None and isinstance(value, Var) and value in self.cotangents.active:
                taken = replace(taken, expr=self.cotangents.as_variable(target, taken.expr))
                moved.append((value, taken))
        for value, taken in moved:
            self.cotangents.contribute(
                value, taken.expr, owned=taken.owned and not self.cotangents.is_guarded(taken.expr)
            )

    def _value(self, stmt: Assign, target: Var, value: Expr) -> None:
        if target in self.cotangents.shadowed and self.cotangents.cotangent(target).named:
            self.cotangents.forget(target)  # what was added to a shadow view is in its base already
            return
        if isinstance(target.type, ListOf):
            if target not in self.shadows:
                self.calls.new_list(stmt, target, value)
            return
        if self.scopes.is_merge(target):
            taken = self.cotangents.take(target)
            total = taken.expr if taken is not None else None
        else:
            total = self.cotangents.consume(target)
        if isinstance(value, Call) and value.func is intrinsics.pop:
            self.calls.popped(value, builders.zero_like(target) if total is None else total)
            self.cotangents.forget(target)
            return
        if total is None:
            return
        total = self.cotangents.as_variable(target, total)
        if isinstance(value, Load):
            self._load(stmt, value, total)
        elif isinstance(value, Call):
            self.calls.call(stmt, (target,), value, (total,))
        if not self.scopes.is_merge(target):
            self.cotangents.forget(target)

    def _values(self, stmt: Assign) -> None:
        totals = [
            self.cotangents.consume(target) if target in self.cotangents.active else None for target in stmt.targets
        ]
        if any(total is not None for total in totals) and isinstance(stmt.value, Call):
            pairs = zip(stmt.targets, totals, strict=True)
            totals = [total if total is None else self.cotangents.as_variable(target, total) for target, total in pairs]
            self.calls.call(stmt, stmt.targets, stmt.value, tuple(totals))

    def _load(self, stmt: Assign, load: Load, total: Expr) -> None:
        if load.array not in self.cotangents.active:
            return
        if isinstance(load.array.type, ListOf):
            raise AssertionError("lists are read through ops.item")
        base_bar = self.cotangents.materialize(load.array)
        self.cotangents.emit(Store(base_bar, self.residuals.index(stmt, load.index), total, accumulate=True))

    def _store(self, stmt: Store) -> None:
        base_bar = self.cotangents.materialize(stmt.array)
        index = self.residuals.index(stmt, stmt.index)
        value = stmt.value
        part_type = self._part_type(stmt)
        reads = isinstance(value, Var) and value in self.cotangents.active
        is_scalar = isinstance(part_type, Scalar)
        if reads:
            assert isinstance(value, Var)
            part: Expr = Load(base_bar, index, part_type) if index or is_scalar else base_bar
            if not stmt.accumulate and self._repeats(stmt.index):
                part = self.calls.last_written(stmt, base_bar, index, part)
            if not is_scalar or not stmt.accumulate:
                held = Var(
                    self.names.fresh(bar_name(value.name) if self._fits(value, part_type) else "part_bar"), part_type
                )
                self.cotangents.emit(
                    Assign((held,), part if is_scalar or builders.is_fresh(part) else builders.copy(part))
                )
                part = held
            else:
                held = Var(self.names.fresh(bar_name(value.name)), part_type)
                self.cotangents.emit(Assign((held,), part))
                part = held
            region = self.shapes.regions.get(stmt)
            if isinstance(value.type, Array) and region is not None:
                term = self.calls.summed(part, value, region)
            else:
                term = self.calls.unbroadcast(part, value)
        if not stmt.accumulate:
            zero: Expr = Const(0.0)
            self.cotangents.emit(Store(base_bar, index, zero))
        if reads:
            assert isinstance(value, Var)
            term = self.cotangents.as_variable(value, term, stmt)
            self.cotangents.contribute(value, term, owned=not self.cotangents.is_guarded(term))

    def _fits(self, value: Var, type_: object) -> bool:
        return builders.rank_of(value.type) == builders.rank_of(type_)  # type: ignore[arg-type]

    def _part_type(self, stmt: Store) -> Array | Scalar:
        array = stmt.array.type
        assert isinstance(array, Array)
        rank = array.rank
        fancy = 0
        for item in stmt.index:
            if isinstance(item, Slice):
                continue
            if isinstance(item, Const) and item.value is None:
                rank += 1
            elif isinstance(item.type, Array):
                if item.type.dtype == "bool":
                    rank -= item.type.rank
                    fancy = max(fancy, 1)
                else:
                    rank -= 1
                    fancy = max(fancy, item.type.rank)
            else:
                rank -= 1
        rank += fancy
        if rank == 0 and stmt.index:
            return Scalar(array.dtype, False)
        return Array(array.dtype, rank, "A")

    @staticmethod
    def _repeats(index: tuple[Index, ...]) -> bool:
        """Whether an index can denote an element twice."""
        return any(
            not isinstance(item, Slice) and isinstance(item.type, Array) and item.type.dtype != "bool" for item in index
        )


def _is_move(stmt: Stmt) -> bool:
    """Whether a statement passes values on without computing any."""
    if isinstance(stmt, Store):
        return isinstance(stmt.value, (Var, Const)) and not stmt.accumulate
    return isinstance(stmt, Assign) and all(isinstance(value, (Var, Const)) for _, value in traversal.pairs(stmt))
