"""Checkpointing: the tape of a loop holds a few iterations, and the forward sweep runs twice.

Two-level checkpointing (strip mining): the loop becomes one of segments of `interval` iterations.  The forward sweep
records the state at the start of each segment, the checkpoints, and nothing of the iterations.  The backward sweep goes
through the segments from the last to the first: it restores the state, runs the iterations of the segment again, now
recording, and reverses them.

    for t in range(n):                    for segment in range(segments):
        u_tape[t] = u                         u_checkpoints.append(u)
        u = step(u)                           for t in ...: u = step(u)
    for t in range(n - 1, -1, -1):   ->   for segment in range(segments - 1, -1, -1):
        u = u_tape[t]                         u_1 = u_checkpoints.pop()
        ...                                   for t in ...: u_tape[t - first] = u_1; u_1 = step(u_1)
                                              for t in ...: u = u_tape[t - first]; ...

The second run works on copies under names of its own, so that the caller's arrays, and the values that are live after
the loop, stay as the first run leaves them.  Both runs have the same statements, and the reversed iterations add to the
same cotangents in the same order: the gradient is that of the recording program bit for bit.
"""

from __future__ import annotations

import operator
from collections.abc import Mapping, Sequence, Set
from dataclasses import dataclass, field, replace

import numpy as np

from tapegen.analysis.memory_access import depends_on_layout, viewed
from tapegen.errors import TapegenError
from tapegen.ir import builders, intrinsics, traversal
from tapegen.ir.names import BACKWARD, FORWARD, NameSupply
from tapegen.ir.nodes import (
    Assign,
    Block,
    Break,
    Call,
    Comment,
    Const,
    Effect,
    Expr,
    For,
    Function,
    If,
    Stmt,
    Store,
    Var,
    While,
)
from tapegen.ir.types import BOOL, INT, Array, ListOf, RandomGenerator
from tapegen.transform.analyses import Facts
from tapegen.transform.autodiff.reverse import Sweeps
from tapegen.transform.messages import without_messages
from tapegen.transform.recording.decisions import Cut
from tapegen.transform.recording.loop_order import loops_of, reversed_loops
from tapegen.transform.recording.tape_layout import drop_unread_tapes
from tapegen.transform.recording.tape_sizes import Sizes
from tapegen.transform.simplify.cleanup import reads_of


class Refused(TapegenError):
    """A loop that cannot be checkpointed, and why.

    Attributes
    ----------
    position : int
        Its position among the loops of the primal.
    """

    position = -1

    def __init__(self, why: str) -> None:
        super().__init__(why, "Let it record.")


@dataclass(slots=True)
class State:
    """What the second run of a loop needs.

    Attributes
    ----------
    values : list of Var
        Carried values, and arrays that the loop writes: the checkpoints hold them.
    copied : set of Var
        Those whose elements the loop writes: a checkpoint is a copy.
    views : list of Assign
        Definitions before the loop of views of these arrays, in order.
    kept : dict
        Values that change after the loop -> their values before it.
    rewritten : set of Var
        Those of these arrays whose elements change.
    """

    values: list[Var]
    copied: set[Var]
    views: list[Assign] = field(default_factory=list)
    kept: dict[Var, Var] = field(default_factory=dict)
    rewritten: set[Var] = field(default_factory=set)


class _StateFinder:
    """Finds what the second run of a loop needs, or refuses."""

    def __init__(self, loop: For | While, program: Function, sweeps: Sweeps, facts: Facts, names: NameSupply) -> None:
        self.loop, self.program, self.sweeps, self.facts, self.names = loop, program, sweeps, facts, names
        self.effects, self.scopes = facts.effects, facts.scopes
        self.inside = set(traversal.statements((loop,)))
        self.written = frozenset().union(*(self.effects.writes.get(stmt, frozenset()) for stmt in self.inside))

    def find(self, plain: Block, backward: Block) -> State:
        self._refuse_what_cannot_run_again(plain)
        inputs = sorted(reads_of(plain), key=lambda var: var.name)
        assigned = traversal.assigned_in(*plain)
        views: dict[Var, Assign] = {}
        memory: dict[Var, None] = {}
        state = State([], set())
        generators = [var for var in inputs if isinstance(var.type, RandomGenerator)]
        if len(generators) > 1:
            raise Refused("it draws from several generators, which may be one and the same")
        state.values += generators
        for var in inputs:
            if var in generators:
                continue
            writes = self._is_place(var) and bool(self.effects.roots(var) & self.written)
            if var in assigned:
                state.values.append(var)
                if writes:
                    memory.setdefault(var)
            elif writes:
                memory.setdefault(self._base(var, assigned, views))
        state.views = sorted(views.values(), key=self._order().__getitem__)
        self._refuse_aliases(memory)
        state.values += [var for var in memory if var not in assigned]
        state.copied = set(memory)
        self._refuse_layouts(state, plain)
        indexed = {var for stmt in state.views for var in traversal.free_vars(stmt.value)} - set(views)
        later = self._later()
        changed = traversal.assigned_in(*later, *backward)
        rewritten = frozenset().union(*(self.effects.writes.get(stmt, frozenset()) for stmt in later))
        for var in sorted({*inputs, *indexed} - assigned - set(state.values) - set(views), key=lambda var: var.name):
            contents = self._is_place(var) and bool(self.effects.roots(var) & rewritten)
            if contents and isinstance(var.type, ListOf):
                raise Refused(f"the list '{var.name}' changes after the loop")
            if contents:
                state.rewritten.add(var)
            if contents or var in changed:
                state.kept[var] = Var(self.names.fresh(var.name), var.type)
        return state

    def _refuse_what_cannot_run_again(self, plain: Block) -> None:
        assigned = traversal.assigned_in(*plain)
        if not self.sweeps.made.isdisjoint(assigned):
            raise Refused("which cotangents belong to its arrays depends on the run")
        for stmt in traversal.statements(plain):
            target = stmt.array if isinstance(stmt, Store) else None
            if target in self.sweeps.references:
                raise Refused("which cotangents belong to its arrays depends on the run")
            if isinstance(stmt, Assign) and isinstance(stmt.value, Call) and stmt.value.func in _REPLAYED:
                raise Refused("it takes derivatives of a function that draws random numbers")
            if isinstance(stmt, Assign) and isinstance(stmt.value.type, RandomGenerator):
                raise Refused("it makes a generator of random numbers")
            if isinstance(stmt, Effect) and stmt.call.func in (intrinsics.append, intrinsics.set_item):
                raise Refused(f"the list '{stmt.call.args[0].name}' changes in it")  # type: ignore[union-attr]
            if isinstance(stmt, Assign) and isinstance(stmt.value, Call):
                roots = frozenset().union(*map(self.effects.roots, filter(self._is_place, stmt.targets)))
                if stmt.value.func is intrinsics.pop:
                    raise Refused("a list changes in it")
                if stmt.value.func is intrinsics.item and roots & self.written:
                    raise Refused("it writes into arrays of a list")

    def _is_place(self, var: Var) -> bool:
        return isinstance(var.type, (Array, ListOf))

    def _base(self, var: Var, assigned: Set[Var], views: dict[Var, Assign]) -> Var:
        """The array of which a variable is a view that was made before the loop, or the variable itself."""
        assigns = self.scopes.assigns.get(var, [])
        source = viewed(assigns[0].value) if len(assigns) == 1 else None
        if source is None:
            return var
        base = self._base(source, assigned, views) if source not in assigned else source
        if source in assigned or self.scopes.is_merge(source):
            raise Refused(f"'{var.name}' is a view of an array that is another one after an iteration")
        views[var] = assigns[0]
        return base

    def _order(self) -> dict[Stmt, int]:
        return {stmt: k for k, stmt in enumerate(traversal.statements(self.program.body))}

    def _later(self) -> Block:
        """The statements that run after the loop has begun, but for its own; those around it run again."""
        order = self._order()
        around = [scope.header for scope in self.scopes.at[self.loop].chain if scope.is_loop]
        first = min(order[stmt] for stmt in (self.loop, *around) if stmt is not None)
        return tuple(stmt for stmt, k in order.items() if k >= first and stmt not in self.inside)

    def _refuse_aliases(self, memory: Mapping[Var, None]) -> None:
        """Each array that the loop writes must have one name at the start of an iteration."""
        outer = {
            root
            for root in self.written
            if (made := self.effects.allocations.get(root)) is None or made not in self.inside
        }
        for root in sorted(outer):
            names = [var for var in memory if root in self.effects.roots(var)]
            if any(isinstance(var.type, ListOf) for var in names):
                raise Refused(f"the list '{names[0].name}' changes in it")
            if not names:
                raise Refused(f"it writes into '{root}' through another object")
            if len(names) > 1 and not self._are_permuted(names):
                listed = " and ".join(f"'{var.name}'" for var in names)
                raise Refused(f"{listed} may be the same array")
        for var in memory:
            if isinstance(var.type, ListOf):
                raise Refused(f"the list '{var.name}' changes in it")

    @staticmethod
    def _refuse_layouts(state: State, plain: Block) -> None:
        """A copy in C order has other views than an array of columns."""
        called = frozenset().union(*map(traversal.calls, (*plain, *state.views)))
        for var in sorted(state.copied, key=lambda var: var.name):
            in_rows = isinstance(var.type, Array) and (var.type.rank < 2 or var.type.layout == "C")
            if not in_rows and any(map(depends_on_layout, called)):
                raise Refused(f"the layout of '{var.name}' decides what is a view of it")

    def _are_permuted(self, names: list[Var]) -> bool:
        """Whether variables hold different arrays before the loop, and each iteration permutes them."""
        group = set(names)
        firsts: list[frozenset[str]] = []
        for var in names:
            for assign in self.scopes.assigns.get(var, ()):
                pairs = dict(traversal.pairs(assign))
                if set(pairs) == group == set(pairs.values()):
                    continue
                if assign not in self.inside:
                    value = pairs.get(var)
                    roots = self.effects.roots(value) if isinstance(value, Var) else None
                    if roots is None:
                        root = [name for name, made in self.effects.allocations.items() if made is assign]
                        roots = frozenset(root)
                    firsts.append(roots)
                    continue
                return False
            if var in self.program.params:
                firsts.append(frozenset({var.name}))
        if len(firsts) != len(names) or any(len(roots) != 1 for roots in firsts):
            return False
        return len(frozenset().union(*firsts)) == len(names)


_REPLAYED = (intrinsics.copy_generator, intrinsics.replay_draws)
"""What puts the state of a generator back."""


def checkpointed(
    forward: Block,
    backward: Block,
    cuts: Sequence[Cut],
    program: Function,
    sweeps: Sweeps,
    facts: Facts,
    names: NameSupply,
) -> tuple[Block, Block, list[Var]]:
    """Both sweeps, tapes laid out, with loops as segments, and the lists of checkpoints.

    Raises
    ------
    Refused
        If one of the loops cannot run twice.
    """
    order, undone = loops_of(program.body), reversed_loops(sweeps)
    ahead, back = loops_of(forward), loops_of(backward)
    assert len(ahead) == len(order), "a pass has changed the loops of the forward sweep"
    assert len(back) == len(loops_of(sweeps.backward)), "a pass has changed the loops of the backward sweep"
    pairs = [(cut, ahead[order.index(cut.loop)], back[undone[cut.loop]]) for cut in cuts]
    inside = [stmt for cut in cuts for stmt in traversal.statements(cut.loop.body)]
    assert not any(cut.loop in inside for cut in cuts), "of nested loops one is checkpointed"
    lists: list[Var] = []
    for cut, recording, undo in pairs:
        made = Checkpointer(program, sweeps, facts, names, cut)
        try:
            forward, backward = made.run(forward, backward, recording, undo)
        except Refused as refusal:
            refusal.position = order.index(cut.loop)
            raise
        lists += made.lists.values()
    return forward, backward, lists


class Checkpointer:
    """Rewrites both sweeps, tapes laid out, so that one loop is checkpointed."""

    def __init__(self, program: Function, sweeps: Sweeps, facts: Facts, names: NameSupply, cut: Cut) -> None:
        self.program, self.sweeps, self.facts, self.names, self.cut = program, sweeps, facts, names, cut
        self.tapes = {var for stmt in cut.create for var in stmt.targets}
        self.create: list[Stmt] = []  # the checkpoints
        self.lists: dict[Var, Var] = {}

    def run(self, forward: Block, backward: Block, recording: Stmt, undo: Stmt) -> tuple[Block, Block]:
        """Both sweeps with the loop, and the one that reverses it, as segments."""
        cut, sweeps = self.cut, self.sweeps
        assert isinstance(undo, For)
        trips = sweeps.trips.get(cut.loop)
        (plain,) = drop_unread_tapes((recording,), self.tapes)
        state = _StateFinder(cut.loop, self.program, sweeps, self.facts, self.names).find((plain,), backward)
        cut.state = tuple(state.values)
        segment, segments = (Var(self.names.fresh(name), INT) for name in ("segment", "segments"))
        push = [self._pushed(var, _from_checkpoint(var, state)) for var in state.values]
        before: list[Stmt] = []
        after: list[Stmt] = []
        found: list[Stmt] = []  # what the backward sweep begins with
        is_nested = self.facts.scopes.at[cut.loop].in_loop  # each run of the loop needs its own
        for var, kept in state.kept.items():
            value = builders.copy(var) if isinstance(var.type, Array) and var in state.rewritten else var
            if is_nested:
                before.append(self._pushed(kept, value))
                found.append(Assign((kept,), self._popped(kept)))
            else:
                before.append(Assign((kept,), value))
        counted = segments
        if is_nested:
            after.append(self._pushed(segments, segments))
            counted = Var(self.names.fresh("segments"), INT)
            found.append(Assign((counted,), self._popped(segments)))
        if trips is None:
            assert isinstance(cut.loop, For)
            ranges, count = self._ranges(cut.loop, segment)
            assert isinstance(plain, For)
            loop = replace(plain, start=ranges[0].targets[0], stop=ranges[1].targets[0])
            before.append(Assign((segments,), count))
            outer: Stmt = For(segment, Const(0), segments, Const(1), (*push, *ranges, loop), cut.loop.origin)
            first: Block = (*before, outer, *after)
        else:
            inner, full = self._limited(plain, trips)
            running = Var(self.names.fresh("running"), BOOL)
            before += [Assign((segments,), Const(0)), Assign((running,), Const(True))]
            body = (*push, Assign((segments,), builders.int_add(segments, Const(1))), *inner, Assign((running,), full))
            first = (*before, While(running, body, cut.loop.origin), *after)
        # the second run
        if trips is None:
            assert isinstance(recording, For)
            replayed: Block = (
                *ranges,
                replace(recording, start=ranges[0].targets[0], stop=ranges[1].targets[0]),
            )
            until = ranges[1].targets[0]
            assert isinstance(undo.step, Const) and isinstance(undo.step.value, int)
            sign = 1 if undo.step.value < 0 else -1
        else:
            replayed, _ = self._limited(recording, trips, sweeps.trip_index[cut.loop])
        made = traversal.assigned_in(*replayed) | set(state.values) | {stmt.targets[0] for stmt in state.views}
        renamed = {
            var: Var(self.names.fresh(var.name), var.type)
            for var in sorted(made - {cut.first} - self.tapes, key=lambda v: v.name)
        }
        restored: list[Stmt] = []
        for var in state.values:
            popped: Expr = self._popped(var)
            if self._keeps_shape(var):
                found.append(Assign((renamed[var],), Call(np.empty_like, (var,), (), var.type)))
                restored.append(Store(renamed[var], (), popped))
                continue
            if var in state.copied or isinstance(var.type, RandomGenerator):  # a pullback may run again
                whole = Var(self.names.fresh(f"{var.name}_checkpoint"), var.type)
                restored.append(Assign((whole,), popped))
                popped = _copied(whole)
            restored.append(Assign((renamed[var],), popped))
        if trips is not None:
            restored.append(Assign((cut.first,), renamed[trips]))
        mapping = {**state.kept, **renamed}
        replayed = traversal.rename_block(_silent((*state.views, *replayed)), mapping)
        if trips is None:
            stop = renamed.get(until, until)
            low = builders.int_add(cut.first, Const(-sign))
            step = undo.step
            assert isinstance(step, Const) and isinstance(step.value, int)
            undone = replace(undo, start=self._last(cut.first, stop, -step.value), stop=low)
        else:
            undone = replace(
                undo,
                start=builders.int_add(renamed[trips], Const(-1)),
                stop=builders.int_add(cut.first, Const(-1)),
            )
        back = For(
            segment,
            builders.int_add(counted, Const(-1)),
            Const(-1),
            Const(-1),
            (Comment(FORWARD), *restored, *replayed, Comment(BACKWARD), undone),
            cut.loop.origin,
        )
        forward = _replaced(forward, recording, first)
        backward = _replaced(backward, undo, (*found, *cut.create, back))
        return (*self.create, *forward), backward

    def _keeps_shape(self, var: Var) -> bool:
        """Whether an array has the same shape in all iterations, as one that is created before any loop."""
        if not isinstance(var.type, Array) or var.type.rank == 0 or var in self.sweeps.references:
            return False
        sizes = Sizes(self.program, self.facts.scopes, self.facts.shapes)
        return sizes.of_value(var) is not None

    def _pushed(self, var: Var, value: Expr) -> Stmt:
        """Append a value to the list of its checkpoints."""
        found = Var(self.names.fresh(f"{var.name}_checkpoints"), ListOf(var.type))
        self.create.append(Assign((found,), Call(intrinsics.new_list, (), (), found.type)))
        self.lists[var] = found
        return Effect(Call(intrinsics.append, (found, value), ()))

    def _popped(self, var: Var) -> Call:
        return Call(intrinsics.pop, (self.lists[var],), (), var.type)

    def _ranges(self, loop: For, segment: Var) -> tuple[tuple[Assign, Assign], Expr]:
        """The definitions of the counters at both ends of a segment, and the number of segments."""
        assert isinstance(loop.step, Const) and isinstance(loop.step.value, int)
        step, interval = loop.step.value, self.cut.interval
        width = interval if step == 1 else Call(operator.mul, (Const(abs(step)), interval), (), INT)
        done = Call(operator.mul, (segment, width), (), INT)
        ends = Call(operator.add if step > 0 else operator.sub, (self.cut.first, width), (), INT)
        if step > 0:
            start = done if builders.is_const(loop.start, 0) else Call(operator.add, (loop.start, done), (), INT)
            span = loop.stop if builders.is_const(loop.start, 0) else _minus(loop.stop, loop.start)
        else:
            start, span = Call(operator.sub, (loop.start, done), (), INT), _minus(loop.start, loop.stop)
        until = Var(self.names.fresh("until"), INT)
        limits = (
            Assign((self.cut.first,), start, loop.origin),
            Assign((until,), Call(min if step > 0 else max, (ends, loop.stop), (), INT), loop.origin),
        )
        count = Call(
            operator.floordiv, (builders.int_add(Call(operator.add, (span, width), (), INT), Const(-1)), width), (), INT
        )
        return limits, Call(max, (count, Const(0)), (), INT)

    @staticmethod
    def _last(first: Var, stop: Expr, step: int) -> Expr:
        """The last value of `range(first, stop, step)`."""
        sign = 1 if step > 0 else -1
        if abs(step) == 1:
            return builders.int_add(stop, Const(-sign))
        span = _minus(builders.int_add(stop, Const(-sign)), first)
        count = Call(operator.floordiv, (span, Const(step)), (), INT)
        return Call(operator.add, (first, Call(operator.mul, (count, Const(step)), (), INT)), (), INT)

    def _limited(self, loop: Stmt, trips: Var, index: Var | None = None) -> tuple[Block, Var]:
        """A loop whose iterations are counted, as one of at most a segment; the flag says whether it stopped there."""
        until, full = Var(self.names.fresh("until"), INT), Var(self.names.fresh("full"), BOOL)
        assert isinstance(loop, (For, While))
        rest = loop.body
        if index is not None:
            count = next(k for k, stmt in enumerate(rest) if trips in stmt.targets)
            rest = (*rest[: count + 1], Assign((index,), builders.int_add(trips, Const(-1))), *rest[count + 1 :])
        stop = If(Call(operator.eq, (trips, until), (), BOOL), (Assign((full,), Const(True)), Break()), rest)
        head = (
            Assign((until,), Call(operator.add, (trips, self.cut.interval), (), INT)),
            Assign((full,), Const(False)),
        )
        if isinstance(loop, While):
            return (*head, While(loop.test, (stop,), loop.origin)), full
        done = trips if builders.is_const(loop.step, 1) else Call(operator.mul, (loop.step, trips), (), INT)
        start = builders.int_add(loop.start, done)
        return (*head, For(loop.target, start, loop.stop, loop.step, (stop,), loop.origin)), full


def _copied(var: Var) -> Call:
    if isinstance(var.type, RandomGenerator):
        return Call(intrinsics.copy_generator, (var,), (), var.type)
    return builders.copy(var)


def _from_checkpoint(var: Var, state: State) -> Expr:
    """A value as its checkpoint holds it."""
    return _copied(var) if var in state.copied or isinstance(var.type, RandomGenerator) else var


def _silent(block: Block) -> Block:
    return without_messages(Function("", (), block)).body


def _minus(a: Expr, b: Expr) -> Expr:
    if isinstance(b, Const) and isinstance(b.value, int):
        return builders.int_add(a, Const(-b.value))
    return Call(operator.sub, (a, b), (), INT)


def _replaced(block: Block, old: Stmt, new: Block) -> Block:
    """A block with statements in place of one."""
    out: list[Stmt] = []
    for stmt in block:
        if stmt is old:
            out += new
        elif old in traversal.statements((stmt,)):
            out.append(traversal.with_blocks(stmt, tuple(_replaced(inner, old, new) for inner in stmt.blocks)))
        else:
            out.append(stmt)
    return tuple(out)


def unread_tapes(block: Block, tapes: Set[Var]) -> set[Var]:
    """The tapes of a segment that nothing reads."""
    found: set[Var] = set()
    for stmt in traversal.statements(block):
        match stmt:
            case Store(_, index, value):
                read = [*index, value]
            case Assign(_, Call(intrinsics.grown)):
                read = []
            case Effect(Call(intrinsics.append, (_, value))):
                read = [value]
            case If(Call(operator.gt, (_, Call(intrinsics.dim, (Var() as store, _)))) as test, _, ()) if store in tapes:
                read = [test.args[0]]
            case _:
                read = list(stmt.headers)
        found.update(*map(traversal.free_vars, read))
    return set(tapes) - found
