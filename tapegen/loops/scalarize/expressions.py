"""Scalarization of expressions: expression trees become scalars and rules for elements.

`scalar` turns an expression that denotes a scalar into one that numba computes as Python and NumPy do, and `lazy` turns
one that denotes an array into a rule for its elements.  Both emit what must come first: checks, bounds of slices, and
whatever cannot be part of an expression.
"""

from __future__ import annotations

import builtins
import math
import operator
from collections.abc import Callable
from typing import Any

import numpy as np

from tapegen.frontend.source.callables import is_native
from tapegen.ir import intrinsics
from tapegen.ir.affine import plus, times
from tapegen.ir.nodes import Assign, Call, Const, Expr, If, Load, Routine, Slice, Tuple, Var
from tapegen.ir.types import BOOL, INT, Array, ListOf, Scalar
from tapegen.loops.analysis.symbolic_bounds import UNIT, Extent, Extents
from tapegen.loops.legalize import precision, scalar_ops
from tapegen.loops.legalize.builder import ElementRule, Indices, LoopBuilder
from tapegen.loops.legalize.registry import FILL, LAZY, REWRITE, SCALAR
from tapegen.loops.scalarize.broadcasting import broadcast
from tapegen.loops.scalarize.loop_nests import fill, scratch
from tapegen.loops.scalarize.slicing import checked, from_start, position, sliced

_SHAPES = frozenset({intrinsics.dim, intrinsics.shape, builtins.len, np.size, np.shape, np.ndim})
_LISTS = frozenset(
    {
        builtins.len,
        intrinsics.new_list,
        intrinsics.item,
        intrinsics.append,
        intrinsics.pop,
        intrinsics.set_item,
        intrinsics.fstring,
        operator.getitem,
    }
)

# ---- scalars ---------------------------------------------------------------------------------------------------------


def scalar(w: LoopBuilder, expr: Any) -> Any:
    """An expression that denotes a scalar (or a list, a string, a tuple of such)."""
    kind = type(expr)
    if kind is Call:
        return _call(w, expr)
    if kind is Load:
        return _element(w, expr) if isinstance(expr.type, Scalar) else w.materialize(expr)
    if kind is Tuple:
        return Tuple(tuple([scalar(w, item) for item in expr.items]))
    if kind is Const and isinstance(expr.value, np.generic):
        number = Call(float, (Const(expr.value.item()),), (), Scalar("float64", False))
        return precision.convert(number, expr.value.dtype.name)
    return expr


def _element(w: LoopBuilder, load: Load) -> Expr:
    base = w.array(load.array)
    if load.array in w.tapes:
        return base.at(tuple([scalar(w, item) for item in load.index]))
    axes = zip(base.extents, load.index, strict=True)
    return base.at(tuple([position(w, extent, scalar(w, item)) for extent, item in axes]))


def _call(w: LoopBuilder, call: Call) -> Expr:
    func: Any = call.func
    if func in _ARITHMETIC and type(call.type) is Scalar and all(map(_is_number, call.args)):
        args = tuple([scalar(w, arg) for arg in call.args])
        if not any(map(operator.is_not, args, call.args)):
            args = call.args
        result = scalar_ops.operation(w, func, args, call.type)
        return call if _is_same(result, call) else result
    if isinstance(func, Routine):
        return opaque(w, call)
    if func in (intrinsics.and_, intrinsics.or_):
        return _short_circuit(w, call)
    if func is intrinsics.ifelse:
        return _ternary(w, call)
    if func is intrinsics.primal_as:
        return scalar(w, call.args[0])
    if func in _SHAPES:
        return _shape(w, call)
    if func in REWRITE:
        return scalar(w, REWRITE[func](w, call))
    if isinstance(call.type, Array):
        return w.materialize(call)
    if isinstance(call.type, ListOf):  # `[0.0] * len(items)` and the like
        return Call(func, tuple(operand(w, arg) for arg in call.args), (), call.type)
    if func in intrinsics.DRAWS and func in SCALAR:
        return SCALAR[func](w, call)
    if func in (np.dot, np.inner) and all(isinstance(arg.type, Scalar) for arg in call.args):
        func = operator.mul
    if func in SCALAR and any(isinstance(arg.type, Array) or isinstance(arg, Tuple) for arg in call.args):
        return SCALAR[func](w, call)
    operands = (*call.args, *(value for _, value in call.kwargs))
    if any(isinstance(arg.type, ListOf) for arg in operands) and func in (operator.add, operator.mul):
        return Call(func, tuple(operand(w, arg) for arg in operands), (), call.type)
    if func in scalar_ops.OPERATIONS and not any(isinstance(arg.type, Array) and arg.type.rank for arg in operands):
        assert isinstance(call.type, Scalar)
        return scalar_ops.operation(w, func, tuple(number(w, arg) for arg in operands), call.type)
    return opaque(w, call)


_ARITHMETIC: frozenset[Any] = frozenset(
    {operator.add, operator.sub, operator.mul, operator.truediv, operator.neg}
    | {operator.lt, operator.le, operator.gt, operator.ge, operator.eq, operator.ne}
)


def _is_same(result: Expr, call: Call) -> bool:
    """Whether a scalar is that operation, whose facts are cached."""
    return type(result) is Call and result.args is call.args and result.func is call.func and result.type == call.type


def _is_number(expr: Expr) -> bool:
    return type(expr.type) is Scalar


def number(w: LoopBuilder, expr: Expr) -> Expr:
    """The scalar that an expression denotes, also the only element of an array without axes."""
    return lazy(w, expr).at(()) if isinstance(expr.type, Array) else scalar(w, expr)


def opaque(w: LoopBuilder, call: Call) -> Call:
    """A call that numba supports as it is, with prepared operands."""
    known = isinstance(call.func, Routine) or call.func in _LISTS or call.func in FILL or call.func in _OPAQUE
    if not known and not is_native(call.func):
        raise w.unsupported(call.func)
    args = tuple(operand(w, arg) for arg in call.args)
    if call.func is builtins.divmod and all(isinstance(arg.type, Scalar) and arg.type.python for arg in args):
        args = (args[0], scalar_ops.nonzero(w, args[1], "division by zero"))
    elif call.func is builtins.divmod:
        dtypes = [arg.type.dtype for arg in args if isinstance(arg.type, Scalar) and not arg.type.python]
        args = tuple(scalar_ops.representable(w, arg, dtypes[0]) for arg in args)
    return Call(call.func, args, tuple((name, operand(w, value)) for name, value in call.kwargs), call.type)


_OPAQUE: frozenset[Any] = frozenset(
    {
        builtins.print,
        intrinsics.tell,
        builtins.divmod,
        math.frexp,
        builtins.complex,
        intrinsics.item,
        builtins.sum,
        intrinsics.same_start,
        intrinsics.checkpoint_distance,
    }
)


def operand(w: LoopBuilder, expr: Expr) -> Expr:
    """An argument of a call: arrays become Vars."""
    if isinstance(expr.type, Array):
        return w.materialize(expr)
    return scalar(w, expr)


def _shape(w: LoopBuilder, call: Call) -> Expr:
    array = call.args[0]
    if not isinstance(array.type, Array):
        return opaque(w, call) if call.func is len else call
    if isinstance(array, Var) and array not in w.views:
        return call
    extents = lazy(w, array).extents
    sizes = tuple(w.clamped(extent) for extent in extents)
    if call.func is intrinsics.dim:
        axis = call.args[1]
        if not isinstance(axis, Const) or not isinstance(axis.value, int):
            return Call(intrinsics.dim, (w.materialize(array), scalar(w, axis)), (), INT)
        return sizes[axis.value]
    if call.func is len:
        return sizes[0]
    if call.func is np.ndim:
        return Const(len(sizes))
    if call.func is np.size:
        return product(sizes)
    return Tuple(sizes)


def product(sizes: tuple[Expr, ...]) -> Expr:
    """The product of some sizes."""
    result: Expr = Const(1)
    for size in sizes:
        result = times(result, size)
    return result


def _short_circuit(w: LoopBuilder, call: Call) -> Expr:
    """`a and b`: statements that b needs run only if b is evaluated."""
    holds = call.func is intrinsics.and_
    result = scalar(w, call.args[0])
    test = call.args[0]
    for arg in call.args[1:]:
        with w.conditional() as before:
            w.facts.assume_test(test, holds)
            value = scalar(w, arg)
        if before:
            var = w.fresh("test", call.type)
            w.emit(Assign((var,), result, w.origin))
            run = var if holds else Call(operator.not_, (var,), (), BOOL)
            w.emit(If(run, (*before, Assign((var,), value, w.origin)), (), w.origin))
            result = var
        else:
            result = Call(call.func, (result, value), (), call.type)
        test = Call(call.func, (test, arg), (), call.type)
    return result


def _ternary(w: LoopBuilder, call: Call) -> Expr:
    test = scalar(w, call.args[0])
    sides = []
    for which, arg in enumerate(call.args[1:]):
        with w.conditional() as before:
            w.facts.assume_test(call.args[0], which == 0)
            value = operand(w, arg)
            if isinstance(call.type, Scalar) and isinstance(value.type, Scalar):
                value = precision.convert(value, call.type.dtype)
        sides.append((before, value))
    (before_a, a), (before_b, b) = sides
    if not before_a and not before_b:
        return Call(intrinsics.ifelse, (test, a, b), (), call.type)
    var = w.fresh("t", call.type)
    w.emit(
        If(
            test,
            (*before_a, Assign((var,), a, w.origin)),
            (*before_b, Assign((var,), b, w.origin)),
            w.origin,
        )
    )
    return var


# ---- arrays ----------------------------------------------------------------------------------------------------------


def lazy(w: LoopBuilder, expr: Any) -> ElementRule:
    """The elements of an expression."""
    if isinstance(expr, Call) and not isinstance(expr.func, Routine):
        if expr.func in REWRITE and isinstance(expr.type, Array):
            return lazy(w, REWRITE[expr.func](w, expr))
        if expr.func is intrinsics.primal_as:
            return lazy(w, expr.args[0])
    if isinstance(expr, Tuple):
        raise w.unsupported("a sequence instead of an array")
    if not isinstance(expr.type, Array):
        value = w.bind(scalar(w, expr)) if not _is_sign(expr) else scalar(w, expr)
        type_ = value.type
        if not isinstance(type_, Scalar):  # None, str: options
            return ElementRule((), "", lambda index: value, True)
        return ElementRule((), type_.dtype, lambda index: value, type_.python)
    match expr:
        case Var():
            return w.array(expr)
        case Load(array, index):
            return loaded(w, w.array(array), index, array in w.tapes)
        case Call(func) if func in LAZY:
            return LAZY[func](w, expr)
        case Call(func) if func in scalar_ops.OPERATIONS:
            return elementwise(w, expr)
    return w.array(w.materialize(expr))


def _is_sign(expr: Expr) -> bool:
    return isinstance(expr, Call) and expr.func is operator.neg and isinstance(expr.args[0], (Const, Var))


def elementwise(w: LoopBuilder, call: Call) -> ElementRule:
    """A function of scalars, element-wise."""
    if any(name != "decimals" for name, _ in call.kwargs):
        raise w.unsupported(call.func, "with keywords")
    assert isinstance(call.type, Array)
    rank, type_ = call.type.rank, Scalar(call.type.dtype, False)
    func = np.power if call.func is operator.pow else call.func  # NumPy's numbers have another power than its arrays
    operands = [once(w, lazy(w, arg), rank) for arg in (*call.args, *(value for _, value in call.kwargs))]
    if scalar_ops.converts_integers(func):
        for operand in operands:
            if operand.weak:
                scalar_ops.representable(w, operand.at(()), type_.dtype)  # before the loops
    extents, selectors = broadcast(w, [each.extents for each in operands])

    def at(index: Indices) -> Expr:
        args = tuple(each.at(select(index)) for each, select in zip(operands, selectors, strict=True))
        return scalar_ops.operation(w, func, args, type_)

    return ElementRule(
        extents, call.type.dtype, at, cost=sum(each.cost for each in operands) + _COSTS.get(call.func, 20)
    )


_COSTS: dict[Any, int] = {
    **dict.fromkeys((operator.add, operator.sub, operator.mul, operator.neg, np.add, np.subtract, np.multiply), 1),
    **dict.fromkeys((np.negative, np.square, np.absolute, builtins.abs, np.where, np.maximum, np.minimum), 1),
    **dict.fromkeys((operator.lt, operator.le, operator.gt, operator.ge, operator.eq, operator.ne), 1),
    **dict.fromkeys((operator.truediv, np.divide, np.sqrt, np.reciprocal), 5),
}
_CHEAP = 5


def once(w: LoopBuilder, x: ElementRule, rank: int) -> ElementRule:
    """An operand that will be broadcast to `rank` axes: costly elements are not recomputed for every repetition."""
    repeated = x.rank < rank or any(extent.is_unit for extent in x.extents)
    if x.rank == 0 or x.cost <= _CHEAP or not repeated:
        return x
    return stored_once(w, x)


def stored_once(w: LoopBuilder, x: ElementRule) -> ElementRule:
    """The same elements, computed into a new array."""
    var = scratch(w, x.extents, x.dtype)
    fill(w, w.array(var), x, fresh=True)
    return w.array(var)


def loaded(w: LoopBuilder, base: ElementRule, index: tuple[Any, ...], within: bool = False) -> ElementRule:
    """`base[index]` of slices, integers (`within` bounds if they need no check), new axes and arrays of indices."""
    items = list(index)
    for position_, item in enumerate(items):
        if not isinstance(item, Slice) and isinstance(item.type, Array) and item.type.dtype == "bool":
            first = sum(1 for each in items[:position_] if each != Const(None))
            w.check_mask(ElementRule(base.extents[first:], base.dtype, base.at), lazy(w, item))
            items[position_ : position_ + 1] = w.nonzero(item)
            return loaded(w, base, tuple(items))
    consumed = sum(1 for item in items if item != Const(None))
    items += [Slice()] * (base.rank - consumed)
    if any(not isinstance(item, Slice) and isinstance(item.type, Array) for item in items):
        return _gathered(w, base, items)
    extents: list[Extent] = []
    rules: list[Callable[[Indices], Expr]] = []
    axes = iter(base.extents)
    for item in items:
        if item == Const(None):
            extents.append(UNIT)
            continue
        extent = next(axes)
        if isinstance(item, Slice):
            rule, size = _slice_rule(w, extent, item, len(extents))
            extents.append(size)
            rules.append(rule)
        else:
            number = w.bind(scalar(w, item))
            rules.append(_fixed(number if within else position(w, extent, number)))
    return ElementRule(tuple(extents), base.dtype, lambda index: base.at(tuple(rule(index) for rule in rules)))


def _fixed(index: Expr) -> Callable[[Indices], Expr]:
    return lambda _: index


def _slice_rule(w: LoopBuilder, extent: Extent, item: Slice, axis: int) -> tuple[Callable[[Indices], Expr], Extent]:
    if item == Slice():
        return lambda index: index[axis], extent
    lo, hi, step = (None if part is None else scalar(w, part) for part in (item.lo, item.hi, item.step))
    if any(part is not None and part == Const(None) for part in (lo, hi, step)):
        lo, hi, step = (None if part == Const(None) else part for part in (lo, hi, step))
    first, step, size = sliced(w, extent, lo, hi, step)
    return lambda index: plus(first, times(step, index[axis])), size


def _gathered(w: LoopBuilder, base: ElementRule, items: list[Any]) -> ElementRule:
    """Indexing with arrays of integers: their common shape replaces them, or comes first if they are not adjacent."""
    advanced = [k for k, item in enumerate(items) if item != Const(None) and not isinstance(item, Slice)]
    together = advanced == list(range(advanced[0], advanced[-1] + 1))
    arrays = {k: lazy(w, items[k]) for k in advanced}
    shape, selectors = broadcast(w, [arrays[k].extents for k in advanced])
    select = dict(zip(advanced, selectors, strict=True))
    before = sum(1 for item in items[: advanced[0]]) if together else 0
    extents: list[Extent] = []
    rules: list[Callable[[Indices, Indices], Expr]] = []
    axes = iter(base.extents)
    for k, item in enumerate(items):
        if item == Const(None):
            extents.append(UNIT)
            continue
        extent = next(axes)
        if isinstance(item, Slice):
            rule, size = _slice_rule(w, extent, item, len(extents))
            extents.append(size)
            rules.append(_of_rest(rule))
        else:
            rule_of = _of_array(w, extent, arrays[k], select[k])
            if arrays[k].rank == 0:
                rule_of = _of_rest(_fixed(position(w, extent, arrays[k].at(()))))
            rules.append(rule_of)
    whole: Extents = (*extents[:before], *shape, *extents[before:])
    end = before + len(shape)

    def at(index: Indices) -> Expr:
        rest, which = index[:before] + index[end:], index[before:end]
        return base.at(tuple(rule(rest, which) for rule in rules))

    return ElementRule(whole, base.dtype, at)


def _of_rest(rule: Callable[[Indices], Expr]) -> Callable[[Indices, Indices], Expr]:
    return lambda rest, which: rule(rest)


def _of_array(
    w: LoopBuilder, extent: Extent, array: ElementRule, select: Callable[[Indices], Indices]
) -> Callable[[Indices, Indices], Expr]:
    def rule(rest: Indices, which: Indices) -> Expr:
        return from_start(w, extent, checked(w, extent, array.at(select(which))))

    return rule
