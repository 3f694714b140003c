"""Loops at run time, with carried variables.

The body is lowered with the types that the variables have before the loop.  Where the ends of its paths disagree with
that assumption (`x = 0` that becomes a float, a list that grows), it is lowered again with the join of both.
"""

from __future__ import annotations

from collections.abc import Container, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import gast

from tapegen.errors import NotDifferentiable, TapegenError
from tapegen.frontend.expressions.comparisons import condition, try_expression
from tapegen.frontend.expressions.expressions import Given, owner_of
from tapegen.frontend.lowering.control_flow import FALL, End, Region, run
from tapegen.frontend.lowering.statements import assign_target
from tapegen.frontend.values.context import Builder, Context, OpenIf, OpenLatch, OpenLoop, Unreachable
from tapegen.frontend.values.dynamic_lists import Widen, needs_widening, widen_cell
from tapegen.frontend.values.materialize import not_
from tapegen.frontend.values.phi import ANYTHING, Merge, frames_of, look_up
from tapegen.frontend.values.pytree import Leaf, StaticValue, Struct
from tapegen.frontend.values.state import (
    ABSENT,
    BREAK,
    RESULT,
    RETURN,
    TRUE,
    Cell,
    Choice,
    Head,
    Key,
    Maybe,
    Poison,
    Ref,
    RunList,
    Series,
    State,
)
from tapegen.frontend.values.type_sets import kinds_of
from tapegen.ir.nodes import Break, Call, Const, Effect, Expr, Var
from tapegen.ir.progress_bars import step_progress
from tapegen.ir.types import BOOL, INT, STATIC, Array

EXIT = "exit"


MOST_READINGS = 12
"""Limit of fixpoint iterations until the types of the variables of a body must agree."""


@dataclass(eq=False, slots=True)
class RunTimeLoop:
    """A loop at run time.  `head` and `after`: variables live at the start of an iteration and after the loop."""

    cx: Context
    stmt: gast.For | gast.While
    head: frozenset[str]
    after: frozenset[str]
    series: Series | None = None
    counter: Var | None = None
    left: bool | Expr = False  # whether the loop was exited by break
    test: Expr = Const(True)
    bounds: tuple[Expr, Expr, Expr] | None = None
    ends: list[End] = field(default_factory=list)
    own: set[Var] = field(default_factory=set)  # the counter and the carried variables of the last attempt
    lent: set[Key] = field(default_factory=set)  # variables of returned functions, read by closures that they returned
    refusal: TapegenError | None = None  # why it is unrolled
    before: frozenset[int] = frozenset()  # the containers that exist before the loop

    def run(self, series: Series | None = None) -> None:
        """Emit the For or While."""
        cx = self.cx
        self.series = series
        runs = bool(series is not None and isinstance(series.length, int))
        if series is None:
            first = try_expression(cx, self.stmt.test)
            if first is False:
                return
            runs = first is True
        entry = cx.state
        keys: list[Key | int] = [key for key in self._assigned() if key[1] in self.head]
        self.before = frozenset(entry.cells)
        merge = self._merge(entry)
        templates = {key: self._template(merge, key, [(_get(entry, key), entry)]) for key in keys}
        for _ in range(MOST_READINGS):
            head = Head({key: template for key, template in templates.items() if isinstance(key, tuple)})
            start = merge.state.copy()
            for key, template in templates.items():
                _set(start, key, template)
            self.own.update(merge.new)
            resized = cx.containers.resized.copy()
            body = self._read(start, head)
            if series is not None and any(cx.containers.resized[cell] > resized[cell] for cell in series.lists):
                raise changes_length(cx)
            try:
                found, other, agreed = self._compare(entry, templates, head)
            except Widen as widen:
                cx.state = entry
                for number, sides in widen.lists.items():
                    widen_cell(cx, number, sides, None if series is None else self.stmt)
                entry = cx.state
                merge = self._merge(entry)
                templates = {
                    key: self._template(merge, key, [(_get(entry, key), entry)])
                    for key in templates
                    if key not in widen.lists
                }
                continue
            if agreed:
                other.new |= merge.new
                other.state.cells = {**merge.state.cells, **other.state.cells}
                self._lend(entry, found, other)
                self._close(entry, found, other, body, runs)
                return
            templates, merge = found, other
        raise cx.refusal(
            NotDifferentiable,
            "the types of the variables of this loop do not converge.",
            "Give each variable the type before the loop that it has in the loop.",
        )

    def _assigned(self) -> list[Key]:
        """The variables that the loop may bind; boxed variables are merged as containers."""
        owners = [(owner_of(self.cx, name), name) for name in self.cx.frame.live.assigned[id(self.stmt)]]
        return [(frame, name) for frame, name in owners if name not in frame.boxed]

    # ---- lowering the body -------------------------------------------------------------------------------------------

    def _read(self, start: State, head: Head) -> Builder:
        """Lower the body once; the ends of its paths stay open."""
        cx = self.cx
        body = Builder()
        self.ends = []
        cx.heads.append(head)
        cx.frame.loops.append((self.head, self.after))
        around, cx.loop = cx.loop, cx.loop if self.series is None else (self.stmt, self.before)
        try:
            with cx.block(body, start):
                try:
                    with cx.at(self.stmt, statement=True):
                        into = self._start_of_iteration()
                    if into is not None:
                        run(cx, into, Region(self.head, self.ends))
                except Unreachable:
                    pass
        finally:
            cx.loop = around
            cx.heads.pop()
            cx.frame.loops.pop()
        return body

    def _start_of_iteration(self) -> Sequence[gast.stmt] | None:
        """Lower the start of an iteration; returns the body unless it has been lowered already."""
        cx, stmt, series = self.cx, self.stmt, self.series
        if series is not None:
            base = stmt.target.id if isinstance(stmt.target, gast.Name) and series.bounds else "k"
            self.counter = cx.new_var(base, INT)
            self.own.add(self.counter)
            self.bounds = series.bounds or (Const(0), _length(series), Const(1))
            index = Leaf(self.counter)
            assign_target(cx, stmt.target, index if series.bounds else series.item(index))
            return stmt.body
        before = cx.state.copy()
        test = try_expression(cx, stmt.test)
        if test is not None:
            self.test = Const(test) if isinstance(test, bool) else test
            return stmt.body
        # the test needs statements, so it is emitted inside the loop
        cx.state = before
        self.test = Const(True)
        test = condition(cx, stmt.test)
        if test is True:
            return stmt.body
        if test is False:
            self.ends.append(End(EXIT, cx.builder, cx.state))
            return None
        opened = OpenIf(test, Builder(), Builder(), cx.origin)
        outer = cx.state
        with cx.block(opened.body, outer.copy()):
            run(cx, stmt.body, Region(self.head, self.ends))
        with cx.block(opened.orelse, outer.copy()):
            self.ends.append(End(EXIT, cx.builder, cx.state))
        cx.emit(opened)
        return None

    # ---- join of the types of all iterations -------------------------------------------------------------------------

    def _matters(self, key: Key | int, end: End) -> bool:
        """Whether the value of a variable at the end of a path is read later."""
        if end.kind == FALL or isinstance(key, int):
            return end.kind != RETURN or isinstance(key, int)
        return end.kind in (BREAK, EXIT) and self._is_read_after(key)

    def _is_read_after(self, key: Key) -> bool:
        return key[1] in self.after or key in self.lent

    def _merge(self, entry: State, templates: Mapping[Key | int, Any] | None = None) -> Merge:
        """The phis of the loop.  Containers older than the loop keep their identity; others are new in each iteration.

        `templates` are those with which the body was lowered.
        """
        found = {number: cell for number, cell in entry.cells.items() if number in self.before}
        assumed = {value.cell for value in (templates or {}).values() if isinstance(value, Ref)}
        return Merge(self.cx, entry.copy(), State(entry.vars, found, entry.taken), fresh=True, assumed=assumed)

    def _template(self, merge: Merge, key: Key | int, sides: list[tuple[Any, State]]) -> Any:
        if isinstance(key, int):
            return merge.contents(sides)
        for value, _ in sides:
            self.cx.observe(key, value)
        return merge.template(key[1], sides)

    def _compare(
        self, entry: State, templates: dict[Key | int, Any], head: Head
    ) -> tuple[dict[Key | int, Any], Merge, bool]:
        """The join of the start and all ends of the iteration, and whether the body was lowered with it."""
        cx = self.cx
        merge = self._merge(entry, templates)
        found: dict[Key | int, Any] = {}
        agreed = True
        changed = [
            number for number, cell in entry.cells.items() if number not in templates and self._changes(number, cell)
        ]
        compared = {key: self._sides(entry, key) for key in [*templates, *changed]}
        grown = {key: sides for key, sides in compared.items() if isinstance(key, int) and needs_widening(sides)}
        if grown:
            raise Widen(grown)
        for key, sides in compared.items():
            template = self._template(merge, key, sides)
            if isinstance(key, int) and getattr(template, "kind", "") == "poison" and self.series is not None:
                cx.containers.unsettled.setdefault(key, self.stmt)
            if key in templates and _same_shape(cx, templates[key], template, self.before):
                found[key] = templates[key]
                continue
            found[key] = template
            kept = key in templates and any(value is templates[key] for value, _ in sides)
            agreed = agreed and not (isinstance(key, int) or key in head.observed or kept)
        if not agreed:  # all phis anew, so that they form one consistent set
            again = self._merge(entry, templates)
            fresh = {key: self._template(again, key, self._sides(entry, key)) for key in found}
            return fresh, again, False
        return found, merge, True

    def _lend(self, entry: State, templates: dict[Key | int, Any], merge: Merge) -> None:
        """Add variables of functions called in an iteration that closures returned by them read after the loop."""
        values = [value for key, value in templates.items() if not isinstance(key, int) and key[1] in self.after]
        while values:
            for frame in frames_of(values.pop(), merge.state):
                for key in ((frame, name) for name in sorted(frame.live.captured - frame.boxed)):
                    made = any(key in end.state.vars for end in self.ends if end.kind != RETURN)
                    if made and key not in templates and key not in entry.vars:
                        self.lent.add(key)
                        templates[key] = self._template(merge, key, self._sides(entry, key))
                        values.append(templates[key])

    def _sides(self, entry: State, key: Key | int) -> list[tuple[Any, State]]:
        """The values of a variable or container at the start of the iteration, and at the ends where it is live."""
        sides = [(_get(entry, key), entry)]
        return sides + [(_get(end.state, key), end.state) for end in self.ends if self._matters(key, end)]

    def _changes(self, number: int, cell: Cell) -> bool:
        return any(end.state.cells[number].content is not cell.content for end in self.ends)

    # ---- emitting the loop -------------------------------------------------------------------------------------------

    def _close(self, entry: State, templates: dict[Key | int, Any], merge: Merge, body: Builder, runs: bool) -> None:
        """Emit the first values, the ends of the paths, and the loop; continue with the state after it."""
        cx = self.cx
        cx.state = entry
        first: dict[Var, Expr] = {}
        latches: list[dict[Var, Expr]] = [{} for _ in self.ends]
        for key, template in templates.items():
            merge.fill(template, _get(entry, key), entry, first.__setitem__)
            for end, latch in zip(self.ends, latches, strict=True):
                if self._matters(key, end):
                    merge.fill(template, _get(end.state, key), end.state, latch.__setitem__)
        if self.series is not None and self.series.bar:
            for end in self.ends:
                if end.kind == FALL:
                    end.builder.items.append(progress_step(cx))
        returns = self._returns(entry, merge, first, latches)
        breaks = [end for end in self.ends if end.kind == BREAK]
        if self.stmt.orelse and breaks:
            self.left = left = cx.new_var("left", BOOL)
            first[left] = Const(False)
            for end, latch in zip(self.ends, latches, strict=True):
                if end.kind == BREAK:
                    latch[left] = Const(True)
        self._drop_invariant(first, latches)
        for end, latch in zip(self.ends, latches, strict=True):
            if latch:
                end.builder.items.append(OpenLatch(list(latch.items()), cx.origin))
            if end.kind != FALL:
                end.builder.items.append(Break(cx.origin))
        if first:
            cx.emit(OpenLatch(list(first.items()), cx.origin, first=True))
        target = self.counter if self.series is not None else None
        cx.emit(OpenLoop(body, cx.origin, self.test, target, self.bounds))
        cx.state = self._after_loop(entry, templates, merge, runs)
        self._after_returns(returns, bool(breaks))

    def _returns(
        self, entry: State, merge: Merge, first: dict[Var, Expr], latches: list[dict[Var, Expr]]
    ) -> tuple[Var, Any] | None:
        """A return sets a flag and a result, which are tested after the loop."""
        cx = self.cx
        ends = [(end, latch) for end, latch in zip(self.ends, latches, strict=True) if end.kind == RETURN]
        if not ends:
            return None
        flag = cx.new_var("returned", BOOL)
        first[flag] = Const(False)
        result = merge.template("result", [(end.state.vars[RESULT], end.state) for end, _ in ends])
        merge.fill(result, ANYTHING, entry, first.__setitem__)
        for end, latch in ends:
            latch[flag] = Const(True)
            merge.fill(result, end.state.vars[RESULT], end.state, latch.__setitem__)
        return flag, result

    def _after_returns(self, returns: tuple[Var, Any] | None, breaks: bool) -> None:
        cx = self.cx
        endless = self.test == Const(True) and self.series is None and not any(end.kind == EXIT for end in self.ends)
        if returns is not None:
            flag, result = returns
            cx.state.vars[RETURN] = TRUE if endless and not breaks else Leaf(flag)
            cx.state.vars[RESULT] = result
        elif endless and not breaks:
            cx.builder.dead = True

    def _drop_invariant(self, first: dict[Var, Expr], latches: list[dict[Var, Expr]]) -> None:
        """Drop the variables that no path changes: they keep their values from before the loop."""
        cx = self.cx
        for latch in latches:
            for var in [var for var, value in latch.items() if cx.symbols.resolve(value) == var]:
                del latch[var]
        changed = {var for latch in latches for var in latch}
        for var in [var for var in first if var not in changed]:
            value = cx.symbols.resolve(first.pop(var))
            cx.symbols.substitution[var] = value
            if isinstance(value, Var) and isinstance(value.type, Array):
                cx.symbols.roots[var] = cx.symbols.roots_of(value)

    def _after_loop(self, entry: State, templates: dict[Key | int, Any], merge: Merge, runs: bool) -> State:
        state = merge.state.copy()
        for name in self._assigned():
            state.vars.pop(name, None)
        for key, template in templates.items():
            if isinstance(key, int) or self._is_read_after(key):
                _set(state, key, self._certain(key, template) if runs else template)
        return state

    def _certain(self, key: Key | int, template: Any) -> Any:
        """After a loop that runs at least once, a variable that every exit has bound is bound."""
        if not isinstance(template, Maybe) or isinstance(key, int):
            return template
        ways = [
            end for end in self.ends if end.kind in (BREAK, EXIT) or (end.kind == FALL and self.test != Const(True))
        ]
        if self.series is not None:
            ways = [end for end in self.ends if end.kind != RETURN]
        bound = [_get(end.state, key) for end in ways]
        return (
            template.value if all(value is not ABSENT and not isinstance(value, Maybe) for value in bound) else template
        )

    def otherwise(self) -> list[gast.stmt]:
        """The else clause: it runs unless the loop was exited by break."""
        if self.left is False:
            return self.stmt.orelse
        return [guarded(self.cx, self.stmt, not_(self.left), self.stmt.orelse)]


def _get(state: State, key: Key | int) -> Any:
    return state.cells[key].content if isinstance(key, int) else look_up(state, key)


def _set(state: State, key: Key | int, value: Any) -> None:
    if isinstance(key, int):
        state.cells[key] = Cell(value, state.cells[key].frozen)
    elif value is ABSENT or value is ANYTHING:
        state.vars.pop(key, None)
    else:
        state.vars[key] = value


def changes_length(cx: Context) -> TapegenError:
    return cx.refusal(
        NotDifferentiable,
        "the list or dict that this loop runs over may change its length in it.",
        "Loop over a copy (list(...)), or write a 'while' loop.",
    )


def _length(series: Series) -> Expr:
    return number_expr(series.length)


def number_expr(number: Any) -> Expr:
    return Const(number) if number is None or isinstance(number, int) else number


def progress_step(cx: Context) -> Effect:
    """An iteration of a loop with a progress bar is done."""
    return Effect(Call(step_progress, (), (), STATIC), cx.origin)


def guarded(cx: Context, loop: gast.For | gast.While, test: bool | Expr, body: list[gast.stmt]) -> gast.If:
    """`if test: body` after a loop."""
    made = gast.If(Given(StaticValue(test) if isinstance(test, bool) else Leaf(test)), body, [])
    header = loop.iter if isinstance(loop, gast.For) else loop.test
    for part, like in ((made, loop), (made.test, header)):
        for name in ("lineno", "col_offset", "end_lineno", "end_col_offset"):
            setattr(part, name, getattr(like, name))
    cx.frame.live.out[id(made)] = cx.frame.live.out[id(loop)]
    cx.kept.append(made)  # kept alive, as it is keyed by id
    return made


def _same_shape(cx: Context, a: Any, b: Any, before: Container[int]) -> bool:
    """Whether two templates agree in structure, types and compile-time values (their phis may differ).

    A container from `before` is equal only to itself, also where an outer loop has made it.
    """
    if isinstance(a, Leaf) and isinstance(b, Leaf):
        short = cx.symbols.short
        return (
            a.type == b.type
            and kinds_of(cx, a.expr) == kinds_of(cx, b.expr)
            and (a.expr not in short or b.expr in short)
        )
    if isinstance(a, Maybe) and isinstance(b, Maybe):
        return _same_shape(cx, a.value, b.value, before)
    if isinstance(a, StaticValue) and isinstance(b, StaticValue):
        return a == b
    if isinstance(a, Poison) and isinstance(b, Poison):
        return True
    if isinstance(a, Choice) and isinstance(b, Choice):
        return a.kinds == b.kinds and all(
            _same_shape(cx, x, y, before) for x, y in ((a.first, b.first), (a.second, b.second))
        )
    if isinstance(a, Ref) and isinstance(b, Ref):
        if a.cell == b.cell or a.cell in before:
            return a.cell == b.cell
        left, right = cx.containers.merged_cells.get(a.cell), cx.containers.merged_cells.get(b.cell)
        if left is None or right is None:
            return False
        if isinstance(left.content, RunList) and isinstance(right.content, RunList):
            return [column.type for column in left.content.columns] == [column.type for column in right.content.columns]
        return _same_shape(cx, left.content, right.content, before)
    if isinstance(a, Struct) and isinstance(b, Struct):
        return (a.kind, a.keys, a.cls) == (b.kind, b.keys, b.cls) and all(
            _same_shape(cx, x, y, before) for x, y in zip(a.children, b.children, strict=True)
        )
    return a is b
