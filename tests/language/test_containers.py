"""Iterators, containers and objects behave as Python's do, or are refused: nothing is silently left out."""

from __future__ import annotations

import dataclasses
from typing import Any, NamedTuple

import numpy as np
import pytest

from tapegen import differentiable
from tapegen.errors import NotDifferentiable, TapegenError
from tests.lowering import agree, lower

X = np.array([0.5, -1.5, 2.0, 0.25])


class Box:
    def __init__(self, v):
        self.v = v


class Sum:
    def __init__(self, v):
        self.v = v
        self.changes = 0

    def __add__(self, other):
        return Sum(self.v + other)

    def __iadd__(self, other):
        self.v = self.v + other * 10.0
        self.changes += 1
        return self


class Open:
    def __init__(self, v):
        self.v = v

    def __getattr__(self, name):
        return 3.0 if name == "three" else 5.0


@dataclasses.dataclass(order=True)
class Pair:
    a: float
    b: float


@dataclasses.dataclass
class Scaled:
    a: float
    by: dataclasses.InitVar[float] = 2.0
    seen: list = dataclasses.field(default_factory=list)
    table: np.ndarray = dataclasses.field(default_factory=lambda: np.zeros(2))

    def __post_init__(self, by):
        self.a = self.a * by


class Point(NamedTuple):
    u: float
    v: float = 2.0


class Tripled(Point):
    def __new__(cls, u):
        return super().__new__(cls, u * 3.0)


class Made:
    def __new__(cls, v):
        made = super().__new__(cls)
        made.k = v
        return made


class Doubling(type):
    def __call__(cls, v):
        return super().__call__(v * 2.0)


class Doubled(metaclass=Doubling):
    def __init__(self, v):
        self.v = v


# ---- as in Python ----------------------------------------------------------------------------------------------------


def length_of_a_range_without_trips(x, n):
    return x[0] * len(range(2, n))


def lengths_of_ranges_with_steps(x, n):
    return len(range(0, n, 2)), len(range(n, 0, -3)), len(range(1, n, 3)), len(range(n, -2, -1)), x[0]


def sum_from_a_start(x):
    return sum(x, start=5.0) + sum((x[0], x[1]), 1.0)


def sum_of_one_array_is_a_new_one(x):
    total = sum([x])
    total[0] = 7.0
    return total[0] + x[0]


def sum_of_bools_is_an_integer(x):
    return sum([x[0] > 0.0, x[1] > 0.0]), sum([x > 0.0])


def iterators_gone_through_once(x):
    pairs = zip(x[1:], x, strict=False)
    total = 0.0
    for a, b in pairs:
        total += a * b
    doubled = map(abs, [x[0], x[1]])
    return total, sum(doubled), list(enumerate([x[2], x[3]])), max(map(abs, [x[0], x[1]]))


def an_iterator_on_one_of_two_paths(x):
    pairs = zip([1.0, 2.0], [x[0], x[1]], strict=True)
    total = 0.0
    if x[0] > 0.0:
        for a, b in pairs:
            total += a * b
    else:
        for a, b in pairs:
            total -= a * b
    return total


def lengths_that_must_be_equal(x):
    total = 0.0
    for a, b in zip(x, x[2:], strict=True):
        total += a * b
    return total


def length_of_an_iterator(x):
    return x[0] * len(zip([1], [2], strict=True))


def texts_of_constants(x):
    table = {format(1.5, ".2f"): x[0], repr("a"): x[1]}
    return table["1.50"], table["'a'"]


def owner_of_an_augmented_attribute_once(x):
    box, calls = Box(x[0]), []

    def found():
        calls.append(1.0)
        return box

    found().v += 1.0
    return box.v, len(calls)


def lists_and_dicts_change_in_place(x):
    a = [x[0], x[1]]
    b = a
    b *= 2
    c = {"u": x[0]}
    d = c
    d |= {"v": x[1], "u": x[2]}
    return len(a), a[3], c["u"], c["v"], {"w": x[3]} | c


def objects_change_in_place(x):
    a = Sum(x[0])
    b = a
    b += x[1]
    return a.v, a.changes


def tuples_in_order(x):
    return (
        (x[0], x[1]) < (x[0], x[2]),
        [x[0], 1.0] >= [x[0]],
        (1, x[0]) > (1, x[1], x[2]),
        Pair(x[0], 1.0) < Pair(x[2], 0.0),
    )


def dicts_of_pairs(x):
    table = {"a": x[0]}
    table.update([("a", x[1]), ("b", x[2])], c=x[3])
    return table, table.setdefault("d"), dict(enumerate([x[0], x[1]]))


def conversion_without_a_copy(x):
    y = x.astype(float, copy=False)
    y[0] = 9.0
    z = x.astype(np.float32, copy=False)
    z[1] = 3.0
    return x[0] * x[1]


def items_changed_while_they_are_gone_through(x):
    items = [x[0], x[1], x[2]]
    total = 0.0
    for v in items:
        items[2] = items[2] * 2.0
        total += v
    return total


def a_copy_gone_through(x):
    items = [x[0], x[1]]
    for v in list(items):
        items.append(v * 2.0)
    return items


def attributes_as_they_are_asked_for(x):
    found = Open(x[0])
    return found.v * found.three + found.five


def dataclasses_with_more_than_fields(x):
    p, q = Scaled(x[0], 3.0), Scaled(x[1])
    p.seen.append(x[2])
    p.table[0] = x[3]
    return p.a + q.a, p.seen, len(q.seen), q.table[0]


@pytest.mark.parametrize(
    "func",
    [
        sum_from_a_start,
        sum_of_one_array_is_a_new_one,
        sum_of_bools_is_an_integer,
        iterators_gone_through_once,
        an_iterator_on_one_of_two_paths,
        texts_of_constants,
        owner_of_an_augmented_attribute_once,
        lists_and_dicts_change_in_place,
        objects_change_in_place,
        tuples_in_order,
        dicts_of_pairs,
        conversion_without_a_copy,
        items_changed_while_they_are_gone_through,
        a_copy_gone_through,
        attributes_as_they_are_asked_for,
        dataclasses_with_more_than_fields,
    ],
)
def test_it_is_as_in_python(func: Any) -> None:
    agree(func, X)


@pytest.mark.parametrize("n", [1, 2, 5])
def test_a_range_whose_bounds_cross_has_no_items(n: int) -> None:
    agree(length_of_a_range_without_trips, X, n)


@pytest.mark.parametrize("n", [-3, 0, 1, 2, 3, 7])
def test_the_length_of_a_range_with_steps(n: int) -> None:
    agree(lengths_of_ranges_with_steps, X, n, lowered_for=(X, 5))


@pytest.mark.parametrize("func", [lengths_that_must_be_equal, length_of_an_iterator])
def test_it_raises_as_python_does(func: Any) -> None:
    with pytest.raises((ValueError, TypeError)) as plain:
        func(X)
    with pytest.raises(plain.type) as got:
        differentiable(func, backend="python", cache=False).value_and_grad(X)
    assert str(got.value) == str(plain.value)


# ---- refused ---------------------------------------------------------------------------------------------------------


def mapped_twice(x):
    doubled = map(abs, [x[0], x[1]])
    return sum(doubled) + sum(doubled)


def zipped_twice(x):
    pairs = zip(x, x, strict=True)
    total = 0.0
    for a, _ in pairs:
        total += a
    for _, b in pairs:
        total += b
    return total


def reversed_twice(x):
    back = reversed(x)
    return sum(back) + sum(back)


def enumerated_on_every_trip(x):
    pairs = enumerate(x)
    total = 0.0
    for _ in range(3):
        for k, v in pairs:
            total += k * v
    return total


def longer_while_gone_through(x):
    items = list(x)
    total = 0.0
    for v in items:
        total += v
        if len(items) < 8:
            items.append(v * 2.0)
    return total


def shorter_while_gone_through(x):
    items = [x[0], x[1], x[2], x[3]]
    total = 0.0
    for v in items:
        total += v
        items.pop()
    return total


def position_after_another_one(x):
    return x[0] * [1, 2, 1].index(1, 1)


def dict_of_unknown_length(x):
    return sum(dict(enumerate(x)).values())


def repeated_in_place_as_often_as_a_value_says(x, n):
    items = [x[0]]
    items *= n
    return len(items)


def attribute_that_may_be_made(x):
    return x[0] if hasattr(Open(x[1]), "anything") else x[1]


def length_of_a_dict_with_a_key_on_one_path(x):
    table = {"a": x[0]}
    if x[1] < 0.0:
        table["b"] = x[2]
    return len(table) * x[0]


def truth_of_a_dict_with_a_key_of_some_trips(x):
    table = {}
    for v in x:
        if v > 0.0:
            table["k"] = v
    return x[0] if table else x[1]


def keys_that_add_up(x):
    table = {1: x[0]}
    if x[1] < 0.0:
        table[2] = x[2]
    return sum(table) * x[0]


def a_dict_with_a_key_on_one_path(x):
    table = {"a": x[0]}
    if x[1] < 0.0:
        table["b"] = x[2]
    return table


def an_attribute_on_one_path(x):
    box = Box(x[0])
    if x[1] < 0.0:
        box.w = x[2]
    return box.w


@pytest.mark.parametrize(
    ("func", "reason"),
    [
        (length_of_a_dict_with_a_key_on_one_path, "the keys of this dict are not the same"),
        (truth_of_a_dict_with_a_key_of_some_trips, "the keys of this dict are not the same"),
        (keys_that_add_up, "the keys of this dict are not the same"),
        (a_dict_with_a_key_on_one_path, "the keys of this dict are not the same"),
        (an_attribute_on_one_path, "the attributes of this 'Box' are not the same"),
        (mapped_twice, "gives its items once"),
        (zipped_twice, "gives its items once"),
        (reversed_twice, "gives its items once"),
        (enumerated_on_every_trip, "gives its items once"),
        (longer_while_gone_through, "may change its length"),
        (shorter_while_gone_through, "may change its length"),
        (position_after_another_one, "'index' of a list is not supported with these arguments"),
        (dict_of_unknown_length, "the number of keys"),
        (attribute_that_may_be_made, "makes attributes"),
        (lambda x: Tripled(x[0]).u, "defines its own '__new__'"),
        (lambda x: Made(x[0]).k, "defines its own '__new__'"),
        (lambda x: Doubled(x[0]).v, "metaclass"),
    ],
)
def test_it_is_refused_at_its_place(func: Any, reason: str) -> None:
    with pytest.raises(TapegenError) as refusal:
        lower(func, X)
    assert reason in refusal.value.reason  # the text of the error quotes this file too
    assert refusal.value.span is not None
    assert refusal.value.advice


def test_a_list_repeated_in_place_needs_a_known_count() -> None:
    with pytest.raises(NotDifferentiable, match="known here"):
        lower(repeated_in_place_as_often_as_a_value_says, X, 2)
