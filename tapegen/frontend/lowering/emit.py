"""Constant folding and call emission: a call is folded, bound to a variable, or left as an expression."""

from __future__ import annotations

import builtins
import math
import operator
from collections.abc import Callable, Iterable, Mapping
from typing import Any

import numpy as np

from tapegen.errors import BadArgument, NotDifferentiable
from tapegen.frontend.values.captures import expand
from tapegen.frontend.values.complex_parts import VIEWS_OF_PARTS, is_part, part_of
from tapegen.frontend.values.constant_shapes import note_result, note_results
from tapegen.frontend.values.context import Context, NeedsStatements
from tapegen.frontend.values.materialize import (
    const_expr,
    describe,
    expr_of,
    operand,
    poison_check,
    refuse_text,
    struct_of,
)
from tapegen.frontend.values.narrowing import note_view_of_number
from tapegen.frontend.values.pytree import DTYPES, UNKNOWN, Leaf, StaticValue, Struct, list_of, tuple_of
from tapegen.frontend.values.result_types import NoResultType, result_type
from tapegen.frontend.values.state import Captured, Ref, RunList, is_number, known_value
from tapegen.frontend.values.type_sets import is_mixed, least_kind, note_kinds
from tapegen.ir import intrinsics
from tapegen.ir.names import TEMPORARY
from tapegen.ir.nodes import Assign, Call, Const, Var
from tapegen.ir.printer import callable_text
from tapegen.ir.types import FLOAT, Array, RandomGenerator, Scalar, TupleOf, Type, is_floating

# ---- calls ---------------------------------------------------------------------------------------------------------

_OPERATORS = frozenset(value for name, value in vars(operator).items() if callable(value) and not name.startswith("__"))
_FOLDED = _OPERATORS | {
    *(
        intrinsics.and_,
        intrinsics.or_,
        intrinsics.ifelse,
        builtins.int,
        builtins.float,
        builtins.complex,
        builtins.bool,
        builtins.abs,
        builtins.min,
        builtins.max,
    ),
    *(builtins.round, builtins.divmod, builtins.pow, builtins.len, builtins.str, builtins.sum),
}
"""Functions that are constant-folded."""


def fold(cx: Context, func: Any, args: Iterable[Any]) -> Any:
    """The value of a call whose arguments are all known, else UNKNOWN (also where Python would raise)."""
    if func not in _FOLDED:
        return UNKNOWN
    values = []
    for arg in args:
        known = known_value(arg)
        if known is UNKNOWN:
            return UNKNOWN
        values.append(known)
    if func is operator.pow and all(map(is_number, values)) and abs(values[1]) > 10000:
        return UNKNOWN
    try:
        value = func(*values)
    except Exception:
        return UNKNOWN
    if type(value) is int and not -(2**63) <= value < 2**63:
        raise cx.refusal(BadArgument, f"this integer, {value:.3e}, does not fit into 64 bits.", "Use a float.")
    return value


def _is_python_number(value: Any) -> bool:
    if isinstance(value, Leaf):
        return isinstance(value.type, Scalar) and value.type.python
    return isinstance(value, StaticValue) and is_number(value.value)


def emit_call(
    cx: Context,
    func: Callable[..., Any],
    args: Iterable[Any],
    kwargs: Mapping[str, Any] | None = None,
    hint: str | None = None,
    type_: Type | None = None,
) -> Any:
    """A call of a function of NumPy, math or the builtins, or of an operator, with its result type.

    A floating or array result is bound to a variable at once (`hint` or `t`); an integer or boolean one stays an
    expression.
    """
    args, kwargs = tuple(args), dict(kwargs or {})
    if args and is_part(args[0]) and func in VIEWS_OF_PARTS:
        part = args[0].expr
        return part_of(cx, part.func, emit_call(cx, func, (Leaf(part.args[0]), *args[1:]), kwargs).expr)
    if any(isinstance(arg, Leaf) and isinstance(arg.type, RandomGenerator) for arg in (*args, *kwargs.values())):
        raise cx.refusal(
            NotDifferentiable,
            f"{callable_text(func)} gets a generator of random numbers, and may draw from it.",
            "Draw with the methods of the generator, and pass what they give.",
        )
    known = UNKNOWN if kwargs else fold(cx, func, args)
    plain = not isinstance(known, (float, complex)) or cx.rules or func in (operator.neg, operator.pos)
    if known is not UNKNOWN and all(isinstance(arg, StaticValue) for arg in args) and plain:
        return StaticValue(known)
    if type_ is None:
        # a negative base to an integral power given as a float: the values determine the type
        exact = type(known) is float and all(map(_is_python_number, args))
        type_ = FLOAT if exact else call_type(cx, func, args, kwargs)
    if isinstance(type_, TupleOf):
        return _emit_tuple(cx, func, args, kwargs, type_, hint)
    named = is_floating(type_) or not isinstance(type_, Scalar)
    if cx.whole and not isinstance(type_, Scalar):
        raise NeedsStatements
    get = operand if named else expr_of
    call = Call(
        func,
        tuple(get(cx, arg) for arg in args),
        tuple((name, get(cx, value)) for name, value in kwargs.items()),
        type_,
    )
    if not named or cx.whole:
        return Leaf(call, known)
    var = cx.assign(hint or TEMPORARY, call)
    if cx.symbols.kinds:
        note_kinds(cx, var, (call,))
        if isinstance(type_, Array):
            _note_narrower(cx, var, func, args, kwargs)
    note_view(cx, var, call)
    if func in _VIEWS_OF_NUMBERS:
        note_view_of_number(cx, Leaf(var), args[0])
    note_result(cx, var, call)
    return Leaf(var, known)


def _note_narrower(cx: Context, var: Var, func: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
    """Record that an array has an integer dtype on paths where a scalar operand is an integer, not a float."""
    differ = False

    def least(value: Any) -> Any:
        nonlocal differ
        if isinstance(value, Leaf):
            type_ = least_kind(cx, value.expr)
            differ = differ or type_ != value.type
            return type_ if type_ != value.type else arg_type(cx, value, True)
        content = struct_of(cx, value)
        return arg_type(cx, value, True) if content is None else tuple(map(least, content.children))

    types, keywords = tuple(map(least, args)), {name: least(value) for name, value in kwargs.items()}
    if differ:
        try:
            found = result_type(func, types, keywords)
        except NoResultType:  # no path gets here
            return
        if found.dtype != var.type.dtype:  # type: ignore[union-attr]
            cx.symbols.narrower[var] = found.dtype  # type: ignore[union-attr]


def note_view(cx: Context, var: Var, call: Call) -> None:
    """Record that a result may share memory with the first argument."""
    if is_view(call):
        cx.symbols.roots[var] = cx.symbols.roots_of(call.args[0])  # type: ignore[arg-type]


def is_view(call: Call) -> bool:
    """Whether a result may share memory with the first argument."""
    return (
        call.func in intrinsics.VIEW_CALLS
        and bool(call.args)
        and isinstance(call.args[0], Var)
        and isinstance(call.type, Array)
    )


_VIEWS_OF_NUMBERS = intrinsics.VIEW_CALLS | {np.require, np.asarray_chkfinite, np.broadcast_arrays}
"""Functions whose result may be a view of a zero-dimensional argument."""

_GIVE_LISTS = frozenset({np.split, np.array_split, np.hsplit, np.vsplit, np.dsplit})


def _emit_tuple(
    cx: Context, func: Any, args: tuple[Any, ...], kwargs: dict[str, Any], type_: TupleOf, hint: str | None
) -> Any:
    if any(isinstance(item, TupleOf) for item in type_.items):
        raise cx.refusal(
            NotDifferentiable, f"the result of {callable_text(func)} is nested.", "Call it for one part at a time."
        )
    call = Call(
        func,
        tuple(operand(cx, arg) for arg in args),
        tuple((name, operand(cx, value)) for name, value in kwargs.items()),
        type_,
    )
    if len(type_.items) == 1 and is_floating(type_.items[0]):
        return _only_part(cx, func, args, call)
    if len(type_.items) == 1:
        var = cx.assign(hint or TEMPORARY, Call(intrinsics.item, (call, Const(0)), (), type_.items[0]))
        return tuple_of((Leaf(var),))
    targets = tuple(cx.new_var(hint or TEMPORARY, item) for item in type_.items)
    if targets:  # np.gradient of a scalar is an empty tuple
        cx.emit(Assign(targets, call, cx.origin))
        note_results(cx, targets, call)
    cx.symbols.titles.update((target, hint or TEMPORARY) for target in targets)
    parts = [Leaf(target) for target in targets]
    if func in _VIEWS_OF_NUMBERS:
        for part, arg in zip(parts, args, strict=False):
            note_view_of_number(cx, part, arg)
    return cx.new_cell(list_of(parts)) if func in _GIVE_LISTS else tuple_of(parts)


def _only_part(cx: Context, func: Any, args: tuple[Any, ...], call: Call) -> Any:
    """The single item of a function that returns a list or tuple of one array: the argument, or a copy."""
    if func is np.meshgrid:
        row = emit_call(cx, np.ravel, args[:1])
        return tuple_of((row if "copy" in dict(call.kwargs) else emit_call(cx, np.copy, (row,)),))
    if func not in _GIVE_LISTS and func is not np.broadcast_arrays:
        raise cx.refusal(
            NotDifferentiable,
            f"{callable_text(func)} gives a sequence of one array here.",
            "Use what the array is made of.",
        )
    array = args[0] if isinstance(args[0], Leaf) else Leaf(call.args[0])
    return cx.new_cell(list_of((array,))) if func in _GIVE_LISTS else tuple_of((array,))


def call_type(cx: Context, func: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]) -> Type:
    """The result type of a call.

    Raises
    ------
    NotDifferentiable
        The function fails for arguments of these types.  Errors of operators and `math` functions on scalars are raised
        at run time instead.
    """
    exact = (func not in _OPERATORS and not isinstance(func, np.ufunc)) or func is operator.pow
    types = tuple(arg_type(cx, arg, exact) for arg in args)
    keywords = {name: arg_type(cx, value, True) for name, value in kwargs.items()}
    try:
        found = result_type(func, types, keywords)
        _check_precision(cx, args, types, found)
        _check_dtype(cx, func, found)
        return found
    except NoResultType as error:
        kind = type(error.cause)
        of_numbers = getattr(func, "__module__", None) in ("_operator", "math")
        if of_numbers and kind in _RAISED_BY_NUMBERS and not any(isinstance(type_, Array) for type_ in types):
            cx.raise_(kind, str(error.cause))
        refuse_text(cx, *args)
        shown = ", ".join(describe(cx, arg) for arg in args)
        if func is np.array and "inhomogeneous" in str(error.cause):
            raise cx.refusal(
                NotDifferentiable,
                f"{shown} holds parts of different shapes, which are no array, and this call has no rule.",
                "Unpack it (t, c, k = tck), and write what is computed with functions that have rules for its parts.",
            ) from error.cause
        raise cx.refusal(
            NotDifferentiable,
            f"{_said(func)} cannot be applied to {shown}: {str(error.cause).rstrip('.')}.",
            "Check the arguments by running the plain function.",
        ) from error.cause


_RAISED_BY_NUMBERS = frozenset({TypeError, ValueError, ZeroDivisionError, OverflowError})


SIGNS = {
    operator.add: "+",
    operator.sub: "-",
    operator.mul: "*",
    operator.truediv: "/",
    operator.floordiv: "//",
    operator.mod: "%",
    operator.pow: "** or pow()",
    operator.matmul: "@",
    operator.lshift: "<<",
    operator.rshift: ">>",
    operator.and_: "&",
    operator.or_: "|",
    operator.xor: "^",
    operator.lt: "<",
    operator.le: "<=",
    operator.gt: ">",
    operator.ge: ">=",
    operator.eq: "==",
    operator.ne: "!=",
}
"""Operator names in Python's messages."""


def _said(func: Callable[..., Any]) -> str:
    """A function as in the user's source."""
    return f"'{SIGNS[func]}'" if func in SIGNS else callable_text(func)


def _check_precision(cx: Context, args: tuple[Any, ...], types: tuple[Any, ...], found: Any) -> None:
    """Refuse values that are a Python scalar (weak promotion) on one path and a NumPy float64 on another."""
    if not cx.symbols.kinds or getattr(found, "dtype", "") != "float64":
        return
    if any(getattr(type_, "dtype", "") == "float32" for type_ in types):
        for arg in args:
            if isinstance(arg, Leaf) and is_mixed(cx, arg.expr):
                name = arg.expr.name.partition("#")[0]  # type: ignore[union-attr]
                raise cx.refusal(
                    BadArgument,
                    f"'{name}' is a Python number on one path and a float64 of NumPy on another, and meets a float32 "
                    "here: the precision of the result depends on the path.",
                    f"Convert it: float({name}), or np.float64({name}).",
                )


def _check_dtype(cx: Context, func: Callable[..., Any], found: Type) -> None:
    """Refuse a result of an unsupported dtype, through which the derivative would be lost."""
    for type_ in found.items if isinstance(found, TupleOf) else (found,):
        dtype = getattr(type_, "dtype", "bool")
        if dtype not in DTYPES and not dtype.startswith(("datetime", "timedelta")):
            raise cx.refusal(
                BadArgument,
                f"{_said(func)} gives values of dtype {dtype} here, for which there are no derivatives.",
                "Use float64 (complex128 for complex numbers); objects, text and records stay outside of the function.",
            )


def arg_type(cx: Context, value: Any, exact: bool) -> Any:
    """The type of an argument; with `exact`, the value of a constant."""
    poison_check(cx, value)
    if isinstance(value, Leaf):
        return StaticValue(value.known) if exact and type(value.known) is int else value.type
    match value:
        case StaticValue(constant):
            if isinstance(constant, np.generic):
                return const_expr(constant).type
            by_value = isinstance(constant, int) or constant in (math.inf, -math.inf)  # ord=np.inf selects another norm
            if is_number(constant) and not isinstance(constant, bool) and not (exact and by_value):
                return Const(constant).type
            return value
        case Struct(_, _, children):
            return tuple(arg_type(cx, child, exact) for child in children)
        case Ref():
            content = cx.state.cells[value.cell].content
            if isinstance(content, RunList):
                return expr_of(cx, value).type
            return arg_type(cx, content, exact)
        case Captured():
            return arg_type(cx, expand(cx, value), exact)
    raise cx.refusal(
        NotDifferentiable, f"{describe(cx, value)} cannot be passed to this function.", "Pass numbers and arrays."
    )
