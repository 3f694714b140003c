"""Python expressions as documents: spelling, minimal parentheses and line breaks, as ruff's formatter has them.

Covers what generated code consists of: names, constants, calls, indexing, operators, comparisons, conditional
expressions and displays.  Chains of several method calls, which that formatter breaks before the dots, are not among
them: the emitter writes methods on names only.
"""

from __future__ import annotations

import ast
from collections.abc import Sequence
from dataclasses import dataclass, field

from tapegen.backend.printer.formatter.document import Doc, FitsExpanded, Group, GroupId, If, Indent, Line
from tapegen.backend.printer.formatter.literals import Piece, literal, number, words
from tapegen.backend.printer.formatter.one_line import fields
from tapegen.backend.printer.formatter.precedence import UNARY, Operand, is_simple, operands, operators, slice_parts

_STRING_WIDTH = 60  # columns of one part of a string that no line can hold


class Inside:
    """Level of an expression between brackets: lines may break freely."""


INSIDE = Inside()
# None: nothing can break here but inside brackets; a GroupId: where that group of optional parentheses breaks
Level = Inside | GroupId | None

# ---- expressions ---------------------------------------------------------------------------------------------------


def expression(node: ast.expr, level: Level) -> Doc:
    """The document of an expression without parentheses around it."""
    match node:
        case ast.Name(id):
            return id
        case ast.Constant(str(text)):
            return _string(words(text), level)
        case ast.JoinedStr():
            return _string(fields(node), level)
        case ast.Constant(value):
            return number(value)
        case ast.BinOp() | ast.Compare() | ast.BoolOp():
            return _group(_chain(_flatten(node), level), level)
        case ast.UnaryOp(op):
            return (UNARY[type(op)], _maybe_parenthesized(operands(node)[0], level))
        case ast.IfExp():
            return _group(_conditional(node, level), level)
        case ast.Attribute(attr=attr):
            return (_maybe_parenthesized(operands(node)[0], level), f".{attr}")
        case ast.Subscript(slice=index):
            return (_maybe_parenthesized(operands(node)[0], level), _brackets("[", _index(index), "]", level))
        case ast.Call(args=args, keywords=keywords):
            func = _maybe_parenthesized(operands(node)[0], level)
            if not args and not keywords:
                return (func, "()")
            items = [expression(arg, INSIDE) for arg in args]
            items += [(f"{keyword.arg}=", expression(keyword.value, INSIDE)) for keyword in keywords]
            return (func, _brackets("(", Group(commas(items)), ")", level))
        case ast.List(elts):
            return _brackets("[", commas([expression(item, INSIDE) for item in elts]), "]", level) if elts else "[]"
        case ast.Tuple(elts):
            if not elts:
                return "()"
            if len(elts) == 1:
                return _brackets("(", (expression(elts[0], INSIDE), ","), ")", level)
            return _brackets("(", commas([expression(item, INSIDE) for item in elts]), ")", level)
        case ast.Set(elts):
            return _brackets("{", commas([expression(item, INSIDE) for item in elts]), "}", level)
        case ast.Slice():
            return tuple(slice_parts(node, lambda part: expression(part, INSIDE)))
    raise AssertionError(f"no layout for {type(node).__name__}")


def _maybe_parenthesized(operand: Operand, level: Level) -> Doc:
    if operand.parentheses:
        return _brackets("(", expression(operand.node, INSIDE), ")", level)
    return expression(operand.node, level)


def _group(content: Doc, level: Level) -> Doc:
    if level is None:
        return content
    return Group(content, only_if=level) if isinstance(level, GroupId) else Group(content)


def _line(level: Level, line: Line) -> Doc:
    """A line break that exists only where brackets or optional parentheses allow it."""
    if isinstance(level, Inside):
        return line
    flat = " " if line is Line.SPACE else ""
    return flat if level is None else (If(True, line, level), If(False, flat, level))


def _brackets(left: str, content: Doc, right: str, level: Level) -> Doc:
    inner: Doc = Group(block(content))
    return (left, FitsExpanded(inner, level) if isinstance(level, GroupId) else inner, right)


def block(content: Doc) -> Doc:
    """Content that stands, if it breaks, indented on lines of its own."""
    return (Indent((Line.SOFT, content)), Line.SOFT)


def commas(items: Sequence[Doc], trailing: bool | None = None) -> Doc:
    """Items between commas; a trailing comma where they stand on lines of their own (by default: if several)."""
    parts: list[Doc] = []
    for position, item in enumerate(items):
        parts += [",", Line.SPACE, item] if position else [item]
    if trailing if trailing is not None else len(items) > 1:
        parts.append(If(True, ","))
    return tuple(parts)


@dataclass(slots=True)
class _Chain:
    """Operands with the operators between them, whatever their precedence (a parenthesised operand counts as one)."""

    operands: list[Operand] = field(default_factory=list)
    operators: list[tuple[str, int]] = field(default_factory=list)

    def part(self, start: int, stop: int) -> _Chain:
        """Operands `start` to `stop` (included) and what is between them."""
        return _Chain(self.operands[start : stop + 1], self.operators[start:stop])


def _flatten(node: ast.expr) -> _Chain:
    chain = _Chain()
    work: list[Operand | tuple[str, int]] = [Operand(node, False)]
    while work:  # a loop: sums of hundreds of terms are as deep as they are long
        item = work.pop()
        if not isinstance(item, Operand):
            chain.operators.append(item)
        elif item.parentheses or not isinstance(item.node, (ast.BinOp, ast.Compare, ast.BoolOp)):
            chain.operands.append(item)
        else:
            inner = operands(item.node)
            parts: list[Operand | tuple[str, int]] = [inner[0]]
            for operator, operand in zip(operators(item.node), inner[1:], strict=True):
                parts += [operator, operand]
            work.extend(reversed(parts))
    return chain


def _chain(chain: _Chain, level: Level) -> Doc:
    """Lines before all operators that bind least; what is between them holds together longer."""
    if not chain.operators:
        return _maybe_parenthesized(chain.operands[0], level)
    lowest = min(order for _, order in chain.operators)
    cuts = [k for k, (_, order) in enumerate(chain.operators) if order == lowest]
    parts = []
    for start, stop in zip([0, *(cut + 1 for cut in cuts)], [*cuts, len(chain.operators)], strict=True):
        part = _chain(chain.part(start, stop), level)
        parts.append(part if start == stop else _group(part, level))
    result = [parts[0]]
    for cut, part in zip(cuts, parts[1:], strict=True):
        symbol = chain.operators[cut][0]
        if symbol == "**" and is_simple(chain.operands[cut]) and is_simple(chain.operands[cut + 1]):
            space = "" if level is None else If(True, " ", level if isinstance(level, GroupId) else None)
            result += [_line(level, Line.SOFT), symbol, space, part]
        else:
            result += [_line(level, Line.SPACE), symbol, " ", part]
    return tuple(result)


def _conditional(node: ast.IfExp, level: Level) -> Doc:
    body, test, orelse = operands(node)
    if isinstance(orelse.node, ast.IfExp):
        rest = _conditional(orelse.node, level)
    else:
        rest = _group(_maybe_parenthesized(orelse, level), level)
    space = _line(level, Line.SPACE)
    return (
        *(_maybe_parenthesized(body, level), space, "if ", _maybe_parenthesized(test, level)),
        *(space, "else ", rest),
    )


def _string(pieces: list[Piece], level: Level) -> Doc:
    """A string; between brackets, one that no line can hold becomes several."""
    whole = literal(pieces)
    if len(whole) <= _STRING_WIDTH or not isinstance(level, Inside):
        return whole
    lines: list[list[Piece]] = [[]]
    for piece in pieces:
        if lines[-1] and len(literal([*lines[-1], piece])) > _STRING_WIDTH:
            lines.append([])
        lines[-1].append(piece)
    broken: list[Doc] = [literal(lines[0])]
    for line in lines[1:]:
        broken += [Line.SOFT, literal(line)]
    return Group((If(False, whole), If(True, tuple(broken))))


def _index(node: ast.expr) -> Doc:
    if isinstance(node, ast.Tuple) and len(node.elts) > 1:
        return Group(commas([expression(item, INSIDE) for item in node.elts]))
    return expression(node, INSIDE)
