"""Jacobians, Hessians and their products: against formulas, in both modes, in structures, inside other functions."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
import pytest

import tapegen as tg
from tapegen.api import with_options
from tapegen.errors import BadArgument, MissingRule
from tapegen.pipeline.artifacts import executables
from tapegen.pipeline.artifacts.generated_text import compiled_text

MODES = pytest.mark.parametrize("mode", ["forward", "reverse", None])
python = {"backend": "python"}
A = np.array([[1.0, 2.0, 3.0], [0.5, -1.0, 2.0]])
X = np.array([0.3, -0.2, 0.5])


def layer(x: np.ndarray) -> np.ndarray:
    return np.sin(A @ x)


@MODES
def test_of_a_vector_by_a_vector(mode: Any) -> None:
    expected = np.cos(A @ X)[:, None] * A
    np.testing.assert_allclose(tg.jacobian(layer, mode=mode, **python)(X), expected, rtol=1e-13)


@pytest.mark.parametrize("mode", ["forward", "reverse"])
def test_compiled(mode: Any) -> None:
    expected = np.cos(A @ X)[:, None] * A
    np.testing.assert_allclose(tg.jacobian(layer, mode=mode)(X), expected, rtol=1e-13)


@MODES
def test_axes_are_those_of_the_result_then_those_of_the_argument(mode: Any) -> None:
    def f(x: np.ndarray, y: np.ndarray) -> np.ndarray:
        return x[:, None] * y

    x, y = np.array([1.0, 2.0]), np.arange(6.0).reshape(2, 3)
    by_x, by_y = tg.jacobian(f, wrt=(0, 1), mode=mode, **python)(x, y)
    assert by_x.shape == (2, 3, 2)
    assert by_y.shape == (2, 3, 2, 3)
    np.testing.assert_allclose(by_x, np.einsum("il,ij->ijl", np.eye(2), y))
    np.testing.assert_allclose(by_y, np.einsum("i,ik,jl->ijkl", x, np.eye(2), np.eye(3)))


class Out(NamedTuple):
    curve: Any
    total: Any
    count: int


@MODES
def test_structures_of_results_hold_structures_of_arguments(mode: Any) -> None:
    def f(p: dict, k: float) -> Out:
        return Out(p["a"] * p["b"] * k, {"sum": np.sum(p["a"]) * k}, 3)

    p = {"a": np.array([1.0, 2.0]), "b": 3.0, "name": "p"}
    found = tg.jacobian(f, wrt=("p", "k"), mode=mode, **python)(p, 2.0)
    assert isinstance(found, Out)
    by_p, by_k = found.curve
    assert set(by_p) == {"a", "b", "name"}
    assert by_p["name"] is None
    np.testing.assert_allclose(by_p["a"], 6.0 * np.eye(2))
    np.testing.assert_allclose(by_p["b"], [2.0, 4.0])
    np.testing.assert_allclose(by_k, [3.0, 6.0])
    by_p, by_k = found.total["sum"]
    np.testing.assert_allclose(by_p["a"], [2.0, 2.0])
    assert by_p["b"] == 0.0
    assert by_k == 3.0
    assert found.count is None


@MODES
def test_numbers(mode: Any) -> None:
    assert tg.jacobian(lambda x: x**3, mode=mode, **python)(2.0) == 12.0
    np.testing.assert_allclose(tg.jacobian(lambda x: x * X, mode=mode, **python)(2.0), X)
    np.testing.assert_allclose(tg.jacobian(lambda x: np.sum(x * x), mode=mode, **python)(X), 2.0 * X)


@MODES
def test_single_precision_stays(mode: Any) -> None:
    found = tg.jacobian(lambda x: x * x, mode=mode, **python)(np.array([1.0, 2.0], np.float32))
    assert found.dtype == np.float32
    np.testing.assert_array_equal(found, np.diag([2.0, 4.0]))


@MODES
def test_no_elements(mode: Any) -> None:
    found = tg.jacobian(lambda x: np.concatenate((x, X)), mode=mode, **python)(np.zeros(0))
    assert found.shape == (3, 0)


@pytest.mark.parametrize("backend", ["python", "numba"])
@MODES
def test_what_the_function_raises(mode: Any, backend: Any) -> None:
    def f(x: np.ndarray, limit: float) -> np.ndarray:
        if x[0] > limit:
            raise ValueError("too large")
        return x * x

    with pytest.raises(ValueError, match="too large") as caught:
        tg.jacobian(f, mode=mode, backend=backend)(X, 0.1)
    assert type(caught.value) is ValueError


@MODES
def test_a_result_of_another_kind_on_one_path_is_refused(mode: Any) -> None:
    def f(x: np.ndarray, c: float) -> Any:
        z = x * 1.0
        if c > 0.0:
            z = x
        return x * 2.0, z

    with pytest.raises(BadArgument, match="a number on this path, and an array on others"):
        tg.jacobian(f, mode=mode, **python)(np.array(0.5), -1.0)


@MODES
def test_an_argument_that_is_written_counts_as_it_was_on_entry(mode: Any) -> None:
    def f(x: np.ndarray) -> np.ndarray:
        x[0] = x[0] * x[1]
        return x * 2.0

    x = np.array([3.0, 5.0])
    found = tg.jacobian(f, mode=mode, **python)(x)
    np.testing.assert_allclose(found, [[10.0, 6.0], [0.0, 2.0]])
    np.testing.assert_array_equal(x, [15.0, 5.0])


def test_the_mode_follows_the_sizes() -> None:
    tall = tg.jacobian(lambda x: np.concatenate((x, x * x, np.sin(x))), **python)
    wide = tg.jacobian(lambda x: np.stack((np.sum(x), np.prod(x))), **python)
    x = np.linspace(0.5, 1.0, 7)
    assert tall(x).shape == (21, 7)
    assert wide(x).shape == (2, 7)
    assert list(tall.__self__._modes.values()) == ["forward"]  # type: ignore[attr-defined]
    assert list(wide.__self__._modes.values()) == ["reverse"]  # type: ignore[attr-defined]


def rosenbrock(x: np.ndarray) -> float:
    return np.sum(100.0 * (x[1:] - x[:-1] ** 2) ** 2 + (1.0 - x[:-1]) ** 2)


def rosenbrock_hessian(x: np.ndarray) -> np.ndarray:
    found = np.diag(np.append(1200.0 * x[:-1] ** 2 - 400.0 * x[1:] + 2.0, 0.0))
    found += np.diag(np.append(0.0, np.full(x.size - 1, 200.0)))
    return found - np.diag(400.0 * x[:-1], 1) - np.diag(400.0 * x[:-1], -1)


@pytest.mark.parametrize("backend", ["python", "auto"])
def test_hessian_and_its_product(backend: Any) -> None:
    x, v = np.array([0.2, -0.4, 1.1, 0.7]), np.array([1.0, -2.0, 0.5, 3.0])
    expected = rosenbrock_hessian(x)
    np.testing.assert_allclose(tg.hessian(rosenbrock, backend=backend)(x), expected, rtol=1e-12)
    np.testing.assert_allclose(tg.hvp(rosenbrock, (x,), (v,), backend=backend), expected @ v, rtol=1e-12)


def test_second_derivatives_run_as_the_function_does(monkeypatch: pytest.MonkeyPatch) -> None:
    def compiled(*args: Any, **options: Any) -> Any:
        raise AssertionError("nothing is to be compiled")

    monkeypatch.setattr(executables, "build_numba", compiled)
    function = tg.differentiable(**python)(lambda x: np.sum(x**4) + x[0] * x[1])
    expected = np.diag(12.0 * X**2) + [[0, 1, 0], [1, 0, 0], [0, 0, 0]]
    np.testing.assert_allclose(tg.hessian(function)(X), expected)
    np.testing.assert_allclose(tg.hvp(function, (X,), (X,)), expected @ X)


def test_hessian_of_several_arguments() -> None:
    def f(x: np.ndarray, k: float) -> float:
        return k * k * np.sum(x**3)

    (xx, xk), (kx, kk) = tg.hessian(f, wrt=(0, 1), **python)(X, 2.0)
    np.testing.assert_allclose(xx, np.diag(24.0 * X))
    np.testing.assert_allclose(xk, 12.0 * X**2)
    np.testing.assert_allclose(kx, 12.0 * X**2)
    assert kk == pytest.approx(2.0 * np.sum(X**3))
    by_x, by_k = tg.hvp(f, (X, 2.0), (np.ones(3), 1.0), **python)
    np.testing.assert_allclose(by_x, 24.0 * X + 12.0 * X**2)
    assert by_k == pytest.approx(np.sum(12.0 * X**2) + 2.0 * np.sum(X**3))


def test_hessian_of_arrays_and_structures() -> None:
    def f(x: np.ndarray, k: float) -> dict[str, Any]:
        return {"outer": np.outer(x, x) * k, "curve": (np.sum(x**3), k * k)}

    found = tg.hessian(f, wrt=(0, 1), **python)(X, 2.0)
    eye = np.eye(3)
    pairs = np.einsum("ik,jl->ijkl", eye, eye) + np.einsum("il,jk->ijkl", eye, eye)
    np.testing.assert_allclose(found["outer"][0][0], 2.0 * pairs)
    by_x = np.einsum("ik,j->ijk", eye, X) + np.einsum("jk,i->ijk", eye, X)
    np.testing.assert_allclose(found["outer"][0][1], by_x)
    np.testing.assert_allclose(found["outer"][1][0], by_x)
    np.testing.assert_allclose(found["outer"][1][1], np.zeros((3, 3)))
    np.testing.assert_allclose(found["curve"][0][0][0], np.diag(6.0 * X))
    assert found["curve"][1][1][1] == 2.0


def test_hessian_of_a_hessian() -> None:
    def f(x: np.ndarray) -> float:
        return np.sum(x**5) + np.prod(x)

    fourth = tg.hessian(tg.hessian(f, **python), **python)(X)
    expected = np.zeros((3, 3, 3, 3))
    for k in range(3):
        expected[k, k, k, k] = 120.0 * X[k]
    np.testing.assert_allclose(fourth, expected, atol=1e-14)


def guarded(x: np.ndarray) -> float:
    scale = np.outer(x, x)
    if x[0] < 0.0:
        raise ValueError("negative")
    x[0] = 0.5 * x[0]
    return np.sum(scale * scale * scale) + x[0]


def solved(low: np.ndarray, b: np.ndarray) -> float:
    x = np.zeros_like(b)
    for i in range(b.size):
        x[i] = (b[i] - low[i, :i] @ x[:i]) / low[i, i]
    return np.sum(x * x)


def test_a_direction_alone_leaves_out_the_value() -> None:
    call = with_options(tg.grad(solved), 0, {})._specialise((np.eye(3), X), {})
    both, alone = (call.program.function(form) for form in ("jvp", "tangent"))
    assert [len(function.body[-1].values) for function in (both, alone)] == [2, 1]
    both_text, alone_text = (compiled_text(call.program, function).text for function in (both, alone))
    assert "low_bar[i" in both_text
    assert "low_bar[i" not in alone_text


@pytest.mark.parametrize("backend", ["python", "auto"])
def test_a_direction_alone_runs_as_the_function_does(backend: Any) -> None:
    x, v = X.copy(), np.array([1.0, -2.0, 0.5])
    _, wanted = tg.jvp(tg.grad(guarded, backend=backend), (X.copy(),), (v,), backend=backend)
    np.testing.assert_array_equal(tg.hvp(guarded, (x,), (v,), backend=backend), wanted)
    assert x[0] == 0.5 * X[0]
    with pytest.raises(ValueError, match="negative"):
        tg.hvp(guarded, (-X,), (v,), backend=backend)


def test_linearize() -> None:
    x = X.copy()
    value, linear = tg.linearize(layer, x, **python)
    x[:] = 0.0
    np.testing.assert_array_equal(value, layer(X))
    for v in np.eye(3):
        np.testing.assert_allclose(linear(v), np.cos(A @ X) * (A @ v), rtol=1e-13)


def test_inside_a_differentiated_function() -> None:
    def f(x: np.ndarray) -> float:
        slope = tg.jacobian(layer)(x)
        curvature = tg.hessian(rosenbrock)(x)
        along = tg.hvp(rosenbrock, (x,), (np.ones(3),))
        return np.sum(slope) + np.sum(curvature) + np.sum(along)

    def value(x: np.ndarray) -> float:
        return np.sum(np.cos(A @ x)[:, None] * A) + 2.0 * np.sum(rosenbrock_hessian(x))

    found, gradient = tg.value_and_grad(f, **python)(X)
    np.testing.assert_allclose(found, value(X), rtol=1e-12)
    step = 1e-5
    expected = [(value(X + step * e) - value(X - step * e)) / (2 * step) for e in np.eye(3)]
    np.testing.assert_allclose(gradient, expected, rtol=1e-6)


def test_newton_with_jacobians_in_a_loop() -> None:
    def residual(x: np.ndarray, k: np.ndarray) -> np.ndarray:
        return x**3 + 0.1 * np.sum(x) - k

    def solve(k: np.ndarray) -> np.ndarray:
        x = np.ones(2)
        for _ in range(8):
            x = x - np.linalg.solve(tg.jacobian(residual)(x, k), residual(x, k))
        return x

    k = np.array([1.0, 2.0])
    x, _ = tg.vjp(solve, k, **python)
    by_k = tg.jacobian(solve, mode="forward", **python)(k)
    np.testing.assert_allclose(by_k, np.linalg.inv(np.diag(3.0 * x**2) + 0.1), rtol=1e-10)


def test_functions_of_libraries_are_functions() -> None:
    assert tg.grad(np.sin, **python)(0.3) == np.cos(0.3)
    assert tg.grad(tg.grad(math.exp), **python)(0.3) == math.exp(0.3)
    np.testing.assert_allclose(tg.grad(np.hypot, wrt=(0, 1), **python)(3.0, 4.0), (0.6, 0.8))
    np.testing.assert_allclose(tg.grad(np.linalg.det, **python)(np.diag([2.0, 3.0])), np.diag([3.0, 2.0]))
    np.testing.assert_allclose(tg.jacobian(np.cumsum, **python)(X), np.tri(3))
    np.testing.assert_allclose(tg.vjp(np.mean, np.ones((2, 2)), **python)[1](1.0), np.full((2, 2), 0.25))

    def f(x: float) -> float:
        return tg.grad(np.sin)(x) * tg.jvp(np.exp, (x,), (1.0,))[1]

    assert tg.grad(f)(0.3) == pytest.approx(np.exp(0.3) * (np.cos(0.3) - np.sin(0.3)))


@pytest.mark.parametrize(
    "call", [lambda: tg.jacobian(layer, mode="sideways"), lambda: tg.jacobian(layer, has_aux=True, **python)(X)]
)
def test_what_is_unknown_is_refused(call: Any) -> None:
    with pytest.raises(BadArgument):
        call()


def curve(x: np.ndarray) -> np.ndarray:
    return x * x


def clipped(x: np.ndarray) -> float:
    return np.sum(tg.clip_gradient(x, -1.0, 1.0) ** 4)


@pytest.mark.parametrize(
    ("call", "line"),
    [
        (lambda: tg.hvp(curve, (X,), (X,), **python), "def curve(x: np.ndarray) -> np.ndarray:"),
        (lambda: tg.hvp(clipped, (X,), (X,), **python), "def clipped(x: np.ndarray) -> float:"),
    ],
)
def test_refusals_of_higher_orders_point_at_the_function(call: Any, line: str) -> None:
    with pytest.raises((BadArgument, MissingRule)) as caught:
        call()
    assert caught.value.span is not None
    assert caught.value.span.file == __file__
    assert line in str(caught.value)


def test_arguments_that_are_no_arguments() -> None:
    with pytest.raises(BadArgument, match="names no arguments"):
        tg.grad(rosenbrock, X)  # type: ignore[arg-type]
    with pytest.raises(BadArgument, match="names no arguments"):
        tg.jacobian(layer, 1.5)  # type: ignore[arg-type]
    with pytest.raises(BadArgument, match="'y' of wrt is not given"):
        tg.grad(lambda x: np.sum(tg.grad(lambda z, y=2.0: np.sum(z * y), 1)(x)), **python)(X)
    with pytest.raises(BadArgument, match="all tangents are None"):
        tg.grad(lambda x: tg.jvp(rosenbrock, (x,), (None,))[1], **python)(X)


def test_an_array_has_no_gradient_but_a_jacobian() -> None:
    def squared(x: np.ndarray) -> np.ndarray:
        return x * x

    for result, kind in (([1.0, 2.0], "a list of 2 items"), (None, "None"), (3, "an int"), ("a", "a str")):
        with pytest.raises(BadArgument, match=f"does not return a float but {kind}, so it has no gradient"):
            tg.grad(lambda x: result, backend="python")(2.0)  # noqa: B023
    with pytest.raises(BadArgument, match="squared does not return a float but an array") as caught:
        tg.grad(squared, backend="python")(np.ones(2))
    assert caught.value.advice == "Return one number, or use vjp or jacobian."


@pytest.mark.parametrize("derivative", [tg.jvp, tg.hvp])
def test_arguments_and_tangents_are_sequences(derivative: Callable[..., Any]) -> None:
    def f(x: float) -> float:
        return x * x

    derivative(f, (2.0,), (1.0,), backend="python")
    for primals, tangents, name in ((2.0, 1.0, "primals"), ((2.0,), np.ones(1), "tangents")):
        with pytest.raises(BadArgument, match=f"'{name}' is of type"):
            derivative(f, primals, tangents, backend="python")
