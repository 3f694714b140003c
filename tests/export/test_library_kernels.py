"""Libraries of the kernels and of the examples, in every mode, give what the decorator gives, bit for bit."""

from __future__ import annotations

import importlib
import pkgutil
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import benchmarks.kernels
import tapegen as tg
from tapegen.aot import build
from tests.libraries import leaves, load, openblas, same, tangent_of

pytestmark = pytest.mark.skipif(shutil.which("cc") is None, reason="needs a C compiler")


KERNELS = [info.name for info in pkgutil.iter_modules(benchmarks.kernels.__path__) if not info.name.startswith("_")]
QUICK = ("logistic_map",)
PRODUCTS = ("mlp", "logreg", "trisolv", "gramschmidt", "lstm")  # their own loops add in another order than BLAS


def all_calls(module: Any, f: Any, args: tuple[Any, ...], wrt: tuple[int, ...]) -> Iterator[tuple[Any, Any]]:
    """What a library gives beside what the decorator gives, in each mode that the library has."""
    rng = np.random.default_rng(0)
    name = f.python.__name__
    along = tuple(tangent_of(x, rng) if k in wrt else None for k, x in enumerate(args))
    yield getattr(module, name)(*args), f(*args)
    yield getattr(module, f"{name}_value_and_grad")(*args), f.value_and_grad(*args)
    (value, pullback), (value_, pullback_) = getattr(module, f"{name}_vjp")(*args), f.vjp(*args)
    yield (value, pullback(2.0), pullback(-0.5)), (value_, pullback_(2.0), pullback_(-0.5))
    yield getattr(module, f"{name}_jvp")(args, along), f.jvp(args, along)
    yield getattr(module, f"{name}_hvp")(args, along), tg.hvp(f, args, along)


@pytest.mark.parametrize("name", [pytest.param(n, marks=() if n in QUICK else pytest.mark.compiled) for n in KERNELS])
def test_kernels_equal_the_decorator_bit_for_bit(name: str, tmp_path: Path) -> None:
    kernel = importlib.import_module(f"benchmarks.kernels.{name}")
    f, args = tg.differentiable(kernel.f, wrt=kernel.WRT), kernel.small()
    blas = openblas() if name in PRODUCTS else "builtin"
    module = load(build(f, *args, directory=tmp_path, cpu="native", blas=blas))
    for found, expected in all_calls(module, f, args, kernel.WRT):
        same(found, expected)


def near(found: Any, expected: Any, rtol: float) -> None:
    for a, b in zip(leaves(found), leaves(expected), strict=True):
        np.testing.assert_allclose(a, b, rtol=rtol, atol=rtol * np.max(np.abs(b), initial=1e-3))


@pytest.mark.whole
@pytest.mark.parametrize("name", KERNELS)
def test_every_mode_of_every_kernel(name: str, tmp_path: Path) -> None:
    """Against generated Python; products with the Hessian against differences of its gradient."""
    kernel = importlib.import_module(f"benchmarks.kernels.{name}")
    args, rng = kernel.small(), np.random.default_rng(0)
    f = tg.differentiable(kernel.f, wrt=kernel.WRT, backend="python")
    module = load(build(tg.differentiable(kernel.f, wrt=kernel.WRT), *args, directory=tmp_path))
    along = tuple(rng.normal(size=np.shape(x))[()] if k in kernel.WRT else None for k, x in enumerate(args))
    near(module.f(*args), f(*args), 1e-9)
    near(module.f_value_and_grad(*args), f.value_and_grad(*args), 1e-9)
    near(module.f_vjp(*args)[1](2.0), f.vjp(*args)[1](2.0), 1e-9)
    near(module.f_jvp(args, along), f.jvp(args, along), 1e-9)

    def moved(step: float) -> Any:
        return f.grad(*(x if d is None else x + step * d for x, d in zip(args, along, strict=True)))

    there, back = leaves(moved(1e-6)), leaves(moved(-1e-6))
    near(module.f_hvp(args, along), tuple((a - b) / 2e-6 for a, b in zip(there, back, strict=True)), 1e-4)


# ---- examples ------------------------------------------------------------------------------------------------------


def carbon() -> tuple[Any, tuple[Any, ...], tuple[int, ...]]:
    from examples import carbon

    rng = np.random.default_rng(0)
    times = 1960.0 + np.arange(8) / 52
    measured = 315.0 + rng.normal(size=8)
    measured[3] = np.nan
    start = {"start": 315.0, "uptake": 0.02, "release": 0.01, "enrichment": 0.3, "season": rng.normal(size=(2, 2))}
    return carbon.misfit, (start, times, carbon.emissions(times), measured), (0,)


def digits() -> tuple[Any, tuple[Any, ...], tuple[int, ...]]:
    from examples import digits

    rng = np.random.default_rng(0)
    return digits.loss, (digits.initial((5, 4, 3, 10), rng), rng.uniform(size=(3, 5)), np.array([1, 0, 7]), 0.01), (0,)


def heat() -> tuple[Any, tuple[Any, ...], tuple[int, ...]]:
    from examples import heat

    rng = np.random.default_rng(0)
    where = np.array([1, 3]), np.array([2, 4])
    return heat.misfit, (rng.uniform(size=(5, 6)), 0.15, *where, rng.uniform(size=(20, 2)), 0.1), (0, 1)


def march() -> tuple[Any, tuple[Any, ...], tuple[int, ...]]:
    from examples import heat

    return tg.differentiable(heat.march, wrt=("u0", "k")), (np.array([3.0, 1.0, 2.0, 0.5]), 0.2, 10.0), (0, 1)


def branch() -> tuple[Any, tuple[Any, ...], tuple[int, ...]]:
    from examples import tape_guide

    return tg.differentiable(tape_guide.branch, wrt=(0, 1, 2)), (-1.5, 0.5, 0.1), (0, 1, 2)


@pytest.mark.parametrize(
    "example", [branch, *(pytest.param(each, marks=pytest.mark.compiled) for each in (carbon, digits, heat, march))]
)
def test_examples_equal_the_decorator_bit_for_bit(example: Any, tmp_path: Path) -> None:
    f, args, wrt = example()
    module = load(build(f, *args, directory=tmp_path, cpu="native", blas=openblas()))
    for found, expected in all_calls(module, f, args, wrt):
        same(found, expected)
