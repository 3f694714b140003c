"""Switches that plant one wrong thing in tapegen for a while, from outside: nothing in tapegen knows of them."""

from __future__ import annotations
import __future__

import ast
import contextlib
import dataclasses
import functools
import hashlib
import inspect
import linecache
import sys
import textwrap
from collections.abc import Callable, Iterator
from types import CodeType, ModuleType
from typing import Any

from tapegen.frontend.templates import cache
from tapegen.rules import registry
from tapegen.runtime import closure_sharing


class Stale(Exception):
    """The text that a defect changes is not there any more: write the defect anew for the text that is."""


@dataclasses.dataclass(frozen=True)
class Defect:
    """One wrong thing.

    Attributes
    ----------
    name : str
        What a careless author would have done.
    plant : callable
        Makes a context in which tapegen has it.
    in_text : bool
        Whether it shows in the generated text (if not, it is about how the text is called).
    reached : callable
        Whether deriving a program runs what is wrong.
    code : code object or None
        The function to watch for that.
    needs : str
        A pattern without which the text of a program cannot show the defect; it spares the look at most programs.
    tests : str
        Where an ordinary test is likely to find it: files and node ids of pytest, the likeliest first.
    unfound : str
        Why no ordinary test finds it, where none can.
    """

    name: str
    plant: Callable[[], contextlib.AbstractContextManager[None]]
    in_text: bool = True
    reached: Callable[[Reach], bool] = lambda reach: True
    code: CodeType | None = None
    needs: str = ""
    tests: str = ""
    unfound: str = ""


@dataclasses.dataclass(frozen=True)
class Reach:
    """What deriving a program ran, so that defects elsewhere need no look.

    Attributes
    ----------
    lines : set of (code, int)
        Lines of the functions that have defects.
    functions : set
        Functions that the program calls.
    """

    lines: set[tuple[CodeType, int]]
    functions: set[Any]


def edit(
    name: str,
    owner: Any,
    function: str,
    *changes: tuple[str, str],
    in_text: bool = True,
    tests: str = "",
    unfound: str = "",
) -> Defect:
    """A defect in the text of a function of a module, or of a method of a class.

    Each change replaces a piece of text that occurs once.
    """

    @contextlib.contextmanager
    def plant() -> Iterator[None]:
        original = vars(owner).get(function)
        if original is None:
            raise Stale(f"{name}: {owner.__name__} has no {function}")
        wrong = _edited(_plain(original), changes, name)
        if isinstance(owner, ModuleType):  # others may have imported it by name
            holders = [
                module
                for key, module in list(sys.modules.items())
                if key.partition(".")[0] in ("tapegen", "tests") and vars(module).get(function) is original
            ]
        else:
            holders = [owner]
        for holder in holders:
            setattr(holder, function, staticmethod(wrong) if isinstance(original, staticmethod) else wrong)
        _forget()
        try:
            yield
        finally:
            for holder in holders:
                setattr(holder, function, original)
            _forget()

    found = _plain(vars(owner).get(function))
    if found is None:
        return Defect(name, plant, in_text, tests=tests, unfound=unfound)
    lines = {(found.__code__, line) for line in _changed(found, changes)}
    reached = functools.partial(_runs, frozenset(lines))
    return Defect(name, plant, in_text, reached, found.__code__, tests=tests, unfound=unfound)


def _forget() -> None:
    """No program is shared with one that was derived with a defect, or without."""
    cache.forget()
    closure_sharing._KNOWN.clear()


def _runs(lines: frozenset[tuple[CodeType, int]], reach: Reach) -> bool:
    return not lines.isdisjoint(reach.lines)


def handler(name: str, function: Callable[..., Any], *changes: tuple[str, str], tests: str = "") -> Defect:
    """A defect in a function that stands in a table, where it was put when its module was imported."""

    @contextlib.contextmanager
    def plant() -> Iterator[None]:
        right = function.__code__
        function.__code__ = _edited(function, changes, name).__code__
        _forget()
        try:
            yield
        finally:
            function.__code__ = right
            _forget()

    lines = {(function.__code__, line) for line in _changed(function, changes)}
    return Defect(name, plant, True, functools.partial(_runs, frozenset(lines)), function.__code__, tests=tests)


def likely(tests: str, *defects: Defect) -> tuple[Defect, ...]:
    """Defects that the same tests are likely to find, but for those that say so themselves."""
    return tuple(defect if defect.tests else dataclasses.replace(defect, tests=tests) for defect in defects)


def rule(name: str, func: Callable[..., Any], *changes: tuple[str, str], needs: str = "") -> Defect:
    """A defect in the body of a derivative rule, for every function that has this rule."""

    @contextlib.contextmanager
    def plant() -> Iterator[None]:
        right = registry.rule_of(func)
        if right is None or right.body is None:
            raise Stale(f"{name}: {func.__name__} has no rule with a body")
        wrong = _edited(right.body, changes, name)
        changed = {key: kept for key, kept in registry._RULES.items() if kept.body is right.body}
        registry._RULES.update({key: dataclasses.replace(kept, body=wrong) for key, kept in changed.items()})
        _forget()
        try:
            yield
        finally:
            registry._RULES.update(changed)
            _forget()

    def reached(reach: Reach) -> bool:
        right = registry.rule_of(func)
        return any(kept.body is right.body for called in reach.functions if (kept := registry.rule_of(called)))

    module = (getattr(func, "__module__", None) or "scipy.special").replace("_operator", "operator")
    return Defect(
        name, plant, True, reached, None, needs, f"tests/rules/test_rules.py::test_rule[{module}.{func.__name__}]"
    )


def helper(name: str, owner: ModuleType, function: str, *changes: tuple[str, str]) -> Defect:
    """A defect in a function that rule bodies call: its text is written out, it does not run."""
    return dataclasses.replace(edit(name, owner, function, *changes), reached=lambda reach: True)


def _plain(function: Any) -> Any:
    """The function itself, without what a class or a cache puts around it."""
    return None if function is None else inspect.unwrap(getattr(function, "__func__", function))


@functools.cache
def _edited(function: Any, changes: tuple[tuple[str, str], ...], name: str) -> Any:
    source = textwrap.dedent(inspect.getsource(function))
    source = source[source.index("def ") :]  # without decorators
    for old, new in changes:
        if source.count(old) != 1:
            raise Stale(f"{name}: {function.__qualname__} has {source.count(old)} times {old!r}")
        source = source.replace(old, new)
    digest = hashlib.blake2b(source.encode(), digest_size=6).hexdigest()
    file = f"<planted {function.__name__} {digest}>"
    linecache.cache[file] = (len(source), None, source.splitlines(keepends=True), file)
    code = compile(source, file, "exec", __future__.annotations.compiler_flag)
    made: dict[str, Any] = {}
    exec(code, function.__globals__, made)
    return made[function.__name__]


def _changed(function: Any, changes: tuple[tuple[str, str], ...]) -> set[int]:
    """The lines of the statements that changes touch; of a compound statement, of its header."""
    source, first = inspect.getsource(function), function.__code__.co_firstlineno
    spans = []
    for node in ast.walk(ast.parse(textwrap.dedent(source))):
        if isinstance(node, ast.stmt):
            inner = [child.lineno for child in ast.iter_child_nodes(node) if isinstance(child, ast.stmt)]
            spans.append((node.lineno, min(inner) - 1 if inner else node.end_lineno or node.lineno))
    inner_functions = [
        node
        for node in ast.walk(ast.parse(textwrap.dedent(source)))
        if isinstance(node, ast.FunctionDef) and node.lineno > 1 and node.col_offset
    ]
    lines: set[int] = set()
    for old, _ in changes:
        start = source.count("\n", 0, source.find(old)) + 1
        stop = start + old.count("\n")
        for low, high in spans:
            if low <= stop and high >= start:
                lines.update(range(low, high + 1))
        for node in inner_functions:  # it has code of its own: that it is made says that it may run
            if node.lineno <= stop and (node.end_lineno or start) >= start:
                lines.add(node.lineno)
    return {first + line - 1 for line in lines}
