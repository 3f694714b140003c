"""Comprehensions: loops that append to a list or fill a dict."""

from __future__ import annotations

import functools
from typing import Any

import gast

from tapegen.frontend.lower_context import Context, Frame, NotWhole
from tapegen.frontend.lower_expr import evaluates
from tapegen.frontend.lower_flow import Region, run
from tapegen.frontend.lower_iter import iterable
from tapegen.frontend.lower_live import bound_in, liveness_of
from tapegen.frontend.structure import dict_of, list_of

_MADE, _FIRST = "items ", "source "  # no name in the text has a space


@functools.cache
def _as_function(node: gast.ListComp | gast.DictComp) -> gast.FunctionDef:
    """The loops of a comprehension as the body of a function of its own."""
    if isinstance(node, gast.DictComp):
        target = gast.Subscript(gast.Name(_MADE, gast.Load(), None, None), node.key, gast.Store())
        body: gast.stmt = gast.Assign([target], node.value, None)
    else:
        owner = gast.Attribute(gast.Name(_MADE, gast.Load(), None, None), "append", gast.Load())
        body = gast.Expr(gast.Call(owner, [node.elt], []))
    _place(body, node)
    for k, part in reversed(list(enumerate(node.generators))):
        for test in reversed(part.ifs):
            body = gast.copy_location(gast.If(test, [body], []), node)
        source = part.iter if k else gast.Name(_FIRST, gast.Load(), None, None)
        body = gast.copy_location(gast.For(part.target, source, [body], [], None), node)
    args = gast.arguments([], [], None, [], [], None, [])
    made = gast.FunctionDef("comprehension", args, [body], [], None, None, [])
    return gast.copy_location(made, node)


def _place(made: gast.AST, like: gast.AST) -> None:
    for inner in gast.walk(made):
        if not hasattr(inner, "lineno") and isinstance(inner, gast.stmt | gast.expr):
            gast.copy_location(inner, like)


@evaluates(gast.ListComp, gast.DictComp)
def _comprehension(cx: Context, node: gast.ListComp | gast.DictComp, hint: str | None) -> Any:
    if cx.whole:
        raise NotWhole
    first = iterable(cx, node.generators[0].iter)
    function = _as_function(node)
    targets = frozenset[str]().union(*(bound_in(part.target) for part in node.generators))
    live = liveness_of(function)
    frame = Frame(
        function, cx.frame.parsed, targets | {_MADE, _FIRST}, live, cx.frame, cx.frame.name, is_comprehension=True
    )
    made = cx.new_cell(dict_of(()) if isinstance(node, gast.DictComp) else list_of(()))
    outer, fixed = cx.frame, cx.fixed_origin
    cx.frame, cx.fixed_origin = frame, True
    cx.state.vars[(frame, _MADE)] = made
    cx.state.vars[(frame, _FIRST)] = first
    try:
        run(cx, function.body, Region())
    finally:
        cx.frame, cx.fixed_origin = outer, fixed
    cx.state.vars = {key: value for key, value in cx.state.vars.items() if key[0] is not frame}
    return made
