"""What is known of integers at a place of a program: as much as holds there, and no more."""

from __future__ import annotations

import operator
from typing import Any

import numpy as np
import pytest

from tapegen import check_grads, differentiable
from tapegen.backend.printer.module import emit
from tapegen.ir import intrinsics
from tapegen.ir.nodes import Assign, Call, Const, Expr, For, If, Var
from tapegen.ir.types import BOOL, INT
from tapegen.loops.analysis.flow_facts import FlowFacts
from tapegen.loops.analysis.symbolic_bounds import SymbolicBounds
from tapegen.loops.vectorize.check_coalescing import coalesce_checks
from tests.nests_reader import Outcome, python_function, read

K, N, M = Var("k", INT), Var("n", INT), Var("m", INT)


def plus(var: Expr, by: int) -> Call:
    return Call(operator.add, (var, Const(by)), (), INT)


def minus(a: Expr, b: Expr) -> Call:
    return Call(operator.sub, (a, b), (), INT)


def condition(func: Any, *parts: Expr) -> Call:
    return Call(func, parts, (), BOOL)


def holds(facts: SymbolicBounds, expr: Expr) -> bool:
    return facts.nonnegative(facts.form(expr))


def is_least(facts: SymbolicBounds, expr: Expr) -> bool:
    """Whether an expression is known not to be negative, and one less is not."""
    return holds(facts, expr) and not holds(facts, plus(expr, -1))


def test_counters_stay_in_their_range() -> None:
    up, down = SymbolicBounds(), SymbolicBounds()
    up.assume_counter(For(K, Const(0), N, Const(1), ()))
    assert is_least(up, K) and is_least(up, plus(minus(N, K), -1))
    down.assume_counter(For(K, plus(N, -1), Const(-1), Const(-1), ()))
    assert is_least(down, K) and is_least(down, plus(minus(N, K), -1))
    unknown = SymbolicBounds()
    unknown.assume_counter(For(K, Const(0), N, M, ()))
    assert not holds(unknown, K)


@pytest.mark.parametrize(
    ("func", "holding", "not_holding"),
    [
        (operator.lt, plus(minus(N, K), -1), minus(K, N)),
        (operator.le, minus(N, K), plus(minus(K, N), -1)),
        (operator.gt, plus(minus(K, N), -1), minus(N, K)),
        (operator.ge, minus(K, N), plus(minus(N, K), -1)),
    ],
)
def test_what_a_comparison_says(func: Any, holding: Expr, not_holding: Expr) -> None:
    for positive, expected in ((True, holding), (False, not_holding)):
        facts = SymbolicBounds()
        facts.assume_test(condition(func, K, N), positive)
        assert is_least(facts, expected)


def test_what_and_and_or_say() -> None:
    parts = condition(operator.ge, K, Const(0)), condition(operator.ge, N, Const(0))
    for func, positive in (
        (intrinsics.and_, True),
        (intrinsics.or_, True),
        (intrinsics.and_, False),
        (intrinsics.or_, False),
    ):
        facts = SymbolicBounds()
        facts.assume_test(condition(func, *parts), positive)
        assert holds(facts, K) == (func is intrinsics.and_ and positive)
        assert holds(facts, plus(minus(Const(0), K), -1)) == (func is intrinsics.or_ and not positive)


def test_new_values_are_new() -> None:
    facts = SymbolicBounds()
    facts.assume(facts.form(K))
    facts.learn(Assign((K,), N))
    assert not holds(facts, K)
    facts = SymbolicBounds()
    facts.assume(facts.form(K))
    facts.learn(Assign((K,), plus(K, -1)))
    assert not holds(facts, K)
    facts.assume(facts.form(M))
    facts.learn(If(condition(operator.lt, N, Const(3)), (Assign((M,), N),), ()))
    assert not holds(facts, M)


def test_what_moves_takes_its_bounds_along() -> None:
    facts = SymbolicBounds()
    facts.assume(facts.form(K))
    facts.shift(K, 2)
    assert is_least(facts, plus(K, -2))


def test_both_of_two_states() -> None:
    one, other = SymbolicBounds(), SymbolicBounds()
    few = condition(operator.lt, N, Const(3))
    for facts in (one, other):
        facts.assume(facts.form(K))
    one.assume(one.form(N))
    assert not one.has_passed(few)
    both = one.common(other)
    assert holds(both, K) and not holds(both, N)
    assert not both.has_passed(few)


def test_loops_and_branches_on_a_walk() -> None:
    known = FlowFacts()
    known.facts.assume(known.facts.form(M))
    loop = For(K, Const(0), N, Const(1), (Assign((M,), plus(M, -1)),))
    inside = known.body(loop)
    assert holds(inside.facts, K) and not holds(inside.facts, M)
    assert not holds(known.facts, M)
    first, second = known.sides(If(condition(operator.ge, N, Const(0)), (), ()))
    assert holds(first.facts, N) and not holds(second.facts, N)
    assert holds(second.facts, plus(minus(Const(0), N), -1))


# ---- checks ----------------------------------------------------------------------------------------------------------

SMALLER_FIRST = """
def f(x, y, n):
    if x.shape[0] < 2:
        raise IndexError("short")
    if x.shape[0] < 5:
        raise IndexError("short")
    return x[0]
"""

BEHIND_A_BREAK = """
def f(x, y, n):
    s = 0.0
    for k in range(n):
        if x.shape[0] < 2:
            raise IndexError("short")
        s = s + x[1]
        if k == 1:
            break
        if x.shape[0] < 5:
            raise IndexError("short")
        s = s + x[4]
    return s
"""

ANOTHER_ARRAY = """
def f(x, y, n):
    if x.shape[0] < 2:
        raise IndexError("short")
    s = x[1]
    x = y
    if x.shape[0] < 5:
        raise IndexError("short")
    return s + x[4]
"""

TWO_ERRORS = """
def f(x, y, n):
    if n < 2:
        raise IndexError("short")
    if n < 3:
        raise ValueError("few")
    return x[0]
"""


@pytest.mark.parametrize("text", [SMALLER_FIRST, BEHIND_A_BREAK.replace("k == 1", "k == 0"), ANOTHER_ARRAY, TWO_ERRORS])
def test_checks_that_are_put_together_raise_what_they_raised(text: str) -> None:
    long, short = np.arange(6.0), np.arange(3.0)
    namespace: dict[str, Any] = {"np": np}
    exec(emit(coalesce_checks(read(text, (long, long, 3)))).text, namespace)
    for args in [(x, y, n) for x in (long, short, short[:1]) for y in (long, short) for n in (1, 2, 3)]:
        ours, theirs = Outcome(namespace["f"], args), Outcome(python_function(text), args)
        assert (ours.error, ours.value) == (theirs.error, theirs.value), args


def lists_that_change(x: float, n: int) -> Any:
    items, sizes = [x, 1.0], [2]
    for k in range(n):
        items.append(k * x)
    before = np.array(items) * x
    same = items
    same.append(100.0)
    after = np.array(items)
    first = np.ones(sizes[0])
    sizes[0] = n + 4
    second = np.ones(sizes[0]) * x
    return np.sum(before) + 2.0 * np.sum(after) * x + np.sum(first * x) + 3.0 * np.sum(second)


def test_what_is_read_of_a_list_changes_without_an_assignment() -> None:
    compiled = differentiable(lists_that_change, backend="numba").value_and_grad(0.7, 3)
    value, gradient = differentiable(lists_that_change, backend="python").value_and_grad(0.7, 3)
    assert value == pytest.approx(lists_that_change(0.7, 3), rel=1e-14)
    assert compiled == pytest.approx((value, gradient), rel=1e-14)
    check_grads(differentiable(lists_that_change, backend="python"), 0.7, 3)
