"""Elements and shapes of arrays of every layout, read and stored by compiled code."""

from __future__ import annotations

import numpy as np
import pytest

from tapegen import differentiable

MATRIX = np.random.default_rng(2).normal(size=(3, 4))
CUBE = np.random.default_rng(3).normal(size=(2, 3, 4))
LAYOUTS = {
    "C": lambda x: x.copy(),
    "F": lambda x: np.asfortranarray(x),
    "A": lambda x: np.repeat(np.repeat(x, 2, 0), 3, -1)[::2, ..., ::-3],
}


def stored(x: np.ndarray, y: np.ndarray, count: np.ndarray) -> float:
    """Values are cast to what an array holds; an index may come from another array."""
    total = 0.0
    for i in range(x.shape[0]):
        for j in range(x.shape[1]):
            count[j] += 1
            x[i, j] = x[i, j] * y[i, count[0] % y.shape[1], j] + (1 if i > j else 0)
            total += x[i, j] * y[i % 2, j % 3, j] ** 2
    return total * count[1]


@pytest.mark.parametrize("layout", LAYOUTS)
def test_elements_are_those_of_numpy(layout: str) -> None:
    laid = LAYOUTS[layout]
    found, wanted = [], []
    for backend, out in (("numba", found), ("python", wanted)):
        args = laid(MATRIX[:2]), laid(CUBE), np.zeros(4, np.int16)
        out += [*differentiable(stored, backend=backend, cache=False, wrt=(0, 1)).value_and_grad(*args), *args]
    for a, b in zip(found, wanted, strict=True):
        for ours, theirs in zip(a if isinstance(a, tuple) else [a], b if isinstance(b, tuple) else [b], strict=True):
            np.testing.assert_allclose(ours, theirs, rtol=1e-12)
