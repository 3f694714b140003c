"""Integrals of sampled functions (`scipy.integrate`)."""

from __future__ import annotations

import numpy as np
from scipy import integrate

from tapegen.rules.helpers import require, slice_axis
from tapegen.rules.registry import expands, refused

refused(
    integrate.quad,
    integrate.solve_ivp,
    integrate.odeint,
    reason="it calls a function at points of its own choice.",
    advice="Write the steps as a loop: rules of fixed order are short, and their loop is differentiated.",
)


@expands(integrate.trapezoid, shapes=[(5,), lambda rng: np.linspace(0.0, 2.0, 5) ** 2])
def trapezoid(y, x=None, dx=1.0, axis=-1):
    return np.trapezoid(y, x, dx, axis)


@expands(integrate.cumulative_trapezoid, shapes=[(5,), lambda rng: np.linspace(0.0, 2.0, 5) ** 2])
def cumulative_trapezoid(y, x=None, dx=1.0, axis=-1, initial=None):
    require(x is None or np.ndim(x) == 1, "cumulative_trapezoid has a rule for x of one axis.", "Integrate by rows.")
    lines = np.moveaxis(y, axis, -1)
    width = dx if x is None else np.diff(x)
    sums = np.cumsum(0.5 * width * (slice_axis(lines, -1, 1, None) + slice_axis(lines, -1, None, -1)), axis=-1)
    if initial is not None:
        sums = np.concatenate((np.zeros_like(slice_axis(lines, -1, 0, 1)), sums), axis=-1)
    return np.moveaxis(sums, -1, axis)


@expands(integrate.simpson, shapes=[(5,)])
def simpson(y, x=None, *, dx=1.0, axis=-1):
    """Of an odd number of equal steps; scipy corrects the last step of an even number."""
    require(x is None, "scipy.integrate.simpson has a rule for equal steps.", "Give dx, or use trapezoid.")
    lines = np.moveaxis(y, axis, -1)
    n = np.shape(lines)[-1]
    if n % 2 == 0:
        last, before, more = lines[..., -1], lines[..., -2], lines[..., -3]
        correction = dx * (5.0 * last + 8.0 * before - more) / 12.0
        return simpson_of_odd(slice_axis(lines, -1, None, -1), dx) + correction
    return simpson_of_odd(lines, dx)


def simpson_of_odd(lines, dx):
    ends = slice_axis(lines, -1, None, -2, 2) + slice_axis(lines, -1, 2, None, 2)
    return np.sum(ends + 4.0 * slice_axis(lines, -1, 1, -1, 2), axis=-1) * dx / 3.0
