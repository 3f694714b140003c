"""Lists of arrays in compiled code: functions that are called, and no reference too many or too few."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from numba import njit
from numba.core.runtime import _nrt_python, rtsys

from tapegen.backend.numba.compiler import CompilerOptions, compiler_with


def stacks(n: int) -> float:
    kept = []
    rows = []
    first = [np.full(2, 0.5), np.ones(3)]
    for i in range(n):
        x = np.full(3, 1.0 + i)
        kept.append(x)
        kept.append(x)
        rows.append([float(i)])
        rows[-1].append(0.25)
        if i % 3 == 2:
            total = kept.pop() + kept.pop()
            kept.append(total)
    result = first.pop()[0] + first[0][1]
    for _ in range(n // 2):
        x = kept.pop()
        x[0] += 1.0
        result += x[0] * x[2]
    while len(rows) > 1:
        row = rows.pop()
        result += row[0] * row[1]
    return result


def popped(n: int) -> float:
    items = [np.ones(n)]
    items.pop()
    return items.pop()[0]


def compiled(function: Any) -> Any:
    return njit(error_model="numpy", pipeline_class=compiler_with(CompilerOptions(True, True, True)))(function)


@pytest.mark.compiled
def test_lists_of_arrays_hold_what_pythons_do() -> None:
    function = compiled(stacks)
    function(3)
    _nrt_python.memsys_enable_stats()
    try:
        before = rtsys.get_allocation_stats()
        assert [function(n) for n in (0, 1, 2, 9, 100)] == [stacks(n) for n in (0, 1, 2, 9, 100)]
        after = rtsys.get_allocation_stats()
    finally:
        _nrt_python.memsys_disable_stats()
    assert after.alloc > before.alloc
    assert after.alloc - before.alloc == after.free - before.free
    (text,) = function.inspect_llvm().values()
    assert text.count("define internal") == 7  # new lists of three types, `append` and `pop` of two


@pytest.mark.compiled
def test_nothing_is_popped_from_an_empty_list() -> None:
    with pytest.raises(IndexError, match="pop from empty list"):
        compiled(popped)(2)
