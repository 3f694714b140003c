"""Product loops: one loop over tuples (`product(a, b)`, `np.ndindex(x.shape)`) becomes a loop nest.

A single loop over all tuples would compute the items of each by division, which hides from the analyses that they
differ in every iteration.
"""

from __future__ import annotations

import itertools
import operator
from collections.abc import Callable, Iterable, Sequence
from typing import Any

import gast

from tapegen.errors import UnsupportedSyntax
from tapegen.frontend.expressions.expressions import Given, evaluate, evaluates
from tapegen.frontend.lowering.emit import emit_call
from tapegen.frontend.lowering.statements import assign_target
from tapegen.frontend.source.liveness import loop_binds
from tapegen.frontend.values.context import Context
from tapegen.frontend.values.state import Axes, Series


class Later(gast.expr):
    """A node whose value is computed when it is evaluated."""

    _fields = ()

    def __init__(self, make: Callable[[], Any]) -> None:
        super().__init__()
        self.make = make


@evaluates(Later)
def _later(cx: Context, node: Later, hint: str | None) -> Any:
    return node.make()


def rewritten(cx: Context, loop: gast.For, series: Series) -> gast.For | gast.While | None:
    """The loop nest for a loop over such a series, or None where it stays one loop."""
    if series.count is not None:
        return _endless(cx, loop, *series.count)
    if series.axes is None or series.unroll or breaks(loop.body):
        return None
    return _nested(cx, loop, series.axes)


# ---- loop nests ----------------------------------------------------------------------------------------------------


def _nested(cx: Context, loop: gast.For, axes: Axes) -> gast.For | None:
    parts = _parts(loop.target, axes)
    if parts is None:
        return None
    names, beside = parts
    body = loop.body
    make = axes.beside
    if beside is not None and make is not None:
        value = _at(Later(lambda: make(_values(cx, names))), loop.iter)
        body = [_at(gast.Assign([beside], value, None), loop.target), *body]
    for k in range(len(names) - 1, -1, -1):
        made = _at(gast.For(names[k], _at(_series(cx, axes, names, k), loop.iter), body, [], None), loop)
        if k == 0:
            made.orelse = loop.orelse
        _note_live(cx, loop, made, names[:k])
        body = [made]
    return made


def _series(cx: Context, axes: Axes, names: Sequence[gast.Name], k: int) -> Later:
    return Later(lambda: axes.loops[k](_values(cx, names[:k])))


def _values(cx: Context, names: Iterable[gast.Name]) -> list[Any]:
    return [evaluate(cx, _at(gast.Name(name.id, gast.Load(), None, None), name)) for name in names]


def _parts(target: gast.AST, axes: Axes) -> tuple[list[gast.Name], gast.AST | None] | None:
    """The names that the loops of a nest bind, and the target beside them."""
    beside = None
    if axes.beside is not None:
        if not (isinstance(target, gast.Tuple) and len(target.elts) == 2):
            return None
        target, beside = target.elts
    if not isinstance(target, gast.Tuple) or len(target.elts) != len(axes.loops):
        return None
    names = [part for part in target.elts if isinstance(part, gast.Name)]
    return (names, beside) if len({name.id for name in names}) == len(axes.loops) else None


def _note_live(cx: Context, loop: gast.For, made: gast.For, outer: Sequence[gast.Name]) -> None:
    """Record the variables live after a loop of the nest, and at the start of its iterations."""
    live = cx.frame.live
    head = live.head[id(loop)]
    live.head[id(made)] = head.union(name.id for name in outer)
    live.out[id(made)] = live.out[id(loop)] | (head if outer else frozenset())
    live.assigned[id(made)] = loop_binds(made)
    cx.kept.append(made)  # kept alive, as it is keyed by id


def _at(node: Any, like: gast.AST) -> Any:
    """A synthesized node, at the source position of another."""
    for name in ("lineno", "col_offset", "end_lineno", "end_col_offset"):
        setattr(node, name, getattr(like, name))
    return node


def breaks(body: Iterable[gast.stmt]) -> bool:
    """Whether a block contains a break of the enclosing loop."""
    for stmt in body:
        match stmt:
            case gast.Break():
                return True
            case gast.If():
                if breaks(itertools.chain(stmt.body, stmt.orelse)):
                    return True
            case gast.For() | gast.While():
                if breaks(stmt.orelse):
                    return True
    return False


# ---- infinite loops ------------------------------------------------------------------------------------------------


def _endless(cx: Context, loop: gast.For, start: Any, step: Any) -> gast.While:
    """`for n in count(start, step)` as an infinite loop with a counter, which is initialized here."""
    target = loop.target
    if not isinstance(target, gast.Name) or target.id in _bound_in_body(loop):
        raise cx.refusal(
            UnsupportedSyntax,
            "what itertools.count gives is not one name, or the loop assigns it.",
            "Write 'while True', and count in it.",
        )
    assign_target(cx, target, emit_call(cx, operator.sub, (start, step)))
    again = _at(gast.AugAssign(target, gast.Add(), _at(Given(step), loop.iter)), loop.target)
    made = _at(gast.While(_at(gast.Constant(True, None), loop.iter), [again, *loop.body], loop.orelse), loop)
    live = cx.frame.live
    live.head[id(made)] = live.head[id(loop)] | {target.id}
    live.out[id(made)] = live.out[id(loop)]
    live.assigned[id(made)] = live.assigned[id(loop)]
    cx.kept.append(made)
    return made


def _bound_in_body(loop: gast.For) -> tuple[str, ...]:
    return loop_binds(gast.While(gast.Constant(True, None), loop.body, []))
