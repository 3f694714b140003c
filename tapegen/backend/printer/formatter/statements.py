"""Python statements as documents, and where an expression that ends a statement gets parentheses."""

from __future__ import annotations

import ast
from collections.abc import Sequence
from dataclasses import dataclass

from tapegen.backend.printer.formatter.document import (
    WIDTH,
    BestFit,
    Doc,
    Group,
    GroupId,
    If,
    Indent,
    Line,
    ParenthesizeIfItHelps,
    layout_lines,
    text_width,
)
from tapegen.backend.printer.formatter.expressions import INSIDE, Level, block, commas, expression
from tapegen.backend.printer.formatter.one_line import flat, flat_statement
from tapegen.backend.printer.formatter.precedence import (
    BINARY,
    CONDITIONAL,
    PRIMARY,
    SIGN,
    Operand,
    operands,
    operators,
)


def statement(node: ast.stmt, indent: int) -> list[str]:
    """The lines of a simple statement."""
    return _fitting(flat_statement(node), indent) or layout_lines(_statement(node), indent)


def clause(keyword: str, test: ast.expr, indent: int) -> list[str]:
    """`if test:`, `while test:`, `for i in range(n):` (the keyword may be several words)."""
    return _fitting(f"{keyword} {flat(test)}:", indent) or layout_lines((keyword, " ", _value(test), ":"), indent)


def decorator(node: ast.expr) -> list[str]:
    """`@node`."""
    return layout_lines(("@", expression(node, None)), 0)


def definition(name: str, params: Sequence[tuple[str, ast.expr | None]]) -> list[str]:
    """`def name(a, b=default):`."""
    items = [param if default is None else (f"{param}=", expression(default, INSIDE)) for param, default in params]
    if not items:
        return [f"def {name}():"]
    inner = commas(items, trailing=True)
    block_of_params = block(inner if len(items) == 1 else Group(inner))
    return layout_lines((f"def {name}", Group(("(", block_of_params, ")")), ":"), 0)


def _fitting(text: str, indent: int) -> list[str]:
    """The text as one line, or nothing if it is too long."""
    return [" " * indent + text] if indent + text_width(text) <= WIDTH else []


def _statement(node: ast.stmt) -> Doc:
    match node:
        case ast.Assign([target], value):
            return _assignment(target, " = ", value)
        case ast.AugAssign(target, op, value):
            return _assignment(target, f" {BINARY[type(op)][0]}= ", value)
        case ast.Expr(value):
            return expression(value, None)
        case ast.Raise(ast.expr() as exc):
            return ("raise ", expression(exc, None))
        case ast.Return(ast.Tuple(elts)) if len(elts) > 1:
            # two results stay beside each other as long as their own brackets can break
            if len(elts) > 2:
                return ("return ", _optional_parentheses(_bare_tuple(elts, INSIDE), GroupId()))
            id = GroupId()
            return ("return ", _optional_parentheses(_bare_tuple(elts, id), id))
        case ast.Return(ast.expr() as value):
            return ("return ", _value(value))
    raise AssertionError(f"no layout for {type(node).__name__}")


def _assignment(target: ast.expr, operator: str, value: ast.expr) -> Doc:
    if isinstance(target, ast.Tuple):
        left = _optional_parentheses(_bare_tuple(target.elts, INSIDE), GroupId())
    else:
        left = expression(target, None)
    if isinstance(value, ast.Tuple) and len(value.elts) > 1:
        return (left, operator, _optional_parentheses(_bare_tuple(value.elts, INSIDE), GroupId()))
    if not isinstance(target, (ast.Tuple, ast.Subscript)) or isinstance(value, ast.UnaryOp) or not _best_fits(value):
        return (left, operator, _value(value))
    # a target with brackets of its own: break the value first, parenthesise it next, break the target last
    right = expression(value, None)
    variants: list[Doc] = [
        (left, operator, right),
        (left, operator, "(", Group(block(right), expand=True), ")"),
        (Group(left, expand=True), operator, right),
    ]
    if isinstance(value, (ast.Call, ast.Subscript, ast.Attribute)):
        variants.insert(1, (left, operator, Group(right, expand=True)))
    return BestFit(tuple(variants))


def _bare_tuple(items: Sequence[ast.expr], level: Level) -> Doc:
    return commas([expression(item, level) for item in items])


def _value(node: ast.expr) -> Doc:
    """An expression that ends a statement: in parentheses if it must break and has no better place to."""
    root = _root(node)
    if root is None or isinstance(root, (ast.Tuple, ast.List)):
        return expression(node, None)
    id = GroupId()
    if _best_fits(node):
        return ParenthesizeIfItHelps(expression(node, id), id)
    return _optional_parentheses(expression(node, id if _can_omit_parentheses(node) else INSIDE), id)


def _optional_parentheses(content: Doc, id: GroupId) -> Doc:
    return Group((If(True, "("), Indent((Line.SOFT, content), only_if=id), Line.SOFT, If(True, ")")), id)


def _root(node: ast.expr) -> ast.expr | None:
    """What a chain of calls, indexing and signs starts from; None if that stands in parentheses."""
    while isinstance(node, (ast.UnaryOp, ast.Call, ast.Attribute, ast.Subscript)):
        (operand,) = operands(node)
        if operand.parentheses:
            return None
        node = operand.node
    return node


def _best_fits(node: ast.expr) -> bool:
    """Whether parentheses are for the case only that nothing else makes the expression fit."""
    return isinstance(_root(node), (ast.Name, ast.Constant, ast.JoinedStr))


def _can_omit_parentheses(node: ast.expr) -> bool:
    """Whether an expression reads well if only the brackets at its start or end break (Black's rule)."""
    scan = _Scan()
    scan.visit(Operand(node, False), top=True)
    if not scan.brackets or scan.count > 1:
        return False
    if scan.lowest is None or scan.lowest == PRIMARY:
        return True
    return any(end is not None and _ends_in_brackets(end) for end in (scan.last, scan.first))


def _ends_in_brackets(operand: Operand) -> bool:
    node = operand.node
    if isinstance(node, ast.Subscript):
        return False
    if isinstance(node, ast.Call):
        return operand.parentheses or bool(node.args or node.keywords)
    return operand.parentheses or (isinstance(node, (ast.Tuple, ast.List)) and bool(node.elts))


@dataclass(slots=True)
class _Scan:
    """What `_can_omit_parentheses` looks at: operators that bind least, brackets, first and last operand."""

    lowest: int | None = None
    count: int = 0
    brackets: bool = False
    first: Operand | None = None
    starts_with_sign: bool = False
    last: Operand | None = None

    def visit(self, operand: Operand, top: bool = False) -> None:
        if not top:
            self.last = operand
        if operand.parentheses:
            self.brackets = True
        else:
            self._inside(operand)
        if not top and self.first is None and not self.starts_with_sign:
            self.first = operand

    def _inside(self, operand: Operand) -> None:
        node = operand.node
        match node:
            case ast.List() | ast.Tuple():
                self.brackets = True
                return
            case ast.BinOp() | ast.Compare() | ast.BoolOp():
                for _, order in operators(node):
                    self._operator(order)
            case ast.IfExp():
                self._operator(CONDITIONAL)
                self._operator(CONDITIONAL)
            case ast.UnaryOp(op):
                if isinstance(op, ast.Invert):
                    self._operator(SIGN)
                self.starts_with_sign = self.starts_with_sign or self.first is None
        for part in operands(node):
            self.visit(part)
        if isinstance(node, (ast.Call, ast.Subscript, ast.Attribute)):
            self.brackets = self.brackets or not isinstance(node, ast.Attribute)
            self.last = operand
            if isinstance(node, ast.Attribute) and _has_brackets(operands(node)[0]):
                self._operator(PRIMARY)

    def _operator(self, order: int) -> None:
        if self.lowest is None or order < self.lowest:
            self.lowest, self.count = order, 1
        elif order == self.lowest:
            self.count += 1


def _has_brackets(operand: Operand) -> bool:
    return operand.parentheses or isinstance(operand.node, (ast.Call, ast.Subscript, ast.List, ast.Tuple))
