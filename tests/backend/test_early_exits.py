"""Compiled code ends early: Ctrl-C, errors of handlers of signals, and tapes without memory, which are freed."""

from __future__ import annotations

import ctypes
import math
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numba.core import event
from numba.core.compiler import run_frontend

import tapegen as tg
from tapegen.backend.numba.early_exits.exit_insertion import polled_blocks
from tests.judged import both

pytestmark = pytest.mark.skipif(not hasattr(signal, "setitimer"), reason="needs timers that send signals")


def recurrence(x: float, bound: float) -> float:
    while x < bound:
        x = math.sin(x) + 0.1
    return x


def counted(x: float, n: int) -> float:
    for _ in range(n):
        x = math.sin(x) + 0.1
    return x


def counted_outside(x: float, n: int) -> Any:
    a = np.ones(3) * x
    for _ in range(n):
        for j in range(a.shape[0]):
            a[j] = a[j] * 0.99 + math.sin(a[j])
    return a.sum()


def counted_inside(x: float, n: int) -> float:
    s = 0.0
    for i in range(3):
        for k in range(n):
            s = s * 0.99 + math.sin(x * k + i)
    return s


def while_around_arrays(x: float, n: int) -> Any:
    a = np.ones(100) * x
    while a[0] < 1e300 and n > 0:
        a = a * 0.99 + np.sin(a)
        n -= 1
    return a.sum()


def with_continue(x: float, n: int) -> float:
    k = 0
    while k < n:
        k += 1
        if x > 0.9:
            x = 0.5 * x
            continue
        x = math.sin(x) + 0.1
    return x


class Stopped(Exception):
    """What the user's handler raises."""


class Handler:
    """An object that handles signals."""

    def __call__(self, number: int, frame: Any) -> None:
        raise Stopped(number)

    def method(self, number: int, frame: Any) -> None:
        self(number, frame)


def plain_handler(number: int, frame: Any) -> None:
    raise Stopped(number)


@pytest.fixture
def alarm() -> Iterator[Callable[[Any, float], None]]:
    """Sets a handler, and sends it a signal after some seconds."""
    before = signal.getsignal(signal.SIGALRM)

    def send(handler: Any, seconds: float) -> None:
        signal.signal(signal.SIGALRM, handler)
        signal.setitimer(signal.ITIMER_REAL, seconds)

    yield send
    signal.setitimer(signal.ITIMER_REAL, 0.0)
    signal.signal(signal.SIGALRM, before)


LOOPS: list[tuple[Callable[..., Any], Any, Any]] = [
    (recurrence, 0.8, 10.0),
    (counted, 5, 10**12),
    (counted_outside, 5, 10**12),
    (counted_inside, 5, 10**12),
    (while_around_arrays, 5, 10**12),
    (with_continue, 5, 10**12),
]


@pytest.mark.compiled
@pytest.mark.parametrize(("func", "few", "many"), LOOPS, ids=[func.__name__ for func, _, _ in LOOPS])
def test_loops_end_with_the_exception_of_the_handler(
    func: Any, few: Any, many: Any, alarm: Callable[[Any, float], None]
) -> None:
    derived = tg.differentiable(func, backend="numba")
    expected = derived(0.5, few)
    assert expected == pytest.approx(func(0.5, few), rel=1e-12)
    if isinstance(many, int):
        derived(0.5, -many)  # numbers of this size have a program of their own
    alarm(plain_handler, 0.2)
    start = time.process_time()
    with pytest.raises(Stopped):
        derived(0.5, many)
    assert time.process_time() - start < 2.2
    assert derived(0.5, few) == expected


@pytest.mark.compiled
def test_a_tangent_ends_with_the_exception_of_the_handler(alarm: Callable[[Any, float], None]) -> None:
    tg.jvp(counted, (0.5, -(10**12)), (1.0, None), backend="numba")
    alarm(plain_handler, 0.2)
    with pytest.raises(Stopped):
        tg.jvp(counted, (0.5, 10**12), (1.0, None), backend="numba")


@both
@pytest.mark.parametrize("kind", ["function", "object", "method", "partial"])
def test_kinds_of_handlers(kind: str, backend: str, alarm: Callable[[Any, float], None]) -> None:
    handlers = {
        "function": plain_handler,
        "object": Handler(),
        "method": Handler().method,
        "partial": partial(plain_handler),
    }
    derived = tg.differentiable(recurrence, backend=backend)
    derived(0.5, 0.8)
    alarm(handlers[kind], 0.2)
    with pytest.raises(Stopped):
        derived(0.5, 10.0)


@pytest.mark.compiled
def test_interrupt_of_another_thread_waits_for_the_main_thread() -> None:
    """Python runs handlers in the main thread only; a call in another thread goes on."""
    derived = tg.differentiable(counted, backend="numba")
    expected = derived(0.5, 30_000_000)
    found: list[float] = []
    thread = threading.Thread(target=lambda: found.append(derived(0.5, 30_000_000)))
    handler = signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        thread.start()
        with pytest.raises(KeyboardInterrupt):
            signal.raise_signal(signal.SIGINT)
        thread.join()
    finally:
        signal.signal(signal.SIGINT, handler)
    assert found == [expected]


class _SignalWhileCompiling(event.Listener):
    """A signal that arrives while C calls Python, as LLVM does: ctypes drops what its handler raises."""

    def __init__(self) -> None:
        self.sent = 0

    def on_start(self, found: Any) -> None:
        if not self.sent:
            self.sent += 1
            ctypes.CFUNCTYPE(None)(lambda: signal.raise_signal(signal.SIGINT))()

    def on_end(self, found: Any) -> None:
        pass


@pytest.mark.compiled
def test_interrupt_while_llvm_calls_python_is_not_lost() -> None:
    derived = tg.differentiable(lambda x: x * math.sin(x) + 17.0, backend="numba", cache=False)
    handler = signal.signal(signal.SIGINT, signal.default_int_handler)
    hook = sys.unraisablehook
    listener = _SignalWhileCompiling()
    try:
        with event.install_listener("numba:compile", listener), pytest.raises(KeyboardInterrupt):
            derived.grad(0.5)
    finally:
        signal.signal(signal.SIGINT, handler)
    assert listener.sent == 1
    assert sys.unraisablehook is hook
    assert derived.grad(0.5) == math.sin(0.5) + 0.5 * math.cos(0.5)


def only_loops(x: float, n: int) -> Any:
    a = np.ones(n) * x
    for _ in range(3):
        for i in range(a.shape[0]):
            a[i] = a[i] * x
    for i in range(n):
        a[i] = i
    for _ in range(n):
        for _ in range(n):
            x = x * 0.5
    return a.sum() + x


@pytest.mark.parametrize(
    ("func", "reorders", "count"),
    [
        (recurrence, True, 1),
        (counted, False, 1),
        (counted, True, 0),
        (counted_outside, True, 1),
        (counted_inside, False, 1),
        (only_loops, True, 1),
    ],
)
def test_few_loops_look_for_interrupts(func: Any, reorders: bool, count: int) -> None:
    assert len(polled_blocks(run_frontend(func), reorders=reorders)) == count


def test_long_loops_over_elements_do_not_look() -> None:
    """The jump back to the head of a long loop has an extended argument: the head begins with a block of its own."""
    lines = "".join(f"        t = x[i] * {k}.5 + x[i] * x[i]\n        x[i] = t\n" for k in range(60))
    namespace: dict[str, Any] = {}
    exec(f"def f(x, n):\n    for i in range(n):\n{lines}    return x\n", namespace)
    assert polled_blocks(run_frontend(namespace["f"]), reorders=False) == []


def test_a_loop_that_does_nothing_looks() -> None:
    def forever(x: Any) -> Any:
        while True:
            pass

    assert len(polled_blocks(run_frontend(forever), reorders=False)) == 1


def steps(x: float, n: int, start: int, step: int) -> tuple[float, int]:
    s, last = x, -1
    for k in range(start, n, step):
        if k % 1000 == 7:
            continue
        if k == 90_000:
            break
        s = s * 0.999 + k
        last = k
    return s, last


@pytest.mark.compiled
@pytest.mark.parametrize("step", [1, 3, -1, -7])
@pytest.mark.parametrize("n", [0, 1, 15, 16, 17, 80, 81, 100, 70_000, 200_000])
def test_loops_that_look_are_the_whole_loop(n: int, step: int) -> None:
    derived = tg.differentiable(steps, backend="numba", has_aux=True)
    args = (0.5, n, 3, step) if step > 0 else (0.5, -2, n, step)
    assert derived(*args) == steps(*args)


def sums_inside(x: float, n: int, m: int) -> float:
    total = 0.0
    for i in range(n):
        k = 0
        while k < i % m:
            total = total * 0.5 + x * k
            k += 1
        for j in range(i % 5, m):
            total = total + x * j - i
    return total


@pytest.mark.compiled
def test_loops_in_loops_are_the_whole_loop() -> None:
    derived = tg.differentiable(sums_inside, backend="numba")
    python = tg.differentiable(sums_inside, backend="python")
    for n, m in [(0, 3), (3, 40), (40, 300), (700, 11)]:
        assert derived(0.5, n, m) == sums_inside(0.5, n, m)
        assert derived.grad(0.5, n, m) == pytest.approx(python.grad(0.5, n, m), rel=1e-12)


LEAKS = """
import math
import numpy as np
import tapegen as tg

def outgrown(x, n):
    while n > 0:
        x = math.sin(x) * x + 1.0
        n -= 1
    return x

def numbers(x, n):
    found = [x]
    while len(found) < n:
        found.append(math.sin(found[-1]))
    return found[0]

def arrays(x, n):
    found = [np.full(3000, x)]
    while len(found) < n:
        found.append(np.sin(found[-1]) + 1.0)
    return found[-1].sum()

def resident():
    tg.clear_workspaces()
    with open("/proc/self/statm") as memory:
        return int(memory.read().split()[1]) * 4096

for func in (outgrown, numbers, arrays):
    derived = tg.differentiable(func, backend="numba", memory="80MB")
    derived.grad(0.5, 5)
    if func is outgrown:  # a program with checkpoints takes over
        tg.differentiable(func, backend="numba", memory="1MB").grad(0.5, 1_000_000)
    before = resident()
    for _ in range(2):
        try:
            derived.grad(0.5, 12_000_000 if func is outgrown else 2**40)
        except tg.TapeMemoryError:
            assert func is not outgrown
    assert resident() - before < 40e6, (func, before, resident())
print("done")
"""


@pytest.mark.compiled
@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="reads /proc")
def test_tapes_without_memory_are_freed(tmp_path: Path) -> None:
    program = tmp_path / "leaks.py"
    program.write_text(LEAKS)
    ran = subprocess.run([sys.executable, program], capture_output=True, text=True, timeout=240, check=False)
    assert (ran.returncode, ran.stdout, ran.stderr[-2000:]) == (0, "done\n", "")
