"""Compiled text reads nothing that it has not written and no item that is not there; see `strict`."""

from __future__ import annotations

import numpy as np
import pytest

from tapegen.backend.printer.source import PythonSource
from tests import strict
from tests.test_programs import ACCEPTED, Program, assert_gradient, assert_same, check_compiled, each

# Some programs are expected to run uncompiled, which `check_compiled` looks at.
pytestmark = pytest.mark.filterwarnings("ignore::tapegen.errors.PerformanceWarning")


def _run(body: str, *args: object) -> object:
    text = f"import math\n\nimport numpy as np\nfrom numba import njit\n\n\n@njit\ndef f(a, i):\n    {body}\n"
    return strict.build(PythonSource(text, "f", ("f",)))(*args)


@pytest.mark.parametrize("body", ["return a[i]", "a[i] = 2.0", "a[i] += 2.0", "a[i] /= 2.0", "return a[0, i]"])
@pytest.mark.parametrize("i", [-1, 3, np.int64(3)])
def test_an_index_outside_is_an_error(body: str, i: int) -> None:
    a = np.ones((3, 3)) if "0, i" in body else np.ones(3)
    with pytest.raises(strict.OutOfBounds, match=rf"index {i} of axis \d of an array of shape \(3,"):
        _run(body, a, i)


@pytest.mark.parametrize("make", ["np.empty(3)", "np.empty_like(a)", "np.empty((3, 2), np.float32)[:, 0]"])
def test_fresh_memory_is_no_number(make: str) -> None:
    assert np.all(np.isnan(_run(f"return {make}", np.ones(3), 0)))


def test_fresh_whole_numbers_are_absurd() -> None:
    assert np.min(_run("return np.empty(3, np.int64)", np.ones(3), 0)) > 2**60


def test_arithmetic_is_that_of_compiled_code() -> None:
    found = _run("return a / 0.0, 1 // i, 1 % i, math.log(0.0), math.sqrt(-1.0), math.exp(1e9), 2 ** 3", 1.0, 0)
    np.testing.assert_equal(found, (np.inf, 0, 0, -np.inf, np.nan, np.inf, 8))


@each(ACCEPTED[5::24])
def test_sample_stays_within_what_is_there(program: Program, monkeypatch: pytest.MonkeyPatch) -> None:
    _check(program, monkeypatch)


@pytest.mark.whole
@each(ACCEPTED)
def test_stays_within_what_is_there(program: Program, monkeypatch: pytest.MonkeyPatch) -> None:
    _check(program, monkeypatch)


def _check(program: Program, monkeypatch: pytest.MonkeyPatch) -> None:
    strict.use(monkeypatch)
    check_compiled(program)
    value, pullback = program.decorated("auto").vjp(*program.args(), **program.kwargs())
    assert_same(value, program.plain[0], "value", rtol=1e-12)
    assert_gradient(program, pullback(program.value_bar()))
