"""Outlining of parallel loops: a loop becomes a function of a chunk of its iterations, which threads call.

Legal where iterations share nothing but sums (`iterations`); it pays where the loop is long, which the sizes of arrays
tell when it begins.  How the iterations are divided depends on those sizes alone, and sums of chunks are added up in
the order of the chunks, so that results do not depend on the number of threads.

Before::

    def f(x: "f8[:]"):
        y = np.empty(x.shape[0])
        s = 0.0
        for i in range(x.shape[0]):
            y[i] = 2.0 * x[i]
            s = s + y[i]
        return s, y

After::

    def f_loop(chunk, chunks, x, y, s_parts):
        trips = x.shape[0]
        s = 0.0
        for i in range(chunk * trips // chunks, (chunk + 1) * trips // chunks):
            y[i] = 2.0 * x[i]
            s += y[i]
        s_parts[chunk] = s


    def f(x):
        y = np.empty(x.shape[0])
        s = 0.0
        chunks = min(64, x.shape[0], 5 * x.shape[0] // 20000)
        if chunks > 1:
            s_parts = np.empty(chunks)
            intrinsics.run_chunks(f_loop, chunks, x, y, s_parts)
            for k in range(chunks):
                s += s_parts[k]
        else:
            for i in range(x.shape[0]):
                y[i] = 2.0 * x[i]
                s += y[i]
        return s, y
"""

from __future__ import annotations

import operator
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from tapegen.errors import Span
from tapegen.ir import builders, intrinsics, traversal
from tapegen.ir.affine import Affine, plus, times
from tapegen.ir.names import BACKWARD, NameSupply
from tapegen.ir.nodes import (
    Assign,
    Block,
    Call,
    Comment,
    Const,
    Effect,
    Expr,
    For,
    Function,
    If,
    Load,
    Return,
    Routine,
    Stmt,
    Store,
    Var,
    While,
)
from tapegen.ir.types import BOOL, INT, STATIC, Array, Scalar
from tapegen.loops.analysis.block_queries import names_in
from tapegen.loops.analysis.dependence import alias_sets
from tapegen.loops.analysis.flow_facts import FlowFacts
from tapegen.loops.analysis.rounding_sensitive import deciding
from tapegen.loops.parallel.chunk_arrays import extent, extents_of, range_of_chunk, rank_of, size_of
from tapegen.loops.parallel.chunk_tapes import ChunkTapes
from tapegen.loops.parallel.iterations import Dependent, Shared, shared_by_iterations
from tapegen.loops.parallel.work import trips_of, work_of_iteration, work_of_loop

LEAST = 20_000
"""The work of a chunk, in units of `work`: about 20 microseconds, more than waking a thread takes."""

_COPY = 3
"""The work of iterations that only fill or copy elements: the threads would wait for memory."""

_LARGEST = 2**23
"""Elements of the copies of one array to which iterations add."""


@dataclass(frozen=True)
class Verdict:
    """Whether a loop runs in parallel.

    Attributes
    ----------
    origin : Span or None
        The loop or the array statement in the user's source.
    backward : bool
        Whether it is a loop of the backward sweep.
    reason : str
        Why it runs in one thread; empty for a parallel one.
    """

    origin: Span | None
    backward: bool
    reason: str = ""


def outline_loops(function: Function, *, verdicts: list[Verdict] | None) -> Function:
    """The same program with calls in place of loops that may run in parallel.

    Parameters
    ----------
    function : Function
        A program without array statements.
    verdicts : list or None
        Where to note what becomes of its outermost loops; None if all run in one thread.

    Returns
    -------
    Function
        The program; the functions of its loops are routines that it calls, for which the rest of the pipeline is due.
    """
    if function.inner or verdicts is None:
        return function
    own = traversal.with_body(function, _with_own_statements(function.body))
    outlining = _Outlining(own)
    body = outlining.block(own.body)
    verdicts[:] = outlining.verdicts
    if body == own.body:
        return function
    return replace(traversal.with_body(function, body), deciding=frozenset(outlining.deciding))


def _with_own_statements(block: Block) -> Block:
    """A block in which no statement occurs twice, as in versions of a loop: accesses are found by their statement."""
    return tuple(replace(traversal.with_blocks(stmt, tuple(map(_with_own_statements, stmt.blocks)))) for stmt in block)


def chunks_of(function: Function) -> dict[Routine, Function]:
    """The functions of the parallel loops of a program."""
    found = {}
    for routine in traversal.routines(function.body):
        if routine.by_chunks and routine.function is not None:
            found[routine] = routine.function
    return found


class _Outlining:
    def __init__(self, function: Function) -> None:
        self.function = function
        self.memory = alias_sets(function)
        self.deciding = deciding(function, self.memory)
        self.names = NameSupply(names_in(function))
        self.backward = function.backward
        self.verdicts: list[Verdict] = []
        self.known = FlowFacts()
        self.around: list[tuple[Block, Block, For | While | None]] = []  # `Surroundings`, outermost first

    def block(self, block: Block, around: For | While | None = None) -> Block:
        """The statements in place of a block."""
        out: list[Stmt] = []
        self.around.append(((), (), around))
        for k, stmt in enumerate(block):
            self.around[-1] = block[:k], block[k + 1 :], around
            if isinstance(stmt, For):
                out += self._loop(stmt)
                continue
            self.backward |= isinstance(stmt, Comment) and stmt.text == BACKWARD
            out.append(self._inside(stmt))
            self.known.learn(stmt)
        self.around.pop()
        return tuple(out)

    def _inside(self, stmt: Stmt) -> Stmt:
        """A statement with what takes the place of the loops in it."""
        if not stmt.blocks:
            return stmt
        outer = self.known
        if isinstance(stmt, (For, While)):
            self.known = outer.body(stmt)
            blocks = [self.block(stmt.body, stmt)]
        else:
            assert isinstance(stmt, If)
            blocks = []
            for block, self.known in zip(stmt.blocks, outer.sides(stmt), strict=True):
                blocks.append(self.block(block))
        self.known = outer
        return traversal.with_blocks(stmt, tuple(blocks))

    def _loop(self, loop: For) -> list[Stmt]:
        if not self._may_be_long(loop):
            self.known.body(loop)
            return [loop]
        try:
            shared = shared_by_iterations(self.function, loop, self.around[::-1], self.known)
        except Dependent as dependent:
            self.verdicts.append(Verdict(loop.origin, self.backward, dependent.reason))
            return [self._inside(loop)]
        self.verdicts.append(Verdict(loop.origin, self.backward))
        self.known.body(loop)
        return _Call(self, loop, shared).statements()

    def _may_be_long(self, loop: For) -> bool:
        """Whether a loop may have enough work for two chunks, and more to do than to move memory."""
        if not isinstance(loop.step, Const):
            return True
        work, each = work_of_loop(loop), work_of_iteration(loop)
        if isinstance(work, Const):
            return bool(work.value >= 2 * LEAST)  # type: ignore[operator]
        if not isinstance(each, Const):
            return True
        if each.value <= _COPY:  # type: ignore[operator]
            return False
        facts = self.known.facts
        return not facts.nonnegative(Affine(2 * LEAST // each.value) - facts.form(trips_of(loop)))  # type: ignore[operator]


class _Call:
    """The statements in place of one loop."""

    def __init__(self, outlining: _Outlining, loop: For, shared: Shared) -> None:
        self.outlining, self.loop, self.shared, self.names = outlining, loop, shared, outlining.names
        self.origin = loop.origin
        self.chunk, self.chunks = (Var(self.names.fresh(name), INT) for name in ("chunk", "chunks"))
        self.parts = {var: self._parts_of(var) for var in (*shared.sums, *shared.totals)}
        self.tapes = [ChunkTapes(stack, loop, self.chunk, self.chunks, self.names) for stack in shared.stacks]

    def _parts_of(self, var: Var) -> Var:
        type_ = var.type
        assert isinstance(type_, Array | Scalar)
        rank = type_.rank if isinstance(type_, Array) else 0
        return Var(self.names.fresh(f"{var.name}_parts"), Array(type_.dtype, rank + 1, "C"))

    def statements(self) -> list[Stmt]:
        """The number of chunks; several run by a call, with sums of what they have added up; one is the loop itself."""
        origin, sums, totals = self.origin, self.shared.sums, self.shared.totals
        routine, free = self._routine()
        several: list[Stmt] = []
        for var in (*sums, *totals):
            sizes = (self.chunks, *extents_of(var))
            made = builders.new_array(np.zeros if var in totals else np.empty, sizes, self.parts[var].type)
            several.append(Assign((self.parts[var],), made, origin))
        for tapes in self.tapes:
            several += tapes.before()
        several.append(Effect(Call(routine, (self.chunks, *free), (), STATIC), origin))
        several += map(self._added, (*sums, *totals))
        for tapes in self.tapes:
            several += tapes.after()
        is_long = Call(operator.gt, (self.chunks, Const(1)), (), BOOL)
        return [
            Assign((self.chunks,), self._count(), origin),
            If(is_long, tuple(several), (self.loop,), origin),
        ]

    def _count(self) -> Expr:
        """The number of chunks; less than two where the loop is short."""
        least: Expr = Const(LEAST)
        bounds: list[Expr] = [Const(intrinsics.MOST_CHUNKS), trips_of(self.loop)]
        for var in self.shared.totals:
            size = size_of(var)
            least = plus(least, times(Const(8), size))
            bounds.append(Call(operator.floordiv, (Const(_LARGEST), plus(size, 1)), (), INT))
        bounds.append(Call(operator.floordiv, (work_of_loop(self.loop), least), (), INT))
        return Call(min, tuple(bounds), (), INT)

    def _added(self, var: Var) -> Stmt:
        """Add up what the chunks have added."""
        k = Var(self.names.fresh("k"), INT)
        counters = [Var(self.names.fresh(name), INT) for name in "jlmnpq"[: rank_of(var)]]
        type_ = var.type
        assert isinstance(type_, Array | Scalar)
        element = Scalar(type_.dtype, False) if isinstance(type_, Array) else type_
        part = Load(self.parts[var], (k, *counters), element)
        body: Block = (Assign((var,), Call(operator.add, (var, part), (), type_), self.origin),)
        if isinstance(type_, Array):
            body = (Store(var, tuple(counters), part, True, self.origin),)
        for counter, size in reversed(list(zip(counters, extents_of(var), strict=True))):
            body = (For(counter, Const(0), size, Const(1), body, self.origin),)
        return For(k, Const(0), self.chunks, Const(1), body, self.origin)

    # ---- the function of a chunk ----

    def _routine(self) -> tuple[Routine, list[Var]]:
        """The function of a chunk, and the arguments that it gets."""
        loop = self.loop
        trips = Var(self.names.fresh("trips"), INT)
        start, stop = range_of_chunk(loop, self.chunk, self.chunks, trips)
        body = traversal.map_block(loop.body, self._with_parts)
        inner: list[Stmt] = [Assign((trips,), trips_of(loop), self.origin)]
        inner += [Assign((var,), _zero(var), self.origin) for var in self.shared.sums]
        new = {var: Var(self.names.fresh(var.name), var.type) for var, _ in self.shared.scratch}
        for var, make in self.shared.scratch:
            inner.append(Assign((new[var],), builders.new_array(make, extents_of(var), var.type), self.origin))
        for tapes in self.tapes:
            inner += tapes.first()
            new |= tapes.own
        inner.append(For(loop.target, start, stop, loop.step, _renamed(body, new), self.origin))
        for tapes in self.tapes:
            inner += tapes.last()
        inner += [Store(self.parts[var], (self.chunk,), var, False, self.origin) for var in self.shared.sums]
        assigned = traversal.assigned_in(*inner)
        occurring = dict.fromkeys(var for stmt in inner for var in traversal.occurring(stmt))
        free = [var for var in occurring if var not in assigned and var not in (self.chunk, self.chunks)]
        memory, exact = self.outlining.memory, self.outlining.deciding
        name = f"{self.outlining.function.name}_loop"
        function = Function(
            name,
            (self.chunk, self.chunks, *free),
            (*inner, Return((), self.origin)),
            origin=self.origin,
            globals=self.outlining.function.globals,
            backward=self.outlining.backward,
            deciding=frozenset(var for var in (*free, *assigned) if memory.group(var) in exact),
        )
        return Routine(name, function, by_chunks=True), free

    def _with_parts(self, stmt: Stmt) -> Stmt:
        """A statement of the loop that adds to the copy of its chunk."""
        totals = self.shared.totals

        def sizes(node: Any) -> Any:
            match node:
                case Call(intrinsics.dim, (Var() as array, Const(int() as axis))) if array in totals:
                    return extent(self.parts[array], axis + 1)
            return node

        stmt = traversal.map_headers(stmt, lambda header: traversal.map_expr(header, sizes))
        if isinstance(stmt, Store) and stmt.array in totals:
            return replace(stmt, array=self.parts[stmt.array], index=(self.chunk, *stmt.index))
        if stmt.blocks:
            return traversal.with_blocks(stmt, tuple(traversal.map_block(b, self._with_parts) for b in stmt.blocks))
        return stmt


def _renamed(block: Block, new: dict[Var, Var]) -> Block:
    return traversal.rename_block(block, new) if new else block


def _zero(var: Var) -> Expr:
    dtype = var.type.dtype  # type: ignore[union-attr]
    if dtype == "float64":
        return Const(0.0)
    return Const(0) if dtype == "int64" else Const(np.dtype(dtype).type(0))
