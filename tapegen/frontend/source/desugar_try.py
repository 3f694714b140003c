"""Desugaring of `try`: to its body where no exception is caught, else to branches that lowering resolves.

An exception that escapes a program makes plain Python run once more (docs/architecture.md), so generated code does not
need handlers that only raise, and the block of `finally` follows the body.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Sequence
from typing import Any, cast

import gast

_LEAVES = (ast.Return, ast.Break, ast.Continue)


def attempt() -> None:
    """The test of an `if` whose body is that of a `try`, and whose other branches are the handlers."""


def is_attempt(test: gast.AST) -> bool:
    """Whether an `if` with this test represents a `try`."""
    return isinstance(test, gast.Call) and isinstance(test.func, gast.Constant) and test.func.value is attempt


def handles(*kinds: Any) -> None:
    """The test of an `if` that represents an `except` of these classes; without classes, of everything."""


def try_begins() -> None:
    """Marks the start of a `try` whose handlers only raise, or whose `finally` follows."""


def try_ends() -> None:
    """Marks its end."""


def without_try(node: ast.Try, fresh: Callable[[str], str]) -> ast.Try | list[ast.stmt]:
    """The desugared statements of a `try`; the `try` itself where it is not supported.  `fresh` gives new names."""
    if not all(map(_only_raises, node.handlers)):
        return _decided(node)
    begin, end = _mark(node, try_begins), _mark(node, try_ends)
    body = [*node.body, *node.orelse]
    if not node.finalbody:
        return [begin, *node.body, end, *node.orelse]
    if any(_escapes(stmt) for stmt in (*body[:-1], *node.finalbody)):
        return node
    last = body[-1]
    if isinstance(last, ast.Return) and last.value is not None:
        name = fresh("returned")
        kept = ast.copy_location(ast.Assign([ast.copy_location(ast.Name(name, ast.Store()), last)], last.value), last)
        back = ast.copy_location(ast.Return(ast.copy_location(ast.Name(name, ast.Load()), last)), last)
        return [begin, *body[:-1], kept, end, *node.finalbody, back]
    return node if _escapes(last) else [begin, *body, end, *node.finalbody]


def _mark(node: ast.Try, marker: Callable[..., None]) -> ast.Expr:
    place = _word(node, len("try"))
    return ast.Expr(ast.Call(ast.Constant(cast(Any, marker), None, **place), [], [], **place), **place)


def _only_raises(handler: ast.ExceptHandler) -> bool:
    return isinstance(handler.body[-1], ast.Raise) and not any(map(_escapes, handler.body))


def _escapes(stmt: ast.stmt) -> bool:
    return any(isinstance(inner, _LEAVES) for inner in ast.walk(stmt))


def _decided(node: ast.Try) -> ast.Try | list[ast.stmt]:
    """A `try` as branches, which lowering resolves (`frontend/lowering/exceptions.py`)."""
    names = {handler.name for handler in node.handlers if handler.name}
    read = {part.id for handler in node.handlers for part in ast.walk(handler) if isinstance(part, ast.Name)}
    raises_again = any(
        isinstance(part, ast.Raise) and part.exc is None
        for handler in node.handlers
        for stmt in handler.body
        for part in ast.walk(stmt)
    )
    plain = all(isinstance(stmt, (ast.Assign, ast.Pass, ast.Return)) and not _calls(stmt) for stmt in node.orelse)
    if node.finalbody or names & read or raises_again or not plain:
        return node
    rest: list[ast.stmt] = []
    for handler in reversed(node.handlers):
        kinds: Sequence[ast.expr] = [] if handler.type is None else [handler.type]
        rest = [_branch(handler, len("except"), handles, kinds, handler.body, rest)]
    return [_branch(node, len("try"), attempt, [], [*node.body, *node.orelse], rest)]


def _calls(stmt: ast.stmt) -> bool:
    return any(isinstance(part, (ast.Call, ast.Attribute, ast.Subscript)) for part in ast.walk(stmt))


def _branch(
    node: ast.Try | ast.ExceptHandler,
    width: int,
    marker: Callable[..., None],
    args: Sequence[ast.expr],
    body: list[ast.stmt],
    orelse: list[ast.stmt],
) -> ast.If:
    """An `if` at the position of the keyword `try` or `except`."""
    word = _word(node, width)
    test = ast.Call(ast.Constant(cast(Any, marker), None, **word), list(args), [], **word)
    return ast.copy_location(ast.If(test, body, orelse), node)


def _word(node: ast.Try | ast.ExceptHandler, width: int) -> dict[str, Any]:
    """The source position of the first keyword of a statement."""
    line, column = node.lineno, node.col_offset
    return {"lineno": line, "col_offset": column, "end_lineno": line, "end_col_offset": column + width}


__all__ = ["is_attempt", "try_begins", "try_ends", "without_try"]
