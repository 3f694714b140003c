"""Threads that run the chunks of compiled loops: bits, errors, several callers, forks."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import textwrap
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numba import njit, prange, typeof, types
from numba.extending import intrinsic

import tapegen as tg
from tapegen.backend.numba import memory_limit
from tapegen.backend.numba.threads import pool, run_chunks
from tapegen.errors import BadArgument
from tapegen.export.module import ExportRequest, module_text
from tapegen.ir import intrinsics

ROOT = Path(__file__).parent.parent.parent
R = np.random.default_rng(3)
SIZE = 40_000
X, W = R.random(SIZE), R.random(SIZE)


@tg.differentiable(wrt=("x", "w"), backend="numba", parallel=True)
def terms(x: np.ndarray, w: np.ndarray) -> float:
    s = 0.0
    for i in prange(len(x)):
        if x[i] < 0.0:
            raise ValueError(f"iteration {i}")
        s += np.exp(-x[i]) * w[i % 7]
    return s


@pytest.fixture(autouse=True)
def threads() -> Iterator[None]:
    """As many threads as before, afterwards."""
    before = tg.config.threads
    yield
    tg.config.threads = before


def bits(found: Any) -> list[bytes]:
    value, gradient = found
    return [np.float64(value).tobytes(), *(part.tobytes() for part in gradient)]


def test_bits_do_not_depend_on_the_number_of_threads() -> None:
    found = []
    for count in (1, 2, 4, 3, 1):
        tg.config.threads = count
        found.append(bits(terms.value_and_grad(X, W)))
    assert all(each == found[0] for each in found)
    serial, (by_x, by_w) = terms.with_options(parallel=False).value_and_grad(X, W)
    value, (x_bar, w_bar) = terms.value_and_grad(X, W)
    np.testing.assert_allclose(value, serial, rtol=1e-13)
    np.testing.assert_array_equal(x_bar, by_x)
    np.testing.assert_allclose(w_bar, by_w, rtol=1e-12)
    assert "run_chunks" in terms.inspect(X, W).compiled
    assert "run_chunks" not in terms.with_options(parallel=False).inspect(X, W).compiled


@tg.differentiable(wrt=("x", "w"), backend="numba", parallel=True)
def halved(x: np.ndarray, w: np.ndarray) -> float:
    s = 0.0
    for i in prange(len(x)):
        u, v = x[i], np.zeros(2)
        while u > 0.01:
            v = 0.5 * v + u * w[:2]
            u = u * w[i % 7] * 0.9
        s += u * w[3] + v[0] * v[1]
    return s


def test_each_chunk_has_tapes_of_its_own() -> None:
    reference = halved.with_options(parallel=False)
    for size in (100, 3_000, SIZE):
        found = []
        for count in (1, 2, 3, 4):
            tg.config.threads = count
            found.append(bits(halved.value_and_grad(X[:size], W)))
        assert all(each == found[0] for each in found)
        serial, (by_x, by_w) = reference.value_and_grad(X[:size], W)
        value, (x_bar, w_bar) = halved.value_and_grad(X[:size], W)
        np.testing.assert_allclose(value, serial, rtol=1e-12)
        np.testing.assert_array_equal(x_bar, by_x)
        np.testing.assert_allclose(w_bar, by_w, rtol=1e-11)


def test_the_budget_holds_for_the_tapes_of_all_chunks() -> None:
    tg.config.threads = 2
    recorded = halved.with_options(memory="1GB")
    want = bits(recorded.value_and_grad(X, W))
    assert 10**6 < memory_limit._call.account[0] < 10**7  # the chunks have counted together
    assert bits(halved.with_options(memory="500kB").value_and_grad(X, W))[1] == want[1]  # with checkpoints


def test_threads_take_part() -> None:
    tg.config.threads = 3
    terms(X, W)
    assert pool._pool().started >= 2


@pytest.mark.parametrize("count", [1, 4])
def test_the_error_is_that_of_the_first_iteration(count: int) -> None:
    tg.config.threads = count
    x = X.copy()
    x[[7000, 7001, SIZE - 1, 23_456]] = -1.0
    for call in (terms, terms.value_and_grad):
        with pytest.raises(ValueError, match=r"iteration 7000\b"):
            call(x, W)
    assert bits(terms.value_and_grad(X, W)) == bits(terms.value_and_grad(X, W))


def test_several_threads_of_python() -> None:
    tg.config.threads = 2
    want = bits(terms.value_and_grad(X, W))
    failed: list[BaseException | None] = []

    def call() -> None:
        try:
            for _ in range(30):
                assert bits(terms.value_and_grad(X, W)) == want
        except BaseException as error:
            failed.append(error)

    callers = [threading.Thread(target=call) for _ in range(4)]
    for caller in callers:
        caller.start()
    for caller in callers:
        caller.join(120)
        assert not caller.is_alive()
    assert failed == []


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork")
def test_a_forked_process_runs_alone() -> None:
    tg.config.threads = 4
    want = bits(terms.value_and_grad(X, W))
    child = os.fork()
    if child == 0:  # no thread of the parent lives here
        signal.alarm(60)
        try:
            tg.config.threads = 2
            os._exit(0 if bits(terms.value_and_grad(X, W)) == want else 1)
        finally:
            os._exit(2)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    assert bits(terms.value_and_grad(X, W)) == want


def test_the_number_of_threads_is_positive() -> None:
    for count in (0, -1, 1.5, True, "all"):
        with pytest.raises(BadArgument, match="a positive number"):
            tg.config.threads = count  # type: ignore[assignment]


def test_inside_compiled_loops_of_the_user() -> None:
    @njit(parallel=True)
    def all_rows(rows: np.ndarray, w: np.ndarray) -> np.ndarray:
        found = np.empty(rows.shape[0])
        for k in prange(rows.shape[0]):
            value, _ = terms.njit.value_and_grad(rows[k], w)
            found[k] = value
        return found

    tg.config.threads = 2
    found = all_rows(np.stack([X, X[::-1], X]), W)
    value, _ = terms.value_and_grad(X, W)
    assert found[0] == found[2]
    np.testing.assert_allclose(found[0], value, rtol=1e-12)


def test_another_process_finds_the_code_on_disk(tmp_path: Path) -> None:
    code = """
    import numpy as np, tapegen as tg
    from tapegen.backend.cache.machine_code import _loaded

    def f(x):
        s = 0.0
        for i in range(len(x)):
            s += np.exp(-x[i]) * x[i]
        return s

    if __name__ == "__main__":
        x = np.linspace(0.0, 1.0, 30_000)
        function = tg.differentiable(f, parallel=True, backend="numba")
        value, gradient = function.value_and_grad(x)
        print(value.hex(), gradient.sum().hex(), len(_loaded))
    """
    (tmp_path / "script.py").write_text(textwrap.dedent(code), encoding="utf-8")
    cache = {"TAPEGEN_CACHE": "1", "TAPEGEN_CACHE_DIR": str(tmp_path / "cache")}
    environment = {**os.environ, "PYTHONPATH": str(ROOT), **cache}
    command = [sys.executable, "script.py"]
    said = []
    for _ in range(2):
        done = subprocess.run(
            command, cwd=tmp_path, env=environment, capture_output=True, text=True, timeout=180, check=False
        )
        assert done.returncode == 0, done.stderr
        said.append(done.stdout.split())
    assert said[0][:2] == said[1][:2]
    assert [found[2] for found in said] == ["0", "1"]


def test_written_modules_run_in_one_thread() -> None:
    assert "run_chunks" not in module_text([ExportRequest(terms, (X, W), {})])


ENDLESS = """
import math, os, signal, sys, threading, time
import numpy as np
from numba import prange
import tapegen as tg

tg.config.threads = 2

def steps(x, bound):
    total = 0.0
    for i in prange(len(x)):
        u = x[i]
        while u < bound[i]:
            u = math.sin(u) + 0.1
        total += u
    return total

signal.signal(signal.SIGINT, signal.default_int_handler)  # shells start what runs behind them without
derived = tg.differentiable(steps, backend="numba", parallel=True)
assert not derived.inspect(np.ones(9), np.ones(9)).report.loops[0].reason
x, bound = np.full(40_000, 0.5), np.full(40_000, 0.8)
before = derived(x, bound)
for place in (0, 20_000, 39_999):  # in a chunk of this thread, or of another one
    endless = bound.copy()
    endless[place] = 10.0
    threading.Timer(0.5, os.kill, (os.getpid(), signal.SIGINT)).start()
    start = time.monotonic()
    try:
        derived(x, endless)
    except KeyboardInterrupt:
        assert time.monotonic() - start < 2.5
        print("interrupted")
    assert derived(x, bound) == before
"""


@pytest.mark.compiled
def test_interrupt_ends_a_chunk_without_end(tmp_path: Path) -> None:
    program = tmp_path / "endless.py"
    program.write_text(ENDLESS)
    ran = subprocess.run([sys.executable, program], capture_output=True, text=True, timeout=120, check=False)
    assert (ran.returncode, ran.stdout, ran.stderr) == (0, 3 * "interrupted\n", "")


@intrinsic
def _owner(context: Any, array: Any) -> Any:
    """The address of the owner of an array, whose references numba counts."""

    def emit(context: Any, builder: Any, sig: Any, args: Any) -> Any:
        return builder.ptrtoint(builder.extract_value(args[0], 0), context.get_value_type(types.intp))

    return types.intp(array), emit


def test_chunks_count_no_references_to_what_they_share() -> None:
    """Else threads would wait for each other at each row that they take of an array."""
    run_chunks.provide()

    @njit
    def chunk(k: int, chunks: int, rows: Any, owners: Any) -> None:
        row = rows[k]
        owners[k] = _owner(row)
        row[0] = k

    @njit
    def rows_of_chunks(rows: Any, owners: Any) -> None:
        made = rows.copy()
        intrinsics.run_chunks(chunk, len(owners), made, owners)
        rows[...] = made

    rows, owners = np.zeros((5, 3)), np.ones(5, np.int64)
    chunk.compile((types.int64, types.int64, typeof(rows), typeof(owners)))
    rows_of_chunks(rows, owners)
    np.testing.assert_array_equal(owners, 0)
    np.testing.assert_array_equal(rows[:, 0], range(5))
