"""Operators of scalars and arrays, of containers, and of objects whose class defines them."""

from __future__ import annotations

import math
import operator
from typing import Any

import gast

from tapegen.errors import NotDifferentiable
from tapegen.frontend.expressions.expressions import evaluate, evaluates, pin
from tapegen.frontend.expressions.strings import percent, text_of
from tapegen.frontend.expressions.unions import split, truth_of
from tapegen.frontend.lowering.emit import SIGNS, emit_call, fold
from tapegen.frontend.templates import builtin_functions
from tapegen.frontend.values.captures import special_method
from tapegen.frontend.values.context import Context, NeedsConstant
from tapegen.frontend.values.materialize import (
    definite,
    describe,
    expr_of,
    is_int,
    keys_as_set,
    not_,
    poison_check,
    run_list_of,
    static,
    struct_of,
    type_of,
)
from tapegen.frontend.values.pytree import UNKNOWN, Leaf, StaticValue, Struct, list_of, tuple_of, with_items
from tapegen.frontend.values.state import Captured, Choice, Ref, is_array, known_value
from tapegen.ir import intrinsics
from tapegen.ir.nodes import Call, Const, Expr, Var
from tapegen.ir.types import BOOL, INT, STATIC, Array, Scalar, is_floating

BINARY: dict[type, Any] = {
    gast.Add: operator.add,
    gast.Sub: operator.sub,
    gast.Mult: operator.mul,
    gast.Div: operator.truediv,
    gast.FloorDiv: operator.floordiv,
    gast.Mod: operator.mod,
    gast.Pow: operator.pow,
    gast.MatMult: operator.matmul,
    gast.LShift: operator.lshift,
    gast.RShift: operator.rshift,
    gast.BitAnd: operator.and_,
    gast.BitOr: operator.or_,
    gast.BitXor: operator.xor,
}
_DUNDER = {
    operator.add: "add",
    operator.sub: "sub",
    operator.mul: "mul",
    operator.truediv: "truediv",
    operator.floordiv: "floordiv",
    operator.mod: "mod",
    operator.pow: "pow",
    operator.matmul: "matmul",
    operator.lshift: "lshift",
    operator.rshift: "rshift",
    operator.and_: "and",
    operator.or_: "or",
    operator.xor: "xor",
    operator.lt: "lt",
    operator.le: "le",
    operator.gt: "gt",
    operator.ge: "ge",
    operator.eq: "eq",
    operator.ne: "ne",
}
_REFLECTED = {"lt": "gt", "le": "ge", "gt": "lt", "ge": "le", "eq": "eq", "ne": "ne"}
_UNARY: dict[type, Any] = {gast.USub: operator.neg, gast.UAdd: operator.pos, gast.Invert: operator.invert}


LONGEST = 60
"""Limit of chained operations in one integer expression."""


@evaluates(gast.BinOp)
def _binary(cx: Context, node: gast.BinOp, hint: str | None) -> Any:
    spine = [node]  # a sum of some hundred terms is left-deep, deeper than Python recurses
    while isinstance(spine[-1].left, gast.BinOp):
        spine.append(spine[-1].left)
    left = evaluate(cx, spine[-1].left)
    for k, inner in enumerate(reversed(spine), 1):
        if k % LONGEST == 0 and isinstance(left, Leaf) and not cx.whole:
            left = Leaf(cx.atom(left.expr), left.known)  # later passes recurse into unnamed expressions
        seen, place = cx.effects, len(cx.builder.items)
        right = evaluate(cx, inner.right)
        if cx.effects != seen:
            pinned = [left]
            pin(cx, pinned, place)
            (left,) = pinned
        with cx.at(inner):
            left = binary(cx, BINARY[type(inner.op)], left, right, hint if inner is node else None)
    return left


_OF_BITS = frozenset({operator.and_, operator.or_, operator.xor})


def binary(cx: Context, func: Any, left: Any, right: Any, hint: str | None = None) -> Any:
    """`left op right`."""
    if isinstance(left, Choice) or isinstance(right, Choice):
        return split(cx, (left, right), lambda a, b: binary(cx, func, a, b, hint), hint)
    if any(isinstance(value, Leaf) and isinstance(value.expr, Var) and value.type == STATIC for value in (left, right)):
        raise cx.refusal(
            NotDifferentiable,
            "text that grows while the program runs is not supported.",
            "Put it together after the call, or print its parts.",
        )
    if func is operator.add and _is_text(left) and _is_text(right) and STATIC in (type_of(left), type_of(right)):
        return Leaf(Call(intrinsics.fstring, (*_parts(cx, left), *_parts(cx, right)), (), STATIC))
    if func is operator.mod and isinstance(known_value(left), str) and fold(cx, func, (left, right)) is UNKNOWN:
        return percent(cx, known_value(left), right)
    if type_of(left) is not None and type_of(right) is not None:
        if func not in _OF_BITS and type_of(left) == type_of(right) == BOOL:
            left = emit_call(cx, int, (left,))  # read from a tape they are NumPy's, where True + True is True
        if func is operator.pow:
            if (inverse := _inverse_power(cx, left, right, hint)) is not None:
                return inverse
            _check_power(cx, left, right)
        return emit_call(cx, func, (left, right), hint=hint)
    left, right = keys_as_set(cx, left), keys_as_set(cx, right)
    known = fold(cx, func, (left, right))
    if known is not UNKNOWN:
        return StaticValue(known)
    for value in (left, right):
        poison_check(cx, value)
    found = _on_containers(cx, func, left, right)
    if found is not None:
        return found
    found = on_objects(cx, func, left, right)
    if found is not None:
        return found
    is_mixed = mixes_array(left, right) or mixes_array(right, left)
    if is_mixed and (func is not operator.mul or is_array(left) or is_array(right)):  # a NumPy float repeats nothing
        return emit_call(cx, func, (as_array(cx, left), as_array(cx, right)), hint=hint)
    sign = SIGNS.get(func, getattr(func, "__name__", "?"))
    cx.raise_(TypeError, f"unsupported operand type(s) for {sign}: {type_name(cx, left)} and {type_name(cx, right)}")


def _is_text(value: Any) -> bool:
    if isinstance(value, StaticValue):
        return isinstance(value.value, str)
    return isinstance(value, Leaf) and isinstance(value.expr, Call) and value.expr.func in (intrinsics.fstring, format)


def _parts(cx: Context, text: Any) -> tuple[Expr, ...]:
    if isinstance(text, Leaf) and isinstance(text.expr, Call) and text.expr.func is intrinsics.fstring:
        return text.expr.args  # joined into one text
    return (text_of(cx, text),)


def type_name(cx: Context, value: Any) -> str:
    if isinstance(value, StaticValue):
        return f"'{type(value.value).__name__}'"
    if isinstance(value, Leaf) and isinstance(value.type, Scalar):
        return "'float'" if is_floating(value.type) else "'int'"
    if run_list_of(cx, value) is not None:
        return "'list'"
    content = struct_of(cx, value)
    return f"'{content.cls.__name__}'" if content is not None else "'numpy.ndarray'"


def _inverse_power(cx: Context, base: Any, exponent: Any, hint: str | None) -> Any:
    """`2 ** -k`: a float, although Python returns an integer for `k = 0`; None for other operations."""
    number = known_value(base)
    if not isinstance(number, int) or known_value(exponent) is not UNKNOWN or type_of(exponent) != INT:
        return None
    power = expr_of(cx, exponent)
    if not (isinstance(power, Call) and power.func is operator.neg):
        return None
    if abs(number) > 1:  # while the float equals the integer
        most = Const(int(53 / math.log2(abs(number))))
        test = Call(operator.gt, (power, most), (), BOOL)
        cx.raise_if(test, ValueError, "the power of an integer is too large for a float; write float(...) for the base")
    found = emit_call(cx, operator.pow, (StaticValue(float(number)), exponent), hint=hint)
    if isinstance(found, Leaf) and isinstance(found.expr, Var):
        cx.symbols.kinds[found.expr] = frozenset((found.expr.type, INT))
    return found


def _check_power(cx: Context, base: Any, exponent: Any) -> None:
    """An integer to a negative power is a float in Python: the sign must be known, or is tested."""
    known = known_value(exponent)
    if is_int(exponent) and known is not UNKNOWN:
        of_numpy = not getattr(type_of(base), "python", False)
        if known < 0 and of_numpy and "int" in getattr(type_of(base), "dtype", ""):
            cx.raise_(ValueError, "Integers to negative integer powers are not allowed.")
        return
    if not (is_int(base) and is_int(exponent)) or known is not UNKNOWN:
        return
    count = expr_of(cx, exponent)
    if isinstance(count, Var) and count in cx.symbols.samples:
        if cx.symbols.samples[count] < 0:
            refusal = cx.refusal(NotDifferentiable, "the exponent must be known.", "Write float(...) for the base.")
            raise NeedsConstant(count, refusal)
        cx.symbols.not_negative.add(count)
        return
    test = Call(operator.lt, (count, Const(0)), (), BOOL)
    cx.raise_if(test, ValueError, "an integer is raised to a negative power; write float(...) for the base")


def mixes_array(a: Any, b: Any) -> bool:
    """Whether one operand is a sequence and the other an array or NumPy float (an integer repeats the sequence)."""
    type_ = type_of(a)
    is_float = isinstance(type_, Scalar) and not type_.python and is_floating(type_)
    return (isinstance(type_, Array) or is_float) and isinstance(b, (Struct, Ref, Captured))


def as_array(cx: Context, value: Any) -> Any:
    """A sequence combined with an array becomes an array, as in NumPy."""
    if type_of(value) is not None:
        return value
    import numpy as np

    return emit_call(cx, np.array, (value,))


def _on_containers(cx: Context, func: Any, left: Any, right: Any) -> Any:
    """Concatenation and repetition of tuples and lists; None when it is neither."""
    a, b = struct_of(cx, left), struct_of(cx, right)
    if func is operator.add and (run_list_of(cx, left) is not None or run_list_of(cx, right) is not None):
        sides = ((left, a), (right, b))
        if all(run_list_of(cx, value) is not None or (c is not None and c.kind == "list") for value, c in sides):
            return cx.call(cx, StaticValue(builtin_functions.joined), (left, right), {})
        return None
    if func is operator.add and a is not None and b is not None and a.kind == b.kind and a.kind in ("tuple", "list"):
        return _sequence(cx, a.kind, (*a.children, *b.children))
    if func is operator.or_ and a is not None and b is not None and a.kind == b.kind == "dict":
        return cx.new_cell(with_items(a, zip(b.keys, b.children, strict=True)))
    if func is operator.mul:
        left, right = _as_count(cx, left), _as_count(cx, right)
        for items, count in ((left, right), (right, left)):
            if run_list_of(cx, items) is not None and is_int(count):
                return cx.call(cx, StaticValue(builtin_functions.repeated), (count, items), {})
        if a is None and b is not None:
            a, right = b, left
        if a is not None and a.kind in ("tuple", "list") and is_int(right):
            if known_value(right) is UNKNOWN and a.kind == "list":
                return cx.call(cx, StaticValue(intrinsics.new_list), (right, *a.children), {})
            return _sequence(cx, a.kind, a.children * int(static(cx, right, "the length of this list")))
    return None


def _as_count(cx: Context, value: Any) -> Any:
    """A bool of Python as the number of repetitions that it is; NumPy's bools repeat nothing."""
    if isinstance(value, StaticValue):
        return StaticValue(int(value.value)) if isinstance(value.value, bool) else value
    is_bool = isinstance(value, Leaf) and isinstance(value.type, Scalar) and value.type.dtype == "bool"
    return emit_call(cx, int, (value,)) if is_bool and value.type.python else value


def in_place_operator(cx: Context, func: Any, left: Any, right: Any) -> Any:
    """`left op= right` of a container or an object that changes in place; None when it does not."""
    content = struct_of(cx, left)
    if content is not None and content.kind == "object":
        special = special_method(cx, content.cls, f"__i{_DUNDER.get(func)}__")
        if special is None:
            return None
        result = cx.call(cx, StaticValue(special), (left, right), {})
        return None if isinstance(result, StaticValue) and result.value is NotImplemented else result
    if not isinstance(left, Ref) or (content is not None and content.kind not in ("list", "dict")):
        return None
    if func is operator.or_ and content is not None and content.kind == "dict":
        other = struct_of(cx, right)
        if other is None or other.kind != "dict":
            raise cx.refusal(NotDifferentiable, f"'|=' of a dict takes {describe(cx, right)}.", "Give it a dict.")
        cx.set_cell(left, with_items(content, zip(other.keys, other.children, strict=True)))
        return left
    if func is operator.mul and (content is None or content.kind == "list"):
        count = known_value(right)
        if content is None or not isinstance(count, int):
            raise cx.refusal(NotDifferentiable, "'*=' of a list needs numbers that are known here.", "Write a = a * n.")
        cx.set_cell(left, list_of(content.children * count))
        return left
    return None


def _sequence(cx: Context, kind: str, children: tuple[Any, ...]) -> Any:
    return tuple_of(children) if kind == "tuple" else cx.new_cell(list_of(children))


def on_objects(cx: Context, func: Any, left: Any, right: Any) -> Any:
    """An operator that a class defines; None when neither operand is such an object."""
    name = _DUNDER.get(func)
    if name is None:
        return None
    contents = [struct_of(cx, side) for side in (left, right)]
    classes = [content.cls if content is not None and content.kind == "object" else object for content in contents]
    tries = [
        (classes[0], left, right, f"__{name}__"),
        (classes[1], right, left, f"__{_REFLECTED.get(name, 'r' + name)}__"),
    ]
    if classes[0] is not classes[1] and classes[0] is not object and issubclass(classes[1], classes[0]):
        tries.reverse()
    for cls, subject, other, method in tries:
        found = special_method(cx, cls, method) if cls is not object else None
        if subject is right and found is not None and is_array(left) and getattr(cls, "__array_ufunc__", 0) is not None:
            raise cx.refusal(
                NotDifferentiable,
                f"NumPy applies an operator between an array and a '{cls.__name__}' to each element of the array.",
                f"Call a method, or say '__array_ufunc__ = None' in '{cls.__name__}'.",
            )
        if callable(found) and found is not getattr(object, method, None):
            result = cx.call(cx, StaticValue(found), (subject, other), {})
            if not isinstance(result, StaticValue) or result.value is not NotImplemented:
                return result
    return None


@evaluates(gast.UnaryOp)
def _unary(cx: Context, node: gast.UnaryOp, hint: str | None) -> Any:
    if isinstance(node.op, gast.Not):
        value = evaluate(cx, node.operand)
        test = not_(truth_of(cx, value))
        return StaticValue(test) if isinstance(test, bool) else Leaf(test)
    value = definite(cx, evaluate(cx, node.operand))
    func = _UNARY[type(node.op)]
    content = struct_of(cx, value)
    if content is not None and content.kind == "object":
        found = special_method(cx, content.cls, f"__{func.__name__}__")
        if found is not None:
            return cx.call(cx, StaticValue(found), (value,), {})
    if type_of(value) is None:
        cx.raise_(TypeError, f"bad operand type for unary {func.__name__}: {type_name(cx, value)}")
    if type_of(value) == BOOL:
        value = emit_call(cx, int, (value,))  # as above: where ~True is False
    return emit_call(cx, func, (value,), hint=hint)
