"""The n-th allocation of a call fails, for every n of the call: an error, no crash, and nothing is left behind."""

from __future__ import annotations

import importlib
import os
import pickle
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import tapegen as tg
from tapegen.export.library import build_library, default_modes
from tapegen.export.module import ExportRequest
from tests import allocations
from tests.export.test_library_tapes import X, collected, flags, numbers, shrinking
from tests.export.test_library_values import factorised
from tests.libraries import openblas, tangent_of

pytestmark = pytest.mark.skipif(
    shutil.which("cc") is None or not sys.platform.startswith("linux"), reason="needs a C compiler and Linux"
)


@pytest.fixture(scope="module")
def counter(tmp_path_factory: pytest.TempPathFactory) -> Path:
    made = tmp_path_factory.mktemp("counter") / "counter.so"
    made.with_suffix(".c").write_text(allocations.COUNTER)
    subprocess.run(["cc", "-O1", "-fPIC", "-shared", "-o", made, made.with_suffix(".c")], check=True)
    return made


def failures(
    counter: Path, folder: Path, cases: dict[Any, tuple[Any, ...]], modes: Any = None, blas: str = "builtin"
) -> dict[str, tuple[int, int, int]]:
    """For each function of a library of these: failed allocations, those of its pullback, tapes lost by them."""
    rng = np.random.default_rng(0)
    wanted, given = [], {}
    for function, args in cases.items():
        f = function if isinstance(function, tg.Differentiable) else tg.differentiable(function)
        wanted.append(ExportRequest(f, args, {}, modes or default_modes(f, args, {})))
        wrt = f.options.wrt if isinstance(f.options.wrt, tuple) else (f.options.wrt,)
        given[f.python.__name__] = args, tuple(tangent_of(x, rng) if k in wrt else None for k, x in enumerate(args))
    build_library(wanted, folder, "watched", blas=blas)
    (folder / "cases").write_bytes(pickle.dumps(given))
    variables = {**os.environ, "LD_PRELOAD": str(counter), "OPENBLAS_NUM_THREADS": "1"}
    command = [sys.executable, "-E", allocations.__file__, str(folder), "watched"]
    done = subprocess.run(command, env=variables, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")
    found = [line.split() for line in done.stdout.splitlines()]
    return {name: (int(calls), int(pullbacks), int(lost)) for name, calls, pullbacks, lost in found}


def relaxed(x):
    for _ in range(3):
        x = np.sin(x) * x[::-1]
    return np.sum(x)


def test_every_allocation_may_fail(counter: Path, tmp_path: Path) -> None:
    found = failures(counter, tmp_path, {shrinking: (X,), relaxed: (X,)}, ("grad", "split"))
    assert list(found) == [f"{name}_{mode}" for name in ("shrinking", "relaxed") for mode in ("value_and_grad", "vjp")]
    assert all(calls > 5 for calls, _, _ in found.values())
    assert found["shrinking_vjp"][1] > 0 and found["relaxed_vjp"][1] > 0
    assert found["shrinking_vjp"][2] > 0
    assert found["relaxed_vjp"][2] == 0  # its pullback writes into nothing that the tape holds


@pytest.mark.compiled
def test_every_allocation_of_lists_may_fail(counter: Path, tmp_path: Path) -> None:
    found = failures(counter, tmp_path, {shrinking: (X,), collected: (X,), numbers: (X, 5), flags: (X - 1.0, 7)})
    assert len(found) == 20 and min(calls for calls, _, _ in found.values()) > 0 and found["collected_vjp"][2] > 0


def grown(x):
    y = np.empty((x.size, 2))
    for i in range(x.size):
        y[i] = np.sin(x[i] * x[:2])
    return y @ y.T


@pytest.mark.compiled
def test_every_allocation_of_factorisations_may_fail(counter: Path, tmp_path: Path) -> None:
    rng = np.random.default_rng(3)
    cases = {factorised: (rng.normal(size=(4, 4)), rng.normal(size=4)), grown: (X,)}
    found = failures(counter, tmp_path, cases, ("value", "split"), openblas())
    assert found["factorised_vjp"][0] > 20 and found["grown_vjp"][1] > 0


@pytest.mark.compiled
@pytest.mark.parametrize("name", ["gmm", "gramschmidt", "lstm", "mlp", "nbody", "newton", "max_recursion"])
def test_every_allocation_of_a_kernel_may_fail(name: str, counter: Path, tmp_path: Path) -> None:
    kernel = importlib.import_module(f"benchmarks.kernels.{name}")
    found = failures(counter, tmp_path, {tg.differentiable(kernel.f, wrt=kernel.WRT): kernel.small()})
    assert found["f_value_and_grad"][0] > 0 and found["f_vjp"][0] > 0
