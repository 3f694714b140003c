"""Control flow: statement sequences, branches, and paths that exit a block early.

A block is lowered in one of two kinds of region.  In a *direct* region (the body of a loop) every path that ends stays
open, so that `break` becomes a Break.  In any other region the paths of an If join after it: an early exit sets a flag,
and the statements after it are guarded by the flag.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import gast

from tapegen.frontend.expressions.comparisons import condition
from tapegen.frontend.expressions.expressions import evaluate
from tapegen.frontend.expressions.unions import learn, refine
from tapegen.frontend.lowering.branches import branches
from tapegen.frontend.lowering.statements import run_simple
from tapegen.frontend.source.desugar_try import is_attempt
from tapegen.frontend.source.liveness import always_escapes, has_escape
from tapegen.frontend.values.context import Builder, Context, NeedsStatements, OpenIf, Unreachable
from tapegen.frontend.values.materialize import expr_of, not_, poison_check
from tapegen.frontend.values.phi import look_up
from tapegen.frontend.values.pytree import StaticValue
from tapegen.frontend.values.state import BREAK, CONTINUE, FLAGS, RESULT, RETURN, TRUE, Key, State
from tapegen.ir import builders
from tapegen.ir.nodes import Expr

FALL = "fall"
_POSITION = ("lineno", "col_offset", "end_lineno", "end_col_offset")


@dataclass(eq=False, slots=True)
class End:
    """The open end of a path through a loop body."""

    kind: Key | str
    builder: Builder
    state: State


@dataclass(eq=False, slots=True)
class Region:
    """The region of a block: the variables live after it, and, in a loop body, the ends of its paths."""

    live: frozenset[str] = frozenset()
    ends: list[End] | None = None


Handler = Callable[[Context, Any, Sequence[gast.stmt], Region], bool]
_COMPOUND: dict[type, Handler] = {}


def compound(*kinds: type) -> Callable[[Handler], Handler]:
    """Register the function that lowers a kind of compound statement."""

    def register(handler: Handler) -> Handler:
        _COMPOUND.update(dict.fromkeys(kinds, handler))
        return handler

    return register


def body_of(node: gast.FunctionDef | gast.Lambda) -> list[gast.stmt]:
    """The statements of a function; a lambda returns its expression."""
    return node.body if isinstance(node.body, list) else [gast.copy_location(gast.Return(node.body), node.body)]


def run_body(cx: Context, body: Sequence[gast.stmt]) -> Any:
    """Lower the body of a function; returns its result."""
    if not always_escapes(list(body)):
        end = gast.Return(None)
        vars(end).update({name: getattr(body[-1], name) for name in _POSITION})
        body = [*body, end]
    run(cx, body, Region())
    if cx.builder.dead:
        raise Unreachable
    for flag in FLAGS:
        cx.state.vars.pop(flag, None)
    cx.state.escape_live = None
    return poison_check(cx, cx.state.vars.pop(RESULT))


def run(cx: Context, body: Sequence[gast.stmt], region: Region) -> None:
    """Run statements; a path that falls through the last one falls through the region."""
    for k, stmt in enumerate(body):
        try:
            with cx.at(stmt, statement=True):
                done = _statement(cx, stmt, body, k, region)
        except Unreachable:
            done = True
        if done or cx.builder.dead:
            return
        if any(flag in cx.state.vars for flag in FLAGS):
            dispatch(cx, body[k + 1 :], region)
            return
    if region.ends is not None:
        region.ends.append(End(FALL, cx.builder, cx.state))


def _statement(cx: Context, stmt: gast.stmt, body: Sequence[gast.stmt], k: int, region: Region) -> bool:
    """Lower one statement; True when the statements after it have been lowered too."""
    match stmt:
        case gast.Return():
            value = StaticValue(None) if stmt.value is None else evaluate(cx, stmt.value)
            cx.state.vars[RESULT] = value
            return _escape(cx, RETURN, region)
        case gast.Break():
            return _escape(cx, BREAK, region)
        case gast.Continue():
            return _escape(cx, CONTINUE, region)
        case gast.If():
            return _if(cx, stmt, body[k + 1 :], region)
    handler = _COMPOUND.get(type(stmt))
    if handler is not None:
        return handler(cx, stmt, body[k + 1 :], region)
    run_simple(cx, stmt)
    return False


def _escape(cx: Context, kind: Key, region: Region) -> bool:
    if region.ends is not None:
        region.ends.append(End(FALL if kind is CONTINUE else kind, cx.builder, cx.state))
        return True
    if cx.whole and kind is not RETURN:
        raise NeedsStatements
    cx.state.vars[kind] = TRUE
    head, after = cx.frame.loops[-1] if kind is not RETURN else (frozenset(), frozenset())
    cx.state.escape_live = head if kind is CONTINUE else after
    return True


def dispatch(cx: Context, rest: Sequence[gast.stmt], region: Region) -> None:
    """Continue after a statement that some paths (marked by flags) have exited."""
    flags = [(flag, look_up(cx.state, flag)) for flag in FLAGS if flag in cx.state.vars]
    certain = [flag for flag, value in flags if value == TRUE]
    if certain:
        if region.ends is not None:
            _clear(cx.state)
            kind = certain[0]
            region.ends.append(End(FALL if kind is CONTINUE else kind, cx.builder, cx.state))
        return
    exprs = [expr_of(cx, value) for _, value in flags]
    if region.ends is None:
        if rest:

            def others() -> None:
                _clear(cx.state)
                run(cx, rest, region)

            test = not_(builders.or_all(exprs))
            branches(cx, test, others, lambda: None, region.live)
        return
    (flag, _), (test, *_) = flags[0], exprs
    left, stayed = Builder(), Builder()
    outer = cx.state
    with cx.block(left, outer.copy()):
        _clear(cx.state)
        region.ends.append(End(FALL if flag is CONTINUE else flag, left, cx.state))
    with cx.block(stayed, outer.copy()):
        cx.state.vars.pop(flag)
        if len(flags) > 1:
            dispatch(cx, rest, region)
        else:
            run(cx, rest, region)
    cx.emit(OpenIf(test, left, stayed, cx.origin))


def _clear(state: State) -> None:
    for flag in FLAGS:
        state.vars.pop(flag, None)
    state.escape_live = None


# ---- if ------------------------------------------------------------------------------------------------------------


def _if(cx: Context, stmt: gast.If, rest: Sequence[gast.stmt], region: Region) -> bool:
    if is_attempt(stmt.test):
        return _COMPOUND[gast.Try](cx, stmt, rest, region)
    test = condition(cx, stmt.test)
    live = live_after(cx, stmt)
    if isinstance(test, bool):
        chosen = stmt.body if test else stmt.orelse
        if has_escape(chosen):
            run(cx, [*chosen, *rest], region)
            return True
        run(cx, chosen, Region(live))
        return False
    if not (has_escape(stmt.body) or has_escape(stmt.orelse)):
        branches(cx, test, *_sides(cx, stmt, test, stmt.body, stmt.orelse, Region(live)), live)
        return False
    body_leaves, orelse_leaves = always_escapes(stmt.body), always_escapes(stmt.orelse)
    if not (body_leaves or orelse_leaves) and rest:
        # some paths of a branch exit, others continue: flags record which
        inner = Region(live.union(*(head | after for head, after in cx.frame.loops)))
        branches(cx, test, *_sides(cx, stmt, test, stmt.body, stmt.orelse, inner), inner.live)
        return False
    body = stmt.body if body_leaves else [*stmt.body, *rest]
    orelse = stmt.orelse if orelse_leaves else [*stmt.orelse, *rest]
    if region.ends is None:
        branches(cx, test, *_sides(cx, stmt, test, body, orelse, region), region.live)
        return True
    if cx.whole:
        raise NeedsStatements
    opened = OpenIf(test, Builder(), Builder(), cx.origin)
    outer = cx.state
    first, second = _sides(cx, stmt, test, body, orelse, region)
    with cx.block(opened.body, outer.copy()):
        first()
    with cx.block(opened.orelse, outer.copy()):
        second()
    cx.emit(opened)
    return True


def _sides(
    cx: Context, stmt: gast.If, test: Expr, body: Sequence[gast.stmt], orelse: Sequence[gast.stmt], region: Region
) -> tuple[Callable[[], None], Callable[[], None]]:
    """Functions that lower the two branches, with values narrowed by the test."""

    def side(block: Sequence[gast.stmt], outcome: bool) -> Callable[[], None]:
        def todo() -> None:
            refine(cx, stmt.test, outcome)
            learn(cx, test, outcome)
            run(cx, block, region)

        return todo

    return side(body, True), side(orelse, False)


def live_after(cx: Context, stmt: gast.stmt) -> frozenset[str]:
    """The variables live after a statement."""
    return cx.frame.live.out.get(id(stmt), frozenset())
