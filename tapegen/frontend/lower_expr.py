"""Expressions.

`evaluate` gives the abstract value of a node and writes what must run first.  Inside a condition (`try_whole`) nothing
may be written: the expression stays in one piece, with Python's short-circuit.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Sequence
from typing import Any

import gast

from tapegen.errors import BadArgument, NotDifferentiable, UnsupportedSyntax
from tapegen.frontend import builtin_texts
from tapegen.frontend.lower_capture import capture, special_method, watch
from tapegen.frontend.lower_choice import split
from tapegen.frontend.lower_context import (
    Box,
    Captured,
    Choice,
    Closure,
    Context,
    Frame,
    Maybe,
    NeedsStatic,
    NotWhole,
    Ref,
    known_value,
)
from tapegen.frontend.lower_emit import emit_call, fold
from tapegen.frontend.lower_merge import ABSENT
from tapegen.frontend.lower_values import (
    definite,
    describe,
    expr_of,
    is_int,
    named,
    not_,
    poison_check,
    run_list_of,
    static,
    struct_of,
    truth,
    type_of,
)
from tapegen.frontend.parse import MISSING
from tapegen.frontend.structure import UNKNOWN, Leaf, StaticValue, Struct, dict_of, list_of, tuple_of
from tapegen.ir import ops
from tapegen.ir.names import TEMPORARY
from tapegen.ir.nodes import Assign, Call, Const, Expr, Var
from tapegen.ir.types import BOOL, STATIC, Array, Scalar, is_floating

Evaluator = Callable[[Context, Any, str | None], Any]
_EVALUATORS: dict[type, Evaluator] = {}


def evaluates(*kinds: type) -> Callable[[Evaluator], Evaluator]:
    """Register what evaluates a kind of node."""

    def register(evaluator: Evaluator) -> Evaluator:
        _EVALUATORS.update(dict.fromkeys(kinds, evaluator))
        return evaluator

    return register


class Given(gast.expr):
    """A node whose value is known already."""

    _fields = ()

    def __init__(self, value: Any) -> None:
        super().__init__()
        self.value = value


def evaluate(cx: Context, node: gast.AST, hint: str | None = None) -> Any:
    """The abstract value of an expression.

    Parameters
    ----------
    cx : Context
        Where its statements go.
    node : gast.AST
        The expression.
    hint : str, optional
        The name for the result, where it gets one.
    """
    evaluator = _EVALUATORS.get(type(node))
    with cx.at(node):
        if evaluator is None:
            kind = type(node).__name__
            raise cx.refusal(
                UnsupportedSyntax, f"the expression '{kind}' is not supported.", "Write it with calls and operators."
            )
        return evaluator(cx, node, hint)


def evaluate_all(cx: Context, nodes: Sequence[gast.AST]) -> list[Any]:
    """Values of several expressions, each as it is when its turn comes."""
    values: list[Any] = []
    for node in nodes:
        seen, place = cx.effects, len(cx.builder.items)
        value = evaluate(cx, node)
        if cx.effects != seen:
            _pin(cx, values, place)
        values.append(value)
    return values


def _pin(cx: Context, values: list[Any], place: int) -> None:
    """Name the expressions that were to be evaluated before statements that may change what they mean."""
    for k, value in enumerate(values):
        if isinstance(value, Leaf) and not isinstance(value.expr, Var | Const):
            var = cx.new_var(TEMPORARY, value.type)
            cx.builder.items.insert(place, Assign((var,), value.expr, cx.origin))
            cx.definitions[var] = value.expr
            values[k] = Leaf(var, value.known)


# ---- names and constants -------------------------------------------------------------------------------------------


@evaluates(gast.Constant)
def _constant(cx: Context, node: gast.Constant, hint: str | None) -> Any:
    value = node.value
    if type(value) is int and not -(2**63) <= value < 2**63:
        raise cx.refusal(BadArgument, f"the integer {value:.3e} does not fit into 64 bits.", "Write it as a float.")
    return StaticValue(value)


@evaluates(gast.Name)
def _name(cx: Context, node: gast.Name, hint: str | None) -> Any:
    return look_up_name(cx, node.id)


@evaluates(Given)
def _given(cx: Context, node: Given, hint: str | None) -> Any:
    return node.value


def look_up_name(cx: Context, name: str) -> Any:
    """What a name means at this point of the program."""
    frame: Frame | None = cx.frame
    while frame is not None:
        if name in frame.locals:
            return _local(cx, frame, name)
        if frame.parent is None:
            break
        frame = frame.parent
    assert frame is not None
    value = frame.parsed.resolve(name)
    if value is MISSING:
        watch(cx, ("missing", id(frame.parsed.func), name), lambda: frame.parsed.resolve(name) is MISSING)
        cx.raise_(NameError, f"name '{name}' is not defined")
    cell = frame.parsed.cell(name)
    path = ("cell", id(cell)) if cell is not None else ("global", id(frame.parsed.func.__globals__), name)
    return capture(cx, value, frame.parsed.getter(name), name, path)


def _local(cx: Context, frame: Frame, name: str) -> Any:
    key = (frame, name)
    missing = object()
    value = cx.state.vars.get(key, missing)
    if value is missing:
        for head in cx.heads:
            if head.values.get(key) is ABSENT:
                head.observed.add(key)
        _raise_unbound(cx, frame, name, None)
    cx.observe(key, value)
    box = value if name in frame.boxed else None
    if box is not None:
        content = struct_of(cx, box)
        assert content is not None
        value = content.get(name)
        if value is ABSENT:
            _raise_unbound(cx, frame, name, None)
    if isinstance(value, Maybe):
        _raise_unbound(cx, frame, name, value.bound)
        value = value.value
        if box is not None:
            cx.set_cell(box, Struct("object", (name,), (value,), Box))
        else:
            cx.state.vars[key] = value
    return poison_check(cx, value)


def _raise_unbound(cx: Context, frame: Frame, name: str, bound: Expr | None) -> None:
    if frame is cx.frame:
        message = f"cannot access local variable '{name}' where it is not associated with a value"
        error: type[Exception] = UnboundLocalError
    else:
        message = f"cannot access free variable '{name}' where it is not associated with a value in enclosing scope"
        error = NameError
    if bound is None:
        cx.raise_(error, message)
    test = not_(cx, bound)
    assert not isinstance(test, bool)
    cx.raise_if(test, error, message)


@evaluates(gast.NamedExpr)
def _walrus(cx: Context, node: gast.NamedExpr, hint: str | None) -> Any:
    if cx.whole:
        raise NotWhole
    return bind_name(cx, node.target.id, evaluate(cx, node.value, hint=node.target.id))


def owner_of(cx: Context, name: str) -> Frame:
    """The frame that a name assigned here belongs to: of the function around a comprehension, or of a `nonlocal`."""
    frame = cx.frame
    while name not in frame.locals and frame.parent is not None:
        frame = frame.parent
    return frame


def bind_name(cx: Context, name: str, value: Any) -> Any:
    """`name = value`; returns the value as the variable holds it."""
    value = named(cx, owner_of(cx, name), name, value)
    put_name(cx, name, value)
    return value


def put_name(cx: Context, name: str, value: Any) -> None:
    """`name = value` of a value that is as the variable will hold it."""
    frame = owner_of(cx, name)
    if name in frame.boxed:
        cx.set_cell(cx.state.vars[(frame, name)], Struct("object", (name,), (value,), Box))
    else:
        cx.state.vars[(frame, name)] = value


def enter(cx: Context, frame: Frame) -> None:
    """Begin to read a function: room for the variables that inner functions will assign."""
    for name in sorted(frame.boxed):
        cx.state.vars[(frame, name)] = cx.new_cell(Struct("object", (name,), (ABSENT,), Box))


# ---- operators -----------------------------------------------------------------------------------------------------

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
"""Operations that one integer expression may chain."""


@evaluates(gast.BinOp)
def _binary(cx: Context, node: gast.BinOp, hint: str | None) -> Any:
    spine = [node]  # a sum of some hundred terms leans to the left, deeper than Python recurses
    while isinstance(spine[-1].left, gast.BinOp):
        spine.append(spine[-1].left)
    left = evaluate(cx, spine[-1].left)
    for k, inner in enumerate(reversed(spine), 1):
        if k % LONGEST == 0 and isinstance(left, Leaf) and not cx.whole:
            left = Leaf(cx.atom(left.expr), left.known)  # later passes recurse into what has no name
        seen, place = cx.effects, len(cx.builder.items)
        right = evaluate(cx, inner.right)
        if cx.effects != seen:
            pinned = [left]
            _pin(cx, pinned, place)
            (left,) = pinned
        with cx.at(inner):
            left = binary(cx, BINARY[type(inner.op)], left, right, hint if inner is node else None)
    return left


def binary(cx: Context, func: Any, left: Any, right: Any, hint: str | None = None) -> Any:
    """`left op right`."""
    if isinstance(left, Choice) or isinstance(right, Choice):
        return split(cx, (left, right), lambda a, b: binary(cx, func, a, b, hint), hint)
    if type_of(left) is not None and type_of(right) is not None:
        if func is operator.pow:
            _check_power(cx, left, right)
        return emit_call(cx, func, (left, right), hint=hint)
    known = fold(cx, func, (left, right))
    if known is not UNKNOWN:
        return StaticValue(known)
    for value in (left, right):
        poison_check(cx, value)
    found = _on_containers(cx, func, left, right)
    if found is not None:
        return found
    found = _on_objects(cx, func, left, right)
    if found is not None:
        return found
    if _mixes_array(left, right) or _mixes_array(right, left):
        return emit_call(cx, func, (_as_array(cx, left), _as_array(cx, right)), hint=hint)
    if isinstance(left, StaticValue | Leaf) and isinstance(right, StaticValue | Leaf) and func is operator.mod:
        return Leaf(Call(ops.fstring, (Const("..."),), (), STATIC))  # text; only messages show it
    sign = {name: symbol for symbol, name in _SIGNS.items()}.get(func, getattr(func, "__name__", "?"))
    cx.raise_(TypeError, f"unsupported operand type(s) for {sign}: {_type_name(cx, left)} and {_type_name(cx, right)}")


_SIGNS = {
    "+": operator.add,
    "-": operator.sub,
    "*": operator.mul,
    "/": operator.truediv,
    "//": operator.floordiv,
    "%": operator.mod,
    "** or pow()": operator.pow,
    "@": operator.matmul,
}


def _type_name(cx: Context, value: Any) -> str:
    if isinstance(value, StaticValue):
        return f"'{type(value.value).__name__}'"
    if isinstance(value, Leaf) and isinstance(value.type, Scalar):
        return "'float'" if is_floating(value.type) else "'int'"
    content = struct_of(cx, value)
    return f"'{content.cls.__name__}'" if content is not None else "'numpy.ndarray'"


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
    if isinstance(count, Var) and count in cx.samples:
        if cx.samples[count] < 0:
            refusal = cx.refusal(NotDifferentiable, "the exponent must be known.", "Write float(...) for the base.")
            raise NeedsStatic(count, refusal)
        cx.not_negative.add(count)
        return
    test = Call(operator.lt, (count, Const(0)), (), BOOL)
    cx.raise_if(test, ValueError, "an integer is raised to a negative power; write float(...) for the base")


def _mixes_array(a: Any, b: Any) -> bool:
    return isinstance(a, Leaf) and isinstance(a.type, Array) and isinstance(b, Struct | Ref | Captured)


def _as_array(cx: Context, value: Any) -> Any:
    """A sequence next to an array becomes an array, as in NumPy."""
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
            return cx.call(cx, StaticValue(builtin_texts.joined), (left, right), {})
        return None
    if func is operator.add and a is not None and b is not None and a.kind == b.kind and a.kind in ("tuple", "list"):
        return _sequence(cx, a.kind, (*a.children, *b.children))
    if func is operator.mul:
        if a is None and b is not None:
            a, right = b, left
        if a is not None and a.kind in ("tuple", "list") and is_int(right):
            if known_value(right) is UNKNOWN and a.kind == "list":
                return cx.call(cx, StaticValue(ops.new_list), (right, *a.children), {})
            return _sequence(cx, a.kind, a.children * int(static(cx, right, "the length of this list")))
    return None


def _sequence(cx: Context, kind: str, children: tuple[Any, ...]) -> Any:
    return tuple_of(children) if kind == "tuple" else cx.new_cell(list_of(children))


def _on_objects(cx: Context, func: Any, left: Any, right: Any) -> Any:
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
        if callable(found) and found is not getattr(object, method, None):
            result = cx.call(cx, StaticValue(found), (subject, other), {})
            if not isinstance(result, StaticValue) or result.value is not NotImplemented:
                return result
    return None


@evaluates(gast.UnaryOp)
def _unary(cx: Context, node: gast.UnaryOp, hint: str | None) -> Any:
    if isinstance(node.op, gast.Not):
        value = evaluate(cx, node.operand)
        test = not_(cx, truth(cx, value))
        return StaticValue(test) if isinstance(test, bool) else Leaf(test)
    value = definite(cx, evaluate(cx, node.operand))
    func = _UNARY[type(node.op)]
    content = struct_of(cx, value)
    if content is not None and content.kind == "object":
        found = special_method(cx, content.cls, f"__{func.__name__}__")
        if found is not None:
            return cx.call(cx, StaticValue(found), (value,), {})
    if type_of(value) is None:
        cx.raise_(TypeError, f"bad operand type for unary {func.__name__}: {_type_name(cx, value)}")
    return emit_call(cx, func, (value,), hint=hint)


# ---- displays ------------------------------------------------------------------------------------------------------


@evaluates(gast.Tuple)
def _tuple(cx: Context, node: gast.Tuple, hint: str | None) -> Any:
    return tuple_of(elements(cx, node.elts))


@evaluates(gast.List)
def _list(cx: Context, node: gast.List, hint: str | None) -> Any:
    return cx.new_cell(list_of(elements(cx, node.elts)))


def elements(cx: Context, nodes: Sequence[gast.AST]) -> list[Any]:
    """Values of the items of a display or of positional arguments, starred ones spread out."""
    values: list[Any] = []
    for node in nodes:
        starred = isinstance(node, gast.Starred)
        seen, place = cx.effects, len(cx.builder.items)
        value = evaluate(cx, node.value if starred else node)
        if cx.effects != seen:
            _pin(cx, values, place)
        if starred:
            values.extend(spread(cx, value))
        else:
            values.append(value)
    return values


def spread(cx: Context, value: Any) -> tuple[Any, ...]:
    """The items of a sequence of known length."""
    content = struct_of(cx, value)
    if content is not None and content.kind != "object":
        return content.children if content.kind != "dict" else tuple(map(StaticValue, content.keys))
    if isinstance(value, StaticValue) and isinstance(value.value, tuple | list | str | range | dict):
        return tuple(map(StaticValue, value.value))
    raise cx.refusal(
        NotDifferentiable, f"the length of {describe(cx, value)} is not known here.", "Index it, or unpack a tuple."
    )


@evaluates(gast.Dict)
def _dict(cx: Context, node: gast.Dict, hint: str | None) -> Any:
    items: list[tuple[Any, Any]] = []
    for key, value in zip(node.keys, node.values, strict=True):
        if key is None:
            content = struct_of(cx, evaluate(cx, value))
            if content is None or content.kind != "dict":
                raise cx.refusal(NotDifferentiable, "'**' needs a dict with known keys.", "Write the items out.")
            items.extend(zip(content.keys, content.children, strict=True))
        else:
            items.append((static(cx, evaluate(cx, key), "a key of a dict"), evaluate(cx, value)))
    return cx.new_cell(dict_of(items))


@evaluates(gast.Lambda)
def _lambda(cx: Context, node: gast.Lambda, hint: str | None) -> Any:
    return make_closure(cx, node)


def make_closure(cx: Context, node: gast.FunctionDef | gast.Lambda) -> StaticValue:
    """An inner function; its defaults are evaluated now."""
    args = node.args
    positional = [*args.posonlyargs, *args.args]
    defaults: dict[str, Any] = {}
    for name, default in zip(positional[len(positional) - len(args.defaults) :], args.defaults, strict=True):
        defaults[name.id] = evaluate(cx, default)
    for name, default in zip(args.kwonlyargs, args.kw_defaults, strict=True):
        if default is not None:
            defaults[name.id] = evaluate(cx, default)
    return StaticValue(Closure(node, cx.frame, defaults))
