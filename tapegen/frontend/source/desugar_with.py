"""Desugaring of `with`: user context managers become calls around the body, generator managers become two functions.

`__exit__`, or the code after `yield`, runs at each exit of the body: where it falls through, and before each `return`,
`break` and `continue` that exits it.  An exception that escapes a program makes plain Python run once more.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

from tapegen.errors import UnsupportedSyntax
from tapegen.frontend.source.liveness import always_escapes
from tapegen.frontend.source.locate import Located
from tapegen.frontend.source.syntax_tree import SCOPES, own_parts

YIELD_ADVICE = (
    "Write one 'yield' that always runs, as a statement of the function itself or under 'with' or 'try ... finally', "
    "or put the 'with' around the call of the differentiated function."
)


def entering(manager: Any) -> None:
    """Enters a `with`: returns the value for `as`, and the argument of `leaving`."""


def leaving(entered: Any) -> None:
    """Runs where `return`, `break` or `continue` exits the body of a `with`."""


def left(entered: Any) -> None:
    """Runs where the body of a `with` falls through."""


def without_with(item: ast.withitem, body: Sequence[ast.stmt], fresh: Callable[[str], str]) -> list[ast.stmt]:
    """The desugared statements of a `with` of one context manager.  `fresh` gives new names."""
    place, name = item.context_expr, fresh("entered")
    found = [_assign(place, name, _call(place, entering, item.context_expr))]
    if item.optional_vars is not None:
        value = _at(place, ast.Subscript(_load(place, name), _at(place, ast.Constant(0, None)), ast.Load()))
        found.append(_at(item.optional_vars, ast.Assign([item.optional_vars], value, None)))
    found += before_exits(body, lambda stmt: _at(stmt, ast.Expr(_call(stmt, leaving, _load(stmt, name)))), fresh)
    if not always_escapes(found):
        found.append(_at(place, ast.Expr(_call(place, left, _load(place, name)))))
    return found


def before_exits(
    body: Sequence[ast.stmt], leave: Callable[[ast.stmt], ast.stmt], fresh: Callable[[str], str]
) -> list[ast.stmt]:
    """A block with a statement inserted before each `return`, `break` and `continue` that exits it."""
    return _Exits(leave, fresh).all_of(body, in_loop=False)


class _Exits:
    def __init__(self, leave: Callable[[ast.stmt], ast.stmt], fresh: Callable[[str], str]) -> None:
        self.leave, self.fresh = leave, fresh

    def all_of(self, body: Sequence[ast.stmt], *, in_loop: bool) -> list[ast.stmt]:
        return [made for stmt in body for made in self._of(stmt, in_loop)]

    def _of(self, stmt: ast.stmt, in_loop: bool) -> list[ast.stmt]:
        match stmt:
            case ast.Return(value=None | ast.Constant()):
                return [self.leave(stmt), stmt]
            case ast.Return(value=ast.expr() as value):
                name = self.fresh("returned")
                return [_assign(stmt, name, value), self.leave(stmt), _at(stmt, ast.Return(_load(value, name)))]
            case ast.Break() | ast.Continue() if not in_loop:
                return [self.leave(stmt), stmt]
            case ast.For() | ast.While():
                stmt.body = self.all_of(stmt.body, in_loop=True)
                stmt.orelse = self.all_of(stmt.orelse, in_loop=in_loop)
            case ast.If():
                stmt.body = self.all_of(stmt.body, in_loop=in_loop)
                stmt.orelse = self.all_of(stmt.orelse, in_loop=in_loop)
        return [stmt]


def as_two_functions(located: Located, fresh: Callable[[str], str]) -> Located:
    """Split a generator with one `yield`: it returns the yielded value, and a function of the rest.

    Raises
    ------
    UnsupportedSyntax
        It may yield a different number of times, or it catches exceptions raised at the `yield`.
    """
    node = located.node
    assert isinstance(node, ast.FunctionDef)
    yields = [part for part in own_parts(node) if isinstance(part, (ast.Yield, ast.YieldFrom))]
    place = next((k for k, stmt in enumerate(node.body) if _yielded(stmt) is not None), None)
    if len(yields) != 1 or place is None:
        where = located.span(yields[-1])
        under_try = any(isinstance(part, ast.Try) or _is_test(part) for part in own_parts(node))
        reason = (
            "this context manager handles what is raised under its 'with', which depends on the run."
            if len(yields) == 1 and under_try
            else "what this context manager does around its 'yield' is not one part before it and one part after it."
        )
        raise UnsupportedSyntax(reason, YIELD_ADVICE, where)
    at = node.body[place]
    before, behind = node.body[:place], node.body[place + 1 :]
    _check_returns(located, before)
    value = _yielded(at)
    assert value is not None
    if isinstance(at, ast.Assign):  # no value is sent
        behind = [_at(at, ast.Assign(at.targets, _at(at, ast.Constant(None, None)), None)), *behind]
    name = fresh("behind")
    no_arguments = ast.arguments([], [], None, [], [], None, [])
    after: Any = ast.FunctionDef(name, no_arguments, behind or [_at(at, ast.Pass())], [])
    _at(node, after)
    declared = {word for part in own_parts(node) if isinstance(part, ast.Global) for word in part.names}
    around = {arg.arg for arg in ast.walk(node.args) if isinstance(arg, ast.arg)} | _bound(before)
    written = _bound(behind)
    if outer := sorted(written & around - declared):
        after.body.insert(0, _at(at, ast.Nonlocal(outer)))
    if outer := sorted(written & declared):
        after.body.insert(0, _at(at, ast.Global(outer)))
    pair = _at(value, ast.Tuple([value, _load(value, name)], ast.Load()))
    node.body = [*before, after, _at(at, ast.Return(pair))]
    return replace(located, node=node)


def _check_returns(located: Located, before: Sequence[ast.stmt]) -> None:
    for stmt in before:
        for part in [stmt, *own_parts(stmt)]:
            if isinstance(part, ast.Return):
                reason = "this context manager may return before it yields."
                raise UnsupportedSyntax(reason, YIELD_ADVICE, located.span(part))


def _yielded(stmt: ast.stmt) -> ast.expr | None:
    """The value that a statement yields, if it does nothing else."""
    if not isinstance(stmt, (ast.Expr, ast.Assign)) or not isinstance(stmt.value, ast.Yield):
        return None
    return stmt.value.value or _at(stmt.value, ast.Constant(None, None))


def _is_test(part: ast.AST) -> bool:
    """Whether an `if` represents a `try` or `except` (`desugar_try.py`)."""
    test = part.test if isinstance(part, ast.If) else None
    return isinstance(test, ast.Call) and isinstance(test.func, ast.Constant)


def _bound(body: Sequence[ast.stmt]) -> set[str]:
    """The names that statements bind."""
    found: set[str] = set()
    for stmt in body:
        for part in [stmt, *([] if isinstance(stmt, SCOPES) else own_parts(stmt))]:
            if isinstance(part, ast.Name) and not isinstance(part.ctx, ast.Load):
                found.add(part.id)
            elif isinstance(part, ast.FunctionDef):
                found.add(part.name)
            elif isinstance(part, (ast.Import, ast.ImportFrom)):
                found.update(alias.asname or alias.name.partition(".")[0] for alias in part.names)
    return found


def _assign(place: ast.AST, name: str, value: ast.expr) -> ast.stmt:
    return _at(place, ast.Assign([_at(place, ast.Name(name, ast.Store()))], value, None))


def _load(place: ast.AST, name: str) -> ast.expr:
    return _at(place, ast.Name(name, ast.Load()))


def _call(place: ast.AST, func: Any, arg: ast.expr) -> ast.expr:
    return _at(place, ast.Call(_at(place, ast.Constant(func, None)), [arg], []))


def _at(place: ast.AST, node: Any) -> Any:
    return ast.copy_location(node, place)
