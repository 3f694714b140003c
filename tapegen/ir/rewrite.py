"""Reading and rewriting IR: free Vars, substitution, mapping over blocks."""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from typing import Any

import numpy as np

from tapegen.ir import ops
from tapegen.ir.nodes import (
    Assign,
    Block,
    Call,
    Const,
    Effect,
    Expr,
    For,
    If,
    Load,
    Pop,
    Push,
    Raise,
    Remembered,
    Return,
    Routine,
    Slice,
    Stmt,
    Store,
    Tuple,
    Var,
    While,
)
from tapegen.ir.types import Array, ListOf

_SHAPE_ONLY: dict[Any, int] = {
    np.zeros_like: 0,
    np.ones_like: 0,
    np.empty_like: 0,
    np.full_like: 0,
    np.shape: 0,
    np.size: 0,
    np.ndim: 0,
    len: 0,
    ops.dim: 0,
    ops.zero_items: 0,
    ops.zeros_beside: 0,
    ops.shape: 0,
    ops.sum_to: 1,
}


def shape_only_argument(func: Any) -> int | None:
    """Position of the argument of which a function reads the shape alone, if it has one."""
    return _SHAPE_ONLY.get(func)


def parts(node: Any) -> tuple[Any, ...]:
    """The immediate sub-expressions of an expression or index item."""
    kind = type(node)
    if kind is Call:
        return (*node.args, *(value for _, value in node.kwargs)) if node.kwargs else node.args
    if kind is Load:
        return (node.array, *node.index)
    if kind is Tuple:
        return node.items
    if kind is Slice:
        return tuple(part for part in (node.lo, node.hi, node.step) if part is not None)
    return ()


def subexpressions(node: Any) -> Iterator[Any]:
    """An expression and everything below it."""
    work = [node]
    while work:
        found = work.pop()
        yield found
        work.extend(parts(found))


def free_vars(node: Any) -> frozenset[Var]:
    """Every Var an expression or index item mentions."""
    if isinstance(node, Var):
        return frozenset((node,))
    if not isinstance(node, Remembered):
        return frozenset()
    if node.mentioned is None:
        found: set[Var] = set()
        work = list(parts(node))
        while work:  # trees may be deeper than Python's stack
            part = work.pop()
            if isinstance(part, Var):
                found.add(part)
            elif isinstance(part, Remembered):
                if part.mentioned is not None:
                    found |= part.mentioned
                else:
                    work.extend(parts(part))
        object.__setattr__(node, "mentioned", frozenset(found))
        assert node.mentioned is not None
    return node.mentioned


def loads(node: Any) -> list[Load]:
    """Every Load in an expression."""
    return [part for part in subexpressions(node) if isinstance(part, Load)]


def reads_by_kind(node: Any) -> tuple[set[Var], set[Var]]:
    """Vars whose contents an expression reads, and Vars of which it reads the shape alone."""
    contents: set[Var] = set()
    shapes: set[Var] = set()
    work = [node]
    while work:
        found = work.pop()
        if isinstance(found, Var):
            contents.add(found)
        elif isinstance(found, Call) and (position := _SHAPE_ONLY.get(found.func)) is not None:
            for k, part in enumerate(parts(found)):
                if k == position and isinstance(part, Var):
                    shapes.add(part)
                else:
                    work.append(part)
        else:
            work.extend(parts(found))
    return contents, shapes


def whole_reads(node: Any) -> set[Var]:
    """Arrays and lists that an expression reads as a whole: not by an index, and not the shape of an array alone."""
    found: set[Var] = set()
    work = [node]
    while work:
        part = work.pop()
        if isinstance(part, Var):
            if isinstance(part.type, Array | ListOf):
                found.add(part)
        elif isinstance(part, Load):
            work.extend(part.index)
        elif isinstance(part, Call) and (position := _SHAPE_ONLY.get(part.func)) is not None:
            # the length of a list is part of what it holds
            work.extend(x for k, x in enumerate(parts(part)) if k != position or isinstance(x.type, ListOf))
        else:
            work.extend(parts(part))
    return found


def headers(stmt: Stmt) -> tuple[Any, ...]:
    """The expressions and index items that a statement itself evaluates (nested blocks excluded)."""
    if isinstance(stmt, Assign | Push):
        return (stmt.value,)
    if isinstance(stmt, Store):
        return (stmt.array, *stmt.index, stmt.value)
    match stmt:
        case Effect(call):
            return (call,)
        case If(test) | While(test):
            return (test,)
        case For(_, start, stop, step):
            return (start, stop, step)
        case Return(values):
            return values
        case Raise(_, message):
            return message
    return ()


def blocks(stmt: Stmt) -> tuple[Block, ...]:
    """The nested blocks of a statement."""
    if isinstance(stmt, For | While):
        return (stmt.body,)
    if isinstance(stmt, If):
        return (stmt.body, stmt.orelse)
    return ()


def statements(block: Block) -> Iterator[Stmt]:
    """Every statement of a block, nested ones included, in order of the text."""
    work = list(reversed(block))
    while work:
        stmt = work.pop()
        yield stmt
        if isinstance(stmt, For | While):
            work.extend(reversed(stmt.body))
        elif isinstance(stmt, If):
            work.extend(reversed(stmt.orelse))
            work.extend(reversed(stmt.body))


def defines(stmt: Stmt) -> tuple[Var, ...]:
    """The Vars a statement itself assigns."""
    if isinstance(stmt, Assign):
        return stmt.targets
    if isinstance(stmt, For | Pop):
        return (stmt.target,)
    return ()


def reads(stmt: Stmt) -> frozenset[Var]:
    """The Vars that a statement mentions in its expressions, nested statements included."""
    if stmt.mentioned is None:
        found = frozenset().union(*map(free_vars, headers(stmt)), *(reads(s) for block in blocks(stmt) for s in block))
        object.__setattr__(stmt, "mentioned", found)
        assert stmt.mentioned is not None
    return stmt.mentioned


def assigns(stmt: Stmt) -> frozenset[Var]:
    """The Vars that a statement assigns, nested statements included."""
    if stmt.assigned is None:
        found = frozenset(defines(stmt)).union(*(assigns(inner) for block in blocks(stmt) for inner in block))
        object.__setattr__(stmt, "assigned", found)
        assert stmt.assigned is not None
    return stmt.assigned


def routines(block: Block) -> list[Routine]:
    """The routines that a block calls, each once, in order of the text."""
    found: dict[Routine, None] = {}
    for stmt in statements(block):
        for header in headers(stmt):
            for part in subexpressions(header):
                if isinstance(part, Call) and isinstance(part.func, Routine):
                    found.setdefault(part.func)
    return list(found)


# ---- rewriting -------------------------------------------------------------------------------------------------------


def map_expr(node: Any, change: Callable[[Any], Any]) -> Any:
    """Rebuild an expression or index item bottom up; `change` sees each node after its parts."""
    match node:
        case Call(func, args, kwargs, type_):
            new_args = tuple(map_expr(arg, change) for arg in args)
            new_kwargs = tuple((name, map_expr(value, change)) for name, value in kwargs)
            if new_args != args or new_kwargs != kwargs:
                node = Call(func, new_args, new_kwargs, type_)
        case Tuple(items):
            new_items = tuple(map_expr(item, change) for item in items)
            if new_items != items:
                node = Tuple(new_items)
        case Load(array, index, type_):
            new_array = map_expr(array, change)
            new_index = tuple(map_expr(item, change) for item in index)
            if new_array != array or new_index != index:
                node = Load(new_array, new_index, type_)
        case Slice(lo, hi, step):
            node = Slice(*(None if part is None else map_expr(part, change) for part in (lo, hi, step)))
    return change(node)


def as_factor(partial: Expr) -> tuple[Any, Expr]:
    """How to multiply by a partial: by `1.0 / y` with a division by `y`, else with a product."""
    match partial:
        case Call(operator.truediv | np.divide as divide, (Const(1.0), divisor)):
            return divide, divisor
    return operator.mul, partial


def substitute(node: Any, mapping: Mapping[Var, Expr]) -> Any:
    """Replace Vars in an expression.  An indexed array must be replaced by a Var."""
    if not mapping:
        return node
    return map_expr(node, lambda part: mapping.get(part, part) if isinstance(part, Var) else part)


def map_headers(stmt: Stmt, change: Callable[[Any], Any]) -> Stmt:
    """A statement with `change` applied to each expression it evaluates; nested blocks are kept."""
    match stmt:
        case Assign(_, value):
            new: Any = change(value)
            return stmt if new is value else replace(stmt, value=new)
        case Store(array, index, value):
            return replace(stmt, array=change(array), index=tuple(change(item) for item in index), value=change(value))
        case Effect(call):
            return replace(stmt, call=change(call))
        case If(test) | While(test):
            return replace(stmt, test=change(test))
        case For(_, start, stop, step):
            return replace(stmt, start=change(start), stop=change(stop), step=change(step))
        case Return(values):
            return replace(stmt, values=tuple(change(value) for value in values))
        case Raise(_, message):
            return replace(stmt, message=tuple(change(part) for part in message))
        case Push(_, value):
            return replace(stmt, value=change(value))
    return stmt


def with_blocks(stmt: Stmt, new: tuple[Block, ...]) -> Stmt:
    """A statement with its nested blocks replaced, in the order of `blocks`."""
    match stmt:
        case If():
            return replace(stmt, body=new[0], orelse=new[1])
        case For() | While():
            return replace(stmt, body=new[0])
    return stmt


def substitute_block(block: Block, mapping: Mapping[Var, Expr]) -> Block:
    """Replace Vars where a block reads them (assigned names stay)."""
    out = []
    for stmt in block:
        new = map_headers(stmt, lambda node: substitute(node, mapping))
        out.append(with_blocks(new, tuple(substitute_block(inner, mapping) for inner in blocks(new))))
    return tuple(out)


def rename_block(block: Block, mapping: Mapping[Var, Var]) -> Block:
    """Rename Vars everywhere, assigned names included."""
    out = []
    for stmt in block:
        new = map_headers(stmt, lambda node: substitute(node, mapping))
        match new:
            case Assign(targets):
                new = replace(new, targets=tuple(mapping.get(target, target) for target in targets))
            case For(target) | Pop(target):
                new = replace(new, target=mapping.get(target, target))
        out.append(with_blocks(new, tuple(rename_block(inner, mapping) for inner in blocks(new))))
    return tuple(out)


_NEVER_RAISE: frozenset[Any] = frozenset(
    {
        *(operator.lt, operator.le, operator.gt, operator.ge, operator.eq, operator.ne, operator.not_),
        *(operator.add, operator.sub, operator.mul, operator.neg, ops.and_, ops.or_, ops.ifelse, ops.dim, len, bool),
    }
)


def may_raise(node: Any) -> bool:
    """Whether evaluating a condition or an integer expression can fail (an index, a division, any other call)."""

    def risky(part: Any) -> bool:
        if not isinstance(part, Call):
            return isinstance(part, Load)
        if part.func in (operator.floordiv, operator.mod) and isinstance(part.args[1], Const):
            return part.args[1].value == 0
        return part.func not in _NEVER_RAISE

    return any(map(risky, subexpressions(node)))
