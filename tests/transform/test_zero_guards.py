"""Zeros that a selection makes win over infinite partial derivatives, zeros that are computed do not."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest

import tapegen as tg
from tapegen import differentiable
from tests.judged import both
from tests.zero_rule import slope

Function = Callable[..., Any]

INFINITE: dict[str, tuple[Function, float]] = {
    "root": (lambda v: np.sqrt(v), 0.0),
    "inverse": (lambda v: 1.0 / v, 0.0),
    "logarithm": (lambda v: np.log(v), 0.0),
    "overflow": (lambda v: np.exp(v), 1000.0),
    "angle": (lambda v: np.arctan(1.0 / v), 0.0),
    "power": (lambda v: v**0.5, 0.0),
    "entropy": (lambda v: v * np.log(v), 0.0),
}
"""Operations, and where their derivatives are infinite."""

AFTER: dict[str, Function] = {
    "nothing": lambda s: s,
    "square": lambda s: s**2,
    "product": lambda s: s * s,
    "arctan": lambda s: np.arctan(s),
    "logarithm": lambda s: np.log(1.0 + s),
    "inverse": lambda s: 1.0 / s,
}
"""What makes zeros of cotangents by computation."""


def stored_first(x: Any, v: Any) -> Any:
    w = v.copy()
    w[0] = 7.0
    return w


def stored_last(x: Any, v: Any) -> Any:
    w = v.copy()
    w[1] = 7.0
    return w


OF_NUMBERS: dict[str, Function] = {
    "all": lambda x, v: v,
    "line": lambda x, v: 2.0 * v + 1.0,
    "where_taken": lambda x, v: np.where(x >= -1.0, v, 0.0),
    "where_left": lambda x, v: np.where(x > 5000.0, v, 0.0),
    "where_mixed": lambda x, v: np.where(x > 1.5, v, x),
    "where_other": lambda x, v: np.where(x > 5000.0, 0.0, v),
    "mask": lambda x, v: v * (x > 5000.0),
    "mask_of_ones": lambda x, v: v * (x > -1.0),
    "zero": lambda x, v: 0.0 * v,
    "maximum": lambda x, v: np.maximum(v, -5.0),
    "minimum": lambda x, v: np.minimum(v, 5.0),
    "clip": lambda x, v: np.clip(v, -5.0, 5.0),
}
OF_ARRAYS: dict[str, Function] = {
    "rest": lambda x, v: v[1:],
    "head": lambda x, v: v[:1],
    "first": lambda x, v: v[0],
    "last": lambda x, v: v[1],
    "index": lambda x, v: v[np.array([1, 1])],
    "chosen": lambda x, v: v[x > 1.5],
    "stored_first": stored_first,
    "stored_last": stored_last,
}
"""Selections among the elements of a value that was made of `x`."""


def whole(infinite: Function, after: Function, selected: Function) -> Function:
    return lambda x: np.sum(selected(x, after(infinite(x))))


def before(infinite: Function, after: Function, selected: Function) -> Function:
    return lambda x: np.sum(after(infinite(selected(x, x))))


def twice(infinite: Function, after: Function, selected: Function) -> Function:
    def program(x: Any) -> Any:
        s = infinite(x)
        return np.sum(selected(x, after(s))) + np.sum(np.where(x > 5000.0, s, 0.0))

    return program


def used_and_selected(infinite: Function, after: Function, selected: Function) -> Function:
    def program(x: Any) -> Any:
        s = infinite(x)
        return np.sum(selected(x, s)) + np.sum(after(s))

    return program


def in_a_loop(infinite: Function, after: Function, selected: Function) -> Function:
    def program(x: Any) -> Any:
        total = 0.0
        for i in range(x.size):
            total += selected(x[i], after(infinite(x[i])))
        return total

    return program


def carried(infinite: Function, after: Function, selected: Function) -> Function:
    def program(x: Any) -> Any:
        total = 0.0
        for i in range(2):
            s = infinite(x[i])
            total = total + 1.0
            total = total * 0.5 + selected(x[i], after(s))
        return total

    return program


def stored_elements(infinite: Function, after: Function, selected: Function) -> Function:
    def program(x: Any) -> Any:
        y = np.zeros_like(x)
        for i in range(x.size):
            y[i] = selected(x[i], after(infinite(x[i])))
        return np.sum(y)

    return program


def branch(infinite: Function, after: Function, selected: Function) -> Function:
    def program(x: Any) -> Any:
        total = 0.0 * x[0]
        for i in range(x.size):
            t = after(infinite(x[i]))
            if x[i] > 1.5 and x[i] < 999.0:
                total += selected(x[i], t)
        return total

    return program


FORMS = (whole, before, twice, used_and_selected, in_a_loop, carried, stored_elements, branch)
OF_WHOLE_ARRAYS = (whole, before, twice, used_and_selected)


def programs() -> Iterator[tuple[str, Function, np.ndarray]]:
    for form in FORMS:
        selections = OF_NUMBERS | OF_ARRAYS if form in OF_WHOLE_ARRAYS else OF_NUMBERS
        for infinite, after, selected in itertools.product(INFINITE, AFTER, selections):
            if infinite == "overflow" and after == "inverse":
                continue  # a quotient that vanishes, see below
            if form is before and selected in ("mask", "zero"):
                continue  # a product of an infinite cotangent with a zero is a plain one
            func, point = INFINITE[infinite]
            program = form(func, AFTER[after], selections[selected])
            yield f"{form.__name__}-{infinite}-{after}-{selected}", program, np.array([point, 2.0])


def on_a_tape(program: Function, x: np.ndarray) -> Any:
    source = tg.constant(x)
    with tg.GradientTape() as tape:
        tape.watch(source)
        result = program(source)
    return tape.gradient(result, source, unconnected_gradients="zero").numpy()


def judge(chosen: Iterator[tuple[str, Function, np.ndarray]], backend: str) -> None:
    wrong = []
    with np.errstate(all="ignore"):
        for name, program, x in chosen:
            if backend == "tape" and "stored" in name:
                continue  # tensors do not change
            found = on_a_tape(program, x) if backend == "tape" else differentiable(program, backend=backend).grad(x)
            if not np.allclose(found, slope(program, x), rtol=1e-12, atol=0.0, equal_nan=True):
                wrong.append((name, found, slope(program, x)))
    assert not wrong


@pytest.mark.whole
@pytest.mark.parametrize("start", range(10))
@pytest.mark.parametrize("backend", ["python", "tape"])
def test_every_zero(start: int, backend: str) -> None:
    judge(itertools.islice(programs(), start, None, 10), backend)


@pytest.mark.parametrize("backend", ["python", "tape"])
def test_some_zeros(backend: str) -> None:
    judge(itertools.islice(programs(), 5, None, 53), backend)


@pytest.mark.compiled
def test_some_zeros_compiled() -> None:
    judge(itertools.islice(programs(), 5, None, 211), "numba")


def softplus(x: Any) -> Any:
    return np.log(1 + np.exp(x))


def root_squared(x: Any) -> Any:
    return np.sqrt(x) ** 2


def turned(x: Any) -> Any:
    return np.arctan(1 / x)


def softplus_where_positive(x: Any) -> Any:
    return np.where(x > 0, np.log(1 + np.exp(x)), x)


COMPUTED = ((softplus, 1000.0), (root_squared, 0.0), (turned, 0.0), (softplus_where_positive, 1000.0))


@pytest.mark.parametrize(("func", "x"), COMPUTED, ids=lambda value: getattr(value, "__name__", ""))
@both
def test_zeros_that_were_computed(func: Function, x: float, backend: str) -> None:
    """TensorFlow, JAX and torch say NaN; 0 would be wrong."""
    with np.errstate(all="ignore"):
        assert np.isnan(differentiable(func, backend=backend).grad(np.float64(x)))
        assert np.isnan(differentiable(lambda v: np.sum(func(v)), backend=backend).grad(np.array([x, 2.0]))[0])


def quotient(x: Any) -> Any:
    return np.sum(3.0 / (1.0 + 2.0 * np.exp(x)) ** 2)


def of_an_inverse(x: Any) -> Any:
    return np.sum(1.0 / (1.0 / x))


@both
def test_a_quotient_that_vanishes(backend: str) -> None:
    """What grows as an exponential takes its derivative along; what has a pole does not."""
    with np.errstate(all="ignore"):
        np.testing.assert_array_equal(differentiable(quotient, backend=backend).grad(np.array([1000.0])), [0.0])
        assert np.isnan(differentiable(of_an_inverse, backend=backend).grad(np.zeros(1))).all()


def share_of_the_masked(x: Any) -> Any:
    weights = np.exp(np.where(x > 0.0, x, -np.inf))
    return np.sum(weights * x) / np.sum(weights)


@both
def test_masks_before_exponentials(backend: str) -> None:
    with np.errstate(all="ignore"):
        found = differentiable(share_of_the_masked, backend=backend).grad(np.array([0.5, -1.0, 2.0]))
    p = np.exp([0.5, 2.0]) / np.sum(np.exp([0.5, 2.0]))
    mean = p @ [0.5, 2.0]
    first, last = p * (1.0 + np.array([0.5, 2.0]) - mean)
    np.testing.assert_allclose(found, [first, 0.0, last], rtol=1e-14)


def test_the_text_tests_where_the_selection_is_left() -> None:
    text = str(differentiable(softplus_where_positive, backend="python").inspect(np.float64(1.0)).joint)
    assert "x_total_bar = log_x_bar / (1 + exp_x) if log_x_bar != 0.0 else 0.0" in text
    assert "x_total_bar * exp_x if log_x_bar != 0.0 else 0.0" in text
    assert "!= 0.0" not in str(differentiable(softplus, backend="python").inspect(np.float64(1.0)).joint)


@both
def test_second_derivatives_beside_a_selection(backend: str) -> None:
    def program(x: Any) -> Any:
        return np.sum(np.where(x > 0.0, np.log(1.0 + np.sqrt(x)) ** 2, 0.0))

    x = np.array([0.0, 1.5])
    derived = differentiable(program, backend=backend)
    with np.errstate(all="ignore"):
        found = tg.hessian(derived)(x)
    u = 1.0 + np.sqrt(1.5)
    half = 0.5 / np.sqrt(1.5)
    slope_of_root = -0.25 * 1.5**-1.5
    exact = 2.0 * (half / u) ** 2 + 2.0 * np.log(u) * (slope_of_root / u - (half / u) ** 2)
    np.testing.assert_allclose(found, np.diag([0.0, exact]), rtol=1e-13)
