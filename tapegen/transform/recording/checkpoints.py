"""Checkpointing: the tape of a loop holds a few iterations, and the forward sweep runs again.

The loop becomes one of segments of `interval` iterations.  The forward sweep records the state at the start of some
segments, the checkpoints, and nothing of the iterations.  The backward sweep goes through the segments from the last to
the first: it restores the state of the last checkpoint, runs the iterations from there to the end of the segment again,
now recording, and reverses those of the segment.

    for t in range(n):                    for segment in range(segments):
        u_tape[t] = u                         if segment == following:
        u = step(u)                               u_checkpoints.append(u)
    for t in range(n - 1, -1, -1):                following = segment + checkpoint_distance(...)
        u = u_tape[t]                         for t in ...: u = step(u)
        ...                          ->   for segment in range(segments - 1, -1, -1):
                                              u_1 = u_checkpoints.pop()
                                              for current in range(starts.pop(), segment + 1):
                                                  if current == following and current < segment: (as above)
                                                  for t in ...: u_tape[t - first] = u_1; u_1 = step(u_1)
                                              for t in ...: u = u_tape[t - first]; ...

If `checkpoints`, the number of them that may be held, is that of the segments, each segment runs twice (two-level
checkpointing).  If it is less, `checkpoint_distance` places them so that as few segments as possible run again
(binomial checkpointing); both numbers are arguments.  Of a loop of unknown length the forward sweep keeps checkpoints
at equal distances, and drops every other one where there are too many.  A segment that is not reversed yet records as
well: its tape is written over, so that there is one text of a recording iteration.

The second run works on copies under names of its own, so that the caller's arrays, and the values that are live after
the loop, stay as the first run leaves them.  All runs have the same statements, and the reversed iterations add to the
same cotangents in the same order: the gradient is that of the recording program bit for bit.
"""

from __future__ import annotations

import operator
from collections.abc import Mapping, Sequence, Set
from dataclasses import replace

import numpy as np

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
from tapegen.transform.recording.checkpoint_state import Refused, State, StateFinder
from tapegen.transform.recording.decisions import Cut
from tapegen.transform.recording.loop_order import loops_of, reversed_loops
from tapegen.transform.recording.tape_layout import drop_unread_tapes
from tapegen.transform.recording.tape_sizes import Sizes


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
        self.is_nested = facts.scopes.at[cut.loop].in_loop  # each run of the loop needs its own
        self.before: list[Stmt] = []  # the loop in the forward sweep
        self.after: list[Stmt] = []
        self.found: list[Stmt] = []  # what the backward sweep begins with
        self.segment = Var(names.fresh("segment"), INT)
        self.start = Var(names.fresh("start"), INT)  # the segment that begins with a checkpoint
        self.free = Var(names.fresh("free"), INT)  # how many more checkpoints may be made
        self.following = Var(names.fresh("following"), INT)  # the segment that begins with the next checkpoint

    def run(self, forward: Block, backward: Block, recording: Stmt, undo: Stmt) -> tuple[Block, Block]:
        """Both sweeps with the loop, and the one that reverses it, as segments."""
        cut, sweeps = self.cut, self.sweeps
        assert isinstance(undo, For)
        trips = sweeps.trips.get(cut.loop)
        (plain,) = drop_unread_tapes((recording,), self.tapes)
        state = StateFinder(cut.loop, self.program, sweeps, self.facts, self.names).find((plain,), backward)
        cut.state = tuple(state.values)
        for var, kept in state.kept.items():
            value = builders.copy(var) if isinstance(var.type, Array) and var in state.rewritten else var
            if self.is_nested:
                self.before.append(self._pushed(kept, value))
                self.found.append(Assign((kept,), self._popped(kept)))
            else:
                self.before.append(Assign((kept,), value))
        segments = Var(self.names.fresh("segments"), INT)
        self.before.append(Assign((self.free,), cut.checkpoints))
        if trips is None:
            loops = self._counted(plain, state, segments)
        else:
            loops = self._uncounted(plain, trips, state, segments)
        forward = _replaced(forward, recording, (*self.before, loops, *self.after, *self._saved(segments, self.free)))
        back = self._reversed(recording, undo, trips, state, segments)
        backward = _replaced(backward, undo, (*self.found, *back))
        return (*self.create, *forward), backward

    # ---- the forward sweep -------------------------------------------------------------------------------------------

    def _counted(self, plain: Stmt, state: State, segments: Var) -> Stmt:
        """A loop whose number of iterations is known before it: checkpoints where least segments run again."""
        assert isinstance(self.cut.loop, For) and isinstance(plain, For)
        segment = self.segment
        ranges, count = self._ranges(self.cut.loop, segment)
        self.before += [Assign((segments,), count), Assign((self.following,), Const(0))]
        left = builders.int_add(_minus(segments, segment), Const(1))  # what follows the loop counts as one more
        save = If(_equal(segment, self.following), self._checkpoint(segment, left, state))
        loop = replace(plain, start=ranges[0].targets[0], stop=ranges[1].targets[0])
        return For(segment, Const(0), segments, Const(1), (save, *ranges, loop), self.cut.loop.origin)

    def _uncounted(self, plain: Stmt, trips: Var, state: State, segments: Var) -> Stmt:
        """A loop of unknown length: a checkpoint in each `stride` segments, twice as many where there are too many."""
        inner, full = self._limited(plain, trips)
        stride, reserve = (Var(self.names.fresh(name), INT) for name in ("stride", "reserve"))
        running = Var(self.names.fresh("running"), BOOL)
        self.before += [Assign((segments,), Const(0)), Assign((stride,), Const(1)), Assign((reserve,), Const(0))]
        self.before.append(Assign((running,), Const(True)))
        is_next = _equal(Call(operator.mod, (segments, stride), (), INT), Const(0))
        is_full = Call(intrinsics.and_, (is_next, _equal(self.free, reserve)), (), BOOL)
        has_room = Call(operator.gt, (self.free, reserve), (), BOOL)
        thin = (
            *self._every_other(state),
            Assign((reserve,), Call(operator.floordiv, (self.cut.checkpoints, Const(2)), (), INT)),
            Assign((stride,), Call(operator.mul, (Const(2), stride), (), INT)),
        )
        body = (
            If(is_full, thin),
            If(Call(intrinsics.and_, (is_next, has_room), (), BOOL), self._saved_state(segments, state)),
            Assign((segments,), builders.int_add(segments, Const(1))),
            *inner,
            Assign((running,), full),
        )
        return While(running, body, self.cut.loop.origin)

    def _every_other(self, state: State) -> Block:
        """Drop every other checkpoint of this run of the loop."""
        held, k = Var(self.names.fresh("held"), INT), Var(self.names.fresh("slot"), INT)
        dropped = Call(operator.floordiv, (held, Const(2)), (), INT)
        kept = Call(operator.floordiv, (builders.int_add(held, Const(1)), Const(2)), (), INT)
        moved: list[Stmt] = []
        popped: list[Stmt] = []
        for var in (self.start, *state.values):
            stack = self._stack(var)
            to: Expr = k
            source: Expr = Call(operator.mul, (Const(2), k), (), INT)
            if self.is_nested:  # below are those of earlier runs
                low = _minus(Call(len, (stack,), (), INT), held)
                to, source = Call(operator.add, (low, to), (), INT), Call(operator.add, (low, source), (), INT)
            item = Call(intrinsics.item, (stack, source), (), var.type)
            moved.append(Effect(Call(intrinsics.set_item, (stack, to, item), ())))
            popped.append(Effect(Call(intrinsics.pop, (stack,), (), var.type)))
        return (
            Assign((held,), _minus(self.cut.checkpoints, self.free)),
            For(k, Const(1), kept, Const(1), tuple(moved)),
            For(Var(self.names.fresh("slot"), INT), Const(0), dropped, Const(1), tuple(popped)),
            Assign((self.free,), Call(operator.add, (self.free, dropped), (), INT)),
        )

    def _checkpoint(self, segment: Expr, left: Expr, state: State) -> Block:
        """Make a checkpoint, and decide where the next one is; `left` are the segments to reverse."""
        distance = Call(intrinsics.checkpoint_distance, (left, self.free), (), INT)
        return (
            Assign((self.following,), Call(operator.add, (segment, distance), (), INT)),
            *self._saved_state(segment, state),
        )

    def _saved_state(self, segment: Expr, state: State) -> Block:
        return (
            self._pushed(self.start, segment),
            *(self._pushed(var, _from_checkpoint(var, state)) for var in state.values),
            Assign((self.free,), builders.int_add(self.free, Const(-1))),
        )

    def _saved(self, *counts: Var) -> Block:
        """Keep numbers of this run of the loop for the backward sweep."""
        if not self.is_nested:
            return ()
        self.found += [Assign((var,), self._popped(var)) for var in counts]
        return tuple([self._pushed(var, var) for var in counts])

    # ---- the backward sweep ------------------------------------------------------------------------------------------

    def _reversed(self, recording: Stmt, undo: For, trips: Var | None, state: State, segments: Var) -> Block:
        """The segments from the last to the first: run from the last checkpoint, recording, and reversed."""
        cut, sweeps = self.cut, self.sweeps
        segment, current = self.segment, Var(self.names.fresh("current"), INT)
        low = builders.int_add(cut.first, Const(-1))
        own = {self.following, self.free, cut.first, *self.tapes, *self.lists.values()}
        if trips is None:
            assert isinstance(cut.loop, For) and isinstance(recording, For)
            assert isinstance(undo.step, Const) and isinstance(undo.step.value, int)
            ranges, _ = self._ranges(cut.loop, current)
            until = ranges[1].targets[0]
            own.add(until)
            limits: Block = (*ranges, replace(recording, start=cut.first, stop=until))
            ends: Block = traversal.substitute_block(ranges, {current: segment})
            low = builders.int_add(cut.first, Const(-1 if undo.step.value < 0 else 1))
            last = self._last(cut.first, until, -undo.step.value)
        else:
            counted, _ = self._limited(recording, trips, sweeps.trip_index[cut.loop])
            limits = (Assign((cut.first,), trips), *counted)
            ends = (Assign((cut.first,), Call(operator.mul, (segment, cut.interval), (), INT)),)
            last = builders.int_add(trips, Const(-1))
        saved = self._checkpoint(current, builders.int_add(_minus(segment, current), Const(1)), state)
        made = traversal.assigned_in(*limits) | set(state.values) | {stmt.targets[0] for stmt in state.views}
        renamed = {var: Var(self.names.fresh(var.name), var.type) for var in sorted(made - own, key=lambda v: v.name)}
        mapping = {**state.kept, **renamed}
        emptied, created = _split(cut.create)
        is_later = Call(operator.lt, (current, segment), (), BOOL)
        is_saved = Call(intrinsics.and_, (_equal(current, self.following), is_later), (), BOOL)
        runs = For(
            current,
            self.start,
            builders.int_add(segment, Const(1)),
            Const(1),
            (
                If(is_saved, traversal.rename_block(saved, mapping)),
                *emptied,
                *traversal.rename_block(_silent(limits), mapping),
            ),
            cut.loop.origin,
        )
        restored = (
            Assign((self.start,), self._popped(self.start)),
            *self._restored(state, renamed),
            *traversal.rename_block(_silent(tuple(state.views)), mapping),
            Assign((self.free,), builders.int_add(self.free, Const(1))),
            Assign((self.following,), self.start),
        )
        undone = replace(undo, start=traversal.substitute(last, renamed), stop=low)
        body = (Comment(FORWARD), *restored, runs, Comment(BACKWARD), *traversal.rename_block(ends, mapping), undone)
        stop, step = Const(-1), Const(-1)
        return (*created, For(segment, builders.int_add(segments, step), stop, step, body, cut.loop.origin))

    def _restored(self, state: State, renamed: Mapping[Var, Var]) -> Block:
        """The values of the last checkpoint, under the names of the second run."""
        restored: list[Stmt] = []
        for var in state.values:
            popped: Expr = self._popped(var)
            if self._keeps_shape(var):
                self.found.append(Assign((renamed[var],), Call(np.empty_like, (var,), (), var.type)))
                restored.append(Store(renamed[var], (), popped))
                continue
            if var in state.copied or isinstance(var.type, RandomGenerator):  # a pullback may run again
                whole = Var(self.names.fresh(f"{var.name}_checkpoint"), var.type)
                restored.append(Assign((whole,), popped))
                popped = _copied(whole)
            restored.append(Assign((renamed[var],), popped))
        return tuple(restored)

    def _keeps_shape(self, var: Var) -> bool:
        """Whether an array has the same shape in all iterations, as one that is created before any loop."""
        if not isinstance(var.type, Array) or var.type.rank == 0 or var in self.sweeps.references:
            return False
        sizes = Sizes(self.program, self.facts.scopes, self.facts.shapes)
        return sizes.of_value(var) is not None

    def _stack(self, var: Var) -> Var:
        """The list of the checkpoints of a value."""
        if var not in self.lists:
            name = "starts" if var is self.start else f"{var.name}_checkpoints"
            found = self.lists[var] = Var(self.names.fresh(name), ListOf(var.type))
            self.create.append(Assign((found,), Call(intrinsics.new_list, (), (), found.type)))
        return self.lists[var]

    def _pushed(self, var: Var, value: Expr) -> Stmt:
        """Append a value to the list of its checkpoints."""
        return Effect(Call(intrinsics.append, (self._stack(var), value), ()))

    def _popped(self, var: Var) -> Call:
        return Call(intrinsics.pop, (self._stack(var),), (), var.type)

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


def _split(create: Block) -> tuple[Block, Block]:
    """The statements that create tapes: those that empty them before each segment, and arrays that are written over."""
    arrays = {stmt for stmt in create if isinstance(stmt, Assign) and isinstance(stmt.targets[0].type, Array)}
    return tuple([stmt for stmt in create if stmt not in arrays]), tuple([stmt for stmt in create if stmt in arrays])


def _equal(a: Expr, b: Expr) -> Call:
    return Call(operator.eq, (a, b), (), BOOL)


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
