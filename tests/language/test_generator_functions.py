"""Generators of the user's functions: what their consumers may do, and what is refused."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest

import tapegen as tg
from tapegen.errors import NotDifferentiable, TapegenError, UnsupportedSyntax

X = np.array([0.4, 0.9, 1.3])


def running(x: np.ndarray) -> Iterator[np.ndarray]:
    total = np.zeros_like(x)
    for k in range(3):
        total = total + x * x[k]
        yield total


def reused(x: np.ndarray) -> Iterator[np.ndarray]:
    row = np.zeros(3)
    for k in range(3):
        row[k] = x[k]
        yield row


def of_items(items: list[float], x: np.ndarray) -> Iterator[Any]:
    for item in items:
        yield item * x


def halving(x: float) -> Iterator[float]:
    while x > 0.1:
        yield x
        x = x / 2.0


def taking(x: float) -> Iterator[float]:
    y = yield x
    yield y


def changes_what_is_read(x: np.ndarray) -> float:
    x, total = x.copy(), 0.0
    for item in running(x):
        x[0] = 2.0
        total = total + item.sum()
    return total


def changes_an_item(x: np.ndarray) -> float:
    total = 0.0
    for item in running(x):
        item *= 2.0
        total = total + item.sum()
    return total


def sees_a_row(x: np.ndarray) -> float:
    total = 0.0
    for row in reused(x):
        total = total + row.sum()
    return total


def adds_up_rows(x: np.ndarray) -> float:
    return sum(reused(x)).sum()


def lengthens_its_list(x: np.ndarray) -> float:
    items, total = [1.0, 2.0], 0.0
    for item in of_items(items, x):
        if len(items) < 4:
            items.append(3.0)
        total = total + item.sum()
    return total


def lengthens_a_growing_list(x: np.ndarray) -> float:
    items, total = [], 0.0
    for k in range(len(x)):
        items.append(x[k])
    for item in of_items(items, x):
        items.append(2.0)
        total = total + item.sum()
        if total > 100.0:
            break
    return total


def sorts_an_item(x: np.ndarray) -> float:
    total = 0.0
    for item in running(x):
        item.sort()
        total = total + item[0]
    return total


def rebinds_what_is_read(x: np.ndarray) -> float:
    scale, total = 1.0, 0.0

    def scaled() -> Iterator[np.ndarray]:
        for k in range(3):
            yield x[k] * scale

    for item in scaled():
        scale = scale + item
        total = total + item
    return total


def goes_on_for_ever(x: np.ndarray) -> float:
    total = 0.0
    for item in halving(x[0]):
        total = total + item
    return total


def sends(x: np.ndarray) -> float:
    return sum(taking(x[0]))


def asks_twice(x: np.ndarray) -> float:
    made = running(x)
    first = sum(item.sum() for item in made)
    return first + sum(item.sum() for item in made)


def asks_in_a_loop(x: np.ndarray) -> float:
    made, total = running(x), 0.0
    for _ in range(len(x)):
        for item in made:
            total = total + item.sum()
    return total


@pytest.mark.parametrize(
    ("function", "kind", "message"),
    [
        (changes_what_is_read, NotDifferentiable, "changes what the generator"),
        (changes_an_item, NotDifferentiable, "changes what the generator"),
        (sees_a_row, NotDifferentiable, "may change between two items"),
        (adds_up_rows, NotDifferentiable, "may change between two items"),
        (lengthens_its_list, NotDifferentiable, "changes what the generator"),
        (lengthens_a_growing_list, NotDifferentiable, "changes what the generator"),
        (sorts_an_item, NotDifferentiable, "changes what the generator"),
        (rebinds_what_is_read, NotDifferentiable, "may change between two items"),
        (goes_on_for_ever, UnsupportedSyntax, "yields in a 'while' loop"),
        (sends, UnsupportedSyntax, "sent to a generator"),
        (asks_twice, NotDifferentiable, "gives its items once"),
        (asks_in_a_loop, NotDifferentiable, "gives its items once"),
    ],
    ids=lambda part: getattr(part, "__name__", ""),
)
def test_what_would_be_seen_between_two_items_is_refused(
    function: Callable[..., Any], kind: type[TapegenError], message: str
) -> None:
    with pytest.raises(kind, match=message) as caught:
        tg.grad(function, backend="python")(X.copy())
    assert caught.value.span is not None
    assert caught.value.advice


def test_a_list_of_one_array_holds_it_several_times() -> None:
    def rows(x: np.ndarray) -> float:
        return sum(row.sum() for row in list(reused(x)))

    assert np.allclose(tg.grad(rows, backend="python")(X), 3.0)


def test_a_loop_may_store_elsewhere() -> None:
    def stored(x: np.ndarray) -> float:
        out = np.zeros((3, 3))
        for k, item in enumerate(running(x)):
            out[k] = item
        return np.sum(out * out)

    tg.check_grads(stored, X)


def test_a_generator_function_itself_has_a_list_as_its_value() -> None:
    value, pullback = tg.vjp(running, X, backend="python")
    assert isinstance(value, list)
    assert all(map(np.array_equal, value, running(X)))
    weights = [np.full(3, float(k)) for k in range(3)]
    along = 2.0 * sum(np.sum(weight * item) for weight, item in zip(weights, value, strict=True))  # of degree two
    assert pullback(weights) @ X == pytest.approx(along)


def test_a_generator_that_is_returned_is_a_list() -> None:
    def made(x: np.ndarray) -> Iterator[np.ndarray]:
        return running(x * x)

    assert all(map(np.array_equal, tg.differentiable(made, backend="python")(X), running(X * X)))


def test_every_trip_may_make_a_generator() -> None:
    def repeated(x: np.ndarray) -> float:
        total = 0.0
        for k in range(len(x)):
            for item in running(x * x[k]):
                total = total + np.sin(item).sum()
        return total

    tg.check_grads(repeated, X)
