"""Checkpointed loops: gradients are those of the recording program, and arguments are as the primal leaves them."""

from __future__ import annotations

import copy
import functools
import math
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import tapegen as tg
from tapegen.backend.numba.build import build_numba, build_python
from tapegen.pipeline import compile
from tapegen.pipeline.artifacts import execution
from tapegen.pipeline.artifacts.generated_text import compiled_text, readable_text
from tapegen.pipeline.artifacts.program import Program
from tapegen.runtime.checkpointed_calls import MOST_RUNS, scheduled
from tapegen.transform.recording.checkpoint_state import Refused
from tapegen.transform.recording.decisions import Schedule

SCHEDULES = ((1, 1000), (2, 1000), (3, 1000), (100, 1000), (1, 1), (1, 2), (1, 3), (2, 2), (2, 3), (3, 1))
"""Iterations of a segment, and checkpoints."""


def burgers(u0: Any, nu: float, n: int) -> Any:
    u = u0.copy()
    for _ in range(n):
        u[1:-1] = u[1:-1] + nu * (u[2:] - 2 * u[1:-1] + u[:-2]) * u[1:-1]
    return np.sum(u**2)


def unknown_length(x: float) -> float:
    k = 0
    while x < 100.0:
        x = x * 1.1 + 0.5 * (1.0 + math.sin(x))
        k += 1
    return x * k


def with_break(x: float, n: int) -> float:
    s = 0.0
    for i in range(n):
        if s > 3.0:
            break
        s += math.sin(x * i) ** 2
        x = x * 1.01
    return s * x


def early_return(x: float, n: int) -> float:
    s = x
    for _ in range(n):
        s = s * s * 0.9 + 0.2
        if s > 2.0:
            return s * x
    return s


def swapped(u: Any, n: int) -> Any:
    v = np.zeros_like(u)
    for _ in range(n):
        for i in range(1, len(u) - 1):
            v[i] = u[i] + 0.1 * (u[i + 1] - 2 * u[i] + u[i - 1]) * u[i]
        u, v = v, u
    return np.sum(u * u)


def trajectory(x0: float, n: int) -> Any:
    x = np.zeros(n + 1)
    x[0] = x0
    for t in range(n):
        x[t + 1] = x[t] + 0.1 * np.sin(x[t]) * x[t]
    return x[n] * x[n // 2]


def downwards(x: float, n: int) -> float:
    s = x
    for i in range(n, 0, -2):
        s = s * math.cos(s * i) + x
    return s


def nested(x: float, n: int, m: int) -> float:
    s = x
    for _ in range(n):
        y = s
        for j in range(m):
            y = y * math.sin(y + j) + 0.1
        s = s + y * x
    return s


def while_inside(x: float, n: int) -> float:
    s = x
    for _ in range(n):
        y = s
        while y < 5.0:
            y = y * y + 1.0 + x
        s = s * 0.5 + y * x
    return s


def shared_weights(w: Any, n: int) -> Any:
    h = np.zeros(3)
    for _ in range(n):
        h = np.tanh(w @ h + 0.5 * w[0])
    return np.sum(h)


def written_argument(u: Any, n: int) -> Any:
    for _ in range(n):
        u *= np.sin(u)
        u += 0.5
    return np.sum(u)


def two_loops(x: float, n: int) -> float:
    s = x
    for _ in range(n):
        s = math.sin(s) * s + x
    z = s
    for _ in range(n + 2):
        z = z * math.cos(z * s)
    s = s * z
    return s


def in_branch(x: float, n: int) -> float:
    s = x
    if n > 3:
        for _ in range(n):
            s = math.sin(s) * s + x
    else:
        s = s * s
    return s


def with_continue(x: float, n: int) -> float:
    s = x
    for i in range(n):
        if i % 3 == 1:
            continue
        if s < 0:
            s = s * s
            continue
        s = s * math.cos(s) - 0.1 * x
    return s


def through_view(u: Any, n: int) -> Any:
    a = u[1:-1]
    v = u.copy()
    w = v[1:]
    for _ in range(n):
        w[:] = w * v[:-1] * 1.2 + a.sum()
    return np.sum(v)


def integers_and_flags(x: float, n: int) -> float:
    a, b = 0, 1
    flag = True
    s = x
    for _ in range(n):
        a, b = b, (a + b) % 17
        s = s * math.sin(s + b) if flag else s + x * a
        flag = not flag and a > 3
    return s


def array_changes_later(u: Any, n: int) -> Any:
    v = u * 2
    s = np.ones(3)
    for _ in range(n):
        s = s * np.sin(v * s)
    v[:] = 3.0 * s
    return np.sum(v * s)


def inner_with_values_of_outer(x: float, n: int, m: int) -> Any:
    s = x
    u = np.ones(3) * x
    for i in range(n):
        a = math.sin(s * i)
        y = s
        w = u * 2.0
        j = 0
        while j < m + i:
            y = y * math.sin(y * a + j) + 0.1 * w[1]
            w[1] = w[1] * u[0] * 0.5 + y
            j += 1
        u[0] = y * a
        s = s * 0.5 + y * x
    return s + u[0]


def array_of_changing_length(x: float, n: int) -> Any:
    y = np.full(5, x)
    for k in range(n):
        y = np.sin(np.concatenate((y[:4], y[: k % 3])))
    return np.sum(y)


CASES: list[tuple[Callable[..., Any], tuple[Any, ...], tuple[int, ...]]] = [
    (burgers, (np.linspace(0, 1, 6) ** 2, 0.1, 8), (0,)),
    (unknown_length, (1.0,), (0,)),
    (with_break, (0.7, 30), (0,)),
    (early_return, (0.7, 9), (0,)),
    (early_return, (3.0, 9), (0,)),
    (swapped, (np.linspace(0, 1, 5) ** 2, 7), (0,)),
    (swapped, (np.linspace(0, 1, 5) ** 2, 4), (1,)),
    (trajectory, (0.3, 9), (0,)),
    (downwards, (0.4, 11), (0,)),
    (nested, (0.3, 5, 4), (0,)),
    (nested, (0.3, 5, 4), (1,)),
    (while_inside, (0.2, 6), (0,)),
    (while_inside, (0.2, 6), (1,)),
    (shared_weights, (np.array([[0.1, 0.2, 0.3], [0.3, -0.2, 0.1], [0.4, 0.5, 0.1]]), 7), (0,)),
    (written_argument, (np.array([0.1, 0.2, 0.3]), 6), (0,)),
    (two_loops, (0.3, 5), (0, 1)),
    (two_loops, (0.3, 0), (0, 1)),
    (in_branch, (0.3, 7), (0,)),
    (in_branch, (0.3, 2), (0,)),
    (with_continue, (0.3, 10), (0,)),
    (through_view, (np.array([0.1, 0.2, 0.3, 0.4]), 5), (0,)),
    (integers_and_flags, (0.3, 13), (0,)),
    (array_changes_later, (np.array([0.1, 0.2, 0.3]), 5), (0,)),
    (inner_with_values_of_outer, (0.3, 4, 3), (0,)),
    (inner_with_values_of_outer, (0.3, 4, 3), (1,)),
    (array_of_changing_length, (0.3, 7), (0,)),
]
NAMES = [f"{func.__name__}-{cut}-{k}" for k, (func, _, cut) in enumerate(CASES)]


def program_of(func: Callable[..., Any], args: tuple[Any, ...]) -> tuple[Program, list[Any]]:
    call = tg.differentiable(func, backend="python")._specialise(args, {})
    return call.program, call.leaves()


@pytest.mark.parametrize(("func", "args", "cut"), CASES, ids=NAMES)
def test_gradient_of_recording_program(func: Callable[..., Any], args: tuple[Any, ...], cut: tuple[int, ...]) -> None:
    program, leaves = program_of(func, copy.deepcopy(args))
    recording = build_python(readable_text(program, program.function("joint")))
    variant = program.with_checkpoints(cut)
    built = build_python(readable_text(variant, variant.function("joint")))
    expected = recording(*copy.deepcopy(leaves), 1.0)
    left = copy.deepcopy(leaves)
    execution.run(program, "primal", left)
    for schedule in SCHEDULES:
        given = copy.deepcopy(leaves)
        found = built(*given, 1.0, *schedule * len(cut))
        for a, b in zip((*found, *given), (*expected, *left), strict=True):
            np.testing.assert_array_equal(a, b)


@pytest.mark.compiled
@pytest.mark.parametrize(("func", "args", "cut"), CASES, ids=NAMES)
def test_compiled_gradient(func: Callable[..., Any], args: tuple[Any, ...], cut: tuple[int, ...]) -> None:
    program, leaves = program_of(func, copy.deepcopy(args))
    variant = program.with_checkpoints(cut)
    built = [
        build_numba(compiled_text(each, each.function("joint")), from_start=True, kept=False, background=False)
        for each in (program, variant)
    ]
    expected = built[0](*copy.deepcopy(leaves), 1.0)
    for schedule in SCHEDULES:
        found = built[1](*copy.deepcopy(leaves), 1.0, *schedule * len(cut))
        for a, b in zip(found, expected, strict=True):
            np.testing.assert_array_equal(a, b)


def slow_growth(x: float) -> float:
    while x < 2.0:
        x = x * 1.001 + 1e-4 * math.sin(x)
    return x


TIGHT: list[tuple[Callable[..., Any], tuple[Any, ...], int]] = [
    (burgers, (np.linspace(0, 1, 20) ** 2, 0.1, 400), 30_000),
    (slow_growth, (1e-3,), 20_000),
    (swapped, (np.linspace(0, 1, 50) ** 2, 700), 100_000),
    (nested, (0.3, 50, 40), 6000),
    (nested, (0.3, 3, 800), 8000),
    (while_inside, (0.2, 600), 8000),
    (written_argument, (np.array([0.1, 0.2, 0.3]), 600), 20_000),
    (shared_weights, (np.eye(3) * 0.3, 400), 25_000),
]


@pytest.mark.parametrize(("func", "args", "budget"), TIGHT, ids=[func.__name__ for func, _, _ in TIGHT])
def test_budget(func: Callable[..., Any], args: tuple[Any, ...], budget: int) -> None:
    expected = tg.value_and_grad(func, backend="python")(*copy.deepcopy(args))
    derived = tg.differentiable(func, backend="python", memory=budget)
    given = copy.deepcopy(args)
    np.testing.assert_equal(derived.value_and_grad(*given), expected)
    after = copy.deepcopy(args)
    func(*after)
    np.testing.assert_equal(given, after)
    value, pullback = derived.vjp(*copy.deepcopy(args))
    assert value == expected[0]
    for _ in range(2):
        np.testing.assert_equal(pullback(1.0), expected[1])
    assert derived._specialise(copy.deepcopy(args), {}).program.variants


def grows(x: float, n: int) -> float:
    found = [x]
    for _ in range(n):
        if found[-1] > 0.0:
            found.append(math.sin(found[-1]))
    return sum(found)


def test_state_that_grows_is_refused() -> None:
    with pytest.raises(tg.TapeMemoryError, match="the list 'found' changes in it") as caught:
        tg.grad(grows, backend="python", memory="2kB")(0.5, 10_000)
    assert caught.value.span is not None
    assert caught.value.span.line == grows.__code__.co_firstlineno + 2


def test_budget_that_holds_no_checkpoint() -> None:
    u = np.linspace(0, 1, 100)
    with pytest.raises(tg.TapeMemoryError, match="the budget is 1000 bytes"):
        tg.grad(burgers, backend="python", memory=1000)(u, 0.1, 1000)


def fails(x: float, u: Any, n: int) -> float:
    for k in range(n):
        u[0] += x
        x = math.log(x)
        x = x * x / (k - 50)
    return x


def test_exception_leaves_arguments_as_plain_python_does() -> None:
    u, plain = np.zeros(2), np.zeros(2)
    with pytest.raises(ValueError, match="math domain error"):
        fails(1.5, plain, 200)
    with pytest.raises(ValueError, match="math domain error"):
        tg.grad(fails, backend="python", memory=3000)(1.5, u, 200)
    np.testing.assert_array_equal(u, plain)


@pytest.mark.parametrize("memory", [0, -1, "2 apples", "GB", "", "0MB", True, 1.5, -0.5, [1], "nanGB"])
def test_no_amount_of_memory(memory: Any) -> None:
    with pytest.raises(tg.BadArgument, match="is no amount of memory"):
        tg.differentiable(burgers, memory=memory)
    with pytest.raises(tg.BadArgument, match="is no amount of memory"):
        tg.grad(burgers, memory=memory)


def test_aliases_are_refused() -> None:
    def rotated(u: Any, n: int) -> Any:
        v, w = u.copy(), u.copy()
        for k in range(n):
            if k % 2:
                v = w
            v[0] = v[0] * u[1]
        return np.sum(v + w)

    program, _ = program_of(rotated, (np.ones(3), 4))
    with pytest.raises(Refused, match="may be the same array"):
        program.with_checkpoints((0,)).stages(scalar=True)


def test_loops_do_not_change_without_checkpoints() -> None:
    program, _ = program_of(burgers, (np.ones(5), 0.1, 4))
    (loop,) = program.stages(scalar=True).loops()
    assert loop.count == "max(n, 0)"
    assert loop.each is not None
    names = {"u0": np.ones(5), "n": 4}
    assert eval(loop.each, {"max": max}, names) == 2 * 8 * 3
    again = compile.derive_reverse(program.lowered.function, program.wrt_vars(), (True,), program.user_names)
    assert not again.cuts


def test_report_says_what_is_checkpointed() -> None:
    derived = tg.differentiable(burgers, backend="python", memory="100kB")
    few, many = (derived.inspect(np.ones(50), 0.1, n) for n in (10, 1000))
    assert few.report.memory == ("records 7,680 of 100,000 bytes, without checkpoints",)
    predicted, loop, time = many.report.memory
    assert predicted == "would record 768,000 bytes, and may take 100,000"
    assert "records 768 bytes in each iteration" in loop
    assert "checkpoints of 592 bytes, one every" in loop
    assert time.startswith("that takes about 1.")
    assert "u_checkpoints.append(u.copy())" in many.joint
    assert "checkpoints" not in few.joint
    assert many.report.recorded_bytes is not None
    assert many.report.recorded_bytes < 100_000
    assert "memory" in str(many.report)
    assert "memory" not in str(tg.differentiable(burgers, backend="python").inspect(np.ones(50), 0.1, 10).report)


def test_second_derivatives_record() -> None:
    def f(x: Any, n: int) -> Any:
        s = x * 1.0
        for _ in range(n):
            s = s * np.sin(s)
        return np.sum(s)

    x = np.array([0.3, 0.5])
    expected = tg.hessian(f, backend="python")(x, 60)
    np.testing.assert_array_equal(tg.hessian(f, backend="python", memory=500)(x, 60), expected)


def walk(x: float, rng: np.random.Generator, n: int) -> float:
    s = x
    for k in range(n):
        s = s * math.sin(s) + 0.1 * rng.normal()
        if k % 3 == 0:
            s = s + rng.uniform(0.0, 1.0) * x
    return s


def test_random_draws_are_drawn_again() -> None:
    states = []
    results = []
    for memory in (None, "60kB"):
        rng = np.random.default_rng(7)
        derived = tg.differentiable(walk, backend="python", memory=memory)
        results.append(derived.value_and_grad(0.3, rng, 4000))
        states.append(rng.bit_generator.state)
        value, pullback = derived.vjp(0.3, np.random.default_rng(7), 4000)
        results.append((value, pullback(1.0)))
        results.append((value, pullback(1.0)))
    assert all(result == results[0] for result in results)
    assert states[0] == states[1]
    assert derived._specialise((0.3, rng, 4000), {}).program.variants


def test_draws_of_several_generators_are_refused() -> None:
    def f(x: float, a: np.random.Generator, b: np.random.Generator, n: int) -> float:
        for _ in range(n):
            x = x * math.sin(x) + a.normal() - b.normal()
        return x

    with pytest.raises(tg.TapeMemoryError, match="several generators"):
        tg.grad(f, backend="python", memory="8kB")(0.3, np.random.default_rng(1), np.random.default_rng(1), 4000)


ENDLESS = """
import math, os, signal, threading, time
import tapegen as tg

def endless(x, bound):
    while x < bound:
        x = math.sin(x) + 0.1
    return x

signal.signal(signal.SIGINT, signal.default_int_handler)  # shells start what runs behind them without
derived = tg.differentiable(endless, backend="numba", memory="1MB")
x = 0.5
assert math.isfinite(derived.grad(x, 0.8))
try:
    threading.Timer(20.0, os.kill, (os.getpid(), signal.SIGINT)).start()
    start = time.time()
    derived.grad(x, 10.0)
except KeyboardInterrupt:
    assert time.time() - start < 22.0
    print("interrupted")
threading.Timer(0.5, os.kill, (os.getpid(), signal.SIGINT)).start()
start = time.time()
try:
    derived.grad(x, 10.0)
except KeyboardInterrupt:
    print("again", time.time() - start < 2.5)
"""


@pytest.mark.compiled
def test_interrupt_ends_a_loop_without_end(tmp_path: Path) -> None:
    program = tmp_path / "endless.py"
    program.write_text(ENDLESS)
    ran = subprocess.run([sys.executable, program], capture_output=True, text=True, timeout=120, check=False)
    assert (ran.returncode, ran.stdout, ran.stderr) == (0, "interrupted\nagain True\n", "")


@pytest.mark.compiled
def test_tapes_that_outgrew_a_budget_once_are_not_tried_again() -> None:
    """The memory of a tape is lost where compiled code gives up."""

    def halved(x: float, n: int) -> float:
        while n > 0:
            x = x * x * 0.5 + 0.1
            n -= 1 if x < 100.0 else 2
        return x

    derived = tg.differentiable(halved, backend="numba", memory="1MB")
    derived.grad(0.5, 3)
    fast = derived._specialise((0.5, 3), {}).program.repeated["joint"]
    assert fast is not None
    assert fast.run((0.5, 3)) is not None
    assert derived.grad(0.5, 10**6) == 0.0
    assert fast.run((0.5, 3)) is None


def powers(x: float, n: int) -> float:
    for _ in range(n):
        x = math.sin(x) * x
    return x


def fewest(segments: int, held: int) -> int:
    """The fewest runs without a tape that reverse segments, the last of which is reversed as soon as it is reached."""

    @functools.cache
    def runs(n: int, free: int) -> int:
        if n == 1:
            return 0
        if free == 1:
            return n * (n - 1) // 2
        return min(k + runs(n - k, free - 1) + runs(k, free) for k in range(1, n))

    return runs(segments, held)


@pytest.mark.parametrize("checkpoints", [1, 2, 3, 5, 8, 40])
def test_as_few_iterations_as_possible_run_again(checkpoints: int, monkeypatch: pytest.MonkeyPatch) -> None:
    count = 0
    sin = math.sin

    def counted(x: float) -> float:
        nonlocal count
        count += 1
        return sin(x)

    program, _ = program_of(powers, (0.9, 4))
    variant = program.with_checkpoints((0,))
    built = build_python(readable_text(variant, variant.function("joint")))
    monkeypatch.setattr(math, "sin", counted)
    for n in (1, 2, 3, 7, 20, 37):
        count = 0
        built(0.9, n, 1.0, 1, checkpoints)
        # each iteration runs once to be recorded, and the forward sweep is one run of all
        assert count - n == fewest(n + 1, checkpoints)
        assert count - n == Schedule(1, checkpoints).runs(n)


def test_number_of_checkpoints_of_a_loop_of_unknown_length() -> None:
    """No more are held than may be, and iterations run again as often as a small multiple of what is best."""
    program, _ = program_of(unknown_length, (1.0,))
    variant = program.with_checkpoints((0,))
    source = readable_text(variant, variant.function("joint"))
    held: list[int] = []

    class Watched(list[Any]):
        def append(self, item: Any) -> None:
            super().append(item)
            held.append(len(self))

    text = source.text.replace("starts = []", "starts = Watched()")
    assert text != source.text
    text = text.replace("trips_1 += 1\n", "trips_1 += 1\n                    runs.append(1)\n")
    runs: list[int] = []
    namespace: dict[str, Any] = {"Watched": Watched, "runs": runs}
    exec(text, namespace)
    derived = namespace[source.entry]
    for start in (1.0, 1e-3, 1e-4):
        expected = derived(start, 1.0, 1, 10**6)
        length = len(runs)
        for checkpoints in (1, 2, 3, 4, 7, 16):
            held.clear()
            runs.clear()
            assert derived(start, 1.0, 1, checkpoints) == expected
            assert max(held) <= checkpoints
            if checkpoints > 2:
                assert len(runs) <= 3 * (fewest(length + 1, checkpoints) + length)
        runs.clear()


def test_budget_of_few_checkpoints() -> None:
    """Where the least memory of two levels does not fit, iterations run again more often."""
    derived = tg.differentiable(burgers, backend="python", memory="25kB")
    u = np.linspace(0, 1, 50) ** 2
    expected = tg.grad(burgers, backend="python")(u, 0.1, 1200)
    np.testing.assert_array_equal(derived.grad(u, 0.1, 1200), expected)
    _, loop, time = derived.inspect(u, 0.1, 1200).report.memory
    assert "checkpoints of 592 bytes, segments of" in loop
    assert float(time.split()[3]) > 2.0


@pytest.mark.parametrize("checkpoints", [1, 2, 3, 5, 8])
def test_runs_are_those_of_revolve(checkpoints: int) -> None:
    """What follows a loop is one more step of it, the first to be reversed."""
    schedules = pytest.importorskip("checkpoint_schedules", reason="pip install '.[test]'")
    for n in range(1, 60):
        found = 0
        for action in schedules.Revolve(n + 1, checkpoints):
            if isinstance(action, schedules.EndReverse):
                break
            if isinstance(action, schedules.Forward) and not action.write_adj_deps:
                found += action.n1 - action.n0
        assert Schedule(1, checkpoints).runs(n) == found


def test_schedules_keep_to_their_share() -> None:
    rng = np.random.default_rng(4)
    found = 0
    for _ in range(400):
        count, state, each = (int(10 ** rng.uniform(low, high)) for low, high in ((0, 9), (1, 6), (0, 6)))
        share = int(max(state, each) * 10 ** rng.uniform(0, 5))
        schedule = scheduled(count, state, each, share)
        if schedule is None:
            continue
        found += 1
        held = min(schedule.checkpoints, -(-count // schedule.interval))
        assert held >= 1
        assert schedule.interval * each + held * state <= share
        assert schedule.runs(count) <= MOST_RUNS * max(count, schedule.interval)
        more = scheduled(count, state, each, 10 * share)
        assert more is not None
        assert more.runs(count) <= schedule.runs(count) + more.interval
    assert found > 100
    assert scheduled(10**6, 1000, 1000, 2500) is None  # one checkpoint would be enough, in 5e11 runs
