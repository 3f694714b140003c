"""Memory that compiled code keeps for its next large arrays."""

from __future__ import annotations

import gc
import os
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numba import njit

import tapegen as tg
from tapegen.backend.numba import workspaces
from tapegen.backend.numba.build import build_numba, decorator_text
from tapegen.backend.numba.patches import is_enabled
from tapegen.backend.printer.source import PythonSource

pytestmark = pytest.mark.skipif(
    not (is_enabled("workspaces") and is_enabled("allocation")), reason="the patches are off"
)

ROOT = Path(__file__).parent.parent.parent
LARGE = workspaces.SMALLEST // 4 + 7  # elements

TEXT = """
@{decorator}
def made(n, value):
    a = np.empty(n)
    for i in range(min(n, 100_000)):
        a[i] = value
    return a
"""


def function_that_makes_arrays() -> Any:
    """A function that returns an array whose first elements are a number."""
    decorator = decorator_text()
    text = "import numpy as np\nfrom numba import njit\n" + TEXT.format(decorator=decorator)
    return build_numba(PythonSource(text, "made", ("made",), decorator=decorator), from_start=True)


@pytest.fixture(scope="module")
def made() -> Any:
    return function_that_makes_arrays()


@pytest.fixture(autouse=True)
def _empty() -> Iterator[None]:
    gc.collect()
    tg.clear_workspaces()
    yield
    gc.collect()
    tg.clear_workspaces()


def test_memory_of_a_dead_array_serves_the_next(made: Any) -> None:
    first = made(LARGE, 1.0)
    address = first.ctypes.data
    assert address % 64 == 0
    assert workspaces.idle() == 0
    del first
    assert workspaces.idle() >= 8 * LARGE
    second = made(LARGE - 100, 2.0)
    assert second.ctypes.data == address
    assert workspaces.idle() == 0
    np.testing.assert_array_equal(second, np.full(LARGE - 100, 2.0))


def test_a_view_keeps_the_memory(made: Any) -> None:
    first = made(LARGE, 1.0)
    view = first[5:10]
    del first
    assert workspaces.idle() == 0
    second = made(LARGE, 2.0)
    np.testing.assert_array_equal(view, np.ones(5))
    assert not np.shares_memory(view, second)


def test_blocks_of_other_sizes_are_not_taken(made: Any) -> None:
    del_ = made(2 * LARGE, 1.0)
    address = del_.ctypes.data
    del del_
    assert made(LARGE, 1.0).ctypes.data != address


def test_small_arrays_are_not_kept(made: Any) -> None:
    made(1000, 1.0)
    assert workspaces.idle() == 0


def test_clear_workspaces_returns_all(made: Any) -> None:
    made(LARGE, 1.0)
    waiting = workspaces.idle()
    assert waiting > 0
    assert tg.clear_workspaces() == waiting
    assert tg.clear_workspaces() == workspaces.idle() == 0


def test_the_sum_is_bounded(made: Any) -> None:
    half = workspaces.LARGEST_SUM // 16 - 1000  # two of them fit
    arrays = [made(half + 1000 * k, 0.0) for k in range(3)]
    arrays.clear()
    assert workspaces.LARGEST_SUM // 2 < workspaces.idle() <= workspaces.LARGEST_SUM
    made(workspaces.LARGEST_SUM // 8 + 1, 0.0)
    assert workspaces.idle() <= workspaces.LARGEST_SUM


MANY = """
from tapegen.backend.numba import workspaces
from tests.backend import test_workspaces as here

made = here.function_that_makes_arrays()
count = workspaces.BLOCKS + 20
arrays = [made(here.LARGE, float(k)) for k in range(count)]
assert len({array.ctypes.data for array in arrays}) == count
for k, array in enumerate(arrays):
    assert array[0] == array[-1] == k
arrays.clear()
assert workspaces.idle() >= workspaces.BLOCKS * 8 * here.LARGE
"""


def test_more_arrays_than_entries() -> None:
    """In a process of its own: arrays that other tests keep occupy entries, too."""
    subprocess.run([sys.executable, "-c", MANY], cwd=ROOT, check=True)


def test_zeros_are_zero_in_memory_that_was_used(made: Any) -> None:
    made(LARGE, 3.0)

    def kept(x):
        a = np.zeros(len(x))
        for i in range(0, len(x), 2):
            a[i] = x[i] * x[i]
        return a

    f = tg.differentiable(kept, backend="numba", cache=False)
    x = np.arange(float(LARGE))
    np.testing.assert_array_equal(f(x), kept(x))


def test_an_array_that_is_too_large(made: Any) -> None:
    for n, error in ((2**62, ValueError), (2**59, MemoryError), (2**45, MemoryError)):
        with pytest.raises(error, match=r"too (big|large)|memory"):
            made(n, 0.0)


def test_repeated_gradients_take_no_new_memory() -> None:
    def energy(x):
        y = np.sin(x) * x
        return np.sum(y * y)

    f = tg.differentiable(energy, backend="numba", cache=False)
    x = np.linspace(0.0, 1.0, LARGE)
    f.value_and_grad(x)
    before = workspaces.idle()
    for _ in range(5):
        f.value_and_grad(x)
        assert workspaces.idle() == before


@pytest.mark.skipif(sys.platform == "win32", reason="page faults are not counted there")
def test_lists_of_arrays_of_100_kb_are_not_mapped_anew() -> None:
    import resource

    @tg.differentiable(backend="numba")
    def f(x: np.ndarray) -> Any:
        states = [x]
        for _ in range(40):
            states.append(np.sin(states[-1]))
        return np.sum(states[-1])

    x = np.linspace(0.0, 1.0, 12_000)
    for _ in range(3):
        f.value_and_grad(x)
    before = resource.getrusage(resource.RUSAGE_SELF).ru_minflt
    for _ in range(5):
        f.value_and_grad(x)
    pages = 40 * x.nbytes // resource.getpagesize()  # what the states of one call take
    assert resource.getrusage(resource.RUSAGE_SELF).ru_minflt - before < pages


def test_threads_share_nothing(made: Any) -> None:
    wrong: list[int] = []

    def run(number: int) -> None:
        for k in range(200):
            array = made(LARGE + 10 * (k % 3), float(number))
            if not (array == number).all():
                wrong.append(number)

    threads = [threading.Thread(target=run, args=(k,)) for k in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong


def test_a_forked_child(made: Any) -> None:
    array = made(LARGE, 1.0)
    child = os.fork()
    if child == 0:
        good = False
        try:
            other = made(LARGE, 2.0)
            del array
            good = workspaces.idle() > 0 and (other == 2.0).all() and (made(LARGE, 3.0) == 3.0).all()
        finally:
            os._exit(0 if good else 1)
    assert os.waitpid(child, 0)[1] == 0
    np.testing.assert_array_equal(array, np.ones(LARGE))


def test_numbas_own_code_takes_such_arrays(made: Any) -> None:
    @njit
    def total(n):
        a = made(n, 2.0)
        b = a[1:]
        return b.sum()

    assert total(LARGE) == 2.0 * (LARGE - 1)
    assert workspaces.idle() >= 8 * LARGE
