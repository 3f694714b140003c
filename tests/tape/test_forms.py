"""Calls in forms that no rule covers: keywords, methods of ufuncs, lists; the compiler derives them where it can."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import tapegen as tg
from tapegen.errors import MissingRule

AT = np.array([0.7, 1.9, 1.2, 2.5])
MASK = [True, False, True, True]

FORMS: dict[str, Callable[[Any], Any]] = {
    "sum from": lambda v: np.sum(v * v, initial=5.0),
    "sum from a tensor": lambda v: np.sum(v * v, initial=v[0] ** 2),
    "sum where": lambda v: np.sum(v * v, where=MASK),
    "mean where": lambda v: np.mean(v * v, where=np.array(MASK)),
    "max from": lambda v: np.max(v * v, initial=1.5, where=MASK),
    "prod from": lambda v: np.prod(v, initial=2.0),
    "reduce from": lambda v: np.add.reduce(v * v, initial=1.0),
    "reduce": lambda v: np.logaddexp.reduce(v),
    "reduceat": lambda v: np.multiply.reduceat(v, [0, 2]),
    "accumulate": lambda v: np.maximum.accumulate(v * v),
    "subtract.accumulate": lambda v: np.subtract.accumulate(v * v),
    "full_like": lambda v: np.full_like(v, v[0] ** 2) * v,
    "interp at": lambda v: np.interp(v, [0.0, 1.0, 2.0, 3.0], [1.0, 4.0, 9.0, 2.0]),
    "interp of": lambda v: np.interp([0.5, 1.5], [0.0, 1.0, 2.0, 3.0], v * v),
    "einsum in the best order": lambda v: np.einsum("i,j,ij->i", v, v, np.ones((4, 4)), optimize=True),
}


@pytest.mark.parametrize("name", FORMS)
def test_forms_have_gradients(name: str) -> None:
    form = FORMS[name]
    x = tg.Variable(AT)
    with tg.GradientTape() as outer:
        with tg.GradientTape(persistent=True) as tape:
            y = form(x)
        np.testing.assert_array_equal(y.numpy(), form(AT))
        gradient = tape.gradient(y, x)
        projected = np.sum(gradient * np.arange(4.0)) + np.sum(0.0 * x)
    step = 1e-6
    slopes = [(form(AT + step * unit) - form(AT - step * unit)).sum() / (2 * step) for unit in np.eye(4)]
    np.testing.assert_allclose(gradient.numpy(), slopes, rtol=1e-7, atol=1e-8)

    def at(values: np.ndarray) -> np.ndarray:
        x = tg.constant(values)
        with tg.GradientTape() as tape:
            tape.watch(x)
            y = form(x)
        return tape.gradient(y, x).numpy()

    curves = [((at(AT + step * unit) - at(AT - step * unit)) @ np.arange(4.0)) / (2 * step) for unit in np.eye(4)]
    np.testing.assert_allclose(outer.gradient(projected, x).numpy(), curves, rtol=1e-6, atol=1e-7)
    along = np.array([1.0, -2.0, 0.5, 3.0])
    with tg.ForwardAccumulator(x, along) as accumulator:
        y = form(x)
    np.testing.assert_allclose(np.sum(accumulator.jvp(y)), slopes @ along, rtol=1e-6, atol=1e-7)
    np.testing.assert_array_equal(tape.source(tape_target(tape, form, x), x).run().numpy(), gradient.numpy())


def tape_target(tape: tg.GradientTape, form: Callable[[Any], Any], x: tg.Variable) -> tg.Tensor:
    with tape:
        target: tg.Tensor = form(x)
    return target


def test_what_the_compiler_refuses_is_missing() -> None:
    x = tg.Variable(AT)
    with tg.GradientTape(persistent=True) as tape:
        z = x * 2.0
        with pytest.warns(UserWarning, match="'where' used without 'out'"):
            y = np.add(x, 1.0, where=MASK)
    with pytest.raises(MissingRule, match=r"no entry for: add in this form .*holds anything where") as caught:
        tape.gradient(y, x)
    assert "y = np.add(x, 1.0, where=MASK)" in str(caught.value)
    assert "np.where" in caught.value.advice
    assert tape.gradient(z, x).numpy().tolist() == [2.0] * 4  # nobody asks for it


def test_forms_keep_what_they_were_given() -> None:
    x, weights = tg.Variable(AT), np.array([1.0, 2.0])
    mask = np.array(MASK)
    with tg.GradientTape() as tape:
        y = np.sum(np.add.reduceat(x * x, [0, 2]) * weights) + np.sum(x, where=mask)
    weights[:] = 0.0
    mask[:] = False
    want = 2.0 * AT * [1.0, 1.0, 2.0, 2.0] + MASK
    np.testing.assert_allclose(tape.gradient(y, x).numpy(), want, rtol=1e-15)
