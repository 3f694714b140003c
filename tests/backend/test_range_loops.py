"""Loops over `range` in compiled code make the iterations that Python makes."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from numba import njit

from tapegen.backend.numba.compiler import CompilerOptions, GeneratedCodeCompiler, compiler_with


def trips(n: int, small: Any, unsigned: Any, switch: bool) -> list[int]:
    seen = [-1]
    for i in range(n):
        if i == 7:
            break
        for j in range(i):
            seen.append(10 * i + j)
        seen.append(i)
        i = 100 * i
        seen.append(i)
    for i in range(small):
        seen.append(int(i))
    for i in range(unsigned):
        seen.append(int(i))
    for i in range(n, 2 * n, 2):
        seen.append(i)
    for i in range(n, 0, -1):
        seen.append(i)
    counts = range(n) if switch else range(n + 1)
    for i in counts:
        seen.append(i)
    for _ in range(2):
        for i in counts:
            seen.append(i)
        else:
            seen.append(-2)
    for k, i in enumerate(range(n)):
        seen.append(k + i)
    for k, i in zip(range(n), range(3)):
        seen.append(k - i)
    seen.append(len(range(n)))
    return seen


@pytest.mark.compiled
@pytest.mark.parametrize("compiler", [GeneratedCodeCompiler, compiler_with(CompilerOptions(True, True, True))])
def test_trips_are_pythons(compiler: Any) -> None:
    function = njit(error_model="numpy", pipeline_class=compiler)(trips)
    for n in (-3, 0, 1, 2, 5, 12):
        given = (n, np.int32(4), np.uint64(3))
        for switch in (True, False):
            assert function(*given, switch) == trips(*given, switch)


def first(n: int) -> int:
    for i in range(n):
        return i
    return -1


@pytest.mark.compiled
def test_the_ends_of_64_bits() -> None:
    function = njit(error_model="numpy", pipeline_class=compiler_with(CompilerOptions(True, True, True)))(first)
    assert [function(n) for n in (-(2**63), -1, 0, 1, 2**63 - 1)] == [-1, -1, -1, 0, 0]
