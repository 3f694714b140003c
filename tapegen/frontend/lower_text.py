"""f-strings, and values in messages."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import gast

from tapegen.errors import UnsupportedSyntax
from tapegen.frontend.lower_context import Context
from tapegen.frontend.lower_expr import evaluate, evaluates
from tapegen.frontend.lower_state import known_value
from tapegen.frontend.lower_values import operand, struct_of
from tapegen.frontend.structure import UNKNOWN, Leaf, StaticValue
from tapegen.ir import ops
from tapegen.ir.nodes import Call, Const, Expr
from tapegen.ir.types import STATIC

# ---- text ----------------------------------------------------------------------------------------------------------


@evaluates(gast.JoinedStr)
def _fstring(cx: Context, node: gast.JoinedStr, hint: str | None) -> Any:
    parts = [part for value in node.values for part in _text_parts(cx, value)]
    if all(isinstance(part, StaticValue) for part in parts):
        return StaticValue("".join(str(part.value) for part in parts))
    return Leaf(Call(ops.fstring, tuple(operand(cx, part) for part in parts), (), STATIC))


def _text_parts(cx: Context, node: gast.AST) -> list[Any]:
    if isinstance(node, gast.Constant):
        return [StaticValue(node.value)]
    assert isinstance(node, gast.FormattedValue)
    value = evaluate(cx, node.value)
    spec = ""
    if node.format_spec is not None:
        shown = _fstring(cx, node.format_spec, None)
        spec = known_value(shown)
        if not isinstance(spec, str):
            raise cx.refusal(
                UnsupportedSyntax, "a format that is computed is not supported.", "Write the format as text."
            )
    conversions: dict[int, Callable[[object], str]] = {115: str, 114: repr, 97: ascii}
    conversion = conversions.get(node.conversion)
    known = known_value(value)
    if known is not UNKNOWN:
        return [StaticValue(format(conversion(known) if conversion else known, spec))]
    if spec and isinstance(value, Leaf):
        return [Leaf(Call(format, (operand(cx, value), Const(spec)), (), STATIC))]
    content = struct_of(cx, value)
    if content is not None and content.kind not in ("tuple", "list"):
        return [Leaf(Call(ops.fstring, (Const(f"<{content.cls.__name__}>"),), (), STATIC))]  # only messages show it
    return [value]


def text_of(cx: Context, value: Any) -> Expr:
    """A value in a message or in print."""
    known = known_value(value)
    if known is not UNKNOWN and isinstance(value, StaticValue):
        plain = known is None or isinstance(known, (bool, int, float, str))
        return Const(known if plain else str(known))
    content = struct_of(cx, value)
    if content is not None and content.kind in ("dict", "object"):
        return Const(f"<{content.cls.__name__}>")
    return operand(cx, value)
