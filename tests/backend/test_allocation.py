"""New arrays in compiled code are made without functions of numba's own, and are what NumPy makes."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from numba.core import event

from tapegen import differentiable


def kinds(x, n):
    floats = np.zeros(n)
    single = np.empty((n, 2), dtype=np.float32)
    counts = np.zeros(3, np.int64)
    for i in range(n):
        floats[i] = x * i
        single[i, 0] = x
        single[i, 1] = 1.0
        counts[i % 3] += 1
    return (floats * floats).sum() + single.sum() + counts[1] * x


def growing(x):
    """Tapes of one and of two axes that grow twice."""
    row, size, total = np.full(3, x), 1.0, 0.0
    while size < 150.0:
        row = np.sin(row) + 1e-3 * size
        total += row.sum()
        size += x
    return total


class Compiled(event.Listener):
    def __init__(self) -> None:
        self.names: list[str] = []

    def on_start(self, event: Any) -> None:
        self.names.append(event.data["dispatcher"].py_func.__qualname__)

    def on_end(self, event: Any) -> None:
        pass


@pytest.mark.compiled
def test_new_arrays_of_all_kinds() -> None:
    function = differentiable(kinds, backend="numba", cache=False)
    listener = Compiled()
    with event.install_listener("numba:compile", listener):
        value, gradient = function.value_and_grad(1.5, 4)
    assert value == kinds(1.5, 4)
    assert gradient == pytest.approx(2.0 * 1.5 * 14.0 + 4.0 + 1.0, rel=1e-12)
    assert "kinds_value_and_grad" in listener.names
    assert not [name for name in listener.names if "np_empty" in name or "np_zeros" in name]
    with pytest.raises(ValueError, match="negative dimensions"):
        function.value_and_grad(1.5, -1)


@pytest.mark.compiled
def test_tapes_grow_without_a_function_and_keep_their_items() -> None:
    listener = Compiled()
    with event.install_listener("numba:compile", listener):
        value, gradient = differentiable(growing, backend="numba", cache=False).value_and_grad(1.0)
    assert not [name for name in listener.names if "grown" in name or "alloc" in name]
    expected_value, expected = differentiable(growing, backend="python").value_and_grad(1.0)
    assert value == pytest.approx(expected_value, rel=1e-12)
    assert gradient == pytest.approx(expected, rel=1e-9)
