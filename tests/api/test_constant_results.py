"""Results that are the same for all arguments: their tangents are 0, their Jacobians None.

The oracle is the derivative of one call from Python; inside of a function, and in batches, it is the same.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import tapegen as tg

X = np.array([0.7, -0.4])
V = np.array([1.1, 0.3])
ROWS, DIRECTIONS = np.stack([X, 2.0 * X, -X]), np.stack([V, -V, 0.5 * V])

python = {"backend": "python"}

RESULTS: dict[str, Callable[[np.ndarray], Any]] = {
    "float": lambda x: 3.0,
    "int": lambda x: 3,
    "bool": lambda x: True,
    "float64": lambda x: np.float64(3.0),
    "float32": lambda x: np.float32(3.0),
    "size": lambda x: len(x),
    "array": lambda x: np.ones(2),
    "integers": lambda x: np.arange(2),
    "two floats": lambda x: (3.0, 4.0),
    "float and sum": lambda x: (3.0, np.sum(x * x)),
    "int and sum": lambda x: (3, np.sum(x * x)),
    "position and sum": lambda x: (np.argmax(x), np.sum(x * x)),
    "dict": lambda x: {"n": len(x), "scale": 2.5, "sum": np.sum(x * x), "inside": [1.5, x * 2.0]},
}

results = pytest.mark.parametrize("f", RESULTS.values(), ids=RESULTS)


def same(found: Any, known: Any) -> None:
    """Compare structures of numbers and arrays, with their classes."""
    assert type(found) is type(known)
    if isinstance(known, dict):
        assert list(found) == list(known)
        same(list(found.values()), list(known.values()))
    elif isinstance(known, tuple | list):
        assert len(found) == len(known)
        for part, other in zip(found, known, strict=True):
            same(part, other)
    elif known is not None:
        np.testing.assert_allclose(found, known, rtol=1e-14)


INSIDE: dict[str, Callable[..., Any]] = {
    "jvp": lambda f, x: tg.jvp(f, (x,), (V,)),
    "linearize": lambda f, x: tg.linearize(f, x)[1](V),
    "jacobian": lambda f, x: tg.jacobian(f)(x),
    "jacobian forward": lambda f, x: tg.jacobian(f, mode="forward")(x),
    "batch": lambda f, x: tg.batch(f, **python)(np.stack([x, 2.0 * x, -x])),
    "batch jvp": lambda f, x: tg.batch(f, **python).jvp((np.stack([x, 2.0 * x, -x]),), (DIRECTIONS,)),
    "batch jacobian": lambda f, x: tg.batch(f, **python).jacobian(np.stack([x, 2.0 * x, -x])),
}


@results
@pytest.mark.parametrize("inside", INSIDE.values(), ids=INSIDE)
def test_inside_of_a_function(f: Callable, inside: Callable) -> None:
    value, _ = tg.vjp(lambda x: inside(f, x), X, **python)
    same(value, inside(f, X))


@results
def test_tangents_and_jacobians(f: Callable) -> None:
    value, tangent = tg.jvp(f, (X,), (V,), **python)
    same(value, f(X))
    h = 1e-5
    pairs = zip(_floats(f(X + h * V)), _floats(f(X - h * V)), strict=True)
    expected = [(np.asarray(a) - np.asarray(b)) / (2.0 * h) for a, b in pairs]
    assert len(_floats(tangent)) == len(expected)
    for part, slope in zip(_floats(tangent), expected, strict=True):
        np.testing.assert_allclose(part, slope, atol=1e-9)
    for row, direction, batched in zip(ROWS, DIRECTIONS, _instances(tg.batch(f, **python).jvp), strict=True):
        for part, other in zip(_floats(batched), _floats(tg.jvp(f, (row,), (direction,), **python)[1]), strict=True):
            np.testing.assert_allclose(part, other, rtol=1e-14)


def _instances(jvp: Callable) -> list[Any]:
    """The tangents of a batch, one structure for each instance."""
    _, tangents = jvp((ROWS,), (DIRECTIONS,))
    return [[np.asarray(part)[k] for part in _floats(tangents)] for k in range(len(ROWS))]


def _floats(value: Any) -> list[Any]:
    """The floating numbers and arrays in a structure."""
    if isinstance(value, dict):
        value = list(value.values())
    if isinstance(value, tuple | list):
        return [part for item in value for part in _floats(item)]
    return [value] if value is not None and np.asarray(value).dtype.kind == "f" else []
