"""Scalar replacement: elements that every iteration of an innermost loop accesses are in registers while it runs.

LLVM loads and stores them in each iteration, because it cannot know that no other access of the iteration aliases
them; the ranges of the counters show it.  Legal where they do and the loop raises no error; the element is stored
after the loop.  The order of additions is unchanged.

Before::

    def f(a: "f8[:, :]", i: "i8", j: "i8"):
        for k in range(j):
            a[i, j] = a[i, j] - a[i, k] * a[j, k]
        return a

After::

    def f(a, i, j):
        if 0 < j:
            a_here = a[i, j]
            for k in range(j):
                a_here -= a[i, k] * a[j, k]
            a[i, j] = a_here
        return a

An assignment whose operands are such elements, which the loop only reads, is hoisted out of it (loop-invariant code
motion), if they have been accessed before: then reading them is within bounds even if there is no iteration.

Before::

    def f(x: "f8[:]", y: "f8[:]"):
        x[0] = 1.0
        for i in range(1, x.shape[0]):
            first = x[0]
            x[i] = first * y[i]
        return x

After::

    def f(x, y):
        x[0] = 1.0
        first = x[0]
        for i in range(1, x.shape[0]):
            x[i] = first * y[i]
        return x
"""

from __future__ import annotations

import functools
import operator
from collections import Counter
from collections.abc import Container, Iterator, Set
from dataclasses import replace
from typing import Any

from tapegen.ir import traversal
from tapegen.ir.affine import minus
from tapegen.ir.nodes import Assign, Call, Const, Expr, For, Function, If, Load, Stmt, Store, Var
from tapegen.ir.types import BOOL, Array, Scalar
from tapegen.loops.analysis.dependence import Access, LoopNest, in_loops
from tapegen.loops.analysis.flow_facts import FlowFacts
from tapegen.loops.analysis.loop_visitor import InnermostLoopPass, already_accessed, is_within, unconditional_loads
from tapegen.loops.analysis.symbolic_bounds import SymbolicBounds
from tapegen.loops.legalize.precision import convert, dtype_of
from tapegen.loops.legalize.precision import stored as rounded

Element = tuple[Var, tuple[Any, ...]]


def replace_scalars(function: Function) -> Function:
    """The same program with scalars for the elements that innermost loops access in every iteration."""
    return traversal.with_body(function, _ScalarReplacement(function).block(function.body))


class _ScalarReplacement(InnermostLoopPass):
    @functools.cached_property
    def assigned(self) -> Counter[Var]:
        """The number of assignments of each variable."""
        return Counter([var for stmt in traversal.statements(self.function.body) for var in stmt.targets])

    def rewrite(self, nest: LoopNest, before: list[Stmt], outside: FlowFacts) -> list[Stmt]:
        """The loop with scalars for elements, between the statements that load and store these."""
        if nest.checks:  # where the loop raises, elements must have been stored
            return [nest.stmt]
        hoisted: list[Stmt] = []
        for stmt in nest.body:
            if isinstance(stmt, Assign) and self._is_invariant(stmt, nest, [*before, *hoisted]):
                hoisted.append(stmt)
                rest = in_loops(nest.loops, tuple(each for each in nest.body if each is not stmt))
                assert rest is not None
                nest = rest
        before += hoisted
        return self._in_registers(nest, before, outside)

    def _is_invariant(self, stmt: Assign, nest: LoopNest, before: list[Stmt]) -> bool:
        """Whether an iteration computes the same value from elements, also where the loop makes no iteration."""
        loads = traversal.loads(stmt.value)
        (target,) = stmt.targets
        if not loads or self.assigned[target] > 1 or traversal.free_vars(stmt.value) & {*nest.counters, *nest.assigned}:
            return False
        writes = [access for access in nest.accesses if access.writes]
        return all(
            already_accessed(load, before)
            and not any(self.may_alias(load.array, load.index, write) for write in writes)
            for load in loads
        )

    def _in_registers(self, nest: LoopNest, before: list[Stmt], outside: FlowFacts) -> list[Stmt]:
        """The loop with scalars for elements that all its iterations access."""
        (loop,) = nest.loops
        numbers = {element: self._number(element[0]) for element in self._elements(nest)}
        if not numbers:
            return [nest.stmt]
        stored = {(stmt.array, stmt.index) for stmt in nest.body if isinstance(stmt, Store)}
        loads = {element: Load(*element, number.type) for element, number in numbers.items()}
        promoted = dict(_stored_before(before, numbers, stored))
        test = has_iteration(loop)
        unconditional = (
            test is None
            or _surely_runs(loop, outside.facts)
            or all(
                element in promoted or already_accessed(load, before) or is_within(load, outside.facts)
                for element, load in loads.items()
            )
        )
        if unconditional:
            del before[len(before) - len(promoted) :]
        else:
            promoted.clear()  # without an iteration, these stores are the only ones
        out: list[Stmt] = [
            Assign((number,), promoted.get(element, loads[element]), loop.origin) for element, number in numbers.items()
        ]
        out.append(replace(loop, body=tuple(_with_numbers(nest.body, numbers))))
        out += [Store(*element, numbers[element], False, loop.origin) for element in numbers if element in stored]
        if unconditional:
            return out
        assert test is not None
        return [If(test, tuple(out), (), loop.origin)]

    def _number(self, array: Var) -> Var:
        assert isinstance(array.type, Array)
        return Var(self.names.fresh(f"{array.name}_here"), Scalar(array.type.dtype, False))

    def _elements(self, nest: LoopNest) -> list[Element]:
        """Elements that are the same throughout the loop and that no other access in it may alias."""
        (loop,) = nest.loops
        if has_iteration(loop) is None:
            return []
        varying = nest.assigned | {loop.target}
        staying = dict.fromkeys((access.array, access.index) for access in nest.accesses if _stays(access, varying))
        if not staying:
            return []
        writes = {(access.array, access.index) for access in nest.accesses if access.writes}
        sure = {(load.array, load.index) for part in _parts(nest) for load in unconditional_loads(part)}
        found: list[Element] = []
        for element in staying:
            array, index = element
            others = (access for access in nest.accesses if (access.array, access.index) != element)
            written = element in writes
            if not written and element not in sure:
                continue
            if any(self.may_alias(array, index, other) for other in others if written or other.writes):
                continue
            found.append(element)
        # a read-only element is invariant where no other element of the array is stored
        moving = {self.memory.group(array) for array, _ in writes - set(found)}
        return [element for element in found if element in writes or self.memory.group(element[0]) in moving]


def _stored_before(
    before: list[Stmt], elements: Container[Element], stored: Set[Element]
) -> Iterator[tuple[Element, Expr]]:
    """What statements right before a loop store into elements that are stored again after it, the last one first."""
    found: set[Element] = set()
    for last in reversed(before):
        if not isinstance(last, Store) or last.accumulate or traversal.loads(last.value):
            return
        element = last.array, last.index
        if element not in elements or element not in stored or element in found:
            return
        found.add(element)
        dtype = element[0].type.dtype  # type: ignore[union-attr]
        yield element, convert(last.value, dtype) if dtype_of(last.value) == dtype else rounded(last.value, dtype)


def _stays(access: Access, varying: Set[Var]) -> bool:
    """Whether it denotes the same element, of an array of floats, while some variables change."""
    type_ = access.array.type
    if not isinstance(type_, Array) or type_.dtype not in ("float64", "float32"):
        return False
    return not any(traversal.loads(item) or not varying.isdisjoint(traversal.free_vars(item)) for item in access.index)


def _parts(nest: LoopNest) -> Iterator[Any]:
    for stmt in nest.body:
        if isinstance(stmt, (Assign, Store)):
            yield stmt.value


def _with_numbers(body: tuple[Stmt, ...], numbers: dict[Element, Var]) -> Iterator[Stmt]:
    def change(part: Any) -> Any:
        return numbers.get((part.array, part.index), part) if isinstance(part, Load) else part

    for stmt in body:
        new = traversal.map_headers(stmt, lambda part: traversal.map_expr(part, change))
        if isinstance(stmt, Store) and (stmt.array, stmt.index) in numbers:
            assert isinstance(new, Store)
            number = numbers[stmt.array, stmt.index]
            dtype = dtype_of(number)
            if stmt.accumulate:
                value: Expr = Call(operator.add, (number, new.value), (), number.type)
                value = value if dtype_of(new.value) == dtype else rounded(value, dtype)
            else:
                value = convert(new.value, dtype)  # as the array does
            new = Assign((number,), value, stmt.origin)
        yield new


def has_iteration(loop: For) -> Expr | None:
    """The condition that a loop has an iteration; None where its direction is known only at run time."""
    match loop.step:
        case Const(int() as step) if step:
            return Call(operator.lt if step > 0 else operator.gt, (loop.start, loop.stop), (), BOOL)
    return None


def _surely_runs(loop: For, facts: SymbolicBounds) -> bool:
    assert isinstance(loop.step, Const)
    down = isinstance(loop.step.value, int) and loop.step.value < 0
    gap = minus(loop.start, loop.stop) if down else minus(loop.stop, loop.start)
    return facts.nonnegative(facts.form(gap) - 1)
