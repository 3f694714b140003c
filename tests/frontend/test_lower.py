"""Control flow and variables: the lowered program does what plain Python does."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

from tapegen.errors import NotDifferentiable
from tapegen.ir.printer import function_text
from tests.interpret import run
from tests.lowering import agree, lower

X = np.array([0.5, -1.5, 2.0, 0.25, -0.75])


# ---- programs --------------------------------------------------------------------------------------------------------


def while_not_run(x):
    i = 5
    while i < x.size:
        x[i] = 0.0
        i += 1
    return i


def while_else_breaks(x):
    i = 0
    while i < x.size:
        if x[i] > 1.0:
            found = i
            break
        i += 1
    else:
        found = -1
    return found, i


def break_in_nested_branch(x):
    s = 0.0
    for i in range(x.size):
        if x[i] < 0.0:
            if s > 0.4:
                break
            s += 1.0
        s += x[i]
    return s


def continue_in_nested_branch(x):
    s = 0.0
    for v in x:
        if v < 0.0:
            if v < -1.0:
                s -= 10.0
                continue
            s += 100.0
        s += v
    return s


def return_in_nested_branch(x, y):
    if y > 0.0:
        if y > 1.0:
            return y * 2.0
        x = x * 3.0
    return x + y


def return_from_two_loops(x):
    for i in range(x.size):
        for j in range(x.size):
            if x[i] * x[j] > 3.0:
                return i, j, x[i] * x[j]
    return -1, -1, 0.0


def return_in_while_true(x):
    i = 0
    while True:
        if x[i] > 1.0:
            return x[i]
        i += 1


def break_of_while_true(x):
    i = 0
    while True:
        y = x[i] * 2.0
        if y > 1.0:
            break
        i += 1
    return y


def escape_with_flags_in_while(x):
    k = 0
    s = 0.0
    while k < x.size:
        k += 1
        if x[k - 1] > 0.0:
            if x[k - 1] > 1.0:
                s += 1000.0
                continue
            elif s > 1e9:
                break
            s += 1.0
        s += x[k - 1]
    return s


def for_else_return(x):
    for v in x:
        if v > 100.0:
            break
    else:
        return 0, x[0]
    return 1, v


def swap(a, b):
    for _ in range(3):
        a, b = b, a + b
    return a, b


def rotate(a, b, c):
    for _ in range(4):
        a, b, c = b, c, a
    return a, b, c


def parallel_latches(x):
    prev = 0.0
    total = 0.0
    for v in x:
        total += prev * v
        prev = v
    return total, prev


def loop_variable_after(x):
    for i in range(x.size):  # noqa: B007
        pass
    return i


def loop_variable_after_empty(x):
    for i in range(x.size - 5):
        x[i] = 1.0
    return i


def loop_variable_changed(x):
    s = 0.0
    for i in range(4):
        i = i * 2
        if i < x.size:
            s += x[i]
    return s, i


def bound_in_one_branch(x):
    if x[0] > 1.0:
        y = 2.0
    return y


def bound_in_loop(x):
    for v in x:
        if v > 100.0:
            y = v
    return y


def bound_in_second_trip(x):
    s = 0.0
    for i in range(x.size):
        if i > 0:
            s += prev  # noqa: F821
        prev = x[i]
    return s


def deleted_branch_is_unbound(x):
    if x[0] > 0.0:
        z = 1.0
    else:
        raise ValueError("no")
    return z


def promotes(x):
    s = 0
    n = 0
    for v in x:
        s = s + v
        n = n + 1
    return s, n


def promotes_without_trips(x):
    s = 0
    for v in x[5:]:
        s = s + v
    return s * 2.0


def none_then_number(x):
    best = None
    for v in x:
        if best is None or v > best:
            best = v
    return best * 2.0


def none_all_along(x):
    best = None
    for v in x:
        if v > 100.0:
            best = v
    if best is None:
        return -1.0
    return best


def none_is_used(x):
    best = None
    for v in x:
        if v > 100.0:
            best = v
    return best + 1.0


def function_chosen(x, c):
    if c > 0.0:
        f = math.sin
    else:
        f = math.cos
    return f(x) * 2.0


def text_chosen(x):
    mode = "plus" if x > 0.0 else "minus"
    if mode == "plus":
        return x + 1.0
    return x - 1.0


def short_circuit(x):
    i = 0
    while i < x.size and x[i] < 1.0:
        i += 1
    return i


def short_circuit_by_calls(x):
    def positive(v):
        if v > 0.0:
            return True
        return False

    count = 0
    for i in range(x.size + 2):
        if i < x.size and positive(x[i]) or i == x.size:
            count += 1
    return count


def values_of_and_or(x, y):
    a = x and y
    b = x or y
    c = not x
    return a, b, c


def chained(x, y):
    return x < y < 2.0, 0.0 < x <= y != 3.0


def chained_once(x):
    calls = [0]

    def middle():
        calls[0] += 1
        return 1.0

    inside = 0.0 < middle() < x
    return inside, calls[0]


def ternaries(x, n):
    a = x if n > 2 else -x
    k = n if x > 0.0 else 0
    return a * k


def walrus(x):
    i = 0
    while (v := x[i]) < 1.0:
        i += 1
    return v, i


def walrus_in_test(x):
    if (y := x * 2.0) > 1.0 and (z := y + 1.0) > 2.0:
        return y + z
    return y


def numbers_of_text(x):
    n = 3
    scale = 2.5
    total = 0.0
    for k in range(n):
        total += scale * x[k]
    return total


def negative_steps(x):
    s = 0.0
    for i in range(x.size - 1, -1, -2):
        s = 2.0 * s + x[i]
    for i in range(3, 0, -1):
        s -= i
    return s


def computed_step(x, n):
    s = 0.0
    for i in range(0, x.size, n):
        s += x[i] * i
    return s


def nested_loops(x):
    s = 0.0
    for i in range(x.size):
        t = 0
        for j in range(i):
            t += x[j] * (i - j)
        s += t * t
    return s


def deep(x):
    n = 0
    for i in range(3):
        for j in range(3):
            if i == j:
                continue
            for k in range(3):
                if k == i:
                    break
                while n % 7 != k:
                    n += 1
                    if n > 40:
                        return n * x[0]
    return n * x[1]


def loop_rebinds_array(x):
    y = x
    for _ in range(3):
        y = y * 0.5 + x
    return y


def double_buffer(x):
    old = x.copy()
    new = np.zeros_like(x)
    for _ in range(4):
        for i in range(1, x.size - 1):
            new[i] = old[i - 1] + old[i + 1]
        old, new = new, old
    return old


def asserts(x):
    assert x[0] > 0.0, f"x is {x[0]}"
    assert x.size
    return x[0]


def asserts_wrong(x):
    assert x[1] > 0.0, "second is " + "negative"
    return x[0]


def raises(x):
    if x[0] > 0.0:
        raise ValueError("positive", 3)
    return x[0]


def raises_always(x):
    raise KeyError("never")


def python_division(a, b):
    return a / b, a // b, a % b


def numpy_division(x):
    return x[0] / (x[1] - x[1]), x[0] // 0.3, x[1] % 0.4


def integer_power(n, x):
    return 2**-1, 2**n, x**n, n**2


def integer_power_of_negative(n):
    return 2 ** (n - 10)


def divmods(n, x):
    q, r = divmod(n, 4)
    a, b = divmod(x, 0.3)
    return q, r, a, b


PROGRAMS: list[tuple[Any, ...]] = [
    (while_not_run, X),
    (while_else_breaks, X),
    (while_else_breaks, -abs(X)),
    (break_in_nested_branch, X),
    (continue_in_nested_branch, X),
    (return_in_nested_branch, 0.5, 2.0),
    (return_in_nested_branch, 0.5, 0.5),
    (return_in_nested_branch, 0.5, -0.5),
    (return_from_two_loops, X),
    (return_from_two_loops, X * 0.1),
    (return_in_while_true, X),
    (return_in_while_true, -abs(X)),
    (break_of_while_true, X),
    (escape_with_flags_in_while, X),
    (for_else_return, X),
    (swap, 1.0, 2.0),
    (rotate, 1.0, 2.0, 3.0),
    (parallel_latches, X),
    (loop_variable_after, X),
    (loop_variable_after_empty, X),
    (loop_variable_changed, X),
    (bound_in_one_branch, X),
    (bound_in_one_branch, X + 2.0),
    (bound_in_loop, X),
    (bound_in_loop, X + 200.0),
    (bound_in_second_trip, X),
    (deleted_branch_is_unbound, X),
    (deleted_branch_is_unbound, -X),
    (promotes, X),
    (none_then_number, X),
    (none_all_along, X),
    (none_all_along, X + 200.0),
    (function_chosen, 0.4, 1.0),
    (function_chosen, 0.4, -1.0),
    (text_chosen, 0.4),
    (text_chosen, -0.4),
    (short_circuit, X),
    (short_circuit, -abs(X)),
    (short_circuit_by_calls, X),
    (values_of_and_or, 2.0, 3.0),
    (values_of_and_or, 0.0, 3.0),
    (chained, 0.5, 1.0),
    (chained, 1.5, 1.0),
    (chained_once, 2.0),
    (ternaries, 0.5, 3),
    (ternaries, -0.5, 1),
    (walrus, X),
    (walrus_in_test, 0.7),
    (walrus_in_test, 0.1),
    (numbers_of_text, X),
    (negative_steps, X),
    (computed_step, X, 2),
    (computed_step, X, 0),
    (nested_loops, X),
    (deep, X),
    (loop_rebinds_array, X),
    (double_buffer, X),
    (asserts, X),
    (asserts, -X),
    (asserts_wrong, X),
    (raises, X),
    (raises, -X),
    (raises_always, X),
    (python_division, 7.5, 2.0),
    (python_division, 7.5, 0.0),
    (numpy_division, X),
    (integer_power, 3, 0.5),
    (divmods, 11, 1.7),
]


@pytest.mark.parametrize("program", PROGRAMS, ids=lambda program: program[0].__name__)
def test_does_what_python_does(program: tuple[Any, ...]) -> None:
    func, *args = program
    agree(func, *args)


def test_none_raises_where_it_is_used() -> None:
    lowered = lower(none_is_used, X)
    with pytest.raises(TypeError, match="NoneType"):
        value_of(none_is_used, X)
    assert "TypeError" in function_text(lowered.function)


def test_a_promoted_number_without_trips_is_a_float() -> None:
    assert value_of(promotes_without_trips, X) == 0.0


def value_of(func: Any, *args: Any) -> Any:
    """What the lowered program returns."""
    lowered = lower(func, *args)
    return lowered.restore(run(lowered.function, *args))


def test_an_integer_to_a_negative_power_is_not_silently_an_integer() -> None:
    with pytest.raises(ValueError, match="negative power"):
        value_of(integer_power_of_negative, 3)
    assert value_of(integer_power_of_negative, 13) == 8


def inverse_powers(n: Any) -> Any:
    return [10**-k for k in range(n - 3, n)]


def class_of_an_inverse_power(n: Any) -> Any:
    total = 0.0
    for k in range(n):
        total += isinstance(2**-k, int)
    return total


def test_an_integer_to_the_inverse_of_a_counter_is_a_float() -> None:
    for n in (0, 2, 5):
        assert value_of(inverse_powers, n) == inverse_powers(n)
    with pytest.raises(ValueError, match="too large for a float"):
        value_of(inverse_powers, -13)
    with pytest.raises(NotDifferentiable, match="float or int, depending on the path"):
        value_of(class_of_an_inverse_power, 3)
