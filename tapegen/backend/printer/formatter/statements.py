"""Statement printer: statements and functions as text, with comments, line breaks and a map to the user's source."""

from __future__ import annotations

import ast
from collections.abc import Mapping
from io import StringIO
from typing import Any

from astunparse import Unparser

from tapegen.backend.printer.comments import comment
from tapegen.backend.printer.formatter.document import INDENT, WIDTH, layout_lines, text_width
from tapegen.backend.printer.formatter.expressions import ExpressionPrinter, Pieces
from tapegen.backend.printer.formatter.line_breaks import LineBreaker
from tapegen.errors import Span


class Comment(ast.stmt):
    """Text behind `#`; an empty line if there is none."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.text = text


class Verbatim(ast.stmt):
    """Verbatim lines, after decorators."""

    def __init__(self, decorators: list[ast.expr], lines: list[str]) -> None:
        super().__init__()
        self.decorators = decorators
        self.lines = lines


class StatementPrinter(Unparser):
    """Prints statements, each on one line if it fits there and else on several, as ruff's formatter would.

    Each line follows a newline, as astunparse has it.

    Parameters
    ----------
    tree : list of ast.stmt
        What to print.
    file : StringIO
        The output.
    origins : mapping of ast.AST to Span or None
        The locations in the user's source of statements, and of conditions after `elif`.

    Attributes
    ----------
    line_map : list of Span or None
        The location that each line comes from.
    """

    def __init__(self, tree: list[ast.stmt], file: StringIO, origins: Mapping[ast.AST, Span | None]) -> None:
        self.line_map: list[Span | None] = []
        self._origins = origins
        self._origin: Span | None = None
        self._text = Pieces()  # of the line that is being written
        self._parts: list[str | ast.AST] = []  # the text and the expressions that it consists of
        self._on_one_line = ExpressionPrinter([], self._text)
        self._on_several_lines = LineBreaker()
        self._new_line()
        super().__init__(tree, file)

    def dispatch(self, tree: Any) -> None:
        kind = type(tree)
        if kind in _METHODS:
            self._origin = self._origins.get(tree)
            getattr(self, _METHODS[kind])(tree)
            self._end_line()
        elif kind is list:
            super().dispatch(tree)
        elif isinstance(tree, ast.stmt):
            raise AssertionError(f"{kind.__name__} is no statement of generated text")
        else:
            first = self._parts[0] if self._parts else tree  # of the line: an expression or a keyword
            self._parts.append(tree)
            self._origin = self._origins.get(tree, self._origin)
            if isinstance(first, str) and first != "return":
                self._on_one_line.dispatch(tree)
            else:
                self._on_one_line.bare(tree)

    # ---- lines ----

    def fill(self, text: str = "") -> None:
        if text == "else":
            self._origin = None
        if text:
            self.write(text)

    def write(self, text: str) -> None:
        self._text.append(text)
        self._parts.append(text)

    def enter(self) -> None:
        self.write(":")
        self._end_line()
        self._indent += 1

    def _end_line(self) -> None:
        if not self._parts:
            return
        text, indent = "".join(self._text), self._indent * INDENT
        if indent + text_width(text) <= WIDTH:
            self._add([" " * indent + text])
        else:
            self._add(layout_lines(self._on_several_lines.line(self._parts), indent))
        self._new_line()

    def _new_line(self) -> None:
        self._text.clear()
        self._parts.clear()

    def _add(self, lines: list[str]) -> None:
        self.f.write("\n" + "\n".join(lines))
        self.line_map += [self._origin] * len(lines)

    # ---- statements ----

    def _FunctionDef(self, t: ast.FunctionDef) -> None:
        if t.returns or getattr(t, "type_params", None):
            raise AssertionError("a function of generated text has neither annotations nor type parameters")
        origin, self._origin = self._origin, None
        self._decorators(t.decorator_list)
        self._origin = origin
        self.fill(f"def {t.name}(")
        self.dispatch(t.args)
        self.write(")")
        self.enter()
        self.dispatch(t.body)
        self.leave()

    def _decorators(self, nodes: list[ast.expr]) -> None:
        for node in nodes:
            self.fill("@")
            self.dispatch(node)
            self._end_line()

    def _Comment(self, t: Comment) -> None:
        self._add(comment(t.text, self._indent * INDENT) if t.text else [""])

    def _Verbatim(self, t: Verbatim) -> None:
        self._decorators(t.decorators)
        self._add(t.lines)


_METHODS = {
    **{getattr(ast, name): "_" + name for name in "Assign AugAssign Expr Return Raise Pass Break Continue".split()},
    **{getattr(ast, name): "_" + name for name in "If While For FunctionDef".split()},
    Comment: "_Comment",
    Verbatim: "_Verbatim",
}
