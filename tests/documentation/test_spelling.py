"""The spellings of `benchmarks.spelling` and the adjoints of `benchmarks.hand` have one gradient."""

import importlib

import pytest

from benchmarks.spelling.__main__ import KERNELS, differing, gradients_of


@pytest.mark.parametrize("name", KERNELS)
def test_spellings_have_the_gradient_of_the_adjoint_by_hand(name):
    kernel = KERNELS[name]
    hand = importlib.import_module(f"benchmarks.hand.{name}").hand
    assert differing(kernel, hand.py_func, gradients_of(kernel, "python"), *kernel.small) == []
