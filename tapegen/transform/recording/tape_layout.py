"""Tape layout: from Push and Pop to stores into arrays and loads from them.

A tape has one axis per enclosing loop when all trip counts are known before the outermost loop starts; it is then
exactly as large as needed (for a triangular loop nest: as the longest row) and is indexed by the loop counters.
Otherwise it is one growing axis with a counter.
"""

from __future__ import annotations

import operator
from collections.abc import Sequence, Set
from dataclasses import dataclass, replace

import numpy as np

from tapegen.analysis.scopes import Scope, Scopes
from tapegen.analysis.shape_functions import Extent
from tapegen.analysis.shape_inference import Shapes
from tapegen.ir import builders, intrinsics, traversal
from tapegen.ir.affine import linear
from tapegen.ir.names import NameSupply, tape_name
from tapegen.ir.nodes import (
    Assign,
    Block,
    Call,
    Const,
    Effect,
    Expr,
    For,
    If,
    Load,
    Pop,
    Push,
    Stmt,
    Store,
    Tuple,
    Var,
    While,
)
from tapegen.ir.types import BOOL, INT, Array, ListOf, Scalar
from tapegen.transform.autodiff.reverse import Sweeps
from tapegen.transform.recording import dead_shapes
from tapegen.transform.recording.decisions import Cut, Decision, Recorded, Tape
from tapegen.transform.recording.tape_positions import may_be_independent, with_positions
from tapegen.transform.simplify.dead_code import is_pure

START_SIZE = 64


@dataclass(slots=True)
class Laid:
    """Both sweeps without Push and Pop, the statements that create the tapes, and the tapes."""

    create: Block
    forward: Block
    backward: Block
    tapes: list[Tape]


def lay_out(
    recorded: Recorded,
    sweeps: Sweeps,
    scopes: Scopes,
    shapes: Shapes,
    names: NameSupply,
    cuts: Sequence[Cut] = (),
    *,
    parallel: bool = False,
) -> Laid:
    """Give each tape an array and turn Push and Pop into stores and loads; in loops that are cut, for a segment.

    Under `parallel`, iterations that may be independent record where they end on tapes that grow (`tape_positions`).
    """
    return _Layout(recorded, sweeps, scopes, shapes, names, cuts, parallel=parallel).run()


def drop_unread_tapes(block: Block, unread: Set[Var]) -> Block:
    """A forward sweep without the tapes and counters that no backward sweep reads."""
    out: list[Stmt] = []
    for stmt in block:
        if unread.isdisjoint(traversal.reads(stmt)) and unread.isdisjoint(traversal.assigns(stmt)):
            out.append(stmt)
            continue
        match stmt:
            case Assign((target,)) if target in unread:
                continue
            case Store(array) if array in unread:
                continue
            case Effect(Call(intrinsics.append, (sequence, *_))) if sequence in unread:
                continue
            case If(_, body, (), None) if not drop_unread_tapes(body, unread):  # the growth of tapes
                continue
            case If(Call(operator.gt, (counter, Call(intrinsics.dim, (store, axis)))) as test, body, (), None) if (
                store in unread
            ):
                body = drop_unread_tapes(body, unread)  # the others have the same length
                (sized,) = body[0].targets
                extent = Call(intrinsics.dim, (sized, axis), (), INT)
                out.append(replace(stmt, test=replace(test, args=(counter, extent)), body=body))
            case _:
                inner = tuple(drop_unread_tapes(part, unread) for part in stmt.blocks)
                out.append(traversal.with_blocks(stmt, inner) if inner else stmt)
    return tuple(out)


class _Layout:
    def __init__(
        self,
        recorded: Recorded,
        sweeps: Sweeps,
        scopes: Scopes,
        shapes: Shapes,
        names: NameSupply,
        cuts: Sequence[Cut],
        *,
        parallel: bool,
    ) -> None:
        self.recorded, self.sweeps, self.scopes, self.shapes, self.names = recorded, sweeps, scopes, shapes, names
        self.parallel = parallel
        self.cuts: dict[Stmt | None, Cut] = {cut.loop: cut for cut in cuts}
        self.cut_of: dict[Var, Cut] = {}  # counters and stores of segments
        self.counters: dict[int, Var] = {}  # scope -> counter of its growing tapes
        self.counted: dict[int, list[Tape]] = {}
        self.tapes: dict[str, Tape] = {}

    def run(self) -> Laid:
        for decision in self.recorded.decisions:
            if decision.way == "record":
                self.tapes[decision.tape] = self._tape(decision)
        positions = self._positions() if self.parallel else {}
        created: list[Assign] = []
        for tape in self.tapes.values():
            if tape.cut is not None:
                self.cut_of[tape.store] = tape.cut
            if tape.index is None:
                created.append(Assign((tape.store,), Call(intrinsics.new_list, (), (), tape.store.type)))
            else:
                shape = tape.shape[0] if len(tape.shape) == 1 else Tuple(tape.shape)
                dtype = tape.store.type.dtype  # type: ignore[union-attr]
                more = () if dtype == "float64" else (Const(np.bool_ if dtype == "bool" else getattr(np, dtype)),)
                created.append(Assign((tape.store,), Call(np.empty, (shape, *more), (), tape.store.type)))
        for counter in self.counters.values():
            created.append(Assign((counter,), Const(0)))
        create = tuple(stmt for stmt in created if stmt.targets[0] not in self.cut_of)
        for cut in self.cuts.values():
            cut.create = tuple(stmt for stmt in created if self.cut_of.get(stmt.targets[0]) is cut)
        forward = self._forward(self.recorded.forward)
        backward = self._backward(self.recorded.backward)
        if positions:
            forward, backward = with_positions(forward, backward, positions, self.scopes.root.block, self.sweeps)
        return Laid(create, forward, backward, list(self.tapes.values()))

    def _tape(self, decision: Decision) -> Tape:
        var, scope = decision.var, decision.scope
        loops = [around for around in scope.chain if around.is_loop][::-1]
        cut = next((self.cuts[around.header] for around in scope.chain if around.header in self.cuts), None)
        if cut is not None:  # the tape holds the values of a segment
            loops = loops[next(k for k, around in enumerate(loops) if around.header is cut.loop) :]
        counts = [self._count(loop) for loop in loops]
        type_ = var.type
        value_shape: tuple[Expr, ...] | None = ()
        if var in self.sweeps.references:
            value_shape = None  # a list holds the arrays themselves
        elif isinstance(type_, Array):
            value_shape = self._value_shape(var)
        if value_shape is None or isinstance(type_, ListOf):
            return Tape(
                var, Var(self.names.fresh(tape_name(var.name)), ListOf(type_)), None, (), None, False, scope, cut
            )
        assert isinstance(type_, (Array, Scalar))
        rank = len(value_shape)
        if all(count is not None for count in counts):
            store = Var(self.names.fresh(tape_name(var.name)), Array(type_.dtype, len(loops) + rank, "C"))
            index = tuple(self._position(loop) for loop in loops)
            extents = tuple(count for count in counts if count is not None)
            return Tape(var, store, index, extents + value_shape, None, True, scope, cut)
        store = Var(self.names.fresh(tape_name(var.name)), Array(type_.dtype, 1 + rank, "C"))
        counter = self._counter(scope)
        if cut is not None:
            self.cut_of[counter] = cut
        last = builders.int_add(counter, Const(-1))
        most = _max_trip_count(scope) if len(loops) == 1 else None
        shape = (Const(most or START_SIZE), *value_shape)
        tape = Tape(var, store, (last,), shape, counter, most is not None, scope, cut)
        if not tape.exact:
            self.counted.setdefault(id(scope), []).append(tape)
        return tape

    def _positions(self) -> dict[Stmt, list[Tape]]:
        """For loops whose iterations may be independent, the tapes of where these end on tapes that grow."""
        found: dict[Stmt, list[Tape]] = {}
        for grows in [tapes[0] for tapes in self.counted.values()]:
            loops = [around for around in grows.scope.chain if around.is_loop][::-1]
            if grows.cut is not None:
                loops = loops[next(k for k, around in enumerate(loops) if around.header is grows.cut.loop) :]
            assert grows.counter is not None
            extents: list[Expr] = []
            for depth, around in enumerate(loops):
                count = self._count(around)
                if count is None:
                    break
                extents.append(count)
                if not may_be_independent(around) or around.header in self.sweeps.trips:
                    continue
                store = Var(self.names.fresh(tape_name(grows.counter.name)), Array(INT.dtype, depth + 1, "C"))
                index = tuple(self._position(outer) for outer in loops[: depth + 1])
                made = Tape(grows.counter, store, index, tuple(extents), None, True, around, grows.cut)
                self.tapes[store.name] = made
                assert around.header is not None
                found.setdefault(around.header, []).append(made)
        return found

    def _count(self, scope: Scope) -> Expr | None:
        """The trip count of a loop, or an upper bound of it, as known before the outermost loop starts."""
        loop = scope.header
        if loop in self.cuts:
            return self.cuts[loop].interval
        if not isinstance(loop, For) or loop in self.sweeps.trips or not isinstance(loop.step, Const):
            return None
        start, stop = self._resolved(loop.start), self._resolved(loop.stop)
        if traversal.loads(start) or traversal.loads(stop):
            return None
        step = loop.step.value
        assert isinstance(step, int)
        low, high = (start, stop) if step > 0 else (stop, start)
        if all(self._fixed(var) for expr in (low, high) for var in traversal.free_vars(expr)):
            span = high if builders.is_const(low, 0) else _minus(high, low)
        else:
            most = self._most(scope, low, high)
            if most is None:
                return None
            span = most
        if (form := linear(span)).is_constant:
            span = Const(form.constant)
        if abs(step) != 1:
            span = Call(operator.floordiv, (builders.int_add(span, Const(abs(step) - 1)), Const(abs(step))), (), INT)
        if isinstance(span, Const):
            assert isinstance(span.value, int)
            return Const(max(span.value, 0))
        if isinstance(span, Call) and span.func is intrinsics.dim:
            return span
        return Call(max, (span, Const(0)), (), INT)

    def _resolved(self, expr: Expr) -> Expr:
        """An integer expression with variables that are defined inside loops inlined."""
        for _ in range(8):
            inner = {
                var: self.scopes.assigns[var][0].value
                for var in traversal.free_vars(expr)
                if isinstance(var.type, Scalar) and not self._fixed(var) and len(self.scopes.assigns.get(var, ())) == 1
            }
            inner = {
                var: value
                for var, value in inner.items()
                if value.type == var.type and not traversal.loads(value) and is_pure(value)
            }
            if not inner:
                break
            expr = traversal.substitute(expr, inner)
        return expr

    def _most(self, scope: Scope, low: Expr, high: Expr) -> Expr | None:
        """The largest value of `high - low` over the counters of the enclosing loops."""
        span = linear(high) - linear(low)
        for around in (outer for outer in scope.chain if outer.is_loop and outer is not scope):
            loop = around.header
            if not isinstance(loop, For):
                continue
            factor = span.coefficient(loop.target)
            if not factor:
                continue
            if loop in self.sweeps.trips or not isinstance(loop.step, Const) or not isinstance(loop.step.value, int):
                return None
            start, stop = (linear(self._resolved(part)) for part in (loop.start, loop.stop))
            upwards = loop.step.value > 0
            last = stop + (-1 if upwards else 1)
            end = last if upwards == (factor > 0) else start
            span = span.without(loop.target).plus(end, factor)
        return span.expr if all(map(self._fixed, span.names)) else None

    def _fixed(self, var: Var) -> bool:
        """Whether a value is known before any loop starts."""
        owner = self.scopes.owner.get(var)
        if owner is not self.scopes.root or self.scopes.is_merge(var) or isinstance(var.type, ListOf):
            return False
        assigns = self.scopes.assigns.get(var)
        return not assigns or self._before_loops(assigns[0])

    def _before_loops(self, stmt: Stmt) -> bool:
        for other in self.scopes.root.block:
            if other is stmt:
                return True
            if any(isinstance(inner, (For, While)) for inner in traversal.statements((other,))):
                return False  # the tapes are created before the first loop
        return False

    def _position(self, scope: Scope) -> Expr:
        loop = scope.header
        cut = self.cuts.get(loop)
        if cut is not None and loop in self.sweeps.trips:
            return _minus(self.sweeps.trip_index[loop], cut.first)
        assert isinstance(loop, For) and isinstance(loop.step, Const) and isinstance(loop.step.value, int)
        step = loop.step.value
        start = self._resolved(loop.start) if cut is None else cut.first
        if step < 0:
            offset: Expr = _minus(start, loop.target)
        else:
            offset = loop.target if builders.is_const(start, 0) else _minus(loop.target, start)
        if abs(step) == 1:
            return offset
        return Call(operator.floordiv, (offset, Const(abs(step))), (), INT)

    def _value_shape(self, var: Var) -> tuple[Expr, ...] | None:
        """The extents of a recorded array as they are known before any loop starts."""
        assigns = self.scopes.assigns.get(var)
        copied = assigns[0].value if assigns and len(assigns) == 1 else None
        source = copied.args[0] if isinstance(copied, Call) and copied.func is np.copy else var
        assert isinstance(source, Var)
        if self._fixed(source):
            assert isinstance(source.type, Array)
            return tuple(Call(intrinsics.dim, (source, Const(axis)), (), INT) for axis in range(source.type.rank))
        extents = [self._size(extent) for extent in self.shapes.of(source)]
        sizes = tuple(extent for extent in extents if extent is not None)
        return sizes if len(sizes) == len(extents) else None

    def _size(self, extent: Extent) -> Expr | None:
        """An extent as it is known before any loop starts."""
        constant, terms = extent
        total: Expr = Const(constant)
        for symbol, coefficient in terms:
            cut = self.shapes.cuts.get(symbol)
            term = self._symbol(*symbol) if cut is None else dead_shapes.cut(*map(self._size, cut))
            if term is None or coefficient != 1:
                return None
            total = builders.int_add(term, total) if isinstance(total, Const) else builders.int_add(total, term)
        return Call(max, (total, Const(0)), (), INT) if constant < 0 else total

    def _symbol(self, kind: str, name: str, axis: int) -> Expr | None:
        source = next((var for var in self.scopes.owner if var.name == name), None)
        if source is None or kind not in ("param", "int") or not self._fixed(source):
            return None
        return Call(intrinsics.dim, (source, Const(axis)), (), INT) if kind == "param" else source

    def _counter(self, scope: Scope) -> Var:
        """The counter of a scope's growing tapes: the loop's own iteration counter when the loop runs once."""
        key = id(scope)
        loop = scope.header
        if loop in self.sweeps.trips and scope.parent is self.scopes.root:
            return self.sweeps.trips[loop]
        if key not in self.counters:
            self.counters[key] = Var(self.names.fresh("top"), INT)
        return self.counters[key]

    # ---- rewriting ---------------------------------------------------------------------------------------------------

    def _forward(self, block: Block, begun: Set[Var] = frozenset()) -> Block:
        """Pushes as stores; a branch that exits the iteration may push what the rest of the iteration pushes.

        The counters in `begun` count this iteration already.
        """
        out: list[Stmt] = []
        waiting: list[Push] = []  # scalars of growing tapes, stored together: one check of their length
        started = set(begun)
        last = max((k for k, stmt in enumerate(block) if isinstance(stmt, Push)), default=-1)
        for k, stmt in enumerate(block):
            if isinstance(stmt, Push) and self.tapes[stmt.tape].counter is not None and _is_number(stmt.value):
                waiting.append(stmt)
            else:
                if stmt.blocks or {push.value for push in waiting} & set(stmt.targets):
                    out += self._stores_into_tapes(waiting, started)
                    waiting = []
                if isinstance(stmt, Push):
                    out += self._stores_into_tapes([stmt], started)
                else:
                    inner = tuple(self._forward(part, started) for part in stmt.blocks)
                    out.append(traversal.with_blocks(stmt, inner))
            if k == last:
                out += self._stores_into_tapes(waiting, started)
                waiting = []
        return tuple(out)

    def _stores_into_tapes(self, pushes: list[Push], started: set[Var]) -> list[Stmt]:
        """The stores into tapes; the tapes whose counters have not `started` are extended first."""
        out: list[Stmt] = []
        for push in pushes:
            tape = self.tapes[push.tape]
            if tape.counter is not None and tape.counter not in started:
                started.add(tape.counter)
                if tape.counter in self.counters.values():
                    out.append(Assign((tape.counter,), builders.int_add(tape.counter, Const(1))))
                if not tape.exact:
                    out.append(self._grown(tape))
            if tape.index is None:
                kept = isinstance(push.value.type, Array) and push.value not in self.sweeps.references
                value = builders.copy(push.value) if kept else push.value
                out.append(Effect(Call(intrinsics.append, (tape.store, value), ())))
            else:
                out.append(Store(tape.store, tape.index, push.value, origin=push.origin))
        return out

    def _grown(self, tape: Tape) -> If:
        """Double all tapes that share a counter when they are full."""
        assert tape.counter is not None
        extent = Call(intrinsics.dim, (tape.store, Const(0)), (), INT)
        longer: list[Stmt] = []
        for other in self.counted[id(tape.scope)]:
            longer.append(Assign((other.store,), Call(intrinsics.grown, (other.store,), (), other.store.type)))
        return If(Call(operator.gt, (tape.counter, extent), (), BOOL), tuple(longer))

    def _backward(self, block: Block) -> Block:
        out: list[Stmt] = []
        ended: list[Var] = []
        last = max((k for k, stmt in enumerate(block) if isinstance(stmt, Pop)), default=-1)
        for k, stmt in enumerate(block):
            if isinstance(stmt, Pop):
                tape = self.tapes[stmt.tape]
                if tape.index is None:
                    out.append(Assign((stmt.target,), Call(intrinsics.pop, (tape.store,), (), stmt.target.type)))
                else:
                    index = tape.index
                    if tape.counter is not None and tape.counter not in self.counters.values():
                        index = (self._iteration_of(tape.counter),)
                    out.append(Assign((stmt.target,), Load(tape.store, index, stmt.target.type)))
                    if (
                        tape.counter is not None
                        and tape.counter in self.counters.values()
                        and tape.counter not in ended
                    ):
                        ended.append(tape.counter)
            else:
                out.append(traversal.with_blocks(stmt, tuple(self._backward(inner) for inner in stmt.blocks)))
            if k == last:
                out.extend(Assign((counter,), builders.int_add(counter, Const(-1))) for counter in ended)
        return tuple(out)

    def _iteration_of(self, counter: Var) -> Expr:
        for loop, trips in self.sweeps.trips.items():
            if trips == counter:
                return self.sweeps.trip_index[loop]
        raise AssertionError("a trip counter without a loop")


def _max_trip_count(scope: Scope) -> int | None:
    """The maximum trip count of a loop, where that is a constant no larger than the initial length of tapes."""
    match scope.header:
        case For(_, Const(int() as start), Const(int() as stop), Const(int() as step)) if step:
            trips = len(range(start, stop, step))
            return trips if 0 < trips <= START_SIZE else None
    return None


def _is_number(value: Expr) -> bool:
    return isinstance(value, Var) and isinstance(value.type, Scalar)


def _minus(a: Expr, b: Expr) -> Expr:
    if isinstance(b, Const) and isinstance(b.value, int):
        return builders.int_add(a, Const(-b.value))
    return Call(operator.sub, (a, b), (), INT)
