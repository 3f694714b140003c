"""Recording plan (to-be-recorded analysis): each value that the backward sweep reads is live, recomputed or recorded.

For each primal value that the backward sweep reads, in the order of preference:

* **live**: its definition runs once and its name is not reused, so it still holds the value;
* **induction**: a loop counter (also `i = i + 1`), known from the iteration that is being reversed;
* **recompute**: recomputed at the start of the backward block, from values that are available;
* **record**: written to a tape where it is defined, read back at the start of the backward block.

Between the last two, all values are weighed together (`min_cut`).

An array that a time loop overwrites, but that an inner loop only reads, is recorded once per pass of the outer loop
rather than element by element.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Set
from dataclasses import replace

import numpy as np

from tapegen.analysis.scopes import Scope
from tapegen.ir import builders, traversal
from tapegen.ir.names import NameSupply
from tapegen.ir.nodes import (
    Assign,
    Block,
    Break,
    Call,
    Const,
    Continue,
    Expr,
    Function,
    If,
    Pop,
    Push,
    Stmt,
    Var,
)
from tapegen.ir.types import Array, Scalar
from tapegen.transform.analyses import Facts
from tapegen.transform.autodiff.reverse import Sweeps
from tapegen.transform.recording import cost_model
from tapegen.transform.recording.dead_shapes import DeadArrayShapes
from tapegen.transform.recording.decisions import Decision, Key, Recorded, Way
from tapegen.transform.recording.min_cut import Option, min_cut_recompute
from tapegen.transform.recording.rematerialize import Rematerializer

_VERSION = re.compile(r"_\d+$")


def record(
    function: Function,
    sweeps: Sweeps,
    facts: Facts,
    names: NameSupply,
    user_names: Set[str],
    *,
    everything: bool = False,
) -> Recorded:
    """Decide how each primal value becomes available to the backward sweep, and rewrite both sweeps accordingly.

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
        Variables of the user; other values outside loops are recomputed where they are read once and cheap.
    everything : bool
        Record every value of a loop instead of recomputing any (used to test the analysis).
    """
    recorder = RecordingPlanner(function, sweeps, facts, names, user_names, everything)
    return recorder.run()


class RecordingPlanner:
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
        self.scopes, self.effects = facts.scopes, facts.effects
        self.everything = everything
        self.order = {stmt: k for k, stmt in enumerate(traversal.statements(function.body))}
        self.rematerializer = Rematerializer(sweeps, facts, names, self.order, everything=everything)
        self.uses = Counter([var for stmt in sweeps.backward for var in traversal.occurring(stmt)])
        self.decided: dict[Key, Decision] = {}
        self.chosen: set[Key] = set()  # values to recompute
        self.weighed: set[Key] = set()  # values for which that has been decided
        self.by_scope: dict[Scope, list[Decision]] = {}
        self.gone = DeadArrayShapes(sweeps, facts, names, self)

    def run(self) -> Recorded:
        needs = list(self._reads(self.sweeps.backward, self.scopes.root))
        for expr in self.sweeps.gradients:
            contents, _ = traversal.reads_by_kind(expr)
            needs.extend((var, self.scopes.root) for var in contents if self._is_primal(var))
        keys = [(var, self.scopes.owner_seen_from(var, scope)) for var, scope in needs]
        self._weigh(keys)
        for var, owner in sorted(keys, key=lambda key: self._position(key[0])):
            self.require(var, owner)
        self.gone.resolve()
        backward = (
            *self._restored(self.scopes.root),
            *self._backward(self.sweeps.backward, self.scopes.root),
        )
        backward = self._without_unread_tapes(backward)
        forward = self._forward(self.function.body[:-1], self.scopes.root)
        reported = [d for d in self.decided.values() if d.way == "record" or d.var not in self.sweeps.flags]
        decisions = sorted(reported, key=lambda d: (self._position(d.var), d.var.name))
        return Recorded(forward, backward, decisions)

    # ---- what is read ------------------------------------------------------------------------------------------------

    def _is_primal(self, var: Var) -> bool:
        return var in self.scopes.owner

    def _reads(self, block: Block, scope: Scope) -> Iterable[tuple[Var, Scope]]:
        for stmt in block:
            for header in stmt.headers:
                contents, shapes = traversal.reads_by_kind(header)
                for var in sorted(filter(self._is_primal, contents), key=lambda v: v.name):
                    yield var, scope
                for var in sorted(filter(self._is_primal, shapes), key=lambda v: v.name):
                    self.gone.reads.append((var, scope))
            inner_scopes = self.sweeps.scopes_of.get(stmt)
            for k, inner in enumerate(stmt.blocks):
                yield from self._reads(inner, inner_scopes[k] if inner_scopes is not None else scope)

    def _position(self, var: Var) -> int:
        assigns = self.scopes.assigns.get(var)
        if not assigns:
            return -1
        return min(self.order.get(stmt, len(self.order)) for stmt in assigns)

    # ---- decisions ---------------------------------------------------------------------------------------------------

    def _is_passing(self, var: Var) -> bool:
        """Whether a value is an intermediate result that the backward sweep reads once."""
        is_temporary = var.name not in self.user_names and _VERSION.sub("", var.name) not in self.user_names
        return is_temporary and self.uses[var] == 1 and not self.everything and isinstance(var.type, (Scalar, Array))

    def _weigh(self, keys: Iterable[Key]) -> None:
        """Choose which of the values that are not available at no cost are recomputed."""
        keys = [key for key in keys if key not in self.weighed and not self.rematerializer.is_available(*key)]
        options: dict[Key, Option[Key]] = {}

        def option(key: Key) -> Option[Key]:
            options[key] = self._option(key)
            return options[key]

        self.chosen |= min_cut_recompute(keys, option)
        self.weighed.update(options)

    def _option(self, key: Key) -> Option[Key]:
        var, owner = key
        if key in self.weighed and key not in self.chosen:
            return Option(0)  # recorded already
        stmt = None if self.everything else self.rematerializer.definition(var, owner)
        record = cost_model.of_recording(var.type, owner)
        if stmt is None:
            return Option(record)
        operands = tuple(
            operand
            for operand in self.rematerializer.operands(stmt, owner)
            if not self.rematerializer.is_available(*operand)
        )
        return Option(record, cost_model.of_evaluating(stmt.value, owner), operands)

    def require(self, var: Var, owner: Scope) -> None:
        """Decide how a value becomes available to the backward sweep, and what that needs."""
        if (var, owner) in self.decided:
            return
        if self.rematerializer.is_live(owner):
            stmt = self.rematerializer.definition(var, owner) if self._is_passing(var) else None
            if stmt is not None and cost_model.work(stmt.value) <= 1:
                self._decide(var, owner, "recompute", "shorter to recompute")
                self._require_operands(stmt, owner)
            else:
                self._decide(var, owner, "live", "defined once, outside loops")
            return
        counter = self.rematerializer.from_induction(var, owner)
        if counter is not None and self.rematerializer.is_available(var, owner):
            self._decide(var, owner, "induction", "the counter of the iteration being reversed")
            for operand in traversal.free_vars(counter):
                if operand in self.scopes.owner and operand != var:
                    self.require(operand, self.scopes.owner_seen_from(operand, owner))
            return
        self._weigh([(var, owner)])
        if (var, owner) in self.chosen:
            stmt = self.rematerializer.definition(var, owner)
            assert stmt is not None
            is_cheap = cost_model.work(stmt.value) > 0
            self._decide(var, owner, "recompute", "cheap to recompute from available values" if is_cheap else "a view")
            self._require_operands(stmt, owner)
        else:
            self._decide(var, owner, "record", self._reason(var, owner))

    def _require_operands(self, stmt: Assign, owner: Scope) -> None:
        for operand, seen in self.rematerializer.operands(stmt, owner):
            self.require(operand, seen)

    def record(self, var: Var, owner: Scope, why: str) -> None:
        """Record a value regardless of the cost."""
        self._decide(var, owner, "record", why)

    def _decide(self, var: Var, owner: Scope, way: Way, why: str) -> None:
        tape = ""
        if way == "record":
            taken = sum(1 for other in self.decided.values() if other.var == var and other.way == "record")
            tape = f"{var.name}@{taken}"
        decision = Decision(var, owner, way, why, tape)
        self.decided[var, owner] = decision
        self.by_scope.setdefault(owner, []).append(decision)

    def _reason(self, var: Var, owner: Scope) -> str:
        if var in self.sweeps.references:
            return "the array that holds its cotangent depends on the run"
        if var in self.sweeps.captures:
            return "overwritten after it is read"
        if var in owner.carried:
            return "carried from iteration to iteration"
        if var in self.sweeps.flags:
            return "which branch was taken"
        if self.scopes.is_merge(var):
            return "depends on the branch taken"
        return "costs more to recompute than to record"

    def _without_unread_tapes(self, backward: Block) -> Block:
        """Drop the records that nothing reads after all: extents of all axes are recorded where one is needed."""
        read = {var for expr in self.sweeps.gradients for var in traversal.free_vars(expr)}
        read.update(*map(traversal.reads, backward))
        pops = [stmt for stmt in traversal.statements(backward) if isinstance(stmt, Pop)]
        idle = {pop.tape for pop in pops if pop.target not in read}
        if not idle:
            return backward
        self.decided = {key: decision for key, decision in self.decided.items() if decision.tape not in idle}
        for scope, decisions in self.by_scope.items():
            self.by_scope[scope] = [decision for decision in decisions if decision.tape not in idle]
        return _without_pops(backward, idle)

    # ---- the sweeps --------------------------------------------------------------------------------------------------

    def _backward(self, block: Block, scope: Scope) -> Block:
        out: list[Stmt] = []
        for original in block:
            stmt = traversal.map_headers(original, self._with_tests) if isinstance(original, If) else original
            if self.gone.shapes:
                stmt = traversal.map_headers(stmt, lambda node: self.gone.replaced(node, scope))
            inner_scopes = self.sweeps.scopes_of.get(original)
            new = []
            for k, inner in enumerate(stmt.blocks):
                if inner_scopes is None:
                    new.append(self._backward(inner, scope))
                else:
                    rest = self._backward(inner, inner_scopes[k])
                    whole = (*self._restored(inner_scopes[k]), *rest) if rest else ()
                    new.append(traversal.rename_block(whole, self._split_names(inner_scopes[k])))
            out.append(traversal.with_blocks(stmt, tuple(new)) if new else stmt)
        return tuple(out)

    def _with_tests(self, header: Expr) -> Expr:
        """Inline a test that is not recorded."""
        idle = {
            part for part in traversal.free_vars(header) if part in self.sweeps.flags and not self._is_recorded(part)
        }
        return traversal.substitute(header, {flag: self.sweeps.flags[flag] for flag in idle})

    def _is_recorded(self, flag: Var) -> bool:
        decision = self.decided.get((flag, self.scopes.owner[flag]))
        return decision is not None and decision.way == "record"

    def _split_names(self, scope: Scope) -> dict[Var, Var]:
        """Rename, inside a loop, the carried variables whose value after the loop is read as well."""
        apart: dict[Var, Var] = {}
        for decision in self.by_scope.get(scope, ()):
            var = decision.var
            if var in scope.carried and any(other is not scope for seen, other in self.decided if seen == var):
                apart[var] = Var(self.names.fresh(var.name), var.type)
        return apart

    def _restored(self, scope: Scope) -> list[Stmt]:
        """The statements that make the values of a forward block available at the start of its backward block."""
        decisions = self.by_scope.get(scope, ())
        out: list[Stmt] = []
        for decision in decisions:
            if decision.way == "induction":
                value = self.rematerializer.from_induction(decision.var, scope)
                assert value is not None
                if value != decision.var:
                    out.append(Assign((decision.var,), value))
        out.extend(Pop(d.var, d.tape) for d in decisions if d.way == "record")
        recomputed = [d.var for d in decisions if d.way == "recompute" and d.var not in self.sweeps.flags]
        for var in sorted(recomputed, key=self._position):
            stmt = self.rematerializer.definition(var, scope)
            assert stmt is not None
            out.append(Assign(stmt.targets, stmt.value, stmt.origin))
        return out

    def _forward(self, block: Block, scope: Scope) -> Block:
        extents = self.gone.on_entry.get(scope, ())
        out: list[Stmt] = list(extents)
        recorded = {d.var: d for d in self.by_scope.get(scope, ()) if d.way == "record"}
        tapes = {var: decision.tape for var, decision in recorded.items()}
        out.extend(Push(tape, var) for var, tape in tapes.items() if var in scope.carried)
        out.extend(Push(tapes[var], var) for read in extents for var in read.targets if var in tapes)
        spare = {read.targets[0] for read in extents}
        pending = {var for var in recorded if var not in scope.carried and var not in spare}
        for stmt in block:
            for kept in self.sweeps.before.get(stmt, ()):
                if kept.targets[0] not in self.sweeps.flags or kept.targets[0] in recorded:
                    out.extend(self._captured(kept, pending, tapes))
            counter = self.sweeps.trips.get(stmt)
            inner_scopes = tuple(s for s in (self.scopes.body.get(stmt), self.scopes.orelse.get(stmt)) if s is not None)
            inner = [self._forward(b, s) for b, s in zip(stmt.blocks, inner_scopes, strict=True)]
            if counter is not None:
                out.append(Assign((counter,), Const(0), stmt.origin))
                inner[0] = (Assign((counter,), builders.int_add(counter, Const(1)), stmt.origin), *inner[0])
            new = traversal.with_blocks(stmt, tuple(inner)) if inner else stmt
            test = self.sweeps.tests.get(stmt)
            if isinstance(new, If) and test is not None and (test not in self.sweeps.flags or test in recorded):
                new = replace(new, test=test)
            added: list[Stmt] = []
            if counter is not None and counter in pending:
                added.append(Push(tapes[counter], counter))
                pending.discard(counter)
            for var in sorted(pending, key=lambda v: v.name):
                if var not in self.sweeps.captures and self.gone.last_definition(var, scope) is stmt:
                    added.append(Push(tapes[var], var, stmt.origin))
                    pending.discard(var)
            for kept in self.sweeps.after.get(stmt, ()):
                added.extend(self._captured(kept, pending, tapes))
            if added and isinstance(new, If):
                here = traversal.assigned_in(*out)
                new = _before_escape(new, added, here, here | traversal.assigned_in(*block, *added))
            out += [new, *added]
        assert not pending, f"never defined: {[var.name for var in pending]}"
        return tuple(out)

    def _captured(self, stmt: Assign, pending: set[Var], tapes: dict[Var, str]) -> list[Stmt]:
        """A capture; where it goes directly to a tape, the tape makes the copy."""
        (var,) = stmt.targets
        if var not in pending:
            return [stmt]
        pending.discard(var)
        if isinstance(stmt.value, Call) and stmt.value.func is np.copy:
            return [Push(tapes[var], stmt.value.args[0], stmt.origin)]
        return [stmt, Push(tapes[var], var, stmt.origin)]


def _before_escape(stmt: If, added: list[Stmt], known: Set[Var], local: Set[Var]) -> Stmt:
    """A branch with the records that follow it, also where one of its branches exits the iteration.

    Parameters
    ----------
    stmt : If
        A statement of a block.
    added : list of Stmt
        What is recorded after it.
    known, local : set of Var
        The variables that the block has defined so far, and all that it defines.
    """

    def ended(block: Block) -> Block:
        end = len(block)
        while end and isinstance(block[end - 1], Assign | Push):  # records of nested branches
            end -= 1
        if not end:
            return block
        first, last, rest = list(block[: end - 1]), block[end - 1], block[end:]
        defined = known | traversal.assigned_in(*first)
        if isinstance(last, If):
            return (*first, _before_escape(last, added, defined, local), *rest)
        if not isinstance(last, Break | Continue):
            return block
        for each in added:
            if not (traversal.reads(each) & local) - defined:
                first.append(each)
                defined |= traversal.assigns(each)
        return (*first, last)

    return traversal.with_blocks(stmt, (ended(stmt.body), ended(stmt.orelse)))


def _without_pops(block: Block, tapes: Set[str]) -> Block:
    return tuple(
        traversal.with_blocks(stmt, tuple(_without_pops(inner, tapes) for inner in stmt.blocks))
        for stmt in block
        if not (isinstance(stmt, Pop) and stmt.tape in tapes)
    )
