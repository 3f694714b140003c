"""Loops that record without end, and arrays that are too large, stop before the memory is full."""

from __future__ import annotations

import ctypes
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
import pytest

import tapegen as tg
from tapegen.backend.numba import memory_limit
from tapegen.backend.numba.patches import is_enabled
from tapegen.export.native import entry_points
from tests.judged import both

linux = pytest.mark.skipif(not sys.platform.startswith("linux"), reason="reads /proc")

PROGRAMS = """
import math
import sys
import numpy as np
import tapegen as tg
from tapegen.backend.numba import memory_limit as memory

memory.available = lambda: 2**25  # a call may take 16 MB

def numbers(x, n):
    y = x
    while n > 0:
        y = math.sin(y) * x
        n -= 1
    return y

def arrays(x, n):
    y = np.full(5000, x)
    while n > 0:
        y = np.sin(y) * x
        n -= 1
    return np.sum(y)

def lists(x, n):
    y = np.full(5000, x)
    k = 0
    while k < n:
        y = np.sin(np.concatenate((y[:4990], y[: k % 7])))
        k += 1
    return np.sum(y)

def inner(x, n):
    k = 0
    while k < n:
        for _ in range(k % 3):
            x = math.sin(x)
        k += 1
    return x

def counted(x, n):
    for _ in range(n):
        x = math.sin(x)
    return x

def grown(x):
    found = [x]
    while len(found) > 0:
        found.append(math.sin(found[-1]))
    return found[0]

def peak():
    with open("/proc/self/status") as status:
        return next(int(line.split()[1]) for line in status if line.startswith("VmHWM"))

for func, n in [(numbers, 1_200_000), (arrays, 600), (lists, 600), (inner, 1_200_000), (counted, 2**21 + 2**18)]:
    derived = tg.differentiable(func, backend=sys.argv[1])
    first = derived.grad(0.5, 5)  # which records
    tg.clear_workspaces()  # it counts as free
    before = peak()
    assert np.isfinite(derived.grad(0.5, n)), func.__name__
    assert peak() - before < 100_000, (func.__name__, before, peak())
    assert derived.grad(0.5, 5) == first, func.__name__

before = peak()
try:
    print(tg.grad(grown, backend=sys.argv[1])(0.5))
except tg.TapeMemoryError as error:
    assert error.span.line == grown.__code__.co_firstlineno + 2, error
assert peak() - before < 250_000, (before, peak())
print("done")
"""


@linux
@pytest.mark.parametrize("backend", ["python", pytest.param("numba", marks=pytest.mark.compiled)])
def test_g100_loops_that_record_much(backend: str, tmp_path: Path) -> None:
    program = tmp_path / "endless.py"
    program.write_text(PROGRAMS)
    ran = subprocess.run([sys.executable, program, backend], capture_output=True, text=True, timeout=240, check=False)
    assert (ran.returncode, ran.stdout, ran.stderr[-2000:]) == (0, "done\n", "")


def filled(x: float, n: int) -> float:
    a = np.zeros(n)
    a[0] = x
    a[n - 1] = x
    return float(np.sum(a * a))


def grows(x: float, limit: float) -> float:
    n = 0
    while x > limit:
        x = np.sin(x) * 0.99
        n += 1
    return x


@pytest.fixture
def free(monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[[int], None]]:
    """Sets how much memory seems to be free."""

    def make(size: int) -> None:
        monkeypatch.setattr(memory_limit, "available", lambda: size)
        memory_limit.stale = 0.0

    yield make
    monkeypatch.undo()
    memory_limit.measure(0.0)


@pytest.mark.compiled
def test_e78_a_large_array_in_compiled_code(free: Callable[[int], None]) -> None:
    derived = tg.differentiable(filled, backend="numba")
    assert derived.grad(1.5, 10) == 6.0
    free(2**27)
    with pytest.raises(tg.TapeMemoryError, match="an array of filled does not fit") as caught:
        derived.grad(1.5, 2**24)
    assert caught.value.span is not None
    assert caught.value.span.line == filled.__code__.co_firstlineno + 1
    assert derived.grad(1.5, 10) == 6.0


@both
def test_tapes_of_earlier_calls_do_not_count(backend: str, free: Callable[[int], None]) -> None:
    derived = tg.differentiable(grows, backend=backend)
    expected = derived.grad(0.9, 1e-3)
    free(2**16)  # some 700 iterations record 16 kB
    for _ in range(20):
        assert derived.grad(0.9, 1e-3) == expected


def never_ends(x: float) -> float:
    found = [x]
    while len(found) > 0:
        found.append(np.sin(found[-1]))
    return found[0]


@both
def test_the_error_says_how_far_the_loop_came(backend: str, free: Callable[[int], None]) -> None:
    derived = tg.differentiable(never_ends, backend=backend)
    free(2**20)
    with pytest.raises(tg.TapeMemoryError, match=r"after [\d,]+ recorded iterations: [\d,]+ bytes, and [\d,]+ more"):
        derived.grad(0.5)


@linux
@pytest.mark.skipif(shutil.which("cc") is None, reason="needs a C compiler")
def test_room_in_libraries(tmp_path: Path) -> None:
    made = tmp_path / "room.so"
    text = Path(entry_points.__file__).with_name("room.c")
    subprocess.run(["cc", "-std=c11", "-Wall", "-Werror", "-fPIC", "-shared", "-o", made, text], check=True)
    library = ctypes.CDLL(str(made))
    library.tapegen_room.argtypes = [ctypes.c_int64, ctypes.c_int32, ctypes.c_int64]

    def fits(size: int, *, is_tape: bool) -> bool:
        return bool(library.tapegen_room(size, is_tape, 0))

    available = memory_limit.available()
    assert fits(available // 4, is_tape=False)
    assert fits(available // 4, is_tape=False)
    assert not fits(available, is_tape=False)
    for _ in range(2):
        library.tapegen_begin()
        size, held = 1024, 0
        while fits(size, is_tape=True):
            held, size = size, 2 * size
        assert available // 16 < held < available


RETAINED = """
import gc
import sys
from pathlib import Path

import numpy as np

import tapegen as tg
from tapegen.backend.numba import workspaces


def decays(u, n):
    s = u * 1.0
    for _ in range(n):
        s = s * np.sin(s)
    return np.sum(s)


def peak():
    with open("/proc/self/status") as status:
        return next(1024 * int(line.split()[1]) for line in status if line.startswith("VmHWM"))


u = np.linspace(0.1, 0.2, 1000)
derived = tg.differentiable(decays, backend="numba", memory="64MB")
derived.grad(u, 100)
Path("/proc/self/clear_refs").write_text("5")
before = peak()
for n in (2500, 1850, 1250, 3500, 1850):  # records of so many times 16 kB, which fit one at a time
    derived.grad(u, n)
    assert 16000 * n <= workspaces.idle() <= 64e6, (n, workspaces.idle())
assert peak() - before < 66e6, peak() - before
again = workspaces.idle()
derived.grad(u, 1850)
assert workspaces.idle() == again
free = derived.with_options(memory=None)
for n in (2500, 1250, 3500):
    free.grad(u, n)
assert workspaces.idle() > 100e6
derived.with_options(memory="1MB").grad(u, 10)
assert workspaces.idle() <= 1e6
print("done")
"""


@linux
@pytest.mark.compiled
@pytest.mark.skipif(not is_enabled("workspaces"), reason="the patch is off")
def test_memory_that_is_kept_counts(tmp_path: Path) -> None:
    program = tmp_path / "retained.py"
    program.write_text(RETAINED)
    ran = subprocess.run([sys.executable, program], capture_output=True, text=True, timeout=240, check=False)
    assert (ran.returncode, ran.stdout, ran.stderr[-2000:]) == (0, "done\n", "")


@pytest.mark.compiled
def test_a_budget_ends_with_its_call() -> None:
    """Tapes of `f.njit` may take half of the free memory, whatever a call before was given."""
    derived = tg.differentiable(grows, backend="numba", memory="20kB")
    expected = derived.grad(0.9, 0.005)
    compiled = derived.njit.grad
    assert compiled(0.9, 0.005) == expected
    before = list(memory_limit._call.account)
    derived.grad(0.9, 1e-3)  # through both ways of a call
    derived.grad(0.9, 1e-3)
    with pytest.raises(tg.TapeMemoryError):
        derived.with_options(memory=8).grad(0.9, 1e-3)
    assert list(memory_limit._call.account)[1] == before[1]
    assert compiled(0.9, 0.002) == derived.with_options(memory=None).grad(0.9, 0.002)


@pytest.mark.compiled
def test_tapes_of_njit_are_limited(free: Callable[[int], None]) -> None:
    """To half of the memory that was free when it was measured last."""
    compiled = tg.differentiable(grows, backend="numba").njit.grad
    compiled(0.9, 0.1)
    free(2**14)
    memory_limit.measure(0.0)
    with pytest.raises(MemoryError, match="half of the free memory"):
        compiled(0.9, 1e-3)
