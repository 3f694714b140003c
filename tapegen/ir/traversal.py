"""Visitors and rewriters of the IR: free variables, reads, substitution, mapping over blocks."""

from __future__ import annotations

import functools
import itertools
import operator
from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence, Set
from dataclasses import replace
from typing import Any, TypeVar

import numpy as np

from tapegen.ir import intrinsics
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
    Pop,
    Push,
    Raise,
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

_Found = TypeVar("_Found")

_SHAPE_ONLY: dict[Any, int] = {
    np.zeros_like: 0,
    np.ones_like: 0,
    np.empty_like: 0,
    np.full_like: 0,
    np.shape: 0,
    np.size: 0,
    np.ndim: 0,
    len: 0,
    intrinsics.dim: 0,
    intrinsics.zero_items: 0,
    intrinsics.zeros_beside: 0,
    intrinsics.shape: 0,
    intrinsics.sum_to: 1,
}


def shape_only_argument(func: Any) -> int | None:
    """Position of the argument of which a function reads only the shape, if there is one."""
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


_FEW = 64
"""Largest number of subexpressions that are cached."""

_COMPOUND = frozenset({Call, Load, Tuple, Slice})
_NESTING = frozenset({For, If, While})


def subexpressions(node: Any) -> tuple[Any, ...]:
    """An expression and everything below it."""
    if type(node) not in _COMPOUND:
        return (node,)
    if node.below is not None:
        return node.below
    found: list[Any] = []
    work: list[Any] = [node]
    while work:  # trees may be deeper than Python's stack
        part = work.pop()
        if type(part) not in _COMPOUND:
            found.append(part)
        elif part.below is not None:
            found += part.below
        else:
            found.append(part)
            work += parts(part)
    below = tuple(found)
    if len(below) <= _FEW:
        node.below = below
    return below


def free_vars(node: Any) -> frozenset[Var]:
    """The free variables of an expression or index item."""
    kind = type(node)
    if kind is Var:
        return frozenset((node,))
    if kind not in _COMPOUND:
        return _NONE
    if node.mentioned is None:
        node.mentioned = frozenset(occurrences(node))
    return node.mentioned


_NONE: frozenset[Var] = frozenset()


def occurrences(node: Any) -> tuple[Var, ...]:
    """The Vars of an expression or index item, with repetitions."""
    kind = type(node)
    if kind is Var:
        return (node,)
    if kind not in _COMPOUND:
        return ()
    if node.occurring is None:
        _look_into(node)
    return node.occurring


def _look_into(node: Any) -> None:
    """Find the Vars and the callees of an expression or index item."""
    found: list[Var] = []
    functions: list[Any] = []
    below: list[frozenset[Any]] = []
    work: list[Any] = [node]
    while work:  # trees may be deeper than Python's stack
        part = work.pop()
        kind = type(part)
        if kind is Var:
            found.append(part)
        elif kind in _COMPOUND:
            if part.occurring is not None:
                found += part.occurring
                below.append(part.called)
            elif kind is Call and not part.kwargs:
                functions.append(part.func)
                work += part.args
            else:
                if kind is Call:
                    functions.append(part.func)
                work += parts(part)
    node.occurring = tuple(found)
    called = _hashed(functions) if functions else _NONE
    node.called = called.union(*below) if below else called


def callees(node: Any) -> frozenset[Any]:
    """The functions that an expression or index item calls, except unhashable ones, which no table contains."""
    if type(node) not in _COMPOUND:
        return _NONE
    if node.called is None:
        _look_into(node)
    return node.called


def _hashed(functions: list[Any]) -> frozenset[Any]:
    try:
        return frozenset(functions)
    except TypeError:
        return frozenset([func for func in functions if isinstance(func, Hashable)])


def loads(node: Any) -> list[Load]:
    """Every Load in an expression."""
    if type(node) not in _COMPOUND:
        return []
    return [part for part in subexpressions(node) if type(part) is Load]


def reads_by_kind(node: Any) -> tuple[Set[Var], Set[Var]]:
    """Vars whose contents an expression reads, and Vars of which it reads only the shape."""
    if callees(node).isdisjoint(_SHAPE_ONLY):
        return free_vars(node), _NONE
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


def contents_read(node: Any) -> Set[Var]:
    """Vars whose contents an expression reads."""
    return free_vars(node) if callees(node).isdisjoint(_SHAPE_ONLY) else reads_by_kind(node)[0]


def unindexed_reads(node: Any) -> set[Var]:
    """Arrays and lists that an expression reads as a whole: neither by an index, nor only the shape of an array."""
    found: set[Var] = set()
    work = [node]
    while work:
        part = work.pop()
        if isinstance(part, Var):
            if isinstance(part.type, (Array, ListOf)):
                found.add(part)
        elif isinstance(part, Load):
            work.extend(part.index)
        elif isinstance(part, Call) and (position := _SHAPE_ONLY.get(part.func)) is not None:
            # the length of a list is part of its contents
            work.extend(x for k, x in enumerate(parts(part)) if k != position or isinstance(x.type, ListOf))
        else:
            work.extend(parts(part))
    return found


def statements(block: Iterable[Stmt]) -> list[Stmt]:
    """Every statement of a block, nested ones included, in order of the text."""
    found = list(block)
    compound = [k for k, stmt in enumerate(found) if type(stmt) in _NESTING]
    for k in reversed(compound):
        found[k : k + 1] = _with_nested(found[k])
    return found


def _with_nested(stmt: Any) -> tuple[Stmt, ...]:
    if stmt.nested is None:
        stmt.nested = (stmt, *itertools.chain.from_iterable(map(statements, stmt.blocks)))
    return stmt.nested


def reads(stmt: Any) -> frozenset[Var]:
    """The Vars in the expressions of a statement, nested statements included."""
    if stmt.mentioned is None:
        kind = type(stmt)
        stmt.mentioned = free_vars(stmt.value) if kind is Assign else frozenset(occurring(stmt))
    return stmt.mentioned


def occurring(stmt: Any) -> tuple[Var, ...]:
    """The same Vars, with repetitions."""
    if stmt.occurring is None:
        kind = type(stmt)
        if kind is Assign:
            stmt.occurring = occurrences(stmt.value)
        else:
            found = [var for header in stmt.headers for var in occurrences(header)]
            for block in stmt.blocks:
                for inner in block:
                    found += occurring(inner)
            stmt.occurring = tuple(found)
    return stmt.occurring


def values_read(stmt: Any) -> frozenset[Var]:
    """The same Vars, except for arrays that are only stored into."""
    if stmt.valued is None:
        kind = type(stmt)
        if kind not in _NESTING and kind is not Store:
            stmt.valued = reads(stmt)
        else:
            nested = [values_read(inner) for block in stmt.blocks for inner in block]
            stmt.valued = _NONE.union(*map(free_vars, value_headers(stmt)), *nested)
    return stmt.valued


def value_headers(stmt: Stmt) -> tuple[Any, ...]:
    """The same as `headers` without the array that a statement stores into."""
    return (*stmt.index, stmt.value) if isinstance(stmt, Store) else stmt.headers


def assigns(stmt: Any) -> frozenset[Var]:
    """The Vars that a statement assigns, nested statements included."""
    if stmt.assigned is None:
        own = frozenset(stmt.targets)
        if type(stmt) in _NESTING:
            own = own.union(*[assigns(inner) for block in stmt.blocks for inner in block])
        stmt.assigned = own
    return stmt.assigned


def assigned_in(*stmts: Stmt) -> frozenset[Var]:
    """Every variable that some statements assign, nested statements included."""
    return _NONE.union(*map(assigns, stmts))


def pairs(stmt: Assign) -> tuple[tuple[Var, Expr], ...]:
    """The variables that a statement assigns, each with its value: for a call with several results, the call."""
    targets, value = stmt.targets, stmt.value
    if isinstance(value, Tuple) and len(value.items) == len(targets):
        return tuple(zip(targets, value.items, strict=True))
    return ((targets[0], value),) if len(targets) == 1 else tuple([(target, value) for target in targets])


def calls(stmt: Any) -> frozenset[Any]:
    """The functions that a statement calls, nested statements included."""
    if stmt.called is None:
        kind = type(stmt)
        if kind is Assign:
            stmt.called = callees(stmt.value)
        else:
            nested = [calls(inner) for block in stmt.blocks for inner in block] if kind in _NESTING else ()
            stmt.called = _NONE.union(*map(callees, stmt.headers), *nested)
    return stmt.called


def routines(block: Block) -> list[Routine]:
    """The routines that a block calls, each once, in order of the text."""
    found: dict[Routine, None] = {}
    for stmt in statements([stmt for stmt in block if calls_routine(stmt)]):
        for header in stmt.headers:
            for part in subexpressions(header):
                if isinstance(part, Call) and isinstance(part.func, Routine):
                    found.setdefault(part.func)
    return list(found)


def calls_routine(stmt: Stmt) -> bool:
    """Whether a statement, or one in it, calls a routine."""
    return Routine in map(type, calls(stmt))


def once(analysis: Callable[[Function], _Found]) -> Callable[[Function], _Found]:
    """Decorator of an analysis: the result is cached on the program and must not be changed."""

    @functools.wraps(analysis)
    def found(function: Function) -> _Found:
        if analysis not in function.known:
            function.known[analysis] = analysis(function)
        return function.known[analysis]

    return found


# ---- rewriting -------------------------------------------------------------------------------------------------------


def map_expr(node: Any, change: Callable[[Any], Any]) -> Any:
    """Rebuild an expression or index item bottom up; `change` sees each node after its parts.

    Unchanged nodes are reused.
    """
    kind = type(node)
    if kind not in _COMPOUND:
        return change(node)
    if kind is Call:
        args, kwargs = _mapped(node.args, change), node.kwargs
        if kwargs:
            values = _mapped(tuple(value for _, value in kwargs), change)
            if any(value is not old for value, (_, old) in zip(values, kwargs, strict=True)):
                kwargs = tuple((name, value) for (name, _), value in zip(kwargs, values, strict=True))
        if args is not node.args or kwargs is not node.kwargs:
            node = Call(node.func, args, kwargs, node.type)
    elif kind is Load:
        array, index = map_expr(node.array, change), _mapped(node.index, change)
        if array is not node.array or index is not node.index:
            node = Load(array, index, node.type)
    elif kind is Tuple:
        items = _mapped(node.items, change)
        if items is not node.items:
            node = Tuple(items)
    elif kind is Slice:
        old = (node.lo, node.hi, node.step)
        new = tuple(None if part is None else map_expr(part, change) for part in old)
        if any(a is not b for a, b in zip(new, old, strict=True)):
            node = Slice(*new)
    return change(node)


def _mapped(nodes: tuple[Any, ...], change: Callable[[Any], Any]) -> tuple[Any, ...]:
    new = tuple([map_expr(node, change) if type(node) in _COMPOUND else change(node) for node in nodes])
    return new if any(map(operator.is_not, new, nodes)) else nodes


def substitute(node: Any, mapping: Mapping[Var, Expr]) -> Any:
    """Replace Vars in an expression.  An indexed array must be replaced by a Var."""
    if type(node) is Var:
        return mapping.get(node, node)
    if mapping.keys().isdisjoint(free_vars(node)):
        return node
    return map_expr(node, lambda part: mapping.get(part, part) if type(part) is Var else part)


def map_headers(stmt: Stmt, change: Callable[[Any], Any]) -> Stmt:
    """A statement with `change` applied to each expression it evaluates; nested blocks are kept.

    It is the same statement where no expression changes.
    """
    if isinstance(stmt, Assign):
        value = change(stmt.value)
        return stmt if value is stmt.value else Assign(stmt.targets, value, stmt.origin)
    old = stmt.headers
    new = tuple([change(header) for header in old])
    if not any(map(operator.is_not, new, old)):
        return stmt
    if isinstance(stmt, Store):
        return Store(new[0], new[1:-1], new[-1], stmt.accumulate, stmt.origin)
    if isinstance(stmt, If):
        return If(new[0], stmt.body, stmt.orelse, stmt.origin)
    if isinstance(stmt, While):
        return While(new[0], stmt.body, stmt.origin)
    if isinstance(stmt, For):
        start, stop, step = new
        return For(stmt.target, start, stop, step, stmt.body, stmt.origin)
    if isinstance(stmt, Effect):
        return Effect(new[0], stmt.origin)
    if isinstance(stmt, Return):
        return Return(new, stmt.origin)
    if isinstance(stmt, Raise):
        return Raise(stmt.exception, new, stmt.origin)
    assert isinstance(stmt, Push)
    return Push(stmt.tape, new[0], stmt.origin)


def with_blocks(stmt: Stmt, new: tuple[Block, ...]) -> Stmt:
    """A statement with its nested blocks replaced, in the order of `blocks`; the same statement if no block changed."""
    if not new or all(map(same, new, stmt.blocks)):
        return stmt
    if isinstance(stmt, If):
        return If(stmt.test, new[0], new[1], stmt.origin)
    if isinstance(stmt, For):
        return For(stmt.target, stmt.start, stmt.stop, stmt.step, new[0], stmt.origin)
    if isinstance(stmt, While):
        return While(stmt.test, new[0], stmt.origin)
    return stmt


def with_body(function: Function, body: Block) -> Function:
    """A function with another body; the same function, with the facts that it caches, if no statement changed."""
    return function if same(body, function.body) else replace(function, body=body)


def same(a: Sequence[Stmt], b: Sequence[Stmt]) -> bool:
    """Whether two blocks hold the same statements."""
    return a is b or (len(a) == len(b) and all(map(operator.is_, a, b)))


def map_block(block: Block, change: Callable[[Stmt], Stmt]) -> Block:
    """A block with `change` applied to each statement; the same block where no statement changes."""
    new = tuple([change(stmt) for stmt in block])
    return new if any(map(operator.is_not, new, block)) else block


def substitute_block(block: Block, mapping: Mapping[Var, Expr]) -> Block:
    """Replace Vars where a block reads them (assigned names stay)."""

    def change(stmt: Stmt) -> Stmt:
        if mapping.keys().isdisjoint(reads(stmt)):
            return stmt
        new = map_headers(stmt, lambda node: substitute(node, mapping))
        return with_blocks(new, tuple(substitute_block(inner, mapping) for inner in new.blocks))

    return map_block(block, change)


def rename_block(block: Block, mapping: Mapping[Var, Var]) -> Block:
    """Rename Vars everywhere, assigned names included."""

    def change(stmt: Stmt) -> Stmt:
        if mapping.keys().isdisjoint(reads(stmt)) and mapping.keys().isdisjoint(assigns(stmt)):
            return stmt
        new = map_headers(stmt, lambda node: substitute(node, mapping))
        if isinstance(new, Assign):
            if not mapping.keys().isdisjoint(new.targets):
                new = Assign(tuple([mapping.get(target, target) for target in new.targets]), new.value, new.origin)
        elif isinstance(new, (For, Pop)) and new.target in mapping:
            new = replace(new, target=mapping[new.target])
        return with_blocks(new, tuple(rename_block(inner, mapping) for inner in new.blocks))

    return map_block(block, change)


_NEVER_RAISE: frozenset[Any] = frozenset(
    {
        *(operator.lt, operator.le, operator.gt, operator.ge, operator.eq, operator.ne, operator.not_),
        *(operator.add, operator.sub, operator.mul, operator.neg),
        *(intrinsics.and_, intrinsics.or_, intrinsics.ifelse, intrinsics.dim, len, bool),
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
