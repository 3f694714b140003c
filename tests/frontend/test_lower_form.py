"""The form of lowered programs: names, order, tails, places."""

from __future__ import annotations

from tapegen.ir.printer import function_text
from tests.frontend.test_lower import X, break_in_nested_branch, deep
from tests.lowering import lower


def march(u0, k, cap):
    u = u0.copy()
    energy = 0.0
    i = 1
    while i < u.size and energy < cap:
        r = u[i - 1] - u[i]
        u[i] += k * r
        energy = energy + u[i] * u[i]
        i = i + 1
    return energy


def test_the_program_keeps_names_and_order() -> None:
    text = function_text(lower(march, X, 0.1, 3.0).function)
    assert (
        text
        == """\
def march(u0, k, cap):
    u = np.copy(u0)
    energy = 0.0
    i = 1
    while (i < np.size(u)) and (energy < cap):
        u_previous = u[i - 1]
        u_i = u[i]
        r = u_previous - u_i
        u_add = k * r
        u[i] += u_add
        u_i_1 = u[i]
        u_i_2 = u[i]
        u_i_squared = u_i_1 * u_i_2
        energy = energy + u_i_squared
        i = i + 1
    return energy
"""
    )


def test_what_leaves_a_loop_is_a_tail() -> None:
    text = function_text(lower(break_in_nested_branch, X).function)
    assert (
        text
        == """\
def break_in_nested_branch(x):
    s = 0.0
    for i in range(0, np.size(x), 1):
        if x[i] < 0.0:
            if s > 0.4:
                s_1 = s
                left = True
            else:
                s_1 = s + 1.0
                left = False
            s_2 = s_1
            left_1 = left
        else:
            s_2 = s
            left_1 = False
        if left_1:
            s = s_2
            break
        else:
            x_i = x[i]
            s = s_2 + x_i
    return s
"""
    )


def test_lowering_is_deterministic() -> None:
    texts = {function_text(lower(deep, X).function) for _ in range(3)}
    assert len(texts) == 1


def test_origins_are_whole_statements_and_headers() -> None:
    lowered = lower(march, X, 0.1, 3.0)
    loop = lowered.function.body[-2]
    assert loop.origin.text() == "while i < u.size and energy < cap:"
    assert loop.body[0].origin.text() == "r = u[i - 1] - u[i]"
    assert loop.body[-2].origin.text() == "energy = energy + u[i] * u[i]"
