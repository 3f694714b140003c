"""Complex numbers in libraries: pairs in C, NumPy's and Python's numbers in the module."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import tapegen as tg
from tapegen.aot import build
from tests.libraries import leaves, load, openblas, run_program, same

pytestmark = pytest.mark.skipif(shutil.which("cc") is None, reason="needs a C compiler")

rng = np.random.default_rng(5)
Z = rng.normal(size=4) + 1j * rng.normal(size=4)
A = rng.normal(size=(4, 4)) + 1j * rng.normal(size=(4, 4))


def turned(z, w, k):
    """Numbers and arrays, in and out, and on the tape."""
    y = z * w
    for _ in range(3):
        y = y * y + k * w
    return np.sum((y * np.conj(y)).real) + w.imag


def chained(z, n):
    """Lists of complex numbers on the tape."""
    kept = [z[0]]
    for i in range(n):
        kept.append(kept[-1] * z[i % z.size] + 0.5)
    total = 0.0
    for item in kept:
        total += (item * item).real
    return total


def spun(z, w):
    """A complex result."""
    return z * w * np.abs(z), w * w


def multiplied(a, z):
    y = a @ (a.T @ z) + np.conj(a) @ (np.conj(a.T) @ z)
    return np.sum((a @ np.conj(a.T) @ a).real) + np.sum(np.abs(y) ** 2) + np.vdot(z, y).imag


@pytest.mark.compiled
@pytest.mark.parametrize(
    ("function", "wrt", "args"),
    [
        (turned, (0, 1, 2), (Z, 0.5 + 0.25j, 0.1)),
        (turned, (0, 1, 2), (np.repeat(Z, 2)[::2].astype("c8"), np.complex64(0.5 + 0.25j), np.float32(0.1))),
        (chained, (0,), (Z, 7)),
        (spun, (0, 1), (Z[::-1], 0.5 + 0.25j)),
    ],
)
def test_numbers_of_every_kind(function: Callable[..., Any], wrt: Any, args: tuple[Any, ...], tmp_path: Path) -> None:
    f = tg.differentiable(function, wrt=wrt)
    name = function.__name__
    modes = ("value", "grad", "split", "jvp") if function is chained else None  # numba has no Hessian product of this
    module = load(build(f, *args, directory=tmp_path, cpu="native", modes=modes))
    along = tuple(x * 0.5 if k in wrt else None for k, x in enumerate(args))
    same(getattr(module, name)(*args), f(*args))
    value, pullback = getattr(module, f"{name}_vjp")(*args)
    value_, pullback_ = f.vjp(*args)
    same(value, value_)
    for bar in (value, value):
        same(pullback(bar), pullback_(bar))
    same(getattr(module, f"{name}_jvp")(args, along), f.jvp(args, along))
    if function is not spun:
        same(getattr(module, f"{name}_value_and_grad")(*args), f.value_and_grad(*args))
        if function is turned:
            same(getattr(module, f"{name}_hvp")(args, along), tg.hvp(f, args, along))


def bound(z, w):
    return np.sum((z * w * TABLE).real)


TABLE = np.array([1.0 + 2.0j, -0.5j])
C_PROGRAM = """
#include <complex.h>
#include "pairs.h"

int main(void) {
    double complex z[2] = {1.0 + 2.0 * I, 3.0}, w = 0.5 - 1.0 * I, z_bar[2], w_bar;
    double value;
    if (pairs_bound_grad((double *)z, 2, (double *)&w, &value, (double *)z_bar, (double *)&w_bar) != PAIRS_OK)
        return 1;
    double complex table[2] = {1.0 + 2.0 * I, -0.5 * I};
    if (value != creal(z[0] * w * table[0] + z[1] * w * table[1]))
        return 2;
    if (w_bar != z[0] * table[0] + z[1] * table[1] || z_bar[1] != w * table[1])
        return 3;
    if (pairs_bound_grad((double *)z, 2, 0, &value, (double *)z_bar, (double *)&w_bar) != PAIRS_SIZE)
        return 4;
    return pairs_bound_grad((double *)z, 2, (double *)&w, &value, (double *)&z[1], 0) != PAIRS_ALIAS;
}
"""
CXX_PROGRAM = """
#include <complex>
#include "pairs.h"

int main() {
    std::complex<double> z[2] = {{1, 2}, 3.0}, w(0.5, -1), w_bar;
    int status = pairs_bound_grad(reinterpret_cast<double *>(z), 2, reinterpret_cast<double *>(&w), 0, 0,
                                  reinterpret_cast<double *>(&w_bar));
    return status || w_bar != z[0] * std::complex<double>(1, 2) + z[1] * std::complex<double>(0, -0.5);
}
"""


def test_pairs_in_c(tmp_path: Path) -> None:
    f = tg.differentiable(bound, wrt=(0, 1))
    module = load(build(f, Z[:2], 1j, directory=tmp_path, modes=["grad"], name="pairs"))
    run_program(tmp_path, C_PROGRAM, "cc", suffix=".c")
    if shutil.which("c++"):
        run_program(tmp_path, CXX_PROGRAM, "c++", suffix=".cpp")
    same(module.bound_grad(Z[:2], 2)[1], f.grad(Z[:2], 2 + 0j)[1])
    for wrong in ("2", None, True):
        with pytest.raises(TypeError, match="w must be a number"):
            module.bound_grad(Z[:2], wrong)
    with pytest.raises(TypeError, match="complex128"):
        module.bound_grad(Z[:2].real, 1j)


def factorised(a, b):
    s = a @ np.conj(a.T) + np.eye(len(b))
    q, r = np.linalg.qr(s)
    u, w, v = np.linalg.svd(s, full_matrices=False)
    lam, _ = np.linalg.eigh(s)
    whole = np.linalg.cholesky(s) @ np.linalg.inv(s) + q @ r + u @ v
    return np.abs(np.sum(np.linalg.solve(whole, b))) + np.linalg.det(s).real + np.sum(w * lam)


def solved(a, b):
    return np.sum(np.abs(np.linalg.solve(a, b)) ** 2)


@pytest.mark.parametrize(
    ("function", "blas", "dtype"),
    [
        (solved, "cblas", "c8"),
        *(
            pytest.param(*case, marks=pytest.mark.compiled)
            for case in (
                *((multiplied, blas, dtype) for blas in ("builtin", "cblas") for dtype in ("c16", "c8")),
                (factorised, "cblas", "c16"),
            )
        ),
    ],
)
def test_matrices(function: Callable[..., Any], blas: str, dtype: str, tmp_path: Path) -> None:
    a, z = A.astype(dtype), Z.astype(dtype)
    f = tg.differentiable(function, wrt=(0, 1), backend="python")
    blas = openblas() if blas == "cblas" else blas
    module = load(build(f, a, z, directory=tmp_path, modes=["grad"], blas=blas, name="matrices"))
    found = getattr(module, f"{function.__name__}_value_and_grad")(a, z)
    for one, other in zip(leaves(found), leaves(f.value_and_grad(a, z)), strict=True):
        assert np.asarray(one).dtype == np.asarray(other).dtype
        scale = np.max(np.abs(other))
        np.testing.assert_allclose(one, other, rtol=0, atol=(1e-12 if dtype == "c16" else 1e-3) * scale)


def test_tangents_of_real_numbers_are_real(tmp_path: Path) -> None:
    module = load(build(turned, Z, 1j, 0.5, directory=tmp_path, modes=["jvp"]))
    real = load(build(tg.differentiable(turned, wrt="k"), Z, 1j, 0.5, directory=tmp_path, modes=["jvp"], name="real"))
    assert module.turned_jvp((Z, 1j, 0.5), (1j * Z, None, None))
    with pytest.raises(TypeError, match="k_dot must be a number"):
        real.turned_jvp((Z, 1j, 0.5), (None, None, 1j))
