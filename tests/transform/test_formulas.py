"""Functions whose derivatives are those of formulas: values are those of the functions themselves."""

from __future__ import annotations

import numpy as np

import tapegen as tg


def test_the_value_is_that_of_the_function_to_the_last_bit() -> None:
    def bessel(x: np.ndarray) -> np.ndarray:
        return np.i0(x)

    derived = tg.differentiable(bessel, backend="python")
    x = np.linspace(0.1, 9.0, 20)
    np.testing.assert_array_equal(derived.vjp(x)[0], bessel(x))
    np.testing.assert_array_equal(tg.jvp(derived, (x,), (x,))[0], bessel(x))
