"""What Python's grammar says about expressions: symbols, precedence, and which parts need parentheses."""

from __future__ import annotations

import ast
from collections.abc import Callable
from typing import NamedTuple, TypeVar

T = TypeVar("T")

BINARY: dict[type[ast.operator], tuple[str, int]] = {
    ast.BitOr: ("|", 6),
    ast.BitXor: ("^", 7),
    ast.BitAnd: ("&", 8),
    ast.LShift: ("<<", 9),
    ast.RShift: (">>", 9),
    ast.Add: ("+", 10),
    ast.Sub: ("-", 10),
    ast.Mult: ("*", 11),
    ast.MatMult: ("@", 11),
    ast.Div: ("/", 11),
    ast.FloorDiv: ("//", 11),
    ast.Mod: ("%", 11),
    ast.Pow: ("**", 13),
}
COMPARE: dict[type[ast.cmpop], str] = {
    ast.Eq: "==",
    ast.NotEq: "!=",
    ast.Lt: "<",
    ast.LtE: "<=",
    ast.Gt: ">",
    ast.GtE: ">=",
    ast.Is: "is",
    ast.IsNot: "is not",
    ast.In: "in",
    ast.NotIn: "not in",
}
UNARY: dict[type[ast.unaryop], str] = {ast.USub: "-", ast.UAdd: "+", ast.Invert: "~", ast.Not: "not "}
CONDITIONAL, _OR, _AND, _NOT, _COMPARISON, SIGN, _POWER, PRIMARY = 1, 2, 3, 4, 5, 12, 13, 15
_BOOL = min(_OR, _AND)  # `and` and `or` break together


def precedence(node: ast.expr) -> int:
    """How tightly the outermost operator of an expression binds."""
    kind = type(node)
    if kind in _WITH_OPERATOR:
        return _PRECEDENCE[type(node.op)]  # type: ignore[attr-defined]
    return _PRECEDENCE.get(kind, PRIMARY)


_WITH_OPERATOR = frozenset({ast.BinOp, ast.UnaryOp, ast.BoolOp})
OPERATIONS = _WITH_OPERATOR | {ast.Compare, ast.IfExp}


_PRECEDENCE: dict[type[ast.AST], int] = {
    **{op: binds for op, (_, binds) in BINARY.items()},
    **dict.fromkeys(UNARY, SIGN),
    ast.Not: _NOT,
    ast.And: _AND,
    ast.Or: _OR,
    ast.Compare: _COMPARISON,
    ast.IfExp: CONDITIONAL,
}


class Operand(NamedTuple):
    """Part of an expression, and whether it has to stand in parentheses there."""

    node: ast.expr
    parentheses: bool


def _operand(node: ast.expr, at_least: int) -> Operand:
    return Operand(node, precedence(node) < at_least)


def operands(node: ast.expr) -> tuple[Operand, ...]:
    """The parts of an expression that no bracket of its own encloses, in source order."""
    if isinstance(node, ast.BinOp):
        own = _PRECEDENCE[type(node.op)]
        if type(node.op) is ast.Pow:
            return _operand(node.left, own + 1), _operand(node.right, SIGN)
        return _operand(node.left, own), _operand(node.right, own + 1)
    if isinstance(node, (ast.Attribute, ast.Subscript)):
        return (_operand(node.value, PRIMARY),)
    if isinstance(node, ast.Call):
        return (_operand(node.func, PRIMARY),)
    own = precedence(node)
    if isinstance(node, ast.UnaryOp):
        power = isinstance(node.operand, ast.BinOp) and isinstance(node.operand.op, ast.Pow)
        return (Operand(node.operand, power or precedence(node.operand) < own),)
    if isinstance(node, ast.Compare):
        return tuple([_operand(part, own + 1) for part in (node.left, *node.comparators)])
    if isinstance(node, ast.BoolOp):
        return tuple([_operand(part, own + 1) for part in node.values])
    if isinstance(node, ast.IfExp):
        return _operand(node.body, own + 1), _operand(node.test, own + 1), _operand(node.orelse, own)
    return ()


def operators(node: ast.BinOp | ast.Compare | ast.BoolOp) -> list[tuple[str, int]]:
    """Symbol and place in the order of breaking (lowest first)."""
    match node:
        case ast.BinOp(op=op):
            return [BINARY[type(op)]]
        case ast.Compare(ops=ops):
            return [(COMPARE[type(op)], _COMPARISON) for op in ops]
        case ast.BoolOp(op=op, values=values):
            return [("and" if isinstance(op, ast.And) else "or", _BOOL)] * (len(values) - 1)
    raise AssertionError(type(node).__name__)


def is_simple(operand: Operand) -> bool:
    """Whether `**` is written without spaces beside this operand."""
    node = operand.node
    while isinstance(node, (ast.UnaryOp, ast.Attribute)):
        if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.Not):
            return False
        node = node.operand if isinstance(node, ast.UnaryOp) else node.value
    number = isinstance(node, ast.Constant) and not isinstance(node.value, str)
    return not operand.parentheses and (number or isinstance(node, ast.Name))


def slice_parts(node: ast.Slice, part: Callable[[ast.expr], T]) -> list[T | str]:
    """`lower:upper:step`, with spaces around the colons unless the parts are names or numbers."""

    def simple(bound: ast.expr | None) -> bool:
        while isinstance(bound, ast.UnaryOp) and not isinstance(bound.op, ast.Not):
            bound = bound.operand
        return bound is None or isinstance(bound, (ast.Constant, ast.Name))

    lower, upper, step = node.lower, node.upper, node.step
    space = "" if simple(lower) and simple(upper) and simple(step) else " "
    parts: list[T | str] = [] if lower is None else [part(lower), space]
    parts += [":"] if upper is None else [":", space, part(upper)]
    if step is not None:
        parts += [space if upper is not None else "", ":", space, part(step)]
    return parts
