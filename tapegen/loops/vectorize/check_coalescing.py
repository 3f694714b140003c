"""Check coalescing: one check for the largest of several constant indices, and one `if` for checks in a row.

Legal where the statements between two checks can exit only with an error, and the errors are the same.  It
pays in compile time: each `if` with its `raise` is several basic blocks.

Before::

    def f(x: "f8[:]"):
        if x.shape[0] < 1:
            raise IndexError("index out of bounds")
        if x.shape[0] < 3:
            raise IndexError("index out of bounds")
        return x[0] + x[2]

After::

    def f(x):
        if x.shape[0] < 3:
            raise IndexError("index out of bounds")
        return x[0] + x[2]
"""

from __future__ import annotations

import operator
from dataclasses import replace

from tapegen.ir import intrinsics, traversal
from tapegen.ir.nodes import Block, Break, Call, Const, Continue, Expr, For, Function, If, Raise, Stmt, Var, While
from tapegen.ir.types import BOOL

_PURE = frozenset(
    {
        *(operator.lt, operator.le, operator.gt, operator.ge, operator.eq, operator.ne),
        *(operator.add, operator.sub, operator.mul, operator.neg, operator.and_, operator.or_),
        *(intrinsics.and_, intrinsics.or_, intrinsics.dim),
    }
)

_Key = tuple[tuple[Expr, ...], Expr, type[BaseException], tuple[Expr, ...]]


def coalesce_checks(function: Function) -> Function:
    """The same program with fewer checks, for the same errors."""
    return traversal.with_body(function, _block(function.body))


def _block(block: Block) -> Block:
    parts = traversal.map_block(block, _statement)
    return tuple(_in_one(_of_largest(parts))) if If in map(type, parts) else parts


def _statement(stmt: Stmt) -> Stmt:
    nested = stmt.blocks
    return traversal.with_blocks(stmt, tuple(map(_block, nested))) if nested else stmt


def _of_largest(block: Block) -> list[Stmt]:
    """Where an axis is compared with several constants, let the first check compare with the largest.

    The statements between two of them lead to the second one, or end with the same error.
    """
    out: list[Stmt | None] = list(block)
    first: dict[_Key, int] = {}
    for k, stmt in enumerate(block):
        found = _least_size(stmt)
        if found is not None:
            key, least = found
            place = first.setdefault(key, k)
            if place != k:
                before = out[place]
                assert before is not None
                known = _least_size(before)
                assert known is not None
                if known[1] < least:
                    assert isinstance(stmt, If)
                    out[place] = replace(stmt, origin=before.origin)
                out[k] = None
        elif first:
            changed = traversal.assigns(stmt)
            if _leaves(stmt):
                first.clear()
            elif changed:
                first = {key: place for key, place in first.items() if changed.isdisjoint(_vars(key))}
    return [stmt for stmt in out if stmt is not None]


def _least_size(stmt: Stmt) -> tuple[_Key, int] | None:
    """Of `if guards and x.shape[k] < least: raise`: everything but the constant, and the constant."""
    if not isinstance(stmt, If) or not _is_check(stmt):
        return None
    (raising,) = stmt.body
    assert isinstance(raising, Raise)
    test = stmt.test
    guards: tuple[Expr, ...] = ()
    if isinstance(test, Call) and test.func is intrinsics.and_:
        *before, test = test.args
        guards = tuple(before)
    match test:
        case Call(operator.lt, (Call(intrinsics.dim) as size, Const(int() as least))):
            return (guards, size, raising.exception, raising.message), least
    return None


def _is_check(stmt: If) -> bool:
    """Whether it raises an error with a fixed message, on a condition of scalars alone."""
    match stmt:
        case If(test, (Raise(_, message),), ()) if all(isinstance(part, Const) for part in message):
            return all(
                part.func in _PURE if isinstance(part, Call) else isinstance(part, (Var, Const))
                for part in traversal.subexpressions(test)
            )
    return False


def _leaves(stmt: Stmt, *, inside: bool = False) -> bool:
    """Whether a statement may exit its block other than by an error."""
    if isinstance(stmt, (Break, Continue)):
        return not inside
    inside |= isinstance(stmt, (For, While))
    return any(_leaves(part, inside=inside) for block in stmt.blocks for part in block)


def _vars(key: _Key) -> set[Var]:
    guards, size, *_ = key
    return {var for part in (*guards, size) for var in traversal.free_vars(part)}


def _in_one(block: list[Stmt]) -> list[Stmt]:
    """Merge consecutive checks that raise the same error."""
    out: list[Stmt] = []
    for stmt in block:
        before = out[-1] if out else None
        if (
            isinstance(stmt, If)
            and isinstance(before, If)
            and _is_check(stmt)
            and _is_check(before)
            and _error(stmt) == _error(before)
        ):
            test = Call(operator.or_, (whole(before.test), whole(stmt.test)), (), BOOL)
            out[-1] = If(test, before.body, (), before.origin)
        else:
            out.append(stmt)
    return out


def _error(check: If) -> tuple[type[BaseException], tuple[Expr, ...]]:
    (raising,) = check.body
    assert isinstance(raising, Raise)
    return raising.exception, raising.message


def whole(test: Expr) -> Expr:
    """A condition whose operands are all evaluated, without a branch."""
    if isinstance(test, Call) and test.func in (intrinsics.and_, intrinsics.or_):
        function = operator.and_ if test.func is intrinsics.and_ else operator.or_
        found, *others = map(whole, test.args)
        for other in others:
            found = Call(function, (found, other), (), BOOL)
        return found
    return test
