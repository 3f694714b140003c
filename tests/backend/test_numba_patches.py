"""Compiled code on stock numba, and with each patch of numba's internals switched off."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import tapegen as tg
from tapegen.backend.numba import patches
from tapegen.backend.numba.patches import PATCHES, SWITCH, Patch, Uses
from tapegen.errors import PerformanceWarning

ROOT = Path(__file__).parents[2]


def program(x: np.ndarray, w: np.ndarray, n: int) -> float:
    """Loops, stores, a growing list of arrays, a matrix product, new arrays, an index from the end, an error."""
    state, rows, total = x.copy(), [], 0.0
    for k in range(n):
        if k > 0 and state[0] > 1e6:
            raise ValueError("too large")
        state[k % state.size] += np.sin(state[-1]) * w[k % w.shape[0], 0]
        state = np.dot(w, state)
        rows.append(state * 0.5)
    while rows:
        total += rows.pop().sum()
    return total


X, W = np.array([0.3, -0.2, 0.9]), np.array([[0.5, 0.1, 0.0], [0.2, 0.4, 0.1], [0.0, 0.3, 0.6]])


@pytest.mark.parametrize("patch", PATCHES, ids=lambda patch: patch.name)
def test_a_patch_fits_the_numba_that_is_installed(patch: Patch) -> None:
    assert patch.fits()
    assert patch.purpose


def test_what_is_not_there_does_not_fit() -> None:
    assert not Uses("numba.core.lowering:Lower.no_such_method").fits()
    assert not Uses("numba.no_such_module:Lower").fits()
    assert not Uses("numba.core.lowering:Lower.delvar", ("self", "name", "more")).fits()
    assert Uses("numba.core.lowering:Lower.delvar", ("self", "name")).fits()


def test_a_patch_that_does_not_fit_is_off_and_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    strange = Patch("strange", "speed", (Uses("numba.core.lowering:Lower.no_such_method"),))
    monkeypatch.setattr(patches, "PATCHES", (strange,))
    patches.is_enabled.cache_clear()
    try:
        with pytest.warns(PerformanceWarning, match=r"'strange' is off \(speed\)"):
            assert not patches.is_enabled("strange")
        assert not patches.is_enabled("strange")  # once
    finally:
        patches.is_enabled.cache_clear()


SCRIPT = """
import json, sys
import numpy as np
from tapegen.backend.numba import patches
import tapegen as tg
from tests.backend.test_numba_patches import W, X, program

assert set(patches.disabled()) == set(sys.argv[1].split(","))
value, gradient = tg.value_and_grad(program, backend="numba")(X, W, 5)
try:
    tg.value_and_grad(program, backend="numba")(1e9 * X, W, 5)
except ValueError as error:
    said = str(error)
print(json.dumps([value, gradient.tolist(), said]))
"""


def run(switched_off: str, names: str) -> list[object]:
    environment = {**os.environ, SWITCH: switched_off, "PYTHONPATH": str(ROOT), "TAPEGEN_CACHE": "0"}
    command = [sys.executable, "-W", "error", "-c", SCRIPT, names]
    done = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")
    found: list[object] = json.loads(done.stdout)
    return found


def expected() -> list[object]:
    value, gradient = tg.value_and_grad(program, backend="python")(X, W, 5)
    return [value, gradient.tolist(), "too large"]


def test_stock_numba_computes_the_same() -> None:
    names = ",".join(patch.name for patch in PATCHES)
    found, wanted = run("1", names), expected()
    np.testing.assert_allclose(found[0], wanted[0], rtol=1e-14)  # type: ignore[arg-type]
    np.testing.assert_allclose(found[1], wanted[1], rtol=1e-13)  # type: ignore[arg-type]
    assert found[2] == wanted[2]


@pytest.mark.compiled
@pytest.mark.parametrize("patch", PATCHES, ids=lambda patch: patch.name)
def test_without_one_patch_all_is_the_same(patch: Patch) -> None:
    found, wanted = run(patch.name, patch.name), expected()
    np.testing.assert_allclose(found[0], wanted[0], rtol=1e-14)  # type: ignore[arg-type]
    np.testing.assert_allclose(found[1], wanted[1], rtol=1e-13)  # type: ignore[arg-type]
    assert found[2] == wanted[2]


BLAS = """
import sys
import numpy as np
import tapegen as tg

assert tg.grad(lambda x: x * x, backend="numba")(3.0) == 6.0
print("scipy.linalg" in sys.modules)
from numba.np import arraymath, linalg
print(arraymath.ensure_blas is linalg.ensure_blas and linalg.ensure_blas.__module__ == "numba.np.linalg")
print(tg.grad(lambda x: np.sum(np.eye(2) @ x), backend="numba")(np.ones(2)).tolist())
"""


def test_scipy_linalg_is_loaded_with_the_first_product(tmp_path: Path) -> None:
    environment = {**os.environ, "PYTHONPATH": str(ROOT), "TAPEGEN_CACHE": "0"}
    program = tmp_path / "program.py"
    program.write_text(BLAS, encoding="utf-8")
    done = subprocess.run([sys.executable, program], env=environment, capture_output=True, text=True, check=True)
    assert done.stdout.split("\n") == ["False", "True", "[1.0, 1.0]", ""]
