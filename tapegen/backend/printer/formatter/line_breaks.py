"""Line breaks in expressions that are too long, as ruff's formatter sets them.

Chains of several method calls, which that formatter breaks before the dots, are not covered: generated source
calls methods of variables only.
"""

from __future__ import annotations

import ast
from collections.abc import Sequence
from dataclasses import dataclass

from tapegen.backend.printer.formatter.document import (
    SOFT,
    SPACE,
    BestFit,
    Doc,
    FitsExpanded,
    Group,
    GroupId,
    If,
    Indent,
    Line,
    ParenthesizeIfItHelps,
)
from tapegen.backend.printer.formatter.expressions import (
    PRIMARY,
    SIGN,
    ExpressionPrinter,
    Operand,
    Piece,
    Pieces,
    is_simple,
    literal,
    operands,
    operators,
)

_STRING_WIDTH = 60  # columns of one part of a string that no line can hold


class Inside:
    """Level of an expression between brackets: lines may break freely."""


INSIDE = Inside()
# None: nothing can break here but inside brackets; a GroupId: where that group of optional parentheses breaks
Level = Inside | GroupId | None
# operands and the operators between them, whatever their precedence (a parenthesized operand counts as one)
_Chain = tuple[list[Operand], list[tuple[str, int]]]


class LineBreaker(ExpressionPrinter):
    """Collects the output of the expression printer, with possible line breaks."""

    def __init__(self) -> None:
        super().__init__([], Pieces())
        self.level: Level = None

    def line(self, parts: Sequence[str | ast.AST]) -> Doc:
        """The document of the line of a statement: the text and the expressions that it consists of."""
        match parts:
            case [ast.expr() as target, str() as operator, ast.expr() as value]:
                return self._assignment(target, operator, value)
            case ["return", " ", ast.Tuple(elts)] if len(elts) > 1:
                # two results stay on one line as long as their own brackets can break
                id = GroupId()
                level = INSIDE if len(elts) > 2 else id
                return ("return ", _optional_parentheses(self._items(elts, level), id))
            case ["return" | "if " | "elif " | "while " | "for ", *_]:
                *_, last = (position for position, part in enumerate(parts) if isinstance(part, ast.expr))
                start = [part if isinstance(part, str) else self.document(part) for part in parts[:last]]
                return (*start, self._value(parts[last]), *parts[last + 1 :])  # type: ignore[arg-type]
        return tuple([part if isinstance(part, str) else self.document(part) for part in parts])

    def document(self, node: ast.AST, level: Level = None, parentheses: bool = False) -> Doc:
        """The pieces written for an expression."""
        outside = self.write, self.level
        parts: list[Doc] = []
        self.write, self.level = parts.append, level
        self.part(node, parentheses)
        self.write, self.level = outside
        return _joined(parts)

    # ---- expressions ----

    def brackets(
        self, left: str, nodes: Sequence[ast.AST], right: str, *, together: bool = False, comma: bool = False
    ) -> None:
        if not nodes:
            self.write(left + right)
            return
        content = self._items(nodes)
        self._breaking(left, (content, ",") if comma else Group(content) if together else content, right)

    def _items(self, nodes: Sequence[ast.AST], level: Level = INSIDE) -> Doc:
        return _commas([self.document(node, level) for node in nodes])

    def _breaking(self, left: str, content: Doc, right: str) -> None:
        inner: Doc = Group(_block(content))
        self.write(left)
        self.write(FitsExpanded(inner, self.level) if isinstance(self.level, GroupId) else inner)
        self.write(right)

    def _group(self, content: Doc) -> Doc:
        if self.level is None:
            return content
        return Group(content, only_if=self.level) if isinstance(self.level, GroupId) else Group(content)

    def _break(self, line: Line) -> Doc:
        """A line break that exists only where brackets or optional parentheses allow it."""
        if isinstance(self.level, Inside):
            return line
        flat = " " if line is SPACE else ""
        return flat if self.level is None else (If(True, line, self.level), If(False, flat, self.level))

    def string(self, pieces: list[Piece]) -> None:
        """Between brackets, a string that no line can hold becomes several."""
        whole = literal(pieces)
        if len(whole) <= _STRING_WIDTH or not isinstance(self.level, Inside):
            self.write(whole)
            return
        lines: list[list[Piece]] = [[]]
        for piece in pieces:
            if lines[-1] and len(literal([*lines[-1], piece])) > _STRING_WIDTH:
                lines.append([])
            lines[-1].append(piece)
        broken: list[Doc] = [literal(lines[0])]
        for line in lines[1:]:
            broken += [SOFT, literal(line)]
        self.write(Group((If(False, whole), If(True, tuple(broken)))))

    def _arguments(self, t: ast.arguments) -> None:
        defaults = [None] * (len(t.args) - len(t.defaults)) + t.defaults
        items = [
            arg.arg if default is None else (f"{arg.arg}=", self.document(default, INSIDE))
            for arg, default in zip(t.args, defaults, strict=True)
        ]
        inner = _commas(items, trailing=True)
        self.write(Group(_block(inner if len(items) == 1 else Group(inner))))

    def _ListComp(self, t: ast.ListComp) -> None:
        parts = [self.document(t.elt, INSIDE)]
        for loop in t.generators:
            target, iterable = self.document(loop.target, INSIDE), self.document(loop.iter, INSIDE)
            parts += [SPACE, ("for ", target, " in ", iterable)]
        self._breaking("[", Group(tuple(parts)), "]")

    def _IfExp(self, t: ast.expr) -> None:
        self.write(self._group(self._conditional(t)))

    def _conditional(self, node: ast.expr) -> Doc:
        body, test, orelse = operands(node)
        if isinstance(orelse.node, ast.IfExp):
            rest = self._conditional(orelse.node)
        else:
            rest = self._group(self._operand(orelse))
        space = self._break(SPACE)
        return (self._operand(body), space, "if ", self._operand(test), space, "else ", rest)

    def _operand(self, operand: Operand) -> Doc:
        if type(operand.node) is ast.Name:  # most of them
            return operand.node.id
        return self.document(operand.node, self.level, operand.parentheses)

    # ---- operators ----

    def _BinOp(self, t: ast.expr) -> None:
        self.write(self._group(self._chain(*_flatten(t))))

    _Compare = _BoolOp = _BinOp

    def _chain(self, parts: list[Operand], symbols: list[tuple[str, int]]) -> Doc:
        """Line breaks before all operators of lowest precedence; the operands between them break later."""
        lowest = min(order for _, order in symbols)
        result: list[Doc] = []
        start, space = 0, self._break(SPACE)
        for stop, (symbol, order) in enumerate([*symbols, ("", lowest)]):
            if order > lowest:
                continue
            if start == stop:
                result.append(self._operand(parts[start]))
            else:
                result.append(self._group(self._chain(parts[start : stop + 1], symbols[start:stop])))
            start = stop + 1
            if symbol == "**" and is_simple(parts[stop]) and is_simple(parts[start]):
                id = self.level if isinstance(self.level, GroupId) else None
                result += [self._break(SOFT), symbol, "" if self.level is None else If(True, " ", id)]
            elif symbol:
                result += [space, symbol + " "]
        return tuple(result)

    # ---- the expression that ends a statement ----

    def _assignment(self, target: ast.expr, operator: str, value: ast.expr) -> Doc:
        if isinstance(target, ast.Tuple):
            left = _optional_parentheses(self._items(target.elts), GroupId())
        else:
            left = self.document(target)
        if isinstance(value, ast.Tuple) and len(value.elts) > 1:
            return (left, operator, _optional_parentheses(self._items(value.elts), GroupId()))
        if (
            not isinstance(target, (ast.Tuple, ast.Subscript))
            or isinstance(value, ast.UnaryOp)
            or not _best_fits(value)
        ):
            return (left, operator, self._value(value))
        # a target with brackets of its own: break the value first, parenthesize it next, break the target last
        right = self.document(value)
        variants: list[Doc] = [
            (left, operator, right),
            (left, operator, "(", Group(_block(right), expand=True), ")"),
            (Group(left, expand=True), operator, right),
        ]
        if isinstance(value, (ast.Call, ast.Subscript, ast.Attribute)):
            variants.insert(1, (left, operator, Group(right, expand=True)))
        return BestFit(tuple(variants))

    def _value(self, node: ast.expr) -> Doc:
        """In parentheses if it must break and has no better place to break."""
        root = _root(node)
        if root is None or isinstance(root, (ast.Tuple, ast.List, ast.ListComp)):
            return self.document(node)
        id = GroupId()
        if _best_fits(node):
            return ParenthesizeIfItHelps(self.document(node, id), id)
        return _optional_parentheses(self.document(node, id if _can_omit_parentheses(node) else INSIDE), id)


def _block(content: Doc) -> Doc:
    """Content that is indented on lines of its own if it breaks."""
    return (Indent((SOFT, content)), SOFT)


def _joined(parts: list[Doc]) -> Doc:
    """Concatenated parts, texts in one piece: each piece is measured many times."""
    joined: list[Doc] = []
    for part in parts:
        if joined and isinstance(part, str) and isinstance(joined[-1], str):
            joined[-1] += part
        else:
            joined.append(part)
    return joined[0] if len(joined) == 1 else tuple(joined)


def _commas(items: Sequence[Doc], trailing: bool | None = None) -> Doc:
    """Items between commas; a trailing comma where they stand on lines of their own (by default: if several)."""
    parts: list[Doc] = []
    for position, item in enumerate(items):
        parts += [",", SPACE, item] if position else [item]
    if trailing if trailing is not None else len(items) > 1:
        parts.append(If(True, ","))
    return tuple(parts)


def _optional_parentheses(content: Doc, id: GroupId) -> Doc:
    return Group((If(True, "("), Indent((SOFT, content), only_if=id), SOFT, If(True, ")")), id)


def _flatten(node: ast.expr) -> _Chain:
    chain: _Chain = ([], [])
    work: list[Operand | tuple[str, int]] = [Operand(node, False)]
    while work:  # a loop: sums of hundreds of terms are as deep as they are long
        item = work.pop()
        if not isinstance(item, Operand):
            chain[1].append(item)
        elif item.parentheses or not isinstance(item.node, (ast.BinOp, ast.Compare, ast.BoolOp)):
            chain[0].append(item)
        else:
            first, *rest = operands(item.node)
            for pair in zip(reversed(rest), reversed(operators(item.node)), strict=True):
                work += pair
            work.append(first)
    return chain


# ---- whether optional parentheses help -------------------------------------------------------------------------------


def _root(node: ast.expr) -> ast.expr | None:
    """The operand at the start of a chain of calls, indexing and signs; None if it is in parentheses."""
    while isinstance(node, (ast.UnaryOp, ast.Call, ast.Attribute, ast.Subscript)):
        (operand,) = operands(node)
        if operand.parentheses:
            return None
        node = operand.node
    return node


def _best_fits(node: ast.expr) -> bool:
    """Whether parentheses are used only if nothing else makes the expression fit."""
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
    """The facts that `_can_omit_parentheses` uses: lowest-precedence operators, brackets, first and last operand."""

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
            case ast.List() | ast.Tuple() | ast.ListComp():
                self.brackets = True
                return
            case ast.BinOp() | ast.Compare() | ast.BoolOp() | ast.IfExp():
                for _, order in operators(node):
                    self._operator(order)
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
