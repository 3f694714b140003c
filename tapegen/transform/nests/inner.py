"""Innermost loops as a processor likes them: what does not change in front of them, and counting up.

An element that a loop only reads, always the same one, is read once before the loop; the compiler below cannot know
that no store of the loop meets it.  A loop that counts down counts up if no trip touches what another one writes.
"""

from __future__ import annotations

from dataclasses import replace

from tapegen.ir import ops, rewrite
from tapegen.ir.nodes import Assign, Block, Call, Const, Expr, For, Function, If, Load, Stmt, Store, Var, While
from tapegen.transform.nests.accesses import Access, Memory, Nest, in_loops, same_trip
from tapegen.transform.nests.affine import Affine, plus
from tapegen.transform.nests.bounds import Facts
from tapegen.transform.nests.control import assigned_in, read_after_loops


def eased(function: Function) -> Function:
    """The same program with easier innermost loops."""
    return replace(function, body=_Walk(function).block(function.body))


class _Walk:
    def __init__(self, function: Function) -> None:
        self.memory = Memory(function)
        self.facts = Facts()
        self.lasting = read_after_loops(function.body)
        self.assigned: dict[Var, int] = {}
        for stmt in rewrite.statements(function.body):
            for var in rewrite.defines(stmt):
                self.assigned[var] = self.assigned.get(var, 0) + 1

    def block(self, block: Block) -> Block:
        out: list[Stmt] = []
        for stmt in block:
            match stmt:
                case For() | While():
                    out += self._loop(stmt, out)
                case If():
                    out.append(self._branches(stmt))
                    self.facts.learn(stmt)
                case _:
                    out.append(stmt)
                    self.facts.learn(stmt)
        return tuple(out)

    def _loop(self, stmt: For | While, before: list[Stmt]) -> list[Stmt]:
        self.facts.forget(assigned_in(stmt))
        outer, self.facts = self.facts, self.facts.copy()
        nest = None
        if isinstance(stmt, For):
            self.facts.assume_counter(stmt)
            nest = in_loops((stmt,), stmt.body)
        if nest is None:
            result = [rewrite.with_blocks(stmt, (self.block(stmt.body),))]
        else:
            result = self._eased(nest, before)
        self.facts = outer
        return result

    def _branches(self, stmt: If) -> Stmt:
        outer = self.facts
        sides = []
        for which, block in enumerate((stmt.body, stmt.orelse)):
            self.facts = outer.copy()
            self.facts.assume_test(stmt.test, which == 0)
            sides.append(self.block(block))
        self.facts = outer
        return rewrite.with_blocks(stmt, tuple(sides))

    def _eased(self, nest: Nest, before: list[Stmt]) -> list[Stmt]:
        """What moves in front of a loop, and the loop."""
        lifted: list[Stmt] = []
        for stmt in nest.body:
            if isinstance(stmt, Assign) and self._lasts(stmt, nest, [*before, *lifted]):
                lifted.append(stmt)
                rest = in_loops(nest.loops, tuple(each for each in nest.body if each is not stmt))
                assert rest is not None
                nest = rest
        return [*lifted, self._upward(nest)]

    # ---- what does not change ----------------------------------------------------------------------------------------

    def _lasts(self, stmt: Assign, nest: Nest, before: list[Stmt]) -> bool:
        """Whether a value of elements is the same on every trip, and may be worked out where there is none."""
        loads = rewrite.loads(stmt.value)
        (target,) = stmt.targets
        varying = {*nest.counters, *nest.assigned}
        if not loads or self.assigned[target] > 1 or rewrite.free_vars(stmt.value) & varying:
            return False
        writes = [access for access in nest.accesses if access.writes]
        return all(
            _touched(load, before) and not any(self._may_meet(load.array, load.index, write) for write in writes)
            for load in loads
        )

    def _may_meet(self, array: Var, index: tuple, other: Access) -> bool:
        if self.memory.group(array) != self.memory.group(other.array):
            return False
        return array != other.array or not self._apart(index, other.index)

    def _apart(self, a: tuple[Expr, ...], b: tuple[Expr, ...]) -> bool:
        """Whether some axis tells two elements apart, for all values that the numbers in their indices may have."""
        if any(rewrite.loads(item) for item in (*a, *b)):
            return False
        gaps = (self.facts.form(x) - self.facts.form(y) for x, y in zip(a, b, strict=True))
        return any(self.facts.nonnegative(gap - 1) or self.facts.nonnegative(-gap - 1) for gap in gaps)

    # ---- counting up -------------------------------------------------------------------------------------------------

    def _upward(self, nest: Nest) -> For:
        (loop,) = nest.loops
        inner = nest.stmt
        if loop.step != Const(-1) or loop.target in self.lasting or nest.first_read & nest.assigned:
            return inner
        varying = {loop.target, *nest.assigned}
        elsewhere: dict[Var, Expr] = {var: Var(f"?{var.name}", var.type) for var in varying}  # on another trip
        counter = Affine.atom(elsewhere[loop.target])
        between = (self.facts.form(loop.start) - counter, counter - self.facts.form(loop.stop) - 1)
        for k, a in enumerate(nest.accesses):
            for b in nest.accesses[k:]:
                if not (a.writes or b.writes) or self.memory.group(a.array) != self.memory.group(b.array):
                    continue
                if a.array != b.array:
                    return inner
                if same_trip(a.index, b.index, {loop.target}, varying):
                    continue
                with self.facts.supposing(*between):
                    if not self._apart(a.index, tuple(rewrite.substitute(item, elsewhere) for item in b.index)):
                        return inner
        return replace(inner, start=plus(loop.stop, 1), stop=plus(loop.start, 1), step=Const(1))


def _mentioned(index: tuple[Expr, ...]) -> set[Var]:
    return {var for item in index for var in rewrite.free_vars(item)}


def _touched(load: Load, before: list[Stmt]) -> bool:
    """Whether a block has read or stored the element already, so that it is within bounds."""
    names = {load.array, *_mentioned(load.index)}  # type: ignore[arg-type]
    for stmt in reversed(before):
        if names & assigned_in(stmt):
            return False
        if isinstance(stmt, Store) and (stmt.array, stmt.index) == (load.array, load.index):
            return True
        if isinstance(stmt, Assign | Store) and load in _surely_read(stmt.value):
            return True
    return False


def _surely_read(value: Expr) -> list[Load]:
    calls = [part for part in rewrite.subexpressions(value) if isinstance(part, Call)]
    return [] if any(call.func in _CONDITIONAL for call in calls) else rewrite.loads(value)


_CONDITIONAL = frozenset({ops.ifelse, ops.and_, ops.or_})
