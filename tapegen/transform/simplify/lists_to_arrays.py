"""Lists that loops fill, as arrays: a list of numbers whose length is known before it is filled has one allocation.

The recording analysis sees which elements live, indices are analyzed as those of arrays are, and no item is boxed.
Legal where the program only appends to the list, reads and assigns items, and asks for its length, and where it appends
outside of branches in loops with a known number of iterations, or never (a ring buffer).  The array has the size of
the finished list; while it is filled, an index is compared with the length so far, unless that is proved.
"""

from __future__ import annotations

import builtins
import operator
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from tapegen.ir import intrinsics, traversal
from tapegen.ir.affine import Affine, is_int, linear
from tapegen.ir.names import NameSupply
from tapegen.ir.nodes import (
    Assign,
    Block,
    Call,
    Const,
    Effect,
    Expr,
    For,
    Function,
    If,
    Load,
    Raise,
    Stmt,
    Store,
    Var,
)
from tapegen.ir.types import BOOL, FLOATING, INT, Array, ListOf, Scalar, python_class
from tapegen.transform.simplify.counted_loops import exits_early, is_size

_MOST_STORES = 16
"""Items of a list of fixed length that are stored one by one; longer lists stay lists, unless all items are zero."""


class _StaysList(Exception):
    """The program does more with a list than an array can stand for."""


def lists_to_arrays(function: Function, names: NameSupply) -> Function:
    """The same program with arrays for lists whose length is known before they are filled."""
    if not any(intrinsics.new_list in traversal.calls(stmt) for stmt in function.body):
        return function
    assigned = Counter(target for stmt in traversal.statements(function.body) for target in stmt.targets)
    assigned.update(function.params)
    constant = frozenset(var for var, times in assigned.items() if times == 1)
    body = _block(function.body, _Program(function, constant, names), ())
    return function if body is function.body else traversal.with_body(function, body)


@dataclass
class _Program:
    """A program, the variables that it assigns in one place, and the supply of fresh names."""

    function: Function
    constant: frozenset[Var]
    names: NameSupply


def _block(block: Block, program: _Program, around: tuple[For, ...]) -> Block:
    def nested(stmt: Stmt) -> Stmt:
        inside = (*around, stmt) if isinstance(stmt, For) else around
        return traversal.with_blocks(stmt, tuple([_block(part, program, inside) for part in stmt.blocks]))

    block = traversal.map_block(block, nested)
    place = 0
    while place < len(block):
        match block[place]:
            case Assign((Var(type=ListOf(item=Scalar() as item)) as items,), Call(intrinsics.new_list, first)) as made:
                rest = block[place + 1 :]
                if item.dtype in FLOATING and _is_local(items, rest, program):
                    try:
                        block = (*block[:place], *_Filling(items, item, program, around).replaced(made, first, rest))
                        continue
                    except _StaysList:
                        pass
        place += 1
    return block


def _is_local(items: Var, rest: Block, program: _Program) -> bool:
    """Whether these statements alone use a list, and it stays what it was assigned."""
    if items not in program.constant:
        return False
    everywhere = [var for stmt in program.function.body for var in traversal.occurring(stmt)].count(items)
    return everywhere == [var for stmt in rest for var in traversal.occurring(stmt)].count(items)


class _Filling:
    """The replacement of one list.

    Attributes
    ----------
    length : Affine
        Its length at the statement that is being replaced.
    final : Affine or None
        The length in the end, once that is known.
    around : list of For
        The loops around the statement, outermost first.
    """

    def __init__(self, items: Var, item: Scalar, program: _Program, around: Sequence[For]) -> None:
        self.items = items
        self.program = program
        self.item = item
        self.array = Var(items.name, Array(self.item.dtype, 1, "C"))
        self.length: Affine[Expr] = Affine(0)
        self.final: Affine[Expr] | None = None
        self.around = list(around)

    def replaced(self, made: Assign, first: Sequence[Expr], rest: Block) -> Block:
        """The statements from the one that makes the list."""
        begin = next((k for k, stmt in enumerate(rest) if self._is_in(stmt)), 0)
        ends = [k for k, stmt in enumerate(rest) if self._grows(stmt)]
        final: Affine[Expr] = Affine(len(first))
        self.length = final
        for k in ends:
            final = final + self._added(rest[k])
        filling = rest[begin : ends[-1] + 1] if ends else ()
        if not (first or ends) or not traversal.assigned_in(*filling).isdisjoint(final.names):
            raise _StaysList
        self.final = final
        dtype = () if self.item.dtype == "float64" else (Const(getattr(np, self.item.dtype)),)
        out: list[Stmt] = list(rest[:begin])
        zeros = not ends and all(map(_is_zero, first))
        if not ends and not zeros and len(first) > _MOST_STORES:
            raise _StaysList
        allocate = np.zeros if zeros else np.empty
        out.append(Assign((self.array,), Call(allocate, (final.expr, *dtype), (), self.array.type), made.origin))
        for k, value in enumerate(() if zeros else first):
            out.append(Store(self.array, (Const(k),), value, False, made.origin))
        for stmt in rest[begin:]:
            if isinstance(stmt, For) and self._grows(stmt):
                length = self.length.plus(self._added(stmt), 1)
                out.append(self._growing_loop(stmt))
                self.length = length
            else:
                out += self._statement(stmt)
        return tuple(out)

    def _is_in(self, stmt: Stmt) -> bool:
        return self.items in traversal.reads(stmt)

    def _grows(self, stmt: Stmt) -> bool:
        return any(
            isinstance(each, Effect) and each.call.func is intrinsics.append and each.call.args[0] is self.items
            for each in traversal.statements((stmt,))
        )

    def _added(self, stmt: Stmt) -> Affine[Expr]:
        """How many items a statement appends."""
        if isinstance(stmt, Effect):
            return Affine(1)
        if not isinstance(stmt, For) or exits_early(stmt.body):
            raise _StaysList
        per_iteration = sum(map(self._grows, stmt.body))
        if any(self._grows(each) and not isinstance(each, Effect) for each in stmt.body):
            raise _StaysList
        gap = linear(stmt.stop) - linear(stmt.start)
        gap = gap if stmt.step == Const(1) else -gap
        if stmt.step not in (Const(1), Const(-1)) or not self._is_known(stmt.start) or not self._is_known(stmt.stop):
            raise _StaysList
        if gap.is_constant:
            return Affine(max(gap.constant, 0) * per_iteration)
        if self._is_at_least(gap, 0):
            return gap * per_iteration
        clipped: Expr = Call(builtins.max, (gap.expr, Const(0)), (), INT)
        return Affine.atom(clipped) * per_iteration

    def _is_known(self, bound: Expr) -> bool:
        return is_size(bound) and traversal.free_vars(bound) <= self.program.constant

    def _growing_loop(self, loop: For) -> For:
        per_iteration = sum(map(self._grows, loop.body))
        done = linear(loop.target) - linear(loop.start)
        self.length = self.length + (done if loop.step == Const(1) else -done) * per_iteration
        self.around.append(loop)
        body = [new for stmt in loop.body for new in self._statement(stmt)]
        self.around.pop()
        return traversal.with_blocks(loop, (tuple(body),))  # type: ignore[return-value]

    def _statement(self, stmt: Stmt) -> list[Stmt]:
        """What stands for a statement at which the list has the present length."""
        if not self._is_in(stmt):
            return [stmt]
        match stmt:
            case Effect(Call(intrinsics.append, (list_, value))) if list_ is self.items:
                place = self.length
                self.length = self.length + 1
                return [Store(self.array, (place.expr,), self._outside(value), False, stmt.origin)]
            case Effect(Call(intrinsics.set_item, (list_, index, value))) if list_ is self.items:
                checks, at = self._place(self._outside(index), stmt)
                return [*checks, Store(self.array, (at,), self._outside(value), False, stmt.origin)]
            case Assign((target,), Call(intrinsics.item, (list_, index))) if list_ is self.items:
                checks, at = self._place(self._outside(index), stmt)
                return [*checks, *self._read(target, at, stmt)]
            case Assign((_,), Call(np.array | np.asarray, (list_,), ())) if list_ is self.items:
                if self.length != self.final:
                    raise _StaysList
                return [Assign(stmt.targets, Call(np.copy, (self.array,), (), stmt.value.type), stmt.origin)]
        new = traversal.map_headers(stmt, self._with_length)
        if any(self.items in traversal.free_vars(header) for header in new.headers):
            raise _StaysList
        if isinstance(new, For):
            self.around.append(new)
        blocks = tuple([tuple([each for inner in block for each in self._statement(inner)]) for block in new.blocks])
        if isinstance(new, For):
            self.around.pop()
        return [traversal.with_blocks(new, blocks)]

    def _outside(self, value: Expr) -> Expr:
        """A value without the list."""
        value = self._with_length(value)
        if self.items in traversal.free_vars(value):
            raise _StaysList
        return value

    def _with_length(self, header: Any) -> Any:
        length = Call(intrinsics.dim, (self.array, Const(0)), (), INT) if self._is_final() else self.length.expr
        return traversal.map_expr(
            header, lambda part: length if isinstance(part, Call) and self._is_length(part) else part
        )

    def _is_length(self, call: Call) -> bool:
        return call.func is len and call.args == (self.items,)

    def _is_final(self) -> bool:
        return self.length == self.final

    def _read(self, target: Var, at: Expr, stmt: Stmt) -> list[Stmt]:
        element = Load(self.array, (at,), Scalar(self.item.dtype, False))
        if not self.item.python:
            return [Assign((target,), element, stmt.origin)]
        held = Var(self.program.names.fresh(f"{self.array.name}_item"), element.type)
        number = Call(python_class(self.item), (held,), (), target.type)
        return [Assign((held,), element, stmt.origin), Assign((target,), number, stmt.origin)]

    def _place(self, index: Expr, stmt: Stmt) -> tuple[list[Stmt], Expr]:
        """Where an item is in the array, and the checks that the list has it."""
        if self._is_final():
            return [], index
        if not is_int(index):
            raise _StaysList
        at = linear(index)
        negative = at.is_constant and at.constant < 0
        if negative:
            at = self.length + at
        checks: list[Stmt] = []
        if not self._is_at_least(at, 0):
            if not negative:
                raise _StaysList
            checks.append(_check(Call(operator.lt, (at.expr, Const(0)), (), BOOL), stmt))
        if not self._is_at_least(self.length - at, 1):
            checks.append(_check(Call(operator.ge, (at.expr, self.length.expr), (), BOOL), stmt))
        return checks, at.expr

    def _is_at_least(self, form: Affine[Expr], least: int) -> bool:
        """Whether a form is proved to be at least so large, by the ranges of the loops around the statement."""
        for loop in reversed(self.around):
            factor = form.coefficient(loop.target)
            if not factor or loop.step not in (Const(1), Const(-1)):
                continue
            if not (self._is_known(loop.start) and self._is_known(loop.stop)):
                return False
            upwards = loop.step == Const(1)
            begin, end = linear(loop.start), linear(loop.stop) - (1 if upwards else -1)
            smallest, largest = (begin, end) if upwards else (end, begin)
            form = form.without(loop.target) + (smallest if factor > 0 else largest) * factor
        return form.constant >= least and all(factor > 0 and _is_natural(atom) for atom, factor in form.terms)


def _is_zero(value: Expr) -> bool:
    return isinstance(value, Const) and value.value == 0 and not np.signbit(value.value)


def _is_natural(atom: Expr) -> bool:
    """Whether an integer is at least 0 by what it is."""
    return isinstance(atom, Call) and (atom.func in (intrinsics.dim, np.size) or _is_clipped(atom))


def _is_clipped(call: Call) -> bool:
    return call.func is builtins.max and Const(0) in call.args


def _check(test: Expr, stmt: Stmt) -> Stmt:
    return If(test, (Raise(IndexError, (Const("list index out of range"),), stmt.origin),), (), stmt.origin)
