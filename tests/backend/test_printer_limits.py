"""Functions that a text defines for itself, where its lines come from, and what is too long or too deep."""

from __future__ import annotations

import operator
import random

import numpy as np
import pytest

from tapegen.backend.numba.build import build_python
from tapegen.backend.printer.module import emit
from tapegen.errors import CompileLimit, Span
from tapegen.ir import intrinsics
from tapegen.ir.nodes import (
    Assign,
    Comment,
    Const,
    Expr,
    For,
    If,
    Pop,
    Push,
    Raise,
    Return,
    Stmt,
    Store,
    Var,
    While,
)
from tapegen.ir.types import BOOL, FLOAT, INT, Array, Scalar
from tests.emitted import (
    a,
    body_of,
    call,
    function,
    i,
    n,
    x,
    y,
)

# ---- helpers ---------------------------------------------------------------------------------------------------------

SHAPES = [
    ((4, 3), (3,)),
    ((4, 3), (1, 3)),
    ((4, 3), (4, 1)),
    ((2, 4, 3), (4, 1)),
    ((3,), (1,)),
    ((3,), (3,)),
    ((0, 3), (1, 3)),
]


@pytest.mark.parametrize(("shape", "like"), SHAPES)
@pytest.mark.parametrize("compiled", [False, pytest.param(True, marks=pytest.mark.compiled)])
def test_sum_to_undoes_broadcasting(shape: tuple[int, ...], like: tuple[int, ...], compiled: bool) -> None:
    big, small = Var("big", Array("float64", len(shape))), Var("small", Array("float64", len(like)))
    program = function(Return((call(intrinsics.sum_to, big, small, type_=small.type),)), params=(big, small))
    source = emit(program, decorator="njit" if compiled else None)
    values = np.arange(float(np.prod(shape))).reshape(shape)
    got = build_python(source)(values, np.zeros(like))
    np.testing.assert_array_equal(got, intrinsics.sum_to(values, np.zeros(like)))
    assert got.shape == like


def test_strong_mul_evaluates_its_cotangent_once() -> None:
    product = call(intrinsics.strong_mul, call(operator.mul, x, y), y)
    assert body_of(Store(a, (i,), product, accumulate=True)).splitlines() == [
        "part = x * y",
        "a[i] += part * y if part != 0.0 else 0.0",
    ]


# ---- lines, limits, errors -------------------------------------------------------------------------------------------


def span(line: int) -> Span:
    return Span("heat.py", line, 4, line, 20)


def test_each_line_knows_where_it_comes_from() -> None:
    terms: Expr = x
    for position in range(20):
        terms = call(operator.add, terms, Var(f"a_long_name_{position}", FLOAT))
    source = emit(
        function(
            Comment("first", origin=span(2)),
            For(i, Const(0), n, Const(1), (Assign((y,), terms, span(4)),), span(3)),
            Return((y,), span(5)),
            origin=span(1),
            doc=("Doc.",),
        ),
        header="header",
    )
    lines = source.text.splitlines()
    assert len(lines) == len(source.line_map)
    found = {line.strip().split(" ")[0]: source.origin(position + 1) for position, line in enumerate(lines)}
    expected = {"#": span(2), "def": span(1), '"""Doc."""': None, "for": span(3), "y": span(4), "return": span(5)}
    assert {key: found[key] for key in expected} == expected
    assert sum(origin == span(4) for origin in source.line_map) == 23
    assert source.origin(0) is None
    assert source.origin(1000) is None


def test_a_sum_of_3000_terms_is_exact_and_parses() -> None:
    rng = random.Random(1)
    values = [rng.uniform(-1, 1) * 10.0 ** rng.randint(-8, 8) for _ in range(3000)]
    total: Expr = x
    expected = 0.25
    for value in values:
        total = call(operator.add, total, Const(value))
        expected = expected + value
    source = emit(function(Return((total,)), params=(x,)))
    assert build_python(source)(0.25) == expected
    assert max(len(line) for line in source.text.splitlines()) <= 88


@pytest.mark.parametrize("depth", [300, 1500])
def test_hundreds_of_nested_parentheses_are_exact_and_parse(depth: int) -> None:
    nested: Expr = x
    expected = 0.25
    for position in range(depth):
        nested = call(operator.sub, Const(position * 0.1), nested)
        expected = position * 0.1 - expected
    assert build_python(emit(function(Return((nested,)), params=(x,))))(0.25) == expected


def test_a_deep_expression_in_a_condition_stays_lazy() -> None:
    deep: Expr = x
    for _ in range(100):
        deep = call(np.sin, deep)
    test = call(operator.lt, deep, Const(0.0), type_=BOOL)
    body = (If(x, (Return((x,)),), (If(test, (Raise(ValueError),)),)),)
    text = emit(function(*body, params=(x,))).text
    assert "else:\n        part = " in text
    with pytest.raises(CompileLimit, match="evaluated only sometimes"):
        emit(function(If(call(intrinsics.and_, x, test), ()), params=(x,)))
    with pytest.raises(CompileLimit, match="condition of this loop"):
        emit(function(While(test, ()), params=(x,)))


def nested_loops(depth: int) -> Stmt:
    stmt: Stmt = Assign((x,), y)
    for position in range(depth):
        stmt = For(Var(f"i_{position}", INT), Const(0), n, Const(1), (stmt,), span(7))
    return stmt


def test_blocks_nest_as_deep_as_python_allows_and_no_deeper() -> None:
    build_python(emit(function(nested_loops(20), params=(n, x, y))))
    with pytest.raises(CompileLimit, match=r"heat\.py:7:5: Loops nest more than 20 deep"):
        emit(function(nested_loops(21)))
    stmt: Stmt = Assign((x,), y)
    for position in range(94):
        stmt = If(Var(f"c_{position}", BOOL), (stmt,))
    build_python(emit(function(stmt)))
    with pytest.raises(CompileLimit, match="Blocks nest"):
        emit(function(If(x, (If(x, (stmt,)),))))


@pytest.mark.parametrize("stmt", [Push("x_tape", x), Pop(x, "x_tape")])
def test_tapes_do_not_reach_the_printer(stmt: Stmt) -> None:
    with pytest.raises(AssertionError, match=type(stmt).__name__):
        emit(function(stmt))


def test_a_placeholder_that_holds_a_string_gets_a_line_of_its_own() -> None:
    inner = call(intrinsics.ifelse, x, Const("big"), Const("small"), type_=Scalar("str"))
    source = emit(function(Return((call(intrinsics.fstring, Const("x is "), inner),)), params=(x,)))
    assert 'part = "big" if x else "small"' in source.text
    assert build_python(source)(1.0) == "x is big"
