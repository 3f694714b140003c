"""f-strings, and values in messages."""

from __future__ import annotations

import re
import string
import sys
import warnings
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import gast

from tapegen.errors import NotDifferentiable, Span, UnsupportedSyntax
from tapegen.frontend.expressions.expressions import evaluate, evaluates
from tapegen.frontend.values.context import Context, NeedsStatements
from tapegen.frontend.values.materialize import is_int, operand, static, struct_of
from tapegen.frontend.values.pytree import UNKNOWN, Leaf, StaticValue
from tapegen.frontend.values.state import Captured, known_value
from tapegen.ir import intrinsics
from tapegen.ir.nodes import Call, Const, Effect, Expr
from tapegen.ir.printer import callable_text
from tapegen.ir.types import INT, STATIC, Scalar

# ---- text ----------------------------------------------------------------------------------------------------------


@evaluates(gast.JoinedStr)
def _fstring(cx: Context, node: gast.JoinedStr, hint: str | None) -> Any:
    return _joined(cx, [part for value in node.values for part in _text_parts(cx, value)])


def _joined(cx: Context, parts: list[Any]) -> Any:
    if all(isinstance(part, StaticValue) for part in parts):
        return StaticValue("".join(str(part.value) for part in parts))
    return Leaf(Call(intrinsics.fstring, tuple(operand(cx, part) for part in parts), (), STATIC))


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
    return [as_shown(cx, value, chr(node.conversion) if node.conversion > 0 else None, spec)]


_CONVERSIONS: dict[str | None, Callable[[object], object]] = {None: lambda x: x, "s": str, "r": repr, "a": ascii}


def as_shown(cx: Context, value: Any, conversion: str | None, spec: str) -> Any:
    """A value inside a string."""
    known = known_value(value)
    if known is not UNKNOWN:
        return StaticValue(format(_CONVERSIONS[conversion](known), spec))
    if spec and isinstance(value, Leaf):
        return Leaf(Call(format, (operand(cx, value), Const(spec)), (), STATIC))
    if conversion in ("r", "a") and isinstance(value, Leaf) and not getattr(value.type, "python", False):
        return Leaf(Call(repr, (operand(cx, value),), (), STATIC))
    content = struct_of(cx, value)
    if content is not None and content.kind not in ("tuple", "list"):
        return Leaf(
            Call(intrinsics.fstring, (Const(f"<{content.cls.__name__}>"),), (), STATIC)
        )  # only messages show it
    return Leaf(text_of(cx, value)) if content is not None and content.kind == "list" else value


_PERCENT = re.compile(r"%(?P<flags>[-+ 0]*)(?P<width>\d*)(?P<digits>\.\d+)?(?P<kind>[srdieEfFgG])|%%|[^%]+")


def percent(cx: Context, text: str, given: Any) -> Any:
    """`text % given`, as an equivalent f-string."""
    content = struct_of(cx, given)
    values = list(content.children) if content is not None and content.kind == "tuple" else [given]
    found = list(_PERCENT.finditer(text))
    if sum(map(len, map(re.Match.group, found))) != len(text):
        raise _no_format(cx, text)
    converted = sum(part["kind"] is not None for part in found)
    if converted > len(values):
        cx.raise_(TypeError, "not enough arguments for format string")
    if converted < len(values):
        cx.raise_(TypeError, "not all arguments converted during string formatting")
    parts = []
    for part in found:
        if part["kind"] is None:
            parts.append(StaticValue(part[0].replace("%%", "%")))
            continue
        value, spec = values.pop(0), part["width"] + (part["digits"] or "")
        if known_value(value) is not UNKNOWN:
            parts.append(StaticValue(part[0] % (known_value(value),)))
            continue
        if part["kind"] in "sr" and not spec:
            parts.append(as_shown(cx, value, part["kind"], ""))
            continue
        if part["kind"] in "sr" or not isinstance(value, Leaf) or not isinstance(value.type, Scalar):
            raise _no_format(cx, text)
        kind = "d" if part["kind"] == "i" else part["kind"]
        if kind == "d" and not is_int(value):
            value = Leaf(Call(int, (operand(cx, value),), (), INT))
        order = "<" if "-" in part["flags"] else ""
        flags = "".join(sign for sign in "+ 0" if sign in part["flags"] and (sign != "0" or not order))
        parts.append(as_shown(cx, value, None, order + flags + spec + kind))
    return _joined(cx, parts)


def formatted(cx: Context, text: str, args: Sequence[Any], kwargs: Mapping[str, Any]) -> Any:
    """`text.format(*args, **kwargs)`, as an equivalent f-string."""
    parts: list[Any] = []
    places = iter(range(len(args)))
    for words, field, spec, conversion in string.Formatter().parse(text):
        parts.append(StaticValue(words))
        if field is None:
            continue
        key: Any = next(places, None) if not field else int(field) if field.isdigit() else field
        if key not in (range(len(args)) if isinstance(key, int) else kwargs) or "{" in (spec or ""):
            raise _no_format(cx, text)
        parts.append(as_shown(cx, args[key] if isinstance(key, int) else kwargs[key], conversion, spec or ""))
    return _joined(cx, parts)


def _no_format(cx: Context, text: str) -> Exception:
    return cx.refusal(
        NotDifferentiable, f"the format {text!r} is not supported for these values.", "Write an f-string."
    )


def emit_message(cx: Context, func: Callable[..., Any], args: Sequence[Any], kwargs: Mapping[str, Any]) -> Any:
    """A call that only prints or warns: it runs exactly once."""
    if cx.whole:
        raise NeedsStatements
    if known_value(kwargs.get("file", StaticValue(None))) is not None:
        stream = standard_stream(kwargs["file"])
        if stream is None:
            raise cx.refusal(
                NotDifferentiable,
                "print writes to sys.stdout and sys.stderr in derivatives, and to no other file.",
                "Leave out 'file=', or use logging.",
            )
        kwargs = {**kwargs, "file": StaticValue(intrinsics.StandardStream(stream))}
    origin = cx.origin
    if func is warnings.warn:
        args, kwargs, origin = _warned_at(cx, args, kwargs)
    given = tuple(
        (name, Const(static(cx, value, f"'{name}' of {callable_text(func)}"))) for name, value in kwargs.items()
    )
    cx.emit(Effect(Call(func, tuple(text_of(cx, arg) for arg in args), given, STATIC), origin))
    return StaticValue(None)


def standard_stream(value: Any) -> str | None:
    """The name of a standard stream, which may be another file when the program runs."""
    known = value.value if isinstance(value, Captured) else value
    known = known.value if isinstance(known, StaticValue) else known
    return next((name for name in ("stdout", "stderr") if known is getattr(sys, name)), None)


def _warned_at(
    cx: Context, args: Sequence[Any], kwargs: Mapping[str, Any]
) -> tuple[Sequence[Any], Mapping[str, Any], Span | None]:
    """The arguments of a warning where the functions that are inlined have no frames, and the line it is about."""
    level = known_value(args[2] if len(args) > 2 else kwargs.get("stacklevel", StaticValue(1)))
    if not isinstance(level, int) or level < 2:
        return args, kwargs, cx.origin
    up = min(level - 1, len(cx.call_sites))
    kwargs = {name: value for name, value in kwargs.items() if name != "stacklevel"}
    if level - up > 1:
        kwargs["stacklevel"] = StaticValue(level - up)
    return args[:2], kwargs, cx.call_sites[-up] if up else cx.origin


def text_of(cx: Context, value: Any) -> Expr:
    """A value in a message or in print."""
    known = known_value(value)
    if known is not UNKNOWN and isinstance(value, StaticValue):
        plain = known is None or isinstance(known, (bool, int, float, str, type))
        return Const(known if plain else str(known))
    content = struct_of(cx, value)
    if content is not None and content.kind in ("dict", "object"):
        return Const(f"<{content.cls.__name__}>")
    if content is not None and content.kind == "list":
        return Call(intrinsics.new_list, tuple(text_of(cx, child) for child in content.children), (), STATIC)
    return operand(cx, value)
