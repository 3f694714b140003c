"""In-place operations on names that hold values of different kinds on different paths."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from tapegen.errors import BadArgument, NotDifferentiable
from tests.judged import both, refused, right
from tests.merged_kinds import run


def number_on_the_other_path(w, v):
    b = w
    if v[0] > 99:
        b = 3.0
    b *= 3
    return np.sum(w * w)


def scale(v, c):
    v *= c
    return v.sum()


def array_first_and_number_afterwards(w, v):
    s = w * 1.0
    d = s
    for _ in range(2):
        d = scale(d, 3.0)
    return np.sum(s * s) + v[0]


def view_of_itself(w, v):
    b = 0
    if v[0] > -9:
        b = v[1:]
    b += b[::-1]
    return np.sum(v * v) + w[0]


def other_rank(w, v):
    b = w[None] if v[0] > 99 else w
    b *= 3.0
    return np.sum(w * v)


def list_on_the_other_path(w, v):
    m = w
    if v[0] > 99:
        m = [1.0, 2.0, 3.0]
    m *= 2
    return np.sum(w * v)


def callers_array(w, v):
    if v[0] > 100:
        w = 3.0
    w *= 2.0
    return v[0] * 2.0


def list_of_one_path(w, v):
    b = w
    if v[0] < 99:
        b = [v[0], w[1]]
        c = b
    else:
        c = None
    b[0] *= v[2]
    return np.sum(w) if c is None else c[0] * c[1] + np.sum(w)


def none_again(w, v):
    x = None
    if v[0] > -9:
        x = w
    if v[1] > -9:
        x = None
    return np.sum(w) if x is None else np.sum(x * w)


def none_in_a_loop(w, v):
    b, total = w, 0.0
    for k in range(3):
        if b is None:
            total += v[k]
        else:
            b *= 3.0
        if k == 1:
            b = None
    return np.sum(w * w) + total


def item_of_a_list(w, v):
    items = [w, v]
    if v[0] > -9:
        items[0] = 2.0
    items[0] *= 3.0
    items[1] *= 2.0
    return np.sum(w * v) + np.sum(items[0])


def attribute_and_out(w, v):
    b = w
    for _ in range(2):
        if v[0] > 99:
            b = 1.0
        np.multiply(b, b, out=b)
    b.sort()
    return np.sum(w * v)


def array_added_to_a_list(w, v):
    items = [v[0], 2.0, w[1]]
    grown = []
    for k in range(3):
        grown.append(v[k])
    first, second = items, grown
    first += w
    second += w
    return np.sum(first * v) + np.sum(second * second) + len(items) * items[0] + len(grown) * grown[2]


PROGRAMS = [
    array_added_to_a_list,
    number_on_the_other_path,
    array_first_and_number_afterwards,
    view_of_itself,
    other_rank,
    list_on_the_other_path,
    callers_array,
    list_of_one_path,
    none_again,
    none_in_a_loop,
    item_of_a_list,
    attribute_and_out,
]


@pytest.mark.parametrize("program", PROGRAMS, ids=lambda program: program.__name__)
@both
def test_writes_what_the_name_holds(program: Any, backend: str) -> None:
    right(program, np.array([1.5, -0.5, 2.0]), np.array([0.3, 0.7, 1.9]), backend=backend, wrt=(0, 1))


def no_axes(x, c):
    z = np.array(x * 1.5)
    b = z
    if c > 0.0:
        b = 3.0
    b += 1.0
    return b * z


def chosen(x, c):
    y = np.array(x) if c > 0.0 else x
    q = y
    q *= 2
    return y * q


def two_names_in_a_branch(x, c):
    y = x
    if c > 0.0:
        y = np.array(x)
        q = y
    else:
        q = np.array(1.0)
    q *= 2
    return y * q


def stored_in_a_loop(x, c):
    y = x
    if c > 0.0:
        q = y = np.array(x)
    for _ in range(2):
        if c > 0.0:
            q *= 2
    return y * 3.0


@pytest.mark.parametrize(
    "program", [no_axes, chosen, two_names_in_a_branch, stored_in_a_loop], ids=lambda f: f.__name__
)
@pytest.mark.parametrize("c", [1.0, -1.0])
def test_an_array_without_axes_of_two_names_is_no_number(program: Any, c: float) -> None:
    right(program, 0.5, c, backend="python")


def named_afterwards(x, c):
    y = x
    if c > 0.0:
        y = np.array(x)
    q = y
    q *= 2
    return y * q


def in_a_list(x, c):
    y = x
    if c > 0.0:
        y = np.array(x)
    items = [y]
    y *= 2
    return items[0] * y


def by_a_function(x, c):
    def scale(z):
        z *= 2

    y = x
    if c > 0.0:
        y = np.array(x)
    scale(y)
    return y * y


@pytest.mark.parametrize("program", [named_afterwards, in_a_list, by_a_function], ids=lambda f: f.__name__)
def test_refuses_a_number_that_may_be_an_array_of_another_name(program: Any) -> None:
    refused(program, 0.5, 1.0, error=NotDifferentiable, match="may be an array without axes", at="*= 2")


def through_a_view(x, c):
    y = 3.0 * x
    if c > 0.0:
        y = np.array(x)
    r = np.ravel(y)
    r += 1.0
    return y * r[0]


def through_squeeze(x, c):
    y = x
    if c > 0.0:
        y = np.array(x)
    r = np.squeeze(y)
    r *= x
    return y * r


def through_a_view_in_a_loop(x, c):
    y = x
    if c > 0.0:
        y = np.array(x)
    r = np.zeros(1)
    for _ in range(2):
        r += x
        r = np.reshape(y, -1)
    return y * r[0]


def a_view_sees_it(x, c):
    y = x
    if c > 0.0:
        y = np.array(x)
    r = np.atleast_1d(y)
    y *= x
    return y * r[0]


def other_shape(x, c):
    y = x
    if c > 0.0:
        y = np.array(x)
    y += np.ones(2)
    return np.sum(y)


def method_of_one_kind(x, c):
    y = 3.0 * x
    if c > 0.0:
        y = np.array(x)
    return np.sum(y.ravel())


@pytest.mark.parametrize(
    ("program", "at"),
    [
        (through_a_view, "y"),
        (through_squeeze, "r *= x"),
        (through_a_view_in_a_loop, ""),
        (a_view_sees_it, "y *= x"),
        (other_shape, "y += np.ones(2)"),
        (method_of_one_kind, "y.ravel"),
    ],
    ids=lambda value: getattr(value, "__name__", None),
)
def test_refuses_a_view_of_a_number_that_may_be_an_array(program: Any, at: str) -> None:
    refused(program, 0.5, 1.0, error=(BadArgument, NotDifferentiable), match="may be an array", at=at)


def view_in_its_place(x, c):
    y = x
    if c > 0.0:
        y = np.array(x)
    y = np.atleast_1d(y)
    y[0] *= 3.0
    return np.sum(y * x)


def view_that_is_read(x, c):
    y = x
    if c > 0.0:
        y = np.array(x)
    return np.sum(np.ravel(y) * y)


@pytest.mark.parametrize("program", [view_in_its_place, view_that_is_read], ids=lambda f: f.__name__)
@pytest.mark.parametrize("c", [1.0, -1.0])
def test_a_view_of_a_number_that_may_be_an_array(program: Any, c: float) -> None:
    right(program, 0.5, c, backend="python")


def integers_on_one_path(x, c):
    first = 0
    if c > 0.0:
        first = 0.5
    a = np.full(3, first)
    a[0] = x
    return np.sum(a) * x


def integers_in_a_list(x, c):
    first = 0
    if c > 0.0:
        first = 0.5
    a = np.array([first, first])
    b = a * 2
    if c > 9.0:
        b = np.zeros(2)
    b[1:] = x
    return np.sum(b) * x


@pytest.mark.parametrize("program", [integers_on_one_path, integers_in_a_list], ids=lambda f: f.__name__)
def test_refuses_stores_into_arrays_that_hold_integers_on_one_path(program: Any) -> None:
    refused(program, 0.5, 1.0, error=NotDifferentiable, match="is of dtype int64 on some path", at="= x")


def integers_never_stored(x, c):
    first = 0
    if c > 0.0:
        first = 0.5
    a = np.full(3, first) * x
    a[0] = x
    return np.sum(a + np.full(3, first))


def test_arrays_of_integers_on_one_path() -> None:
    right(integers_never_stored, 0.5, 1.0, backend="python")
    right(integers_never_stored, 0.5, -1.0, backend="python")


def own_array_without_axes(x, c):
    b = np.array(x * 1.5)
    if c > 0.0:
        b = 3.0 * x
    b += 1.0
    return b * x


def test_an_array_without_axes_of_one_name_may_become_a_number() -> None:
    right(own_array_without_axes, 0.5, 1.0, backend="python")
    right(own_array_without_axes, 0.5, -1.0, backend="python")


def refused_on_one_path(w, c):
    b = w
    if c > 0.0:
        b = {"a": 1.0}
    b[0] = 2.0
    return np.sum(w * w)


def test_a_path_that_is_not_taken_refuses_nothing() -> None:
    right(refused_on_one_path, np.array([1.5, 0.5]), -1.0, backend="python")


def failures(one_of: int, backend: str = "python") -> list[str]:
    done = run(one_of, backend)
    return [f"{verdict}: {case} ({taken}) {detail}" for case, taken, verdict, detail in done if verdict.isupper()]


@pytest.mark.filterwarnings("ignore")
def test_a_sample_of_the_matrix() -> None:
    assert failures(101) == []


@pytest.mark.whole
@pytest.mark.filterwarnings("ignore")
def test_the_whole_matrix() -> None:
    assert failures(1) == []


@pytest.mark.compiled
@pytest.mark.filterwarnings("ignore")
def test_a_sample_compiled() -> None:
    assert failures(1801, "numba") == []
