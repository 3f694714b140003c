"""Make the reads of the backward sweep real: live, re-evaluate or record.

For each primal value that the backward sweep reads, in the order of preference:

* **live**: its definition runs once and its name is not reused, so it still holds the value;
* **trip**: a loop counter (also `i = i + 1`), known from the trip that is being undone;
* **again**: evaluated a second time at the start of the backward block, from values that are available;
* **record**: written to a tape where it is defined, read back at the start of the backward block.

An array that a time loop overwrites, but that an inner loop only reads, is recorded once per pass of the outer loop
rather than element by element.
"""

from __future__ import annotations

import operator
import re
from collections import Counter
from collections.abc import Iterable, Set
from dataclasses import dataclass, replace
from typing import Literal

import numpy as np

from tapegen.analysis.activity import is_view
from tapegen.analysis.scopes import Scope
from tapegen.errors import NotDifferentiable
from tapegen.ir import build, ops, rewrite
from tapegen.ir.names import NameSupply
from tapegen.ir.nodes import (
    Assign,
    Block,
    Break,
    Call,
    Const,
    Expr,
    For,
    Function,
    If,
    Load,
    Pop,
    Push,
    Stmt,
    Tuple,
    Var,
    While,
)
from tapegen.ir.types import Array, ListOf, Scalar
from tapegen.transform.facts import Facts
from tapegen.transform.reverse import Sweeps

Way = Literal["live", "trip", "again", "record"]
Key = tuple[Var, int]  # a Var and the identity of the scope whose value is meant

_VERSION = re.compile(r"_\d+$")

CHEAP = 10
"""Work that is done again rather than recorded, in units of one addition."""

_COST = {
    operator.truediv: 4,
    np.divide: 4,
    np.sqrt: 5,
    np.copy: 1,
    ops.dim: 0,
    operator.getitem: 0,
}
_UNIT = {operator.add, operator.sub, operator.mul, operator.neg, operator.pos, abs, np.abs, np.square, np.negative}
_UNIT |= {
    np.add,
    np.subtract,
    np.multiply,
    np.maximum,
    np.minimum,
    np.where,
    float,
    int,
    operator.floordiv,
    operator.mod,
}
_UNIT |= {
    operator.lt,
    operator.le,
    operator.gt,
    operator.ge,
    operator.eq,
    operator.ne,
    operator.not_,
    ops.and_,
    ops.or_,
}
_EXPENSIVE = 30
_READ = 2  # reading a tape


@dataclass(slots=True)
class Decision:
    """How one value reaches the backward sweep, and why."""

    var: Var
    scope: Scope
    way: Way
    why: str
    tape: str = ""  # of a recorded value: the tape's key (a name may be recorded in two scopes)


@dataclass(slots=True)
class Recorded:
    """What `record` returns: both sweeps with Push and Pop in place, and the decisions."""

    forward: Block
    backward: Block
    decisions: list[Decision]


def record(
    function: Function,
    sweeps: Sweeps,
    facts: Facts,
    names: NameSupply,
    user_names: Set[str],
    *,
    everything: bool = False,
) -> Recorded:
    """Decide how each primal value reaches the backward sweep, and rewrite both sweeps accordingly.

    Parameters
    ----------
    function : Function
        The lowered program.
    sweeps : Sweeps
        The result of `reverse`.
    facts : Facts
        Analyses of `function`.
    names : NameSupply
        Supply of fresh names.
    user_names : set of str
        Names of the user; other values outside loops are written again where they are read once and cheap.
    everything : bool
        Record every value of a loop instead of evaluating any again (used to test the analysis).
    """
    recorder = _Recorder(function, sweeps, facts, names, user_names, everything)
    return recorder.run()


class _Recorder:
    def __init__(
        self,
        function: Function,
        sweeps: Sweeps,
        facts: Facts,
        names: NameSupply,
        user_names: Set[str],
        everything: bool,
    ) -> None:
        self.user_names = user_names
        self.function, self.sweeps, self.names = function, sweeps, names
        self.facts = facts
        self.scopes, self.effects, self.shapes = facts.scopes, facts.effects, facts.shapes
        self.cheap = -1 if everything else CHEAP
        self.uses: Counter[Var] = Counter()
        self.leaf_uses: Counter[Key] = Counter()
        self.decided: dict[Key, Decision] = {}
        self.places: list[tuple[Var, Scope]] = []
        self.sure: set[Key] = set()  # keys that must be recorded whatever else is decided
        self.memo: dict[Key, tuple[int, frozenset[Key]]] = {}
        self.by_scope: dict[int, list[Decision]] = {}
        self.snapshots: dict[tuple[Var, Stmt], Var] = {}
        self.rewritten: dict[Var, Assign] = {}  # values read again from a snapshot
        self.order = {stmt: k for k, stmt in enumerate(rewrite.statements(function.body))}
        self.shape_reads: list[tuple[Var, Scope]] = []
        self.shape_of: dict[Key, tuple[Expr, ...]] = {}
        self.spare: dict[int, list[Assign]] = {}  # extents kept, by scope

    def run(self) -> Recorded:
        needs = list(self._reads(self.sweeps.backward, self.scopes.root))
        for expr in self.sweeps.gradients:
            contents, _ = rewrite.reads_by_kind(expr)
            needs.extend((var, self.scopes.root) for var in contents if self._is_primal(var))
        keys = []
        for var, scope in needs:
            owner = self.scopes.owner_seen_from(var, scope)
            keys.append((var, owner))
        for var, owner in dict.fromkeys(keys):
            _, leaves = self._cost(var, owner)
            self.leaf_uses.update(leaves)
            if (var, id(owner)) in leaves:
                self.sure.add((var, id(owner)))
        for var, owner in sorted(keys, key=lambda key: self._position(key[0])):
            self._require(var, owner)
        self._shapes()
        backward = (
            *self._restored(self.scopes.root),
            *self._backward(self.sweeps.backward, self.scopes.root),
        )
        forward = self._forward(self.function.body[:-1], self.scopes.root)
        decisions = sorted(self.decided.values(), key=lambda d: (self._position(d.var), d.var.name))
        return Recorded(forward, backward, decisions)

    # ---- what is read ------------------------------------------------------------------------------------------------

    def _is_primal(self, var: Var) -> bool:
        return var in self.scopes.owner

    def _reads(self, block: Block, scope: Scope) -> Iterable[tuple[Var, Scope]]:
        for stmt in block:
            for header in rewrite.headers(stmt):
                self.uses.update(part for part in rewrite.subexpressions(header) if isinstance(part, Var))
                contents, shapes = rewrite.reads_by_kind(header)
                for var in sorted(contents, key=lambda v: v.name):
                    if self._is_primal(var):
                        yield var, scope
                for var in sorted(shapes, key=lambda v: v.name):
                    if self._is_primal(var):
                        self.shape_reads.append((var, scope))
            inner_scopes = self.sweeps.scopes_of.get(stmt)
            for k, inner in enumerate(rewrite.blocks(stmt)):
                yield from self._reads(inner, inner_scopes[k] if inner_scopes is not None else scope)

    def _position(self, var: Var) -> int:
        assigns = self.scopes.assigns.get(var)
        if not assigns:
            return -1
        return min(self.order.get(stmt, len(self.order)) for stmt in assigns)

    # ---- decisions ---------------------------------------------------------------------------------------------------

    def _cost(self, var: Var, owner: Scope) -> tuple[int, frozenset[Key]]:
        """Work to have a value in the backward sweep again, and the leaves that must be recorded for it."""
        key = (var, id(owner))
        if key in self.memo:
            return self.memo[key]
        self.memo[key] = _READ, frozenset({key})  # the answer when it has to be recorded
        if self._is_live(var, owner) or self._from_trip(var, owner) is not None:
            self.memo[key] = 0, frozenset()
            return self.memo[key]
        stmt = self._definition(var, owner)
        if stmt is not None:
            cost = self._work(stmt.value)
            leaves: frozenset[Key] = frozenset()
            for operand in rewrite.reads_by_kind(stmt.value)[0]:
                seen = self.scopes.owner_seen_from(operand, self.scopes.at.get(stmt, owner))
                more, below = self._cost(operand, seen)
                cost += more
                leaves |= below
            if cost <= self.cheap:
                self.memo[key] = cost, leaves
        return self.memo[key]

    def _is_live(self, var: Var, owner: Scope) -> bool:
        return not owner.in_loop

    def _definition(self, var: Var, owner: Scope) -> Assign | None:
        """The Assign by which a value can be evaluated again."""
        if var in self.rewritten:
            return self.rewritten[var]
        if var in self.sweeps.captures or self.scopes.is_merge(var):
            return None
        assigns = self.scopes.assigns.get(var)
        if not assigns or len(assigns[0].targets) != 1 or isinstance(var.type, ListOf):
            return None
        stmt = assigns[0]
        kept_in = self.facts.kept_in(var, self.scopes.at[stmt]) if self.cheap >= 0 else None
        if kept_in is not None and self._work(stmt.value) > 1:
            again = Assign((var,), kept_in, stmt.origin)
            self.scopes.at[again] = self.scopes.at[stmt]
            self.rewritten[var] = again
            return again
        if isinstance(stmt.value, Call) and stmt.value.func in (ops.pop, ops.item, ops.new_list):
            return None
        if isinstance(var.type, Array) and not is_view(stmt.value) and self.effects.is_written(var):
            return None  # what was stored into it since is not in its definition
        for load in rewrite.loads(stmt.value):
            if not self.facts.is_final(stmt, load.array, load.index):
                snapshot = self._snapshot(stmt, load) if load is stmt.value else None
                if snapshot is None:
                    return None
                again = Assign(stmt.targets, Load(snapshot, load.index, load.type), stmt.origin)
                self.scopes.at[again] = self.scopes.at[stmt]
                self.rewritten[var] = again
                return again
        if isinstance(stmt.value, Load):
            return stmt
        kept: dict[Var, Expr] = {}
        for operand in rewrite.reads_by_kind(stmt.value)[0]:
            if isinstance(operand.type, Array) and not self.facts.is_final(stmt, operand, ()):
                capture = self.sweeps.captured.get((stmt, build.copy(operand)))
                if capture is None or is_view(stmt.value):
                    return None
                kept[operand] = capture
        if kept:
            stmt = Assign(stmt.targets, rewrite.substitute(stmt.value, kept), stmt.origin)
            self.scopes.at[stmt] = self.scopes.at[assigns[0]]
            self.rewritten[var] = stmt
        return stmt

    def _work(self, value: Expr) -> int:
        total = 0
        for part in rewrite.subexpressions(value):
            if isinstance(part, Call):
                total += (
                    1 if part.func in _UNIT else _COST.get(part.func, 0 if part.func in ops.VIEW_CALLS else _EXPENSIVE)
                )
            elif isinstance(part, Load):
                total += 1
        return total

    def _snapshot(self, stmt: Assign, load: Load) -> Var | None:
        """A copy of the array taken before the loops that only read it."""
        owner = self.scopes.owner.get(load.array)
        if owner is None or not isinstance(load.array.type, Array) or isinstance(load.type, Array):
            return None
        roots = self.effects.roots(load.array)
        best: Stmt | None = None
        depth = 0
        levels = 0
        for scope in self.scopes.at[stmt].chain():
            if not scope.is_loop:
                continue
            loop = scope.header
            assert loop is not None
            if self._writes(loop, roots) or self.scopes.owner[load.array].within(scope) or load.array in scope.carried:
                break
            levels += 1
            best, depth = loop, levels
        if best is None or depth < load.array.type.rank:
            return None
        where = self.scopes.at[best]
        key = (load.array, best)
        if key not in self.snapshots:
            type_ = build.copy(load.array).type
            kept = Var(self.names.fresh(f"{load.array.name}_kept"), type_)
            self.snapshots[key] = kept
            copied = Assign((kept,), build.copy(load.array), best.origin)
            self.sweeps.before.setdefault(best, []).append(copied)
            self.sweeps.captures.add(kept)
            self.scopes.owner[kept] = self.scopes.at[copied] = where
            self.scopes.assigns[kept] = [copied]
            self.order[copied] = self.order[best]
        return self.snapshots[key]

    def _writes(self, loop: Stmt, roots: frozenset[str]) -> bool:
        return any(self.effects.writes.get(stmt, frozenset()) & roots for stmt in rewrite.statements((loop,)))

    def _is_passing(self, var: Var) -> bool:
        """Whether a value is an intermediate result that the backward sweep reads once."""
        is_temporary = var.name not in self.user_names and _VERSION.sub("", var.name) not in self.user_names
        return is_temporary and self.uses[var] == 1 and self.cheap >= 0 and isinstance(var.type, Scalar | Array)

    def _from_trip(self, var: Var, owner: Scope) -> Expr | None:
        """A counter as a function of the trip being undone."""
        loop = owner.header
        if not isinstance(loop, For | While):
            return None
        if isinstance(loop, For) and var == loop.target:
            return self.sweeps.counters.get(loop, var)
        if var not in owner.carried or not isinstance(var.type, Scalar) or var.type.dtype != "int64":
            return None
        trip = self._trip(loop)
        assigns = self.scopes.assigns[var]
        inner = [stmt for stmt in assigns if self.scopes.at[stmt].within(owner)]
        outer = [stmt for stmt in assigns if stmt not in inner]
        inner = [stmt for stmt in inner if not _ends_in_break(self.scopes.at[stmt], owner)]
        if trip is None or len(inner) != 1 or len(outer) != 1 or not self._every_trip(self.scopes.at[inner[0]], owner):
            return None
        step = self._step(var, inner[0])
        start = _assigned(outer[0], var)
        if step is None or start is None:
            return None
        if isinstance(start, Var):
            seen = self.scopes.owner_seen_from(start, self.scopes.at[outer[0]])
            if not self._is_live(start, seen) or self.scopes.is_merge(start):
                return None
        elif not isinstance(start, Const):
            return None
        scaled: Expr = trip if step == 1 else Call(operator.mul, (Const(step), trip), (), var.type)
        return build.int_add(start, scaled)

    def _trip(self, loop: For | While) -> Expr | None:
        if loop in self.sweeps.trip_index:
            return self.sweeps.trip_index[loop]
        if isinstance(loop, For) and build.is_const(loop.step, 1) and isinstance(loop.start, Const):
            assert isinstance(loop.start.value, int)
            return build.int_add(loop.target, Const(-loop.start.value))
        return None

    def _every_trip(self, scope: Scope, body: Scope) -> bool:
        """Whether a block runs in every trip that does not leave the loop."""
        while scope is not body:
            header = scope.header
            if not isinstance(header, If) or scope.parent is None:
                return False
            other = header.orelse if scope.branch == 0 else header.body
            if not other or not isinstance(other[-1], Break):
                return False
            scope = scope.parent
        return True

    def _step(self, var: Var, latch: Assign) -> int | None:
        value = _assigned(latch, var)
        for _ in range(3):  # the latch moves a value that was computed from the counter
            if isinstance(value, Var) and value != var and len(self.scopes.assigns.get(value, ())) == 1:
                value = _assigned(self.scopes.assigns[value][0], value)
        match value:
            case Call(operator.add, (left, Const(int() as step))) if left == var:
                return step
            case Call(operator.add, (Const(int() as step), right)) if right == var:
                return step
            case Call(operator.sub, (left, Const(int() as step))) if left == var:
                return -step
        return None

    def _require(self, var: Var, owner: Scope) -> None:
        key = (var, id(owner))
        if key in self.decided:
            return
        if self._is_live(var, owner):
            stmt = self._definition(var, owner) if self._is_passing(var) else None
            if stmt is not None and self._work(stmt.value) <= 1:
                self._decide(var, owner, "again", "shorter to write again")
                for operand in rewrite.reads_by_kind(stmt.value)[0]:
                    self._require(operand, self.scopes.owner_seen_from(operand, self.scopes.at.get(stmt, owner)))
            else:
                self._decide(var, owner, "live", "defined once, outside loops")
            return
        counter = self._from_trip(var, owner)
        if counter is not None:
            self._decide(var, owner, "trip", "a counter of the trip being undone")
            for operand in rewrite.free_vars(counter):
                if operand in self.scopes.owner and operand != var:
                    self._require(operand, self.scopes.owner_seen_from(operand, owner))
            return
        cost, leaves = self._cost(var, owner)
        if key not in leaves:
            missing = leaves - self.sure
            if not missing or (len(missing) == 1 and self._serves_others(next(iter(missing)), var)):
                self.sure |= missing
                stmt = self._definition(var, owner)
                assert stmt is not None
                self._decide(var, owner, "again", "cheap to evaluate from available values" if cost else "a view")
                for operand in rewrite.reads_by_kind(stmt.value)[0]:
                    self._require(operand, self.scopes.owner_seen_from(operand, self.scopes.at.get(stmt, owner)))
                return
        self.sure.add(key)
        self._decide(var, owner, "record", self._reason(var, owner))

    def _serves_others(self, leaf: Key, var: Var) -> bool:
        """Whether recording `leaf` instead of `var` spares more than this one record."""
        if isinstance(var.type, Scalar) and isinstance(leaf[0].type, Array) and leaf[0] not in self.snapshots.values():
            return False
        return self.leaf_uses[leaf] > 1

    def _decide(self, var: Var, owner: Scope, way: Way, why: str) -> None:
        tape = ""
        if way == "record":
            taken = sum(1 for other in self.decided.values() if other.var == var and other.way == "record")
            tape = f"{var.name}@{taken}"
        self.places.append((var, owner))
        decision = Decision(var, owner, way, why, tape)
        self.decided[var, id(owner)] = decision
        self.by_scope.setdefault(id(owner), []).append(decision)

    def _reason(self, var: Var, owner: Scope) -> str:
        if var in self.sweeps.captures:
            return "overwritten after it is read"
        if var in owner.carried:
            return "carried from trip to trip"
        if self.scopes.is_merge(var):
            return "depends on the branch taken"
        return "costs more to evaluate again than to keep"

    # ---- shapes ------------------------------------------------------------------------------------------------------

    def _shapes(self) -> None:
        """Make reads of shapes possible where the array itself is gone."""
        for var, scope in self.shape_reads:
            owner = self.scopes.owner_seen_from(var, scope)
            key = (var, id(owner))
            if key in self.shape_of or self._is_live(var, owner):
                continue
            if isinstance(var.type, ListOf):
                self.shape_of[key] = (self._kept_extent(var, owner, 0),)
                continue
            if key in self.decided or not isinstance(var.type, Array):
                continue
            extents = []
            for axis, extent in enumerate(self.shapes.of(var)):
                extents.append(self._extent(extent, owner) or self._kept_extent(var, owner, axis))
            self.shape_of[key] = tuple(extents)

    def _extent(self, extent: tuple[int, tuple[tuple[tuple[str, str, int], int], ...]], owner: Scope) -> Expr | None:
        constant, terms = extent
        total: Expr = Const(constant)
        for (kind, name, axis), coefficient in terms:
            source = next((v for v in self.scopes.owner if v.name == name), None)
            if source is None or kind not in ("param", "int") or coefficient < 0 or constant < 0:
                return None
            if kind == "param":
                term: Expr = Call(ops.dim, (source, Const(axis)), (), Scalar("int64"))
            else:
                seen = self.scopes.owner_seen_from(source, owner)
                if not owner.within(seen):
                    return None
                self._require(source, seen)
                term = source
            if coefficient != 1:
                term = Call(operator.mul, (Const(coefficient), term), (), Scalar("int64"))
            total = build.int_add(term, total) if isinstance(total, Const) else build.int_add(total, term)
        return total

    def _kept_extent(self, var: Var, owner: Scope, axis: int) -> Expr:
        kept = Var(self.names.fresh(f"{var.name}_n{axis}"), Scalar("int64"))
        self.sweeps.captures.add(kept)
        self.scopes.owner[kept] = owner
        is_list = isinstance(var.type, ListOf)
        extent = (
            Call(len, (var,), (), Scalar("int64"))
            if is_list
            else Call(ops.dim, (var, Const(axis)), (), Scalar("int64"))
        )
        read = Assign((kept,), extent)
        self.scopes.assigns[kept] = [read]
        if isinstance(var.type, ListOf) and isinstance(var.type.item, Array):
            raise NotDifferentiable(
                f"'{var.name}' is a list of arrays that is made anew in every trip of a loop",
                "Make it before the loop, or use one array with an axis for the items.",
                self.scopes.assigns[var][0].origin if var in self.scopes.assigns else None,
            )
        if var in owner.carried:
            self.spare.setdefault(id(owner), []).append(read)
        else:
            anchor = self._last_definition(var, owner)
            assert anchor is not None
            self.sweeps.after.setdefault(anchor, []).append(read)
        self._decide(kept, owner, "record", "extent of an array that is gone")
        return kept

    def _with_shapes(self, node: object, scope: Scope) -> object:
        def change(part: object) -> object:
            if isinstance(part, Call) and (position := rewrite.shape_only_argument(part.func)) is not None:
                array = part.args[position]
                if isinstance(array, Var) and self._is_primal(array):
                    key = (array, id(self.scopes.owner_seen_from(array, scope)))
                    if key in self.shape_of:
                        return _of_shape(part, array, self.shape_of[key])
            return part

        return rewrite.map_expr(node, change)

    # ---- the sweeps --------------------------------------------------------------------------------------------------

    def _backward(self, block: Block, scope: Scope) -> Block:
        out: list[Stmt] = []
        for original in block:
            stmt = original
            if self.shape_of:
                stmt = rewrite.map_headers(stmt, lambda node: self._with_shapes(node, scope))
            inner_scopes = self.sweeps.scopes_of.get(original)
            new = []
            for k, inner in enumerate(rewrite.blocks(stmt)):
                if inner_scopes is None:
                    new.append(self._backward(inner, scope))
                else:
                    rest = self._backward(inner, inner_scopes[k])
                    whole = (*self._restored(inner_scopes[k]), *rest) if rest else ()
                    new.append(rewrite.rename_block(whole, self._apart(inner_scopes[k])))
            out.append(rewrite.with_blocks(stmt, tuple(new)) if new else stmt)
        return tuple(out)

    def _apart(self, scope: Scope) -> dict[Var, Var]:
        """Other names, inside a loop, for carried variables whose value after the loop is read as well."""
        apart: dict[Var, Var] = {}
        for decision in self.by_scope.get(id(scope), ()):
            var = decision.var
            if var in scope.carried and any(other is not scope for seen, other in self.places if seen == var):
                apart[var] = Var(self.names.fresh(var.name), var.type)
        return apart

    def _restored(self, scope: Scope) -> list[Stmt]:
        """What makes the values of a forward block available at the start of its backward block."""
        decisions = self.by_scope.get(id(scope), ())
        out: list[Stmt] = []
        for decision in decisions:
            if decision.way == "trip":
                value = self._from_trip(decision.var, scope)
                assert value is not None
                if value != decision.var:
                    out.append(Assign((decision.var,), value))
        out.extend(Pop(d.var, d.tape) for d in decisions if d.way == "record")
        again = [d.var for d in decisions if d.way == "again"]
        for var in sorted(again, key=self._position):
            stmt = self._definition(var, scope)
            assert stmt is not None
            out.append(Assign(stmt.targets, stmt.value, stmt.origin))
        return out

    def _forward(self, block: Block, scope: Scope) -> Block:
        out: list[Stmt] = list(self.spare.get(id(scope), ()))
        recorded = {d.var: d for d in self.by_scope.get(id(scope), ()) if d.way == "record"}
        tapes = {var: decision.tape for var, decision in recorded.items()}
        out.extend(Push(tape, var) for var, tape in tapes.items() if var in scope.carried)
        out.extend(Push(tapes[read.targets[0]], read.targets[0]) for read in self.spare.get(id(scope), ()))
        spare = {read.targets[0] for read in self.spare.get(id(scope), ())}
        pending = {var for var in recorded if var not in scope.carried and var not in spare}
        for stmt in block:
            for kept in self.sweeps.before.get(stmt, ()):
                out.extend(self._kept(kept, pending, tapes))
            counter = self.sweeps.trips.get(stmt)
            inner_scopes = tuple(s for s in (self.scopes.body.get(stmt), self.scopes.orelse.get(stmt)) if s is not None)
            inner = [self._forward(b, s) for b, s in zip(rewrite.blocks(stmt), inner_scopes, strict=True)]
            if counter is not None:
                out.append(Assign((counter,), Const(0), stmt.origin))
                inner[0] = (Assign((counter,), build.int_add(counter, Const(1)), stmt.origin), *inner[0])
            new = rewrite.with_blocks(stmt, tuple(inner)) if inner else stmt
            if isinstance(new, If) and stmt in self.sweeps.tests:
                new = replace(new, test=self.sweeps.tests[stmt])
            out.append(new)
            if counter is not None and counter in pending:
                out.append(Push(tapes[counter], counter))
                pending.discard(counter)
            for var in sorted(pending, key=lambda v: v.name):
                if var not in self.sweeps.captures and self._last_definition(var, scope) is stmt:
                    out.append(Push(tapes[var], var, stmt.origin))
                    pending.discard(var)
            for kept in self.sweeps.after.get(stmt, ()):
                out.extend(self._kept(kept, pending, tapes))
        assert not pending, f"never defined: {[var.name for var in pending]}"
        return tuple(out)

    def _kept(self, stmt: Assign, pending: set[Var], tapes: dict[Var, str]) -> list[Stmt]:
        """A capture; where it goes straight to a tape, the copy is the tape's."""
        (var,) = stmt.targets
        if var not in pending:
            return [stmt]
        pending.discard(var)
        if isinstance(stmt.value, Call) and stmt.value.func is np.copy:
            return [Push(tapes[var], stmt.value.args[0], stmt.origin)]
        return [stmt, Push(tapes[var], var, stmt.origin)]

    def writers(self, roots: frozenset[str]) -> Iterable[Stmt]:
        for root in sorted(roots):
            yield from self.effects.writers.get(root, ())

    def _last_definition(self, var: Var, scope: Scope) -> Stmt | None:
        """The statement of a scope's own block after which a value of that scope is complete."""
        last = None
        complete: list[Stmt] = list(self.scopes.assigns.get(var, ()))
        if isinstance(var.type, Array | ListOf):  # an array is complete after the last store into it
            roots = self.effects.roots(var)
            complete += [stmt for stmt in self.writers(roots) if self.scopes.at[stmt].within(scope)]
        for stmt in complete:
            anchor: Stmt | None = stmt
            while anchor is not None and self.scopes.at[anchor] is not scope:
                anchor = self.scopes.at[anchor].header
            if anchor is not None and (last is None or self.order[anchor] > self.order[last]):
                last = anchor
        return last


# ---- helpers ---------------------------------------------------------------------------------------------------------


def _ends_in_break(scope: Scope, body: Scope) -> bool:
    return scope is not body and bool(scope.block) and isinstance(scope.block[-1], Break)


def _assigned(stmt: Assign, var: Var) -> Expr | None:
    """What an Assign gives one of its targets."""
    if len(stmt.targets) == 1:
        return stmt.value
    if isinstance(stmt.value, Tuple):
        return stmt.value.items[stmt.targets.index(var)]
    return None


def _of_shape(call: Call, array: Var, extents: tuple[Expr, ...]) -> Expr:
    """A call that reads the shape of an array, given the extents instead."""
    if isinstance(array.type, ListOf):
        return extents[0] if call.func is len else call
    assert isinstance(array.type, Array)
    shape: Expr = extents[0] if len(extents) == 1 else Tuple(extents)
    dtype: tuple[Expr, ...] = () if array.type.dtype == "float64" else (Const(getattr(np, array.type.dtype)),)
    match call.func:
        case np.zeros_like:
            return Call(np.zeros, (shape, *dtype), (), call.type)
        case np.ones_like:
            return Call(np.ones, (shape, *dtype), (), call.type)
        case np.empty_like:
            return Call(np.empty, (shape, *dtype), (), call.type)
        case np.full_like:
            return Call(np.full, (shape, call.args[1], *dtype), (), call.type)
        case ops.dim:
            axis = call.args[1]
            assert isinstance(axis, Const) and isinstance(axis.value, int)
            return extents[axis.value]
        case ops.shape | np.shape:
            return Tuple(extents)
        case ops.sum_to:
            return Call(ops.sum_to, (call.args[0], Call(np.empty, (shape,), (), array.type)), (), call.type)
        case _:
            if call.func is np.size or call.func is len:
                total = extents[0]
                for extent in extents[1:] if call.func is np.size else ():
                    total = Call(operator.mul, (total, extent), (), Scalar("int64"))
                return total
    return call
