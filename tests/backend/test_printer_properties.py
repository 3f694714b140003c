"""Random expressions: what is printed computes, bit for bit, what the IR says."""

from __future__ import annotations

import math
import operator
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tapegen.backend.numba.build import build_python
from tapegen.backend.printer.module import emit
from tapegen.ir import intrinsics
from tapegen.ir.nodes import Assign, Call, Const, Expr, Function, Load, Return, Slice, Store, Tuple, Var
from tapegen.ir.types import BOOL, FLOAT, INT, Array, Type

VECTOR, MATRIX = Array("float64", 1), Array("float64", 2)
PARAMS = (Var("x", FLOAT), Var("range", FLOAT), Var("np", FLOAT), Var("i", INT), Var("n", INT), Var("a", VECTOR))

BITS = [operator.lshift, operator.and_, operator.or_, operator.xor]
COMPARISONS = [operator.lt, operator.le, operator.gt, operator.ge, operator.eq, operator.ne]


def evaluate(expr: Any, env: Mapping[str, Any]) -> Any:
    """What an expression means, without any text."""
    match expr:
        case Var(name):
            return env[name]
        case Const(value):
            return value
        case Call(intrinsics.and_, (left, right)):
            return evaluate(left, env) and evaluate(right, env)
        case Call(intrinsics.or_, (left, right)):
            return evaluate(left, env) or evaluate(right, env)
        case Call(intrinsics.ifelse, (test, body, orelse)):
            return evaluate(body if evaluate(test, env) else orelse, env)
        case Call(func, args, kwargs):
            return func(*(evaluate(arg, env) for arg in args), **{key: evaluate(value, env) for key, value in kwargs})
        case Tuple(items):
            return tuple(evaluate(item, env) for item in items)
        case Load(array, index):
            return evaluate(array, env)[tuple(evaluate(item, env) for item in index)]
        case Slice(lo, hi, step):
            return slice(*(None if part is None else evaluate(part, env) for part in (lo, hi, step)))
    raise AssertionError(expr)


def outcome(run: Callable[[], Any]) -> tuple[Any, ...]:
    """Value and type of a result, or the error."""
    try:
        with np.errstate(all="ignore"):
            result = run()
    except (ArithmeticError, ValueError, IndexError, TypeError) as error:
        return type(error), str(error)
    return type(result), repr(result)


def calls(funcs: list[Any], *operands: st.SearchStrategy[Expr], type_: Type) -> st.SearchStrategy[Expr]:
    return st.builds(lambda func, args: Call(func, args, (), type_), st.sampled_from(funcs), st.tuples(*operands))


ints: st.SearchStrategy[Expr] = st.deferred(
    lambda: (
        st.sampled_from([PARAMS[3], PARAMS[4]])
        | st.integers(-4, 9).map(Const)
        | calls([operator.add, operator.sub, operator.mul, operator.floordiv, operator.mod], ints, ints, type_=INT)
        | calls([operator.neg, abs], ints, type_=INT)
        | calls([intrinsics.dim], st.just(PARAMS[5]), st.just(Const(0)), type_=INT)
        | calls(
            [operator.lshift, operator.and_, operator.or_, operator.xor], ints, st.integers(0, 3).map(Const), type_=INT
        )
    )
)
floats: st.SearchStrategy[Expr] = st.deferred(
    lambda: (
        st.sampled_from(PARAMS[:3])
        | st.floats(allow_nan=True, allow_infinity=True).map(Const)
        | calls([operator.add, operator.sub, operator.mul, operator.truediv], floats, floats, type_=FLOAT)
        | calls([operator.pow], floats, st.integers(-2, 3).map(Const), type_=FLOAT)
        | calls([operator.neg, operator.pos, abs, np.sin, np.absolute, math.atan], floats, type_=FLOAT)
        | calls([min, max, np.maximum, math.hypot], floats, floats, type_=FLOAT)
        | calls([float], ints, type_=FLOAT)
        | calls([intrinsics.ifelse], bools, floats, floats, type_=FLOAT)
        | calls([np.sum], vectors, type_=FLOAT)
        | st.builds(lambda index: Load(PARAMS[5], (index,), FLOAT), ints)
    )
)
bools: st.SearchStrategy[Expr] = st.deferred(
    lambda: (
        calls(
            [operator.lt, operator.le, operator.gt, operator.ge, operator.eq, operator.ne], floats, floats, type_=BOOL
        )
        | calls([operator.lt, operator.eq, operator.is_, operator.is_not], bools, bools, type_=BOOL)
        | calls([intrinsics.and_, intrinsics.or_], bools, bools, type_=BOOL)
        | calls([operator.not_], bools, type_=BOOL)
    )
)
bounds = st.none() | ints
slices = st.builds(Slice, bounds, bounds, st.sampled_from([None, Const(1), Const(-1), Const(2)]))
vectors: st.SearchStrategy[Expr] = st.just(PARAMS[5]) | st.builds(
    lambda index: Load(PARAMS[5], (index,), VECTOR), slices
)


@settings(max_examples=300, deadline=None, derandomize=True)
@given(st.one_of(floats, ints, bools), st.lists(st.floats(-10, 10), min_size=3, max_size=6))
def test_text_means_what_the_expression_means(expr: Expr, values: list[float]) -> None:
    source = emit(Function("f", PARAMS, (Return((expr,)),)))
    args = (values[0], values[1], np.float64(values[2]), 2, 5, np.array(values))
    env = {param.name: arg for param, arg in zip(PARAMS, args, strict=True)}
    run = build_python(source)
    with np.errstate(all="ignore"):
        assert outcome(lambda: run(*args)) == outcome(lambda: evaluate(expr, env))
    assert max(len(line) for line in source.text.splitlines()) <= 88 or "[" in source.text


axes = st.lists(st.sampled_from([Slice(), Slice(Const(1)), Const(0), Const(-1), Const(None), PARAMS[3]]), max_size=4)


@settings(max_examples=200, deadline=None, derandomize=True)
@given(axes)
def test_indexes_select_and_store_what_they_say(index: list[Any]) -> None:
    array = Var("array", Array("float64", 3))
    used = sum(not (isinstance(item, Const) and item.value is None) for item in index)
    if used > 3 or not index:
        return
    program = Function(
        "f",
        (array, PARAMS[3]),
        (
            Assign((Var("r", MATRIX),), Load(array, tuple(index), MATRIX)),
            Store(array, tuple(index), Const(1.0), accumulate=True),
            Return((Var("r", MATRIX), array)),
        ),
    )
    values = np.arange(24.0).reshape(2, 3, 4)
    position = tuple(evaluate(item, {"i": 1}) for item in index)
    expected, stored = values[position].copy(), values.copy()
    stored[position] += 1.0
    got, after = build_python(emit(program))(values.copy(), 1)
    np.testing.assert_array_equal(after, stored)
    if np.ndim(expected):  # a view shows the store
        expected = expected + 1.0
    np.testing.assert_array_equal(got, expected)


@pytest.mark.parametrize("rank", [0, 1])
@given(st.lists(st.sampled_from([0.0, -0.0, 1.5, -2.0, math.inf, math.nan]), min_size=2, max_size=2))
@settings(max_examples=40, deadline=None, derandomize=True)
def test_strong_mul_is_the_marker_it_stands_for(rank: int, values: list[float]) -> None:
    type_: Type = VECTOR if rank else FLOAT
    cotangent, partial = Var("c", type_), Var("p", type_)
    program = Function(
        "f", (cotangent, partial), (Return((Call(intrinsics.strong_mul, (cotangent, partial), (), type_),)),)
    )
    args = [np.array([value]) if rank else value for value in values]
    with np.errstate(all="ignore"):
        np.testing.assert_array_equal(build_python(emit(program))(*args), intrinsics.strong_mul(*args))
