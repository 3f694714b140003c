"""Desugaring of `yield`: generator functions become functions that return the list of yielded items."""

from __future__ import annotations

import ast
from collections.abc import Callable
from typing import Any

from tapegen.errors import UnsupportedSyntax
from tapegen.frontend.source.locate import Located
from tapegen.frontend.source.syntax_tree import own_parts

_ADVICE = (
    "Collect the values in a list, items.append(value) instead of 'yield value', and return it: "
    "loops and sums over the list stay as they are."
)


def collected(generator: Any) -> None:
    """Represents the list of the items that a generator yields."""


def yields(node: ast.AST) -> bool:
    """Whether a function is a generator function."""
    return isinstance(node, ast.FunctionDef) and any(_is_yield(part) for part in own_parts(node))


def collect(located: Located, node: ast.FunctionDef, fresh: Callable[[str], str]) -> None:
    """Turn a generator function into one that returns the list of its items.

    Raises
    ------
    UnsupportedSyntax
        It uses sent values, or yields in a `while` loop, which may be infinite if its caller stops early.
    """
    parts = own_parts(node)
    plain = {id(part.value) for part in parts if isinstance(part, ast.Expr)}
    for part in parts:
        if _is_yield(part) and id(part) not in plain:
            raise UnsupportedSyntax(
                "what is sent to a generator is not followed.",
                "Write 'yield value' as a statement.",
                located.span(part),
            )
        if isinstance(part, ast.While) and any(map(_is_yield, own_parts(part))):
            yielded = next(filter(_is_yield, own_parts(part)))
            raise UnsupportedSyntax(
                "this generator yields in a 'while' loop, which its caller may leave before it ends.",
                f"Yield in a 'for' loop over a range. {_ADVICE}",
                located.span(yielded),
            )
    name = fresh("items")
    rewritten = _Collecting(name, fresh)
    body = [made for stmt in node.body for made in _listed(rewritten.visit(stmt))]
    first, last = node.body[0], node.body[-1]
    start = _at(
        first, ast.Assign([_at(first, ast.Name(name, ast.Store()))], _at(first, ast.List([], ast.Load())), None)
    )
    node.body = [start, *body, _at(last, ast.Return(_at(last, ast.Name(name, ast.Load()))))]
    node.collects = True  # type: ignore[attr-defined]


class _Collecting(ast.NodeTransformer):
    def __init__(self, name: str, fresh: Callable[[str], str]) -> None:
        self.name, self.fresh = name, fresh

    def visit_FunctionDef(self, node: ast.FunctionDef) -> ast.FunctionDef:
        return node  # an inner function yields its own items

    def visit_Lambda(self, node: ast.Lambda) -> ast.Lambda:
        return node

    def visit_Return(self, node: ast.Return) -> list[ast.stmt]:
        result = _at(node, ast.Return(_at(node, ast.Name(self.name, ast.Load()))))
        if node.value is None or isinstance(node.value, ast.Constant):
            return [result]
        return [_at(node, ast.Expr(node.value)), result]

    def visit_Expr(self, node: ast.Expr) -> ast.stmt:
        match node.value:
            case ast.Yield(value=value):
                return self._append(node, value or _at(node, ast.Constant(None, None)))
            case ast.YieldFrom(value=value):
                target = self.fresh("item")
                body = self._append(node, _at(node, ast.Name(target, ast.Load())))
                return _at(node, ast.For(_at(node, ast.Name(target, ast.Store())), value, [body], [], None))
        return node

    def _append(self, node: ast.AST, value: ast.expr) -> ast.stmt:
        append = _at(node, ast.Attribute(_at(node, ast.Name(self.name, ast.Load())), "append", ast.Load()))
        return _at(node, ast.Expr(_at(node, ast.Call(append, [value], []))))


def _listed(made: Any) -> list[ast.stmt]:
    return made if isinstance(made, list) else [made]


def _is_yield(part: ast.AST) -> bool:
    return isinstance(part, (ast.Yield, ast.YieldFrom))


def _at(place: ast.AST, node: Any) -> Any:
    return ast.copy_location(node, place)
