"""What compiled text leaves out because nothing reads it, and what must stay."""

from __future__ import annotations

import numpy as np
import pytest

import tapegen as tg

A = np.array([0.5, -1.5, 2.0])


def makes_an_array_of_a_list(x, a):
    items = []
    for i in range(len(a)):
        items.append(x * a[i])
    made = np.array(items)  # noqa: F841  (that is the point)
    return x * x + a[0]


def looks_at_sizes(x, a):
    filled = np.empty(len(a))
    for i in range(len(a)):
        filled[i] = a[i] * x
    return x * x * filled.size


def raises_in_what_nobody_reads(x, a):
    filled = np.empty(len(a))
    for i in range(len(a) + 1):
        filled[i] = a[i] * x
    return x * x


def adds_up_for_nobody(x, a):
    total, largest = 0.0, np.zeros(2)
    for i in range(len(a)):
        total = 0.5 * total + a[i]
        largest[1] = largest[0] + total
        largest[0] = largest[1]
    return x * x


@pytest.mark.parametrize(
    ("func", "value", "slope"),
    [(makes_an_array_of_a_list, 9.5, 6.0), (looks_at_sizes, 27.0, 18.0), (adds_up_for_nobody, 9.0, 6.0)],
)
def test_values_stay(func, value, slope):
    assert tg.value_and_grad(func, backend="numba")(3.0, A) == (value, slope)


def test_only_the_size_of_an_array_is_kept():
    text = str(tg.differentiable(looks_at_sizes).inspect(3.0, A).compiled)
    assert "filled[" not in text


def test_what_is_only_read_to_make_more_of_it_goes():
    text = str(tg.differentiable(adds_up_for_nobody).inspect(3.0, A).compiled)
    assert not any(name in text for name in ("total =", "largest", "for "))


def test_errors_stay():
    with pytest.raises(IndexError, match="index 3 is out of bounds for axis 0 with size 3"):
        tg.grad(raises_in_what_nobody_reads, backend="numba")(3.0, A)
