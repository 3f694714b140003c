"""Horizontal fusion of inner products: those that read the same vectors, in one pass over them.

`a @ x` and its tangent `a_dot @ x + a @ x_dot` pass through `a` and through `x` twice each, and the time is spent on
loading them from memory.  In loops a single product is a loop as well: a call of BLAS takes longer than a short
product, and no less than a long one.  Legal where nothing that they read changes in between; the order of additions is
free, as it is in the BLAS that computes them otherwise.

Before::

    def f(a: "f8[:]", a_dot: "f8[:]", x: "f8[:]", x_dot: "f8[:]"):
        s = np.dot(a, x)
        s_dot = np.dot(a_dot, x) + np.dot(a, x_dot)
        return s, s_dot

After::

    def f(a, a_dot, x, x_dot):
        product, product_1, product_2 = products(a, x, a_dot, x_dot)
        s = product
        s_dot = product_1 + product_2
        return s, s_dot
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any, TypeGuard

import numpy as np

from tapegen.ir import intrinsics, traversal
from tapegen.ir.dead_code import remove_dead
from tapegen.ir.names import NameSupply
from tapegen.ir.nodes import Assign, Block, Call, Expr, For, Function, Load, Stmt, Store, Var, While
from tapegen.ir.types import Array, TupleOf
from tapegen.loops.analysis.block_queries import names_in
from tapegen.loops.analysis.dependence import alias_sets

_MOST = 4
"""Products in one pass; the sums of more would not fit into registers."""

Pair = tuple[Expr, Expr]


def fuse_dot_products(function: Function) -> Function:
    """The same program with such products fused, where nothing that they read changes in between."""
    if not any(np.dot in traversal.calls(stmt) for stmt in function.body):
        return function
    joining = _Joining(function)
    body = joining.block(function.body, False)
    views = joining.substituted
    body = remove_dead(body, (), lambda stmt: isinstance(stmt, Assign) and views.issuperset(stmt.targets))
    return traversal.with_body(function, body)


@dataclass(slots=True, eq=False)
class _Pass:
    """Products that are computed before the statement at `start`, each bound to a variable."""

    start: int
    numbers: dict[Pair, Var] = field(default_factory=dict)

    def takes(self, pair: Pair) -> bool:
        if pair in self.numbers:
            return True
        return len(self.numbers) < _MOST and any(vector in other for other in self.numbers for vector in pair)

    def statement(self, before: Stmt) -> Stmt:
        targets = tuple(self.numbers.values())
        vectors = tuple(vector for pair in self.numbers for vector in pair)
        return Assign(
            targets, Call(intrinsics.dots, vectors, (), TupleOf(tuple(var.type for var in targets))), before.origin
        )


class _Joining:
    def __init__(self, function: Function) -> None:
        self.memory = alias_sets(function)
        self.names = NameSupply(names_in(function))
        self.substituted: set[Var] = set()  # variables that hold views, which are substituted

    def block(self, block: Block, in_loop: bool) -> Block:
        out: list[Stmt] = []
        run: list[Assign | Store] = []
        for stmt in block:
            if isinstance(stmt, (Assign, Store)):
                run.append(stmt)
                continue
            out += self._run(run, in_loop)
            run = []
            inside = in_loop or isinstance(stmt, (For, While))
            out.append(traversal.with_blocks(stmt, tuple(self.block(inner, inside) for inner in stmt.blocks)))
        return (*out, *self._run(run, in_loop))

    def _run(self, run: Sequence[Assign | Store], in_loop: bool) -> Sequence[Stmt]:
        """Consecutive statements, none of which is a check."""
        passes: list[_Pass] = []
        uses: list[tuple[int, Call, Pair, _Pass]] = []
        views: dict[Expr, Load] = {}
        for k, stmt in enumerate(run):
            for call in _products(stmt.value):
                first, second = (views.get(arg, arg) for arg in call.args)
                pair = first, second
                fitting = (each for each in passes if each.takes(pair) and not self._changes(run[each.start : k], pair))
                found = next(fitting, None)
                if found is None:
                    found = _Pass(k)
                    passes.append(found)
                if pair not in found.numbers:
                    found.numbers[pair] = Var(self.names.fresh("product"), call.type)
                uses.append((k, call, pair, found))
            changed = set(stmt.targets)
            views = {var: view for var, view in views.items() if changed.isdisjoint((var, *traversal.free_vars(view)))}
            if (
                isinstance(stmt, Assign)
                and changed.isdisjoint(traversal.free_vars(stmt.value))
                and _is_view(stmt.value)
            ):
                views[stmt.targets[0]] = stmt.value
        uses = [use for use in uses if in_loop or len(use[-1].numbers) > 1]
        if not uses:
            return run
        out: list[Stmt] = []
        for k, stmt in enumerate(run):
            known = {call: found.numbers[pair] for at, call, pair, found in uses if at == k}
            out += [found.statement(stmt) for found in dict.fromkeys(use[-1] for use in uses) if found.start == k]
            out.append(traversal.map_headers(stmt, partial(_with_numbers, known)))
            self.substituted.update(arg for call in known for arg in call.args if isinstance(arg, Var))
        return out

    def _changes(self, between: Sequence[Stmt], pair: Pair) -> bool:
        """Whether some statements change what a product reads."""
        read = {var for vector in pair for var in traversal.free_vars(vector)}
        groups = {self.memory.group(var) for var in read}
        stored = (self.memory.group(stmt.array) for stmt in between if isinstance(stmt, Store))
        return not read.isdisjoint(traversal.assigned_in(*between)) or not groups.isdisjoint(stored)


def _with_numbers(numbers: Mapping[Call, Var], header: Any) -> Any:
    if np.dot not in traversal.callees(header):
        return header
    return traversal.map_expr(header, lambda part: numbers.get(part, part) if isinstance(part, Call) else part)


def _products(value: Expr) -> Iterator[Call]:
    """The products of vectors that an expression computes unconditionally."""
    if np.dot not in traversal.callees(value):
        return
    match value:
        case Call(np.dot, (first, second)) if _are_vectors(first, second):
            yield value
        case Call(intrinsics.ifelse | intrinsics.and_ | intrinsics.or_, (test, *_)):
            yield from _products(test)
        case Call(_, args, kwargs):
            for part in (*args, *(given for _, given in kwargs)):
                yield from _products(part)


def _are_vectors(a: Expr, b: Expr) -> bool:
    """Whether both are vectors of floats of one precision."""
    types = [arg.type for arg in (a, b)]
    dtypes = {type_.dtype for type_ in types if isinstance(type_, Array) and type_.rank == 1}
    return all(isinstance(type_, Array) and type_.rank == 1 for type_ in types) and dtypes in ({"float64"}, {"float32"})


def _is_view(value: Expr) -> TypeGuard[Load]:
    """Whether a value is a view and no copy."""
    if not isinstance(value, Load) or not isinstance(value.type, Array):
        return False
    return not any(isinstance(getattr(item, "type", None), Array) for item in value.index)
