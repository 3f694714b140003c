"""Simple statements: assignments, calls for their effect, assert, raise, inner functions."""

from __future__ import annotations

import functools
import operator
from collections.abc import Callable
from types import ModuleType
from typing import Any

import gast
import numpy as np

from tapegen.errors import NotDifferentiable, UnsupportedSyntax
from tapegen.frontend.expressions.comparisons import condition
from tapegen.frontend.expressions.expressions import (
    Given,
    bind_name,
    elements,
    evaluate,
    make_closure,
    owner_of,
    put_name,
    spread,
)
from tapegen.frontend.expressions.operators import BINARY, binary, in_place_operator
from tapegen.frontend.expressions.strings import text_of
from tapegen.frontend.expressions.subscript_stores import check_rank, store_place
from tapegen.frontend.expressions.subscripts import Place, load_place, place_of
from tapegen.frontend.expressions.unions import each_kind
from tapegen.frontend.lowering.attribute_stores import set_attribute
from tapegen.frontend.lowering.emit import emit_call
from tapegen.frontend.mutation.caller_objects import is_tail
from tapegen.frontend.mutation.written_captures import write_captured
from tapegen.frontend.source.parse import Parsed
from tapegen.frontend.templates import builtin_functions
from tapegen.frontend.values.captures import capture
from tapegen.frontend.values.complex_parts import is_part
from tapegen.frontend.values.constant_shapes import extent
from tapegen.frontend.values.context import Builder, Context, NeedsStatements, OpenIf, Unreachable
from tapegen.frontend.values.dynamic_lists import append, item, length
from tapegen.frontend.values.materialize import (
    array_operand,
    definite,
    describe,
    expr_of,
    not_,
    operand,
    struct_of,
    type_of,
)
from tapegen.frontend.values.narrowing import is_shared_number, may_be_array
from tapegen.frontend.values.pytree import Leaf, StaticValue, Struct, list_of, tuple_of
from tapegen.frontend.values.state import ABSENT, Box, Captured, Method, Ref, RunList, SliceValue, known_value
from tapegen.frontend.values.type_sets import kinds_of
from tapegen.ir import intrinsics
from tapegen.ir.names import TEMPORARY
from tapegen.ir.nodes import Call, Const, Expr, Raise, Var
from tapegen.ir.types import BOOL, INT, NARROW_INTEGERS, Array, Scalar, is_complex, is_floating


def run_simple(cx: Context, stmt: gast.stmt) -> None:
    """Lower a simple statement."""
    match stmt:
        case gast.Assign():
            value = evaluate(cx, stmt.value, hint=hint_of(stmt.targets[0]) if len(stmt.targets) == 1 else None)
            for target in stmt.targets:
                assign_target(cx, target, value)
        case gast.AugAssign():
            _augmented(cx, stmt)
        case gast.AnnAssign():
            if stmt.value is not None:
                assign_target(cx, stmt.target, evaluate(cx, stmt.value, hint=hint_of(stmt.target)))
        case gast.Expr():
            if not isinstance(stmt.value, gast.Constant):
                evaluate(cx, stmt.value)
        case gast.Assert():
            _assert(cx, stmt)
        case gast.Raise():
            exception, message = _exception(cx, stmt.exc)
            cx.raise_(exception, *message)
        case gast.FunctionDef():
            put_name(cx, stmt.name, make_closure(cx, stmt))
        case gast.Import() | gast.ImportFrom():
            try:
                imported = cx.frame.parsed.imported(stmt)
            except ImportError as error:
                cx.raise_(type(error), str(error))
            for name, value in imported.items():
                if isinstance(value, ModuleType):
                    cx.assumptions.modules.setdefault(value.__name__, name)
                parsed = cx.frame.parsed
                getter = functools.partial(_imported, parsed, stmt, name)
                put_name(cx, name, capture(cx, value, getter, name, ("import", id(stmt), name)))
        case gast.Delete():
            for target in stmt.targets:
                _delete(cx, target)
        case gast.Pass() | gast.Nonlocal() | gast.Global():
            pass
        case _:
            kind = type(stmt).__name__
            raise cx.refusal(UnsupportedSyntax, f"the statement '{kind}' is not supported.", "Write it another way.")


# ---- assignment ----------------------------------------------------------------------------------------------------


def hint_of(target: gast.AST) -> str | None:
    """The name that a value gets if the user assigns it to one."""
    return target.id if isinstance(target, gast.Name) else None


def assign_target(cx: Context, target: gast.AST, value: Any) -> None:
    """`target = value`."""
    match target:
        case gast.Name():
            if isinstance(value, Leaf) and isinstance(value.expr, Var) and target.id != "_":
                cx.symbols.entitle(value.expr, target.id)
            bind_name(cx, target.id, value)
        case gast.Tuple() | gast.List():
            _unpack(cx, target.elts, value)
        case gast.Subscript():
            with cx.at(target):
                store_place(cx, place_of(cx, target), value)
        case gast.Attribute():
            with cx.at(target):
                set_attribute(cx, evaluate(cx, target.value), target.attr, value)
        case gast.Starred():
            assign_target(cx, target.value, value)
        case _:
            raise cx.refusal(UnsupportedSyntax, "this target of an assignment is not supported.", "Assign to a name.")


def _imported(parsed: Parsed, stmt: gast.AST, name: str) -> Any:
    return parsed.imported(stmt)[name]


def _delete(cx: Context, target: gast.AST) -> None:
    """`del name`: the variable is unbound, its value lives on.  `del items[k]` is `items.pop(k)`."""
    if isinstance(target, (gast.Tuple, gast.List)):
        for item in target.elts:
            _delete(cx, item)
        return
    if isinstance(target, gast.Subscript):
        place = place_of(cx, target)
        if place.is_array:
            cx.raise_(ValueError, "cannot delete array elements")
        key = place.index[0] if len(place.index) == 1 else tuple_of(place.index)
        if isinstance(place.base, Captured):
            write_captured(cx, place.base)
        content = struct_of(cx, place.base)
        kind = "list" if content is None else content.kind
        if kind not in ("list", "dict"):
            raise cx.refusal(
                UnsupportedSyntax,
                f"'del' of a part of {describe(cx, place.base)} is not supported.",
                "Build a new one.",
            )
        cx.call(cx, StaticValue(Method(kind, "pop")), [place.base, key], {})
        return
    assert isinstance(target, gast.Name)
    evaluate(cx, gast.copy_location(gast.Name(target.id, gast.Load(), None, None), target))  # raises if unbound
    frame = owner_of(cx, target.id)
    if target.id not in frame.locals:
        raise cx.refusal(
            UnsupportedSyntax, f"'del' of '{target.id}', a variable outside of the function.", "Set it to None."
        )
    if target.id in frame.boxed:
        cx.set_cell(cx.state.vars[(frame, target.id)], Struct("object", (target.id,), (ABSENT,), Box))
    else:
        del cx.state.vars[(frame, target.id)]


def _unpack(cx: Context, targets: list[gast.AST], value: Any) -> None:
    value = definite(cx, value)
    stars = [k for k, target in enumerate(targets) if isinstance(target, gast.Starred)]
    if stars and isinstance(value, Leaf) and isinstance(value.type, Array):
        _unpack_array(cx, targets, stars[0], value)
        return
    values = _items(cx, value, targets, exact=not stars)
    if stars:
        (k,) = stars
        tail = len(targets) - k - 1
        if len(values) < len(targets) - 1:
            cx.raise_(
                ValueError, f"not enough values to unpack (expected at least {len(targets) - 1}, got {len(values)})"
            )
        middle = cx.new_cell(list_of(values[k : len(values) - tail]))
        values = [*values[:k], middle, *values[len(values) - tail :]]
    elif len(values) != len(targets):
        if len(values) > len(targets):
            cx.raise_(ValueError, f"too many values to unpack (expected {len(targets)})")
        cx.raise_(ValueError, f"not enough values to unpack (expected {len(targets)}, got {len(values)})")
    for target, part in zip(targets, values, strict=True):
        assign_target(cx, target, part)


def _unpack_array(cx: Context, targets: list[gast.AST], star: int, value: Leaf) -> None:
    """`first, *rest = array`: the starred name is a list of the remaining items."""
    array = Leaf(operand(cx, value))
    tail = len(targets) - star - 1
    size = Call(intrinsics.dim, (array.expr, Const(0)), (), INT)
    test = Call(operator.lt, (size, Const(len(targets) - 1)), (), BOOL)
    if len(targets) > 1:
        cx.raise_if(test, ValueError, f"not enough values to unpack (expected at least {len(targets) - 1})")
    middle = load_place(cx, Place(array, [SliceValue(StaticValue(star), StaticValue(-tail) if tail else None)]))
    for k, target in enumerate(targets):
        if k == star:
            assign_target(cx, target, cx.call(cx, StaticValue(list), (middle,), {}))
        else:
            place = Place(array, [StaticValue(k if k < star else k - len(targets))])
            assign_target(cx, target, load_place(cx, place))


def _items(cx: Context, value: Any, targets: list[gast.AST], *, exact: bool) -> list[Any]:
    """The items of an unpacked value; the length of arrays and growing lists is checked at run time."""
    count = len(targets)
    hints = [hint_of(target) for target in targets]
    is_array = isinstance(value, Leaf) and isinstance(value.type, Array) and value.type.rank > 0
    run_list = length(cx, value)
    if not is_array and run_list is None:
        if type_of(value) is not None:
            cx.raise_(TypeError, "cannot unpack non-iterable number")
        return list(spread(cx, value))
    if not exact:
        raise cx.refusal(NotDifferentiable, "'*' takes a number of items that is not known here.", "Use slices.")
    if run_list is not None:
        size = expr_of(cx, run_list)
    else:
        size = Call(intrinsics.dim, (operand(cx, value), Const(0)), (), INT)
    test = Call(operator.ne, (size, Const(count)), (), BOOL)
    cx.raise_if(test, ValueError, f"the number of values to unpack is not {count}")
    if run_list is not None:
        content = cx.state.cells[value.cell].content
        assert isinstance(content, RunList)
        return [item(cx, content, StaticValue(k), hint) for k, hint in enumerate(hints)]
    assert isinstance(value, Leaf)
    array = array_operand(cx, value)
    return [load_place(cx, Place(Leaf(array), [StaticValue(k)]), hint) for k, hint in enumerate(hints)]


# ---- augmented assignment ------------------------------------------------------------------------------------------


def _augmented(cx: Context, stmt: gast.AugAssign) -> None:
    func = BINARY[type(stmt.op)]
    target = stmt.target
    if isinstance(target, gast.Name):
        old = evaluate(cx, gast.copy_location(gast.Name(target.id, gast.Load(), None, None), target))
        _change(cx, func, old, evaluate(cx, stmt.value), target.id, lambda new: bind_name(cx, target.id, new))
    elif isinstance(target, gast.Attribute):
        owner = evaluate(cx, target.value)
        read = gast.Attribute(gast.copy_location(Given(owner), target), target.attr, gast.Load())
        old = evaluate(cx, gast.copy_location(read, target))
        value = evaluate(cx, stmt.value)
        _change(cx, func, old, value, target.attr, lambda new: set_attribute(cx, owner, target.attr, new))
    else:
        assert isinstance(target, gast.Subscript)
        with cx.at(target):
            place = place_of(cx, target)

        def change(base: Any, *index: Any) -> None:
            _augmented_item(cx, func, Place(base, [*index]), stmt.value)

        each_kind(cx, (place.base, *place.index), change)


def _change(cx: Context, func: Any, old: Any, value: Any, hint: str, put: Callable[[Any], None]) -> None:
    """`old op= value`, for each kind of union operands; `put` binds a value that is not changed in place."""

    def change(current: Any, operand_: Any) -> None:
        new = _combine(cx, func, current, operand_, hint)
        if new is not None:
            put(new)

    each_kind(cx, (old, value), change)


def _augmented_item(cx: Context, func: Any, place: Place, node: gast.AST) -> None:
    if not place.is_array:
        old = load_place(cx, place)

        def change(current: Any, value: Any) -> None:
            new = _combine(cx, func, current, value, TEMPORARY)
            is_slice = any(isinstance(part, SliceValue) for part in place.index)
            if new is not None or is_slice or isinstance(place.base, Struct):
                store_place(cx, place, current if new is None else new)  # slices of lists are new; tuples refuse

        each_kind(cx, (old, evaluate(cx, node)), change)
        return
    seen, position = cx.effects, len(cx.builder.items)
    value = evaluate(cx, node)
    if cx.effects != seen and not place.is_view:
        # an element is read before the right side runs, which may write it; a view shows such writes
        later = cx.builder.items[position:]
        del cx.builder.items[position:]
        old = load_place(cx, place)
        cx.builder.items.extend(later)
        store_place(cx, place, binary(cx, func, old, value))
        return
    in_place(cx, func, place, value)


def in_place(cx: Context, func: Any, place: Place, value: Any, *, whole: bool = False) -> None:
    """`array[index] op= value`, or (`whole`) `array op= value`: sums accumulate, everything else loads first."""
    adds = func in (operator.add, operator.sub) and not _is_converted(func, place, value)
    if adds and not place.repeats and type_of(value) is not None:
        if func is operator.sub:
            value = emit_call(cx, operator.neg, (value,)) if _negatable(value) else None
        if value is not None:
            _check_cast(cx, func, place, value, whole)
            store_place(cx, place, value, accumulate=True)
            return
        raise cx.refusal(NotDifferentiable, "bool is not subtracted.", "Convert it with int().")
    old = load_place(cx, place)
    if func is operator.matmul:
        _check_square(cx, old, value)
    new = binary(cx, func, old, value)
    _check_cast(cx, func, place, new, whole)
    check_rank(cx, type_of(old), type_of(new))
    store_place(cx, place, new)


def _is_converted(func: Any, place: Place, value: Any) -> bool:
    """Whether NumPy converts a number to the integers of an array: before it is subtracted, or with what is left."""
    given, dtype = type_of(value), getattr(type_of(place.base), "dtype", "float64")
    if given == INT:
        return func is operator.sub and dtype in NARROW_INTEGERS
    return "int" in dtype and isinstance(given, Scalar) and not np.can_cast(given.dtype, dtype)


def _negatable(value: Any) -> bool:
    type_ = type_of(value)
    return type_ is not None and getattr(type_, "dtype", "bool") != "bool"


def _check_square(cx: Context, old: Any, value: Any) -> None:
    """`old @= value` does not broadcast its result: NumPy asks for square matrices on the right side."""
    matrices = type_of(value)
    if getattr(type_of(old), "rank", 0) < 1 or getattr(matrices, "rank", 0) < 2:
        cx.raise_(
            ValueError,
            "inplace matrix multiplication requires the first operand to have at least one and the second at least "
            "two dimensions.",
        )
    assert isinstance(matrices, Array)
    rows, columns = (extent(cx, operand(cx, value), matrices.rank - k) for k in (2, 1))
    if rows != columns:
        different = Call(operator.ne, (expr_of(cx, rows), expr_of(cx, columns)), (), BOOL)
        cx.raise_if(different, ValueError, "matmul: Output operand 0 has a mismatch in its core dimension 1")


def _check_cast(cx: Context, func: Any, place: Place, value: Any, whole: bool) -> None:
    """An in-place operation cannot store floats into an integer array (NumPy raises); a single element is truncated."""
    type_ = type_of(value)
    array = place.base.type
    assert isinstance(array, Array)
    fits = is_complex(array) or (is_floating(array) and not is_complex(type_))
    if (place.is_element and not whole) or type_ is None or not is_floating(type_) or fits:
        return
    name = {operator.add: "add", operator.sub: "subtract", operator.mul: "multiply", operator.truediv: "divide"}.get(
        func
    )
    cx.raise_(
        TypeError,
        f"Cannot cast ufunc '{name or func.__name__}' output from dtype('{type_.dtype}') to dtype('{array.dtype}') "  # type: ignore[union-attr]
        "with casting rule 'same_kind'",
    )


def _combine(cx: Context, func: Any, old: Any, value: Any, hint: str) -> Any:
    """The new value of `old op= value`, or None where `old` was changed in place."""
    if isinstance(old, Leaf) and isinstance(old.type, Array):
        if not (isinstance(value, (Leaf, StaticValue)) and type_of(value) is not None):
            value = emit_call(cx, np.array, (value,))
        in_place(cx, func, Place(old if is_part(old) else Leaf(operand(cx, old)), []), value, whole=True)
        return None
    if isinstance(old, Captured) and func in (operator.add, operator.or_):
        write_captured(cx, old)
    if isinstance(old, Ref) and func is operator.add and not isinstance(type_of(value), Array):  # NumPy adds arrays
        content = None if is_tail(cx, old) else struct_of(cx, old)
        if content is None or content.kind == "list":
            if length(cx, value) is not None:
                cx.call(cx, StaticValue(builtin_functions.extended), (old, value), {})
                return None
            for part in spread(cx, value):
                append(cx, old, part)
            return None
    if is_shared_number(cx, old, cx.state):
        raise cx.refusal(
            NotDifferentiable,
            f"'{hint}' may be an array without axes, which another name holds too, or a number.",
            f"Bind it anew ({hint} = {hint} * 2 instead of {hint} *= 2), or convert it before: float(...).",
        )
    changed = in_place_operator(cx, func, old, value)
    made = binary(cx, func, old, value, hint=hint) if changed is None else changed
    if may_be_array(cx, old):
        _check_stays(cx, old.expr, made, hint)
    return made


def _check_stays(cx: Context, old: Expr, made: Any, hint: str) -> None:
    """Refuse an in-place change to another dtype or shape, if a scalar may be a zero-dimensional array."""
    type_ = type_of(made)
    for kind in kinds_of(cx, old):
        if isinstance(kind, Array) and (kind.dtype, 0) != (getattr(type_, "dtype", None), getattr(type_, "rank", 0)):
            raise cx.refusal(
                NotDifferentiable,
                f"'{hint}' may be an array of {kind.dtype} without axes, which stays one, or a number.",
                f"Bind it anew ({hint} = {hint} * 2 instead of {hint} *= 2), or convert it before: float(...).",
            )


# ---- assert and raise ----------------------------------------------------------------------------------------------


def _assert(cx: Context, stmt: gast.Assert) -> None:
    test = condition(cx, stmt.test)
    if test is True:
        return
    if test is False:
        cx.raise_(AssertionError, *_message(cx, [stmt.msg] if stmt.msg is not None else []))
    failed = not_(test)
    assert not isinstance(failed, bool)
    if cx.whole:
        raise NeedsStatements
    body = Builder()
    with cx.block(body, cx.state.copy()):
        try:
            message = _message(cx, [stmt.msg] if stmt.msg is not None else [])
            cx.emit(Raise(AssertionError, tuple(message), cx.origin))
        except Unreachable:
            pass
    body.dead = True
    cx.emit(OpenIf(failed, body, Builder(), cx.origin))


def _exception(cx: Context, node: gast.AST) -> tuple[type[BaseException], list[Expr]]:
    args: list[gast.AST] = []
    if isinstance(node, gast.Call):
        if node.keywords:
            raise cx.refusal(
                UnsupportedSyntax, "keywords of an exception are not supported.", "Pass the message alone."
            )
        node, args = node.func, node.args
    kind = known_value(evaluate(cx, node))
    if not (isinstance(kind, type) and issubclass(kind, BaseException)):
        raise cx.refusal(UnsupportedSyntax, "this raises something that is not an exception class.", "Name the class.")
    return kind, _message(cx, args)


def _message(cx: Context, nodes: list[gast.AST]) -> list[Expr]:
    """Arguments of an exception."""
    return [text_of(cx, value) for value in elements(cx, nodes)]
