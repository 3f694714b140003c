"""An object that is an argument of a call and is read from outside of the function as well.

What is written through the argument is never read back as it was before: such a call is refused, and writes nothing.
Objects that differ, and other items of the same one, are read as in plain Python.
"""

from __future__ import annotations

import copy
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import pytest

import tapegen as tg
from tapegen.errors import AliasError

given: Any = None
around: dict[str, Any] = {"given": None}


class Holder:
    given: Any = None


def item_of_dict(x, u):
    u["a"] = 2.0 * x
    return given["a"] * x


def new_item_of_dict(x, u):
    u["new"] = 2.0 * x
    return sum(given.values()) * x


def number_of_items(x, u):
    u["new"] = 2.0 * x
    return len(given) * x


def item_that_is_missing(x, u):
    u["new"] = 2.0 * x
    return x if "new" in given else x * x


def removed_item(x, u):
    del u["a"]
    return given.get("a", 7.0) * x


def dict_inside(x, u):
    u["a"] = 2.0 * x
    return around["given"]["a"] * x


def attribute(x, u):
    u.a = 2.0 * x
    return given.a * x


def attribute_of_class(x, u):
    u.a = 2.0 * x
    return Holder.given.a * x


def new_attribute(x, u):
    u.new = 2.0 * x
    return x if hasattr(given, "new") else x * x


def length_of_list(x, u):
    u.append(x)
    return len(given) * x


def last_of_list(x, u):
    u[1] = 2.0 * x
    return given[-1] * x


def moved_items(x, u):
    u.pop(0)
    return given[0] * x


def sum_of_list(x, u):
    u[0] = x
    return sum(given) * x


DICT, LIST, OBJECT = (lambda: {"a": 1.5, "b": 2.5}), (lambda: [1.5, 2.5]), (lambda: SimpleNamespace(a=1.5, b=2.5))

CASES: list[tuple[Callable[..., float], Callable[[], Any]]] = [
    *((f, DICT) for f in (item_of_dict, new_item_of_dict, number_of_items, item_that_is_missing, removed_item)),
    (dict_inside, DICT),
    *((f, OBJECT) for f in (attribute, attribute_of_class, new_attribute)),
    *((f, LIST) for f in (length_of_list, last_of_list, moved_items, sum_of_list)),
]


@pytest.fixture(autouse=True)
def _nothing_given(monkeypatch):
    monkeypatch.setattr(Holder, "given", None)
    monkeypatch.setitem(around, "given", None)
    monkeypatch.setitem(globals(), "given", None)


def give(value: Any) -> None:
    global given
    given = around["given"] = Holder.given = value


@pytest.mark.parametrize(("f", "make"), CASES, ids=lambda case: getattr(case, "__name__", ""))
def test_one_object_under_two_names_is_refused(f: Callable[..., float], make: Callable[[], Any]) -> None:
    apart = make()
    give(make())
    expected = f(3.0, copy.deepcopy(apart))
    decorated = tg.differentiable(f, backend="python")
    value, _ = decorated.value_and_grad(3.0, apart)
    assert value == expected
    assert apart != make()
    assert given == make()
    for _ in range(2):  # the program is at hand by now
        with pytest.raises(AliasError, match="is written, and the object that it belongs to is also read as"):
            decorated.value_and_grad(3.0, given)
        assert given == make()
    other = make()
    assert decorated.value_and_grad(3.0, other)[0] == expected
    with pytest.raises(AliasError):
        tg.grad(f, backend="python")(3.0, given)
    with pytest.raises(AliasError):
        tg.jvp(f, (3.0, given), (1.0, None), backend="python")


class Counting:
    """A method counts, and calls a function that reads other attributes of the same object."""

    def __init__(self, factor: float) -> None:
        self.calls, self.factor, self.doubled = 0, factor, 0.0
        self.scaled = lambda u: self.factor * u
        self.counted = lambda u: self.doubled * u

    def loss(self, x: float) -> float:
        self.calls += 1
        return self.scaled(x) * x

    def stale(self, x: float) -> float:
        self.doubled = 2.0 * x
        return self.counted(x)


def test_other_attributes_may_be_read() -> None:
    objective = Counting(1.5)
    loss = tg.differentiable(objective.loss, backend="python")
    for calls in (1, 2, 3):
        assert loss.value_and_grad(3.0) == (13.5, 9.0)
        assert objective.calls == calls
    with pytest.raises(AliasError, match=r"'self\.doubled' is written, .* also read as 'self'"):
        tg.grad(objective.stale, backend="python")(3.0)
    assert objective.doubled == 0.0


def other_item(x, u):
    u["a"] = 2.0 * x
    return given["b"] * u["a"]


def test_other_items_may_be_read() -> None:
    give({"a": 1.5, "b": 2.5})
    assert tg.value_and_grad(other_item, backend="python")(3.0, given) == (15.0, 5.0)
    assert given == {"a": 6.0, "b": 2.5}
