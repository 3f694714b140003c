"""Source retrieval: from a function object to the syntax tree it was compiled from.

The current text of a file need not be the text that was loaded: files are edited, decorators return other functions,
import hooks rewrite code.  So the text is compiled again and the bytecode compared: a returned tree is the tree of the
code that runs.
"""

from __future__ import annotations
import __future__

import ast
import dis
import functools
import gc
import linecache
import operator
import weakref
from collections.abc import Iterator
from dataclasses import dataclass, field
from types import CodeType, FunctionType
from typing import TypeAlias

from tapegen.errors import CompileLimit, SourceUnavailable, Span

Definition: TypeAlias = ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda

_FUTURES = functools.reduce(operator.or_, (getattr(__future__, f).compiler_flag for f in __future__.all_feature_names))

_LAMBDA = "<lambda>"


@dataclass(frozen=True, slots=True)
class Located:
    """A function definition in its text.

    Attributes
    ----------
    node : ast.FunctionDef, ast.AsyncFunctionDef or ast.Lambda
        The definition; shared and never changed.
    file : str
        File name of the code object.
    lines : tuple of str
        All lines of the file (or notebook cell) that the positions of `node` refer to.
    class_name : str or None
        The class whose body contains the definition, directly or through other functions (for names like `__x`).
    """

    node: Definition
    file: str
    lines: tuple[str, ...]
    class_name: str | None

    def span(self, node: ast.AST) -> Span:
        """The span of `node`, with its source lines."""
        return self.place(node.lineno, node.col_offset, node.end_lineno, node.end_col_offset)  # type: ignore[attr-defined]

    def place(self, line: int, column: int, end_line: int, end_column: int) -> Span:
        """The span between two positions of the file."""
        return Span(self.file, line, column, end_line, end_column, self.lines[line - 1 : end_line])


def locate(func: FunctionType) -> Located:
    """The definition of a plain Python function, verified against its bytecode.

    Raises
    ------
    SourceUnavailable
        There is no text, it is not the text that was loaded, or several definitions in it match.
    """
    code = func.__code__
    entry = _LOCATED.get(id(code))
    if entry is not None and entry[0]() is code:
        return entry[1]
    located = _locate(func)
    key = id(code)
    _LOCATED[key] = (weakref.ref(code, lambda _: _LOCATED.pop(key, None)), located)
    return located


# By identity: equal code objects may come from different files.
_LOCATED: dict[int, tuple[weakref.ref[CodeType], Located]] = {}


# ---- files and their segments --------------------------------------------------------------------------------------


@dataclass(slots=True)
class _Definition:
    node: Definition
    class_name: str | None


@dataclass(slots=True)
class _Segment:
    """The lines of one statement at module level: the smallest text that can be compiled on its own."""

    first: int
    last: int
    statements: list[ast.stmt]
    definitions: dict[bool, list[_Definition]] = field(default_factory=dict)
    codes: dict[int, list[CodeType]] = field(default_factory=dict)

    def find(self, line: int, name: str) -> list[_Definition]:
        """The definitions of a name whose text starts at a line."""
        return [found for found in self.named(name) if _first_line(found.node) == line]

    def named(self, name: str) -> list[_Definition]:
        lambdas = name == _LAMBDA
        if lambdas not in self.definitions:
            self.definitions[lambdas] = list(_definitions(self.statements, lambdas))
        return [found for found in self.definitions[lambdas] if _name(found.node) == name]


@dataclass(slots=True)
class _SourceFile:
    lines: tuple[str, ...]
    segments: list[_Segment]
    imports: str  # every name that the module imports, as one statement

    def segment_at(self, line: int) -> _Segment | None:
        for segment in self.segments:
            if segment.first <= line <= segment.last:
                return segment
        return None

    def codes(self, segment: _Segment, flags: int) -> list[CodeType]:
        """Every code object that the text of a segment may have been compiled to."""
        if flags not in segment.codes:
            # The blank lines in front keep line numbers right.  CPython compiles `np.sin(x)` differently where it
            # sees that the module imports `np`; in a notebook it does not, for each statement is compiled alone.
            text = "\n" * (segment.first - 1) + "".join(self.lines[segment.first - 1 : segment.last])
            segment.codes[flags] = [
                code for tail in dict.fromkeys((self.imports, "")) for code in self._compiled(f"{text}\n{tail}", flags)
            ]
        return segment.codes[flags]

    def _compiled(self, text: str, flags: int) -> Iterator[CodeType]:
        try:
            module = compile(text, "<segment>", "exec", flags=flags, dont_inherit=True)
        except SyntaxError:  # a backslash joins it to the next statement, or `await` stands at the top of a cell
            flags |= ast.PyCF_ALLOW_TOP_LEVEL_AWAIT
            module = compile("".join(self.lines), "<segment>", "exec", flags=flags, dont_inherit=True)
        return _nested_codes(module)


_FILES: dict[str, _SourceFile] = {}


def _read(func: FunctionType) -> _SourceFile:
    code = func.__code__
    linecache.checkcache(code.co_filename)
    lines = tuple(linecache.getlines(code.co_filename, func.__globals__))
    if not lines:
        raise _without_text(func)
    known = _FILES.get(code.co_filename)
    if known is not None and known.lines == lines:
        return known
    try:
        tree = _parsed("".join(lines))
    except (SyntaxError, ValueError) as error:
        line = getattr(error, "lineno", None) or code.co_firstlineno
        raise SourceUnavailable(
            f"the text of '{func.__qualname__}' is not the loaded code: it does not parse (line {line}).",
            "Save the file and import the module again.",
            _line_span(code.co_filename, lines, line),
        ) from error
    except RecursionError as error:
        raise _too_deep(func, lines) from error
    _FILES[code.co_filename] = source = _SourceFile(lines, _segments(tree.body), _imports(tree))
    return source


def _parsed(text: str) -> ast.Module:
    # all objects allocated here stay alive: garbage collection would take twice the time of parsing
    collecting = gc.isenabled()
    gc.disable()
    try:
        return ast.parse(text)
    finally:
        if collecting:
            gc.enable()


def _without_text(func: FunctionType) -> SourceUnavailable:
    file, line = func.__code__.co_filename, func.__code__.co_firstlineno
    return SourceUnavailable(
        f"there is no source text of '{func.__qualname__}' ({_why_no_text(file)}).",
        "Put the function in a file or a notebook cell.",
        Span(file, line, 0, line, 0),
    )


def _why_no_text(file: str) -> str:
    if file == "<stdin>":
        return "it was typed at the prompt or read from standard input"
    if file == "<string>":
        return "it was made by exec, eval or python -c"
    if file.startswith("<"):
        return f"it was made from text called {file} that is no longer available"
    return f"the file {file} cannot be read"


def _segments(body: list[ast.stmt]) -> list[_Segment]:
    segments: list[_Segment] = []
    for statement in body:
        first, last = _first_line(statement), statement.end_lineno or statement.lineno
        if segments and first <= segments[-1].last:  # `f = lambda x: x; g = ...`
            segments[-1].last = max(last, segments[-1].last)
            segments[-1].statements.append(statement)
        else:
            segments.append(_Segment(first, last, [statement]))
    return segments


def _imports(module: ast.Module) -> str:
    names: set[str] = set()
    todo: list[ast.AST] = [module]
    while todo:
        node = todo.pop()
        if isinstance(node, (ast.Import, ast.ImportFrom)):
            names.update(alias.asname or alias.name.partition(".")[0] for alias in node.names if alias.name != "*")
        elif not isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef, ast.expr)):
            todo.extend(ast.iter_child_nodes(node))
    return f"import {', '.join(sorted(names))}\n" if names else ""


def _definitions(statements: list[ast.stmt], lambdas: bool) -> Iterator[_Definition]:
    """Every `def` below some statements, or every lambda."""
    wanted = (ast.Lambda,) if lambdas else (ast.FunctionDef, ast.AsyncFunctionDef)
    todo: list[tuple[ast.AST, str | None]] = [(statement, None) for statement in statements]
    while todo:
        node, class_name = todo.pop()
        if isinstance(node, wanted):
            yield _Definition(node, class_name)
        inner = node.name if isinstance(node, ast.ClassDef) else class_name
        for name in node._fields:
            value = getattr(node, name, None)
            for child in value if isinstance(value, list) else (value,):
                if isinstance(child, ast.AST) and (lambdas or not isinstance(child, ast.expr)):  # no def in expressions
                    todo.append((child, inner))


def _first_line(node: ast.AST) -> int:
    """The first line as in `co_firstlineno`: decorators belong to the definition."""
    line: int = node.lineno  # type: ignore[attr-defined]
    decorators: list[ast.expr] = getattr(node, "decorator_list", [])
    return min([line, *(item.lineno for item in decorators)])


def _name(node: Definition) -> str:
    return _LAMBDA if isinstance(node, ast.Lambda) else node.name


def _nested_codes(code: CodeType) -> Iterator[CodeType]:
    todo = [code]
    while todo:
        current = todo.pop()
        yield current
        todo.extend(const for const in current.co_consts if isinstance(const, CodeType))


# ---- which definition ----------------------------------------------------------------------------------------------


def _locate(func: FunctionType) -> Located:
    code = func.__code__
    source = _read(func)
    flags = code.co_flags & _FUTURES
    try:
        found = _find(func, code, source, flags)
    except RecursionError as error:
        raise _too_deep(func, source.lines) from error
    return Located(found.node, code.co_filename, source.lines, found.class_name)


def _find(func: FunctionType, code: CodeType, source: _SourceFile, flags: int) -> _Definition:
    segment = source.segment_at(code.co_firstlineno)
    candidates = segment.find(code.co_firstlineno, code.co_name) if segment else []
    compiled = [
        fresh
        for fresh in (source.codes(segment, flags) if segment and candidates else ())
        if (fresh.co_firstlineno, fresh.co_qualname) == (code.co_firstlineno, code.co_qualname)
    ]
    equal = [fresh for fresh in compiled if same_code(code, fresh)]
    if len(candidates) > 1:
        return _single_out(func, candidates, equal, source)
    if equal:
        return candidates[0]
    moved = _find_moved(code, source, flags)
    if moved is not None:
        return moved
    if not compiled:
        raise _edited(func, source, code.co_firstlineno, f"line {code.co_firstlineno} does not define it")
    rewriter = _rewriter(func)
    if rewriter is None:
        line = _first_difference(code, compiled[0])
        raise _edited(func, source, line, f"line {line} differs")
    if rewriter == "pytest" and any(_same_but_asserts(code, fresh, candidates[0].node) for fresh in compiled):
        return candidates[0]
    raise SourceUnavailable(
        f"the code of '{func.__qualname__}' was rewritten by {rewriter} when it was loaded: its text is not what runs.",
        "Exclude its module from the rewriting.",
        _line_span(code.co_filename, source.lines, code.co_firstlineno),
    )


def _find_moved(code: CodeType, source: _SourceFile, flags: int) -> _Definition | None:
    """The definition when lines were inserted or removed elsewhere in the file: the one with this name and bytecode."""
    if code.co_name == _LAMBDA:
        return None
    matches: dict[int, _Definition] = {}
    for segment in source.segments:
        if segment.named(code.co_name):
            for fresh in source.codes(segment, flags):
                if fresh.co_qualname == code.co_qualname and same_code(code, fresh):
                    matches |= {id(found.node): found for found in segment.find(fresh.co_firstlineno, fresh.co_name)}
    return next(iter(matches.values())) if len(matches) == 1 else None


def _single_out(
    func: FunctionType, candidates: list[_Definition], equal: list[CodeType], source: _SourceFile
) -> _Definition:
    """Select one of several lambdas that start on one line: the one whose body contains every instruction."""
    code = func.__code__
    if not equal:
        raise _edited(func, source, code.co_firstlineno, f"line {code.co_firstlineno} differs")
    positions = list(code.co_positions())
    unmoved = any(list(fresh.co_positions()) == positions for fresh in equal)
    holding = [found for found in candidates if unmoved and _holds(found.node, code)]
    if not holding:
        raise SourceUnavailable(
            f"{len(candidates)} lambdas start on this line, and the loaded code does not tell which one is meant.",
            "Write one lambda to a line, or use def.",
            _line_span(code.co_filename, source.lines, code.co_firstlineno),
        )
    # of nested bodies, the innermost
    return max(holding, key=lambda found: (found.node.lineno, found.node.col_offset))


def _holds(node: Definition, code: CodeType) -> bool:
    body = node.body
    assert isinstance(body, ast.expr)  # only lambdas share a line
    start = (body.lineno, body.col_offset)
    end = (body.end_lineno, body.end_col_offset)
    seen = False
    for line, end_line, column, end_column in code.co_positions():
        if line is None or end_line is None or column is None or end_column is None or column == end_column == 0:
            continue  # entry and exit of the function have no position
        seen = True
        if (line, column) < start or (end_line, end_column) > end:
            return False
    return seen


# ---- comparing code ------------------------------------------------------------------------------------------------


def same_code(a: CodeType, b: CodeType) -> bool:
    """Whether two code objects compute the same; positions and file names do not matter."""
    return (
        a.co_code == b.co_code
        and a.co_names == b.co_names
        and a.co_varnames == b.co_varnames
        and a.co_freevars == b.co_freevars
        and a.co_cellvars == b.co_cellvars
        and a.co_argcount == b.co_argcount
        and a.co_posonlyargcount == b.co_posonlyargcount
        and a.co_kwonlyargcount == b.co_kwonlyargcount
        and len(a.co_consts) == len(b.co_consts)
        and all(_same_const(x, y) for x, y in zip(a.co_consts, b.co_consts, strict=True))
    )


def _same_const(a: object, b: object) -> bool:
    if isinstance(a, CodeType):
        return isinstance(b, CodeType) and same_code(a, b)
    if isinstance(a, tuple):
        return isinstance(b, tuple) and len(a) == len(b) and all(map(_same_const, a, b))
    if isinstance(a, frozenset):
        return isinstance(b, frozenset) and a == b
    return type(a) is type(b) and repr(a) == repr(b)  # 1 == 1.0 == True and 0.0 == -0.0


def _first_difference(loaded: CodeType, fresh: CodeType) -> int:
    """The first source line whose code differs from the loaded code."""
    line = fresh.co_firstlineno
    if loaded.co_varnames[: loaded.co_argcount] != fresh.co_varnames[: fresh.co_argcount]:
        return line
    old, new = list(dis.get_instructions(loaded)), list(dis.get_instructions(fresh))
    for a, b in zip(old, new, strict=False):
        position = b.positions.lineno if b.positions else None
        line = position or line
        if isinstance(a.argval, CodeType) and isinstance(b.argval, CodeType):
            if not same_code(a.argval, b.argval):
                return _first_difference(a.argval, b.argval)
        elif a.opcode != b.opcode or a.arg != b.arg or not _same_const(a.argval, b.argval):
            return line
    return line


# pytest leaves its marks in the code that it rewrites
_PLAIN_LOADERS = ("_frozen_importlib", "_frozen_importlib_external", "importlib", "zipimport", "_pytest")


def _rewriter(func: FunctionType) -> str | None:
    """The import hook that rewrote the code of a module, if any."""
    codes = _nested_codes(func.__code__)
    if any(name.startswith("@py") for code in codes for name in code.co_names + code.co_varnames):
        return "pytest"
    loader = func.__globals__.get("__loader__")
    loader_type = loader if isinstance(loader, type) else type(loader)
    root = loader_type.__module__.partition(".")[0]
    if loader is None or root in _PLAIN_LOADERS:
        return None
    return f"{loader_type.__module__}.{loader_type.__name__}"


_JUMPS = {*dis.hasjrel, *dis.hasjabs}


def _same_but_asserts(loaded: CodeType, fresh: CodeType, node: Definition) -> bool:
    """Whether only `assert` statements differ: pytest rewrites them."""
    asserts = [
        ((item.lineno, item.col_offset), (item.end_lineno or 0, item.end_col_offset or 0))
        for item in ast.walk(node)
        if isinstance(item, ast.Assert)
    ]

    def rest(code: CodeType) -> list[tuple[str, object]]:
        kept = []
        for instruction in dis.get_instructions(code):
            at = instruction.positions
            if instruction.opname in ("NOP", "EXTENDED_ARG") or instruction.opcode in _JUMPS:
                continue  # block boundaries depend on the asserts between them
            if at is not None and at.lineno is not None:
                place = (at.lineno, at.col_offset or 0)
                if any(start <= place < end for start, end in asserts):
                    continue
            kept.append((instruction.opname, instruction.argval))
        return kept

    old, new = rest(loaded), rest(fresh)
    if len(old) != len(new):
        return False
    for (op, a), (fresh_op, b) in zip(old, new, strict=True):
        if op != fresh_op:
            return False
        if isinstance(a, CodeType) and isinstance(b, CodeType):
            if not _same_but_asserts(a, b, node):
                return False
        elif not _same_const(a, b):
            return False
    return True


# ---- messages ------------------------------------------------------------------------------------------------------


def _line_span(file: str, lines: tuple[str, ...], line: int) -> Span:
    return Span.of_line(file, line, lines[line - 1] if line <= len(lines) else "")


def _edited(func: FunctionType, source: _SourceFile, line: int, what: str) -> SourceUnavailable:
    if func.__code__.co_filename == "<string>":  # Python 3.13 keeps the text of `python -c`, not of exec
        return _without_text(func)
    return SourceUnavailable(
        f"the text on disk of '{func.__qualname__}' is not the loaded code ({what}).",
        "The file changed after it was imported: import the module again, or restart Python.",
        _line_span(func.__code__.co_filename, source.lines, line),
    )


def _too_deep(func: FunctionType, lines: tuple[str, ...]) -> CompileLimit:
    return CompileLimit(
        f"'{func.__qualname__}', or its file, nests expressions too deeply for Python's own parser.",
        "Split the longest expression into several statements.",
        _line_span(func.__code__.co_filename, lines, func.__code__.co_firstlineno),
    )
