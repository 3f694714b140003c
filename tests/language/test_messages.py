"""Messages of differentiated functions: their text is that of plain Python, once, in the order of the program."""

from __future__ import annotations

import contextlib
import inspect
import io
import logging
import re
import sys
import threading
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tqdm import tqdm, trange

import tapegen as tg
from tapegen import PerformanceWarning
from tapegen.cli import main
from tapegen.ir import progress_bars

LOG = logging.getLogger("tests.language.messages")
SLOW = pytest.param("numba", marks=pytest.mark.compiled)
BACKENDS = ("python", "numba")


def told(run: Callable[[], Any]) -> tuple[str, list[tuple[str, str, int]]]:
    """What a call writes to standard output, logging included, and what it warns of."""
    out = io.StringIO()
    handler = logging.StreamHandler(out)
    handler.addFilter(lambda record: record.name != "tapegen")  # what is compiled
    handler.setFormatter(logging.Formatter("%(name)s %(levelname)s %(message)s"))
    logging.root.addHandler(handler)
    level = logging.root.level
    logging.root.setLevel(logging.INFO)
    try:
        with (
            contextlib.redirect_stdout(out),
            contextlib.redirect_stderr(out),
            warnings.catch_warnings(record=True) as caught,
        ):
            warnings.simplefilter("always")
            with contextlib.suppress(ValueError, IndexError):
                run()
    finally:
        logging.root.removeHandler(handler)
        logging.root.setLevel(level)
    assert not [each for each in caught if issubclass(each.category, PerformanceWarning)]
    return out.getvalue(), [(each.category.__name__, str(each.message), each.lineno) for each in caught]


def assert_told_once(function: Any, *args: Any, backend: str) -> None:
    expected = told(lambda: function(*args))
    derived = tg.differentiable(function, backend=backend)
    runs = [
        lambda: derived(*args),
        lambda: derived.value_and_grad(*args),
        lambda: derived.value_and_grad(*args),
        lambda: derived.vjp(*args)[1](1.0),
    ]
    for run in runs:
        found = told(run)
        assert found[0] == expected[0]
        assert [each[:2] for each in found[1]] == [each[:2] for each in expected[1]]
        if backend == "numba":
            assert found[1] == expected[1]  # lines too


def prints(x: Any, n: Any) -> Any:
    """Formats of numbers of Python and of NumPy, arrays, tuples, keywords of print."""
    y = np.array([x, 2.0 * x])
    wide = np.ones((2, 3), np.float32)
    print(f"begin {y.shape} {x!r} {n}", wide[:, ::-2], f"{np.max(y):8.3f}|{n:03d}", end=";\n", sep="|")
    for i in range(n):
        y = np.sin(y) * 1.5
        if i % 2 == 0:
            print("step", i, y, y[0], i > 1, f"{y[1]:.3e}", flush=True)
        LOG.info("at %d: %s, %.2f", i, y[0], y[1])
        LOG.debug("not %s", i)
    print("y =", y[::-1], 1j * x, np.float32(x), None)
    return y.sum()


def warns(x: Any, n: Any) -> Any:
    for i in range(n):
        x = np.sin(x) * 1.5
        if x > 1.0:
            warnings.warn(f"x is {x:.2f}", RuntimeWarning)  # noqa: B028
        else:
            warnings.warn("x is small")  # noqa: B028
        logging.warning("after %d", i)
    return x


def raises(x: Any, n: Any) -> Any:
    y = np.zeros(4)
    for i in range(n):
        print(f"store {i}")
        LOG.warning("store %d", i)
        y[i] = x
        if i == 2 and n == 3:
            raise ValueError("three")
    return y.sum()


def shadows(x: Any, n: Any) -> Any:
    """A string that is put together before what it shows changes."""
    text = f"{x:.2f} {n}"
    for i in range(n):
        x = x * x
        print(text, f"{x:.2f}", i)
    return x


def prints_to_streams(x: Any, n: Any) -> Any:
    y = np.array([x, 2.0 * x])
    for i in range(n):
        y = np.sin(y) * 1.5
        print(f"step {i}:", y[0], file=sys.stderr, flush=True)
        print(i, end=" ", file=sys.stdout)
        print("again", i, file=None)
    return y.sum()


CALLS = [(prints, 3), (prints_to_streams, 3), (warns, 3), (raises, 3), (raises, 5), (raises, 2), (shadows, 2)]


@pytest.mark.parametrize("backend", ["python", SLOW])
@pytest.mark.parametrize(("function", "n"), CALLS)
def test_messages_are_those_of_plain_python(function: Any, n: int, backend: str) -> None:
    assert_told_once(function, 0.9, n, backend=backend)


def test_a_compiled_sample_tells_the_same() -> None:
    assert_told_once(warns, 0.9, 3, backend="numba")
    assert_told_once(raises, 0.9, 5, backend="numba")


def printing(x: Any) -> Any:
    for _ in range(3):
        x = np.sin(x)
        print("x", x)
    return x


def test_a_message_is_written_when_the_program_comes_to_it() -> None:
    """It does not wait for the end of the call."""
    derived = tg.differentiable(printing, backend="numba")
    seen: list[str] = []

    class Stop(Exception):
        pass

    class Terminal(io.StringIO):
        def write(self, text: str) -> int:
            seen.append(text)
            if len(seen) > 8:
                raise Stop
            return len(text)

    with contextlib.redirect_stdout(Terminal()), pytest.raises(Stop):
        derived.value_and_grad(0.5)
    assert len(seen) == 9


@pytest.mark.parametrize("backend", BACKENDS)
def test_warnings_that_are_errors_are_raised(backend: str) -> None:
    def careful(x: Any) -> Any:
        print("before")
        warnings.warn("careful", RuntimeWarning)  # noqa: B028
        print("after")
        return x * x

    derived = tg.differentiable(careful, backend=backend)
    for _ in range(2):
        out = io.StringIO()
        with contextlib.redirect_stdout(out), contextlib.redirect_stderr(out), warnings.catch_warnings():
            warnings.simplefilter("error", RuntimeWarning)
            with pytest.raises(RuntimeWarning, match="careful"):
                derived.value_and_grad(1.0)
        assert out.getvalue() == "before\n"


def test_interrupts_in_a_handler_end_the_call() -> None:
    class Interrupts(logging.Handler):
        def emit(self, record: logging.LogRecord) -> None:
            raise KeyboardInterrupt

    def logs(x: Any) -> Any:
        LOG.error("now %s", x)
        return x * x

    handler = Interrupts()
    LOG.addHandler(handler)
    try:
        with pytest.raises(KeyboardInterrupt):
            tg.differentiable(logs, backend="numba").value_and_grad(1.0)
    finally:
        LOG.removeHandler(handler)


def test_handlers_may_keep_the_values() -> None:
    """Arrays in log records are copies: the memory of compiled code is used again."""
    records: list[logging.LogRecord] = []

    class Keeps(logging.Handler):
        def emit(self, record: logging.LogRecord) -> None:
            records.append(record)

    def logs(x: Any) -> Any:
        y = x * 1.0
        for _ in range(3):
            LOG.error("%s", y)
            y[:] = 2.0 * y
        return y.sum()

    handler = Keeps()
    LOG.addHandler(handler)
    LOG.propagate = False
    try:
        tg.differentiable(logs, backend="numba").value_and_grad(np.ones(2))
    finally:
        LOG.propagate = True
        LOG.removeHandler(handler)
    assert [record.getMessage() for record in records] == ["[1. 1.]", "[2. 2.]", "[4. 4.]"]


def test_other_threads_are_heard_while_a_call_is_repeated() -> None:
    """Only the thread whose messages were seen is quiet."""
    from tapegen.runtime.repeated_messages import seen

    out = io.StringIO()
    with contextlib.redirect_stdout(out), seen(1):
        other = threading.Thread(target=lambda: print("other"))
        other.start()
        other.join()
        print("seen")
        print("new")
    assert out.getvalue() == "other\nnew\n"
    assert print.__module__ == "builtins"
    assert not hasattr(print, "__wrapped__")


def warn_of_caller(x: Any, level: int) -> Any:
    warnings.warn(f"at {x:.1f}", RuntimeWarning, stacklevel=level)
    return x * x


def warns_of_callers(x: Any) -> Any:
    def inner(x: Any) -> Any:
        y = warn_of_caller(x, 2)
        return warn_of_caller(y, 3)

    x = inner(x)
    if x > 1.0:
        warnings.warn("the caller of all", stacklevel=2)
        warnings.warn("by position", UserWarning, 2)
    return sum(map(warn_of_caller, [x, 2.0 * x], [2, 1])) + warn_of_caller(x, 3)


def test_warnings_belong_to_the_line_of_the_caller() -> None:
    """Also compiled code knows it, whether the caller is a part of the program or not."""
    derived = tg.differentiable(warns_of_callers, backend="numba")
    found, expected = told(lambda: (derived.value_and_grad(2.0), 0)), told(lambda: (warns_of_callers(2.0), 0))
    assert found == expected
    assert {line for _, _, line in found[1]} > {inspect.currentframe().f_lineno - 2}  # type: ignore[union-attr]
    compiled = derived.inspect(2.0).compiled
    assert "raise" not in compiled


class OfAFunction:
    class Large(UserWarning):
        pass

    @classmethod
    def reports(cls, x: Any) -> Any:
        if x > 10.0:
            warnings.warn("large", cls.Large)  # noqa: B028
        return x * x


def test_messages_that_only_python_writes_leave_other_calls_compiled() -> None:
    """A class that has no name in its module is not found by compiled code."""
    derived = tg.differentiable(OfAFunction.reports)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        assert derived.value_and_grad(3.0) == (9.0, 6.0)
    assert not caught
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        assert derived.value_and_grad(11.0) == (121.0, 22.0)
    assert [str(each.message) for each in caught if each.category is OfAFunction.Large] == ["large"]


# ---- progress bars ---------------------------------------------------------------------------------------------------


def nested(x: Any, n: Any) -> Any:
    for _ in tqdm(range(n), desc="fit", mininterval=0):
        for _ in trange(2, leave=False, mininterval=0):
            x = np.sin(x) * 1.5
    return x


def exits_early(x: Any, n: Any) -> Any:
    for i in tqdm(range(n), mininterval=0):
        if i == 1:
            continue
        x = np.sin(x) * 1.5
        if x > 1.3:
            break
    for y in tqdm([1.0, 2.0 * x, "end"], mininterval=0, file=sys.stderr):
        if isinstance(y, str):
            return x
        x = x * y
    return x


def over_arrays(x: Any, n: Any) -> Any:
    for _, y in tqdm(enumerate(np.ones(n) * x), total=n, mininterval=0, disable=False):
        x = x * y
        if x > 100.0:
            return 2.0 * x
    for _ in tqdm(range(2), disable=True):
        x = x + 1.0
    return x


def shown(run: Callable[[], Any]) -> list[str]:
    """The states of progress bars, without times and what overwrites longer lines."""
    out = io.StringIO()
    with contextlib.redirect_stderr(out):
        run()
    states = [re.sub(r"\[\d\d:\d\d<.*?\]", "", state) for state in re.split(r"[\r\n]", out.getvalue())]
    states = [" ".join(state.split()) for state in states]
    return [state for state in states if state not in ("", "\x1b[A")]


@pytest.mark.parametrize(
    ("function", "backend"),
    [
        *((function, "python") for function in (nested, exits_early, over_arrays)),
        (nested, "numba"),
        pytest.param(exits_early, "numba", marks=pytest.mark.compiled),
        pytest.param(over_arrays, "numba", marks=pytest.mark.compiled),
    ],
)
def test_progress_bars_are_those_of_plain_python(function: Any, backend: str) -> None:
    expected = shown(lambda: function(0.9, 3))
    assert expected
    derived = tg.differentiable(function, backend=backend)
    with warnings.catch_warnings():
        warnings.simplefilter("error", PerformanceWarning)
        assert shown(lambda: derived(0.9, 3)) == expected
        for _ in range(2):
            assert shown(lambda: derived.value_and_grad(0.9, 3)) == expected
        assert shown(lambda: derived.vjp(0.9, 3)[1](1.0)) == expected
    tg.check_grads(function, 0.9, 3, backend="python")


@pytest.mark.parametrize("backend", BACKENDS)
def test_bars_are_closed_when_a_call_raises(backend: str) -> None:
    def stores(x: Any, n: Any) -> Any:
        y = np.zeros(2)
        for i in tqdm(range(n), mininterval=0):
            y[i] = x
        return y.sum()

    with contextlib.redirect_stderr(io.StringIO()), pytest.raises(IndexError):
        tg.differentiable(stores, backend=backend).value_and_grad(1.0, 3)
    assert progress_bars.opened() == 0


def test_written_modules_show_no_bars(tmp_path: Path, capsys: pytest.CaptureFixture) -> None:
    """They run without tapegen, which moves the bars."""
    file = tmp_path / "shows_bars.py"
    file.write_text(
        "from tqdm import tqdm\n\n\ndef f(x, n):\n    for _ in tqdm(range(n)):\n        x = x * x\n    return x\n"
    )
    for more in ((), ("--readable",)):
        assert main(["write", f"{file}::f", "--args", "f8, i8", *more]) == 0
        text = capsys.readouterr().out
        assert "progress" not in text
        assert "for " in text


def test_bars_of_higher_orders_move_once_for_each_product() -> None:
    expected = shown(lambda: nested(0.9, 3))
    assert shown(lambda: tg.hvp(nested, (0.9, 3), (1.0, None), backend="python")) == expected


def test_bars_without_a_loop_are_refused() -> None:
    def by_hand(x: Any, n: Any) -> Any:
        with tqdm(total=n) as bar:
            for _ in range(n):
                x = np.sin(x)
                bar.update(1)
        return x

    with pytest.raises(tg.NotDifferentiable, match="a progress bar without a loop of its own"):
        tg.differentiable(by_hand, backend="python").value_and_grad(1.0, 3)


# ---- recursion -------------------------------------------------------------------------------------------------------


def recursive(x: Any, n: int) -> Any:
    print(f"n = {n}, x = {x:.1f}")
    return x if x > 50.0 else recursive(x * x, n + 1)


@pytest.mark.compiled
@pytest.mark.parametrize("backend", BACKENDS)
def test_messages_of_recursive_functions(backend: str) -> None:
    assert_told_once(recursive, 2.0, 0, backend=backend)
