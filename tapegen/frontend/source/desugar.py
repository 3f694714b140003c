"""Desugaring of statements: `match` becomes tests, library `with` becomes statements around its body.

So branches, liveness and joins need to be implemented only for `if` and `elif`.
"""

from __future__ import annotations

import ast
import copy
import itertools
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from tapegen.errors import UnsupportedSyntax
from tapegen.frontend.source.desugar_try import without_try
from tapegen.frontend.source.desugar_with import as_two_functions, before_exits, without_with
from tapegen.frontend.source.desugar_yield import collect, yields
from tapegen.frontend.source.liveness import always_escapes
from tapegen.frontend.source.locate import Located
from tapegen.frontend.source.syntax_tree import blocks_of

_ITSELF = frozenset({"bool", "bytearray", "bytes", "dict", "float", "frozenset", "int", "list", "set", "str", "tuple"})
"""Classes for which a pattern with one positional part (`float(x)`) matches the object itself."""


def rewritten_definition(located: Located, *, manager: bool = False) -> Located:
    """A definition with these statements desugared; for a context manager, its generator as two functions."""
    compound = any(isinstance(node, (ast.Match, ast.With, ast.Try)) for node in blocks_of(located.node))
    if not (manager or compound or any("yield" in line for line in located.span(located.node).lines)):
        return located
    made = copy.deepcopy(located.node)
    used = {node.id for node in ast.walk(made) if isinstance(node, ast.Name)}
    rewriter = _Rewriter(located, used)
    for node in [] if manager else list(blocks_of(made)):
        if isinstance(node, ast.FunctionDef) and yields(node):
            collect(located, node, rewriter.fresh)
    rewriter.visit(made)
    rewritten = replace(located, node=made)
    return as_two_functions(rewritten, rewriter.fresh) if manager else rewritten


def quiet(manager: Any) -> None:
    """Marks the body of `with np.errstate(...)`: warnings do not affect values."""


def errors_begin() -> None:
    """Marks where warnings become errors."""


def errors_end() -> None:
    """Marks where they are warnings again."""


def refused_warnings() -> None:
    """Replaces a `with warnings.catch_warnings(...)` that is refused when it is lowered."""


def _is_call_of(item: ast.withitem, name: str) -> bool:
    """Whether a node looks like a call of a function; lowering checks that the name refers to it."""
    manager = item.context_expr
    func = manager.func if isinstance(manager, ast.Call) else None
    return (func.attr if isinstance(func, ast.Attribute) else getattr(func, "id", "")) == name


def _keeps_warnings(item: ast.withitem) -> bool:
    """Whether this is `warnings.catch_warnings()`: warnings that are not errors affect no value."""
    call = item.context_expr
    if not isinstance(call, ast.Call) or call.args or call.keywords or item.optional_vars is not None:
        return False
    return ast.unparse(call.func) in ("warnings.catch_warnings", "catch_warnings")


def _makes_errors(item: ast.withitem, body: Sequence[ast.stmt]) -> bool:
    """Whether all warnings are errors under this: it begins with `simplefilter("error")`, its only filter."""
    if item.optional_vars is not None or len(body) < 2 or not _sets_filter(body[0]):
        return False
    call = body[0].value if isinstance(body[0], ast.Expr) else None
    plain = isinstance(call, ast.Call) and not call.keywords and [ast.unparse(arg) for arg in call.args] == ["'error'"]
    return plain and not any(_sets_filter(part) for stmt in body[1:] for part in ast.walk(stmt))


def _may_raise(manager: ast.expr) -> bool:
    """Whether a call of `np.errstate` may ask for errors."""
    keywords = manager.keywords if isinstance(manager, ast.Call) else ()
    return any(not isinstance(kw.value, ast.Constant) or kw.value.value == "raise" for kw in keywords)


def _with_end(place: ast.expr, body: Sequence[ast.stmt], fresh: Callable[[str], str]) -> list[ast.stmt]:
    """A block in which warnings are errors, with the end marker at each exit."""

    def end(at: ast.AST) -> ast.stmt:
        return _at(at, ast.Expr(_call(at, errors_end, [])))

    found = before_exits(body, end, fresh)
    return found if always_escapes(found) else [*found, end(place)]


def _sets_filter(stmt: ast.AST) -> bool:
    call = stmt.value if isinstance(stmt, ast.Expr) else None
    names = ("warnings.simplefilter", "warnings.filterwarnings", "simplefilter", "filterwarnings")
    return isinstance(call, ast.Call) and ast.unparse(call.func) in names


def _is_followed(stmt: ast.stmt) -> bool:
    """Whether a statement under `catch_warnings` turns no warnings into errors."""
    if not _sets_filter(stmt):
        return not any(_sets_filter(node) for node in ast.walk(stmt) if isinstance(node, ast.stmt))
    call = stmt.value if isinstance(stmt, ast.Expr) else None
    action = call.args[0] if isinstance(call, ast.Call) and call.args else None
    return isinstance(action, ast.Constant) and action.value in ("ignore", "default", "always", "module", "once")


@dataclass(slots=True)
class _Pattern:
    """The tests of a pattern, in order, and the names that it binds."""

    tests: list[ast.expr] = field(default_factory=list)
    bound: list[tuple[str, ast.expr]] = field(default_factory=list)


class _Rewriter(ast.NodeTransformer):
    def __init__(self, located: Located, used: set[str]) -> None:
        self.located, self.used = located, used

    def visit_Try(self, node: ast.Try) -> ast.Try | list[ast.stmt]:
        self.generic_visit(node)
        return without_try(node, self.fresh)

    def fresh(self, base: str) -> str:
        name = next(name for k in itertools.count() if (name := f"{base}{k or ''}") not in self.used)
        self.used.add(name)
        return name

    def visit_With(self, node: ast.With) -> ast.With | list[ast.stmt]:
        self.generic_visit(node)
        body = node.body
        for item in reversed(node.items):
            if _is_call_of(item, "errstate") and item.optional_vars is None:
                manager = item.context_expr
                call = _at(manager, ast.Call(_constant(manager, quiet), [manager], []))
                rest = _with_end(manager, body, self.fresh) if _may_raise(manager) else body
                body = [_at(call, ast.Expr(call)), *rest]
            elif _is_call_of(item, "catch_warnings") and _makes_errors(item, body):
                place = item.context_expr
                body = [_at(place, ast.Expr(_call(place, errors_begin, []))), *_with_end(place, body[1:], self.fresh)]
            elif _is_call_of(item, "catch_warnings"):
                if not _keeps_warnings(item) or not all(map(_is_followed, body)):
                    return [_at(item.context_expr, ast.Expr(_call(item.context_expr, refused_warnings, [])))]
                body = [stmt for stmt in body if not _sets_filter(stmt)] or [_at(node, ast.Pass())]
            else:
                body = without_with(item, body, self.fresh)
        return body

    def visit_Match(self, node: ast.Match) -> list[ast.stmt]:
        self.generic_visit(node)
        name = self.fresh("matched")
        rest: list[ast.stmt] = []
        for case in reversed(node.cases):
            rest = self._case(case, name, rest)
        place = node.subject
        subject = _at(place, ast.Assign([_at(place, ast.Name(name, ast.Store()))], node.subject, None))
        return [subject, *rest]

    def _case(self, case: ast.match_case, name: str, rest: list[ast.stmt]) -> list[ast.stmt]:
        """A case, followed by the statements for subjects that it does not match."""
        place = case.pattern
        found = _Pattern()
        self._pattern(case.pattern, _at(place, ast.Name(name, ast.Load())), found)
        body = case.body
        tests = found.tests
        if case.guard is not None:
            binds = [
                _at(place, ast.NamedExpr(_at(place, ast.Name(target, ast.Store())), value))
                for target, value in found.bound
            ]
            if binds:  # a tuple that is not empty is true
                tests.append(_at(place, ast.Tuple(list[ast.expr](binds), ast.Load())))
            tests.append(case.guard)
        else:
            assigned = [
                _at(place, ast.Assign([_at(place, ast.Name(target, ast.Store()))], value, None))
                for target, value in found.bound
            ]
            body = [*assigned, *body]
        if not tests:
            return body
        return [self._branch(place, tests, body, rest)]

    def _branch(
        self, place: ast.pattern, tests: Sequence[ast.expr], body: list[ast.stmt], rest: list[ast.stmt]
    ) -> ast.If:
        made = _at(place, ast.If(_all(place, tests), body, rest))
        line = self.located.lines[place.lineno - 1].encode()
        made.col_offset = max(line.rfind(b"case", 0, place.col_offset), 0)
        return made

    # ---- patterns ----------------------------------------------------------------------------------------------------

    def _pattern(self, pattern: ast.pattern, subject: ast.expr, found: _Pattern) -> None:
        match pattern:
            case ast.MatchValue(value):
                found.tests.append(_at(pattern, ast.Compare(subject, [ast.Eq()], [value])))
            case ast.MatchSingleton(value):
                found.tests.append(_at(pattern, ast.Compare(subject, [ast.Is()], [_constant(pattern, value)])))
            case ast.MatchAs(inner, name):
                if inner is not None:
                    self._pattern(inner, subject, found)
                if name is not None:
                    found.bound.append((name, subject))
            case ast.MatchOr(patterns):
                found.tests.append(_at(pattern, ast.BoolOp(ast.Or(), list(self._alternatives(patterns, subject)))))
            case ast.MatchSequence(patterns):
                self._sequence(pattern, patterns, subject, found)
            case ast.MatchMapping(keys, patterns, None):
                found.tests.append(_is_a(pattern, subject, _constant(pattern, dict)))
                for key, inner in zip(keys, patterns, strict=True):
                    found.tests.append(_at(pattern, ast.Compare(key, [ast.In()], [subject])))
                    self._pattern(inner, _at(inner, ast.Subscript(subject, key, ast.Load())), found)
            case ast.MatchClass(cls, patterns, names, inners):
                found.tests.append(_is_a(pattern, subject, cls))
                for k, inner in enumerate(patterns):
                    self._pattern(inner, _part(inner, subject, cls, k), found)
                for name, inner in zip(names, inners, strict=True):
                    self._pattern(inner, _at(inner, ast.Attribute(subject, name, ast.Load())), found)
            case _:
                raise UnsupportedSyntax(
                    "'**' in a pattern takes the rest of a dict.", "Match the keys.", self.located.span(pattern)
                )

    def _alternatives(self, patterns: Sequence[ast.pattern], subject: ast.expr) -> Iterator[ast.expr]:
        for pattern in patterns:
            found = _Pattern()
            self._pattern(pattern, subject, found)
            if found.bound:
                raise UnsupportedSyntax(
                    "an alternative of a pattern binds a name.", "Write a case for each.", self.located.span(pattern)
                )
            yield _all(pattern, found.tests)

    def _sequence(self, pattern: ast.pattern, parts: Sequence[ast.pattern], subject: ast.expr, found: _Pattern) -> None:
        found.tests.append(_is_a(pattern, subject, _constant(pattern, (tuple, list))))
        star = next((k for k, part in enumerate(parts) if isinstance(part, ast.MatchStar)), None)
        count = len(parts) - (star is not None)
        size = _call(pattern, len, [subject])
        compare = ast.Eq() if star is None else ast.GtE()
        found.tests.append(_at(pattern, ast.Compare(size, [compare], [_constant(pattern, count)])))
        for k, part in enumerate(parts):
            place = k if star is None or k < star else k - len(parts)
            if isinstance(part, ast.MatchStar):
                if part.name is not None:
                    stop = _constant(part, place + 1) if place + 1 else None
                    bounds = _at(part, ast.Slice(_constant(part, k), stop, None))
                    rest = _at(part, ast.Subscript(subject, bounds, ast.Load()))
                    found.bound.append((part.name, _call(part, list, [rest])))
                continue
            self._pattern(part, _at(part, ast.Subscript(subject, _constant(part, place), ast.Load())), found)


def _part(pattern: ast.pattern, subject: ast.expr, cls: ast.expr, k: int) -> ast.expr:
    """The value at a position of a class pattern."""
    if isinstance(cls, ast.Name) and cls.id in _ITSELF:
        return subject
    names = _at(pattern, ast.Attribute(cls, "__match_args__", ast.Load()))
    name = _at(pattern, ast.Subscript(names, _constant(pattern, k), ast.Load()))
    return _call(pattern, getattr, [subject, name])


def _is_a(place: ast.pattern, subject: ast.expr, cls: ast.expr) -> ast.expr:
    return _call(place, isinstance, [subject, cls])


def _call(place: ast.AST, func: Any, args: list[ast.expr]) -> ast.Call:
    return _at(place, ast.Call(_constant(place, func), args, []))


def _constant(place: ast.AST, value: Any) -> ast.Constant:
    return _at(place, ast.Constant(value, None))


def _all(place: ast.pattern, tests: Sequence[ast.expr]) -> ast.expr:
    if len(tests) == 1:
        return tests[0]
    return _at(place, ast.BoolOp(ast.And(), list(tests))) if tests else _constant(place, True)


def _at(place: ast.AST, node: Any) -> Any:
    return ast.copy_location(node, place)
