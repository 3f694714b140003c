"""Python functions that have rules of their own, written out where compiled code would call them."""

from __future__ import annotations

import operator
from collections.abc import Iterator
from dataclasses import replace
from types import FunctionType

from tapegen.errors import TapegenError
from tapegen.frontend.lower import inline_call
from tapegen.frontend.lower_own import own_rule
from tapegen.frontend.structure import Abstract, Leaf, StaticValue, Struct
from tapegen.ir import ops, rewrite
from tapegen.ir.names import TEMPORARY, NameSupply
from tapegen.ir.nodes import (
    Assign,
    Block,
    Break,
    Call,
    Const,
    Expr,
    Function,
    If,
    Return,
    Stmt,
    Store,
    Tuple,
    Var,
    While,
)
from tapegen.ir.types import BOOL
from tapegen.transform.expand import placed

_CONDITIONAL = frozenset({ops.and_, ops.or_, ops.ifelse})


def written_out(function: Function) -> Function:
    """The same program without calls of the user's functions; those that cannot be written out stay."""
    if not any(_is_own(part) for stmt in rewrite.statements(function.body) for part in _calls(stmt)):
        return function
    used = {param.name for param in function.params} | {name for name, _ in function.globals} | {function.name}
    used |= {var.name for stmt in rewrite.statements(function.body) for var in rewrite.defines(stmt)}
    return replace(function, body=_block(function.body, NameSupply(used)))


def _is_own(call: Call) -> bool:
    return isinstance(call.func, FunctionType) and own_rule(call.func) is not None


def _calls(stmt: Stmt) -> Iterator[Call]:
    for header in rewrite.headers(stmt):
        yield from (part for part in rewrite.subexpressions(header) if isinstance(part, Call))


def _block(block: Block, names: NameSupply) -> Block:
    out: list[Stmt] = []
    for stmt in block:
        inner = tuple(_block(part, names) for part in rewrite.blocks(stmt))
        new = rewrite.with_blocks(stmt, inner) if inner else stmt
        if any(map(_is_own, _calls(stmt))):
            before, new = _apart(new, names)
            if isinstance(new, While):  # the test is worked out on every trip
                leave = If(Call(operator.not_, (new.test,), (), BOOL), (Break(stmt.origin),), (), stmt.origin)
                new = replace(new, test=Const(True), body=(*before, leave, *new.body))
            else:
                out += before
        out.append(new)
    return tuple(out)


def _apart(stmt: Stmt, names: NameSupply) -> tuple[list[Stmt], Stmt]:
    """The calls of a statement in front of it, innermost first; what runs on a condition stays where it is."""
    before: list[Stmt] = []

    def moved(expr: Expr) -> Expr:
        if isinstance(expr, Tuple):
            return Tuple(tuple(map(moved, expr.items)))
        if not isinstance(expr, Call):
            return expr
        if expr.func in _CONDITIONAL:
            return replace(expr, args=(moved(expr.args[0]), *expr.args[1:]))
        call = replace(
            expr, args=tuple(map(moved, expr.args)), kwargs=tuple((name, moved(value)) for name, value in expr.kwargs)
        )
        found = _value_of(call, names, stmt) if _is_own(call) else None
        if found is None:
            return call
        block, value = found
        before.extend(block)
        return value

    match stmt:
        case Assign(_, value):
            stmt = replace(stmt, value=moved(value))
        case If(test) | While(test):
            stmt = replace(stmt, test=moved(test))
        case Store(value=value):
            stmt = replace(stmt, value=moved(value))
        case Return(values):
            stmt = replace(stmt, values=tuple(map(moved, values)))
    return before, stmt


def _value_of(call: Call, names: NameSupply, stmt: Stmt) -> tuple[Block, Expr] | None:
    """The statements of a call that is written out and its value; None where that cannot be done."""
    arguments: list[Stmt] = []

    def atom(expr: Expr) -> Expr:
        if isinstance(expr, Var | Const):
            return expr
        var = Var(names.fresh(TEMPORARY), expr.type)
        arguments.append(Assign((var,), expr, stmt.origin))
        return var

    args = tuple(map(atom, call.args))
    kwargs = {name: atom(value) for name, value in call.kwargs}
    try:
        block, value = inline_call(call.func, args, kwargs, names, rules=False)
    except TapegenError:
        return None
    expr = _expression(value)
    if expr is None:
        return None
    result = [] if isinstance(expr, Tuple) else [Assign((Var(names.fresh(TEMPORARY), call.type),), expr, stmt.origin)]
    return (*arguments, *placed(block, stmt), *result), result[0].targets[0] if result else expr


def _expression(value: Abstract) -> Expr | None:
    if isinstance(value, Leaf):
        return value.expr
    if isinstance(value, StaticValue):
        return Const(value.value)
    if isinstance(value, Struct) and value.kind == "tuple":
        items = [_expression(child) for child in value.children]
        return None if None in items else Tuple(tuple(item for item in items if item is not None))
    return None
