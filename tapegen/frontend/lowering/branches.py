"""If-conversion: lowers both branches, and joins variables and containers after them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from tapegen.frontend.values.context import Builder, Context, NeedsStatements, OpenIf, OpenLatch, Unreachable
from tapegen.frontend.values.dynamic_lists import Widen, needs_widening, widen_cell
from tapegen.frontend.values.materialize import not_
from tapegen.frontend.values.narrowing import distinct, is_only_known, unlike
from tapegen.frontend.values.phi import ANYTHING, Merge, look_up
from tapegen.frontend.values.pytree import Leaf, StaticValue, Struct
from tapegen.frontend.values.state import ABSENT, RESULT, SPENT, Cell, Choice, Key, Poison, Ref, RunList, State
from tapegen.ir import traversal
from tapegen.ir.nodes import Expr, Var


def branches(
    cx: Context, test: Expr, body: Callable[[], Any], orelse: Callable[[], Any], live: frozenset[str] | None
) -> tuple[Any, Any]:
    """Run two branches and join the variables in `live` (None: all); returns the results of both.

    A branch that never reaches its end stays in the If; the other branch then continues after it, outside of the If.
    """
    if cx.whole:
        raise NeedsStatements
    base, since = cx.state, cx.now
    while True:
        sides = [_branch(cx, base, todo) for todo in (body, orelse)]
        living = [side for side in sides if not side[0].dead]
        try:
            if len(living) == 2:
                cx.state = _joined(cx, base, [(builder, state) for builder, state, _ in living], live, test, since)
            break
        except Widen as widen:
            cx.state = base
            for number, contents in widen.lists.items():
                loop, before = cx.loop
                widen_cell(cx, number, contents, loop if number in before else None)
            base = cx.state
    (first, _, a), (second, _, b) = sides
    if len(living) == 1:
        kept = living[0]
        cx.state = kept[1]
        cx.state.cells = {**base.cells, **cx.state.cells}  # also containers that no variable of this path reaches
        if kept[0] is first:
            cx.emit(OpenIf(_negated(cx, test), second, Builder(), cx.origin))
        else:
            cx.emit(OpenIf(test, first, Builder(), cx.origin))
        cx.builder.items.extend(kept[0].items)
    elif first.items or second.items or traversal.may_raise(test):
        cx.emit(OpenIf(test, first, second, cx.origin))
    if not living:
        cx.builder.dead = True
        raise Unreachable
    return a, b


def _negated(cx: Context, test: Expr) -> Expr:
    result = not_(test)
    assert not isinstance(result, bool)
    return result


def _branch(cx: Context, base: State, todo: Callable[[], Any]) -> tuple[Builder, State, Any]:
    builder = Builder()
    with cx.block(builder, base.copy()):
        try:
            value = todo()
        except Unreachable:
            value = None
        return builder, cx.state, value


def _taken(number: int, states: Sequence[State]) -> int:
    """The items that an iterator has given on all paths."""
    counts = {state.taken.get(number, 0) for state in states}
    return counts.pop() if len(counts) == 1 else SPENT


def _joined(
    cx: Context, base: State, sides: list[tuple[Builder, State]], live: frozenset[str] | None, test: Expr, since: int
) -> State:
    """The state after an If; phis are assigned at the ends of the branches."""
    states = [state for _, state in sides]
    numbers = {number for state in states for number in state.taken}
    merged = State({}, {}, {number: _taken(number, states) for number in numbers})
    for state in (base, *states):
        merged.cells.update(state.cells)
    merge = Merge(cx, merged, base, since=since, test=test)
    frames = {cx.frame, *_enclosing(cx)}
    wanted = None if live is None else live | cx.frame.live.captured
    todo: list[tuple[Any, list[tuple[Any, State]]]] = []
    for key in dict.fromkeys(key for state in states for key in state.vars):
        values = [look_up(state, key) for state in states]
        if all(value is values[0] for value in values):
            merged.vars[key] = values[0]
            continue
        whole = base.vars.get(key)
        if is_only_known(whole, values):
            merged.vars[key] = whole
            continue
        frame, name = key
        if frame is not None and frame not in frames:
            merged.vars[key] = base.vars.get(key, values[0])
            continue
        if wanted is not None and frame is cx.frame and name not in wanted:
            continue
        values = [_seen(key, value, state) for value, state in zip(values, states, strict=True)]
        for value in values:
            cx.observe(key, value)
        pairs = list(zip(values, states, strict=True))
        template = _union_of_kinds(merge, name.strip(), whole, test, pairs) or merge.template(name.strip(), pairs)
        if template is not ANYTHING and template is not ABSENT:
            merged.vars[key] = template
            todo.append((template, pairs))
    for number in dict.fromkeys(number for state in states for number in state.cells):
        todo.extend(_joined_cell(merge, number, states))
    for k, (builder, state) in enumerate(sides):
        ends: dict[Var, Expr] = {}
        for template, pairs in todo:
            merge.fill(template, pairs[k][0], state, ends.__setitem__)
        if ends:
            builder.items.append(OpenLatch(list(ends.items()), cx.origin))
    merged.escape_live = None
    if all(state.escape_live is not None for state in states):
        merged.escape_live = frozenset[str]().union(*(state.escape_live or () for state in states))
    return merged


def _enclosing(cx: Context) -> list[Any]:
    """The frames with which the current comprehension shares variables."""
    frames = []
    frame = cx.frame
    while frame.is_comprehension and frame.parent is not None:
        frame = frame.parent
        frames.append(frame)
    return frames


def _seen(key: Key, value: Any, state: State) -> Any:
    """The value of a variable on a path; ANYTHING where it is dead."""
    if key is RESULT and value is ABSENT:
        return ANYTHING
    if key[0] is not None and state.escape_live is not None and key[1] not in state.escape_live:
        return ANYTHING
    return value


def _joined_cell(merge: Merge, number: int, states: list[State]) -> list[tuple[Any, list[tuple[Any, State]]]]:
    """Join the contents of a container that both branches have."""
    cells = [state.cells[number] for state in states if number in state.cells]
    if len(cells) < len(states):
        return _of_one_path(merge, number, states)
    if cells[0] is cells[1]:
        return []
    sides = list(zip((cell.content for cell in cells), states, strict=True))
    if needs_widening(sides):
        raise Widen({number: sides})
    template = merge.contents(sides)  # type: ignore[arg-type]
    merge.state.cells[number] = Cell(template, cells[0].frozen)
    return [(template, sides)] if template.kind != "poison" else []


def _of_one_path(merge: Merge, number: int, states: list[State]) -> list[tuple[Any, list[tuple[Any, State]]]]:
    """Join a container that is older than the branches, and that the other branch cannot reach after narrowing."""
    before = merge.base.cells.get(number)
    having = [state for state in states if number in state.cells]
    if before is None or not having or having[0].cells[number] is before:
        return []
    content = having[0].cells[number].content
    if isinstance(content, RunList):
        raise Widen({number: [(content, having[0])]})
    merge.adopt("item", Ref(number), content, having[0])
    template = merge.state.cells[number].content
    return [(template, [(content if state in having else ANYTHING, state) for state in states])]


def _union_of_kinds(merge: Merge, name: str, whole: Any, test: Expr, sides: Sequence[tuple[Any, State]]) -> Any:
    """The union after branches of a test of its kind, each with one of the kinds; None if it is none."""
    if not isinstance(whole, Choice) or whole.test != test or len(sides) != 2:
        return None
    plain = (Leaf, StaticValue, Struct, Ref)
    if not all(isinstance(value, plain) for value, _ in sides):
        return None
    kinds = merge.kind(*sides[0]), merge.kind(*sides[1])
    if not unlike(*kinds):
        return None
    parts = []
    for side, part in zip(sides, (whole.first, whole.second), strict=True):
        parts.append(part if side[0] is part else distinct(merge.partial(name, [side])))
    if any(isinstance(part, Poison) for part in parts):
        return None
    first, second = parts
    return Choice(whole.test, first, second, kinds)
