"""Parsing: from a function object to a checked syntax tree whose names can be resolved."""

from __future__ import annotations

import ast
import builtins
import functools
import hashlib
import importlib
import inspect
import operator
import tokenize
import weakref
from collections.abc import Callable
from dataclasses import dataclass
from types import CellType, CodeType, FunctionType
from typing import Any, Final

import gast

from tapegen.errors import Span, TapegenError, of_program
from tapegen.frontend.source import syntax_check
from tapegen.frontend.source.callables import calls_instead, is_elementwise, own_signature, refusal, unwrap
from tapegen.frontend.source.desugar import rewritten_definition
from tapegen.frontend.source.locate import Located, locate
from tapegen.frontend.source.syntax_tree import bound_names, mangle, nodes_of, to_gast

__all__ = ["MISSING", "Parsed", "bound_names", "is_elementwise", "mangle", "parse_function", "unwrap"]


class _Missing:
    def __repr__(self) -> str:
        return "MISSING"


MISSING: Final = _Missing()
"""The result of `Parsed.resolve` for an unbound name, for which Python would raise NameError."""


@dataclass(frozen=True, slots=True)
class _Tree:
    """The facts that depend only on the code; functions made from one `def` share them."""

    tree: gast.FunctionDef
    located: Located
    locals: frozenset[str]
    text: str
    text_hash: str


@dataclass(frozen=True, slots=True, eq=False)
class Parsed:
    """A Python function as a syntax tree, with the meaning of its names.

    Attributes
    ----------
    tree : gast.FunctionDef
        Checked by `syntax_check`; without decorators, annotations and its own defaults (they are in `signature`);
        private names (`__x` in a class) mangled.  A lambda is a function of name `lambda_` with one Return.  The tree
        is shared between calls: do not change it.
    func : function
        The plain Python function.
    file : str
        The file name that spans use.
    locals : frozenset of str
        Names bound by the function (`bound_names` gives those of inner functions).
    freevars : frozenset of str
        Names in closure cells of an enclosing function.
    text : str
        The source text of the definition without decorators, dedented.
    text_hash : str
        SHA-256 of `text`.
    """

    tree: gast.FunctionDef
    func: FunctionType
    file: str
    locals: frozenset[str]
    freevars: frozenset[str]
    text: str
    text_hash: str
    _located: Located

    @property
    def signature(self) -> inspect.Signature:
        """The signature of the code itself, regardless of `__signature__`."""
        return own_signature(self.func)

    def span(self, node: gast.AST) -> Span:
        """The span of a node: all of a simple statement or expression, the header of a compound statement.

        For a synthesized wrapper of a user's function, it is the header of the user's function.
        """
        called = calls_instead(self.func)
        if called is not None:
            other = parse_function(called)
            return other.span(other.tree)
        if isinstance(node, (gast.For, gast.While, gast.If)):
            return _header(node, self._located)
        if isinstance(node, gast.FunctionDef) and (
            node is not self.tree or not isinstance(self._located.node, ast.Lambda)
        ):
            return _def_header(node, self._located)
        return self._located.span(node)

    def resolve(self, name: str) -> Any:
        """The object that `name` currently refers to: from the closure, the globals or the builtins; else MISSING."""
        try:
            return self.getter(name)()
        except (NameError, KeyError):
            return MISSING

    def getter(self, name: str) -> Callable[[], Any]:
        """A function that reads the value that `name` has when it is called.

        It raises NameError as Python does, or KeyError where a global variable has been deleted since.
        """
        cell = self.cell(name)
        if cell is not None:
            return functools.partial(_read_cell, cell, name)
        if name in self.func.__globals__:
            return functools.partial(operator.getitem, self.func.__globals__, name)  # runs without Python frames
        return functools.partial(_read_global, self.func, name)

    def cell(self, name: str) -> CellType | None:
        """The closure cell that holds `name`, if one does."""
        free = self.func.__code__.co_freevars
        return (self.func.__closure__ or ())[free.index(name)] if name in free else None

    def imported(self, node: gast.Import | gast.ImportFrom) -> dict[str, Any]:
        """The names that an import statement inside the function binds, and the objects it binds them to."""
        package = self.func.__globals__.get("__package__")
        bound: dict[str, Any] = {}
        if isinstance(node, gast.Import):
            for alias in node.names:
                module = importlib.import_module(alias.name)
                top = alias.name.partition(".")[0]
                bound[alias.asname or top] = module if alias.asname else importlib.import_module(top)
            return bound
        module_name = "." * (node.level or 0) + (node.module or "")
        module = importlib.import_module(module_name, package)
        for alias in node.names:
            if not hasattr(module, alias.name):
                importlib.import_module(f"{module.__name__}.{alias.name}")
            bound[alias.asname or alias.name] = getattr(module, alias.name)
        return bound


def _read_cell(cell: CellType, name: str) -> Any:
    try:
        return cell.cell_contents
    except ValueError:
        message = f"cannot access free variable '{name}' where it is not associated with a value in enclosing scope"
        raise of_program(NameError(message, name=name)) from None


def _read_global(func: FunctionType, name: str) -> Any:
    found = func.__globals__.get(name, MISSING)
    if found is MISSING:
        found = vars(builtins).get(name, MISSING)
    if found is MISSING:
        raise of_program(NameError(f"name '{name}' is not defined", name=name))
    return found


def parse_function(func: FunctionType, *, manager: bool = False) -> Parsed:
    """Read, verify and check the source of a plain Python function (see `unwrap` for other callables).

    A function that a decorator returned is parsed itself, not the decorated one.  With `manager`, a generator with one
    `yield` becomes a function that returns the yielded value, and a function of the rest.

    Raises
    ------
    SourceUnavailable
        The text cannot be found or is not what was loaded.
    UnsupportedSyntax
        The function uses a construct that has no derivative form.
    NotDifferentiable
        It is not a plain function, or writes to variables outside.
    CompileLimit
        It nests too deeply for Python's own parser.
    """
    if not isinstance(func, FunctionType):
        raise refusal(func)
    tree = _tree(func, manager)
    return Parsed(
        tree=tree.tree,
        func=func,
        file=tree.located.file,
        locals=tree.locals,
        freevars=frozenset(func.__code__.co_freevars),
        text=tree.text,
        text_hash=tree.text_hash,
        _located=tree.located,
    )


# By identity, like the definitions: equal code objects may come from different files.
_TREES: dict[tuple[int, bool], tuple[weakref.ref[CodeType], _Tree]] = {}


def span_of_parameter(func: FunctionType, name: str) -> Span | None:
    """The span of a parameter in the header of a function; None without source, or without such a parameter."""
    try:
        parsed = parse_function(func)
    except TapegenError:
        return None
    named = (node for node in gast.walk(parsed.tree.args) if isinstance(node, gast.Name) and node.id == name)
    return next(map(parsed.span, named), None)


def span_of_definition(func: FunctionType) -> Span | None:
    """The span of the header of a function; None without source."""
    try:
        parsed = parse_function(func)
    except TapegenError:
        return None
    return parsed.span(parsed.tree)


def _tree(func: FunctionType, manager: bool) -> _Tree:
    code = func.__code__
    key = id(code), manager
    entry = _TREES.get(key)
    if entry is not None and entry[0]() is code:
        return entry[1]
    located = rewritten_definition(locate(func), manager=manager)
    nodes = nodes_of(located.node)
    syntax_check.check(located, nodes)
    text = _text(located)
    node = to_gast(nodes, located.class_name)
    if isinstance(node, gast.Lambda):
        node = _as_def(node)
    tree = _Tree(node, located, bound_names(node), text, hashlib.sha256(text.encode()).hexdigest())
    _TREES[key] = (weakref.ref(code, lambda _: _TREES.pop(key, None)), tree)
    return tree


def _as_def(node: gast.Lambda) -> gast.FunctionDef:
    body = gast.copy_location(gast.Return(node.body), node.body)
    function = gast.FunctionDef("lambda_", node.args, [body], [], None, None, [])
    return gast.copy_location(function, node)


def _text(located: Located) -> str:
    """The text of a definition without its decorators, its indentation removed."""
    node = located.node
    lines = [line.rstrip("\r\n") for line in located.span(node).lines]
    lines[-1] = lines[-1].encode()[: node.end_col_offset].decode()
    margin = lines[0].encode()[: node.col_offset].decode()
    lines[0] = lines[0][len(margin) :]
    return "\n".join(line.removeprefix(margin) for line in lines) + "\n"


def _def_header(node: gast.FunctionDef, located: Located) -> Span:
    """The span from `def` to the colon after parameters and annotations, whose positions the tree lacks."""
    lines = iter(located.lines[node.lineno - 1 :])
    depth = 0
    for token in tokenize.generate_tokens(lambda: next(lines, "")):
        if token.type == tokenize.OP:
            depth += (token.string in "([{") - (token.string in ")]}")
            if token.string == ":" and depth == 0:
                break
    end_line = node.lineno - 1 + token.end[0]
    end_column = len(token.line[: token.end[1]].encode())
    return located.place(node.lineno, node.col_offset, end_line, end_column)


def _header(node: gast.AST, located: Located) -> Span:
    """The span from the first keyword of a compound statement to its colon."""
    parts = [part for part in gast.iter_child_nodes(node) if not isinstance(part, gast.stmt)]
    line, column = max((part.end_lineno, part.end_col_offset) for part in parts)
    while True:  # between the last part and the colon there are only brackets, commas and comments
        code = located.lines[line - 1].encode()[column:].partition(b"#")[0]
        if b":" in code:
            return located.place(node.lineno, node.col_offset, line, column + code.index(b":") + 1)
        line, column = line + 1, 0
