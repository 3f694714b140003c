"""Unroll-and-jam of loops around reductions: several iterations of the outer loop share the passes of the inner one.

`z += a[i, j] * x[j]` waits for the previous addition in each iteration of `j`, since the order of a sum is that of the
program; the sums of different rows do not wait for each other.  Every fourth iteration of `i` computes the sums of four
rows, each in its own order, so results are the same in every bit.  Legal where the sums read nothing that the
iterations in between write; where the range of the inner loop grows with `i`, the later rows sum up to where the first
one does, and continue when it is their turn.  It pays where the additions are the critical path.  Inner products, whose
additions have no order, are processed by pairs (`paired_dot_products`).

Before::

    def f(a: "f8[:, :]", x: "f8[:]", y: "f8[:]", n: "i8", m: "i8"):
        for i in range(n):
            z = 0.0
            for j in range(m):
                z = z + a[i, j] * x[j]
            y[i] = np.tanh(z)
        return y

After::

    def f(a, x, y, n, m):
        z_1 = 0.0
        z_2 = 0.0
        z_3 = 0.0
        for i in range(n):
            z = 0.0
            if i % 4 == 0:
                row = min(i + 1, n - 1)
                z_1 = 0.0
                row_1 = min(i + 2, n - 1)
                z_2 = 0.0
                row_2 = min(i + 3, n - 1)
                z_3 = 0.0
                for j in range(m):
                    z += a[i, j] * x[j]
                    z_1 += a[row, j] * x[j]
                    z_2 += a[row_1, j] * x[j]
                    z_3 += a[row_2, j] * x[j]
            else:
                z = z_1
                z_1 = z_2
                z_2 = z_3
            y[i] = np.tanh(z)
        return y

Before::

    def f(a: "f8[:, :]", b: "f8[:]", x: "f8[:]", n: "i8"):
        for i in range(n):
            s = b[i]
            for j in range(i):
                s = s - a[i, j] * x[j]
            x[i] = s / a[i, i]
        return x

After::

    def f(a, b, x, n):
        s_1 = 0.0
        s_2 = 0.0
        s_3 = 0.0
        for i in range(n):
            s = b[i]
            if i % 4 == 0:
                row = min(i + 1, n - 1)
                s_1 = b[row]
                row_1 = min(i + 2, n - 1)
                s_2 = b[row_1]
                row_2 = min(i + 3, n - 1)
                s_3 = b[row_2]
                for j in range(i):
                    s -= a[i, j] * x[j]
                    s_1 -= a[row, j] * x[j]
                    s_2 -= a[row_1, j] * x[j]
                    s_3 -= a[row_2, j] * x[j]
            else:
                s = s_1
                s_1 = s_2
                s_2 = s_3
                for j in range(max(0, i - i % 4), i):
                    s -= a[i, j] * x[j]
            x[i] = s / a[i, i]
        return x

Before::

    def f(a: "f8[:, :]", x: "f8[:]", y: "f8[:]", z: "f8[:]"):
        for i in range(a.shape[0]):
            s, t = ops.dots(a[i], x, a[i], y)
            z[i] = s * t
        return z

After::

    def f(a, x, y, z):
        s_ahead = 0.0
        t_ahead = 0.0
        for i in range(a.shape[0]):
            if i % 2 == 0:
                row = min(i + 1, a.shape[0] - 1)
                s, t, s_ahead, t_ahead = products(a[i], x, y, a[row])
            else:
                s = s_ahead
                t = t_ahead
            z[i] = s * t
        return z
"""

from __future__ import annotations

import itertools
import operator
from collections.abc import Iterator, Mapping, Set
from dataclasses import dataclass, replace
from functools import cached_property

from tapegen.ir import intrinsics, traversal
from tapegen.ir.affine import Affine, folded, is_float64, is_int, linear, minus, plus
from tapegen.ir.nodes import (
    Assign,
    Call,
    Comment,
    Const,
    Expr,
    For,
    Function,
    If,
    Raise,
    Return,
    Routine,
    Stmt,
    Store,
    Var,
    While,
)
from tapegen.ir.types import BOOL, INT, Array, ListOf, Scalar
from tapegen.loops.analysis.block_queries import leaves, read_elsewhere
from tapegen.loops.analysis.dependence import Access, LoopNest, elements_read, in_loops
from tapegen.loops.analysis.flow_facts import FlowFacts
from tapegen.loops.analysis.independence import is_short
from tapegen.loops.analysis.loop_visitor import InnermostLoopPass, is_within, never_equal
from tapegen.loops.analysis.symbolic_bounds import SymbolicBounds
from tapegen.loops.analysis.trip_counts import largest_trip_count
from tapegen.loops.vectorize.paired_dot_products import PairedDotProducts
from tapegen.loops.vectorize.strip_mining import SHORT

_ROWS = 4
"""Rows in one pass: about as many additions as a processor starts while one of them is under way."""

_SUMS, _STATEMENTS = 2, 4
"""Sums and statements of a row that are copied: more of them overlap in one row, and take time to compile."""


def unroll_and_jam(function: Function) -> Function:
    """The same program with the reductions of several iterations of an outer loop in one pass."""
    if not any(_is_concerned(stmt) for stmt in traversal.statements(function.body)):
        return function
    return traversal.with_body(function, _Jamming(function).block(function.body))


def _is_concerned(stmt: Stmt) -> bool:
    """Whether a loop directly contains a loop or inner products."""
    return isinstance(stmt, For) and any(isinstance(inner, For) or _is_dots(inner) for inner in stmt.body)


def _is_dots(stmt: Stmt) -> bool:
    return isinstance(stmt, Assign) and isinstance(stmt.value, Call) and stmt.value.func is intrinsics.dots


class _Jamming(InnermostLoopPass):
    def concerns(self, stmt: Stmt) -> bool:
        return any(map(_is_concerned, traversal.statements((stmt,))))

    @cached_property
    def leaving(self) -> set[Var]:
        """Variables that are read where no enclosing block assigns them before."""
        return read_elsewhere(self.function)

    def rewrite(self, nest: LoopNest, before: list[Stmt], outside: FlowFacts) -> list[Stmt]:
        return [nest.stmt]

    def replaced(self, stmt: For | While, before: list[Stmt], outside: FlowFacts) -> list[Stmt]:
        """The loop, after the statements that it needs."""
        if not (isinstance(stmt, For) and _is_concerned(stmt) and _is_plain(stmt)):
            return [traversal.with_blocks(stmt, (self.block(stmt.body),))]
        body = self.block(stmt.body)
        known = outside.body(stmt)  # a check in this iteration says nothing about the next one
        needed: list[Stmt] = []
        if any(map(_is_dots, body)):
            dots = PairedDotProducts(stmt, known.facts, self.memory, self.names)
            body = tuple(new for inner in body for new in dots.paired(inner))
            needed += dots.before
        sums = _SeveralSums(replace(stmt, body=body), known, self)
        body = tuple(sums.jammed(k) for k in range(len(body)))
        return [*needed, *sums.before, replace(stmt, body=body)]


def _is_plain(loop: For) -> bool:
    """Whether a loop counts by one, makes all of its iterations, and does not change its bounds."""
    if loop.step not in (Const(1), Const(-1)) or leaves(loop.body):
        return False
    bounds = traversal.free_vars(loop.start) | traversal.free_vars(loop.stop)
    if traversal.loads(loop.start) or traversal.loads(loop.stop) or any(isinstance(var.type, ListOf) for var in bounds):
        return False
    return traversal.assigned_in(*loop.body).isdisjoint({loop.target, *bounds})


@dataclass(frozen=True)
class _Row:
    """How an iteration of the outer loop computes sums.

    Attributes
    ----------
    inner : LoopNest
        The loop that adds up.
    setup : tuple of Assign
        Statements before it that compute what it reads.
    sums : tuple of Var
        The scalars that it carries from iteration to iteration.
    start, stop : Expr
        Its range in terms of the outer counter and of invariants.
    grows : bool
        Whether each row adds one more term than the previous one.
    integers : mapping
        Integers of the setup, in these terms.
    """

    inner: LoopNest
    setup: tuple[Assign, ...]
    sums: tuple[Var, ...]
    start: Expr
    stop: Expr
    grows: bool
    integers: Mapping[Var, Expr]

    @property
    def loop(self) -> For:
        return self.inner.loops[0]

    @cached_property
    def own(self) -> list[Var]:
        """The scalars of which each row has its own."""
        return sorted({*self.inner.assigned, *traversal.assigned_in(*self.setup)}, key=lambda var: var.name)

    @cached_property
    def reads(self) -> list[Access]:
        """The elements that a row reads, their indices in terms of counters and invariants where possible."""
        found = [access for stmt in self.setup for access in elements_read(stmt.value) or ()]
        return [
            replace(access, index=tuple(traversal.substitute(item, self.integers) for item in access.index))
            for access in (*found, *self.inner.accesses)
        ]


class _SeveralSums:
    """A loop whose iterations compute their sums by fours.

    Attributes
    ----------
    before : list of Stmt
        The statements before it.
    """

    def __init__(self, loop: For, known: FlowFacts, around: _Jamming) -> None:
        self.loop, self.known, self.around = loop, known, around
        self.counter = loop.target
        self.step = 1 if loop.step == Const(1) else -1
        self.assigned = traversal.assigned_in(*loop.body)
        self.before: list[Stmt] = []

    @property
    def facts(self) -> SymbolicBounds:
        """The facts at the beginning of an iteration."""
        return self.known.facts

    def jammed(self, position: int) -> Stmt:
        """A statement of the body; the sums of four rows where it adds up those of one."""
        row = self._row(position)
        if row is None or not self._may_precede(row, position):
            return self.loop.body[position]
        loop, names = row.loop, self.around.names
        first: list[Stmt] = []
        body: list[Stmt] = [replace(stmt) for stmt in loop.body]
        ahead: list[dict[Var, Var]] = [{var: var for var in row.sums}]
        for k in range(1, _ROWS):
            counter = Var(names.fresh("row"), INT)
            own = {var: Var(names.fresh(var.name), var.type) for var in row.own}
            first.append(Assign((counter,), self._later(k), loop.origin))
            first += traversal.rename_block(row.setup, own | {self.counter: counter})
            others = tuple(stmt for stmt in loop.body if not isinstance(stmt, Comment))
            body += traversal.rename_block(others, own | {self.counter: counter})
            ahead.append(own)
            self.before += [Assign((own[var],), Const(0.0), loop.origin) for var in row.sums]
        first.append(replace(loop, start=row.start, stop=row.stop, body=tuple(body)))
        then: list[Stmt] = [
            Assign((own[var],), later[var], loop.origin) for own, later in itertools.pairwise(ahead) for var in row.sums
        ]
        if row.grows:
            then.append(self._rest(row))
        test = Call(operator.eq, (self._place(), Const(0)), (), BOOL)
        return If(test, tuple(first), tuple(then), loop.origin)

    def _place(self) -> Expr:
        """The position of a row among the four that are added up together."""
        distance = minus(self.counter, self.loop.start) if self.step > 0 else minus(self.loop.start, self.counter)
        return Call(operator.mod, (distance, Const(_ROWS)), (), INT)

    def _later(self, count: int) -> Expr:
        """The counter of a later iteration; that of the last one where there are none."""
        last = plus(self.loop.stop, -self.step)
        return Call(min if self.step > 0 else max, (plus(self.counter, count * self.step), last), (), INT)

    def _rest(self, row: _Row) -> For:
        """The terms of a row that the first of the four does not have."""
        first = traversal.substitute(row.stop, {self.counter: minus(self.counter, self._place())})
        if not self.facts.nonnegative(self.facts.form(first) - self.facts.form(row.start)):
            first = Call(max, (row.start, first), (), INT)
        return replace(row.loop, start=first, stop=row.stop, body=tuple(replace(stmt) for stmt in row.loop.body))

    # ---- rows ------------------------------------------------------------------------------------------------------

    def _row(self, position: int) -> _Row | None:
        """How the loop at a position of the body adds up a row, if it does."""
        loop = self.loop.body[position]
        if not isinstance(loop, For) or loop.step != Const(1) or is_short(loop):
            return None
        inner = in_loops((loop,), loop.body)
        if inner is None or inner.checks or any(access.writes for access in inner.accesses):
            return None
        sums = tuple(sorted(inner.first_read & inner.assigned, key=lambda var: var.name))
        values = [stmt.value for stmt in inner.body if isinstance(stmt, Assign)]
        if not 0 < len(sums) <= _SUMS or len(values) > _STATEMENTS or not all(map(_is_short, values)):
            return None
        if not all(map(is_float64, sums)) or largest_trip_count(self.loop) < _ROWS:
            return None
        if not self.around.leaving.isdisjoint({loop.target, *inner.assigned} - set(sums)):
            return None
        bounds = (loop.start, loop.stop)
        if any(map(traversal.loads, bounds)) or loop.target == self.counter:
            return None
        setup = self._setup(position, {*inner.first_read, *traversal.free_vars(bounds)})
        if setup is None:
            return None
        integers = _integers(setup)
        start, stop = (folded(traversal.substitute(end, integers)) for end in bounds)
        varying = {self.counter, *self.assigned}
        form = linear(stop)
        grows = self.step > 0 and form.coefficient(self.counter) == 1
        fixed = form.without(self.counter) if grows else form
        if fixed.names & varying or traversal.free_vars(start) & varying:
            return None
        return _Row(inner, setup, sums, start, stop, grows, integers)

    def _setup(self, position: int, wanted: Set[Var]) -> tuple[Assign, ...] | None:
        """The statements of an iteration that compute scalars; None where it computes them in another way."""
        wanted = wanted & self.assigned
        found: list[Assign] = []
        for stmt in reversed(self.loop.body[:position]):
            if wanted.isdisjoint(traversal.assigned_in(stmt)):
                continue
            if not isinstance(stmt, Assign) or not isinstance(stmt.targets[0].type, Scalar) or len(stmt.targets) > 1:
                return None
            if len(found) == _STATEMENTS or not _is_short(stmt.value):
                return None
            wanted = (wanted - {*stmt.targets}) | (traversal.free_vars(stmt.value) & self.assigned)
            found.append(stmt)
        return None if wanted else tuple(reversed(found))

    # ---- order -----------------------------------------------------------------------------------------------------

    def _may_precede(self, row: _Row, position: int) -> bool:
        """Whether a row may be added up several iterations before its turn."""
        inside = traversal.statements(self.loop.body)
        before = traversal.statements(self.loop.body[:position])
        checked = traversal.statements(stmt for stmt in self.loop.body[:position] if not self._is_same_check(stmt))
        if any(isinstance(stmt, (Raise, Return)) for stmt in checked) and not self._are_within(row):
            return False  # what an iteration checks before its sums says nothing about the next ones
        group = self.around.memory.group
        changed = {group(var) for stmt in inside for var in _touched(stmt)}
        stores = [stmt for stmt in inside if isinstance(stmt, Store)]
        earlier = set(map(id, before))
        for access in row.reads:
            if not isinstance(access.array.type, Array) or access.array in self.assigned:
                return False
            if group(access.array) in changed:
                return False
            for store in stores:
                if group(store.array) == group(access.array) and not self._are_distinct(
                    row, access, store, id(store) in earlier
                ):
                    return False
        return True

    def _is_same_check(self, stmt: Stmt) -> bool:
        """Whether a statement checks the same in every iteration."""
        match stmt:
            case If(test, (Raise(),), ()):
                used = traversal.free_vars(test)
                changing = used & {self.counter, *self.assigned} or any(isinstance(var.type, ListOf) for var in used)
                return not changing and not traversal.loads(test)
        return False

    def _are_within(self, row: _Row) -> bool:
        """Whether the elements that any row reads are within bounds."""
        facts = self.facts
        with facts.supposing(*self._inner_range(row)):
            return all(is_within(access, facts) for access in row.reads)

    def _inner_range(self, row: _Row) -> tuple[Affine, Affine]:
        """The range of the inner counter, as forms that are not negative."""
        counter = Affine.atom(row.loop.target)
        return counter - self.facts.form(row.start), self.facts.form(row.stop) - 1 - counter

    def _are_distinct(self, row: _Row, access: Access, store: Store, is_before: bool) -> bool:
        """Whether no store into an array precedes a read of its element that is moved ahead of it.

        A later row reads while the first one is added up; the stores are those of the iterations from the first one to
        that before the later row, and that of the later row where it stands before its sums.
        """
        if access.array != store.array or any(map(traversal.loads, (*access.index, *store.index))):
            return False
        later, storing = Var("?later", INT), Var("?storing", INT)
        own = {var: Var(f"?{var.name}", var.type) for var in self.assigned if var != row.loop.target}
        other = {var: Var(f"?{var.name}_stored", var.type) for var in self.assigned}
        read = tuple(traversal.substitute(item, own | {self.counter: later}) for item in access.index)
        stored = tuple(traversal.substitute(item, other | {self.counter: storing}) for item in store.index)
        facts, first = self.facts, Affine.atom(self.counter)
        reading, writing, stop = Affine.atom(later), Affine.atom(storing), facts.form(self.loop.stop)
        order = (
            (writing - first) * self.step,
            (reading - writing) * self.step - (0 if is_before else 1),
            (stop - reading) * self.step - 1,
        )
        with facts.supposing(*order, *self._inner_range(row)):
            return never_equal(read, stored, facts)


def _integers(setup: tuple[Assign, ...]) -> dict[Var, Expr]:
    """Integers that statements compute, in terms of what is given before them."""
    found: dict[Var, Expr] = {}
    for stmt in setup:
        (target,) = stmt.targets
        found.pop(target, None)
        if is_int(target) and not traversal.loads(stmt.value):
            found[target] = traversal.substitute(stmt.value, found)
    return found


def _is_short(value: Expr) -> bool:
    """Whether a value is computed from elements and scalars by operations that take few cycles and raise nothing."""
    calls = (part.func for part in traversal.subexpressions(value) if isinstance(part, Call))
    return elements_read(value) is not None and all(func in SHORT for func in calls)


def _touched(stmt: Stmt) -> Iterator[Var]:
    """Arrays and lists into which a statement may write otherwise than by a store."""
    known = isinstance(stmt, (Assign, Store, For, If, While, Comment, Raise, Return))
    for part in stmt.headers:
        if not known or Routine in map(type, traversal.callees(part)):
            yield from (var for var in traversal.free_vars(part) if not isinstance(var.type, Scalar))
