"""Compiling in a helper process while calls run the generated Python."""

from __future__ import annotations

import ast
import json
import os
import signal
import subprocess
import sys
import textwrap
import threading
import time
import warnings
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tqdm import tqdm

import tapegen as tg
from tapegen.backend.background import availability, compile_queue, interruptible_source
from tapegen.backend.background.compile_queue import Job, Queue, Request, queue
from tapegen.backend.cache import machine_code
from tapegen.backend.printer.source import PythonSource
from tapegen.errors import BadArgument, PerformanceWarning
from tapegen.ir import progress_bars
from tapegen.pipeline.artifacts.executables import key_of
from tapegen.runtime import closure_sharing
from tests.oracle import numerical_gradient
from tests.program_files import Program, collect
from tests.test_programs import assert_gradient, assert_same

pytestmark = pytest.mark.skipif(availability.processors() < 2, reason="there is one processor")

X = np.linspace(0.1, 1.0, 8)


def digest(name: str) -> int:
    return zlib.crc32(name.encode())


def smoothed(x, n):
    y = x.copy()
    for _ in range(n):
        for i in range(1, len(y) - 1):
            y[i] = y[i] + 0.1 * (y[i - 1] - 2.0 * y[i] + y[i + 1]) * np.sin(y[i])
    return np.sum(y**2)


@pytest.fixture
def background(monkeypatch: pytest.MonkeyPatch) -> Iterator[Queue]:
    """Background compilation with a queue of its own, whose helper ends with the test; nothing is loaded yet."""
    monkeypatch.setattr(machine_code, "_loaded", {})
    monkeypatch.setenv(availability.SWITCH, "1")
    monkeypatch.setattr(availability, "is_worker", lambda: False)
    made = Queue()
    monkeypatch.setattr(compile_queue, "_queue", made)
    yield made
    made.close()


def fresh(function: Any = smoothed, **options: Any) -> Any:
    """The function without anything compiled."""
    closure_sharing._KNOWN.clear()
    return tg.differentiable(function, **{"cache": False, **options})


def dispatcher(function: Any, *args: Any, form: str = "joint") -> Any:
    program = function._specialise(args, {}).program
    return program.parts.built[key_of(program, form)]


def until_compiled(call: Any, built: Any) -> int:
    """Repeat a call until its machine code is in place; how many calls that took."""
    end, count = time.monotonic() + 120, 1
    call()
    while not built().overloads:
        call()
        count += 1
        assert time.monotonic() < end, "the helper has not answered"
        time.sleep(0.02)
    return count


# ---- first calls -----------------------------------------------------------------------------------------------------


def test_first_calls_run_python_and_later_ones_machine_code(background: Queue) -> None:
    f, want = fresh(), fresh(backend="numba").value_and_grad(X, 3)
    first = f.value_and_grad(X, 3)
    assert not dispatcher(f, X, 3).overloads
    assert until_compiled(lambda: f.value_and_grad(X, 3), lambda: dispatcher(f, X, 3)) >= 1
    later = f.value_and_grad(X, 3)
    for value, gradient in (first, later):
        np.testing.assert_allclose(value, want[0], rtol=1e-14)
        np.testing.assert_allclose(gradient, want[1], rtol=1e-14)
    np.testing.assert_array_equal(later[1], want[1])  # the same machine code


def test_all_kinds_of_calls(background: Queue) -> None:
    f = fresh()
    slope = numerical_gradient(smoothed, (X, 2)).value[(0,)]
    direction = np.cos(X)

    def calls() -> None:
        np.testing.assert_allclose(f(X, 2), smoothed(X, 2), rtol=1e-14)
        value, pullback = f.vjp(X, 2)
        for seed in (1.0, 2.0):
            np.testing.assert_allclose(pullback(seed), seed * slope, rtol=1e-7)
        assert value == pytest.approx(smoothed(X, 2), rel=1e-14)
        np.testing.assert_allclose(f.jvp((X, 2), (direction, None))[1], slope @ direction, rtol=1e-7)

    calls()
    for form in ("primal", "record", "pullback"):
        until_compiled(calls, lambda form=form: dispatcher(f, X, 2, form=form))
    calls()


def test_backend_numba_waits(background: Queue) -> None:
    f = fresh(backend="numba")
    f.value_and_grad(X, 3)
    assert dispatcher(f, X, 3).overloads
    assert background._process is None


def test_one_compilation_for_threads_that_call_together(background: Queue, monkeypatch: pytest.MonkeyPatch) -> None:
    sent: list[bytes] = []
    answer = Queue._answer
    monkeypatch.setattr(Queue, "_answer", lambda self, request: sent.append(request) or answer(self, request))
    f = fresh()
    found: list[Any] = []
    threads = [threading.Thread(target=lambda: found.append(f.value_and_grad(X, 3))) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    until_compiled(lambda: f.value_and_grad(X, 3), lambda: dispatcher(f, X, 3))
    assert len(found) == 4 and len(sent) == 1
    for _, gradient in found:
        np.testing.assert_allclose(gradient, found[0][1], rtol=1e-14)


def test_errors_are_those_of_the_program(background: Queue) -> None:
    def reciprocal(x, k):
        if x[k] == 0.0:
            raise ValueError("no reciprocal")
        return 1.0 / x[k]

    f = fresh(reciprocal)
    for _ in range(2):
        with pytest.raises(ValueError, match="no reciprocal"):
            f.value_and_grad(np.zeros(3), 1)
        with pytest.raises(IndexError, match="index 7 is out of bounds"):
            f.value_and_grad(np.ones(3), 7)
        f.precompile(np.zeros(3), 1)


@pytest.mark.compiled
@pytest.mark.parametrize("program", [pytest.param(p, id=p.name) for p in collect() if digest(p.name) % 25 == 0])
def test_python_and_machine_code_go_together(program: Program, background: Queue) -> None:
    """A pullback of a forward sweep that Python ran works in machine code as well, and gives the same."""
    f = tg.differentiable(program.function, wrt=program.wrt, cache=False)
    value, pullback = f.vjp(*program.args(), **program.kwargs())
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", PerformanceWarning)
        f.precompile(*program.args(), modes=("vjp",), **program.kwargs())
    value_bar = program.value_bar()
    for _ in range(2):
        assert_gradient(program, pullback(value_bar))
        with availability.waiting():
            assert_gradient(program, pullback(value_bar))
        again, pullback = f.vjp(*program.args(), **program.kwargs())
        assert_same(again, value, "the value", rtol=1e-12)


# ---- what the helper cannot do ---------------------------------------------------------------------------------------


def test_a_helper_that_is_killed_leaves_the_work_to_this_process(
    background: Queue, monkeypatch: pytest.MonkeyPatch
) -> None:
    started = compile_queue._started

    def killed() -> Any:
        process = started()
        process.kill()
        return process

    monkeypatch.setattr(compile_queue, "_started", killed)
    f = fresh()
    until_compiled(lambda: f.value_and_grad(X, 3), lambda: dispatcher(f, X, 3))
    monkeypatch.undo()
    np.testing.assert_allclose(f.grad(X, 3), fresh(backend="python").grad(X, 3), rtol=1e-14)


def test_no_helper_can_be_started(background: Queue, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "executable", "/nonexistent/python")
    f = fresh()
    until_compiled(lambda: f.value_and_grad(X, 3), lambda: dispatcher(f, X, 3))


class Unheard(Exception):
    """An exception that no other process knows."""


def test_what_cannot_be_sent_is_compiled_here(background: Queue) -> None:
    def checked(x):
        if x[0] < 0.0:
            raise Unheard("negative")
        return np.sum(x * x)

    f = fresh(checked)
    np.testing.assert_array_equal(f.grad(X), 2.0 * X)
    assert dispatcher(f, X).overloads
    with pytest.raises(Unheard, match="negative"):
        f.grad(-X)


def test_a_request_of_other_settings_is_not_answered(background: Queue) -> None:
    job = background.submit(Request("another key", PythonSource("", "f", ()), True, ()))
    assert job is not None
    job.wait()
    assert job.code is None


# ---- interruption ----------------------------------------------------------------------------------------------------


def ended(code: bytes | None) -> Job:
    job = Job(queue(), b"")
    job.end(code)
    return job


def test_loops_stop_when_machine_code_is_there() -> None:
    text = "def f(n):\n    for i in range(n):\n        while n > 3:\n            n -= 1\n    return n\n"
    tree = interruptible_source.Interruptible().visit(ast.parse(text))
    assert ast.unparse(tree).count(" check()") == 2
    names = dict(interruptible_source.NAMES)
    exec(compile(tree, "f", "exec"), names)
    assert names["f"](9) == 3
    with interruptible_source.until(Job(queue(), b"")):
        assert names["f"](9) == 3
    with interruptible_source.until(ended(None)):  # nothing to go on with
        assert names["f"](9) == 3
    with interruptible_source.until(ended(b"code")), pytest.raises(interruptible_source.HandOver):
        names["f"](9)


def test_a_long_call_goes_on_with_machine_code(background: Queue) -> None:
    def stepped(y, rng, n):
        total = 0.0
        for k in range(n):
            y[k % len(y)] += 1.0
            total += y[0] * rng.normal() * 1e-3 + y[k % len(y)] * 0.5
        return total

    n = 6_000_000  # several times what compiling takes
    f = fresh(stepped)
    y, rng = np.zeros(5), np.random.default_rng(1)
    value, gradient = f.value_and_grad(y, rng, n)
    assert dispatcher(f, y, rng, n).overloads, "the call ended before the machine code was there: it tests nothing"
    other = np.random.default_rng(1)
    rounds = np.arange(n) // 5 + 1.0
    assert value == pytest.approx(np.sum(rounds * (1e-3 * other.normal(size=n) + 0.5)), rel=1e-10)
    np.testing.assert_array_equal(y, np.full(5, n / 5))  # not stored into twice
    assert rng.normal() == other.normal()  # nor drawn twice
    assert gradient[1:] == pytest.approx(np.full(4, n / 10))


def test_messages_appear_once(background: Queue, capsys: pytest.CaptureFixture[str]) -> None:
    def told(x, n):
        total = 0.0
        for k in range(n):
            if k % 50_000 == 0:
                print("step", k)
            total += x[k % len(x)]
        return total

    f = fresh(told)
    f.value_and_grad(X, 200_000)
    assert capsys.readouterr().out == "step 0\nstep 50000\nstep 100000\nstep 150000\n"


def test_a_run_with_messages_of_a_recursive_function_is_not_given_up() -> None:
    def halved(n, x):
        print("halved", n)
        return x if n == 0 else 0.5 * halved(n - 1, x)

    def silent(n, x):
        return x if n == 0 else 0.5 * silent(n - 1, x)

    for function, wanted in ((halved, False), (silent, True)):
        program = fresh(function, wrt="x")._specialise((3, 1.5), {}).program
        assert program.is_repeatable is wanted


def test_a_bar_of_a_call_that_begins_again_is_erased(background: Queue, capsys: pytest.CaptureFixture[str]) -> None:
    def total(x, n):
        found = 0.0
        for k in tqdm(range(n), leave=True):
            for _ in range(600):
                found += x[k % len(x)] ** 2
        return found

    n = 100_000  # many times what compiling takes, also while other programs run
    f = fresh(total)
    value, gradient = f.value_and_grad(X, n)
    assert dispatcher(f, X, n).overloads, "the call ended before the machine code was there: it tests nothing"
    assert value == pytest.approx(600 * n / len(X) * np.sum(X**2), rel=1e-9)
    np.testing.assert_allclose(gradient, 1200.0 * n / len(X) * X, rtol=1e-9)
    assert progress_bars.opened() == 0
    shown = capsys.readouterr().err
    assert shown.count(f"{n}/{n}") == 1  # of the run that ended
    assert "\n" in shown.rpartition(f"{n}/{n}")[2] and "\n" not in shown.rpartition(f"{n}/{n}")[0]


def test_messages_before_an_error_appear_once(background: Queue, capsys: pytest.CaptureFixture[str]) -> None:
    def told(x):
        print("told", x)
        if x > 1.0:
            raise ValueError("too large")
        return x * x

    f = fresh(told)
    with pytest.raises(ValueError, match="too large"):
        f.value_and_grad(2.0)
    assert capsys.readouterr().out == "told 2.0\n"


# ---- precompile ------------------------------------------------------------------------------------------------------


def test_precompile(background: Queue) -> None:
    f = fresh()
    f.precompile(X, 3, modes=("value", "grad", "vjp", "jvp", "hvp"))
    for form in ("primal", "joint", "record", "pullback"):
        assert dispatcher(f, X, 3, form=form).overloads, form
    _, pullback = f.vjp(X, 3)
    np.testing.assert_array_equal(pullback(1.0), f.grad(X, 3))
    assert len(dispatcher(f, X, 3, form="pullback").overloads) == 1
    f.jvp((X, 3), (X, None))
    tg.hvp(f, (X, 3), (X, None))
    assert background._process is None  # nothing was left for the helper


def test_precompile_does_not_run_the_function(capsys: pytest.CaptureFixture[str]) -> None:
    def told(x):
        print("called")
        x *= 2.0
        return np.sum(x)

    f, x = fresh(told), X.copy()
    f.precompile(x, modes=("value_and_grad", "vjp"))
    assert capsys.readouterr().out == ""
    np.testing.assert_array_equal(x, X)


@pytest.mark.parametrize("modes", ["grad", ("gradient",)])
def test_precompile_refuses_other_modes(modes: Any) -> None:
    with pytest.raises(BadArgument, match="modes"):
        fresh().precompile(X, 3, modes=modes)


# ---- where there is background compilation ---------------------------------------------------------------------------


def test_one_processor(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv(availability.SWITCH, "1")
    monkeypatch.setattr(availability, "is_worker", lambda: False)
    assert availability.is_on()
    quota = tmp_path / "cpu.max"
    monkeypatch.setattr(availability, "_CPU_QUOTA", str(quota))
    for text, is_on in (("max 100000", True), ("150000 100000", False), ("garbage", True)):
        quota.write_text(text, encoding="ascii")
        assert availability.is_on() is is_on, text
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: {0}, raising=False)
    assert not availability.is_on()


def test_switches(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(availability, "is_worker", lambda: False)
    monkeypatch.delenv(availability.SWITCH)
    assert availability.is_on()
    with availability.waiting():
        assert not availability.is_on()
    monkeypatch.setattr(tg.config, "background", False)
    assert not availability.is_on()
    monkeypatch.undo()
    monkeypatch.setenv(availability.SWITCH, "off")
    assert not availability.is_on()


# ---- whole processes -------------------------------------------------------------------------------------------------

KERNEL = """
    import json, os, signal, sys, threading, time
    import numpy as np
    import tapegen as tg
    from tapegen.backend.background.compile_queue import queue

    @tg.differentiable
    def f(x):
        total = 0.0
        for k in range(len(x)):
            total += np.sin(x[k]) ** 2
        return total

    x = np.linspace(0.1, 1.0, 5)
    signal.signal(signal.SIGINT, signal.default_int_handler)  # shells start what runs behind them without

    def helper():
        end = time.monotonic() + 60
        while queue()._process is None and time.monotonic() < end:
            time.sleep(0.01)
        return queue()._process.pid

    def compiled():
        return bool(f._specialise((x,), {}).program.parts.built["joint"].overloads)
"""


def script(code: str, folder: Path, **env: str) -> Any:
    """What a script without a main guard prints, as JSON."""
    path = folder / "script.py"
    path.write_text(textwrap.dedent(KERNEL) + textwrap.dedent(code), encoding="utf-8")
    settings = {**os.environ, availability.SWITCH: "1", "TAPEGEN_CACHE": "0", **env}
    done = subprocess.run(
        [sys.executable, "-W", "error", str(path)], env=settings, capture_output=True, text=True, timeout=180
    )
    assert done.returncode == 0 and not done.stderr, done.stderr
    return json.loads(done.stdout)


def is_alive(pid: int) -> bool:
    try:
        state = Path(f"/proc/{pid}/stat").read_text(encoding="ascii").rpartition(")")[2].split()[0]
    except (FileNotFoundError, ProcessLookupError):
        return False
    return state != "Z"


def test_the_helper_ends_with_the_interpreter_which_does_not_wait(tmp_path: Path) -> None:
    pid, begun = script("f.grad(x); print(json.dumps([helper(), time.time()]))", tmp_path)
    assert time.time() - begun < 5.0
    assert not is_alive(pid)


def test_the_helper_ends_with_a_process_that_is_killed(tmp_path: Path) -> None:
    code = "f.grad(x); print(json.dumps(helper()), flush=True); os.kill(os.getpid(), signal.SIGKILL)"
    path = tmp_path / "script.py"
    path.write_text(textwrap.dedent(KERNEL) + code, encoding="utf-8")
    settings = {**os.environ, availability.SWITCH: "1", "TAPEGEN_CACHE": "0"}
    done = subprocess.run([sys.executable, str(path)], env=settings, capture_output=True, text=True, timeout=180)
    assert done.returncode == -signal.SIGKILL
    end = time.monotonic() + 60
    while is_alive(json.loads(done.stdout)):
        assert time.monotonic() < end
        time.sleep(0.05)


def test_machine_code_of_the_helper_is_stored_on_disk(tmp_path: Path) -> None:
    code = """
        count = 0
        f.grad(x)
        while not compiled():
            f.grad(x)
            count += 1
            time.sleep(0.02)
        print(json.dumps(count))
    """
    cache = {"TAPEGEN_CACHE": "1", "TAPEGEN_CACHE_DIR": str(tmp_path / "cache")}
    assert script(code, tmp_path, **cache) > 0
    assert script(code, tmp_path, **cache) == 0


def test_a_forked_child_has_a_helper_of_its_own(tmp_path: Path) -> None:
    code = """
        f.grad(x)
        mine = helper()
        child = os.fork()
        if child == 0:
            try:
                good = np.allclose(f.grad(x), np.sin(2 * x)) and helper() != mine
                end = time.monotonic() + 60
                while not compiled() and time.monotonic() < end:
                    f.grad(x)
                    time.sleep(0.02)
                good = good and compiled()
                queue().close()
            finally:
                os._exit(0 if good else 1)
        status = os.waitpid(child, 0)[1]
        end = time.monotonic() + 60
        while not compiled() and time.monotonic() < end:
            f.grad(x)
            time.sleep(0.02)
        print(json.dumps([status, compiled()]))
    """
    assert script(code, tmp_path) == [0, True]


def test_interrupt_while_waiting_for_the_helper(tmp_path: Path) -> None:
    code = """
        f.grad(x)
        helper()
        threading.Timer(0.3, os.kill, (os.getpid(), signal.SIGINT)).start()
        try:
            while True:
                f.precompile(x)
                time.sleep(0.01)
        except KeyboardInterrupt:
            pass
        f.precompile(x)
        print(json.dumps([compiled(), np.allclose(f.grad(x), np.sin(2 * x))]))
    """
    assert script(code, tmp_path) == [True, True]
