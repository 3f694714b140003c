"""Shared libraries: structures, arrays of unknown size, strides, constants, kernels, matrices."""

from __future__ import annotations

import ctypes
import math
import shutil
import subprocess
from collections import namedtuple
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import tapegen as tg
from tapegen.aot import build
from tapegen.errors import BuildError
from tapegen.export.native import entry_points
from tests.libraries import leaves, load, narrow, network, openblas, same, weighted

pytestmark = pytest.mark.skipif(shutil.which("cc") is None, reason="needs a C compiler")


Point = namedtuple("Point", ["x", "y"])


def test_structures_and_constants(tmp_path: Path) -> None:
    rng = np.random.default_rng(1)
    params = {"w": rng.normal(size=(3, 3)), "b": rng.normal(size=3)}
    x = rng.normal(size=(5, 3))
    f = tg.differentiable(network)
    module = load(build(f, params, x, mode="tanh", directory=tmp_path))
    found, expected = module.network_grad(params, x), f.grad(params, x)
    for key in params:
        np.testing.assert_allclose(found[key], expected[key], rtol=1e-13)
    with pytest.raises(ValueError, match="built for mode = 'tanh'"):
        module.network(params, x, mode="relu")
    with pytest.raises(ValueError, match="built for params with the keys 'w', 'b'"):
        module.network({**params, "c": x}, x)
    with pytest.raises(TypeError, match="params must be a dict"):
        module.network(list(params.values()), x)
    _, pullback = module.network_vjp(params, x, power=2)
    for key in params:
        np.testing.assert_allclose(pullback(1.0)[key], expected[key], rtol=1e-13)
    value, tangent = module.network_jvp((params, x), (params, None), mode="tanh")
    same(value, f(params, x))
    np.testing.assert_allclose(tangent, f.jvp((params, x), (params, None))[1], rtol=1e-13)


def energy(x, k):
    return k * x**3, (x * k, "energy")


def test_an_objective_and_something_else(tmp_path: Path) -> None:
    f = tg.differentiable(energy, has_aux=True)
    module = load(build(f, 2.0, 3.0, directory=tmp_path))
    aux = (6.0, "energy")
    assert module.energy_grad(2.0, 3.0) == (36.0, aux)
    assert module.energy_jvp((2.0, 3.0), (1.0, None)) == (24.0, 36.0, aux)
    value, pullback, others = module.energy_vjp(2.0, 3.0)
    assert (value, pullback(2.0), others) == (24.0, 72.0, aux)
    assert module.energy_hvp((2.0, 3.0), (1.0, None)) == (36.0)


def spread(p, n):
    grid = np.empty((n, 2))
    for i in range(n):
        grid[i, 0] = p.x * i
        grid[i, 1] = p.y / (i + 1.0)
    return Point(grid, p.x * p.y), {"mean": np.mean(grid), "name": "spread"}


def test_results_whose_size_only_the_call_knows(tmp_path: Path) -> None:
    f = tg.differentiable(spread)
    module = load(build(f, Point(0.5, 2.0), 3, directory=tmp_path))
    for n in (3, 7, 3):
        (grid, product), rest = module.spread(Point(0.5, 2.0), n)
        (expected, product_), rest_ = f(Point(0.5, 2.0), n)
        same(grid, expected)
        same(product, product_)
        same(rest, rest_)
    value, pullback = module.spread_vjp(Point(0.5, 2.0), 4)
    value_, pullback_ = f.vjp(Point(0.5, 2.0), 4)
    bar = (Point(np.full((4, 2), 0.5), 2.0), {"mean": 3.0, "name": None})
    found, expected = pullback(bar), pullback_((Point(np.full((4, 2), 0.5), 2.0), {"mean": 3.0, "name": "spread"}))
    same(tuple(found), tuple(expected))
    same(tuple(value[0]), tuple(value_[0]))
    with pytest.raises(ValueError, match="cotangent"):
        pullback((Point(np.ones((3, 2)), 2.0), {"mean": 3.0, "name": None}))
    assert not hasattr(module, "spread_grad")


def test_strides(tmp_path: Path) -> None:
    big = np.random.default_rng(2).normal(size=(8, 12))
    a, w = big[::2, ::-3], np.arange(4.0)
    f = tg.differentiable(weighted, wrt=("a", "w"))
    module = load(build(f, a, w, directory=tmp_path, modes=["grad", "split"]))
    same(module.weighted_value_and_grad(a, w), f.value_and_grad(a, w))
    same(module.weighted_value_and_grad(np.asfortranarray(a), w)[1][0], f.grad(np.asfortranarray(a), w)[0])
    _, pullback = module.weighted_vjp(a, w)
    same(pullback(1.0)[0], f.grad(a, w)[0])


TABLE = np.array([0.25, -0.5, 2.0])


def looked_up(x):
    return np.sum(TABLE * x)


def test_arrays_from_outside_are_part_of_the_library(tmp_path: Path) -> None:
    module = load(build(looked_up, np.ones(3), directory=tmp_path, modes=["grad"]))
    same(module.looked_up_grad(np.ones(3)), TABLE)


STRIDED = np.arange(24.0).reshape(2, 3, 4).transpose(2, 0, 1)[::-2]


def looked_up_across(x):
    return np.sum(STRIDED * x)


def kept_outside(x):
    TABLE[0] = x[0]
    return np.sum(TABLE * x)


def test_arrays_from_outside_in_any_order(tmp_path: Path) -> None:
    x = np.ones((2, 2, 3))
    module = load(build(looked_up_across, x, directory=tmp_path, modes=["grad"]))
    same(module.looked_up_across_grad(x), np.ascontiguousarray(STRIDED))
    with pytest.raises(BuildError, match="writes into 'TABLE'"):
        build(kept_outside, np.ones(3), directory=tmp_path, modes=["grad"])


def test_single_precision(tmp_path: Path) -> None:
    x = np.linspace(0, 1, 9, dtype=np.float32)
    f = tg.differentiable(narrow)
    module = load(build(f, x, directory=tmp_path, modes=["grad"], cpu="native"))
    same(module.narrow_value_and_grad(x), f.value_and_grad(x))


# ---- views of another shape -----------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def runtime(tmp_path_factory: pytest.TempPathFactory) -> ctypes.CDLL:
    """The C text that is part of each library, alone."""
    made = tmp_path_factory.mktemp("runtime") / "runtime.so"
    text = Path(entry_points.__file__).with_name("runtime.c")
    subprocess.run(["cc", "-std=c11", "-O1", "-fPIC", "-shared", "-w", "-o", made, text], check=True)
    return ctypes.CDLL(str(made))


@given(data=st.data())
@settings(max_examples=300, deadline=None)
def test_views_of_another_shape_are_those_of_numpy(runtime: ctypes.CDLL, data: st.DataObject) -> None:
    factors = data.draw(st.lists(st.sampled_from([0, 1, 2, 2, 3]), max_size=5))
    split = [data.draw(st.integers(0, len(factors))) for _ in range(2)]
    old = [math.prod(part) for part in (factors[: min(split)], factors[min(split) : max(split)], factors[max(split) :])]
    new = data.draw(st.permutations([*factors, 1]))
    whole = np.arange(np.prod([2 * n for n in old], dtype=int)).reshape([2 * n for n in old])
    steps = [data.draw(st.sampled_from([1, 2, -1])) for _ in old]
    view = whole[tuple(slice(None, None, step) for step in steps)][tuple(slice(n) for n in old)]
    view = view.transpose(data.draw(st.permutations(range(3))))
    longs = [(ctypes.c_ssize_t * max(len(each), 1))(*each) for each in (view.shape, view.strides, new, [0] * len(new))]
    rank, new_rank, size = (ctypes.c_ssize_t(n) for n in (view.ndim, len(new), view.itemsize))
    found = runtime.numba_attempt_nocopy_reshape(rank, longs[0], longs[1], new_rank, longs[2], longs[3], size, 0)
    expected = view.reshape(new)
    assert found == (np.shares_memory(expected, view) or not view.size)
    if found and view.size:
        same(tuple(s for s, n in zip(longs[3], new) if n > 1), tuple(s for s, n in zip(expected.strides, new) if n > 1))


# ---- matrices ------------------------------------------------------------------------------------------------------


def solved(a, b):
    return np.sum(np.linalg.solve(a @ a.T + np.eye(len(b), dtype=a.dtype), b) ** 2)


def factorised(a, b):
    s = a @ a.T + np.eye(len(b), dtype=a.dtype)
    q, r = np.linalg.qr(s)
    u, w, v = np.linalg.svd(s, full_matrices=False)
    lam, _ = np.linalg.eigh(s)
    whole = np.linalg.cholesky(s) @ np.linalg.inv(s) + q @ r + u @ v
    return np.sum(np.linalg.solve(whole, b)) + np.linalg.det(s) + np.sum(w * lam) + b @ s @ b


@pytest.mark.parametrize(
    ("func", "dtype"),
    [(solved, "f8"), *(pytest.param(factorised, dtype, marks=pytest.mark.compiled) for dtype in ("f8", "f4"))],
)
def test_lapack_of_a_library(func: Any, dtype: str, tmp_path: Path) -> None:
    rng = np.random.default_rng(3)
    a, b = rng.normal(size=(4, 4)).astype(dtype), rng.normal(size=4).astype(dtype)
    f = tg.differentiable(func, wrt=("a", "b"), backend="python")
    module = load(build(f, a, b, directory=tmp_path, modes=["grad"], blas=openblas(), name="matrices"))
    gradient = getattr(module, f"{func.__name__}_value_and_grad")
    for one, other in zip(leaves(gradient(a, b)), leaves(f.value_and_grad(a, b)), strict=True):
        assert np.asarray(one).dtype == np.asarray(other).dtype
        np.testing.assert_allclose(one, other, rtol=1e-11 if dtype == "f8" else 2e-3)
    with pytest.raises((ValueError, RuntimeError), match="infs or NaNs"):
        gradient(np.full((4, 4), np.nan, dtype), b)


def test_products_of_a_library(tmp_path: Path) -> None:
    rng = np.random.default_rng(4)
    params, x = {"w": rng.normal(size=(3, 3)), "b": rng.normal(size=3)}, rng.normal(size=(5, 3))
    f = tg.differentiable(network)
    module = load(build(f, params, x, directory=tmp_path, modes=["grad"], blas=openblas()))
    for one, other in zip(module.network_grad(params, x).values(), f.grad(params, x).values(), strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-13)


def test_lapack_needs_a_library(tmp_path: Path) -> None:
    with pytest.raises(BuildError, match="LAPACK") as caught:
        build(solved, np.eye(3), np.ones(3), directory=tmp_path, modes=["grad"])
    assert "--blas cblas:PATH" in str(caught.value)
    assert not list(tmp_path.iterdir())


def test_libraries_that_do_not_fit(tmp_path: Path) -> None:
    text = tmp_path / "libtext.so"
    text.write_text("no library")
    with pytest.raises(BuildError, match="is no library"):
        build(solved, np.eye(3), np.ones(3), directory=tmp_path / "out", blas=f"cblas:{text}")
    (tmp_path / "wide.c").write_text(
        "#include <stdint.h>\nvoid cblas_dgemm(void) {}\n"
        "double ddot_(int64_t *n, double *x, int64_t *i, double *y, int64_t *j)"
        "{ double sum = 0; for (int64_t k = 0; k < *n; k++) sum += x[k * *i] * y[k * *j]; return sum; }\n"
    )
    subprocess.run(["cc", "-shared", "-fPIC", "-o", tmp_path / "libwide.so", tmp_path / "wide.c"], check=True)
    with pytest.raises(BuildError, match="64 bits"):
        build(solved, np.eye(3), np.ones(3), directory=tmp_path / "out", blas=f"cblas:{tmp_path / 'libwide.so'}")


def touched(x, k):
    return x[1, 2] * x[0, 0] ** 2 * np.sum(k)


def solved_rows(low, b):
    x = np.zeros_like(b)
    for i in range(b.size):
        x[i] = b[i]
        for j in range(i):
            x[i] -= low[i, j] * x[j]
        x[i] /= low[i, i]
    return np.sum(x * x)


def turned(a):
    return np.sum(a.T @ a)


def test_results_of_any_order_are_made_in_memory_of_the_caller(tmp_path: Path) -> None:
    a, direction = np.arange(6.0).reshape(3, 2), np.ones((3, 2))
    module = load(build(turned, a, modes=["hvp"], directory=tmp_path))
    np.testing.assert_allclose(module.turned_hvp((a,), (direction,)), 2.0 * direction @ np.ones((2, 2)))


def layer(w, x):
    return np.sum(np.tanh(x @ w) ** 2)


def test_products_are_made_in_memory_of_the_caller(tmp_path: Path) -> None:
    rng = np.random.default_rng(5)
    w, x = rng.normal(size=(4, 3)), rng.normal(size=(5, 4))
    module = load(build(layer, w, x, modes=["grad"], directory=tmp_path, cpu="native", blas=openblas()))
    same(module.layer_grad(w, x), tg.differentiable(layer).grad(w, x))
    same(module.layer_grad(w[:, :0], x), np.zeros((4, 0)))
    with pytest.raises(ValueError, match="size"):
        module.layer_grad(w, x[:, :3].copy())


def test_results_are_made_in_memory_of_the_caller(tmp_path: Path) -> None:
    rng = np.random.default_rng(3)
    low, b = np.tril(rng.normal(size=(5, 5))) + 4.0 * np.eye(5), rng.normal(size=5)
    for f, args in (
        (tg.differentiable(touched, wrt=(0, 1)), (low, b)),
        (tg.differentiable(solved_rows, wrt=(0, 1)), (low, b)),
    ):
        name = f.python.__name__
        library = ctypes.CDLL(
            str(
                build(f, *args, modes=["grad"], cpu="native", directory=tmp_path, name=f"lib_{name}").with_name(
                    f"liblib_{name}.so"
                )
            )
        )
        call = getattr(library, f"lib_{name}_{name}_grad")
        value, low_bar, b_bar = ctypes.c_double(), np.full_like(low, np.nan), np.full_like(b, np.nan)

        def run(value: Any, low_bar: Any, b_bar: Any, call: Any = call) -> int:
            rooms = [None if room is None else ctypes.c_void_p(room.ctypes.data) for room in (low_bar, b_bar)]
            given = [ctypes.c_void_p(low.ctypes.data), *map(ctypes.c_int64, low.shape), ctypes.c_void_p(b.ctypes.data)]
            return int(call(*given, ctypes.c_int64(b.size), ctypes.byref(value), *rooms))

        assert run(value, low_bar, b_bar) == 0
        expected = f.value_and_grad(*args)
        same((value.value, (low_bar, b_bar)), (float(expected[0]), expected[1]))
        again = np.full_like(b, np.nan)
        assert run(value, None, again) == 0
        same(again, b_bar)
        kept = low.copy(), b.copy()
        # case 60: shared memory
        assert run(value, low, again) == run(value, low_bar, b) == run(value, low_bar, low_bar[0]) == 5
        same((low, b), kept)
