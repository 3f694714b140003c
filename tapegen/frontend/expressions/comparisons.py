"""Comparisons and boolean logic: `and`, `or`, conditional expressions and conditions."""

from __future__ import annotations

import dataclasses
import operator
from collections.abc import Callable, Sequence
from enum import Enum
from types import BuiltinFunctionType, FunctionType
from typing import Any

import gast
import numpy as np

from tapegen.errors import TapegenError, UnsupportedSyntax
from tapegen.frontend.expressions.expressions import evaluate, evaluate_all, evaluates
from tapegen.frontend.expressions.operators import as_array, mixes_array, on_objects, type_name
from tapegen.frontend.expressions.unions import as_bool, choose, quietly, refine, refined, split, truth_of
from tapegen.frontend.lowering.emit import SIGNS, emit_call, fold
from tapegen.frontend.values.captures import class_member, special_method
from tapegen.frontend.values.context import Context
from tapegen.frontend.values.materialize import (
    describe,
    expr_of,
    keys_as_set,
    not_,
    refuse_text,
    run_list_of,
    static,
    struct_of,
    type_of,
)
from tapegen.frontend.values.pytree import UNKNOWN, Leaf, StaticValue, Struct, dict_of, list_of, same_static, tuple_of
from tapegen.frontend.values.state import Choice, Closure, Ref, View, is_number, known_value
from tapegen.frontend.values.type_join import Clash, converted, merged_type
from tapegen.ir import intrinsics
from tapegen.ir.names import TEMPORARY
from tapegen.ir.nodes import Call, Const, Expr, Var
from tapegen.ir.types import BOOL, Array, Scalar, is_floating

# ---- comparisons ---------------------------------------------------------------------------------------------------

COMPARISONS: dict[type, Any] = {
    gast.Eq: operator.eq,
    gast.NotEq: operator.ne,
    gast.Lt: operator.lt,
    gast.LtE: operator.le,
    gast.Gt: operator.gt,
    gast.GtE: operator.ge,
}


@evaluates(gast.Compare)
def _compare(cx: Context, node: gast.Compare, hint: str | None) -> Any:
    if len(node.ops) == 1:
        left, right = evaluate_all(cx, [node.left, node.comparators[0]])
        return compare(cx, node.ops[0], left, right, hint)
    left = evaluate(cx, node.left)
    return _chain(cx, node, 0, left)


def _chain(cx: Context, node: gast.Compare, k: int, left: Any) -> Any:
    """`a < b < c`: b is evaluated once, c only when `a < b`."""
    right = evaluate(cx, node.comparators[k])
    last = k == len(node.ops) - 1
    if not last and isinstance(right, Leaf) and not isinstance(right.expr, (Var, Const)) and not _simple(right.expr):
        right = Leaf(cx.assign(TEMPORARY, right.expr), right.known)
    result = compare(cx, node.ops[k], left, right)
    if last:
        return result
    return both(cx, intrinsics.and_, result, lambda: _chain(cx, node, k + 1, right))


def _simple(expr: Expr) -> bool:
    """Whether an expression is cheap enough to evaluate twice."""
    return isinstance(expr, Call) and expr.func is intrinsics.dim


def compare(cx: Context, op: gast.cmpop, left: Any, right: Any, hint: str | None = None) -> Any:
    """One comparison."""
    if isinstance(op, (gast.Is, gast.IsNot)):
        return _identity(cx, left, right, isinstance(op, gast.Is))
    if isinstance(op, (gast.In, gast.NotIn)):
        found = _contains(cx, right, left)
        return found if isinstance(op, gast.In) else _not(cx, found)
    return compare_values(cx, COMPARISONS[type(op)], left, right, hint)


def compare_values(cx: Context, func: Any, left: Any, right: Any, hint: str | None = None) -> Any:
    """`left < right` and other comparison operators."""
    if isinstance(left, Choice) or isinstance(right, Choice):
        return split(cx, (left, right), lambda a, b: compare_values(cx, func, a, b, hint), hint)
    refuse_text(cx, left, right)
    if type_of(left) is not None and type_of(right) is not None:
        return emit_call(cx, func, (left, right), hint=hint)
    left, right = keys_as_set(cx, left), keys_as_set(cx, right)
    known = fold(cx, func, (left, right))
    if known is not UNKNOWN:
        return StaticValue(known)
    if isinstance(left, View) or isinstance(right, View):
        raise _incomparable(cx, left, right, "Compare the dicts themselves, or lists made of what is in them.")
    a, b = _items(cx, left), _items(cx, right)
    equality = func in (operator.eq, operator.ne)
    if a is not None and b is not None and _is_generated(cx, a.cls, "__eq__" if equality else f"__{func.__name__}__"):
        if equality and a.cls is not b.cls:
            return StaticValue(func is operator.ne)
        if a.cls is b.cls:
            names = [item.name for item in dataclasses.fields(a.cls) if item.compare]
            first, second = (tuple_of(side.get(name) for name in names) for side in (a, b))
            return compare_values(cx, func, first, second, hint)
    found = on_objects(cx, func, left, right)
    if found is not None:
        return found
    if func is operator.ne:
        found = on_objects(cx, operator.eq, left, right)
        if found is not None:
            return _not(cx, found)
    if mixes_array(left, right) or mixes_array(right, left):
        return emit_call(cx, func, (as_array(cx, left), as_array(cx, right)), hint=hint)
    if a is not None and b is not None and a.kind in ("tuple", "list", "dict") and func in (operator.eq, operator.ne):
        return _equal_contents(cx, func, a, b)
    if a is not None and b is not None and a.kind == b.kind and a.kind in ("tuple", "list"):
        return _in_order(cx, func, a.children, b.children)
    if func in (operator.eq, operator.ne):
        if isinstance(left, StaticValue) and isinstance(right, StaticValue):
            return StaticValue(same_static(left.value, right.value) == (func is operator.eq))
        if a is not None and b is not None and a.kind == b.kind == "object":
            return _identity(cx, left, right, func is operator.eq)
        if _is_plain(cx, left, right) and _is_plain(cx, right, left):
            return StaticValue(func is operator.ne)  # a number is not equal to None, a string, a list ...
        raise _incomparable(
            cx, left, right, "Compare item by item in a loop, or arrays made of the lists (np.array(items) == ...)."
        )
    cx.raise_(
        TypeError,
        f"'{SIGNS[func]}' not supported between instances of {type_name(cx, left)} and {type_name(cx, right)}",
    )


def _items(cx: Context, value: Any) -> Struct | None:
    """The contents of a container, also of a static one."""
    if isinstance(value, StaticValue) and type(value.value) in (tuple, list, dict):
        known = value.value
        if isinstance(known, dict):
            return dict_of((key, StaticValue(item)) for key, item in known.items())
        items = map(StaticValue, known)
        return tuple_of(items) if isinstance(known, tuple) else list_of(items)
    return struct_of(cx, value)


def _is_plain(cx: Context, value: Any, other: Any) -> bool:
    """Whether two values are of different kinds that never compare equal."""
    if isinstance(value, StaticValue):
        known = value.value
        return known is None or isinstance(known, _PLAIN) or is_number(known)
    if isinstance(value, Leaf):
        return isinstance(value.type, (Scalar, Array))
    if run_list_of(cx, value) is not None:
        return isinstance(other, StaticValue) and not isinstance(other.value, list)
    content = struct_of(cx, value)
    return content is not None and (
        content.kind != "object" or class_member(cx, content.cls, "__eq__") is object.__eq__
    )


_PLAIN = (str, bytes, set, frozenset, range, type, FunctionType, BuiltinFunctionType, Closure, Enum, np.ufunc)


def _incomparable(cx: Context, left: Any, right: Any, advice: str) -> TapegenError:
    return cx.refusal(UnsupportedSyntax, f"{describe(cx, left)} is not compared with {describe(cx, right)}.", advice)


def _equal_contents(cx: Context, func: Any, a: Struct, b: Struct) -> Any:
    """`==` of tuples, lists and dicts."""
    if a.kind != b.kind or len(a.children) != len(b.children) or (a.kind == "dict" and set(a.keys) != set(b.keys)):
        return StaticValue(func is operator.ne)
    others = b.children if a.kind != "dict" else [b.get(key) for key in a.keys]
    result: Any = StaticValue(True)
    for x, y in zip(a.children, others, strict=True):
        result = both(cx, intrinsics.and_, result, lambda x=x, y=y: compare(cx, gast.Eq(), x, y))  # type: ignore[misc]
    return result if func is operator.eq else _not(cx, result)


def _in_order(cx: Context, func: Any, a: Sequence[Any], b: Sequence[Any]) -> Any:
    """Lexicographic order of tuples and lists: the first items that differ decide."""
    if not a or not b:
        return StaticValue(func(len(a), len(b)))
    strict = operator.lt if func in (operator.lt, operator.le) else operator.gt

    def rest() -> Any:
        equal = compare_values(cx, operator.eq, a[0], b[0])
        return both(cx, intrinsics.and_, equal, lambda: _in_order(cx, func, a[1:], b[1:]))

    return both(cx, intrinsics.or_, compare_values(cx, strict, a[0], b[0]), rest)


def _not(cx: Context, value: Any) -> Any:
    test = not_(truth_of(cx, value))
    return StaticValue(test) if isinstance(test, bool) else Leaf(test)


def _is_generated(cx: Context, cls: type, method: str) -> bool:
    """Whether a method of a class was made by `dataclass`."""
    found = class_member(cx, cls, method)
    return dataclasses.is_dataclass(cls) and isinstance(found, FunctionType) and found.__code__.co_filename[0] == "<"


def _identity(cx: Context, left: Any, right: Any, wanted: bool) -> Any:
    """`left is right` (or `is not`)."""
    if isinstance(right, Choice):
        left, right = right, left
    if isinstance(left, StaticValue) and isinstance(left.value, bool):
        left, right = right, left
    if type_of(left) == BOOL and isinstance(right, StaticValue) and isinstance(right.value, bool):
        return left if right.value == wanted else _not(cx, left)  # Python has one True and one False
    if not isinstance(left, Choice):
        return StaticValue(_is(cx, left, right) == wanted)
    answers = [_is(cx, part, right) == wanted for part in (left.first, left.second)]
    if answers[0] == answers[1]:
        return StaticValue(answers[0])
    test = left.test if answers[0] else not_(left.test)
    assert not isinstance(test, bool)
    return Leaf(test)


def _is(cx: Context, left: Any, right: Any) -> bool:
    """Whether two values are one object."""
    if isinstance(left, StaticValue) and isinstance(right, StaticValue):
        return left.value is right.value
    if isinstance(left, StaticValue) or isinstance(right, StaticValue):
        constant = left.value if isinstance(left, StaticValue) else right.value
        if constant is None or isinstance(constant, (bool, str, type)):
            other = right if isinstance(left, StaticValue) else left
            if not (isinstance(constant, bool) and type_of(other) == BOOL):
                return False
    containers = isinstance(left, Ref) and isinstance(right, Ref)
    if containers and (left.cell == right.cell or not {left.cell, right.cell} & cx.containers.merged_cells.keys()):
        return bool(left.cell == right.cell)
    if (
        isinstance(left, Leaf)
        and isinstance(right, Leaf)
        and isinstance(left.type, Array)
        and cx.symbols.resolve(left.expr) == cx.symbols.resolve(right.expr)
    ):
        return True
    raise cx.refusal(
        UnsupportedSyntax, "'is' between values of the program depends on how they are stored.", "Use '=='."
    )


def _contains(cx: Context, container: Any, item: Any) -> Any:
    """`item in container`."""
    known = fold(cx, operator.contains, (container, item))
    if known is not UNKNOWN:
        return StaticValue(known)
    refuse_text(cx, container, item)
    content = struct_of(cx, container)
    special = special_method(cx, content.cls, "__contains__") if content is not None else None
    if content is not None and content.kind == "object" and special is not None:
        return as_bool(cx, cx.call(cx, StaticValue(special), (container, item), {}))
    if (
        content is None
        and isinstance(container, StaticValue)
        and isinstance(container.value, (tuple, list, set, frozenset, range))
    ):
        content = tuple_of(map(StaticValue, container.value))
    if content is not None and content.kind == "dict":
        return StaticValue(static(cx, item, "a key") in content.keys)
    if content is not None and content.kind in ("tuple", "list"):
        result: Any = StaticValue(False)
        for child in content.children:
            result = both(cx, intrinsics.or_, result, lambda child=child: compare(cx, gast.Eq(), child, item))  # type: ignore[misc]
        return result
    if isinstance(container, Leaf) and isinstance(container.type, Array):
        return emit_call(cx, np.any, (emit_call(cx, operator.eq, (container, item)),))
    raise cx.refusal(
        UnsupportedSyntax, f"'in {describe(cx, container)}' is not supported.", "Write a loop, or np.any(a == x)."
    )


# ---- and, or, ternary ----------------------------------------------------------------------------------------------


@evaluates(gast.BoolOp)
def _boolean(cx: Context, node: gast.BoolOp, hint: str | None) -> Any:
    func = intrinsics.and_ if isinstance(node.op, gast.And) else intrinsics.or_
    result = evaluate(cx, node.values[0])
    for part in node.values[1:]:
        result = both(cx, func, result, lambda part=part: evaluate(cx, part), hint)  # type: ignore[misc]
    return result


def both(cx: Context, func: Any, left: Any, right: Callable[[], Any], hint: str | None = None) -> Any:
    """`left and right` or `left or right`; `right()` is evaluated only where Python would."""
    test = truth_of(cx, left)
    if isinstance(test, bool):
        return right() if test == (func is intrinsics.and_) else left
    if isinstance(left, Leaf) and isinstance(left.type, Scalar) and left.type.dtype == "bool":
        value = quietly(cx, right)
        if value is not None:
            known = known_value(value)
            if is_number(known) and isinstance(value, StaticValue) and isinstance(known, bool):
                # `x and True` is x, `x or False` is x; the other two are known whatever x is
                return left if known == (func is intrinsics.and_) else StaticValue(known)
            if isinstance(value, Leaf) and isinstance(value.type, Scalar) and value.type.dtype == "bool":
                decided = isinstance(known, bool) and known != (func is intrinsics.and_)
                whole = Call(func, (expr_of(cx, left), expr_of(cx, value)), (), BOOL)
                return Leaf(whole, known if decided else UNKNOWN)
    if func is intrinsics.and_:
        return choose(cx, test, right, lambda: left, hint)
    return choose(cx, test, lambda: left, right, hint)


@evaluates(gast.IfExp)
def _ternary(cx: Context, node: gast.IfExp, hint: str | None) -> Any:
    test = condition(cx, node.test)
    if isinstance(test, bool):
        return evaluate(cx, node.body if test else node.orelse, hint)

    def side(part: gast.AST, outcome: bool) -> Any:
        with refined(cx):
            refine(cx, node.test, outcome)
            return evaluate(cx, part)

    a = quietly(cx, lambda: side(node.body, True))
    b = quietly(cx, lambda: side(node.orelse, False)) if a is not None else None
    if a is not None and b is not None and type_of(a) is not None and type_of(b) is not None:
        type_ = type_of(a)
        ints = isinstance(type_, Scalar) and not is_floating(type_) and type_ == type_of(b)
        if ints or cx.whole:
            try:
                type_ = merged_type("value", (a, b))
            except Clash:  # reported where the value is used, if it is
                return choose(cx, test, lambda: side(node.body, True), lambda: side(node.orelse, False), hint)
            return Leaf(
                Call(
                    intrinsics.ifelse,
                    (test, converted(expr_of(cx, a), type_), converted(expr_of(cx, b), type_)),
                    (),
                    type_,
                )
            )
    return choose(cx, test, lambda: side(node.body, True), lambda: side(node.orelse, False), hint)


# ---- conditions ----------------------------------------------------------------------------------------------------


def try_expression(cx: Context, node: gast.AST) -> bool | Expr | None:
    """The test of an If or While as one expression: True or False when known, None when it needs statements."""
    return quietly(cx, lambda: _test(cx, node))


def condition(cx: Context, node: gast.AST) -> bool | Expr:
    """The test of an If; statements that it needs are emitted first."""
    test = try_expression(cx, node)
    return test if test is not None else _test(cx, node)


def _test(cx: Context, node: gast.AST) -> bool | Expr:
    """The truth of a node."""
    with cx.at(node):
        match node:
            case gast.UnaryOp() if isinstance(node.op, gast.Not):
                return not_(_test(cx, node.operand))
            case gast.BoolOp():
                func = intrinsics.and_ if isinstance(node.op, gast.And) else intrinsics.or_
                with refined(cx):
                    return _all_tests(cx, func, node.values)
    return truth_of(cx, evaluate(cx, node))


def _all_tests(cx: Context, func: Any, nodes: Sequence[gast.AST]) -> bool | Expr:
    """`a and b and ...`, split in the middle so that long ones do not nest deeply."""
    if len(nodes) > 2:
        middle = len(nodes) // 2
        left = _all_tests(cx, func, nodes[:middle])
        return _both_tests(cx, func, left, nodes[:middle], lambda: _all_tests(cx, func, nodes[middle:]))
    left = _test(cx, nodes[0])
    if len(nodes) == 1:
        return left
    return _both_tests(cx, func, left, nodes[:1], lambda: _test(cx, nodes[1]))


def _both_tests(
    cx: Context, func: Any, left: bool | Expr, seen: Sequence[gast.AST], rest: Callable[[], bool | Expr]
) -> bool | Expr:
    """`left and right`; `rest` is tested only where Python would, narrowed by the nodes `seen`."""

    def test() -> bool | Expr:
        for node in seen:
            refine(cx, node, func is intrinsics.and_)
        return rest()

    if isinstance(left, bool):
        return test() if left == (func is intrinsics.and_) else left
    right = quietly(cx, test)
    if right is None:

        def compute() -> Any:
            result = test()
            return StaticValue(result) if isinstance(result, bool) else Leaf(result)

        known = StaticValue(func is intrinsics.or_)
        first, second = (compute, lambda: known) if func is intrinsics.and_ else (lambda: known, compute)
        return truth_of(cx, choose(cx, left, first, second, None))
    if isinstance(right, bool):
        return left if right == (func is intrinsics.and_) else right
    return Call(func, (left, right), (), BOOL)
