"""Lists that grow and go from name to name: swapped, kept from the iteration before, chosen by a branch."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from tapegen import check_grads, differentiable, hvp
from tapegen.errors import AliasError, NotDifferentiable
from tests.grown.checks import judge
from tests.judged import both, refused, right

X = np.array([0.7, 1.3, 0.9])


def swapped_and_appended(x: Any, n: int) -> Any:
    a, b = [x[0]], [x[1], x[2]]
    for k in range(n):
        a, b = b, a
        a.append(b[-1] * x[k % 3])
    return sum(v * v for v in a) + 3.0 * sum(b)


def rotated(x: Any, n: int) -> Any:
    a, b, c = [x[0]], [x[1]], [x[2]]
    for _ in range(n):
        a, b, c = b, c, a
        a.append(b[-1] * c[-1] * 0.3)
    return sum(a) + 2.0 * sum(b) + 3.0 * sum(c)


def popped_and_swapped(x: Any, n: int) -> Any:
    a, b = [], []
    for k in range(n + 2):
        a.append(x[0] * k)
    trips = 0
    while len(a) > 0 and trips < 12:
        trips += 1
        b.append(a.pop() * x[1])
        if len(b) > 3 and len(a) > 1:
            a, b = b, a
            b.append(a.pop() * x[2])
            if len(b) > 6:
                break
    return sum(a) + sum(b) * x[1]


def items_set_and_swapped(x: Any, n: int) -> Any:
    a, b = [], []
    for k in range(n):
        a.append(x[k % 3])
        b.append(x[(k + 1) % 3])
    for k in range(n):
        a[k] = a[k] * b[k]
        a, b = b, a
        b[0] = b[0] + x[2] * a[-1]
    return sum(a) + 2.0 * sum(b)


def the_trip_before(x: Any, n: int) -> Any:
    now = [x[0]]
    before = now
    for _ in range(n):
        after = [now[0] * x[1]]
        for item in now:
            after.append(item * x[2])
        before = now
        now = after
    return sum(v * v for v in before) + sum(v * v for v in now)


def two_names_for_one(x: Any, n: int) -> Any:
    a, p, q = [x[0]], [x[1]], [x[2]]
    for _ in range(n):
        p = a
        q = a
        a = [u * 1.5 for u in q]
        a.append(p[0] * p[-1])
    return sum(p) * sum(q) + sum(a)


def appended_by_the_other_name(x: Any, n: int) -> Any:
    a, p = [x[0]], [x[1]]
    for k in range(n):
        p = a
        p.append(x[k % 3] * a[-1])
    return sum(v * v for v in p) + sum(a)


def best_so_far(x: Any, n: int) -> Any:
    best, cost = [0.0 * x[0]], 1e9
    for k in range(n):
        now = []
        for j in range(k + 1):
            now.append(x[j % 3] * (k - 2.0))
        found = sum(v * v for v in now)
        if found < cost:
            cost, best = found, now
    return sum(best) * cost + cost


def one_of_two(x: Any, n: int) -> Any:
    a, b = [], []
    for k in range(n):
        a.append(x[k % 3])
        b.append(2.0 * x[k % 3] ** 2)
    c = a if x[0] > 0 else b
    return sum(v * v for v in c) + sum(a) + 3.0 * sum(b)


def left_from_two_levels(x: Any, n: int) -> Any:
    now, before = [x[0]], [x[1]]
    for k in range(n):
        items = []
        for v in now:
            items.append(v * x[1])
        if x[k % 3] > 1.25 and k > 3:
            items.append(x[2])
            before, now = now, items
            break
        more = []
        for v in items:
            more.append(v * before[0])
        if len(more) > 3:
            more.append(x[0])
            items.append(more[-1] * x[1])
            before, now = items, more
            break
        items.append(x[2] * more[0])
        more.append(items[-1])
        before, now = items, more
    return sum(now) + 2.0 * sum(before)


def returned_from_the_middle(x: Any, n: int) -> Any:
    now, before = [x[0]], [x[1], x[2]]
    for k in range(1, 20):
        items = [v * x[1] for v in now]
        if k >= n:
            items.append(x[2] * x[0])
            before, now = now, items
            break
        elif len(items) > 6:
            items.pop()
            return sum(items) * sum(before)
        items.append(items[-1] * before[-1])
        before, now = now, items
    return sum(now) + 2.0 * sum(before)


def a_stack_replaced(x: Any, n: int) -> Any:
    stack, kept = [x[0]], []
    while stack:
        v = stack.pop()
        new = []
        if len(kept) < n:
            new.append(v * x[1])
            new.append(v * x[2])
        kept.append(v)
        if len(kept) > n + 3:
            return sum(kept) + sum(stack)
        if len(new) > 1 and len(stack) < 1:
            stack = new
        else:
            for u in new:
                stack.append(u * 0.9)
    return sum(kept)


PROGRAMS = (
    *(swapped_and_appended, rotated, popped_and_swapped, items_set_and_swapped, the_trip_before, two_names_for_one),
    *(appended_by_the_other_name, best_so_far, one_of_two, left_from_two_levels, returned_from_the_middle),
    a_stack_replaced,
)
each = pytest.mark.parametrize("program", PROGRAMS, ids=lambda program: program.__name__)


@each
def test_gradients(program: Callable[[Any, int], Any]) -> None:
    for n in (0, 1, 5, 9):
        check_grads(differentiable(program, backend="python"), X, n, modes=("forward", "reverse"))


@each
def test_pullback_again_and_second_order(program: Callable[[Any, int], Any]) -> None:
    function = differentiable(program, backend="python")
    value, pullback = function.vjp(X, 5)
    assert value == program(X, 5)
    np.testing.assert_array_equal(2.0 * pullback(1.0), pullback(2.0))
    direction, h = np.array([1.0, -2.0, 0.5]), 1e-4
    near = [function.grad(X + k * h * direction, 5) for k in (-2, -1, 1, 2)]
    want = (near[0] - 8.0 * near[1] + 8.0 * near[2] - near[3]) / (12.0 * h)
    np.testing.assert_allclose(hvp(lambda x: function(x, 5), (X,), (direction,)), want, rtol=1e-7, atol=1e-7)


@pytest.mark.compiled
@each
def test_compiled(program: Callable[[Any, int], Any]) -> None:
    check_grads(differentiable(program, backend="numba"), X, 5, modes=("forward", "reverse"))


def test_swapped_lists_compiled() -> None:
    check_grads(differentiable(popped_and_swapped, backend="numba"), X, 5, modes=("reverse",))


def test_an_append_that_another_name_may_see_is_refused() -> None:
    def chosen(x: Any, n: int) -> Any:
        a, b = [], []
        for k in range(n):
            a.append(x[k % 3])
            b.append(2.0 * x[k % 3])
        c = a if x[0] > 0 else b
        c.append(x[1] * x[1])
        return sum(a) + 3.0 * sum(v * v for v in b)

    with pytest.raises(AliasError, match="'c' and 'a' may share memory here"):
        differentiable(chosen, backend="python").grad(X, 3)


def made_anew_in_a_loop(w, s):
    b = [s, s]
    for i in w:
        b = [s, s * i, s]
    return b[1]


def made_anew_in_two_loops(w, s):
    for i in w:
        b = [s * i, s]
    for i in w:
        if i > 0.0:
            b = [s, b[0], i, s]
    return b[1] * b[0] + len(b)


def lists_of_a_loop_over_lists(w, s):
    p = [[s] * 2 for _ in range(2)]
    p += p
    for q in p:
        q.insert(0, q[1])
        for _ in w:
            b = list(reversed(q))
    q.append(b[1])
    return sum([e * e for e in q])


def changed_behind_the_loop(w, s):
    b = []
    for i in w:
        if i > 1.0:
            b = [i, s]
        else:
            b = [s, i]
    b.append(s * s)
    b[0] *= s
    return sum(b)


@pytest.mark.parametrize(
    "program",
    [made_anew_in_a_loop, made_anew_in_two_loops, lists_of_a_loop_over_lists, changed_behind_the_loop],
    ids=lambda f: f.__name__,
)
@both
def test_a_list_that_a_loop_makes_anew(program: Any, backend: str) -> None:
    right(program, np.array([0.7, 0.5, 1.9]), 1.3, backend=backend, wrt=(0, 1))


def appended_behind_a_loop(w, s):
    b, q = [s], []
    for i in w:
        b = [i, s]
        if i > 0.0:
            b = q
    b.append(s)
    return sum(b) + len(q) * s


def stored_behind_a_loop(w, s):
    b, q = [s], [s, 2.0]
    for i in w:
        b = q if i > 0.0 else [i]
    for i in w:
        b[0] = i
    return sum(b) + sum(q) * s


@pytest.mark.parametrize("program", [appended_behind_a_loop, stored_behind_a_loop], ids=lambda f: f.__name__)
def test_a_list_that_had_another_name_in_a_loop_does_not_change(program: Any) -> None:
    refused(program, np.array([0.7, 1.9]), 1.3, error=NotDifferentiable, match="this changes it", wrt=(0, 1))


REPETITIONS = ("items * bool(v[0] > 0)", "items * True", "(n > 0) * items", "False * tuple(items)", "grown * (n > 0)")


@pytest.mark.parametrize("text", REPETITIONS)
def test_bools_of_python_repeat_sequences(text: str) -> None:
    program = (
        "import numpy as np\n\ndef f(v, n):\n    items = [1.0, v[0], 2.0]\n    grown = [t * t for t in v if t > 0.6]\n"
        f"    m = {text}\n    return v[1] + v[2] * sum(m) + len(m)\n\n"
        "def arguments():\n    return (np.array([0.5, 0.7, 1.1]), 1)\n"
    )
    verdict = judge(program, ("primal", "reverse", "forward", "loops"))
    assert verdict.kind == "right", verdict
