"""Sets of compile-time values: equal sets are interchangeable, whatever their order."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import gast

from tapegen.errors import TapegenError, UnsupportedSyntax
from tapegen.frontend.calls.handlers import handles
from tapegen.frontend.expressions.comprehensions import comprehend
from tapegen.frontend.expressions.expressions import elements, evaluates, spread
from tapegen.frontend.library.builtins import Args, Hint, Kwargs
from tapegen.frontend.values.context import Context
from tapegen.frontend.values.materialize import is_int, static, struct_of
from tapegen.frontend.values.pytree import UNKNOWN, StaticValue
from tapegen.frontend.values.state import known_value


@evaluates(gast.Set)
def _set(cx: Context, node: gast.Set, hint: str | None) -> Any:
    return StaticValue(set(_known(cx, elements(cx, node.elts))))


@evaluates(gast.SetComp)
def _set_of_comprehension(cx: Context, node: gast.SetComp, hint: str | None) -> Any:
    made = struct_of(cx, comprehend(cx, node))
    if made is None:
        raise _refusal(cx)
    return StaticValue(set(_known(cx, made.children)))


def _conversion(func: type) -> None:
    @handles(func, takes="iterable=(), /")
    def call(cx: Context, args: Args, kwargs: Kwargs, hint: Hint) -> Any:
        items = args[0] if args else StaticValue(())
        if isinstance(known_value(items), (set, frozenset)):
            return StaticValue(func(known_value(items)))
        return StaticValue(func(_known(cx, spread(cx, items))))


_conversion(set)
_conversion(frozenset)


def _known(cx: Context, values: Iterable[Any]) -> list[Any]:
    found = []
    for value in values:
        content = struct_of(cx, value)
        if known_value(value) is UNKNOWN and not is_int(value) and (content is None or content.kind != "tuple"):
            raise _refusal(cx)
        found.append(static(cx, value, "an item of a set"))
    return found


def _refusal(cx: Context) -> TapegenError:
    return cx.refusal(
        UnsupportedSyntax,
        "a set of computed values has no order in which its items could be differentiated.",
        "Use a tuple or a list.",
    )
