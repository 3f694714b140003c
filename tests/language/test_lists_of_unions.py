"""Growing lists of items of several kinds, and as results."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from tapegen import jvp, vjp
from tests.judged import both, right

W, V = np.array([1.5, -0.5, 2.0]), np.array([0.3, 0.7, 1.9])


def numbers_of(v):
    items = []
    for i in range(3):
        items.append(v[i] * 2.0)
    return items


def append(w, v):
    items = numbers_of(v)
    items.append(w * v)
    return np.sum(items[-1]) * items[0]


def extend(w, v):
    items = numbers_of(v)
    items.extend([w, v * 2.0])
    return np.sum(items[-1] * items[3]) * items[0]


def set_item(w, v):
    items = numbers_of(v)
    items[-1] = w
    return np.sum(items[2]) * items[1]


def insert(w, v):
    items = numbers_of(v)
    items.insert(0, w)
    return np.sum(items[0]) * items[1]


def number_to_arrays(w, v):
    items = []
    for i in range(3):
        items.append(w * v[i])
    items.append(v[0])
    return np.sum(items[1]) * items[3]


def one_of_two_kinds(w, v):
    items = numbers_of(v)
    items.append(w if v[0] > 0 else 2.0)
    return np.sum(items[-1]) * items[0]


def pop_of_elements(w, v):
    u = np.exp(w * 0.3, out=w)
    items = [u[i] for i in range(len(u))]
    return items.pop() * items[0] * v[1]


def in_a_branch(w, v):
    items = [w]
    for i in range(3):
        if i != 1:
            items.append(v[i] * 2.0)
    return np.sum(items[0]) * items[-1] * items[1]


PROGRAMS = [in_a_branch, append, extend, set_item, insert, number_to_arrays, one_of_two_kinds, pop_of_elements]


@pytest.mark.parametrize("program", PROGRAMS, ids=lambda program: program.__name__)
@both
def test_items_of_several_kinds(program: Any, backend: str) -> None:
    right(program, W, V, backend=backend, wrt=(0, 1))


def numbers_and_number(x, y):
    items = []
    for i in range(3):
        items.append(x * y * float(i))
    return items, x * 2.0


def arrays_and_number(x, y):
    items = []
    for i in range(3):
        items.append(np.array([x, 2.0 * y]) * float(i))
    return items, x


@both
def test_tangents_of_a_growing_list(backend: str) -> None:
    value, tangent = jvp(numbers_and_number, (2.0, 3.0), (1.0, 0.0), backend=backend)
    assert (value, tangent) == (([0.0, 6.0, 12.0], 4.0), ([0.0, 3.0, 6.0], 2.0))
    _, (items, number) = jvp(arrays_and_number, (2.0, 3.0), (1.0, 0.5), backend=backend)
    np.testing.assert_array_equal(items, [[0.0, 0.0], [1.0, 1.0], [2.0, 2.0]])
    assert number == 1.0


@both
def test_cotangents_of_a_growing_list_of_arrays(backend: str) -> None:
    _, pullback = vjp(arrays_and_number, 2.0, 3.0, wrt=(0, 1), backend=backend)
    seed = [np.array([1.0, 10.0]), np.array([2.0, 20.0]), np.array([3.0, 30.0])]
    assert pullback((seed, 4.0)) == (2.0 + 6.0 + 4.0, 2.0 * 20.0 + 4.0 * 30.0)
    assert pullback((seed, 0.0)) == (2.0 + 6.0, 2.0 * 20.0 + 4.0 * 30.0)


def one_array_twice(x, y):
    row = np.array([x, y])
    items = []
    for _ in range(2):
        items.append(row)
    return items


@both
def test_cotangents_of_one_array_at_two_places(backend: str) -> None:
    _, pullback = vjp(one_array_twice, 2.0, 3.0, wrt=(0, 1), backend=backend)
    assert pullback([np.array([1.0, 10.0]), np.array([2.0, 20.0])]) == (3.0, 30.0)
