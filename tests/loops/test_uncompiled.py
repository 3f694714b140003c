"""What has no compiled form runs as generated Python, and says so once, at the user's own line."""

from __future__ import annotations

import warnings
from pathlib import Path

import numpy as np
import pytest

from tapegen import differentiable
from tapegen.backend.numba import build
from tapegen.errors import BuildError, PerformanceWarning
from tapegen.pipeline.artifacts.generated_text import compiled_text
from tests.sources import ROOT, python


def columns_in_order(m: np.ndarray) -> float:
    weights = np.arange(3.0)
    return float(np.sum(m[:, np.lexsort((m[1], m[0]))] * weights))


M = np.array([[0.4, 1.3, 0.2], [0.1, 0.9, 0.5]])


def test_the_warning_names_the_call_and_points_at_the_user() -> None:
    decorated = differentiable(columns_in_order)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        for _ in range(3):
            value, gradient = decorated.value_and_grad(M)
    (warning,) = caught
    assert warning.category is PerformanceWarning
    line = columns_in_order.__code__.co_firstlineno + 2
    assert str(warning.message) == (
        f"{__file__}:{line}: np.lexsort has no compiled form here; "
        "the generated Python of columns_in_order_value_and_grad runs uncompiled"
    )
    assert warning.filename == __file__
    assert value == columns_in_order(M)
    np.testing.assert_array_equal(gradient, [[1.0, 2.0, 0.0], [1.0, 2.0, 0.0]])


def test_numba_or_nothing() -> None:
    decorated = differentiable(columns_in_order, backend="numba")
    with pytest.raises(BuildError, match=r"np\.lexsort"):
        decorated.value_and_grad(M)


def chain(x: float, y: float) -> float:
    for _ in range(3):
        x = x * y + 0.5
        y = y - 0.1 * x
    return x * y


def test_what_would_compile_for_minutes_runs_uncompiled(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(build, "LINES", 5)
    with pytest.warns(PerformanceWarning, match=r"more than 5 take minutes to compile; the generated Python of chain"):
        value, gradient = differentiable(chain).value_and_grad(0.3, 0.4)
    assert (value, gradient) == differentiable(chain, backend="python").value_and_grad(0.3, 0.4)


SWITCHED_OFF = """
import warnings
import numpy as np
import tapegen as tg

def energy(x):
    return (x * x).sum()

x = np.arange(3.0)
with warnings.catch_warnings(record=True) as caught:
    warnings.simplefilter("always")
    print(tg.value_and_grad(energy)(x), tg.hessian(energy)(x).tolist())
    tape = tg.GradientTape()
    with tape:
        v = tg.Variable(x)
        value = tg.differentiable(energy)(v)
    print(tape.gradient(value, v).numpy())
    print({(warning.category.__name__, warning.filename == __file__) for warning in caught})
    print(caught[0].message)
print(tg.grad(energy, backend="python")(x))
for refused in (lambda: tg.grad(energy, backend="numba")(x), lambda: tg.differentiable(energy).njit):
    try:
        refused()
    except tg.BuildError as error:
        print(error)
"""


def test_where_numba_is_switched_off_python_runs_or_it_is_said(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("NUMBA_DISABLE_JIT", "1")
    monkeypatch.setenv("PYTHONPATH", str(ROOT))
    script = tmp_path / "energy.py"
    script.write_text(SWITCHED_OFF)
    reason = "NUMBA_DISABLE_JIT is set, so that numba compiles nothing"
    assert python(str(script)).splitlines() == [
        "(np.float64(5.0), array([0., 2., 4.])) [[2.0, 0.0, 0.0], [0.0, 2.0, 0.0], [0.0, 0.0, 2.0]]",
        "[0. 2. 4.]",
        "{('PerformanceWarning', True)}",
        f"{reason}; the generated Python of energy_value_and_grad runs uncompiled",
        "[0. 2. 4.]",
        f"{reason}.",
        'Use backend="auto" or "python".',
        f"{reason}.",
        "Unset it, or call the function itself and its derivatives without njit.",
    ]


def stored_through_the_array(u: np.ndarray) -> float:
    r = u * u
    c = r[:, 1:-1].reshape(2, 2, 3)
    r[1] *= 3.0
    return float(np.sum(c * np.arange(3.0)))


def stored_on_the_next_trip(u: np.ndarray) -> float:
    r = u * u
    c = np.zeros((2, 2, 3))
    total = 0.0
    for _ in range(3):
        r[1] *= 1.5
        total += np.sum(c * c)
        c = r[:, 1:-1].reshape(2, 2, 3)
    return total


def stored_through_the_result(u: np.ndarray) -> float:
    r = u * u
    c = r[:, 1:-1].reshape(2, 2, 3)
    c[0] *= 2.0
    return float(np.sum(r * r))


@pytest.mark.parametrize("f", [stored_through_the_array, stored_on_the_next_trip, stored_through_the_result])
def test_a_reshape_that_may_be_a_view_is_compiled_only_where_nobody_could_tell(f) -> None:
    u = np.arange(16.0).reshape(2, 8) / 9.0
    with pytest.warns(PerformanceWarning, match="may be a view or a copy"):
        value, gradient = differentiable(f).value_and_grad(u)
    assert value == pytest.approx(f(u), rel=1e-13)
    along = np.cos(np.arange(16.0)).reshape(2, 8)
    slope = (f(u + 1e-5 * along) - f(u - 1e-5 * along)) / 2e-5
    assert np.sum(gradient * along) == pytest.approx(slope, rel=1e-8)


def read_before_each_store(u: np.ndarray) -> float:
    r = u * u
    c = np.zeros((2, 2, 3))
    total = 0.0
    for _ in range(3):
        total += np.sum(c * c)
        r[1] *= 1.5
        c = r[:, 1:-1].reshape(2, 2, 3)
    return total


def test_nobody_can_tell_where_each_reshape_is_read_before_the_next_store() -> None:
    u = np.arange(16.0).reshape(2, 8) / 9.0
    call = differentiable(read_before_each_store)._specialise((u,), {})
    assert "ravel" not in str(compiled_text(call.program, call.program.function("joint")).text)
