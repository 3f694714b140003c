"""The benchmark kernels at a small size: right gradients, and nothing recorded where nothing need be."""

from __future__ import annotations

import importlib

import pytest

import tapegen as tg
from benchmarks.kernels.__main__ import ORDER, TOLERANCE
from benchmarks.measure import gradient_error

RECORD_NOTHING = ("jacobi_2d", "heat_3d", "seidel_2d", "cholesky", "lu", "trisolv")


@pytest.mark.parametrize("name", ORDER)
def test_gradient(name: str) -> None:
    kernel = importlib.import_module(f"benchmarks.kernels.{name}")
    value, gradient = tg.differentiable(wrt=kernel.WRT, backend="python")(kernel.f).value_and_grad(*kernel.small())
    assert value == pytest.approx(kernel.f(*kernel.small()), rel=1e-12)
    assert gradient_error(kernel, gradient) <= TOLERANCE


@pytest.mark.parametrize("name", RECORD_NOTHING)
def test_records_nothing(name: str) -> None:
    kernel = importlib.import_module(f"benchmarks.kernels.{name}")
    ours = tg.differentiable(wrt=kernel.WRT, backend="python")(kernel.f)
    assert ours.inspect(*kernel.small()).report.recorded_bytes == 0
