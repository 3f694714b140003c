"""Compiled code assumes that sizes are equal which rarely differ; where they do, general code runs."""

from __future__ import annotations

import importlib
import sys
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import tapegen as tg
from tapegen.loops.legalize.short_axes import OTHER_SIZE
from tapegen.loops.scalarize.broadcasting import BROADCASTS
from tapegen.runtime import closure_sharing
from tests.oracle import numerical_gradient

X = np.array([0.3, -0.7, 1.1, 0.4, 0.9])


def parts(x: np.ndarray, n: int, m: int) -> Any:
    """The sizes `n` and `m` are equal, or one of them is 1, or it is an error."""
    a = x[:n] * 2.0
    b = np.sin(x[5 - m :])
    return np.sum(a * b) + a[0]


def overwritten(x: np.ndarray, n: int, m: int) -> Any:
    x *= 1.5
    a, b = x[:n] ** 2, x[5 - m :] + 1.0
    x[0] = 3.0
    return np.sum(a * b)


def drawn(x: np.ndarray, n: int, m: int, rng: np.random.Generator) -> Any:
    x = x * rng.normal(size=5)
    return np.sum(x[:n] * x[5 - m :])


def told(x: np.ndarray, n: int, m: int) -> Any:
    print("begins")
    return np.sum(x[:n] * x[5 - m :])


def shrinking(x: np.ndarray, n: int, m: int) -> Any:
    a, b = x * 1.0, x * 2.0
    for _ in range(n):
        a = a[1:] * a[:-1]
    for _ in range(m):
        b = b[1:] + b[:-1]
    return np.sum(a * b)


def program(function: Any, *args: Any) -> Any:
    return function._specialise(args, {}).program


def text(function: Any, *args: Any) -> str:
    return function.inspect(*args).compiled


@pytest.mark.parametrize("function", [parts, overwritten, shrinking])
def test_general_code_runs_where_sizes_differ(function: Callable[..., Any]) -> None:
    f = tg.differentiable(backend="numba")(function)
    assert BROADCASTS in text(f, X.copy(), 3, 3)
    cases = [(3, 3), (1, 4), (2, 2), (4, 1), (3, 3)] if function is not shrinking else [(2, 2), (4, 1), (1, 4), (3, 3)]
    for n, m in cases:
        mine, theirs = X.copy(), X.copy()
        value, gradient = f.value_and_grad(mine, n, m)
        assert value == pytest.approx(function(theirs, n, m), rel=1e-13)
        np.testing.assert_array_equal(mine, theirs)
        expected = numerical_gradient(lambda x, n=n, m=m: function(x.copy(), n, m), (X,)).value[0,]
        np.testing.assert_allclose(gradient, expected, rtol=1e-7, atol=1e-9)
    assert "joint" in program(f, X.copy(), 3, 3).parts.refuted


def test_all_forms_and_the_fast_path() -> None:
    f = tg.differentiable(backend="numba")(parts)
    dot = np.cos(X)
    for n, m in [(3, 3), (3, 3), (1, 4), (1, 4), (3, 3)]:
        gradient = tg.grad(parts, backend="python")(X, n, m)
        assert f(X, n, m) == pytest.approx(parts(X, n, m), rel=1e-13)
        value, pullback = f.vjp(X, n, m)
        np.testing.assert_allclose(pullback(1.0), gradient)
        assert value == pytest.approx(parts(X, n, m), rel=1e-13)
        _, tangent = f.jvp((X, n, m), (dot, None, None))
        assert tangent == pytest.approx(gradient @ dot, rel=1e-12)
        np.testing.assert_allclose(f.value_and_grad(X, n, m)[1], gradient)
    found = program(f, X, 3, 3)
    assert found.parts.refuted == {"primal", "joint", "record"}  # a tangent of None makes another program
    assert all(found.repeated[form] is not None for form in ("primal", "joint"))  # later calls are fast again


def test_tangents_of_stored_arguments_are_restored() -> None:
    f = tg.differentiable(backend="numba")(overwritten)
    dot = np.cos(X)
    for n, m in [(3, 3), (4, 1), (1, 4), (2, 2)]:
        given = dot.copy()
        _, tangent = f.jvp((X.copy(), n, m), (given, None, None))
        gradient = tg.grad(overwritten, backend="python")(X.copy(), n, m)
        assert tangent == pytest.approx(gradient @ dot, rel=1e-12)
        np.testing.assert_array_equal(given, dot)


@pytest.mark.parametrize("sizes", [(2, 3), (5, 4)])
def test_an_error_of_the_program_keeps_its_type(sizes: tuple[int, int]) -> None:
    f = tg.differentiable(backend="numba")(overwritten)
    x, untouched = X.copy(), X.copy()
    with pytest.raises(ValueError, match="operands could not be broadcast together") as plain:
        overwritten(untouched, *sizes)
    with pytest.raises(ValueError, match="operands could not be broadcast together") as raised:
        f.value_and_grad(x, *sizes)
    assert str(raised.value) == str(plain.value)
    np.testing.assert_array_equal(x, untouched)


def test_sizes_of_empty_arrays_are_never_negative() -> None:
    def f(x: np.ndarray, k: int) -> Any:
        v, p = x[k:] * 2.0, x[k:] * 3.0
        p = p[1:] * 3.0
        return np.sum(v[1:] * p) + np.sum(x)

    gradient = tg.grad(f, backend="numba")
    for k in range(7):
        np.testing.assert_allclose(gradient(X, k), tg.grad(f, backend="python")(X, k))


def test_draws_are_made_once() -> None:
    f = tg.differentiable(backend="numba")(drawn)
    for n, m in [(3, 3), (1, 4)]:
        mine, theirs = np.random.default_rng(3), np.random.default_rng(3)
        assert f.value_and_grad(X, n, m, mine)[0] == pytest.approx(drawn(X, n, m, theirs), rel=1e-13)
        assert mine.random() == theirs.random()


def test_what_is_printed_is_printed_once(capsys: pytest.CaptureFixture[str]) -> None:
    f = tg.differentiable(backend="numba")(told)
    for n, m in [(3, 3), (1, 4)]:
        f.value_and_grad(X, n, m)
        assert capsys.readouterr().out == "begins\n"
    assert not program(f, X, 3, 3).speculates("joint")


def test_code_without_python_beside_it_assumes_nothing() -> None:
    from numba import njit

    f = tg.differentiable(backend="numba")(parts)
    inner = f.njit

    @njit
    def outer(x: np.ndarray, n: int, m: int) -> float:
        return inner(x, n, m)

    assert outer(X, 1, 4) == pytest.approx(parts(X, 1, 4), rel=1e-13)


# ---- short axes ------------------------------------------------------------------------------------------------------


def spread(p: np.ndarray, c: np.ndarray) -> Any:
    d = p[:, None] - p[None]
    p *= 1.5
    return np.sum(1.0 / np.sqrt(np.sum(d * d, axis=-1) + 0.1)) + np.sum(p * c)


def test_a_short_axis_of_another_size() -> None:
    f = tg.differentiable(wrt=(0, 1), backend="numba")(spread)
    rng = np.random.default_rng(0)
    for n, k in ((5, 3), (6, 3), (5, 2), (5, 2), (4, 5), (5, 3), (4, 4)):
        p, c = rng.normal(size=(n, k)), rng.normal(size=k)
        mine, theirs = p.copy(), p.copy()
        value, gradient = f.value_and_grad(mine, c)
        assert value == pytest.approx(spread(theirs, c), rel=1e-13)
        np.testing.assert_array_equal(mine, theirs)
        for own, other in zip(gradient, tg.grad(spread, wrt=(0, 1), backend="python")(p.copy(), c), strict=True):
            np.testing.assert_allclose(own, other, rtol=1e-12)
    parts = program(f, p, c).parts
    assert parts.sizes_vary == {"joint"}
    assert not parts.refuted
    assert OTHER_SIZE in text(tg.differentiable(backend="numba")(spread), rng.normal(size=(5, 3)), np.ones(3))


def test_sizes_are_in_the_key_of_the_disk_cache(monkeypatch: pytest.MonkeyPatch, tmp_path: Any) -> None:
    monkeypatch.setenv("TAPEGEN_CACHE", str(tmp_path))

    def place(k: int) -> Any:
        f = tg.differentiable(backend="numba")(spread)
        return program(f, np.ones((5, k)), np.ones(k)).on_disk("joint", general=False)[0]

    closure_sharing._KNOWN.clear()
    three = place(3)
    closure_sharing._KNOWN.clear()
    assert place(2).key != three.key is not None


# ---- every way to let sizes meet -------------------------------------------------------------------------------------

M = np.arange(16.0).reshape(4, 4) * 0.1 - 0.5

BODIES = {
    "add": "np.sum(np.sin(x[:n]) + x[4 - k :] * 2)",
    "where": "np.sum(np.where(x[:n] > 0.2, x[4 - k :], x[:n] ** 2))",
    "clip": "np.sum(np.clip(x[:n], x[:k] - 0.1, x[4 - k :] + 2))",
    "matrices": "np.sum(np.cos(m[:n, :2]) * m[:k, 2:])",
    "rows": "np.sum(m[:n, :k] * x[:k] + m[:n, :n].sum(axis=0))",
    "columns": "np.sum(m[:n, :k] * m[:n, :1] + m[:1, :k] * x[:n, None])",
    "products": "np.sum(m[:n, :k] @ x[:k] * x[:n] + x[:k].sum())",
    "means": "np.sum((m[:n, :k] - m[:n, :k].mean(axis=0)) ** 2 * x[:k])",
    "differences": "np.sum(np.cumsum(x[:n]) * np.prod(m[:n, :k], axis=1) + np.diff(m[:k, :n], axis=0).sum())",
    "masks": "np.sum(x[x > 0.35 - 0.1 * n] * x[np.abs(x) < 0.3 * k])",
    "store": "a = np.zeros(n) + 1.0; a[:] = x[:k] * 2; np.sum(a * a)",
    "accumulate": "a = np.ones(n); a += x[:k]; a *= np.exp(x[:k]); np.sum(a)",
    "argument": "x[:n] *= x[4 - k :] + 2; np.sum(x**2)",
    "out": "a = np.zeros(n); np.multiply(x[:n], x[:k], out=a); np.sum(a**2)",
    "concatenate": "a = np.concatenate((x[:n], x[:k])); np.sum(a * x[:n]) + np.sum(np.maximum(a, x[:1]))",
}
SIZES = [(3, 3), (2, 2), (1, 3), (3, 1), (0, 0), (1, 1), (2, 3), (0, 1), (1, 0), (4, 4), (3, 3), (2, 1)]
USUAL = {"rows", "differences", "argument"}


@pytest.mark.parametrize(
    "name", [pytest.param(name, marks=[] if name in USUAL else pytest.mark.compiled) for name in BODIES]
)
@pytest.mark.filterwarnings("ignore:Mean of empty slice", "ignore:invalid value")
def test_all_sizes(name: str, tmp_path: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    *before, result = BODIES[name].split("; ")
    lines = ["import numpy as np", "def f(x, m, n, k):", *(f"    {line}" for line in before), f"    return {result}"]
    (tmp_path / "meeting.py").write_text("\n".join(lines) + "\n", encoding="utf-8")
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.delitem(sys.modules, "meeting", raising=False)
    plain = importlib.import_module("meeting").f
    f = tg.differentiable(wrt=(0, 1), backend="numba")(plain)
    x = np.array([0.3, -0.7, 1.1, 0.4])
    for n, k in SIZES:
        mine, theirs = (x.copy(), M.copy()), (x.copy(), M.copy())
        try:
            expected = plain(*theirs, n, k)
        except (ValueError, IndexError) as error:
            with pytest.raises(type(error)):
                f.value_and_grad(*mine, n, k)
        else:
            value, gradient = f.value_and_grad(*mine, n, k)
            assert value == pytest.approx(expected, rel=1e-12, nan_ok=True)
            estimate = numerical_gradient(lambda x, m, n=n, k=k: plain(x, m, n, k), (x, M)).value
            for position, own in enumerate(gradient):
                np.testing.assert_allclose(own, estimate[position,], rtol=1e-6, atol=1e-8)
        for own, other in zip(mine, theirs, strict=True):
            np.testing.assert_allclose(own, other, rtol=1e-13)
