"""Full unrolling of short loops over small arrays inside of loops, whose elements become scalars.

`d = p[j] - p[i]` in a loop over pairs is a loop over three elements, and an array in memory.  Unrolled, the loop over
pairs is the innermost one, and the elements of `d` are scalars: it takes vector instructions like a loop that is
written with scalars.  A small matrix, and a vector that is carried from iteration to iteration, become scalars as
well, if they are only accessed by element: `b = a` copies the elements where nothing mentions `a` afterwards.

A size is known to be small where a check compares it with a constant; the check moves before the loops over the
vector, but not before other checks or effects.

Before::

    def f(x: "f8[:]", p: "f8[:, :]"):
        for j in range(x.shape[0]):
            d = np.empty(2)
            for k in range(2):
                d[k] = p[j, k] * x[j]
            x[j] = np.dot(d, d)
        return x

After::

    def f(x, p):
        for j in range(x.shape[0]):
            d_at_0 = p[j, 0] * x[j]
            d_at_1 = p[j, 1] * x[j]
            x[j] = d_at_0 * d_at_0 + d_at_1 * d_at_1
        return x
"""

from __future__ import annotations

import functools
import itertools
import math
import operator
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import Any

import numpy as np

from tapegen.ir import intrinsics, traversal
from tapegen.ir.names import NameSupply
from tapegen.ir.nodes import (
    Assign,
    Block,
    Call,
    Comment,
    Const,
    Expr,
    For,
    Function,
    If,
    Load,
    Raise,
    Stmt,
    Store,
    Tuple,
    Var,
    While,
)
from tapegen.ir.types import BOOL, Array, Scalar
from tapegen.loops.analysis.block_queries import leaves, names_in, read_after_loops
from tapegen.loops.analysis.symbolic_bounds import dim
from tapegen.loops.legalize.precision import dtype_of, stored

_MOST = 4
"""Elements of a small vector."""

_MOST_OF_NEST = 9
"""Elements of a small matrix."""

_LONGEST = 12
"""Statements of a loop that is unrolled."""

_BUDGET = 2000
"""Statements that are copied in one function: they take time to compile."""

Sizes = Mapping[Expr, int]
Place = tuple[int, ...]


def unroll_short_loops(function: Function) -> Function:
    """The same program with short loops unrolled, and scalars instead of small vectors."""
    unrolled = _Unrolling(function)
    body = unrolled.block(function.body, {}, False)
    if not unrolled.loops:
        return function
    body = unrolled.around_loops(body, function.params)
    return _scalars(traversal.with_body(function, body), unrolled.names)


class _Unrolling:
    """Writes out short loops.

    Attributes
    ----------
    loops : int
        How many it has unrolled.
    """

    def __init__(self, function: Function) -> None:
        self.loops = 0
        self.budget = _BUDGET
        self.names = NameSupply(names_in(function))
        self.reads = Counter(var for stmt in function.body for var in traversal.occurring(stmt))
        self.assigned = traversal.assigned_in(*function.body)
        self.read_later = read_after_loops(function.body)

    def block(self, block: Block, sizes: Sizes, in_loop: bool) -> Block:
        """A block in which these sizes are known."""
        out: list[Stmt] = []
        known = dict(sizes)
        for stmt in _with_early_checks(block, self._size) if in_loop else block:
            for array in traversal.assigns(stmt):
                if isinstance(array.type, Array):
                    for axis in range(array.type.rank):
                        known.pop(dim(array, axis), None)
            if known:
                stmt = traversal.map_headers(stmt, lambda header: _resized(header, known))
            if (found := self._size(stmt)) is not None:
                known[found[0]] = found[1]
            elif _never(stmt):
                continue
            inside = in_loop or isinstance(stmt, (For, While))
            stmt = traversal.with_blocks(stmt, tuple([self.block(part, known, inside) for part in stmt.blocks]))
            match stmt:
                case Assign((Var(type=Array()) as array,), Call(np.empty | np.zeros, (size, *_))):
                    for axis, count in enumerate(_shape(size) or ()):
                        known[dim(array, axis)] = count
            if isinstance(stmt, For) and (check := self._hoisted(stmt)) is not None:
                out.append(check)
                stmt = traversal.with_blocks(stmt, (stmt.body[1:],))
            out += self._unrolled(stmt, in_loop and len(block) > 1)
        return tuple(out)

    def around_loops(self, block: Block, params: Iterable[Var]) -> Block:
        """The block with short loops outside of loops unrolled where the arrays of loops become scalars by that."""
        outside = [stmt for stmt in block if _is_short(stmt)]
        arrays = _small_arrays([stmt for stmt in block if stmt not in outside], params)
        out: list[Stmt] = []
        for stmt in block:
            relevant = stmt in outside and not arrays.keys().isdisjoint(traversal.occurring(stmt))
            out += self._unrolled(stmt, relevant)
        return tuple(out)

    def _hoisted(self, loop: For) -> Stmt | None:
        """The check of a size that each iteration begins with, before the loop."""
        check = loop.body[0] if loop.body else None
        if not isinstance(check, If) or self._size(check) is None or loop.step not in (Const(1), Const(-1)):
            return None
        entered = operator.lt if loop.step == Const(1) else operator.gt
        test = Call(entered, (loop.start, loop.stop), (), BOOL)
        return replace(check, test=Call(intrinsics.and_, (test, check.test), (), BOOL))

    def _size(self, stmt: Stmt) -> tuple[Expr, int] | None:
        """A size of a parameter, and the small number that it is after a statement."""
        match stmt:
            case If(Call(operator.ne, (a, b)), (Raise(),), ()):
                if isinstance(a, Const):
                    a, b = b, a
                match a, b:
                    case Call(intrinsics.dim, (Var() as array, _)), Const(int() as number):
                        if number <= _MOST and array not in self.assigned:
                            return a, number
        return None

    def _unrolled(self, stmt: Stmt, among_others: bool) -> tuple[Stmt, ...]:
        """The iterations of a short loop, or of a nest of them, among other statements."""
        match stmt:
            case For(target, Const(int() as start), Const(int() as stop), Const(1), body):
                if among_others and _is_short(stmt) and len(body) == 1:
                    body = self._unrolled(body[0], among_others)
                    stmt = replace(stmt, body=body)
                if not (among_others and 0 < stop - start <= _MOST and len(body) <= _LONGEST):
                    return (stmt,)
                if not all(isinstance(each, (Assign, Store, Comment)) for each in body):
                    return (stmt,)
                if target in self.read_later or target in traversal.assigned_in(*body):
                    return (stmt,)
                copied = (stop - start - 1) * len(body)
                if copied > self.budget:
                    return (stmt,)
                self.budget -= copied
                self.loops += 1
                private = self._private(stmt)
                out: list[Stmt] = []
                for k in range(start, stop):
                    renamed = {var: Var(self.names.fresh(var.name), var.type) for var in private if k > start}
                    iteration = traversal.rename_block(body, renamed)
                    iteration = traversal.substitute_block(iteration, {target: Const(k)})
                    iteration = tuple([traversal.map_headers(each, _folded) for each in iteration])
                    out += iteration if k == start else [each for each in iteration if not isinstance(each, Comment)]
                return tuple(out)
        return (stmt,)

    def _private(self, loop: For) -> list[Var]:
        """Variables that each iteration assigns before it reads them, and nothing else reads."""
        found: list[Var] = []
        read: set[Var] = set()
        for stmt in loop.body:
            read |= traversal.reads(stmt)
            inside = traversal.occurring(loop)
            found += [var for var in stmt.targets if var not in read and self.reads[var] == inside.count(var)]
        return list(dict.fromkeys(found))


def _folded(header: Any) -> Any:
    """An expression without the comparisons of numbers that unrolling has made constants."""
    if intrinsics.ifelse not in traversal.callees(header):
        return header
    return traversal.map_expr(header, _decided)


def _decided(part: Any) -> Any:
    match part:
        case Call(operator.eq, (Const(int() as a), Const(int() as b))):
            return Const(a == b)
        case Call(intrinsics.ifelse, (Const(bool() as test), first, second)):
            return first if test else second
    return part


def _is_short(stmt: Stmt) -> bool:
    """Whether a statement is a loop, or a nest of two, that may be unrolled."""
    match stmt:
        case For(body=(For() as inner,)):
            return 0 < _iterations(replace(stmt, body=())) * _iterations(inner) <= _MOST_OF_NEST
    return 0 < _iterations(stmt) <= _MOST


def _iterations(stmt: Stmt) -> int:
    """The iterations of a loop over statements that are no loops; 0 where they are not known."""
    match stmt:
        case For(_, Const(int() as start), Const(int() as stop), Const(1), body):
            return stop - start if not any(isinstance(each, For) for each in body) else 0
    return 0


def _with_early_checks(block: Block, size: Any) -> list[Stmt]:
    """The statements of a block, with checks of sizes before the loops and definitions above them."""
    out: list[Stmt] = []
    for stmt in block:
        place = len(out)
        if size(stmt) is not None:
            while place and _is_passable(out[place - 1]):
                place -= 1
        out.insert(place, stmt)
    return out


def _is_passable(stmt: Stmt) -> bool:
    """Whether a statement computes numbers, and does nothing else."""
    if isinstance(stmt, For):
        return all(map(_is_passable, stmt.body))
    return isinstance(stmt, (Assign, Store, Comment)) and traversal.calls(stmt) <= _NUMERIC


def _never(stmt: Stmt) -> bool:
    """Whether a statement is a check that two equal numbers differ."""
    match stmt:
        case If(Call(operator.ne, (Const(int() as a), Const(int() as b))), (Raise(),), ()):
            return a == b
    return False


def _resized(header: Any, sizes: Sizes) -> Any:
    """An expression with the sizes that are known."""
    if intrinsics.dim not in traversal.callees(header) and np.dot not in traversal.callees(header):
        return header
    return traversal.map_expr(header, lambda part: _changed(part, sizes) if isinstance(part, Call) else part)


def _changed(call: Call, sizes: Sizes) -> Expr:
    if call.func is intrinsics.dim and (number := sizes.get(call)) is not None:
        return Const(number)
    match call:
        case Call(
            np.dot,
            (
                Var(type=Array("float64" | "float32" as dtype, 1)) as a,
                Var(type=Array("float64" | "float32" as other, 1)) as b,
            ),
            (),
        ) if dtype == other:
            type_ = Scalar(dtype, False)
            count = sizes.get(dim(a, 0))
            if count and sizes.get(dim(b, 0)) == count:
                return functools.reduce(
                    lambda total, term: Call(operator.add, (total, term), (), type_),
                    [_product(a, b, k, type_) for k in range(count)],
                )
    return call


def _product(a: Var, b: Var, k: int, type_: Scalar) -> Expr:
    factors = tuple([Load(each, (Const(k),), type_) for each in (a, b)])
    return Call(operator.mul, factors, (), type_)


_NUMERIC: frozenset[Any] = frozenset(
    {
        *(operator.add, operator.sub, operator.mul, operator.truediv, operator.neg, operator.pow),
        *(operator.eq, operator.ne, operator.lt, operator.le, operator.gt, operator.ge),
        *(intrinsics.ifelse, intrinsics.and_, intrinsics.or_, intrinsics.dim),
        *(np.empty, np.zeros, np.dot, np.sqrt, np.exp, np.log, np.sin, np.cos, math.sqrt, math.sin, math.cos),
    }
)
"""What checks may move before: it neither raises, nor draws, nor prints."""


def _shape(size: Expr) -> Place | None:
    """The shape of a small vector or matrix that is made with this size."""
    parts = size.items if isinstance(size, Tuple) else (size,)
    sizes = tuple([part.value for part in parts if isinstance(part, Const) and isinstance(part.value, int)])
    if len(sizes) < len(parts) or len(sizes) > 2:
        return None
    return sizes if 0 < math.prod(sizes) <= (_MOST if len(sizes) == 1 else _MOST_OF_NEST) else None


# ---- small arrays as scalars -----------------------------------------------------------------------------------------


def _scalars(function: Function, names: NameSupply) -> Function:
    """The same program with scalars for small arrays of which every access has a constant index."""
    small = _small_arrays(function.body, function.params)
    if not small:
        return function
    elements = {
        array: {
            place: Var(names.fresh("_".join([array.name, "at", *map(str, place)])), Scalar(array.type.dtype, False))  # type: ignore[union-attr]
            for place in itertools.product(*map(range, shape))
        }
        for array, shape in small.items()
    }
    return traversal.with_body(function, _replaced(function.body, elements))


def _small_arrays(block: Iterable[Stmt], params: Iterable[Var]) -> dict[Var, Place]:
    """The shapes of the arrays of local variables that loops access, at constant places alone."""
    shapes: dict[Var, Place] = {}
    refused: set[Var] = set(params)
    whole = list(traversal.statements(tuple(block)))
    moves = _moves(tuple(block), Counter(var for stmt in whole for var in (*_mentioned(stmt), *stmt.targets)))
    for stmt in whole:
        match stmt:
            case Assign((Var(type=Array()) as array,), Call(np.empty | np.zeros, (size, *_))) if (
                shape := _shape(size)
            ) is not None and shapes.setdefault(array, shape) == shape:
                continue
            case Assign((array,), Var() as source) if stmt in moves and (
                (shape := shapes.get(source)) is not None and shapes.setdefault(array, shape) == shape
            ):
                continue
        refused.update(stmt.targets)
    small = {array: shape for array, shape in shapes.items() if array not in refused}
    for stmt in whole:
        for array in small.keys() & set(_mentioned(stmt)):
            if stmt not in moves and not _by_constants(array, small[array], stmt):
                del small[array]
    while unlike := [pair for pair in map(_arrays_of, moves) if len(small.keys() & pair) == 1]:
        small = {array: shape for array, shape in small.items() if not any(array in pair for pair in unlike)}
    in_loops = {array for stmt in whole if isinstance(stmt, (For, While)) for array in traversal.occurring(stmt)}
    return {array: shape for array, shape in small.items() if array in in_loops}


def _moves(block: Block, mentions: Counter[Var]) -> list[Assign]:
    """Assignments of arrays to other variables after which nothing mentions the first ones: elements may be copied."""
    found: list[Assign] = []
    for place, stmt in enumerate(block):
        for part in stmt.blocks:
            found += _moves(part, mentions)
        match stmt:
            case Assign((Var(type=Array()),), Var() as source):
                before = [k for k in range(place) if source in block[k].targets]
                since = (
                    [each for part in block[before[-1] : place + 1] for each in traversal.statements((part,))]
                    if before
                    else []
                )
                if mentions[source] == sum([*_mentioned(each), *each.targets].count(source) for each in since):
                    found.append(stmt)
    return found


def _arrays_of(move: Assign) -> set[Var]:
    return {*move.targets, *traversal.occurring(move)}


def _mentioned(stmt: Stmt) -> list[Var]:
    """The variables in a statement, without those in its blocks."""
    return [var for header in stmt.headers for var in traversal.occurrences(header)]


def _by_constants(array: Var, shape: Place, stmt: Stmt) -> bool:
    """Whether a statement itself only accesses elements of an array at constant places."""
    mentioned = _mentioned(stmt).count(array)
    for header in stmt.headers:
        mentioned -= sum(load.array is array and _is_place(load.index, shape) for load in traversal.loads(header))
    if isinstance(stmt, Store) and stmt.array is array:
        if not _is_place(stmt.index, shape) or stmt.value.type.dtype != array.type.dtype:  # type: ignore[union-attr]
            return False
        mentioned -= 1
    return mentioned == 0


def _is_place(index: tuple[Any, ...], shape: Place) -> bool:
    return len(index) == len(shape) and all(
        isinstance(part, Const) and part.value in range(count) for part, count in zip(index, shape, strict=True)
    )


def _replaced(block: Block, elements: Mapping[Var, Mapping[Place, Var]]) -> Block:
    def element(part: Any) -> Any:
        return elements[part.array][_place(part.index)] if isinstance(part, Load) and part.array in elements else part

    out: list[Stmt] = []
    for place, stmt in enumerate(block):
        if isinstance(stmt, Assign) and stmt.value in elements:
            pairs = zip(elements[stmt.targets[0]].values(), elements[stmt.value].values(), strict=True)  # type: ignore[index]
            out += [Assign((var,), source, stmt.origin) for var, source in pairs]
            continue
        if isinstance(stmt, Assign) and (array := stmt.targets[0]) in elements:
            early = _stored_first(array, block[place + 1 :])
            unset = [var for where, var in elements[array].items() if where not in early]
            out += [Assign((var,), stored(Const(0), dtype_of(var)), stmt.origin) for var in unset]
            continue
        if isinstance(stmt, Store) and stmt.array in elements:
            var = elements[stmt.array][_place(stmt.index)]
            value = traversal.map_expr(stmt.value, element)
            if stmt.accumulate:
                value = Call(operator.add, (var, value), (), var.type)
            out.append(Assign((var,), stored(value, dtype_of(var)), stmt.origin))
            continue
        stmt = traversal.map_headers(stmt, lambda header: traversal.map_expr(header, element))
        out.append(traversal.with_blocks(stmt, tuple([_replaced(part, elements) for part in stmt.blocks])))
    return tuple(out)


def _stored_first(array: Var, after: Block) -> set[Place]:
    """The elements that a block stores before it may read them."""
    found: set[Place] = set()
    others: set[Place] = set()
    for stmt in after:
        for each in traversal.statements((stmt,)):
            loads = [load for header in each.headers for load in traversal.loads(header) if load.array is array]
            others.update(_place(load.index) for load in loads)
            if isinstance(each, Store) and each.array is array:
                plain = each is stmt and not each.accumulate and _place(each.index) not in others
                (found if plain else others).add(_place(each.index))
        if leaves((stmt,)):
            break  # what follows may not run
    return found


def _place(index: tuple[Any, ...]) -> Place:
    return tuple([part.value for part in index])
