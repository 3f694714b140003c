"""Gradients that rounding decides: with other last digits of the arguments they are others, so none of them is true."""

from __future__ import annotations

import contextlib
from collections.abc import Callable
from typing import Any

import numpy as np

from tests.grown.reference import rebuilt, twin
from tests.grown.values import is_real

POINTS = 8
UNITS = 4  # in the last place, by which arguments are moved at most


def moved(leaf: Any, by: np.ndarray) -> Any:
    """A number or array moved, of the same kind and layout."""
    fresh = twin(leaf)
    if isinstance(fresh, np.ndarray):
        fresh += by
        return fresh
    return type(leaf)(leaf + by)


def rounding_decides(gradient: Callable[[Any], np.ndarray], args: Any, bound: float, narrow: bool) -> bool:
    """Whether a gradient changes where the arguments change in their last digits.

    So it does at the standard deviation of equal numbers, whose mean is rounded: `(x - mean) / std` is -1, 0 or 1.
    What differs from call to call is no matter of rounding.

    Parameters
    ----------
    gradient : callable
        Some numbers of the gradient, of arguments that it may change.
    args : tuple
        The arguments.
    bound : float
        What differs by more is another gradient.
    narrow : bool
        Whether some of the program is in single precision.
    """
    rng = np.random.default_rng(11)
    eps = np.finfo(np.float32 if narrow else np.float64).eps

    def near(units: int) -> np.ndarray:
        def rounded(leaf: Any) -> Any:
            if not is_real(leaf):
                return twin(leaf)
            return moved(leaf, np.asarray(leaf) * (eps * rng.integers(-units, units + 1, np.shape(leaf))))

        return gradient(rebuilt(args, rounded))

    try:
        here, again = near(0), near(0)
    except Exception:
        return False
    others = []
    for _ in range(POINTS):
        with contextlib.suppress(Exception):  # the program takes another way there, or none
            others.append(near(UNITS))
    return np.array_equal(here, again) and any(bool(np.any(np.abs(other - here) > bound)) for other in others)
