"""Forward mode in several directions at once, against reverse mode: both layouts, and programs without such a form."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

import tapegen as tg
from tapegen.backend.printer.module import emit
from tapegen.pipeline import compile

python = {"backend": "python"}


def rates(y):
    first = y[0] * y[1]
    second = np.exp(-y[2]) / (1.0 + y[0])
    out = np.empty(3)
    out[0] = first - second
    out[1] = second * y[1]
    out[2] = first + 2.0 * second
    return out


def recurrence(y):
    out = np.zeros_like(y)
    total = 0.0
    for i in range(1, len(y)):
        total = total + y[i] * y[i]
        out[i] = total * y[i - 1]
    return out


def branches(y):
    out = np.empty_like(y)
    for i in range(len(y)):
        if y[i] > 0.5:
            scale = y[i] * y[0]
        else:
            scale = np.sin(y[i])
        out[i] = scale * y[-1]
    return out


def overwritten(y):
    work = np.zeros(len(y))
    for step in range(3):
        for i in range(len(y)):
            work[i] = work[i] * y[i] + y[i - 1]
        y[step] = work[step] * 0.5
    return work


def primal_changes_under_the_run(y):
    """What the tangents of the first statement read is overwritten before the second one."""
    k = np.array([2.0, 3.0])
    a = k[0] * y[0] * y[1]
    scale = k.copy()
    scale[0] = 5.0
    k[0] = 7.0
    b = k[0] * y[1] * a * scale[0]
    return np.array([a, b])


def number_changes_under_the_run(y):
    c = 2.0
    out = np.zeros(3)
    for i in range(3):
        out[i] = c * y[i] * y[0]
        c = c + 1.5
    return out


def arrays(y):
    u = y * y
    v = np.sin(u)[1:] * u[:-1]
    return np.dot(v, v) * u + 1.0


def arrays_in_a_loop(y):
    u = y.copy()
    for _ in range(3):
        flux = u[1:] * u[:-1]
        u[1:] += 0.1 * flux
        u[0] *= 2.0
    return u


def rebound_in_a_loop(y):
    u = y
    for _ in range(3):
        u = u + 0.1 * np.cos(u) * y
    return u


def swapped(y):
    a, b = y[0] * 1.0, y[1] * y[2]
    for _ in range(3):
        a, b = b, a * b
    return np.array([a, b, a * b])


def matrices(y):
    m = np.outer(y, y) + np.eye(3)
    return np.linalg.solve(m, y) @ m


def part_of_the_argument(y):
    return y[1:]


def number(y):
    return np.sum(y * y) * y[0]


def several_results(y):
    return {"norm": np.sqrt(np.sum(y * y)), "parts": (y[:2] * 2.0, y[::-1] * y), "constant": np.ones(2)}


def in_a_while_loop(y):
    x = 1.0
    while abs(x * x - y[0]) > 1e-10:
        x = 0.5 * (x + y[0] / x)
    return np.array([x, x * y[1], y[2]])


def rows(y):
    m = np.zeros((3, 3))
    for i in range(3):
        m[i] = y * y[i]
        m[i, i] += 1.0
    return m


def of_a_matrix(m):
    out = np.zeros((2, 3))
    for i in range(2):
        for j in range(3):
            out[i, j] = m[i, j] * m[0, 2 - j]
    return out


def guarded(y):
    return np.where(y > 0.7, np.sqrt(np.abs(y - 0.7)), y * y)


def power(w, k):
    if k == 0:
        return w[0]
    w[k] = w[k] * w[0]
    return power(w, k - 1) * w[k]


def recursive(y):
    w = y * 2.0
    return power(w, int(y[0])) * y + w


VECTORS = [
    rates,
    recurrence,
    branches,
    overwritten,
    primal_changes_under_the_run,
    number_changes_under_the_run,
    arrays,
    arrays_in_a_loop,
    rebound_in_a_loop,
    swapped,
    matrices,
    part_of_the_argument,
    number,
    several_results,
    in_a_while_loop,
    rows,
    of_a_matrix,
    guarded,
    recursive,
]


def point(function: Callable) -> np.ndarray:
    return np.array([[0.3, 1.1, 0.8], [1.4, 0.6, -0.2]]) if function is of_a_matrix else np.array([1.3, 0.4, 0.9])


@pytest.mark.parametrize("function", VECTORS, ids=lambda function: function.__name__)
def test_forward_is_reverse(function: Callable) -> None:
    forward = tg.jacobian(function, mode="forward", **python)(point(function))
    reverse = tg.jacobian(function, mode="reverse", **python)(point(function))
    np.testing.assert_equal(forward, _like(reverse, forward))


def _like(value, close_to):
    """A structure with the numbers of another one where they are the same to rounding."""
    if isinstance(value, dict):
        return {key: _like(item, close_to[key]) for key, item in value.items()}
    if isinstance(value, tuple):
        return tuple(map(_like, value, close_to))
    np.testing.assert_allclose(close_to, value, rtol=1e-12, atol=1e-13)
    return close_to


def text_of(function: Callable) -> tuple[str, bool]:
    call = tg.differentiable(function, **python)._specialise((point(function),), {})
    program = call.program
    found = compile.derive_vector_forward(
        program.lowered.function, program.wrt_vars(), program.selection.active_results(scalar=False), frozenset()
    )
    assert found is not None
    return emit(found.function).text, found.last


@pytest.mark.parametrize("function", [rates, recurrence, branches, overwritten, swapped, of_a_matrix])
def test_directions_are_the_last_axis_where_tangents_are_numbers(function: Callable) -> None:
    text, last = text_of(function)
    assert last
    assert text.count("np.sin(") == (function is branches)  # once, whatever the number of directions


@pytest.mark.parametrize("function", [arrays, arrays_in_a_loop, matrices, rows])
def test_directions_are_the_first_axis_where_tangents_are_arrays(function: Callable) -> None:
    assert not text_of(function)[1]


def test_more_directions_than_one_block() -> None:
    y = np.random.default_rng(0).uniform(0.5, 1.5, 70)
    slopes = tg.jacobian(recurrence, mode="forward")(y)
    np.testing.assert_allclose(slopes, tg.jacobian(recurrence, mode="reverse", **python)(y), rtol=1e-12)


def test_jacobians_are_differentiated_again() -> None:
    def curvature(y):
        return np.sum(tg.jacobian(rates, mode="forward")(y) ** 2)

    tg.check_grads(curvature, point(rates), modes=("forward", "reverse"), order=1, backend="python")


def gathered(y):
    k = 0
    while k < 3:
        k += 1
        y = y[[0, -1]]
    return y * y


def one_of_many(y):
    for _ in range(2):
        y = y[[0]] * y[1] if len(y) > 1 else y
    return y * 3.0


def halves_of_a_matrix(y):
    m = np.outer(y, y)
    for _ in range(2):
        m = m[1:] * 1.5 if y[0] > 0.0 else m * 2.0
    return m


@pytest.mark.parametrize("function", [gathered, one_of_many, halves_of_a_matrix])
def test_an_array_whose_shape_a_loop_changes(function: Callable) -> None:
    y = np.array([0.95, 0.54, 0.4])
    slopes = tg.jacobian(function, mode="forward", **python)(y)
    np.testing.assert_allclose(slopes, tg.jacobian(function, mode="reverse", **python)(y), rtol=1e-12)
    np.testing.assert_allclose(slopes @ y, tg.jvp(function, (y,), (y,), **python)[1], rtol=1e-12)
