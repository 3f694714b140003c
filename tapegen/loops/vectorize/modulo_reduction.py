"""Strength reduction of modulo: `(i + 1) % n` without a division in most iterations.

Always legal: `x % n` is `x` itself where `0 <= x < n`; elsewhere it is divided as before.  It pays for a counter
plus a constant, which is within range except at the ends: a division takes as long as dozens of additions.

Before::

    def f(x: "f8[:]", n: "i8"):
        s = 0.0
        for i in range(n):
            s = s + x[i] * x[(i + 1) % n]
        return s

After::

    def f(x, n):
        s = 0.0
        for i in range(n):
            around = i + 1 if i + 1 < n else (i + 1) % n
            s += x[i] * x[around]
        return s
"""

from __future__ import annotations

import operator
from collections.abc import Mapping
from dataclasses import replace

from tapegen.ir import intrinsics, traversal
from tapegen.ir.affine import is_int, linear
from tapegen.ir.names import NameSupply
from tapegen.ir.nodes import Assign, Block, Call, Const, Expr, For, Function, Stmt, Store, Var
from tapegen.ir.types import BOOL
from tapegen.loops.analysis.block_queries import names_in


def reduce_modulo(function: Function) -> Function:
    """The same program with a comparison before remainders of counters."""
    if not any(operator.mod in traversal.calls(stmt) for stmt in function.body):
        return function
    return traversal.with_body(function, _block(function.body, {}, NameSupply(names_in(function))))


def _block(block: Block, least: Mapping[Var, int | None], names: NameSupply) -> Block:
    """A block in loops whose counters have these lower bounds."""
    out: list[Stmt] = []
    known: dict[Expr, Var] = {}  # remainders that are bound to variables here
    for stmt in block:
        if isinstance(stmt, (Assign, Store)):
            own = stmt.value if isinstance(stmt, Assign) and len(stmt.targets) == 1 else None
            for remainder in _remainders(stmt, least):
                if remainder == own and remainder not in known:  # it is bound to a variable already
                    stmt = replace(stmt, value=_compared(remainder, least))
                elif remainder not in known:
                    known[remainder] = Var(names.fresh("around"), remainder.type)
                    out.append(Assign((known[remainder],), _compared(remainder, least), stmt.origin))
            if known:
                stmt = _named(stmt, known)
        inner = least
        if isinstance(stmt, For) and stmt.target not in traversal.assigned_in(*stmt.body):
            inner = {**least, stmt.target: _least(stmt)}
        stmt = traversal.with_blocks(stmt, tuple(_block(part, inner, names) for part in stmt.blocks))
        changed = traversal.assigns(stmt)
        known = {each: var for each, var in known.items() if changed.isdisjoint(traversal.free_vars(each))}
        out.append(stmt)
    return tuple(out)


def _named(stmt: Stmt, known: Mapping[Expr, Var]) -> Stmt:
    return traversal.map_headers(stmt, lambda part: traversal.map_expr(part, lambda each: known.get(each, each)))


def _remainders(stmt: Assign | Store, least: Mapping[Var, int | None]) -> list[Call]:
    """The remainders of a counter plus a constant in a statement, by a divisor that is not constant."""
    found: list[Call] = []
    for header in stmt.headers:
        for part in traversal.subexpressions(header) if operator.mod in traversal.callees(header) else ():
            match part:
                case Call(operator.mod, (a, b)) if (
                    is_int(a) and is_int(b) and is_int(part) and isinstance(b, (Var, Call))
                ):
                    terms = linear(a).terms
                    if len(terms) == 1 and terms[0][1] == 1 and terms[0][0] in least and not traversal.loads(b):
                        found.append(part)
    return found


def _compared(remainder: Call, least: Mapping[Var, int | None]) -> Call:
    number, size = remainder.args
    form = linear(number)
    start = least[form.atoms[0]]  # type: ignore[index]  # `_remainders` has looked
    within: Expr = Call(operator.lt, (number, size), (), BOOL)
    if start is None or start + form.constant < 0:
        above = Call(operator.le, (Const(0), number), (), BOOL)
        within = Call(intrinsics.and_, (above, within), (), BOOL)
    return Call(intrinsics.ifelse, (within, number, remainder), (), remainder.type)


def _least(loop: For) -> int | None:
    match loop.start, loop.stop, loop.step:
        case Const(int() as start), _, Const(int() as step) if step > 0:
            return start
        case _, Const(int() as stop), Const(int() as step) if step < 0:
            return stop + 1
    return None
