"""Functions whose rule is a formula: the formula is written next to the call and carries the derivative."""

from __future__ import annotations

from collections.abc import Set
from dataclasses import replace

from tapegen.frontend.lower import inline_call
from tapegen.frontend.structure import Leaf
from tapegen.ir import ops, rewrite
from tapegen.ir.names import TEMPORARY, NameSupply
from tapegen.ir.nodes import Assign, Block, Call, Const, Stmt, Var
from tapegen.rules.registry import rule_of


def expand(block: Block, varied: Set[Var], names: NameSupply) -> Block:
    """Inline the formulas of varied calls, also of calls inside formulas.

    The result `t = f(x)` becomes `t_value = f(x)`, the statements of the formula, and
    `t = primal_as(t_value, formula)`: the value is that of the function itself.
    """
    out: list[Stmt] = []
    for stmt in block:
        inner = rewrite.blocks(stmt)
        if inner:
            out.append(rewrite.with_blocks(stmt, tuple(expand(part, varied, names) for part in inner)))
            continue
        if not isinstance(stmt, Assign) or not isinstance(stmt.value, Call) or len(stmt.targets) != 1:
            out.append(stmt)
            continue
        call = stmt.value
        rule = rule_of(call.func)
        if rule is None or rule.kind != "expands" or not any(var in varied for var in rewrite.free_vars(call)):
            out.append(stmt)
            continue
        assert rule.body is not None
        formula, value = inline_call(rule.body, call.args, dict(call.kwargs), names)
        formula = placed(formula, stmt)
        inlined = varied | {var for part in rewrite.statements(formula) for var in rewrite.defines(part)}
        (target,) = stmt.targets
        kept = Var(names.fresh(f"{target.name}_value"), target.type)
        expr = value.expr if isinstance(value, Leaf) else Const(value.value)  # type: ignore[union-attr]
        if not isinstance(expr, Var | Const):
            atom = Var(names.fresh(TEMPORARY), expr.type)
            formula = (*formula, Assign((atom,), expr, stmt.origin))
            expr = atom
        out.append(Assign((kept,), call, stmt.origin))
        out.extend(expand(formula, inlined, names))
        out.append(Assign((target,), Call(ops.primal_as, (kept, expr), (), target.type), stmt.origin))
    return tuple(out)


def placed(block: Block, stmt: Stmt) -> Block:
    """Give inlined statements the origin of the statement they stand for."""
    return tuple(
        rewrite.with_blocks(
            replace(part, origin=stmt.origin), tuple(placed(inner, stmt) for inner in rewrite.blocks(part))
        )
        for part in block
    )
