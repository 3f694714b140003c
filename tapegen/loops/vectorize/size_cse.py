"""Common subexpression elimination of sizes: a size that a program uses several times is bound to a variable.

Legal where no operand of a size changes.  It pays in compile time: `x.shape[0]` and `max(n - 1, 0)` are a
dozen instructions for numba each, a variable is none; and loops, checks, allocations and tapes use the same few sizes.

Before::

    def f(x: "f8[:]"):
        y = np.empty(x.shape[0])
        for i in range(x.shape[0]):
            y[i] = x[i] + 1.0
        return y

After::

    def f(x):
        x_n0 = x.shape[0]
        y = np.empty(x_n0)
        for i in range(x_n0):
            y[i] = x[i] + 1.0
        return y
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from typing import Any

from tapegen.ir import intrinsics, traversal
from tapegen.ir.affine import is_int
from tapegen.ir.names import NameSupply
from tapegen.ir.nodes import Assign, Block, Call, Const, Expr, Function, Stmt, Var
from tapegen.ir.types import INT
from tapegen.loops.analysis.block_queries import names_in


def share_sizes(function: Function) -> Function:
    """The same program with a variable for each such size, if none of its operands changes."""
    assigned = Counter(var for stmt in traversal.statements(function.body) for var in stmt.targets)
    within = {stmt: _sizes(stmt) for stmt in function.body}
    mentioned = Counter(size for found in within.values() for size in found)
    names = NameSupply(names_in(function))
    lasting = {param for param in function.params if param not in assigned}
    known: dict[Expr, Var] = {}
    body: list[Stmt] = []
    for stmt in function.body:
        given: Mapping[Expr, Var] = known
        for size in within[stmt]:
            if mentioned[size] == 1 or size in known or not traversal.free_vars(size) <= lasting:
                continue
            value = _by_names(size, known)
            if isinstance(stmt, Assign) and stmt.value == size and assigned[stmt.targets[0]] == 1:
                name = stmt.targets[0]  # it is bound to a variable already
                given = dict(known)
            else:
                name = Var(names.fresh(_base(size)), INT)
                body.append(Assign((name,), value, stmt.origin))
            known[size] = known[value] = name
        body.append(stmt if given.keys().isdisjoint(within[stmt]) else _statement(stmt, given))
        if isinstance(stmt, Assign):
            lasting.update(target for target in stmt.targets if assigned[target] == 1)
    return traversal.with_body(function, tuple(body))


def _sizes(stmt: Stmt) -> list[Call]:
    """The sizes that a statement uses, nested ones included, each after its operands."""
    found: list[Call] = []
    if traversal.calls(stmt).isdisjoint(_SIZES):
        return found
    for inner in traversal.statements((stmt,)):
        for header in inner.headers:
            if traversal.callees(header).isdisjoint(_SIZES):
                continue
            found += [part for part in reversed(traversal.subexpressions(header)) if _is_size(part)]
    return found


_SIZES: frozenset[Any] = frozenset({intrinsics.dim, max})


def _is_size(part: Any) -> bool:
    if type(part) is not Call:
        return False
    if part.func is intrinsics.dim:
        return isinstance(part.args[0], Var) and isinstance(part.args[1], Const)
    return part.func is max and not part.kwargs and all(is_int(arg) and not traversal.loads(arg) for arg in part.args)


def _base(size: Call) -> str:
    match size:
        case Call(intrinsics.dim, (Var(name), Const(axis))):
            return f"{name}_n{axis}"
    return "size"


def _statement(stmt: Stmt, known: Mapping[Expr, Var]) -> Stmt:
    if traversal.calls(stmt).isdisjoint(_SIZES):
        return stmt
    new = traversal.map_headers(stmt, lambda header: _by_names(header, known))
    return traversal.with_blocks(new, tuple(_block(inner, known) for inner in new.blocks))


def _block(block: Block, known: Mapping[Expr, Var]) -> Block:
    return traversal.map_block(block, lambda stmt: _statement(stmt, known))


def _by_names(expr: Any, known: Mapping[Expr, Var]) -> Any:
    """An expression with variables for sizes; the larger size where one is part of another."""
    if traversal.callees(expr).isdisjoint(_SIZES):
        return expr
    if isinstance(expr, Call) and expr in known:
        return known[expr]
    return traversal.map_expr(expr, lambda part: known.get(part, part) if isinstance(part, Call) else part)
