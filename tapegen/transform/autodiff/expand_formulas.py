"""Formula expansion: where a rule is a formula, it is inlined next to the call and carries the derivative."""

from __future__ import annotations

from collections.abc import Callable, Set
from dataclasses import replace
from typing import Any

from tapegen.errors import TapegenError
from tapegen.frontend.templates.cache import expand_template
from tapegen.frontend.values.pytree import Leaf, Struct
from tapegen.ir import intrinsics, traversal
from tapegen.ir.names import TEMPORARY, NameSupply
from tapegen.ir.nodes import Assign, Block, Call, Const, Stmt, Var
from tapegen.ir.types import is_floating
from tapegen.rules.registry import rule_of
from tapegen.transform.autodiff.rule_application import refuse_complex, refused_at


def expand(block: Block, varied: Set[Var], names: NameSupply, written: set[Stmt]) -> Block:
    """Inline the formulas of varied calls, also of calls inside formulas.

    The result `t = f(x)` becomes `t_value = f(x)`, the statements of the formula, and
    `t = primal_as(t_value, formula)`: the value is that of the function itself.  The calls that remain for their values
    are added to `written`; calls that are in it already are not expanded.
    """
    out: list[Stmt] = []
    for stmt in block:
        inner = stmt.blocks
        if inner:
            out.append(traversal.with_blocks(stmt, tuple(expand(part, varied, names, written) for part in inner)))
            continue
        call = stmt.value if isinstance(stmt, Assign) else None
        formula_wanted = isinstance(call, Call) and has_formula(call.func) and stmt not in written
        if not formula_wanted or varied.isdisjoint(traversal.free_vars(call)):
            out.append(stmt)
            continue
        assert isinstance(stmt, Assign)
        assert isinstance(call, Call)
        rule = rule_of(call.func)
        assert rule is not None
        assert rule.body is not None
        refuse_complex(call, rule, stmt)
        try:
            formula, value = expand_template(rule.body, call.args, dict(call.kwargs), names)
        except TapegenError as error:
            raise refused_at(error, stmt.origin) from error.__cause__
        formula = placed(formula, stmt)
        inlined = varied | {var for part in traversal.statements(formula) for var in part.targets}
        kept, values, joins = [], [], []
        for target, part in zip(stmt.targets, value.children if isinstance(value, Struct) else (value,), strict=True):
            if not is_floating(target.type):  # one of several results, without a derivative
                kept.append(target)
                continue
            expr = part.expr if isinstance(part, Leaf) else Const(part.value)
            if not isinstance(expr, (Var, Const)):
                atom = Var(names.fresh(TEMPORARY), expr.type)
                values.append(Assign((atom,), expr, stmt.origin))
                expr = atom
            kept.append(Var(names.fresh(f"{target.name}_value"), target.type))
            joins.append(Assign((target,), Call(intrinsics.primal_as, (kept[-1], expr), (), target.type), stmt.origin))
        out.append(Assign(tuple(kept), call, stmt.origin))
        written.add(out[-1])
        out.extend(expand((*formula, *values), inlined, names, written))
        out.extend(joins)
    return tuple(out)


def has_formula(func: Callable[..., Any]) -> bool:
    """Whether the rule of a function is a formula."""
    rule = rule_of(func)
    return rule is not None and rule.kind == "expands"


def placed(block: Block, stmt: Stmt) -> Block:
    """Give inlined statements the origin of the statement that they replace."""
    return tuple(
        traversal.with_blocks(replace(part, origin=stmt.origin), tuple(placed(inner, stmt) for inner in part.blocks))
        for part in block
    )
