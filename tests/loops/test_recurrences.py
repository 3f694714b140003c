"""Loops of backward sweeps whose iterations wait for each other, and zeros that are made where they are added to."""

from __future__ import annotations

import random
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

import tapegen as tg
from tapegen import differentiable
from tapegen.backend.numba.build import build_python
from tapegen.backend.printer.module import emit
from tapegen.loops.pipeline import lower_to_loops
from tapegen.pipeline.artifacts.generated_text import compiled_text
from tests.nests_reader import Outcome, python_function, read

R = np.random.default_rng(17)
DRAWN = 50


def emitted(text: str, args: tuple[Any, ...], *, backward: bool) -> Any:
    return emit(lower_to_loops(replace(read(text, args), backward=backward)))


def assert_close(text: str, *argument_lists: tuple[Any, ...]) -> str:
    """As a backward sweep the text gives the same numbers but for the last places; this is the new text."""
    source = emitted(text, argument_lists[0], backward=True)
    func = build_python(source)
    for args in argument_lists:
        ours, theirs = Outcome(func, args), Outcome(python_function(text), args)
        assert ours.error is theirs.error, args
        for a, b in zip(ours.args, theirs.args, strict=True):
            np.testing.assert_allclose(a, b, rtol=1e-12, atol=1e-14)
        if theirs.value is not None:
            np.testing.assert_allclose(ours.value, theirs.value, rtol=1e-12, atol=1e-14)
    return source.text


STENCIL = """
def f(a, n, m):
    for i in range(n - 2, 0, -1):
        for j in range(m - 2, 0, -1):
            t = 0.25*a[i, j]
            a[i, j] = 0.0
            a[i + 1, j + 1] += t
            a[i + 1, j] += -2.0*t
            a[i + 1, j - 1] += t
            a[i, j - 1] += t
            a[i - 1, j + 1] += t
            a[i - 1, j - 1] += t
    return a
"""

UPWARD = """
def f(a, b, n):
    for j in range(1, n - 1):
        t = 0.25*a[j]
        a[j + 1] += t
        b[j] += t
        b[j + 1] += t
        b[j - 1] += 0.5*t
    return a
"""

STAYS = """
def f(a, b, c, n):
    for j in range(1, n - 1):
        t = 0.25*a[j]
        a[j + 1] += t
        b[j] += t
        b[j - 1] += t
        c[j] += b[j + 1]
    s = 0.0
    for j in range(n):
        c[j] += a[j]
        b[j] -= a[j]
        s += a[j]
    g = 2.0
    for j in range(1, n):
        a[j] += 0.5*a[j - 1]
        b[j] += g
        b[j - 1] += g
    return s
"""


def test_additions_that_nothing_waits_for_have_loops_of_their_own() -> None:
    sizes = [(n, m) for n in range(6) for m in range(6)]
    text = assert_close(STENCIL, *((R.random((n, m)), n, m) for n, m in [(5, 6), *sizes]))
    assert "t_row" in text and text.count("for ") == 5
    text = assert_close(UPWARD, *((R.random(n + 3), R.random(n + 3), n) for n in (7, 0, 1, 2, 3, 4)))
    assert "t_row" in text and text.count("for ") == 3


THREE = """
def f(a, b, c, n):
    for j in range(1, n - 1):
        t = 0.25*a[j]
        u = a[j]*a[j]
        v = u - t
        a[j + 1] += t
        b[j] += t
        c[j] += u
        c[j - 1] += v
    return a
"""


def test_three_numbers_of_a_trip_have_rows() -> None:
    text = assert_close(THREE, *((R.random(n), R.random(n), R.random(n), n) for n in (20, 7, 2)))
    assert "t_row" in text and "u_row" in text and "v_row" in text


def test_additions_that_others_read_or_that_need_no_numbers_of_a_trip_stay_right() -> None:
    assert_close(STAYS, *((R.random(n), R.random(n), R.random(n), n) for n in (7, 0, 1, 2, 3)))


def test_the_forward_sweep_keeps_its_order_of_additions() -> None:
    args = (R.random((5, 6)), 5, 6)
    assert "t_row" not in emitted(STENCIL, args, backward=False).text


RECURRENCE = """
def f(r, x, n):
    b = 1.5
    s = 0.0
    for k in range(n - 1, -1, -1):
        t = (1.0 - x[k])*b
        s += x[k]*t
        b = r*t - r*x[k]*b
    return s + b
"""

DIVIDES = """
def f(r, x, n):
    b = 1.5
    s = 0.0
    for k in range(n - 1, -1, -1):
        t = b / x[k]
        b = t if t != 0.0 else 0.0
        s += b
        b = r*b + 3.0*b
    return s + b
"""

OTHERWISE = """
def f(r, x, n):
    b = 1.5
    c = 0.5
    for k in range(n - 1, -1, -1):
        t = x[k]*b
        x[k] = t*t
        b = r*t + x[k]*b + c
        c = c*b + b*r
    return c + b
"""


def test_what_goes_from_trip_to_trip_is_multiplied_once() -> None:
    text = assert_close(RECURRENCE, *((2.9, R.random(n), n) for n in (9, 0, 1)))
    assert "b = (r * (1.0 - x[k]) - r * x[k]) * b" in text
    assert "b = r * t" in emitted(RECURRENCE, (2.9, R.random(5), 5), backward=False).text


ANOTHER_CARRIED = """
def f(r, x, n):
    b = 1.5
    c = 0.5
    for k in range(n - 1, -1, -1):
        t = x[k]*b*c
        c = 0.5*c
        b = r*t - r*x[k]*t
    return c + b
"""

OVERWRITTEN = """
def f(r, x, n):
    b = 1.5
    v = x[1:]
    for k in range(n - 2, 0, -1):
        t = x[k]*b
        v[k - 1] += 1.0
        b = r*t + 3.0*(r*t)
    return b
"""

DECIDES = """
def f(r, x, n):
    b = 1.5
    s = 0
    for k in range(n - 1, -1, -1):
        t = (1.0 - x[k])*b
        x[k] = t
        b = r*t - r*x[k]*b
    if b > 0.5:
        s = int(b)
    return s
"""


@pytest.mark.parametrize("text", [DIVIDES, OTHERWISE, ANOTHER_CARRIED, OVERWRITTEN])
def test_what_is_no_multiple_stays(text: str) -> None:
    assert_close(text, *((2.9, 1.0 + R.random(n), n) for n in (9, 0, 1)))


STRONG = """
def f(r, x, n):
    b = r
    s = 0.0
    for k in range(n - 1, -1, -1):
        w = x[k]
        t = b*w if b != 0.0 else 0.0
        u = t*2.0
        v = u*0.5
        b = v*3.0 - v
        s += b
    return s + b
"""

STRONG_AND_NOT = STRONG.replace("v*3.0 - v", "(v*3.0 - 0.5*b)*0.25")


@pytest.mark.parametrize("text", [STRONG, STRONG_AND_NOT])
def test_zero_wins_over_an_infinite_factor(text: str) -> None:
    wild = np.array([0.5, np.inf, 1.5])
    assert "* b if b != 0.0 else 0.0" in assert_close(text, (1.25, R.random(3), 3), (0.0, wild, 3))


READ_EARLY = """
def f(a, b, c, n):
    for j in range(1, n - 1):
        t = 0.25*a[j]
        c[j] += a[j + 1]
        a[j + 1] += t
        b[j] += t
        b[j - 1] += t
    return a
"""


def test_an_addition_of_what_the_loop_changes_later_stays() -> None:
    text = assert_close(READ_EARLY, *((R.random(n), R.random(n), R.random(n), n) for n in (20, 7, 2)))
    assert "t_row" in text


def test_what_decides_where_the_program_goes_is_not_rounded_otherwise() -> None:
    args = (2.9, R.random(5), 5)
    assert "b = r * t - r * x[k] * b" in emitted(DECIDES, args, backward=True).text
    text = UPWARD.replace("return a", "return int(b[2])")
    assert "t_row" not in emitted(text, (R.random(9), R.random(9), 7), backward=True).text


CHANGING_END = """
def f(a, b, n):
    m = n - 1
    for j in range(1, m):
        t = 0.25*a[j]
        m = m + 1
        a[j + 1] += t
        b[j] += t
        b[j + 1] += t
    return m
"""

SAME_MEMORY = """
def f(a, b, n):
    c = b[:]
    for j in range(1, n - 1):
        t = 0.25*a[j]
        a[j + 1] += t
        b[j] += t*c[j - 1]
        c[j + 1] += t
        b[j - 1] += t
    return a
"""

SHORT = """
def f(a, b, n):
    for i in range(n):
        for j in range(1, 5):
            t = 0.25*a[j]
            a[j + 1] += t
            b[j] += t
            b[j + 1] += t
    return a
"""


def test_loops_that_do_not_come_apart() -> None:
    assert_close(CHANGING_END, *((R.random(n + 3), R.random(n + 3), n) for n in (7, 0, 1)))
    assert "t_row" not in assert_close(SAME_MEMORY, *((R.random(n + 3), R.random(n + 3), n) for n in (7, 0, 1, 2)))
    assert "t_row" not in assert_close(SHORT, (R.random(7), R.random(7), 3))


FILLED = """
def f(a, b, n, k):
    m = np.zeros((n, k))
    v = np.zeros(n)
    w = np.zeros(n)
    for i in range(b.size - 1, -1, -1):
        v[i] += b[i]
        if b[i] > 0.5:
            w[i] += b[i]
            for j in range(i):
                m[i, j] += a[i, j]*v[i]
    return m*1.0 + v.sum() + w.sum()
"""

NOT_FILLED = """
def f(a, b, n, k):
    m = np.zeros((n, k))
    v = np.zeros(n)
    w = np.zeros(n)
    u = np.zeros(n)
    for i in range(1, n):
        v[i] += v[i - 1] + b[i]
        w[n - 1 - i] += b[i]
        u[i] += b[i]
        if b[i] > 0.8:
            break
        m[i - 1, 0] += b[i]
    return m*1.0 + v.sum() + w.sum() + u.sum()
"""


def test_zeros_are_made_on_the_trips_that_come_to_them() -> None:
    arguments = [(R.random((n, n + 1)), R.random(n - short), n, n + 1) for n, short in ((6, 0), (6, 2), (1, 0), (3, 3))]
    source = emitted(FILLED, arguments[0], backward=False)
    assert "zeros" not in source.text
    assert_exact(FILLED, *arguments)
    assert_exact(NOT_FILLED, *((R.random((n, n + 1)), R.random(n), n, n + 1) for n in (6, 1)))
    assert emitted(NOT_FILLED, arguments[0], backward=False).text.count("zeros") == 4


def assert_exact(text: str, *argument_lists: tuple[Any, ...]) -> None:
    func = build_python(emitted(text, argument_lists[0], backward=False))
    for args in argument_lists:
        ours, theirs = Outcome(func, args), Outcome(python_function(text), args)
        assert ours.error is theirs.error, args
        if theirs.value is not None:
            np.testing.assert_array_equal(ours.value, theirs.value)


def _drawn(seed: int) -> str:
    """A loop of additions at shifted places, of numbers that go from iteration to iteration, and of zeros."""
    draw = random.Random(seed)
    numbers = ["b", "c", "t", "g"]
    arrays = ["x", "y", "z", "v"]

    def place() -> str:
        return draw.choice(["j", "j", "j", "j + 1", "j - 1", "j + 2", "n - j", "2"])

    def value(depth: int = 2) -> str:
        if depth == 0 or draw.random() < 0.3:
            return draw.choice([*numbers, f"{draw.choice(arrays)}[{place()}]", "0.5"])
        a, b = value(depth - 1), value(depth - 1)
        return draw.choice([f"{a} + {b}", f"({a} - {b})", f"0.5*({a})", f"({a})*({b})", f"-{a}", f"({a}) / 3.0"])

    def line() -> str:
        kind = draw.random()
        if kind < 0.7:
            return f"{draw.choice(arrays)}[{place()}] += {draw.choice(['t', 't', value(1)])}"
        if kind < 0.8:
            return f"{draw.choice(arrays)}[{place()}] = {value(1)}"
        return f"{draw.choice(numbers)} = {value()}"

    trips = draw.choice(["range(n - 2, 1, -1)", "range(2, n - 1)", "range(n - 2, k, -1)"])
    lines = [f"t = 0.25*{draw.choice(['b', 'x[j]', 'z[j]'])}", *(line() for _ in range(draw.randint(3, 7)))]
    lines.append(draw.choice(["b = 0.5*t - 0.75*(0.5*t)", "x[j + 1] += t", "z[j - 1] += t"]))
    return "\n".join(
        [
            "def f(x, y, w, n, k):",
            "    z = np.zeros(n + 4)",
            f"    v = {draw.choice(['w', 'w[:]', 'x', 'np.zeros(n + 4)'])}",
            "    b, c, t, g = 1.5, -0.5, 0.75, 0.25",
            f"    for j in {trips}:",
            *(f"        {each}" for each in lines),
            "    for j in range(x.size):",
            "        z[j] += x[j]",
            "    return x + 2.0*y + 3.0*w + 5.0*z + b + 7.0*c + t - g",
        ]
    )


def test_random_loops_give_the_same_numbers() -> None:
    changed = 0
    for seed in range(DRAWN):
        text = _drawn(seed)
        arguments = [(*(0.3 * R.normal(size=n + 4) for _ in range(3)), n, 1) for n in (9, 4, 2, 1)]
        ours = emitted(text, arguments[0], backward=True).text
        changed += ours != emitted(text, arguments[0], backward=False).text
        assert_close(text, *arguments)
    assert changed >= DRAWN // 6


# ---- tangents --------------------------------------------------------------------------------------------------------


def logistic(x: float, r: float, steps: int) -> float:
    for _ in range(steps):
        x = r * x * (1.0 - x)
    return x


def test_tangents_are_products_with_one_factor() -> None:
    derived = differentiable(logistic, wrt=(0, 1))
    program = derived._specialise((0.3, 2.9, 50), {}).program
    text = compiled_text(program, program.function("jvp")).text
    assert "x_1_dot = (x_shifted * r - r_x) * x_1_dot + x_shifted * r_x_dot_rest" in text
    assert "        x_1 = r_x * x_shifted\n" in text  # values are as they were


def test_tangents_of_gradients_too() -> None:
    gradient = tg.grad(logistic, (0, 1))
    program = tg.differentiable(gradient, wrt=(0, 1))._specialise((0.3, 2.9, 50), {}).program
    text = compiled_text(program, program.function("jvp")).text
    assert ") * x_1_dot + " in text and ") * x_1_bar_dot + (" in text
    assert "x_1_tape_dot = np.empty(" in text and "x_1_tape_dot[trip] = 0.0" not in text


@pytest.mark.compiled
def test_a_compiled_product_of_a_hessian() -> None:
    args, directions = (0.3, 2.9, 50), (1.0, -0.5, None)
    ours = tg.hvp(logistic, args, directions)
    np.testing.assert_allclose(ours, tg.hvp(logistic, args, directions, backend="python"), rtol=1e-11)
    value, tangent = tg.jvp(logistic, args, directions)
    assert value == logistic(*args)
    np.testing.assert_allclose(tangent, tg.jvp(logistic, args, directions, backend="python")[1], rtol=1e-11)


SUBTRACTED = """
def f(x, x_dot, n):
    a_dot = x_dot[0]
    for j in range(n):
        t_dot = x[j]*a_dot
        u_dot = t_dot*x[j]
        a_dot = x_dot[j] - 0.5*(0.25*u_dot)
    return a_dot
"""


def test_what_a_tangent_is_subtracted_from() -> None:
    args = (R.random(5), R.random(5), 5)
    function = read(SUBTRACTED, args)
    x, x_dot, _ = function.params
    ours = emit(lower_to_loops(replace(function, tangents=((x, x_dot),))))
    assert ours.text != emitted(SUBTRACTED, args, backward=False).text
    np.testing.assert_allclose(build_python(ours)(*args), python_function(SUBTRACTED)(*args), rtol=1e-12)


def _drawn_tangents(seed: int) -> str:
    """A loop that hands on numbers, and tangents beside them."""
    draw = random.Random(seed)
    values, dots = ["a", "b", "t"], ["a_dot", "b_dot", "t_dot", "s_dot"]

    def value(depth: int = 2) -> str:
        if depth == 0:
            return draw.choice([*values, "x[j]", "0.5"])
        a, b = value(depth - 1), value(depth - 1)
        return draw.choice([f"({a} + {b})", f"({a} - {b})", f"({a})*({b})", f"-{a}", f"({a}) / 3.0", a])

    def dot(depth: int = 2) -> str:
        if depth == 0:
            return draw.choice([*dots, "x_dot[j]"])
        a, b, c = dot(depth - 1), dot(depth - 1), value(1)
        product = draw.choice([f"({a})*({c})", f"({c})*({a})"])
        strong = f"(({a})*({c}) if {a} != 0.0 else 0.0)"
        return draw.choice([product, product, f"({a} + {b})", f"({a} - {b})", f"-({a})", f"({a}) / 3.0", strong])

    def line() -> str:
        kind = draw.random()
        if kind < 0.6:
            return f"{draw.choice(dots)} = {dot()}"
        if kind < 0.9:
            return f"{draw.choice(values)} = 0.5*{value()}"
        return draw.choice(["x_dot[j] = a_dot", "y[j] += a", "x[j] = b"])

    lines = [*(line() for _ in range(draw.randint(2, 6))), f"a_dot = {dot(3)}", *(line() for _ in range(2))]
    return "\n".join(
        [
            "def f(x, y, x_dot, n):",
            "    a, b, t = 0.5, -0.25, 0.75",
            "    a_dot, b_dot, t_dot, s_dot = x_dot[0], x_dot[1], x_dot[2], x_dot[3]",
            "    for j in range(n):",
            *(f"        {each}" for each in lines),
            "    return np.array([a, b, t]), y, a_dot + b_dot + t_dot + s_dot",
        ]
    )


def test_random_tangents_are_the_same_numbers_and_values_exactly() -> None:
    changed = 0
    for seed in range(DRAWN):
        text = _drawn_tangents(seed)
        args = (0.3 * R.normal(size=9), 0.3 * R.normal(size=9), 0.3 * R.normal(size=9), 9)
        function = read(text, args)
        x, _, x_dot, _ = function.params
        ours = emit(lower_to_loops(replace(function, tangents=((x, x_dot),))))
        changed += ours.text != emitted(text, args, backward=False).text
        (values, y, tangent), (own_values, own_y, own_tangent) = (
            Outcome(func, args).value for func in (build_python(ours), python_function(text))
        )
        np.testing.assert_array_equal(values, own_values, err_msg=text)
        np.testing.assert_array_equal(y, own_y, err_msg=text)
        np.testing.assert_allclose(tangent, own_tangent, rtol=1e-12, atol=1e-14, err_msg=text)
    assert changed >= DRAWN // 6
