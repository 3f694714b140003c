"""Limits of the compiler and of the machine."""

from __future__ import annotations

import _thread
import math
import signal
import subprocess
import sys
import threading
import time
import tracemalloc
import types
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import tapegen as tg
from tapegen import differentiable
from tapegen.errors import BadArgument, PerformanceWarning, TapeMemoryError
from tapegen.rules import registry
from tests.judged import both, raises_as_python, right
from tests.sources import define

X = np.array([0.5, -1.5, 2.0])


# ---- size of programs ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("terms", [500, 900])
def test_g95_long_sums(terms: int) -> None:
    func = define("def f(x):\n    return " + " + ".join(f"x * {k}.0" for k in range(1, terms + 1)) + "\n")
    total = terms * (terms + 1) / 2.0
    value, gradient = differentiable(func, backend="python").value_and_grad(2.0)
    assert value == pytest.approx(2.0 * total, rel=1e-12)
    assert gradient == pytest.approx(total, rel=1e-12)


@pytest.mark.compiled
def test_g95_long_sum_compiled() -> None:
    func = define("def f(x):\n    return " + " + ".join(f"x * {k}.0" for k in range(1, 501)) + "\n")
    value, gradient = differentiable(func, backend="numba").value_and_grad(2.0)
    assert (value, gradient) == (pytest.approx(2.0 * 125250.0), pytest.approx(125250.0))


@pytest.mark.parametrize("depth", [90, 190])
def test_g95_nested_parentheses(depth: int) -> None:
    func = define("def f(x):\n    return " + "(" * depth + "x" + " * 1.01 + x)" * depth + "\n")
    derived = differentiable(func, backend="python")
    assert derived(0.5) == func(0.5)
    value, gradient = derived.value_and_grad(0.5)
    assert value == pytest.approx(func(0.5), rel=1e-12)
    assert gradient == pytest.approx(func(1.0), rel=1e-12)  # it is linear


def nested(blocks: int) -> Any:
    """A function of as many blocks within one another, loops and branches in turn."""
    lines, indent = ["def f(x, n):", "    y = x"], "    "
    for k in range(blocks):
        header = f"for i{k} in range(n):" if k % 2 else f"if y > {-k}.0:"
        lines.append(f"{indent}{header}")
        indent += "    "
        lines.append(f"{indent}y = y * x + {k}.0")
    lines.append("    return y")
    return define("\n".join(lines) + "\n")


@both
def test_g96_nested_blocks(backend: str) -> None:
    right(nested(9), 0.3, 1, backend=backend)


@pytest.mark.parametrize("backend", ["python", pytest.param("numba", marks=pytest.mark.compiled)])
def test_g96_as_deep_as_python_allows(backend: str) -> None:
    func = nested(36)  # with 18 loops; CPython takes 20
    right(func, 0.3, 1, backend=backend)


@pytest.mark.parametrize("lines", [250, 1000])
def test_g97_time_grows_with_the_length(lines: int) -> None:
    body = "".join(f"    y = y * x + math.sin(y) * {k}.5\n" for k in range(lines))
    func = define(f"import math\ndef f(x):\n    y = x\n{body}    return y * 1e-9\n")
    start = time.process_time()
    differentiable(func, backend="python").grad(0.1)
    assert time.process_time() - start < 0.02 * lines  # some 4 ms a line; a quadratic pass would take far more


# ---- interrupts and memory -----------------------------------------------------------------------------------------


def waits(x: float, n: int) -> float:
    for _ in range(n):
        x = math.sin(x) + 0.1
    return x


def interrupted(call: Any, seconds: float) -> float:
    """How long a call takes to end after an interrupt; it must not return."""
    sent: list[float] = []

    def send() -> None:
        sent.append(time.perf_counter())
        _thread.interrupt_main()

    timer = threading.Timer(seconds, send)
    handler = signal.signal(signal.SIGINT, signal.default_int_handler)  # shells start what runs behind them without
    timer.start()
    try:
        with pytest.raises(KeyboardInterrupt):
            call()
    finally:
        timer.join()
        signal.signal(signal.SIGINT, handler)
    return time.perf_counter() - sent[0]


@pytest.mark.compiled
def test_g98_interrupt_while_compiling() -> None:
    body = "".join(f"    y = y * x + math.sin(y) * {k}.5\n" for k in range(120))
    func = define(f"import math\ndef f(x):\n    y = x\n{body}    return y * 1e-9\n")
    derived = differentiable(func, backend="numba")
    derived.inspect(0.1)
    assert interrupted(lambda: derived.grad(0.1), 0.3) < 4.0
    assert derived.grad(0.1) == pytest.approx(differentiable(func, backend="python").grad(0.1), rel=1e-9)


def test_g99_interrupt_of_a_loop_in_python() -> None:
    derived = differentiable(waits, backend="python")
    derived.grad(0.1, 3)
    assert interrupted(lambda: derived.grad(0.1, 3_000_000), 0.2) < 1.0
    assert derived.grad(0.1, 0) == 1.0


# ---- errors --------------------------------------------------------------------------------------------------------


def checked(a: np.ndarray, limit: float) -> float:
    b = a * 2.0
    total = 0.0
    for i in range(a.size):
        if b[i] > limit:
            raise ValueError("too large")
        b[i] = b[i] * b[i]
        total += math.sqrt(b[i]) * b[i]
    return total


@both
def test_g102_exception_of_the_user(backend: str) -> None:
    derived = right(checked, X, 9.0, backend=backend)
    expected = derived.grad(X, 9.0)
    raises_as_python(checked, X, 1.5, backend=backend, at='raise ValueError("too large")')
    np.testing.assert_array_equal(derived.grad(X, 9.0), expected)


@both
def test_g102_errors_leave_no_memory_behind(backend: str) -> None:
    derived = differentiable(checked, backend=backend)
    large = np.full(200_000, 0.5)
    large[150_000] = 99.0
    derived.grad(X, 9.0)

    def fail() -> None:
        with pytest.raises(ValueError, match="too large"):
            derived.grad(large, 9.0)

    if backend == "python":
        large = large[149_990:150_010].copy()
    fail()
    tracemalloc.start()
    for _ in range(3):
        fail()
    held, _ = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert held < 2_000_000


def halves(x: float, parts: int) -> float:
    return x * math.ldexp(1.0, parts)


def halves_pullback(x: float, parts: int, *, out_bar: float) -> float:
    return out_bar * (8 // parts)


def with_rule(x: float, parts: int) -> float:
    y = x
    for k in range(2):
        y = halves(y, parts - k) * 0.125
    return y


def test_g103_error_in_the_gradient_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(registry, "_RULES", dict(registry._RULES))
    tg.pullback(halves)(halves_pullback)
    derived = differentiable(with_rule, backend="python")
    assert derived.grad(1.0, 4) == 0.0625
    line = with_rule.__code__.co_firstlineno + 3
    with pytest.raises(BadArgument, match=f"in the gradient of line {line}: ZeroDivisionError") as caught:
        derived.value_and_grad(1.0, 1)
    assert "halves(y, parts - k) * 0.125" in str(caught.value)
    _, pullback = derived.vjp(1.0, 1)
    with pytest.raises(BadArgument, match=f"in the gradient of line {line}: ZeroDivisionError"):
        pullback(1.0)


def outer(x: float, n: int) -> float:
    big = np.zeros((n, 1024, 1024))
    big[0, 0, 0] = x
    return big[0, 0, 0] * x


@both
def test_g104_memory_error(backend: str) -> None:
    derived = differentiable(outer, backend=backend)
    assert derived.grad(3.0, 1) == 6.0
    with pytest.raises(MemoryError):
        derived.grad(3.0, 2**30)
    assert derived.grad(3.0, 1) == 6.0


def test_g101_a_tape_that_does_not_fit_into_memory() -> None:
    """Plain Python does not run then: the loop, which cannot be checkpointed, may be one that takes days."""

    def waves(x: float, n: int) -> float:
        kept = []
        for k in range(n):
            x = math.sin(x) * x
            if k % 1000 == 0:
                kept.append(x)
        return sum(kept)

    derived = differentiable(waves, backend="python")
    for derivative in (derived.value_and_grad, derived.vjp):
        derivative(0.5, 3)
        with pytest.raises(TapeMemoryError, match=r"waves records .* does not fit into memory") as caught:
            derivative(0.5, 2**60)
        assert caught.value.span is not None
        assert caught.value.span.line == waves.__code__.co_firstlineno + 2


def test_g101_a_tape_that_numpy_has_no_room_for(monkeypatch: pytest.MonkeyPatch) -> None:
    """Plain Python is not asked then: the loop may be one that takes days."""

    def waves(x: float, n: int) -> float:
        for _ in range(n):
            x = math.sin(x) * x
        return x

    def empty(*args: Any, **kwargs: Any) -> Any:
        raise MemoryError("no room")

    derived = differentiable(waves, backend="python")
    derivatives = (derived.value_and_grad, derived.vjp)
    for derivative in derivatives:
        derivative(0.5, 3)
    built = derived._specialise((0.5, 3), {}).program.parts.built
    full = types.SimpleNamespace(**{**vars(np), "empty": empty})
    for form in ("joint", "record"):
        monkeypatch.setitem(built[form].__globals__, "np", full)
    for derivative in derivatives:
        with pytest.raises(TapeMemoryError, match="waves records does not fit into memory: no room") as caught:
            derivative(0.5, 40)
        assert caught.value.span is not None
        assert caught.value.span.line == waves.__code__.co_firstlineno + 1


_FULL = """
import resource
import tapegen as tg

def waves(x, n):
    for _ in range(n):
        x = 0.5 * x * x + 0.25
    return x

derived = tg.differentiable(waves, backend="numba")
derived.grad(0.5, 3)
derived(0.5, 3)
resource.setrlimit(resource.RLIMIT_AS, (2**32, 2**32))
print(derived.grad(0.5, 6 * 10**8))
"""


@pytest.mark.compiled
@pytest.mark.skipif(sys.platform != "linux", reason="limits of memory are Linux's")
def test_g101_a_compiled_loop_is_checkpointed_where_its_tape_has_no_room(tmp_path: Path) -> None:
    program = tmp_path / "full.py"
    program.write_text(_FULL)
    ran = subprocess.run([sys.executable, program], capture_output=True, text=True, timeout=60, check=True)
    assert float(ran.stdout) == 0.0  # a product of numbers that are less than 1


def test_g105_calls_a_hundred_deep() -> None:
    text = "".join(f"def f{k}(x):\n    return f{k - 1}(x) * 1.01 + x\n" for k in range(1, 101))
    func = define(f"def f0(x):\n    return x\n{text}", "f100")
    value, gradient = differentiable(func, backend="python").value_and_grad(2.0)
    assert value == pytest.approx(func(2.0), rel=1e-12)
    assert gradient == pytest.approx(func(1.0), rel=1e-12)


def test_g105_decorated_all_the_way() -> None:
    func: Any = differentiable(define("def f(x):\n    return x * x\n"), backend="python")
    for k in range(100):
        made = define(f"def f(x):\n    # {k}\n    return inner(x) * 1.01\n")
        made.__globals__["inner"] = func
        func = differentiable(made, backend="python")
    value, gradient = func.value_and_grad(2.0)
    assert value == pytest.approx(4.0 * 1.01**100, rel=1e-12)
    assert gradient == pytest.approx(4.0 * 1.01**100, rel=1e-12)


# ---- what has no compiled form -------------------------------------------------------------------------------------


def factorials(x: float, n: int) -> float:
    factorial = 1
    for k in range(1, n):
        factorial = factorial * k
    return x * x / factorial


@pytest.mark.compiled
def test_integers_beyond_64_bits_run_as_python() -> None:
    derived = differentiable(factorials)
    assert derived.grad(0.5, 15) == 1.0 / math.factorial(14)
    with pytest.warns(PerformanceWarning, match="an integer has more than 64 bits"):
        assert derived.value_and_grad(0.5, 40) == (0.25 / math.factorial(39), 1.0 / math.factorial(39))
