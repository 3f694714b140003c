"""Classes that decide themselves what Python's syntax means, and copies: as in Python, or refused."""

from __future__ import annotations

import copy
import dataclasses
import functools
import operator
from typing import Any

import numpy as np
import pytest

from tapegen import check_grads, differentiable
from tapegen.errors import AliasError, BadArgument, NotDifferentiable, TapegenError
from tests.lowering import agree, lower

X = np.array([0.5, -1.5, 2.0, 0.25])


class Vector:
    def __init__(self, v):
        self.v = v
        self.parts = [v]
        self.made = 0

    def __contains__(self, k):
        return k == 2

    def __lshift__(self, other):
        return self.v * other

    def __rsub__(self, other):
        return other * self.v

    def __str__(self):
        return "vector"

    @functools.cached_property
    def double(self):
        self.made += 1
        return self.v * 2.0


class Deferred(Vector):
    __array_ufunc__ = None


class Answers:
    def __init__(self, v):
        self.v = v

    def __getattribute__(self, name):
        return 5.0


class Copied:
    def __init__(self, v):
        self.v = v

    def __copy__(self):
        return Copied(self.v * 2.0)


@dataclasses.dataclass(frozen=True)
class Frozen:
    u: float
    w: float = 0.0
    d: float = dataclasses.field(init=False)

    def __post_init__(self):
        object.__setattr__(self, "w", self.u * 2.0)
        object.__setattr__(self, "d", self.u * 3.0)


class Doubling(dict):
    def __getitem__(self, key):
        return 2.0 * super().__getitem__(key)


class Seven(list):
    def __len__(self):
        return 7


class Named(dict):
    def area(self):
        return 3.0


SEVEN = Seven([1.0])
NAMED = Named(a=2.0)


# ---- as in Python ----------------------------------------------------------------------------------------------------


def containment(x):
    return 2 in Vector(x[0]), 3 not in Vector(x[0]), Vector(x[0]) << 2.0


def arrays_that_defer(x):
    return x - Deferred(x[1])


def a_cached_property_once(x):
    a = Vector(x[0])
    first = a.double
    a.v = 100.0
    return first, a.double, a.made


def fields_of_a_frozen_dataclass(x):
    a = Frozen(x[0])
    return a.u, a.w, a.d


def a_dict_with_more_methods(x):
    return x[0] * NAMED["a"]


def copies(x):
    a = [x[0], [x[1]]]
    b, c = copy.copy(a), copy.deepcopy(a)
    b[1][0] = 7.0
    b.append(1.0)
    return a, b, c


def copies_of_objects(x):
    a = Vector(x[0])
    b, c = copy.copy(a), copy.deepcopy(a)
    b.parts.append(1.0)
    b.v = 3.0
    c.parts[0] = 5.0
    return a.v, a.parts, b.v, c.v, c.parts


def copies_of_arrays(x):
    y, z = copy.deepcopy(x), copy.copy(x)
    y[0], z[1] = 3.0, 4.0
    return x, y, z


def a_deep_copy_keeps_what_is_one(x):
    inner = [x[0]]
    made = copy.deepcopy([inner, inner])
    made[0][0] = 9.0
    return made, inner


def reductions(x):
    return (
        functools.reduce(lambda a, b: a * b + 1.0, [x[0], x[1], x[2]]),
        functools.reduce(lambda a, b: a * b + 1.0, x),
        functools.reduce(operator.mul, x, 3.0),
        functools.reduce(max, x),
    )


def order_of_equals(x):
    items = [(1, x[0]), (0, x[1]), (1, x[2]), (0, x[3])]
    items.sort(key=lambda item: item[0])
    down = sorted([x[0], x[1], x[2], x[3]], key=lambda v: v > 0.0, reverse=True)
    return items[0][1], items[1][1], items[2][1], items[3][1], down


def order_of_many(x):
    made = np.concatenate((x, x * x, np.sin(x), x - 1.0, x * 3.0))
    return sorted(made), sorted(made[:7], reverse=True), sorted(made[:1]), sorted(made[:0])


def order_of_pairs(x):
    items = sorted([(x[0], 1.0), (x[1], x[2]), (x[0], x[1])])
    return items[0][1], items[1][1], items[2][1]


@pytest.mark.parametrize(
    "func",
    [
        containment,
        arrays_that_defer,
        a_cached_property_once,
        fields_of_a_frozen_dataclass,
        a_dict_with_more_methods,
        copies,
        copies_of_objects,
        copies_of_arrays,
        a_deep_copy_keeps_what_is_one,
        reductions,
        order_of_equals,
        order_of_many,
        order_of_pairs,
    ],
)
def test_it_is_as_in_python(func: Any) -> None:
    agree(func, X)


# ---- refused ---------------------------------------------------------------------------------------------------------


def text_of_an_object(x):
    return {"vector": x[0], "<Vector>": x[1]}[f"{Vector(x[2])}"]


@pytest.mark.parametrize(
    ("func", "kind", "reason"),
    [
        (lambda x: (x - Vector(x[1]))[0], NotDifferentiable, "to each element of the array"),
        (lambda x: Answers(x[0]).v, NotDifferentiable, "defines its own '__getattribute__'"),
        (lambda x: copy.copy(Copied(x[0])).v, NotDifferentiable, "copies itself ('__copy__')"),
        (lambda x: x[0] * len(SEVEN), BadArgument, "'Seven' is a list that defines '__len__'"),
        (text_of_an_object, NotDifferentiable, "a key of a dict"),
    ],
)
def test_it_is_refused_at_its_place(func: Any, kind: type[TapegenError], reason: str) -> None:
    with pytest.raises(kind) as refusal:
        lower(func, X)
    assert reason in refusal.value.reason  # the text of the error quotes this file too
    assert refusal.value.span is not None
    assert refusal.value.advice


def test_an_argument_that_is_a_container_of_its_own_kind() -> None:
    with pytest.raises(BadArgument, match="'Doubling' is a dict that defines '__getitem__'"):
        lower(lambda x, d: x[0] * d["a"], X, Doubling(a=3.0))


# ---- results that share memory with an argument ----------------------------------------------------------------------


def conjugate_of_a_real_array(x):
    y = x.conj()
    y[0] = 9.0
    z = np.conj(x)
    z[1] = 4.0
    return x[0] * x[1] * x[0].conj()


def test_a_real_array_is_its_own_conjugate() -> None:
    agree(conjugate_of_a_real_array, X)


def differences_of_order_zero(x):
    y = np.diff(x, n=0)
    y[0] = 9.0
    return x[0] * x[1] * x[1]


def test_differences_of_order_zero_are_the_array_itself() -> None:
    agree(differences_of_order_zero, X)


@pytest.mark.parametrize(
    "view",
    [
        lambda x: np.einsum("ij->ji", x),
        lambda x: np.linalg.matrix_power(x, 1),
        lambda x: np.float64(x),
    ],
)
def test_a_result_that_may_be_the_argument_is_not_written(view: Any) -> None:
    def through(x):
        y = view(x)
        y[0, 1] = 9.0
        return x[0, 1] * x[1, 0]

    with pytest.raises(AliasError, match="may share memory"):
        differentiable(through, backend="python", cache=False).grad(X.reshape(2, 2))


def test_two_names_of_an_array_are_called_what_the_user_calls_them() -> None:
    def through(array):
        array = array * 2.0
        turned = np.einsum("ij->ji", array)
        turned = np.einsum("ij->ji", turned)
        turned[0, 1] = 9.0
        return array[0, 1] * array[1, 0]

    with pytest.raises(AliasError, match="'turned' and 'array' may share memory"):
        differentiable(through, backend="python", cache=False).grad(X.reshape(2, 2))


def test_a_product_is_new_memory() -> None:
    def product(x):
        y = np.einsum("ij,jk->ik", x, x)
        y[0, 0] = 3.0
        return (y * x).sum()

    check_grads(product, X.reshape(2, 2))


class _Counter:
    def __init__(self, count: float) -> None:
        self.count = count

    def step(self, by: float) -> float:
        self.count = self.count * by
        return self.count


def test_a_method_of_an_object_of_the_last_trip_says_what_to_keep() -> None:
    def stepped(x: float, n: int) -> float:
        for k in range(n):
            step = _Counter(x * (k + 1)).step
        return step(2.0)

    with pytest.raises(TapegenError, match=r"'step' is a method of an object(.|\n)*Keep the object itself"):
        differentiable(stepped, backend="python").vjp(0.4, 3)


@dataclasses.dataclass
class _Pair:
    a: Any
    b: Any


def test_an_object_that_an_array_replaces_in_a_loop_is_refused() -> None:
    """Where the name holds an array, it never has the attribute: the store there has nothing to write into."""

    def replaced(v: Any, m: Any, pair: Any) -> Any:
        for _ in m:
            pair.b *= pair.a
            pair = (0 - v)[-1, ...]
        return np.sum(v)

    with pytest.raises(BadArgument, match="cannot be set here"):
        differentiable(replaced, backend="python").grad(X, np.ones((1, 3)), _Pair(X.copy(), 1.37))
