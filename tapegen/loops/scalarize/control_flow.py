"""Control flow of scalarized programs: facts inside of loops; messages and prints in variants that numba supports."""

from __future__ import annotations

import operator
from abc import abstractmethod
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, Literal

from tapegen.errors import NoCompiledForm
from tapegen.ir import intrinsics, traversal
from tapegen.ir.affine import Affine, is_int
from tapegen.ir.nodes import (
    Assign,
    Call,
    Const,
    Expr,
    For,
    Function,
    If,
    Load,
    Stmt,
    Store,
    Var,
    While,
)
from tapegen.ir.types import Array
from tapegen.loops.analysis.alias_pairs import Sharing
from tapegen.loops.analysis.symbolic_bounds import Extents, stable
from tapegen.loops.legalize.builder import Loop, LoopBuilder

Trials = Literal["remembered", "fresh", "none"]


class StructuredBuilder(LoopBuilder):
    """A builder that visits loops and branches, with the state that this needs.

    Parameters
    ----------
    function : Function
        The function that is visited.
    boundscheck : bool
        Whether indices that are not proved to be within bounds are checked.
    trials : {"remembered", "fresh", "none"}
        Whether trial runs over loops find the arrays that keep their extents, and whether results of trials are reused.
    """

    def __init__(self, function: Function, boundscheck: bool, speculative: bool, trials: Trials) -> None:
        super().__init__(function, Sharing(function), boundscheck, speculative)
        self.trials = trials
        self.settled: dict[Any, frozenset[Var]] = {}  # loops tried before, by the shapes on entry
        self.unsupported_views: dict[Var, NoCompiledForm] = {}  # views that numba does not support
        self.texts: dict[Var, Call] = {}  # strings by their pieces
        self.bound: set[Var] = set(function.params)  # arrays that are assigned here
        self.expected: dict[Var, Extents] = {}  # extents that a loop relies on
        self.violated: set[Var] = set()  # arrays whose extents changed

    @abstractmethod
    def loop_statements(self, stmt: For | While) -> Expr | None:
        """Emit the body of a loop (and the test of a while loop, which is returned)."""


def alternatives(bound: Expr, func: Any) -> tuple[Expr, ...]:
    """The bounds that all hold where a range ends at their `min` (starts at their `max`)."""
    if isinstance(bound, Call) and bound.func is func and all(is_int(arg) for arg in bound.args):
        return (bound, *bound.args)
    return (bound,)


def constant_message(w: StructuredBuilder, message: tuple[Expr, ...]) -> tuple[Expr, ...]:
    """The constant words of a message: numba supports no others."""
    words: list[str] = []
    for part in message:
        part = w.texts.get(part, part) if isinstance(part, Var) else part
        pieces = part.args if isinstance(part, Call) and part.func is intrinsics.fstring else (part,)
        words += [str(piece.value) if isinstance(piece, Const) else "..." for piece in pieces]
    return (Const("".join(words)),) if words else ()


def printed(w: StructuredBuilder, call: Call) -> Call:
    """`print(f"x = {x}")` as `print("x =", x)`: numba does not format scalars, but prints them as Python does."""
    if any(isinstance(getattr(value, "value", None), intrinsics.StandardStream) for _, value in call.kwargs):
        raise w.unsupported("print to a file")
    given = tuple(w.texts.get(arg, arg) if isinstance(arg, Var) else arg for arg in call.args)
    if call.func is not print or not any(_is_fstring(arg) for arg in given):
        return call
    words: list[Expr] = []
    for arg in given:
        if isinstance(arg, Call) and arg.func is intrinsics.fstring:
            words += _words(w, arg)
        else:
            words.append(arg)
    return Call(print, tuple(words), call.kwargs, call.type)


def _is_fstring(expr: Expr) -> bool:
    return isinstance(expr, Call) and expr.func is intrinsics.fstring


def _words(w: StructuredBuilder, text: Call) -> list[Expr]:
    """The pieces of a text that are separated by exactly one space."""
    words: list[Expr] = []
    joined = True  # whether this piece may start where the previous one ends
    for part in text.args:
        if isinstance(part, Const) and isinstance(part.value, str):
            if not joined and not part.value.startswith(" "):
                break
            inner = part.value.removeprefix(" ") if words else part.value
            joined = inner.endswith(" ") or not inner
            if inner.removesuffix(" "):
                words.append(Const(inner.removesuffix(" ")))
        elif joined:
            words.append(part)
            joined = False
        else:
            break
    else:
        return words
    raise w.unsupported("print of an f-string")


class Recorded:
    """Facts about integers on tapes: what is known where the forward sweep stores them holds where they are read back.

    Parameters
    ----------
    function : Function
        The function that is visited.
    """

    def __init__(self, function: Function) -> None:
        self._unsure: dict[Var, set[Stmt]] = {}  # for each tape the stores of possibly negative values
        for stmt in traversal.statements(function.body) if function.tapes else ():
            if isinstance(stmt, Store) and stmt.array in function.tapes:
                self._unsure.setdefault(stmt.array, set()).add(stmt)

    def store(self, w: StructuredBuilder, stmt: Store) -> None:
        """Record a store, perhaps once more with other facts."""
        unsure = self._unsure.get(stmt.array)
        if unsure is not None and is_int(stmt.value):
            (unsure.discard if w.facts.nonnegative(w.facts.form(stmt.value)) else unsure.add)(stmt)

    def load(self, w: StructuredBuilder, target: Var, value: Expr) -> None:
        """Record the facts about an integer that has just been read."""
        if isinstance(value, Load) and is_int(target) and self._unsure.get(value.array) == set():
            w.facts.assume(Affine.atom(target))


# ---- loops -----------------------------------------------------------------------------------------------------------


@contextmanager
def loop_body(w: StructuredBuilder, stmt: For | While, loop: Loop) -> Iterator[list[Stmt]]:
    """The facts inside a loop: what the loop assigns is unknown except for what every iteration preserves."""
    counters = [fact for var in loop.assigned if is_int(var) for fact in _kept_bounds(w, stmt, loop, var)]
    shapes = _lasting_shapes(w, stmt, loop)
    w.forget(loop.assigned)
    outer, expected = w.facts, w.expected
    with _inside(w, loop, shapes):
        w.expected = {**expected, **shapes}
        for var, fact in counters:
            w.facts.mentioned.add(var)
            w.facts.assume(fact)
        with w.block() as body:
            yield body
    w.facts, w.expected = outer, expected
    for var, extents in shapes.items():
        w.facts.set_shape(var, extents)
    loop.assigned -= shapes.keys()


@contextmanager
def _inside(w: StructuredBuilder, loop: Loop, shapes: dict[Var, Extents]) -> Iterator[None]:
    facts, views = w.facts, w.views
    loop.outside = facts
    w.facts, w.views = facts.copy(), dict(views)
    w.loops.append(loop)
    w.branches.append(0)
    for var, extents in shapes.items():
        w.facts.set_shape(var, extents)
    try:
        yield
    finally:
        w.loops.pop()
        w.branches.pop()
        w.facts, w.views = facts, views


def _kept_bounds(w: StructuredBuilder, stmt: For | While, loop: Loop, var: Var) -> Iterator[tuple[Var, Affine]]:
    """Forms that stay non-negative in every iteration, for an integer that a loop changes in one direction only."""
    start = w.facts.form(var)
    steps = _steps(stmt, var)
    if not steps:
        return
    up, down = min(steps) >= 0, max(steps) <= 0
    if up and w.facts.nonnegative(start):
        yield var, Affine.atom(var)
    if (up or down) and not any(_mentions(atom, loop.assigned) for atom in start.atoms):
        yield var, Affine.atom(var) - start if up else start - Affine.atom(var)


def _steps(loop: For | While, var: Var) -> list[int]:
    """The increments that the assignments of a loop add to an integer; empty if one does something else."""
    found: list[int] = []
    for stmt in traversal.statements((loop,)):
        if isinstance(stmt, For) and stmt.target == var:
            return []
        if isinstance(stmt, Assign) and var in stmt.targets:
            value = (
                stmt.value.args[0]
                if isinstance(stmt.value, Call) and stmt.value.func is intrinsics.exact
                else stmt.value
            )
            match value:
                case Call(operator.add, (a, Const(int() as step))) if a == var:
                    found.append(step)
                case Call(operator.sub, (a, Const(int() as step))) if a == var:
                    found.append(-step)
                case _:
                    return []
    return found


def _lasting_shapes(w: StructuredBuilder, stmt: For | While, loop: Loop) -> dict[Var, Extents]:
    """Extents that arrays assigned in a loop have in every iteration, found by trial."""
    arrays = sorted((var for var in loop.assigned if _is_carried(w, stmt, var)), key=lambda var: var.name)
    if not arrays or w.trials == "none":
        return {}
    unchanged: dict[Var, Extents] = {}
    for var in arrays:
        extents = w.array(var).extents
        if any(_mentions(extent.size, loop.assigned) for extent in extents):
            extents = tuple(_named_size(w, extent) for extent in extents)
        if all(stable(extent.form) for extent in extents):
            unchanged[var] = extents
    tried = (stmt, tuple(unchanged.items()))
    if tried in w.settled:
        return {var: extents for var, extents in unchanged.items() if var in w.settled[tried]}
    while unchanged:
        broken = _trial(w, stmt, loop, unchanged)
        if broken.isdisjoint(unchanged):
            break
        unchanged = {var: extents for var, extents in unchanged.items() if var not in broken}
    if w.trials == "remembered":
        w.settled[tried] = frozenset(unchanged)
    return unchanged


def _is_carried(w: StructuredBuilder, loop: For | While, var: Var) -> bool:
    """Whether an iteration may read the array that the previous one left in a variable; an assigned tape grows."""
    if not isinstance(var.type, Array) or var not in w.bound or var in w.tapes:
        return False
    for stmt in (If(loop.test, ()), *loop.body) if isinstance(loop, While) else loop.body:
        if var in traversal.reads(stmt):
            return True
        if var in stmt.targets:
            return False
    return False


def _mentions(size: Expr, names: set[Var]) -> bool:
    return not names.isdisjoint(traversal.free_vars(size))


def _named_size(w: StructuredBuilder, extent: Any) -> Any:
    if extent.is_unit:
        return extent
    never_one = w.facts.is_never_one(extent.form)
    size = w.clamped(extent)
    var = w.fresh("n", size.type)
    w.emit(Assign((var,), size, w.origin))
    w.optional.add(var)
    if never_one:
        w.facts.never_one |= {var}
    w.facts.assume(Affine.atom(var))
    return w.extent(var)


def _trial(w: StructuredBuilder, stmt: For | While, loop: Loop, shapes: dict[Var, Extents]) -> set[Var]:
    """Visit a loop without emitting anything, and return the arrays that do not keep these extents."""
    saved = (
        w.names,
        w.facts,
        w.views,
        w.statement,
        set(w.optional),
        dict(w.unsupported_views),
        w.expected,
        set(w.bound),
    )
    more = (dict(w.layouts), dict(w.texts))
    outer = [(each, len(each.before), len(each.lasting), each.outside.passed) for each in w.loops]
    counters = list(w._counters)
    w.names, w.facts, w.views = w.names.copy(), w.facts.copy(), dict(w.views)
    w.expected = dict(shapes)
    broken: set[Var] = set()
    w.violated, before = broken, w.violated
    try:
        w.forget(loop.assigned)
        with _inside(w, loop, shapes), w.block():
            w.loop_statements(stmt)
    finally:
        w.names, w.facts, w.views, w.statement, w.optional, w.unsupported_views, w.expected, w.bound = saved
        w.layouts, w.texts = more
        w.violated = before
        w._counters = counters
        loop.before.clear()
        loop.lasting.clear()
        for each, before_length, lasting_length, passed in outer:
            each.outside.passed = passed
            del each.before[before_length:]
            del each.lasting[lasting_length:]
    return broken
