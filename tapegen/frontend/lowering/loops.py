"""Loops: at run time with carried variables, or unrolled where the iterations differ in kind."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import gast

from tapegen.errors import NotDifferentiable, TapegenError
from tapegen.frontend.expressions.iterables import iterable
from tapegen.frontend.lowering.control_flow import Region, compound, dispatch, run
from tapegen.frontend.lowering.generators import check_loop
from tapegen.frontend.lowering.product_loops import rewritten
from tapegen.frontend.lowering.run_time_loops import RunTimeLoop, number_expr
from tapegen.frontend.lowering.unrolled_loops import UnrolledLoop
from tapegen.frontend.values.context import Context, NeedsConstant, NeedsStatements
from tapegen.frontend.values.pytree import UNKNOWN
from tapegen.frontend.values.state import RETURN, RunList, Series
from tapegen.ir.nodes import Call, Const
from tapegen.ir.progress_bars import begin_progress, end_progress
from tapegen.ir.types import STATIC


@compound(gast.For, gast.While)
def lower_loop(cx: Context, stmt: gast.For | gast.While, rest: Sequence[gast.stmt], region: Region) -> bool:
    """Lower a loop; True when the statements after it have been lowered too."""
    if cx.whole:
        raise NeedsStatements
    live = cx.frame.live
    loop = RunTimeLoop(cx, stmt, live.head[id(stmt)] | live.captured, live.out[id(stmt)] | live.captured)
    series = iterable(cx, stmt.iter) if isinstance(stmt, gast.For) else None
    if series is not None and (made := rewritten(cx, stmt, series)) is not None:
        return lower_loop(cx, made, rest, region)
    before = {number: cx.state.cells[number].content for number in cx.caller.owned}
    if series is not None and series.bar:
        total, *options = sorted(series.bar, key=lambda option: option[0] != "total")
        given = tuple((name, Const(value)) for name, value in options)
        cx.effect(Call(begin_progress, (number_expr(total[1]),), given, STATIC))
    mark, start = len(cx.builder.items), cx.now
    if series is None or series.length != 0:
        _run(cx, loop, series)
    if series is not None and series.bar and not cx.builder.dead:
        cx.effect(Call(end_progress, (), (), STATIC))
    if series is not None and series.behind:
        check_loop(cx, series, mark, start)
    if series is not None and series.parallel:
        _refuse_stores(cx, before)
    if cx.builder.dead:
        return True
    if not stmt.orelse:
        return False
    rest = [*loop.otherwise(), *rest]
    if RETURN in cx.state.vars:
        dispatch(cx, rest, region)
    else:
        run(cx, rest, region)
    return True


def _refuse_stores(cx: Context, before: Mapping[int, Any]) -> None:
    """Refuse stores of `prange` into objects of the caller, as its iterations run in any order."""
    for number, content in before.items():
        now = cx.state.cells[number].content
        if now is not content or isinstance(now, RunList):
            raise cx.refusal(
                NotDifferentiable,
                f"this loop of prange stores into '{cx.caller.owned[number].name}', which belongs to the caller, and "
                "its iterations run in any order.",
                "Store after the loop, or use range.",
            )


def _run(cx: Context, loop: RunTimeLoop, series: Series | None) -> None:
    """Run a loop at run time, or unrolled where its iterations differ in kind or an integer of it must be known."""
    here = (loop.stmt, cx.frame)  # the objects themselves: ids are reused
    if series is not None and series.unroll:
        UnrolledLoop(cx, loop, series).run()
        return
    if series is not None and (refusal := (cx.written_out or {}).get(loop.stmt)) is not None:
        UnrolledLoop(cx, loop, _counted(series, refusal)).run()
        return
    mark, state = len(cx.builder.items), cx.state.copy()
    length = None if series is None else _known_length(series)
    if here in cx.unrolled and (series is None or length is not None):
        series = series and replace(series, length=length)
    else:  # repeated where the length is no longer known: the list may have become a run-time list
        try:
            loop.run(series)
            return
        except NeedsConstant as need:
            if cx.symbols.int_sources(need.expr).isdisjoint(loop.own):
                raise
            series = None if series is None else _counted(series, need.refusal)
            loop.refusal = need.refusal
        del cx.builder.items[mark:]
        cx.state = state
        cx.unrolled.add(here)
    UnrolledLoop(cx, loop, series).run()


def _known_length(series: Series) -> int | None:
    if isinstance(series.length, int):
        return series.length
    return None if series.known is UNKNOWN else int(series.known)


def _counted(series: Series, refusal: TapegenError) -> Series:
    """The series, with a length that is known."""
    length = _known_length(series)
    if length is None:
        raise NeedsConstant(series.length, refusal) from None
    return replace(series, length=length)
