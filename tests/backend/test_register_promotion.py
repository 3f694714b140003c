"""Names of compiled code that are values: all that is made is let go, once, on every path."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from numba.core import codegen
from numba.core.runtime import _nrt_python, rtsys

from tapegen import differentiable


def steps(x, n, skip):
    """Arrays that change names, that are let go on one path only, and that live at places that may raise."""
    before, now = x, 2.0 * x
    total = 0.0
    for k in range(n):
        other = np.sin(now) * x[k]
        if k == skip:
            held = other * other
            total += held[k]
            continue
        if total > 40.0:
            total += other[0]
            break
        before, now = now, before + other
        rows = []
        for j in range(k):
            rows.append(now * x[j])
        for row in rows:
            total += row[k] * before[0]
    return total + now.sum()


def living() -> int:
    stats = rtsys.get_allocation_stats()
    return int(stats.mi_alloc - stats.mi_free)


@pytest.fixture(scope="module")
def compiled() -> Any:
    texts = []
    add = codegen.CPUCodeLibrary.add_ir_module

    def kept(library: Any, module: Any) -> None:
        if "steps_value_and_grad" in library.name:
            texts.append(str(module))
        add(library, module)

    with pytest.MonkeyPatch.context() as patch:
        _nrt_python.memsys_enable_stats()
        patch.setattr(codegen.CPUCodeLibrary, "add_ir_module", kept)
        function = differentiable(steps, backend="numba", cache=False)
        function.value_and_grad(np.linspace(0.5, 1.0, 5), 5, 2)
    yield function, texts
    _nrt_python.memsys_disable_stats()


@pytest.mark.parametrize(("n", "skip"), [(5, 2), (5, 9), (0, 0), (1, 0)])
def test_all_that_is_made_is_let_go(compiled: Any, n: int, skip: int) -> None:
    function, _ = compiled
    x = np.linspace(0.5, 1.0, 5)
    value, gradient = function.value_and_grad(x, n, skip)
    assert value == pytest.approx(steps(x, n, skip), rel=1e-14)
    for k in range(5):
        step = np.zeros(5)
        step[k] = 1e-5
        slope = (steps(x + step, n, skip) - steps(x - step, n, skip)) / 2e-5
        assert gradient[k] == pytest.approx(slope, rel=1e-7, abs=1e-7)
    held = living()
    for _ in range(3):
        function.value_and_grad(x, n, skip)
    assert living() == held


def test_what_lives_where_an_error_is_raised_is_let_go(compiled: Any) -> None:
    function, _ = compiled
    x = np.linspace(0.5, 1.0, 3)
    for _ in range(2):
        held = living()
        with pytest.raises(IndexError):
            function.value_and_grad(x, 5, 1)
    assert living() - held <= 1  # the error itself


def test_arrays_have_no_slots_where_they_are_given_once(compiled: Any) -> None:
    _, texts = compiled
    text = max(texts, key=len)
    arrays = {line.split('"')[1] for line in text.splitlines() if "= alloca {i8*, i8*, i64, i64, double*" in line}
    assert {"x", "other"}.isdisjoint(arrays)
    assert "before" in arrays  # another array on each iteration
