"""Comprehensions and generator expressions, as loops that append to a list, fill a dict, sum up or search."""

from __future__ import annotations

import dataclasses
import functools
from typing import Any, TypeAlias

import gast
import numpy as np

from tapegen.errors import UnsupportedSyntax
from tapegen.frontend.expressions.expressions import Given, evaluates
from tapegen.frontend.expressions.iterables import iterable, known_length
from tapegen.frontend.lowering.control_flow import Region, run
from tapegen.frontend.source.liveness import Liveness, bound_in, liveness_of
from tapegen.frontend.templates.builtin_functions import COMPENSATES, with_item, with_lost
from tapegen.frontend.values.context import Context, NeedsStatements
from tapegen.frontend.values.pytree import StaticValue, dict_of, list_of
from tapegen.frontend.values.state import Frame, Series

Comprehension: TypeAlias = gast.ListComp | gast.SetComp | gast.DictComp | gast.GeneratorExp
_MADE, _SOURCE, _LOST, _ADDED = "made ", "source ", "lost ", "added "  # no name in the text has a space


def _name(name: str, context: gast.AST) -> gast.Name:
    return gast.Name(name, context, None, None)


def _innermost(node: Comprehension, consumer: Any) -> gast.stmt:
    """The statement of the innermost loop, for each item."""
    if isinstance(node, gast.DictComp):
        target = gast.Subscript(_name(_MADE, gast.Load()), node.key, gast.Store())
        return gast.Assign([target], node.value, None)
    if consumer is sum:
        if COMPENSATES:
            parts = [_name(_MADE, gast.Load()), _name(_LOST, gast.Load()), node.elt]
            both = gast.Tuple([_name(_MADE, gast.Store()), _name(_LOST, gast.Store())], gast.Store())
            return gast.Assign([both], gast.Call(_name(_ADDED, gast.Load()), parts, []), None)
        total = gast.BinOp(_name(_MADE, gast.Load()), gast.Add(), node.elt)
        return gast.Assign([_name(_MADE, gast.Store())], total, None)
    if consumer is any or consumer is all:
        found = gast.Assign([_name(_MADE, gast.Store())], gast.Constant(consumer is any, None), None)
        test = node.elt if consumer is any else gast.UnaryOp(gast.Not(), node.elt)
        return gast.If(test, [found, gast.Break()], [])
    append = gast.Attribute(_name(_MADE, gast.Load()), "append", gast.Load())
    return gast.Expr(gast.Call(append, [node.elt], []))


@functools.cache
def _as_function(node: Comprehension, consumer: Any) -> gast.FunctionDef:
    """The loops of a comprehension as the body of a function."""
    body = _innermost(node, consumer)
    for k, part in reversed(list(enumerate(node.generators))):
        for test in reversed(part.ifs):
            body = gast.If(test, [body], [])
        body = gast.For(part.target, part.iter if k else _name(_SOURCE, gast.Load()), [body], [], None)
    # never run: it marks what is read after the loops
    result = gast.Return(gast.Tuple([_name(_MADE, gast.Load()), _name(_LOST, gast.Load())], gast.Load()))
    args = gast.arguments([], [], None, [], [], None, [])
    made = gast.FunctionDef("comprehension", args, [body, result], [], None, None, [])
    for inner in gast.walk(made):
        if isinstance(inner, (gast.stmt, gast.expr)) and getattr(inner, "lineno", None) is None:
            gast.copy_location(inner, node)
    return made


@evaluates(gast.ListComp, gast.DictComp)
def _comprehension(cx: Context, node: gast.ListComp | gast.DictComp, hint: str | None) -> Any:
    return comprehend(cx, node)


@evaluates(gast.GeneratorExp)
def _generator(cx: Context, node: gast.GeneratorExp, hint: str | None) -> Any:
    raise cx.refusal(
        UnsupportedSyntax,
        "a generator expression is evaluated item by item, when its consumer asks, which has no reverse order.",
        "Write a list comprehension: [... for ...].",
    )


def consume(cx: Context, node: gast.ListComp | gast.GeneratorExp, consumer: Any) -> Any:
    """A comprehension as the only argument of a call: `sum`, `any` and `all` need no list of the items.

    Returns
    -------
    value, done
        The result of the call if `done`, else the list of the items.
    """
    several = len(node.generators) > 1  # a break would exit the innermost loop only
    plain = consumer is sum or ((consumer is any or consumer is all) and not several)
    first = iterable(cx, node.generators[0].iter)
    if plain and not first.unroll:
        return comprehend(cx, node, first, consumer), True
    if consumer is tuple and not several and not node.generators[0].ifs:
        first = dataclasses.replace(first, length=known_length(cx, first), unroll=True)
    return comprehend(cx, node, first), False


def comprehend(cx: Context, node: Comprehension, first: Series | None = None, consumer: Any = None) -> Any:
    """Run the loops of a comprehension."""
    if cx.whole:
        raise NeedsStatements
    if first is None:
        first = iterable(cx, node.generators[0].iter)
    function = _as_function(node, consumer)
    targets = frozenset[str]().union(*(bound_in(part.target) for part in node.generators))
    frame = Frame(
        function,
        cx.frame.parsed,
        targets | {_MADE, _SOURCE, _LOST, _ADDED},
        _liveness(function),
        cx.frame,
        cx.frame.name,
        is_comprehension=True,
    )
    start: dict[Any, Any] = {sum: StaticValue(0), any: StaticValue(False), all: StaticValue(True)}
    if consumer in start:
        made: Any = start[consumer]
    else:
        made = cx.new_cell(dict_of(()) if isinstance(node, gast.DictComp) else list_of(()))
    outer, fixed = cx.frame, cx.fixed_origin
    cx.frame, cx.fixed_origin = frame, True
    cx.state.vars[(frame, _MADE)] = made
    cx.state.vars[(frame, _SOURCE)] = first
    compensates = consumer is sum and COMPENSATES
    if compensates:
        cx.state.vars[(frame, _LOST)] = StaticValue(0)
        cx.state.vars[(frame, _ADDED)] = StaticValue(with_item)
    try:
        run(cx, function.body[:1], Region())
        made = cx.state.vars[(frame, _MADE)]
        if compensates:
            made = cx.call(cx, StaticValue(with_lost), (made, cx.state.vars[(frame, _LOST)]), {})
    finally:
        cx.frame, cx.fixed_origin = outer, fixed
    if not any(isinstance(inner, gast.Lambda) for inner in gast.walk(node)):  # lambdas read its variables when called
        cx.state.vars = {key: value for key, value in cx.state.vars.items() if key[0] is not frame}
    return made


def _liveness(function: gast.FunctionDef) -> Liveness:
    """The variables live in a comprehension, and those live after it that a walrus inside assigns."""
    live = liveness_of(function)
    assigned = {inner.target.id for inner in gast.walk(function) if isinstance(inner, gast.NamedExpr)}
    return dataclasses.replace(live, captured=live.captured | assigned) if assigned else live


_ROWS: dict[gast.AST, gast.ListComp] = {}
ARRAY_MAKERS = (np.array, np.asarray, np.stack, np.vstack)


def rows_as_arrays(node: gast.ListComp) -> gast.ListComp:
    """`[[f(i, j) for j in b] for i in a]` that is converted to an array: each row becomes an array."""
    if not isinstance(node.elt, gast.ListComp):
        return node
    if node not in _ROWS:
        row = gast.copy_location(gast.Call(Given(StaticValue(np.array)), [node.elt], []), node.elt)
        _ROWS[node] = gast.copy_location(gast.ListComp(row, node.generators), node)
    return _ROWS[node]
