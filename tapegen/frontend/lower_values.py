"""Abstract values as IR expressions, and calls with known result types."""

from __future__ import annotations

import builtins
import dataclasses
import functools
import operator
from collections.abc import Callable, Iterable, Mapping
from types import ModuleType
from typing import Any, overload

import numpy as np

from tapegen.errors import BadArgument, NotDifferentiable
from tapegen.frontend.lower_context import (
    Bound,
    Captured,
    Choice,
    Closure,
    Context,
    Frame,
    NeedsStatic,
    NotWhole,
    Poison,
    Ref,
    RunList,
    Series,
    is_number,
    known_value,
)
from tapegen.frontend.lower_shapes import note_result
from tapegen.frontend.structure import UNKNOWN, Leaf, StaticValue, Struct, children_of, leaf_type, list_of, tuple_of
from tapegen.frontend.typing import NoResultType, result_type
from tapegen.ir import ops
from tapegen.ir.nodes import Assign, Call, Const, Expr, Tuple, Var
from tapegen.ir.text import callable_text, type_text
from tapegen.ir.types import BOOL, INT, Array, ListOf, Scalar, TupleOf, Type, is_floating

# ---- expressions ---------------------------------------------------------------------------------------------------


def expr_of(cx: Context, value: Any) -> Expr:
    """An abstract value as an operand."""
    if isinstance(value, Choice):
        value = definite(cx, value)
    match value:
        case Leaf(expr):
            return cx.resolve(expr)
        case StaticValue(constant):
            return const_expr(constant)
        case Struct(kind, _, children, _, whole) if kind in ("tuple", "list"):
            return whole if whole is not None else Tuple(tuple(expr_of(cx, child) for child in children))
        case Ref(cell):
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
    return Const(constant)


def definite(cx: Context, value: Any) -> Any:
    """What a variable that may be None is where only something else makes sense; None raises as in Python."""
    if not isinstance(value, Choice):
        return value
    none = [isinstance(part, StaticValue) and part.value is None for part in (value.first, value.second)]
    if not any(none):
        raise cx.refusal(
            BadArgument,
            "this is one of two kinds of value, depending on the path taken.",
            "Give it one type on all paths.",
        )
    test = value.test if none[0] else not_(cx, value.test)
    assert not isinstance(test, bool)
    cx.raise_if(test, TypeError, "unsupported operand type(s): 'NoneType'")
    return value.second if none[0] else value.first


def describe(cx: Context, value: Any) -> str:
    """A value in words, for messages."""
    match value:
        case Leaf():
            return f"a value of type {type_text(value.type)}"
        case StaticValue(constant):
            return (
                f"{constant!r}"
                if is_number(constant) or constant is None
                else f"'{getattr(constant, '__name__', constant)}'"
            )
        case Struct(kind):
            return f"a {value.cls.__name__ if kind == 'object' else kind}"
        case Ref(cell):
            content = cx.state.cells[cell].content
            return "a list" if isinstance(content, RunList) else describe(cx, content)
        case Captured():
            return f"'{value.name}'"
        case Bound() | Closure():
            return "a function"
        case Choice():
            return "a value of one of two kinds"
    return f"a {type(value).__name__}"


def operand(cx: Context, value: Any, base: str = "t") -> Expr:
    return cx.atom(expr_of(cx, value), base)


def int_expr(cx: Context, value: Any) -> Expr:
    """An integer expression with what is known folded into it."""
    known = known_value(value)
    if isinstance(value, StaticValue) and isinstance(known, int | np.integer):
        return Const(int(known))
    return expr_of(cx, value)


def is_int(value: Any) -> bool:
    """Whether a value is an integer (not a bool), known or not."""
    if isinstance(value, StaticValue):
        return isinstance(value.value, int | np.integer) and not isinstance(value.value, bool)
    return isinstance(value, Leaf) and isinstance(value.type, Scalar) and "int" in value.type.dtype


def type_of(value: Any) -> Type | None:
    """The type of a number or array; None for anything else."""
    if isinstance(value, Leaf):
        return value.type
    if isinstance(value, StaticValue):
        constant = value.value
        if is_number(constant):
            return Const(constant).type
        if isinstance(constant, np.generic):
            return const_expr(constant).type
    return None


def static(cx: Context, value: Any, what: str) -> Any:
    """The compile-time value of an argument that needs one.

    Raises
    ------
    NeedsStatic
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
        raise NeedsStatic(expr_of(cx, value), refusal)
    raise refusal


# ---- containers ----------------------------------------------------------------------------------------------------


def struct_of(cx: Context, value: Any) -> Struct | None:
    """The contents of a container whose layout is known, else None."""
    if isinstance(value, Ref):
        content = cx.state.cells[value.cell].content
        return content if isinstance(content, Struct) else None
    if isinstance(value, Captured):
        return expand(cx, value)
    return value if isinstance(value, Struct) else None


def run_list_of(cx: Context, value: Any) -> RunList | None:
    if isinstance(value, Ref):
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
    """A result that is None or a constant on some paths (`s = 0.0` before a loop without trips): these paths raise."""
    first, second = value.first, value.second
    if isinstance(type_of(first), Scalar) and isinstance(type_of(second), Array):
        likely, test = second, value.test
    elif isinstance(type_of(second), Scalar) and isinstance(type_of(first), Array):
        likely, test = first, not_(cx, value.test)
    else:
        return definite(cx, value)
    assert not isinstance(test, bool)
    cx.raise_if(test, TypeError, "the result is a number on this path, and an array on others")
    return likely


def export(cx: Context, value: Any) -> Any:
    """A value without identities, and of one kind."""
    if isinstance(value, Choice):
        value = _likely(cx, value)
    if isinstance(value, Captured):
        value = expand(cx, value)
    if isinstance(value, Ref):
        content = cx.state.cells[value.cell].content
        if isinstance(content, RunList):
            return Leaf(expr_of(cx, value))
        value = content
    if isinstance(value, Struct):
        return dataclasses.replace(value, children=tuple(export(cx, child) for child in value.children))
    return value


# ---- values of globals and closures --------------------------------------------------------------------------------

_FIXED_MODULES = frozenset(
    {"numpy", "math", "scipy", "operator", "builtins", "cmath", "numba", "functools", "itertools"}
)


def capture(cx: Context, value: Any, getter: Callable[[], Any], name: str, path: Any, *, inside: bool = False) -> Any:
    """The value of a global, a closure variable or a part of one.

    Parameters
    ----------
    cx : Context
        Takes the new argument or the guard.
    value : object
        What it is now.
    getter : callable
        Reads it again before each call.
    name : str
        Its name in the text.
    path : hashable
        Where it is, the same for each read of it.
    inside : bool
        Whether it is a part of an object: its floats then are arguments of the program; others are guarded constants.
    """
    type_ = leaf_type(value, name)
    if isinstance(type_, Array) or (inside and type_ is not None and is_floating(type_)):
        if path not in cx.hidden:
            cx.hidden[path] = (cx.new_var(name, type_), getter)
        return Leaf(cx.hidden[path][0])
    if children_of(value) is not None:
        cx.guards.setdefault((path, "class"), (lambda: type(getter()), type(value)))
        return Captured(value, getter, name)
    if not isinstance(value, ModuleType):
        cx.guards.setdefault(path, (getter, value))
    return StaticValue(value)


def captured_child(cx: Context, parent: Captured, key: Any, value: Any, read: Callable[[Any], Any]) -> Any:
    """A part of a captured container."""

    def getter() -> Any:
        return read(parent.getter())

    return capture(cx, value, getter, f"{parent.name}_{key}", (id(parent.value), type(key), key), inside=True)


def expand(cx: Context, captured: Captured) -> Struct:
    """A captured container with all its parts."""
    struct = children_of(captured.value)
    assert struct is not None
    if struct.kind == "object":
        read: Callable[[Any], Callable[[Any], Any]] = lambda key: operator.attrgetter(key)  # noqa: E731
    elif hasattr(struct.cls, "_fields"):
        read = lambda key: operator.attrgetter(key)  # noqa: E731
    else:
        read = lambda key: operator.itemgetter(key)  # noqa: E731
    keys = struct.keys
    cx.guards.setdefault((id(captured.value), "keys"), (lambda: _keys(captured.getter()), keys))
    children = (
        captured_child(cx, captured, key, child, read(key)) for key, child in zip(keys, struct.children, strict=True)
    )
    return dataclasses.replace(struct, children=tuple(children))


def _keys(value: Any) -> tuple[Any, ...] | None:
    struct = children_of(value)
    return None if struct is None else struct.keys


def is_fixed_module(module: ModuleType) -> bool:
    """Whether the contents of a module never change."""
    return module.__name__.partition(".")[0] in _FIXED_MODULES


# ---- calls ---------------------------------------------------------------------------------------------------------

_OPERATORS = frozenset(value for name, value in vars(operator).items() if callable(value) and not name.startswith("__"))
_FOLDED = _OPERATORS | {
    *(
        ops.and_,
        ops.or_,
        ops.ifelse,
        builtins.int,
        builtins.float,
        builtins.bool,
        builtins.abs,
        builtins.min,
        builtins.max,
    ),
    *(builtins.round, builtins.divmod, builtins.pow, builtins.len, builtins.str, builtins.sum),
}
"""Functions that are evaluated when compiling if all their arguments are known."""


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
    if isinstance(value, complex):
        raise cx.refusal(BadArgument, "this number is complex.", "Work with its real and imaginary parts.")
    return value


def emit_call(
    cx: Context,
    func: Callable[..., Any],
    args: Iterable[Any],
    kwargs: Mapping[str, Any] | None = None,
    hint: str | None = None,
) -> Any:
    """A call of a function of NumPy, math or the builtins, or of an operator, with its result type.

    A floating or array result is named at once (`hint` or `t`); an integer or boolean one stays an expression.
    """
    args, kwargs = tuple(args), dict(kwargs or {})
    known = UNKNOWN if kwargs else fold(cx, func, args)
    plain = not isinstance(known, float) or cx.rules or func in (operator.neg, operator.pos)
    if known is not UNKNOWN and all(isinstance(arg, StaticValue) for arg in args) and plain:
        return StaticValue(known)
    type_ = call_type(cx, func, args, kwargs)
    if isinstance(type_, TupleOf):
        return _emit_tuple(cx, func, args, kwargs, type_, hint)
    named = is_floating(type_) or not isinstance(type_, Scalar)
    if cx.whole and not isinstance(type_, Scalar):
        raise NotWhole
    get = operand if named else expr_of
    call = Call(
        func,
        tuple(get(cx, arg) for arg in args),
        tuple((name, get(cx, value)) for name, value in kwargs.items()),
        type_,
    )
    if isinstance(type_, Scalar) and type_.dtype.startswith("complex"):
        raise cx.refusal(BadArgument, f"the result of {callable_text(func)} is complex.", "Work with real numbers.")
    if not named or cx.whole:
        return Leaf(call, known)
    var = cx.assign(hint or "t", call)
    note_view(cx, var, call)
    note_result(cx, var, call)
    return Leaf(var, known)


def note_view(cx: Context, var: Var, call: Call) -> None:
    """Remember that a result may share memory with the first argument."""
    if call.func in ops.VIEW_CALLS and call.args and isinstance(call.args[0], Var) and isinstance(var.type, Array):
        cx.roots[var] = cx.roots_of(call.args[0])


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
    if len(type_.items) == 1:
        var = cx.assign(hint or "t", Call(ops.item, (call, Const(0)), (), type_.items[0]))
        return tuple_of((Leaf(var),))
    targets = tuple(cx.new_var(hint or "t", item) for item in type_.items)
    cx.emit(Assign(targets, call, cx.origin))
    parts = [Leaf(target) for target in targets]
    return cx.new_cell(list_of(parts)) if func in _GIVE_LISTS else tuple_of(parts)


def call_type(cx: Context, func: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]) -> Type:
    """The result type of a call.

    Raises
    ------
    NotDifferentiable
        The function fails for arguments of these types.
    """
    exact = (func not in _OPERATORS and not isinstance(func, np.ufunc)) or func is operator.pow
    types = tuple(arg_type(cx, arg, exact) for arg in args)
    keywords = {name: arg_type(cx, value, True) for name, value in kwargs.items()}
    try:
        return result_type(func, types, keywords)
    except NoResultType as error:
        shown = ", ".join(describe(cx, arg) for arg in args)
        raise cx.refusal(
            NotDifferentiable,
            f"{callable_text(func)} cannot be applied to {shown}: {error.cause}.",
            "Check the arguments by running the plain function.",
        ) from error.cause


def arg_type(cx: Context, value: Any, exact: bool) -> Any:
    """The type of an argument; with `exact`, the value of a constant."""
    match value:
        case Leaf():
            return StaticValue(value.known) if exact and type(value.known) is int else value.type
        case StaticValue(constant):
            if isinstance(constant, np.generic):
                return const_expr(constant).type
            if is_number(constant) and not isinstance(constant, bool) and not (exact and isinstance(constant, int)):
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


# ---- truth ---------------------------------------------------------------------------------------------------------


def truth(cx: Context, value: Any) -> bool | Expr:
    """What `if value` tests: True or False when known, else a boolean expression."""
    known = known_value(value)
    if known is not UNKNOWN:
        return bool(known)
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
    if isinstance(value, Series):
        raise cx.refusal(NotDifferentiable, "the truth of an iterator is not a useful test.", "Compare lengths.")
    return True


def _either(cx: Context, test: Expr, first: bool | Expr, second: bool | Expr) -> bool | Expr:
    """`first if test else second` of truths."""
    if first is True:
        return test if second is False else True if second is True else Call(ops.or_, (test, second), (), BOOL)
    if second is False:
        return False if first is False else Call(ops.and_, (test, first), (), BOOL)
    other = not_(cx, test)
    assert not isinstance(other, bool)
    if first is False:
        return other if second is True else Call(ops.and_, (other, second), (), BOOL)
    if second is True:
        return Call(ops.or_, (other, first), (), BOOL)
    return Call(ops.ifelse, (test, first, second), (), BOOL)


_AMBIGUOUS = "The truth value of an array with more than one element is ambiguous. Use a.any() or a.all()"


def array_truth(cx: Context, value: Leaf) -> Expr:
    """The only element of an array, as NumPy asks for."""
    array = operand(cx, value)
    assert isinstance(array, Var) and isinstance(array.type, Array)
    if array.type.rank and not all(array.type.is_unit(k) for k in range(array.type.rank)):
        size = Call(np.size, (array,), (), INT)
        cx.raise_if(Call(operator.ne, (size, Const(1)), (), BOOL), ValueError, _AMBIGUOUS)
    return Call(np.any, (array,), (), Scalar("bool", python=False))


def as_bool(cx: Context, value: Any) -> Any:
    """`bool(value)` as a value."""
    tested = truth(cx, value)
    return StaticValue(tested) if isinstance(tested, bool) else Leaf(tested)


@overload
def not_(cx: Context, test: bool) -> bool: ...
@overload
def not_(cx: Context, test: Expr) -> Expr: ...
@overload
def not_(cx: Context, test: bool | Expr) -> bool | Expr: ...
def not_(cx: Context, test: bool | Expr) -> bool | Expr:
    """`not test`, comparisons turned round."""
    if isinstance(test, bool):
        return not test
    if isinstance(test, Call) and test.func is operator.not_:
        return test.args[0]
    return Call(operator.not_, (test,), (), BOOL)


# ---- variables -----------------------------------------------------------------------------------------------------


def named(cx: Context, frame: Frame, name: str, value: Any) -> Any:
    """A value as a variable holds it: what is computed has a name, numbers of the user's text keep theirs."""
    if isinstance(value, StaticValue):
        known = value.value
        number = isinstance(known, np.generic) or (is_number(known) and not isinstance(known, bool))
        if cx.rules or cx.whole or not number:
            return value
        return Leaf(cx.assign(name, const_expr(known)), known)
    if isinstance(value, Leaf) and not isinstance(value.expr, Var):
        if cx.whole:
            if frame.live.loads[name] > 1 and not isinstance(value.expr, Const):
                raise NotWhole
            return value
        return Leaf(cx.assign(name, value.expr), value.known)
    if isinstance(value, Struct) and value.kind == "tuple" and value.whole is None and not cx.rules:
        children = tuple(
            named(cx, frame, f"{name}_{key}", child) if isinstance(child, Leaf) else child
            for key, child in zip(value.keys, value.children, strict=True)
        )
        return dataclasses.replace(value, children=children)
    return value


@functools.cache
def zero_of(type_: Type) -> Expr:
    """A value that stands where no path reads one: the first value of a merge that is bound later."""
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
            return Call(ops.new_list, (), (), type_)
    return Const(None)


def poison_check(cx: Context, value: Any) -> Any:
    """Refuse a variable that has no single meaning here."""
    if isinstance(value, Poison):
        raise cx.refusal(BadArgument, value.reason, value.advice)
    return value
