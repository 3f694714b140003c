"""Views that are read after a store through another name of the array: `tests/view_stores.py` says how."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

from tests.judged import BACKENDS
from tests.view_stores import POINT, judged, wrong


def element_of_a_diagonal(m: np.ndarray, v: np.ndarray) -> float:
    m = np.outer(v, v)
    d = np.diagonal(m)
    m[0, 0] = v[1] ** 2
    return d[0] * v[2]


def put_into_what_is_shown(m: np.ndarray, v: np.ndarray) -> float:
    d = np.diagonal(m)
    np.put(m, [0, 4], v[1] ** 2)
    return d[0] * v[2] * d[1]


def loop_over_a_diagonal(m: np.ndarray, v: np.ndarray) -> float:
    d = m.diagonal(1)
    m[0, 1] = v[1] ** 2
    total = 0.0
    for x in d:
        total += x * x
    return total


def whole_diagonal(m: np.ndarray, v: np.ndarray) -> float:
    d = np.diagonal(m)
    m[0, 0] = v[1] ** 2
    return np.sum(d * v)


def rows_of_a_broadcast(m: np.ndarray, v: np.ndarray) -> float:
    d = np.broadcast_to(m[1], (2, 3))
    m[1] *= v
    return d[0, 0] * v[2] * d[1, 0]


def view_of_a_diagonal(m: np.ndarray, v: np.ndarray) -> float:
    d = np.diagonal(m.T)[::-1]
    m[1, 1] *= v[0]
    return d[1] * d[0]


def diagonal_of_a_broadcast(m: np.ndarray, v: np.ndarray) -> float:
    d = np.diagonal(np.broadcast_to(m[2], (3, 3)))
    m[2] *= v
    return d[0] * d[1]


def read_before_and_after(m: np.ndarray, v: np.ndarray) -> float:
    d = np.diagonal(m)
    t = d[0] * d[1]
    m[0, 0] = t * v[0]
    return t * d[0] * np.sum(d)


def stores_in_a_loop(m: np.ndarray, v: np.ndarray) -> float:
    d = np.diagonal(m)
    t = 0.0
    for i in range(3):
        t += d[i]
        m[i, i] = t * v[i]
        t += d[i] ** 2
    return t * d[2]


def view_of_a_diagonal_in_a_loop(m: np.ndarray, v: np.ndarray) -> float:
    d = np.diagonal(m)
    e = d[1:]
    t = e[0]
    for i in range(2):
        t = t * e[i] + d[i]
        m[i + 1, i + 1] = t * v[i]
        t += e[i]
    return t * e[1] * d[0]


def store_in_a_branch(m: np.ndarray, v: np.ndarray) -> float:
    d = np.diagonal(m)
    e = d[1:]
    t = e[0]
    if v[0] > 0.1:
        t = t * e[1]
        m[2, 2] = t
        t = t + e[1] * d[2]
    return t * e[1]


def diagonals_of_trips(m: np.ndarray, v: np.ndarray) -> float:
    t = 0.0
    for i in range(2):
        d = np.diagonal(m, i)
        t += d[0]
        m *= t
        t += d[1]
    return t + np.sum(m)


PROGRAMS = [
    *(element_of_a_diagonal, put_into_what_is_shown, loop_over_a_diagonal, whole_diagonal, rows_of_a_broadcast),
    *(view_of_a_diagonal, diagonal_of_a_broadcast, read_before_and_after, stores_in_a_loop),
    *(view_of_a_diagonal_in_a_loop, store_in_a_branch, diagonals_of_trips),
]


@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize("program", PROGRAMS, ids=lambda program: program.__name__)
def test_program(program: Callable[..., float], backend: str) -> None:
    assert judged(program, POINT, backend) == ("right", "")


def test_sample() -> None:
    assert not wrong(4000)


@pytest.mark.whole
def test_larger_sample() -> None:
    assert not wrong(50)


@pytest.mark.compiled
def test_compiled_sample() -> None:
    assert not wrong(30_000, "numba")
