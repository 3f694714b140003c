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
    "pad by medians": lambda v: np.pad(v * v, 2, "median", stat_length=3),
    "pad by the largest": lambda v: np.pad(v * v, (1, 2), mode="maximum"),
    "pad by lines": lambda v: np.pad(v * v, 2, mode="linear_ramp", end_values=1.0),
    "diff from": lambda v: np.diff(v * v, prepend=0.5),
    "einsum of a diagonal": lambda v: np.einsum("ii,i->i", v[:, None] * v, v),
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


LISTS: dict[str, Callable[[Any, Any], Any]] = {
    "clip": lambda v, rows: np.clip(rows(v), v[::-1] - 0.3, v + 1.0),
    "clip by": lambda v, rows: np.clip(v, a_max=rows(v[::-1]), a_min=0.0),
    "dot": lambda v, rows: np.dot(rows(v), v),
    "meshgrid": lambda v, rows: np.meshgrid(v[:3] ** 2, rows(v[1:] ** 2), indexing="ij")[1] ** 2,
    "broadcast_arrays": lambda v, rows: np.broadcast_arrays(np.reshape(v, (4, 1)), rows(v * v))[1] ** 2,
    "solve": lambda v, rows: np.linalg.solve(np.diag(v) + 1.0, rows(v * v)),
    "where": lambda v, rows: np.where(v > 1.5, rows(v * v), v),
}


@pytest.mark.parametrize("name", LISTS)
def test_lists_of_tensors_stand_for_arrays(name: str) -> None:
    x = tg.Variable(AT)
    with tg.GradientTape(persistent=True) as tape:
        y = LISTS[name](x * 1.0, list)
        z = LISTS[name](x * 1.0, lambda rows: rows)
    np.testing.assert_array_equal(y, z)
    weights = np.linspace(0.5, 1.5, y.size).reshape(y.shape)
    want = tape.gradient(z, x, output_gradients=weights).numpy()
    np.testing.assert_allclose(tape.gradient(y, x, output_gradients=weights).numpy(), want, rtol=1e-14)


@pytest.mark.parametrize(
    "form",
    [
        lambda v: np.sum(v * v, None, None, None),
        lambda v: np.max(v * v, None, None),
        lambda v: np.max(v * v, out=None),
        lambda v: np.std(v * v, None, None, None, 1),
        lambda v: np.sort(v * v, -1, None),
        lambda v: np.nan_to_num(v * v, True),
        lambda v: np.linspace(v[0], v[1], 3, True, False, None, 0),
        lambda v: np.dot(v, v, None),
    ],
)
def test_defaults_given_by_position(form: Callable[[Any], Any]) -> None:
    x = tg.Variable(AT)
    with tg.GradientTape() as tape:
        y = form(x)
    np.testing.assert_array_equal(y, form(AT))
    step = 1e-6
    slopes = [np.sum(form(AT + step * unit) - form(AT - step * unit)) / (2 * step) for unit in np.eye(4)]
    np.testing.assert_allclose(tape.gradient(y, x).numpy(), slopes, rtol=1e-7, atol=1e-8)


@pytest.mark.parametrize("call", [np.add, np.power, np.arctan2, np.minimum, np.hypot])
def test_the_type_of_a_ufunc(call: Any) -> None:
    other = np.array([0.3, 2.1, 1.4, 0.2])
    x = tg.Variable(AT)
    with tg.GradientTape(persistent=True) as tape:
        results = [call(x, other, dtype=np.float32), call(other, x, dtype="f4", casting="same_kind")]
        number = call(x, 3, dtype=np.float32)
    for made, operands in zip([*results, number], [(AT, other), (other, AT), (AT, 3)], strict=True):
        want = call(*operands, dtype=np.float32)
        assert made.dtype == want.dtype == np.float32
        np.testing.assert_array_equal(made, want)
        assert tape.gradient(made, x).dtype == np.float64
    with pytest.raises(TypeError, match="Cannot cast"):
        call(x, other, dtype=np.float32, casting="safe")


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
    with pytest.raises(MissingRule, match=r"no entry for: add in this form .*is undefined where") as caught:
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
