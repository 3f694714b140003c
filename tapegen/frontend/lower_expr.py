"""Expressions.

`evaluate` gives the abstract value of a node and writes what must run first.  Inside a condition (`try_whole`) nothing
may be written: the expression stays in one piece, with Python's short-circuit.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from typing import Any

import gast

from tapegen.errors import BadArgument, NotDifferentiable, UnsupportedSyntax
from tapegen.frontend.lower_context import (
    Captured,
    Choice,
    Closure,
    Context,
    Frame,
    Maybe,
    NotWhole,
    Ref,
    is_number,
    known_value,
)
from tapegen.frontend.lower_join import branches
from tapegen.frontend.lower_merge import ABSENT, converted, merged_type
from tapegen.frontend.lower_values import (
    capture,
    definite,
    describe,
    emit_call,
    expr_of,
    fold,
    is_int,
    named,
    not_,
    operand,
    poison_check,
    static,
    struct_of,
    truth,
    type_of,
)
from tapegen.frontend.parse import MISSING
from tapegen.frontend.structure import UNKNOWN, Leaf, StaticValue, Struct, dict_of, list_of, same_static, tuple_of
from tapegen.ir import ops
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
            var = cx.new_var("t", value.type)
            cx.builder.items.insert(place, Assign((var,), value.expr, cx.origin))
            cx.definitions[var] = value.expr
            values[k] = Leaf(var, value.known)


# ---- names and constants -------------------------------------------------------------------------------------------


@evaluates(gast.Constant)
def _constant(cx: Context, node: gast.Constant, hint: str | None) -> Any:
    value = node.value
    if isinstance(value, complex):
        raise cx.refusal(BadArgument, "complex numbers are not supported.", "Work with real and imaginary parts.")
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
    if isinstance(value, Maybe):
        _raise_unbound(cx, frame, name, value.bound)
        value = cx.state.vars[key] = value.value
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
    name = node.target.id
    frame = cx.frame
    while frame.is_comprehension and name not in frame.locals and frame.parent is not None:
        frame = frame.parent
    if cx.whole:
        raise NotWhole
    value = named(cx, frame, name, evaluate(cx, node.value, hint=name))
    cx.state.vars[(frame, name)] = value
    return value


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


@evaluates(gast.BinOp)
def _binary(cx: Context, node: gast.BinOp, hint: str | None) -> Any:
    spine = [node]  # a sum of some hundred terms leans to the left, deeper than Python recurses
    while isinstance(spine[-1].left, gast.BinOp):
        spine.append(spine[-1].left)
    left = evaluate(cx, spine[-1].left)
    for inner in reversed(spine):
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
    if not (is_int(base) and is_int(exponent)) or known_value(exponent) is not UNKNOWN:
        return
    test = Call(operator.lt, (expr_of(cx, exponent), Const(0)), (), BOOL)
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
    for subject, other, method in (
        (left, right, f"__{name}__"),
        (right, left, f"__{_REFLECTED.get(name, 'r' + name)}__"),
    ):
        content = struct_of(cx, subject)
        if content is not None and content.kind == "object":
            found = getattr(content.cls, method, None)
            if callable(found) and found is not getattr(object, method, None):
                return cx.call(cx, StaticValue(found), (subject, other), {})
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
        return cx.call(
            cx, StaticValue(getattr(content.cls, {"neg": "__neg__", "pos": "__pos__"}[func.__name__])), (value,), {}
        )
    if type_of(value) is None:
        cx.raise_(TypeError, f"bad operand type for unary {func.__name__}: {_type_name(cx, value)}")
    return emit_call(cx, func, (value,), hint=hint)


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
    if not last and isinstance(right, Leaf) and not isinstance(right.expr, Var | Const) and not _simple(right.expr):
        right = Leaf(cx.assign("t", right.expr), right.known)
    result = compare(cx, node.ops[k], left, right)
    if last:
        return result
    return both(cx, ops.and_, result, lambda: _chain(cx, node, k + 1, right))


def _simple(expr: Expr) -> bool:
    """Whether an expression is as cheap to evaluate twice as to name."""
    return isinstance(expr, Call) and expr.func is ops.dim


def compare(cx: Context, op: gast.cmpop, left: Any, right: Any, hint: str | None = None) -> Any:
    """One comparison."""
    if isinstance(op, gast.Is | gast.IsNot):
        return _identity(cx, left, right, isinstance(op, gast.Is))
    if isinstance(op, gast.In | gast.NotIn):
        found = _contains(cx, right, left)
        if isinstance(op, gast.In):
            return found
        test = not_(cx, truth(cx, found))
        return StaticValue(test) if isinstance(test, bool) else Leaf(test)
    return compare_values(cx, COMPARISONS[type(op)], left, right, hint)


def compare_values(cx: Context, func: Any, left: Any, right: Any, hint: str | None = None) -> Any:
    """`left < right` and its siblings."""
    if isinstance(left, Choice) or isinstance(right, Choice):
        return split(cx, (left, right), lambda a, b: compare_values(cx, func, a, b, hint), hint)
    if type_of(left) is not None and type_of(right) is not None:
        return emit_call(cx, func, (left, right), hint=hint)
    known = fold(cx, func, (left, right))
    if known is not UNKNOWN:
        return StaticValue(known)
    found = _on_objects(cx, func, left, right)
    if found is not None:
        return found
    if _mixes_array(left, right) or _mixes_array(right, left):
        return emit_call(cx, func, (_as_array(cx, left), _as_array(cx, right)), hint=hint)
    a, b = struct_of(cx, left), struct_of(cx, right)
    if a is not None and b is not None and a.kind in ("tuple", "list") and func in (operator.eq, operator.ne):
        return _equal_sequences(cx, func, a, b)
    if func in (operator.eq, operator.ne):
        if isinstance(left, StaticValue) and isinstance(right, StaticValue):
            return StaticValue(same_static(left.value, right.value) == (func is operator.eq))
        return StaticValue(func is operator.ne)  # a number is not equal to None, a string, a function ...
    cx.raise_(
        TypeError,
        f"'{func.__name__}' not supported between instances of {_type_name(cx, left)} and {_type_name(cx, right)}",
    )


def _equal_sequences(cx: Context, func: Any, a: Struct, b: Struct) -> Any:
    if a.kind != b.kind or len(a.children) != len(b.children):
        return StaticValue(func is operator.ne)
    result: Any = StaticValue(True)
    for x, y in zip(a.children, b.children, strict=True):
        result = both(cx, ops.and_, result, lambda x=x, y=y: compare(cx, gast.Eq(), x, y))  # type: ignore[misc]
    if func is operator.ne:
        test = not_(cx, truth(cx, result))
        return StaticValue(test) if isinstance(test, bool) else Leaf(test)
    return result


def _identity(cx: Context, left: Any, right: Any, wanted: bool) -> Any:
    """`left is right` (or `is not`)."""
    if isinstance(right, Choice):
        left, right = right, left
    if not isinstance(left, Choice):
        return StaticValue(_is(cx, left, right) == wanted)
    answers = [_is(cx, part, right) == wanted for part in (left.first, left.second)]
    if answers[0] == answers[1]:
        return StaticValue(answers[0])
    test = left.test if answers[0] else not_(cx, left.test)
    assert not isinstance(test, bool)
    return Leaf(test)


def _is(cx: Context, left: Any, right: Any) -> bool:
    """Whether two values are one object."""
    if isinstance(left, StaticValue) and isinstance(right, StaticValue):
        return left.value is right.value
    if isinstance(left, StaticValue) or isinstance(right, StaticValue):
        constant = left.value if isinstance(left, StaticValue) else right.value
        if constant is None or isinstance(constant, bool | str | type):
            other = right if isinstance(left, StaticValue) else left
            if not (isinstance(constant, bool) and type_of(other) == BOOL):
                return False
    if isinstance(left, Ref) and isinstance(right, Ref):
        return left.cell == right.cell
    if (
        isinstance(left, Leaf)
        and isinstance(right, Leaf)
        and isinstance(left.type, Array)
        and cx.resolve(left.expr) == cx.resolve(right.expr)
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
    content = struct_of(cx, container)
    if (
        content is None
        and isinstance(container, StaticValue)
        and isinstance(container.value, tuple | list | set | frozenset | range)
    ):
        content = tuple_of(map(StaticValue, container.value))
    if content is not None and content.kind == "dict":
        return StaticValue(static(cx, item, "a key") in content.keys)
    if content is not None and content.kind in ("tuple", "list"):
        result: Any = StaticValue(False)
        for child in content.children:
            result = both(cx, ops.or_, result, lambda child=child: compare(cx, gast.Eq(), child, item))  # type: ignore[misc]
        return result
    if isinstance(container, Leaf) and isinstance(container.type, Array):
        import numpy as np

        return emit_call(cx, np.any, (emit_call(cx, operator.eq, (container, item)),))
    raise cx.refusal(
        UnsupportedSyntax, f"'in {describe(cx, container)}' is not supported.", "Write a loop, or np.any(a == x)."
    )


# ---- and, or, ternary ----------------------------------------------------------------------------------------------


@evaluates(gast.BoolOp)
def _boolean(cx: Context, node: gast.BoolOp, hint: str | None) -> Any:
    func = ops.and_ if isinstance(node.op, gast.And) else ops.or_
    result = evaluate(cx, node.values[0])
    for part in node.values[1:]:
        result = both(cx, func, result, lambda part=part: evaluate(cx, part), hint)  # type: ignore[misc]
    return result


def both(cx: Context, func: Any, left: Any, right: Callable[[], Any], hint: str | None = None) -> Any:
    """`left and right` or `left or right`; `right()` is evaluated only where Python would."""
    test = truth(cx, left)
    if isinstance(test, bool):
        return right() if test == (func is ops.and_) else left
    if isinstance(left, Leaf) and isinstance(left.type, Scalar) and left.type.dtype == "bool":
        value = quietly(cx, right)
        if value is not None:
            known = known_value(value)
            if is_number(known) and isinstance(value, StaticValue) and isinstance(known, bool):
                # `x and True` is x, `x or False` is x; the other two are known whatever x is
                return left if known == (func is ops.and_) else StaticValue(known)
            if isinstance(value, Leaf) and isinstance(value.type, Scalar) and value.type.dtype == "bool":
                return Leaf(Call(func, (expr_of(cx, left), expr_of(cx, value)), (), BOOL))
    if func is ops.and_:
        return choose(cx, test, right, lambda: left, hint)
    return choose(cx, test, lambda: left, right, hint)


def quietly(cx: Context, compute: Callable[[], Any]) -> Any:
    """The value of an expression if it needs no statements, else None."""
    saved, outer = cx.state.copy(), cx.whole
    cx.whole = True
    try:
        return compute()
    except NotWhole:
        cx.state = saved
        if outer:
            raise
        return None
    finally:
        cx.whole = outer


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
        ints = all(isinstance(type_of(v), Scalar) and not is_floating(type_of(v)) for v in (a, b))  # type: ignore[arg-type]
        if ints or cx.whole:
            type_ = merged_type("value", (a, b))
            return Leaf(
                Call(ops.ifelse, (test, converted(expr_of(cx, a), type_), converted(expr_of(cx, b), type_)), (), type_)
            )
    return choose(cx, test, lambda: side(node.body, True), lambda: side(node.orelse, False), hint)


def choose(cx: Context, test: Expr, a: Callable[[], Any], b: Callable[[], Any], hint: str | None) -> Any:
    """The value of one of two expressions, as the join of an If."""
    if cx.whole:
        raise NotWhole
    key = (cx.frame, f"{hint or 't'} ")  # no name in the text has a space

    def into(compute: Callable[[], Any]) -> Callable[[], None]:
        def run() -> None:
            cx.state.vars[key] = compute()

        return run

    branches(cx, test, into(a), into(b), None)
    return poison_check(cx, cx.state.vars.pop(key))


# ---- values of two kinds ------------------------------------------------------------------------------------


def split(cx: Context, values: Sequence[Any], compute: Callable[..., Any], hint: str | None = None) -> Any:
    """`compute(*values)` where some values are of two kinds: for each kind by itself."""
    for k, value in enumerate(values):
        if not isinstance(value, Choice):
            continue
        if any(isinstance(part, StaticValue) and part.value is None for part in (value.first, value.second)):
            return compute(*values[:k], definite(cx, value), *values[k + 1 :])
        first, second = ((*values[:k], part, *values[k + 1 :]) for part in (value.first, value.second))
        return choose(cx, value.test, partial(compute, *first), partial(compute, *second), hint)
    return compute(*values)


def refine(cx: Context, node: gast.AST, outcome: bool) -> None:
    """Note what a test has told: a variable is None, or is not."""
    match node:
        case gast.UnaryOp() if isinstance(node.op, gast.Not):
            refine(cx, node.operand, not outcome)
        case gast.BoolOp() if isinstance(node.op, gast.And) == outcome:
            for part in node.values:
                refine(cx, part, outcome)
        case gast.Compare() if len(node.ops) == 1 and isinstance(node.ops[0], gast.Is | gast.IsNot):
            other = node.comparators[0]
            if isinstance(node.left, gast.Name) and isinstance(other, gast.Constant) and other.value is None:
                _refine_name(cx, node.left.id, isinstance(node.ops[0], gast.Is) == outcome)


def _refine_name(cx: Context, name: str, is_none: bool) -> None:
    key = (cx.frame, name)
    value = cx.state.vars.get(key)
    if isinstance(value, Choice):
        for part in (value.first, value.second):
            if (isinstance(part, StaticValue) and part.value is None) == is_none:
                cx.state.vars[key] = part


@contextmanager
def refined(cx: Context) -> Iterator[None]:
    """Forget what tests have told when the expression is over."""
    before = {key: value for key, value in cx.state.vars.items() if isinstance(value, Choice)}
    try:
        yield
    finally:
        for key, value in before.items():
            if cx.state.vars.get(key) in (value.first, value.second):
                cx.state.vars[key] = value


# ---- conditions ----------------------------------------------------------------------------------------------------


def try_whole(cx: Context, node: gast.AST) -> bool | Expr | None:
    """The test of an If or While in one piece: True or False when known, None when it needs statements of its own."""
    return quietly(cx, lambda: _test(cx, node))


def condition(cx: Context, node: gast.AST) -> bool | Expr:
    """The test of an If; what it needs is written first."""
    test = try_whole(cx, node)
    return test if test is not None else _test(cx, node)


def _test(cx: Context, node: gast.AST) -> bool | Expr:
    """The truth of a node."""
    with cx.at(node):
        match node:
            case gast.UnaryOp() if isinstance(node.op, gast.Not):
                return not_(cx, _test(cx, node.operand))
            case gast.BoolOp():
                func = ops.and_ if isinstance(node.op, gast.And) else ops.or_
                result = _test(cx, node.values[0])
                with refined(cx):
                    for k, part in enumerate(node.values[1:]):
                        refine(cx, node.values[k], func is ops.and_)
                        result = _both_tests(cx, func, result, part)
                return result
    return truth(cx, evaluate(cx, node))


def _both_tests(cx: Context, func: Any, left: bool | Expr, part: gast.AST) -> bool | Expr:
    if isinstance(left, bool):
        return _test(cx, part) if left == (func is ops.and_) else left
    right = quietly(cx, lambda: _test(cx, part))
    if right is None:

        def compute() -> Any:
            test = _test(cx, part)
            return StaticValue(test) if isinstance(test, bool) else Leaf(test)

        known = StaticValue(func is ops.or_)
        first, second = (compute, lambda: known) if func is ops.and_ else (lambda: known, compute)
        return truth(cx, choose(cx, left, first, second, None))
    if isinstance(right, bool):
        return left if right == (func is ops.and_) else right
    return Call(func, (left, right), (), BOOL)


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
        return [StaticValue(f"<{content.cls.__name__}>")]
    return [value]
