"""Expressions on one line: astunparse with the parentheses that are needed, and with ruff's spelling."""

from __future__ import annotations

import ast
import math
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from astunparse import Unparser


class Operand(NamedTuple):
    """Part of an expression, and whether it needs parentheses there."""

    node: ast.expr
    parentheses: bool


class Piece(NamedTuple):
    """A word of a string, or the text of an expression in an f-string."""

    text: str
    placeholder: bool = False


class Pieces(list[str]):
    """A file in memory that accepts many small pieces of text quickly."""

    write = list.append

    def flush(self) -> None:
        """There is nothing to flush."""


class ExpressionPrinter(Unparser):
    """Prints expressions; refuses syntax that generated text does not have.

    Subclasses decide how a part, brackets around several nodes, and a string are written.
    """

    write: Callable[[Any], None]

    def __init__(self, tree: ast.AST | list[ast.AST], file: Pieces) -> None:
        self.write = file.write  # every piece is text: there is nothing to convert
        super().__init__(tree, file)

    def dispatch(self, tree: Any) -> None:
        kind = type(tree)
        method = _METHODS.get(kind)
        if kind is ast.Name:  # half of all nodes
            self.write(tree.id)
        elif method is not None:
            getattr(self, method)(tree)
        elif isinstance(tree, list):
            super().dispatch(tree)
        else:
            raise AssertionError(f"{type(tree).__name__} is no expression of generated text")

    def bare(self, node: ast.AST) -> None:
        """A node; a tuple of several items without its parentheses."""
        if type(node) is ast.Tuple and len(node.elts) > 1:
            self.brackets("", node.elts, "")
        else:
            self.dispatch(node)

    def part(self, node: ast.AST, parentheses: bool) -> None:
        """A part of an expression."""
        if parentheses:
            self.brackets("(", [node], ")")
        else:
            self.dispatch(node)

    def brackets(
        self, left: str, nodes: Sequence[ast.AST], right: str, *, together: bool = False, comma: bool = False
    ) -> None:
        """Nodes between brackets; `together` if they may share a line of their own, `comma` after the last one."""
        self.write(left)
        for position, node in enumerate(nodes):
            if position:
                self.write(", ")
            self.dispatch(node)
        self.write("," + right if comma else right)

    def string(self, pieces: list[Piece]) -> None:
        """A string or f-string."""
        self.write(literal(pieces))

    # ---- atoms ----

    def _Constant(self, t: ast.Constant) -> None:
        if isinstance(t.value, str):
            self.string(words(t.value))
            return
        if isinstance(t.value, float) and not math.isfinite(t.value):
            raise AssertionError(f"{t.value!r} has no literal")
        self.write("..." if t.value is Ellipsis else repr(t.value).replace("e+", "e"))

    def _JoinedStr(self, t: ast.JoinedStr) -> None:
        self.string(_fields(t))

    def _List(self, t: ast.List) -> None:
        self.brackets("[", t.elts, "]")

    def _Set(self, t: ast.Set) -> None:
        self.brackets("{", t.elts, "}")

    def _Tuple(self, t: ast.Tuple) -> None:
        self.brackets("(", t.elts, ")", comma=len(t.elts) == 1)

    def _comprehension(self, t: ast.comprehension) -> None:
        if t.ifs or t.is_async:
            raise AssertionError("a comprehension of generated text has neither conditions nor `async`")
        self.write(" for ")
        self.dispatch(t.target)
        self.write(" in ")
        self.part(t.iter, precedence(t.iter) <= CONDITIONAL)

    def _arguments(self, t: ast.arguments) -> None:
        if t.posonlyargs or t.vararg or t.kwonlyargs or t.kwarg or any(arg.annotation for arg in t.args):
            raise AssertionError("parameters of generated text are names, with defaults or without")
        super()._arguments(t)

    # ---- what follows an expression ----

    def _Attribute(self, t: ast.Attribute) -> None:
        self.part(t.value, _parenthesized_before_dot(t.value))
        self.write("." + t.attr)

    def _Subscript(self, t: ast.Subscript) -> None:
        self.part(t.value, precedence(t.value) < PRIMARY)
        several = type(t.slice) is ast.Tuple and len(t.slice.elts) > 1
        self.brackets("[", t.slice.elts if several else [t.slice], "]", together=True)  # type: ignore[attr-defined]

    def _Slice(self, t: ast.Slice) -> None:
        space = "" if all(map(_is_simple_bound, (t.lower, t.upper, t.step))) else " "
        if t.lower is not None:
            self.dispatch(t.lower)
            self.write(space)
        self.write(":")
        if t.upper is not None:
            self.write(space)
            self.dispatch(t.upper)
        if t.step is not None:
            self.write((space if t.upper is not None else "") + ":" + space)
            self.dispatch(t.step)

    def _Call(self, t: ast.Call) -> None:
        self.part(t.func, precedence(t.func) < PRIMARY)
        self.brackets("(", [*t.args, *t.keywords] if t.keywords else t.args, ")", together=True)

    # ---- operators ----

    def _UnaryOp(self, t: ast.UnaryOp) -> None:
        self.write(UNARY[type(t.op)])
        self.part(*operands(t)[0])

    def _BinOp(self, t: Any) -> None:
        if type(t) is ast.BinOp and type(t.op) is not ast.Pow:  # the same as below, without what most do not need
            symbol, own = BINARY[type(t.op)]
            self.part(t.left, precedence(t.left) < own)
            self.write(f" {symbol} ")
            self.part(t.right, precedence(t.right) <= own)
            return
        first, *rest = operands(t)
        self.part(*first)
        for (symbol, _), operand in zip(operators(t), rest, strict=True):
            self.write("**" if symbol == "**" and is_simple(first) and _has_simple_base(operand) else f" {symbol} ")
            self.part(*operand)

    _Compare = _BoolOp = _IfExp = _BinOp


_METHODS = {
    getattr(ast, name): "_" + name
    for name in """
    Name Constant JoinedStr List Set Tuple ListComp comprehension Attribute Subscript Slice Call keyword UnaryOp BinOp
    Compare BoolOp IfExp arguments arg
    """.split()
}


def expression_line(node: ast.AST) -> str:
    """An expression on one line."""
    file = Pieces()
    ExpressionPrinter(node, file)
    return "".join(file)[:-1]


# ---- precedence ------------------------------------------------------------------------------------------------------

CONDITIONAL, _OR, _AND, _NOT, _COMPARISON, SIGN, _POWER, PRIMARY = 1, 2, 3, 4, 5, 12, 13, 15
_BOOL = min(_OR, _AND)  # `and` and `or` break together
_BINDS = {"|": 6, "^": 7, "&": 8, "<<": 9, ">>": 9, "+": 10, "-": 10, "**": _POWER}  # others as `*`
BINARY: dict[type[ast.operator], tuple[str, int]] = {
    getattr(ast, name): (symbol, _BINDS.get(symbol, 11)) for name, symbol in Unparser.binop.items()
}
UNARY: dict[type[ast.unaryop], str] = {
    getattr(ast, name): symbol + " " * symbol.isalpha() for name, symbol in Unparser.unop.items()
}
_PRECEDENCE: dict[type[ast.AST], int] = {
    **{op: binds for op, (_, binds) in BINARY.items()},
    **dict.fromkeys(UNARY, SIGN),
    ast.Not: _NOT,
    ast.And: _AND,
    ast.Or: _OR,
    ast.Compare: _COMPARISON,
    ast.IfExp: CONDITIONAL,
}
_WITH_OPERATOR = frozenset({ast.BinOp, ast.UnaryOp, ast.BoolOp})
_WITH_OPERANDS = _WITH_OPERATOR | {ast.Compare, ast.IfExp, ast.Attribute, ast.Subscript, ast.Call}


def precedence(node: ast.expr) -> int:
    """The precedence of the outermost operator of an expression."""
    kind = type(node)
    return _PRECEDENCE.get(type(node.op) if kind in _WITH_OPERATOR else kind, PRIMARY)  # type: ignore[attr-defined]


def _operand(node: ast.expr, at_least: int) -> Operand:
    return Operand(node, precedence(node) < at_least)


def operands(node: Any) -> tuple[Operand, ...]:
    """The parts of an expression that no bracket of its own encloses, in source order."""
    kind = type(node)
    if kind not in _WITH_OPERANDS:
        return ()
    own = precedence(node)
    if kind is ast.BinOp:
        if own == _POWER:
            return _operand(node.left, own + 1), _operand(node.right, SIGN)
        return _operand(node.left, own), _operand(node.right, own + 1)
    if kind is ast.Attribute:
        return (Operand(node.value, _parenthesized_before_dot(node.value)),)
    if kind is ast.Subscript:
        return (_operand(node.value, own),)
    if kind is ast.Call:
        return (_operand(node.func, own),)
    if kind is ast.UnaryOp:
        power = isinstance(node.operand, ast.BinOp) and isinstance(node.operand.op, ast.Pow)
        return (Operand(node.operand, power or precedence(node.operand) < own),)
    if kind is ast.IfExp:
        return _operand(node.body, own + 1), _operand(node.test, own + 1), _operand(node.orelse, own)
    parts = node.values if kind is ast.BoolOp else [node.left, *node.comparators]
    return tuple([_operand(part, own + 1) for part in parts])


def _parenthesized_before_dot(node: ast.expr) -> bool:
    if type(node) is ast.Constant:
        return type(node.value) in (int, float, complex)  # `5.real` is no syntax
    return precedence(node) < PRIMARY


def operators(node: Any) -> list[tuple[str, int]]:
    """The text between the operands: the symbol, and its place in the order of breaking (lowest first)."""
    if isinstance(node, ast.BinOp):
        return [BINARY[type(node.op)]]
    if isinstance(node, ast.IfExp):
        return [("if", CONDITIONAL), ("else", CONDITIONAL)]
    if isinstance(node, ast.Compare):
        return [(Unparser.cmpops[type(op).__name__], _COMPARISON) for op in node.ops]
    return [(Unparser.boolops[type(node.op)], _BOOL)] * (len(node.values) - 1)


def is_simple(operand: Operand) -> bool:
    """Whether `**` is written without spaces next to this operand."""
    node = operand.node
    while isinstance(node, (ast.UnaryOp, ast.Attribute)):
        if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.Not):
            return False
        node = node.operand if isinstance(node, ast.UnaryOp) else node.value
    number = isinstance(node, ast.Constant) and not isinstance(node.value, str)
    return not operand.parentheses and (number or isinstance(node, ast.Name))


def _has_simple_base(exponent: Operand) -> bool:
    while isinstance(exponent.node, ast.BinOp) and not exponent.parentheses:  # `b` of `a**b**c`
        exponent = operands(exponent.node)[0]
    return is_simple(exponent)


def _is_simple_bound(bound: ast.expr | None) -> bool:
    """Whether the colons of a slice are written without spaces next to this bound."""
    while isinstance(bound, ast.UnaryOp) and not isinstance(bound.op, ast.Not):
        bound = bound.operand
    return bound is None or isinstance(bound, (ast.Constant, ast.Name))


# ---- strings ---------------------------------------------------------------------------------------------------------


def words(text: str) -> list[Piece]:
    """Pieces of a text that may stand on different lines."""
    *spaced, last = text.split(" ")
    return [Piece(word + " ") for word in spaced] + ([Piece(last)] if last else [])


def _fields(node: ast.JoinedStr) -> list[Piece]:
    """Words and placeholders of an f-string."""
    pieces: list[Piece] = []
    for value in node.values:
        match value:
            case ast.FormattedValue(ast.JoinedStr() as inner, -1, None):
                pieces += _fields(inner)  # before 3.12 an f-string in another one needs other quotes
            case ast.FormattedValue(shown, -1, None):
                pieces.append(Piece(expression_line(shown), placeholder=True))
            case ast.FormattedValue(shown, -1, ast.JoinedStr([ast.Constant(str(spec))])):
                pieces.append(Piece(f"{expression_line(shown)}:{spec}", placeholder=True))
            case ast.Constant(str(text)):
                pieces += words(text)
            case _:
                raise AssertionError(f"{ast.dump(value)} is no part of an f-string of generated text")
    return pieces


def literal(pieces: Sequence[Piece]) -> str:
    """The pieces as one literal, in double quotes unless that needs more backslashes."""
    text = "".join(piece.text for piece in pieces if not piece.placeholder)
    quote = "'" if text.count('"') > text.count("'") else '"'
    formatted = any(piece.placeholder for piece in pieces)
    parts = [f"{{{piece.text}}}" if piece.placeholder else _escaped(piece.text, quote, formatted) for piece in pieces]
    return ("f" if formatted else "") + quote + "".join(parts) + quote


def _escaped(text: str, quote: str, formatted: bool) -> str:
    literal = repr(text)
    body = literal[1:-1]
    if literal[0] == "'":
        body = body.replace("\\'", "'")
    body = body.replace(quote, "\\" + quote)
    return body.replace("{", "{{").replace("}", "}}") if formatted else body
