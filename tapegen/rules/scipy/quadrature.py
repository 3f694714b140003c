"""Quadrature: integrals of samples and of functions (`scipy.integrate`); differential equations are in `ode`."""

from __future__ import annotations

import numpy as np
from scipy import integrate

from tapegen.ir.types import FLOAT, Array, Scalar, TupleOf
from tapegen.rules.gradient_modifiers import stop_gradient
from tapegen.rules.helpers import as_float64, index_axis, require, slice_axis
from tapegen.rules.implicit import as_args, behind, closed, flattened, jvp, nothing, parted, primitive, vjp
from tapegen.rules.registry import expands, pullback

# ---- samples ---------------------------------------------------------------------------------------------------------


@expands(integrate.trapezoid, shapes=[(5,), lambda rng: np.linspace(0.0, 2.0, 5) ** 2])
def trapezoid(y, x=None, dx=1.0, axis=-1):
    if x is not None and np.ndim(x) < np.ndim(y) and np.ndim(x) != 1:  # one value for all points
        x = np.broadcast_to(x, np.shape(y))
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
    if x is None:
        return evenly_spaced(lines, dx)
    width = steps_along(x, axis)
    n = np.shape(lines)[-1]
    count = (n - 1) // 2
    steps, left, right = in_twos(width, count), in_twos(lines[..., :-1], count), in_twos(lines[..., 1:], count)
    a, b = steps[..., 0], steps[..., 1]
    both = a + b
    inner = left[..., 0] * (2.0 - b / a) + left[..., 1] * both * both / (a * b) + right[..., 1] * (2.0 - a / b)
    total = np.sum(both / 6.0 * inner, axis=-1)
    if n % 2 == 1:
        return total
    b = index_axis(width, -1, -1)
    if n == 2:
        return 0.5 * b * (index_axis(lines, -1, 0) + index_axis(lines, -1, 1))
    a = index_axis(width, -1, -2)
    last = index_axis(lines, -1, -1) * (2.0 * b + 3.0 * a) / (a + b) + index_axis(lines, -1, -2) * (b + 3.0 * a) / a
    return total + b / 6.0 * (last - index_axis(lines, -1, -3) * b * b / (a * (a + b)))


def evenly_spaced(lines, dx):
    n = np.shape(lines)[-1]
    count = (n - 1) // 2
    left, right = in_twos(lines[..., :-1], count), in_twos(lines[..., 1:], count)
    total = np.sum(left[..., 0] + 4.0 * left[..., 1] + right[..., 1], axis=-1) * (dx / 3.0)
    if n % 2 == 1:
        return total
    if n == 2:
        return 0.5 * dx * (index_axis(lines, -1, 0) + index_axis(lines, -1, 1))
    last = 5.0 * index_axis(lines, -1, -1) + 8.0 * index_axis(lines, -1, -2) - index_axis(lines, -1, -3)
    return total + last * (dx / 12.0)


def in_twos(lines, count):
    """The first `2 * count` elements of the last axis, in pairs."""
    return np.reshape(lines[..., : 2 * count], (*np.shape(lines)[:-1], count, 2))


# ---- functions -------------------------------------------------------------------------------------------------------


@primitive(lambda function, floats, others, low, high, options: TupleOf((FLOAT, FLOAT)), part_of="scipy.integrate.quad")
def integral(function, floats, others, low, high, options):
    """The integral of a scalar function, and the error estimate of `integrate.quad`."""
    epsabs, epsrel, limit, points = options

    def value(x):
        return function(x, *floats, *others)

    return integrate.quad(value, low, high, epsabs=epsabs, epsrel=epsrel, limit=limit, points=points)


@pullback(integral, wrt=("floats", "low", "high"))
def integral_pullback(function, floats, others, low, high, options, *, out_bar):
    """The integral of the derivative, and the value at each end."""

    def slopes(x):
        _, pull = vjp(function, x, *floats, *others, wrt=behind(1, len(floats)))
        return flattened(pull(1.0))

    total = integrate.quad_vec(slopes, low, high, epsabs=1e-12, epsrel=1e-10, points=options[3])[0]
    at_low = end_value(function, floats, others, low)
    at_high = end_value(function, floats, others, high)
    return parted(out_bar[0] * total, floats), -out_bar[0] * at_low, out_bar[0] * at_high


@integral_pullback.pushforward
def integral_pushforward(function, floats, others, low, high, options, *, floats_dot, low_dot, high_dot):
    def slope(x):
        return jvp(function, (x, *floats, *others), (None, *floats_dot, *nothing(len(others))))[1]

    inside = integrate.quad(slope, low, high, epsabs=1e-12, epsrel=1e-10, limit=200, points=options[3])[0]
    ends = high_dot * end_value(function, floats, others, high) - low_dot * end_value(function, floats, others, low)
    return inside + ends, None


def end_value(function, floats, others, x):
    """The integrand at a limit; 0 for an infinite one, which does not move."""
    if np.isfinite(x):
        value = function(x, *floats, *others)
    else:
        value = 0.0
    return value


@expands(integrate.quad, written=True)
def quad(
    func,
    a,
    b,
    args=(),
    full_output=0,
    epsabs=1.49e-08,
    epsrel=1.49e-08,
    limit=50,
    points=None,
    weight=None,
    wvar=None,
    wopts=None,
    maxp1=50,
    limlst=50,
    complex_func=False,
):
    require(
        not full_output and weight is None and not complex_func,
        "these options of quad have no rule.",
        "Write the weight into the function, and leave full_output= and complex_func= out.",
    )
    args = as_args(args)

    def value(x):
        return func(x, *args)

    function, floats, others, rank = closed(value, 0.5)
    require(rank == 0, "quad integrates a number.", "Use scipy.integrate.quad_vec.")
    points = None if points is None else stop_gradient(as_float64(points))
    return integral(function, floats, others, float(a), float(b), (epsabs, epsrel, limit, points))


def type_of_integral(function, floats, others, low, high, rank, options):
    """The integral is an array of the rank of the function."""
    value = Array("float64", rank.value) if rank.value else Scalar("float64", python=False)
    return TupleOf((value, FLOAT))


@primitive(type_of_integral, part_of="scipy.integrate.quad_vec")
def array_integral(function, floats, others, low, high, rank, options):
    """The integral of an array of the given rank, and the error estimate of `integrate.quad_vec`."""
    epsabs, epsrel, limit, points = options

    def value(x):
        return function(x, *floats, *others)

    found, error = integrate.quad_vec(value, low, high, epsabs=epsabs, epsrel=epsrel, limit=limit, points=points)
    return found, float(error)


@pullback(array_integral, wrt=("floats", "low", "high"))
def array_integral_pullback(function, floats, others, low, high, rank, options, *, out_bar):
    def slopes(x):
        _, pull = vjp(function, x, *floats, *others, wrt=behind(1, len(floats)))
        return flattened(pull(out_bar[0]))

    total = integrate.quad_vec(slopes, low, high, epsabs=1e-12, epsrel=1e-10, points=options[3])[0]
    at_low = np.sum(out_bar[0] * end_value(function, floats, others, low))
    at_high = np.sum(out_bar[0] * end_value(function, floats, others, high))
    return parted(total, floats), -at_low, at_high


@array_integral_pullback.pushforward
def array_integral_pushforward(function, floats, others, low, high, rank, options, *, floats_dot, low_dot, high_dot):
    def slope(x):
        return jvp(function, (x, *floats, *others), (None, *floats_dot, *nothing(len(others))))[1]

    inside = integrate.quad_vec(slope, low, high, epsabs=1e-12, epsrel=1e-10, points=options[3])[0]
    ends = high_dot * end_value(function, floats, others, high) - low_dot * end_value(function, floats, others, low)
    return inside + ends, None


@expands(integrate.quad_vec, written=True)
def quad_vec(
    f,
    a,
    b,
    epsabs=1e-200,
    epsrel=1e-08,
    norm="2",
    cache_size=100e6,
    limit=10000,
    workers=1,
    points=None,
    quadrature=None,
    full_output=False,
    *,
    args=(),
):
    require(
        norm == "2" and workers == 1 and quadrature is None and not full_output,
        "these options of quad_vec have no rule.",
        "Leave norm=, workers=, quadrature= and full_output= out.",
    )
    args = as_args(args)

    def value(x):
        return as_float64(f(x, *args))

    function, floats, others, rank = closed(value, 0.5)
    points = None if points is None else stop_gradient(as_float64(points))
    return array_integral(function, floats, others, float(a), float(b), rank, (epsabs, epsrel, limit, points))
