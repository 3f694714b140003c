"""Expressions and statements on one line, where most generated code fits; documents are for what does not."""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterable
from typing import Any

from tapegen.backend.printer.formatter.literals import Piece, literal, number, words
from tapegen.backend.printer.formatter.precedence import (
    BINARY,
    COMPARE,
    OPERATIONS,
    PRIMARY,
    UNARY,
    Operand,
    is_simple,
    operands,
    precedence,
    slice_parts,
)


def flat(node: ast.expr) -> str:
    """An expression on one line."""
    return _FLAT[type(node)](node)


def flat_statement(node: ast.stmt) -> str:
    """A simple statement on one line."""
    if isinstance(node, ast.Assign):
        (target,) = node.targets
        return f"{_bare(target)} = {_bare(node.value)}"
    if isinstance(node, ast.AugAssign):
        return f"{flat(node.target)} {BINARY[type(node.op)][0]}= {_bare(node.value)}"
    match node:
        case ast.Expr(value):
            return flat(value)
        case ast.Raise(exc):
            return "raise" if exc is None else f"raise {flat(exc)}"
        case ast.Return(value):
            return "return" if value is None else f"return {_bare(value)}"
    return type(node).__name__.lower()  # pass, break, continue


def _bare(node: ast.expr) -> str:
    if isinstance(node, ast.Tuple) and len(node.elts) > 1:
        return _listed(node.elts)
    return flat(node)


def _listed(nodes: Iterable[ast.expr]) -> str:
    return ", ".join([flat(node) for node in nodes])


def _within(node: ast.expr, at_least: int) -> str:
    """Part of an expression, in parentheses if it binds less tightly than it must there."""
    kind = type(node)
    text = _FLAT[kind](node)
    return f"({text})" if kind in OPERATIONS and precedence(node) < at_least else text


def _part(operand: Operand) -> str:
    return f"({flat(operand.node)})" if operand.parentheses else flat(operand.node)


def _constant(node: ast.Constant) -> str:
    return literal(words(node.value)) if isinstance(node.value, str) else number(node.value)


def _binary(node: ast.BinOp) -> str:
    symbol, own = BINARY[type(node.op)]
    if symbol == "**":
        left, right = operands(node)
        space = "" if is_simple(left) and is_simple(_base(right)) else " "
        return f"{_part(left)}{space}**{space}{_part(right)}"
    return f"{_within(node.left, own)} {symbol} {_within(node.right, own + 1)}"


def _base(exponent: Operand) -> Operand:
    """`b` of `b**c`, where that is an exponent itself."""
    while isinstance(exponent.node, ast.BinOp) and not exponent.parentheses:
        exponent = operands(exponent.node)[0]
    return exponent


def fields(node: ast.JoinedStr) -> list[Piece]:
    """Words and placeholders of an f-string."""
    pieces: list[Piece] = []
    for value in node.values:
        if isinstance(value, ast.FormattedValue) and isinstance(value.value, ast.JoinedStr) and not value.format_spec:
            pieces += fields(value.value)  # before 3.12 an f-string in another one needs other quotes
        elif isinstance(value, ast.FormattedValue):
            shown = value.format_spec
            spec = f":{shown.values[0].value}" if isinstance(shown, ast.JoinedStr) else ""  # type: ignore[attr-defined]
            pieces.append(Piece(flat(value.value) + spec, placeholder=True))
        elif isinstance(value, ast.Constant):
            pieces += words(str(value.value))
    return pieces


def _compare(node: ast.Compare) -> str:
    first, *rest = operands(node)
    return _part(first) + "".join(
        f" {COMPARE[type(op)]} {_part(part)}" for op, part in zip(node.ops, rest, strict=True)
    )


def _bool(node: ast.BoolOp) -> str:
    return (" and " if isinstance(node.op, ast.And) else " or ").join([_part(part) for part in operands(node)])


def _conditional(node: ast.IfExp) -> str:
    body, test, orelse = operands(node)
    return f"{_part(body)} if {_part(test)} else {_part(orelse)}"


def _call(node: ast.Call) -> str:
    args = [flat(arg) for arg in node.args] + [f"{keyword.arg}={flat(keyword.value)}" for keyword in node.keywords]
    return f"{_within(node.func, PRIMARY)}({', '.join(args)})"


def _tuple(node: ast.Tuple) -> str:
    return f"({_listed(node.elts)},)" if len(node.elts) == 1 else f"({_listed(node.elts)})"


_FLAT: dict[type[ast.expr], Callable[[Any], str]] = {
    ast.Name: lambda node: node.id,
    ast.ListComp: lambda node: (
        f"[{flat(node.elt)} for {flat(node.generators[0].target)} in {flat(node.generators[0].iter)}]"
    ),
    ast.Constant: _constant,
    ast.JoinedStr: lambda node: literal(fields(node)),
    ast.BinOp: _binary,
    ast.UnaryOp: lambda node: UNARY[type(node.op)] + _part(operands(node)[0]),
    ast.Compare: _compare,
    ast.BoolOp: _bool,
    ast.IfExp: _conditional,
    ast.Attribute: lambda node: f"{_within(node.value, PRIMARY)}.{node.attr}",
    ast.Subscript: lambda node: f"{_within(node.value, PRIMARY)}[{_bare(node.slice)}]",
    ast.Call: _call,
    ast.List: lambda node: f"[{_listed(node.elts)}]",
    ast.Tuple: _tuple,
    ast.Slice: lambda node: "".join(slice_parts(node, flat)),
}
