"""Materialization: abstract values as IR expressions, truth values, and values of variables."""

from __future__ import annotations

import dataclasses
import enum
import functools
import operator
from types import GeneratorType
from typing import Any, overload

import numpy as np

from tapegen.errors import BadArgument, NotDifferentiable
from tapegen.frontend.mutation.caller_objects import look_into
from tapegen.frontend.source.desugar_yield import collected
from tapegen.frontend.values.captures import expand, special_method
from tapegen.frontend.values.context import Context, NeedsConstant, NeedsStatements
from tapegen.frontend.values.pytree import UNKNOWN, Leaf, Slot, StaticValue, Struct, tuple_of
from tapegen.frontend.values.state import (
    Bound,
    Captured,
    Choice,
    Closure,
    Frame,
    Poison,
    Ref,
    RunList,
    Series,
    View,
    is_number,
    known_value,
)
from tapegen.ir import intrinsics
from tapegen.ir.names import TEMPORARY
from tapegen.ir.nodes import Call, Const, Expr, Tuple, Var
from tapegen.ir.printer import type_text
from tapegen.ir.types import BOOL, INT, STATIC, Array, ListOf, Scalar, Type, is_floating

# ---- expressions ---------------------------------------------------------------------------------------------------


def expr_of(cx: Context, value: Any) -> Expr:
    """An abstract value as an operand."""
    if isinstance(value, Choice):
        value = definite(cx, value)
    if isinstance(value, Leaf):
        return cx.symbols.resolve(value.expr)
    if isinstance(value, StaticValue):
        return const_expr(value.value)
    match value:
        case Struct(kind, _, children, _, whole) if kind in ("tuple", "list"):
            return whole if whole is not None else Tuple(tuple(expr_of(cx, child) for child in children))
        case Ref(cell):
            look_into(cx, value)
            content = cx.state.cells[cell].content
            if isinstance(content, RunList):
                if len(content.columns) == 1 and isinstance(content.item, Leaf):
                    return content.columns[0]
                raise cx.refusal(
                    NotDifferentiable, "a list of tuples is used as one value here.", "Keep one list per item."
                )
            return expr_of(cx, content)
        case Captured():
            return expr_of(cx, expand(cx, value))
    raise cx.refusal(
        NotDifferentiable, f"{describe(cx, value)} cannot be used as a number here.", "Pass numbers and arrays."
    )


def const_expr(constant: Any) -> Expr:
    """A compile-time value as an expression; NumPy scalars keep their type."""
    if isinstance(constant, np.generic):
        item = constant.item()
        return Call(type(constant), (Const(item),), (), Scalar(constant.dtype.name, python=False))
    if isinstance(constant, np.dtype):
        return Const(constant.type)
    if isinstance(constant, tuple):
        return Tuple(tuple(map(const_expr, constant)))
    return Const(plain_number(constant))


def plain_number(constant: Any) -> Any:
    """The number of a member of a numeric enumeration; other values unchanged."""
    if isinstance(constant, enum.Enum) and isinstance(constant, (int, float)):
        return int(constant) if isinstance(constant, int) else float(constant)
    return constant


def definite(cx: Context, value: Any) -> Any:
    """The non-None alternative of a value that may be None; None raises as in Python."""
    if not isinstance(value, Choice):
        return value
    none = [isinstance(part, StaticValue) and part.value is None for part in (value.first, value.second)]
    if not any(none):
        raise cx.refusal(
            BadArgument,
            "this is one of two kinds of value, depending on the path taken.",
            "Give it one type on all paths.",
        )
    test = value.test if none[0] else not_(value.test)
    assert not isinstance(test, bool)
    cx.raise_if(test, TypeError, "unsupported operand type(s): 'NoneType'")
    return value.second if none[0] else value.first


def describe(cx: Context, value: Any) -> str:
    """A description of a value, for messages."""
    match value:
        case Leaf():
            return f"a value of type {type_text(value.type)}"
        case StaticValue(Closure()):
            return "a function"
        case StaticValue(constant):
            return (
                f"{constant!r}"
                if is_number(constant) or constant is None
                else f"'{getattr(constant, '__name__', constant)}'"
            )
        case Struct(kind):
            return f"an object of class {value.cls.__name__}" if kind == "object" else f"a {kind}"
        case Ref(cell):
            content = cx.state.cells[cell].content
            return "a list" if isinstance(content, RunList) else describe(cx, content)
        case Captured():
            return f"'{value.name}'"
        case Bound() | Closure():
            return "a function"
        case Choice():
            return "a value of one of two kinds"
        case Series():
            return "an iterator"
        case View(part=part):
            return f"a view of the {part} of a dict"
    return f"a {type(value).__name__}"


def operand(cx: Context, value: Any, base: str = TEMPORARY) -> Expr:
    return cx.atom(expr_of(cx, value), base)


def array_operand(cx: Context, value: Any) -> Var:
    """The variable that holds an array.

    Raises
    ------
    NeedsStatements
        It is an item of a list in a condition, which cannot assign it.
    """
    array = operand(cx, value)
    if not isinstance(array, Var):
        raise NeedsStatements
    return array


def int_expr(cx: Context, value: Any) -> Expr:
    """An integer expression, constant-folded."""
    known = known_value(value)
    if isinstance(value, StaticValue) and isinstance(known, (int, np.integer)):
        return Const(int(known))
    return expr_of(cx, value)


def is_int(value: Any) -> bool:
    """Whether a value is an integer (not a bool), known or not."""
    if isinstance(value, StaticValue):
        return isinstance(value.value, (int, np.integer)) and not isinstance(value.value, bool)
    return isinstance(value, Leaf) and isinstance(value.type, Scalar) and "int" in value.type.dtype


def type_of(value: Any) -> Type | None:
    """The type of a scalar or array; None for anything else."""
    if isinstance(value, Leaf):
        return value.type
    if isinstance(value, StaticValue):
        constant = plain_number(value.value)
        if is_number(constant):
            return Const(constant).type
        if isinstance(constant, np.generic):
            return const_expr(constant).type
    return None


def static(cx: Context, value: Any, what: str) -> Any:
    """The compile-time value of an argument that needs one.

    Raises
    ------
    NeedsConstant
        It is an integer that is not known yet.
    """
    if isinstance(value, Captured):
        value = expand(cx, value)
    known = known_value(value)
    if known is not UNKNOWN:
        return known
    content = struct_of(cx, value)
    if content is not None and content.kind in ("tuple", "list"):
        return tuple(static(cx, child, what) for child in content.children)
    refusal = cx.refusal(NotDifferentiable, f"{what} must be known before the program runs.", "Write it as a constant.")
    if isinstance(value, Leaf):
        raise NeedsConstant(expr_of(cx, value), refusal)
    raise refusal


# ---- containers ----------------------------------------------------------------------------------------------------


def struct_of(cx: Context, value: Any) -> Struct | None:
    """The contents of a container whose layout is known, else None."""
    if isinstance(value, Ref):
        look_into(cx, value)
        content = cx.state.cells[value.cell].content
        if isinstance(content, Struct):
            check_keys(cx, value.cell, content)
            return content
        return None
    if isinstance(value, Captured):
        return expand(cx, value)
    if isinstance(value, View):
        return _seen(cx, value)
    return value if isinstance(value, Struct) else None


def keys_as_set(cx: Context, value: Any) -> Any:
    """The keys of a dict as a set, for comparisons and set operations."""
    if isinstance(value, View) and value.part == "keys":
        return StaticValue({child.value for child in _seen(cx, value).children})
    return value


def _seen(cx: Context, view: View) -> Struct:
    """The current items of a view of a dict."""
    content = struct_of(cx, view.owner)
    assert content is not None
    keys = map(StaticValue, content.keys)
    if view.part == "keys":
        return tuple_of(keys)
    if view.part == "values":
        return tuple_of(content.children)
    return tuple_of(tuple_of(pair) for pair in zip(keys, content.children, strict=True))


def check_keys(cx: Context, cell: int, content: Struct) -> None:
    """Refuse a dict or object whose keys depend on the path that was taken."""
    if content.kind == "poison":
        what = "keys of this dict" if content.cls is dict else f"attributes of this '{content.cls.__name__}'"
        refusal = cx.refusal(
            BadArgument,
            f"the {what} are not the same on all paths to this place.",
            "Set all of them on every path, with None or 0.0 for what is missing.",
        )
        cx.loop_refused(cx.containers.unsettled.get(cell), refusal)


def run_list_of(cx: Context, value: Any) -> RunList | None:
    if isinstance(value, Ref):
        look_into(cx, value)
        content = cx.state.cells[value.cell].content
        return content if isinstance(content, RunList) else None
    return None


def adopt(cx: Context, value: Any) -> Any:
    """An abstract argument as a value of the program: mutable containers get an identity and belong to the caller."""
    if not isinstance(value, Struct):
        return value
    made = dataclasses.replace(value, children=tuple(adopt(cx, child) for child in value.children))
    if made.kind == "tuple":
        return made
    what = {"list": "a list", "dict": "a dict"}.get(made.kind, f"a {made.cls.__name__} object")
    return cx.new_cell(made, f"this changes {what} that belongs to the caller or to another part of the program.")


def _likely(cx: Context, value: Choice) -> Any:
    """A result that is None or constant on some paths (`s = 0.0` before a loop that may not run): these paths raise."""
    first, second = value.first, value.second
    if isinstance(type_of(first), Scalar) and isinstance(type_of(second), Array):
        likely, test = second, value.test
    elif isinstance(type_of(second), Scalar) and isinstance(type_of(first), Array):
        likely, test = first, not_(value.test)
    else:
        return definite(cx, value)
    assert not isinstance(test, bool)
    cx.raise_if(test, TypeError, "the result is a number on this path, and an array on others")
    return likely


def export(cx: Context, value: Any) -> Any:
    """A value without container identities, and without unions."""
    if isinstance(value, Choice):
        value = _likely(cx, value)
    if isinstance(value, Captured):
        value = expand(cx, value)
    if isinstance(value, Ref):
        look_into(cx, value)
        content = cx.state.cells[value.cell].content
        if isinstance(content, Struct) and content.cls is GeneratorType:
            return export(cx, cx.call(cx, StaticValue(collected), (value,), {}))
        if isinstance(content, RunList):
            return Leaf(expr_of(cx, value))
        check_keys(cx, value.cell, content)
        value = content
    if isinstance(value, Struct):
        return dataclasses.replace(value, children=tuple(export(cx, child) for child in value.children))
    return value


def flat_result(cx: Context, result: Any) -> tuple[Any, list[Expr]]:
    """The structure of an exported result with Slots for leaves, and the values of these."""
    exprs: list[Expr] = []

    def slots(value: Any) -> Any:
        if isinstance(value, Leaf):
            expr = expr_of(cx, value)
            if isinstance(expr, Var):
                cx.symbols.entitle(expr, "result")
            exprs.append(expr if isinstance(expr, (Var, Const)) else cx.atom(expr, "result"))
            return Slot(len(exprs) - 1)
        if isinstance(value, Struct):
            inside = getattr(value.cls, "__tapegen_inside__", None)
            if inside is not None:
                raise cx.refusal(
                    NotDifferentiable, f"the function returns {inside}.", "Return numbers and arrays of it."
                )
            return dataclasses.replace(value, children=tuple(map(slots, value.children)), whole=None)
        if isinstance(value, Choice):
            first, second = describe(cx, value.first), describe(cx, value.second)
            raise cx.refusal(
                BadArgument, f"a result is {first} on one path and {second} on another.", "Return one kind of value."
            )
        if not isinstance(poison_check(cx, value), StaticValue):
            raise cx.refusal(BadArgument, "the result is not made of numbers and arrays.", "Return numbers.")
        return value

    return slots(result), exprs


# ---- truth ---------------------------------------------------------------------------------------------------------


def refuse_text(cx: Context, *values: Any) -> None:
    """Refuse to inspect text built from run-time values: generated code supports it in messages only."""
    for value in values:
        if isinstance(value, Leaf) and value.type == STATIC and not isinstance(value.expr, Const):
            raise cx.refusal(
                NotDifferentiable,
                "text made from computed numbers may be used in messages only.",
                "Test the numbers themselves (x == 1.0 instead of str(x) == '1.0').",
            )


def truth(cx: Context, value: Any) -> bool | Expr:
    """The truth value of `if value`: True or False when known, else a boolean expression."""
    known = known_value(value)
    if known is not UNKNOWN:
        return bool(known)
    refuse_text(cx, value)
    if isinstance(value, Choice):
        return _either(cx, value.test, truth(cx, value.first), truth(cx, value.second))
    if isinstance(value, Leaf):
        type_ = value.type
        if isinstance(type_, Array):
            return array_truth(cx, value)
        expr = expr_of(cx, value)
        if isinstance(type_, ListOf):
            return Call(operator.gt, (Call(len, (expr,), (), INT), Const(0)), (), BOOL)
        if isinstance(type_, Scalar) and type_.dtype != "bool":
            zero = Const(0.0) if is_floating(type_) else Const(0)
            return Call(operator.ne, (expr, zero), (), BOOL)
        return expr
    run_list = run_list_of(cx, value)
    if run_list is not None:
        return Call(operator.gt, (Call(len, (run_list.columns[0],), (), INT), Const(0)), (), BOOL)
    content = struct_of(cx, value)
    if content is not None and content.kind != "object":
        return bool(content.children)
    if content is not None:
        for name in ("__bool__", "__len__"):
            special = special_method(cx, content.cls, name)
            if special is not None:
                return truth(cx, cx.call(cx, StaticValue(special), (value,), {}))
    if isinstance(value, Series):
        raise cx.refusal(NotDifferentiable, "the truth of an iterator is not a useful test.", "Compare lengths.")
    return True


def _either(cx: Context, test: Expr, first: bool | Expr, second: bool | Expr) -> bool | Expr:
    """`first if test else second` of truths."""
    if first is True:
        return test if second is False else True if second is True else Call(intrinsics.or_, (test, second), (), BOOL)
    if second is False:
        return False if first is False else Call(intrinsics.and_, (test, first), (), BOOL)
    other = not_(test)
    assert not isinstance(other, bool)
    if first is False:
        return other if second is True else Call(intrinsics.and_, (other, second), (), BOOL)
    if second is True:
        return Call(intrinsics.or_, (other, first), (), BOOL)
    return Call(intrinsics.ifelse, (test, first, second), (), BOOL)


_AMBIGUOUS = "The truth value of an array with more than one element is ambiguous. Use a.any() or a.all()"


def array_truth(cx: Context, value: Leaf) -> Expr:
    """The truth value of an array: that of its only element, as in NumPy."""
    array = array_operand(cx, value)
    assert isinstance(array.type, Array)
    if array.type.rank and not all(array.type.is_unit(k) for k in range(array.type.rank)):
        size = Call(np.size, (array,), (), INT)
        cx.raise_if(Call(operator.ne, (size, Const(1)), (), BOOL), ValueError, _AMBIGUOUS)
    return Call(np.any, (array,), (), Scalar("bool", python=False))


@overload
def not_(test: bool) -> bool: ...
@overload
def not_(test: Expr) -> Expr: ...
@overload
def not_(test: bool | Expr) -> bool | Expr: ...
def not_(test: bool | Expr) -> bool | Expr:
    """`not test`, with comparisons negated."""
    if isinstance(test, bool):
        return not test
    if isinstance(test, Call) and test.func is operator.not_:
        return test.args[0]
    return Call(operator.not_, (test,), (), BOOL)


# ---- variables -----------------------------------------------------------------------------------------------------


def named(cx: Context, frame: Frame, name: str, value: Any) -> Any:
    """A value as a variable holds it: computed values are bound to names, literals stay literals."""
    if isinstance(value, StaticValue):
        known = value.value
        number = isinstance(known, np.generic) or (is_number(known) and not isinstance(known, bool))
        if cx.rules or cx.whole or not number:
            return value
        return Leaf(cx.assign(name, const_expr(known)), known)
    if isinstance(value, Leaf) and not isinstance(value.expr, Var):
        if cx.whole:
            if frame.live.loads[name] > 1 and not isinstance(value.expr, Const):
                raise NeedsStatements
            return value
        return Leaf(cx.assign(name, value.expr), value.known)
    if isinstance(value, Struct) and value.kind == "tuple" and value.whole is None and not cx.rules:
        children = tuple(
            named(cx, frame, f"{name}_{key}", child) if isinstance(child, Leaf) else cx.counted(child)
            for key, child in zip(value.keys, value.children, strict=True)
        )
        return dataclasses.replace(value, children=children)
    return cx.counted(value) if isinstance(value, Series) else value


@functools.cache
def zero_of(type_: Type) -> Expr:
    """A placeholder for a value that no path reads: the initial value of a phi that is bound later."""
    match type_:
        case Scalar("bool"):
            return Const(False)
        case Scalar():
            if not is_floating(type_):
                return Const(0)
            return Const(0.0) if type_.dtype == "float64" else Call(getattr(np, type_.dtype), (Const(0.0),), (), type_)
        case Array(dtype, rank):
            shape = Tuple((Const(0),) * rank)
            return Call(
                np.empty, (shape,), (("dtype", Const(getattr(np, "bool_" if dtype == "bool" else dtype))),), type_
            )
        case ListOf():
            return Call(intrinsics.new_list, (), (), type_)
    return Const(None)


def poison_check(cx: Context, value: Any) -> Any:
    """Refuse a read of a variable that has no single value here (poison)."""
    if isinstance(value, Poison):
        raise cx.refusal(BadArgument, value.reason, value.advice)
    return value
