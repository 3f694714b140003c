"""Caller-provided output buffers: machine code writes results into arrays of the caller, which saves a copy."""

from __future__ import annotations

import operator
from collections.abc import Iterable
from dataclasses import replace
from functools import reduce

import numpy as np

from tapegen.ir import intrinsics
from tapegen.ir.names import NameSupply
from tapegen.ir.nodes import Assign, Call, Const, Expr, Function, If, Return, Stmt, Store, Tuple, Var
from tapegen.ir.traversal import statements
from tapegen.ir.types import BOOL, INT, Array, TupleOf
from tapegen.loops.analysis.block_queries import names_in


def with_output_buffers(function: Function, candidates: Iterable[int]) -> tuple[Function, tuple[int, ...]]:
    """A function that accepts buffers for its results, as its last parameters.

    Where a buffer has other sizes than the result - none, for a result that nobody wants - the function allocates
    an array as before.

    Parameters
    ----------
    function : Function
        A program as it is compiled, without defaults.
    candidates : iterable of int
        Positions of results that may have a buffer.

    Returns
    -------
    function : Function
    rooms : tuple of int
        The positions of results with a buffer: new arrays that the function allocates exactly once on every path.
    """
    last = function.body[-1]
    assert isinstance(last, Return)
    assigned = [target for stmt in statements(function.body) if isinstance(stmt, Assign) for target in stmt.targets]
    new = [stmt for stmt in function.body if isinstance(stmt, Assign) and _is_new_array(stmt.value)]
    made = {stmt.targets[0]: stmt for stmt in new if assigned.count(stmt.targets[0]) == 1}
    names = NameSupply(names_in(function))
    rooms: dict[Var, tuple[int, Var]] = {}
    for position in candidates:
        var = last.values[position]
        if isinstance(var, Var) and var in made and var not in rooms:
            rooms[var] = position, Var(names.fresh(f"{var.name}_room"), made[var].value.type)
    placed: dict[Stmt, Stmt] = {made[var]: _into_buffer(made[var], var, room) for var, (_, room) in rooms.items()}
    body = tuple(placed.get(stmt, stmt) for stmt in function.body)
    params = (*function.params, *(room for _, room in rooms.values()))
    return replace(function, params=params, body=body), tuple(position for position, _ in rooms.values())


def _is_new_array(value: Expr) -> bool:
    """Whether an expression allocates an array in C order, which could be a buffer instead."""
    match value:
        case Call(np.empty | np.zeros, _, _, Array(rank=rank, layout="C")):
            return rank > 0
        case Call(np.dot, (a, b), _, Array(rank=2, layout="C")):
            return all(isinstance(part.type, Array) and part.type.rank == 2 for part in (a, b))
    return False


def _into_buffer(stmt: Assign, target: Var, room: Var) -> Stmt:
    """The statement that allocates an array, where a buffer may replace it."""
    made = stmt.value
    assert isinstance(made, Call)
    if made.func is np.dot:
        a, b = made.args
        rows_and_columns = Tuple(
            (Call(intrinsics.dim, (a, Const(0)), (), INT), Call(intrinsics.dim, (b, Const(1)), (), INT))
        )
        product = Assign(stmt.targets, replace(made, args=(a, b, room)), stmt.origin)
        return If(_fits(room, rows_and_columns), (product,), (stmt,), stmt.origin)
    taken: tuple[Stmt, ...] = (Assign(stmt.targets, room, stmt.origin),)
    if made.func is np.zeros:
        taken = (*taken, Store(target, (), Const(0.0), origin=stmt.origin))
    return If(_fits(room, made.args[0]), taken, (stmt,), stmt.origin)


def _fits(room: Var, shape: Expr) -> Expr:
    """Whether the array has this shape, which is an integer, a tuple, or the shape of another array."""
    assert isinstance(room.type, Array)
    if isinstance(shape, Tuple):
        sizes = [Call(intrinsics.dim, (room, Const(axis)), (), INT) for axis in range(room.type.rank)]
        tests = [Call(operator.eq, pair, (), BOOL) for pair in zip(sizes, shape.items, strict=True)]
        return reduce(lambda a, b: Call(intrinsics.and_, (a, b), (), BOOL), tests)
    if isinstance(shape.type, TupleOf):
        return Call(operator.eq, (Call(intrinsics.shape, (room,), (), shape.type), shape), (), BOOL)
    return Call(operator.eq, (Call(intrinsics.dim, (room, Const(0)), (), INT), shape), (), BOOL)


__all__ = ["with_output_buffers"]
