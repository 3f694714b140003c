"""Programs that fail: the lowered program raises what plain Python raises."""

from __future__ import annotations

import dataclasses
from typing import Any

import numpy as np
import pytest

from tapegen.ir.printer import function_text
from tests.lowering import agree, lower

X = np.array([0.5, -1.5, 2.0, 0.25, -0.75])


def index_out_of_range(x, i):
    return x[i]


def tuple_out_of_range(x):
    return (x, x)[2]


def too_many_indices(x):
    return x[0, 1]


def float_index(x):
    return x[1.0]


def array_truth(x):
    if x > 0.0:
        return x
    return -x


def call_of_a_number(x):
    sum = x * 2.0
    return sum(x)


def half(x, *, k=0.5):
    return k * x


def missing_argument(x):
    return half()


def surplus_keyword(x):
    return half(x, z=1.0)


def unpacks_too_many(x):
    a, b, c = (x, x)
    return a


def no_such_key(x):
    return {"a": x}["b"]


def no_such_name(x):
    return x + undefined_name  # noqa: F821


@dataclasses.dataclass
class Mass:
    mass: float


def no_such_attribute(x):
    return Mass(x).weight


def step_of_zero(x):
    for i in range(0, 3, 0):
        x += i
    return x


def float_range(x):
    for i in range(x):
        x += i
    return x


def casts_in_place(idx):
    idx += 0.5
    return idx


def product_of_matrices(x):
    return x @ x


def shift(x):
    return x << 2


def negative_power_of_zero(x):
    return x * 0**-1


def into_a_broadcast_view(x):
    y = np.broadcast_to(x, (2, 3))
    y[0] = 1.0
    return y.sum()


def into_a_part_of_a_diagonal(x):
    y = np.diag(np.outer(x, x))[1:]
    y[0] = 1.0
    return y.sum()


FAILING: list[tuple[Any, ...]] = [
    (product_of_matrices, 0.5),
    (shift, 0.5),
    (negative_power_of_zero, 0.5),
    (into_a_broadcast_view, X),
    (into_a_part_of_a_diagonal, X),
    (index_out_of_range, X, 7),
    (tuple_out_of_range, 0.5),
    (too_many_indices, X),
    (float_index, X),
    (array_truth, X),
    (call_of_a_number, 0.5),
    (missing_argument, 0.5),
    (surplus_keyword, 0.5),
    (unpacks_too_many, 0.5),
    (no_such_key, 0.5),
    (no_such_name, 0.5),
    (no_such_attribute, 0.5),
    (step_of_zero, 0.5),
    (float_range, 0.5),
]


@pytest.mark.parametrize("program", FAILING, ids=lambda program: program[0].__name__)
def test_fails_as_python_does(program: tuple[Any, ...]) -> None:
    func, *args = program
    agree(func, *args)


def test_a_float_does_not_fit_into_integers_in_place() -> None:
    text = function_text(lower(casts_in_place, np.array([1, 2])).function)
    assert "raise TypeError(\"Cannot cast ufunc 'add' output" in text
