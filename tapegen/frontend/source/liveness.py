"""Liveness analysis on the syntax tree: names that an If must join and a loop must carry.

The analysis works on names in the text of one function, once per definition, in one pass up (what each statement reads
and certainly binds) and one pass down (what is read after it).
"""

from __future__ import annotations

import ast
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

import gast

from tapegen.frontend.source.syntax_tree import bound_names, children

_ESCAPES = tuple(getattr(module, kind) for module in (ast, gast) for kind in ("Return", "Break", "Continue", "Raise"))

Names = frozenset[str]
NONE: Names = frozenset()
_COMPREHENSIONS = (gast.ListComp, gast.SetComp, gast.DictComp, gast.GeneratorExp)


@dataclass(slots=True)
class Liveness:
    """Facts about one function definition; statements are keyed by identity.

    Attributes
    ----------
    out : dict
        Names that may be read after an If, For or While.
    head : dict
        Names that may be read at the start of an iteration or after the loop.
    assigned : dict
        Names that a loop may bind, in order of the text.
    captured : frozenset of str
        Names that inner functions read or assign: they count as live everywhere.
    loads : Counter
        How often each name is read in the text.
    """

    out: dict[int, Names] = field(default_factory=dict)
    head: dict[int, Names] = field(default_factory=dict)
    assigned: dict[int, tuple[str, ...]] = field(default_factory=dict)
    captured: Names = NONE
    loads: Counter[str] = field(default_factory=Counter)


@dataclass(frozen=True, slots=True)
class _Flow:
    """`exposed`: read before bound.  `bound`: bound on every path that falls through; None when no path does."""

    exposed: Names
    bound: Names | None


def liveness_of(function: gast.FunctionDef | gast.Lambda) -> Liveness:
    """Analyze a function; inner functions count as reads of the variables they capture."""
    body = function.body if isinstance(function.body, list) else [gast.Return(function.body)]
    pass_ = _Pass(Liveness())
    pass_.scan(body)
    pass_.down(body, NONE, NONE, NONE)
    return pass_.facts


class _Pass:
    def __init__(self, facts: Liveness) -> None:
        self.facts = facts
        self.flows: dict[int, _Flow] = {}

    def scan(self, body: list[gast.stmt]) -> None:
        captured: set[str] = set()
        loads: list[str] = []
        work: list[Any] = list(body)
        while work:
            node = work.pop()
            kind = type(node)
            if kind is gast.Name:
                if type(node.ctx) is gast.Load:
                    loads.append(node.id)
                continue
            if kind is gast.FunctionDef or kind is gast.Lambda:
                captured |= reads(node.body if isinstance(node.body, list) else [node.body]) - bound_names(node)
            elif kind is gast.Nonlocal:
                captured.update(node.names)
            work += children(node)
        self.facts.loads = Counter(loads)
        self.facts.captured = frozenset(captured)

    # ---- bottom-up ---------------------------------------------------------------------------------------------------

    def flow(self, stmt: gast.stmt) -> _Flow:
        found = self.flows.get(id(stmt))
        if found is None:
            found = self.flows[id(stmt)] = self._flow(stmt)
        return found

    def _flow(self, stmt: gast.stmt) -> _Flow:
        match stmt:
            case gast.If():
                body, orelse = self.block(stmt.body), self.block(stmt.orelse)
                exposed = reads([stmt.test]) | body.exposed | orelse.exposed
                if body.bound is None or orelse.bound is None:
                    return _Flow(exposed, orelse.bound if body.bound is None else body.bound)
                return _Flow(exposed, body.bound & orelse.bound)
            case gast.For():
                inside = self.block(stmt.body).exposed - bound_in(stmt.target)
                return _Flow(reads([stmt.iter, stmt.target]) | inside | self.block(stmt.orelse).exposed, NONE)
            case gast.While():
                inside = self.block(stmt.body).exposed
                return _Flow(reads([stmt.test]) | inside | self.block(stmt.orelse).exposed, NONE)
            case gast.Return() | gast.Raise() | gast.Break() | gast.Continue():
                return _Flow(reads([stmt]), None)
        exposed = reads([stmt])
        if isinstance(stmt, gast.AugAssign):
            exposed |= bound_in(stmt.target)
        return _Flow(exposed, bound_by(stmt))

    def block(self, body: list[gast.stmt]) -> _Flow:
        exposed: Names = NONE
        bound: Names = NONE
        for stmt in body:
            flow = self.flow(stmt)
            exposed |= flow.exposed - bound
            if flow.bound is None:
                return _Flow(exposed, None)
            bound |= flow.bound
        return _Flow(exposed, bound)

    # ---- top-down ----------------------------------------------------------------------------------------------------

    def down(self, body: list[gast.stmt], live: Names, at_break: Names, at_continue: Names) -> Names:
        """Record what is live after each statement of a block; returns what is live before the block."""
        for stmt in reversed(body):
            match stmt:
                case gast.If():
                    self.facts.out[id(stmt)] = live
                    inside = (self.down(block, live, at_break, at_continue) for block in (stmt.body, stmt.orelse))
                    live = reads([stmt.test]).union(*inside)
                case gast.For() | gast.While():
                    live = self.loop(stmt, live, at_break, at_continue)
                case gast.Return() | gast.Raise():
                    live = reads([stmt])
                case gast.Break():
                    live = at_break
                case gast.Continue():
                    live = at_continue
                case _:
                    flow = self.flow(stmt)
                    live = flow.exposed | (live - (flow.bound or NONE))
        return live

    def loop(self, stmt: gast.For | gast.While, live: Names, at_break: Names, at_continue: Names) -> Names:
        left = self.down(stmt.orelse, live, at_break, at_continue)
        self.facts.out[id(stmt)] = live | left
        exposed = self.block(stmt.body).exposed
        if isinstance(stmt, gast.For):
            head = left | live | (exposed - bound_in(stmt.target))
            before = head | reads([stmt.iter, stmt.target])
        else:
            head = before = left | live | exposed | reads([stmt.test])
        self.facts.head[id(stmt)] = head
        self.facts.assigned[id(stmt)] = loop_binds(stmt)
        self.down(stmt.body, head, live, head)
        return before


# ---- names in the text ---------------------------------------------------------------------------------------------


def walk(nodes: Iterable[gast.AST]) -> Iterator[gast.AST]:
    """All nodes in order of the text, parents first."""
    work = list(nodes)[::-1]
    while work:
        node = work.pop()
        yield node
        if type(node) is not gast.Name:
            work.extend(children(node)[::-1])


def reads(nodes: Iterable[gast.AST]) -> Names:
    """Names that expressions or simple statements read, those that inner functions capture included."""
    found: set[str] = set()
    work: list[Any] = list(nodes)
    while work:
        node = work.pop()
        kind = type(node)
        if kind is gast.Name:
            if type(node.ctx) is not gast.Store:  # `del name` requires that it is bound
                found.add(node.id)
        elif kind is gast.FunctionDef or kind is gast.Lambda:
            inner = node.body if isinstance(node.body, list) else [node.body]
            found |= reads(inner) - bound_names(node)
            work.extend(node.args.defaults)
            work.extend(default for default in node.args.kw_defaults if default is not None)
        elif kind in _COMPREHENSIONS:
            targets = frozenset[str]().union(*(bound_in(part.target) for part in node.generators))
            work.append(node.generators[0].iter)
            rest = [child for child in children(node) if not isinstance(child, gast.comprehension)]
            for k, part in enumerate(node.generators):
                rest.extend([*part.ifs, *([part.iter] if k else [])])
            found |= reads(rest) - targets
        else:
            work.extend(children(node))
    return frozenset(found)


def bound_in(target: gast.AST) -> Names:
    """Names that an assignment target binds."""
    return frozenset(
        node.id for node in walk([target]) if isinstance(node, gast.Name) and isinstance(node.ctx, gast.Store)
    )


def bound_by(stmt: gast.stmt) -> Names:
    """Names that a simple statement certainly binds."""
    match stmt:
        case gast.Assign():
            return frozenset[str]().union(*map(bound_in, stmt.targets))
        case gast.AugAssign():
            return bound_in(stmt.target)
        case gast.AnnAssign():
            return bound_in(stmt.target) if stmt.value is not None else NONE
        case gast.FunctionDef():
            return frozenset({stmt.name})
        case gast.Import() | gast.ImportFrom():
            return frozenset(alias.asname or alias.name.partition(".")[0] for alias in stmt.names)
    return NONE


def loop_binds(loop: gast.For | gast.While) -> tuple[str, ...]:
    """Names that a loop may bind, in order of the text."""
    return tuple(dict.fromkeys(_assigned(loop)))


def _assigned(loop: gast.For | gast.While) -> Iterator[str]:
    parts = [loop.target, *loop.body] if isinstance(loop, gast.For) else [loop.test, *loop.body]
    work = parts[::-1]
    while work:
        node = work.pop()
        if isinstance(node, gast.FunctionDef):
            yield node.name
        elif isinstance(node, (gast.Import, gast.ImportFrom)):
            yield from bound_by(node)
        elif isinstance(node, gast.Name) and isinstance(node.ctx, gast.Store):
            yield node.id
        elif isinstance(node, _COMPREHENSIONS):
            yield from (inner.target.id for inner in walk([node]) if isinstance(inner, gast.NamedExpr))
        elif not isinstance(node, gast.Lambda):
            work.extend(children(node)[::-1])


# ---- escapes -------------------------------------------------------------------------------------------------------


def has_escape(body: Iterable[gast.stmt], *, in_loop: bool = False) -> bool:
    """Whether a block contains a return, or a break or continue of an enclosing loop."""
    for stmt in body:
        match stmt:
            case gast.Return():
                return True
            case gast.Break() | gast.Continue():
                if not in_loop:
                    return True
            case gast.If():
                if has_escape(stmt.body, in_loop=in_loop) or has_escape(stmt.orelse, in_loop=in_loop):
                    return True
            case gast.For() | gast.While():
                if has_escape(stmt.body, in_loop=True) or has_escape(stmt.orelse, in_loop=in_loop):
                    return True
    return False


def always_escapes(body: Sequence[ast.stmt | gast.stmt]) -> bool:
    """Whether no path falls through the end of a block."""
    for stmt in body:
        if isinstance(stmt, _ESCAPES):
            return True
        if isinstance(stmt, (ast.If, gast.If)) and stmt.orelse and all(map(always_escapes, (stmt.body, stmt.orelse))):
            return True
    return False
