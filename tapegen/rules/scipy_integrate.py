"""Integrals of sampled functions (`scipy.integrate`)."""

from __future__ import annotations

import numpy as np
from scipy import integrate

from tapegen.rules.helpers import slice_axis
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
    lines = np.moveaxis(y, axis, -1)
    width = dx if x is None else steps_along(x, axis)
    sums = np.cumsum(0.5 * width * (slice_axis(lines, -1, 1, None) + slice_axis(lines, -1, None, -1)), axis=-1)
    if initial is not None:
        sums = np.concatenate((np.zeros_like(slice_axis(lines, -1, 0, 1)), sums), axis=-1)
    return np.moveaxis(sums, -1, axis)


def steps_along(x, axis):
    """The steps between points, along the last axis."""
    if np.ndim(x) == 1:
        return np.diff(x)
    return np.diff(np.moveaxis(x, axis, -1))


@expands(integrate.simpson, shapes=[(5,)])
def simpson(y, x=None, *, dx=1.0, axis=-1):
    """Parabolas through three points each; of an even number, the last step has a parabola through the last three."""
    lines = np.moveaxis(y, axis, -1)
    n = np.shape(lines)[-1]
    width = dx * np.ones_like(lines[..., 1:]) if x is None else steps_along(x, axis) + np.zeros_like(lines[..., 1:])
    if n % 2 == 1:
        return parabolas(lines, width)
    if n == 2:
        return 0.5 * width[..., 0] * (lines[..., 0] + lines[..., 1])
    a, b = width[..., -2], width[..., -1]
    last = lines[..., -1] * (2.0 * b + 3.0 * a) / (a + b) + lines[..., -2] * (b + 3.0 * a) / a
    last = b / 6.0 * (last - lines[..., -3] * b * b / (a * (a + b)))
    return parabolas(lines[..., :-1], width[..., :-1]) + last


def parabolas(lines, width):
    a, b = width[..., ::2], width[..., 1::2]
    both = a + b
    first = lines[..., :-2:2] * (2.0 - b / a)
    middle = lines[..., 1:-1:2] * both * both / (a * b)
    return np.sum(both / 6.0 * (first + middle + lines[..., 2::2] * (2.0 - a / b)), axis=-1)
