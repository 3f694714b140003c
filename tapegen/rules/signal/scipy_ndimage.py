"""Image filters (`scipy.ndimage`): sums of shifted views of an array that is padded at its boundaries."""

from __future__ import annotations

import numpy as np
from scipy import ndimage

from tapegen.rules.helpers import axes_tuple, compile_time, flat, require, slice_axis
from tapegen.rules.registry import expands, fixed, refused
from tapegen.rules.signal.stencils import continued, shifted

refused(
    ndimage.median_filter,
    ndimage.percentile_filter,
    ndimage.rank_filter,
    reason="which element a window gives depends on the values.",
    advice="Stack shifted slices, and use np.median or np.sort along the new axis.",
)
refused(
    ndimage.generic_filter,
    ndimage.generic_filter1d,
    ndimage.generic_laplace,
    ndimage.generic_gradient_magnitude,
    reason="it calls a function on its own buffers.",
    advice="Call the function on shifted slices.",
)
refused(
    ndimage.spline_filter,
    ndimage.spline_filter1d,
    ndimage.affine_transform,
    ndimage.shift,
    ndimage.zoom,
    ndimage.rotate,
    reason="splines through images have no rule.",
    advice="Compute the coordinates, and call scipy.ndimage.map_coordinates with order=1.",
)


@compile_time
def edge_of(mode, output, dtype):
    """The boundary mode."""
    require(output is None, "a filter that writes into output= has no rule.", "Take the result.")
    require(dtype.kind == "f", "filters have a rule for arrays of floats.", "Convert the array: x.astype(float).")
    require(isinstance(mode, str), "a filter with a mode for each axis has no rule.", "Filter along each axis.")
    return {"grid-mirror": "reflect", "grid-wrap": "wrap", "grid-constant": "constant"}.get(mode, mode)


@compile_time
def filtered_axes(axes, rank):
    """The axes that a filter runs along."""
    return axes_tuple(axes, rank)


# ---- along one axis ------------------------------------------------------------------------------------------------


@expands(ndimage.correlate1d, shapes=[(5, 4), (3,)])
def correlate1d(input, weights, axis=-1, output=None, mode="reflect", cval=0.0, origin=0):
    return weighted(input, weights, axis, edge_of(mode, output, np.result_type(input)), cval, origin)


@expands(ndimage.convolve1d, shapes=[(5, 4), (3,)])
def convolve1d(input, weights, axis=-1, output=None, mode="reflect", cval=0.0, origin=0):
    """A window of an even number of weights backwards has its middle one place before."""
    even = (np.size(weights) + 1) % 2
    edge = edge_of(mode, output, np.result_type(input))
    return weighted(input, weights[::-1], axis, edge, cval, -origin - even)


def weighted(x, weights, axis, edge, value, origin):
    """The sum over k of `weights[k]` times the elements shifted by k."""
    size = np.size(weights)
    before = size // 2 + origin
    longer = continued(x, axis, before, size - 1 - before, edge, value)
    n = np.shape(x)[axis]
    total = np.zeros_like(x)
    for k in range(size):
        total += weights[k] * slice_axis(longer, axis, k, k + n)
    return total


@expands(ndimage.uniform_filter1d, shapes=[(5, 4), fixed(3)])
def uniform_filter1d(input, size, axis=-1, output=None, mode="reflect", cval=0.0, origin=0):
    return mean_along(input, size, axis, edge_of(mode, output, np.result_type(input)), cval, origin)


def mean_along(x, size, axis, edge, value, origin):
    before = size // 2 + origin
    longer = continued(x, axis, before, size - 1 - before, edge, value)
    n = np.shape(x)[axis]
    total = np.zeros_like(x)
    for k in range(size):
        total += slice_axis(longer, axis, k, k + n)
    return total / size


@expands(ndimage.maximum_filter1d, shapes=[(5, 4), fixed(3)])
def maximum_filter1d(input, size, axis=-1, output=None, mode="reflect", cval=0.0, origin=0):
    return most_along(input, size, axis, edge_of(mode, output, np.result_type(input)), cval, origin)


@expands(ndimage.maximum_filter, shapes=[(5, 4), fixed(3)])
def maximum_filter(input, size=None, footprint=None, output=None, mode="reflect", cval=0.0, origin=0, *, axes=None):
    require(footprint is None, "maximum_filter has a rule for windows that are boxes.", "Give size=.")
    edge = edge_of(mode, output, np.result_type(input))
    for k, axis in enumerate(filtered_axes(axes, np.ndim(input))):
        if part_of(size, k) > 1:  # SciPy leaves out the other axes, whatever their origin
            input = most_along(input, part_of(size, k), axis, edge, cval, part_of(origin, k))
    return input


@expands(ndimage.minimum_filter1d, shapes=[(5, 4), fixed(3)])
def minimum_filter1d(input, size, axis=-1, output=None, mode="reflect", cval=0.0, origin=0):
    return -most_along(-input, size, axis, edge_of(mode, output, np.result_type(input)), -cval, origin)


@expands(ndimage.minimum_filter, shapes=[(5, 4), fixed(3)])
def minimum_filter(input, size=None, footprint=None, output=None, mode="reflect", cval=0.0, origin=0, *, axes=None):
    require(footprint is None, "minimum_filter has a rule for windows that are boxes.", "Give size=.")
    edge = edge_of(mode, output, np.result_type(input))
    most = -input
    for k, axis in enumerate(filtered_axes(axes, np.ndim(input))):
        if part_of(size, k) > 1:
            most = most_along(most, part_of(size, k), axis, edge, -cval, part_of(origin, k))
    return -most


def most_along(x, size, axis, edge, value, origin):
    before = size // 2 + origin
    longer = continued(x, axis, before, size - 1 - before, edge, value)
    n = np.shape(x)[axis]
    most = slice_axis(longer, axis, 0, n)
    for k in range(1, size):
        most = np.maximum(most, slice_axis(longer, axis, k, k + n))
    return most


# ---- windows of all axes -------------------------------------------------------------------------------------------


@expands(ndimage.correlate, shapes=[(5, 4), (3, 3)])
def correlate(input, weights, output=None, mode="reflect", cval=0.0, origin=0, *, axes=None):
    require(axes is None, "a filter of some axes has no rule here.", "Filter row by row.")
    return weighted_window(input, weights, edge_of(mode, output, np.result_type(input)), cval, origin)


@expands(ndimage.convolve, shapes=[(5, 4), (3, 3)])
def convolve(input, weights, output=None, mode="reflect", cval=0.0, origin=0, *, axes=None):
    require(axes is None, "a filter of some axes has no rule here.", "Filter row by row.")
    origins = ()
    for k in axes_tuple(None, np.ndim(input)):
        even = (np.shape(weights)[k] + 1) % 2
        origins = origins + (-part_of(origin, k) - even,)
    edge = edge_of(mode, output, np.result_type(input))
    return weighted_window(input, np.flip(weights), edge, cval, origins)


def weighted_window(x, weights, edge, value, origin):
    longer = x
    for axis in axes_tuple(None, np.ndim(x)):
        size = np.shape(weights)[axis]
        before = size // 2 + part_of(origin, axis)
        longer = continued(longer, axis, before, size - 1 - before, edge, value)
    row = flat(weights)
    total = np.zeros_like(x)
    for k in range(np.size(row)):
        total += row[k] * shifted(longer, k, weights, x)
    return total


@expands(ndimage.uniform_filter, shapes=[(5, 4)])
def uniform_filter(input, size=3, output=None, mode="reflect", cval=0.0, origin=0, *, axes=None):
    edge = edge_of(mode, output, np.result_type(input))
    for k, axis in enumerate(filtered_axes(axes, np.ndim(input))):
        if part_of(size, k) > 1:  # SciPy leaves out the other axes, whatever their origin
            input = mean_along(input, part_of(size, k), axis, edge, cval, part_of(origin, k))
    return input


def part_of(value, k):
    """An option that is given for all axes, or for each."""
    if np.ndim(value) == 0:
        return value
    return value[k]


# ---- Gauss ---------------------------------------------------------------------------------------------------------


@expands(ndimage.gaussian_filter1d, shapes=[(5, 4), fixed(0.8)])
def gaussian_filter1d(
    input, sigma, axis=-1, order=0, output=None, mode="reflect", cval=0.0, truncate=4.0, *, radius=None
):
    edge = edge_of(mode, output, np.result_type(input))
    return gaussian_along(input, sigma, axis, order, edge, cval, truncate, radius)


@expands(ndimage.gaussian_filter, shapes=[(5, 4), fixed(0.8)])
def gaussian_filter(
    input, sigma, order=0, output=None, mode="reflect", cval=0.0, truncate=4.0, *, radius=None, axes=None
):
    edge = edge_of(mode, output, np.result_type(input))
    for k, axis in enumerate(filtered_axes(axes, np.ndim(input))):
        own = None if radius is None else part_of(radius, k)
        input = gaussian_along(input, part_of(sigma, k), axis, part_of(order, k), edge, cval, truncate, own)
    return input


def gaussian_along(x, sigma, axis, order, edge, value, truncate, radius):
    """Truncated Gaussian weights, normalized to the sum 1, or their derivatives."""
    reach = int(truncate * sigma + 0.5) if radius is None else radius
    place = 1.0 * np.arange(-reach, reach + 1)
    sigma = np.maximum(sigma, 1e-15)  # 0: no smoothing
    bell = np.exp(-0.5 * (place / sigma) ** 2)
    bell = bell / np.sum(bell)
    if order == 1:
        bell = bell * (place / sigma**2)
    elif order == 2:
        bell = bell * ((place / sigma) ** 2 - 1.0) / sigma**2
    else:
        require(order == 0, "Gaussian derivatives have a rule up to order=2.", "Filter twice.")
    return weighted(x, bell, axis, edge, value, 0)


@expands(ndimage.gaussian_laplace, shapes=[(5, 4), fixed(0.8)])
def gaussian_laplace(input, sigma, output=None, mode="reflect", cval=0.0, *, axes=None):
    edge = edge_of(mode, output, np.result_type(input))
    if len(filtered_axes(axes, np.ndim(input))) == 0:  # scipy hands on what it does not filter
        return np.copy(input)
    total = np.zeros_like(input)
    for second in filtered_axes(axes, np.ndim(input)):
        total = total + gaussian_derivative(input, sigma, second, 2, edge, cval, axes)
    return total


@expands(ndimage.gaussian_gradient_magnitude, shapes=[(5, 4), fixed(0.8)])
def gaussian_gradient_magnitude(input, sigma, output=None, mode="reflect", cval=0.0, *, axes=None):
    edge = edge_of(mode, output, np.result_type(input))
    if len(filtered_axes(axes, np.ndim(input))) == 0:  # scipy hands on what it does not filter
        return np.copy(input)
    total = np.zeros_like(input)
    for first in filtered_axes(axes, np.ndim(input)):
        # scipy smooths along every axis here, whichever the derivatives are taken along
        total = total + gaussian_derivative(input, sigma, first, 1, edge, cval, None) ** 2
    return np.sqrt(total)


def gaussian_derivative(x, sigma, along, order, edge, value, axes):
    for k, axis in enumerate(filtered_axes(axes, np.ndim(x))):
        x = gaussian_along(x, part_of(sigma, k), axis, order if axis == along else 0, edge, value, 4.0, None)
    return x


# ---- derivatives of images -----------------------------------------------------------------------------------------


@expands(ndimage.laplace, shapes=[(5, 4)])
def laplace(input, output=None, mode="reflect", cval=0.0, *, axes=None):
    edge = edge_of(mode, output, np.result_type(input))
    if len(filtered_axes(axes, np.ndim(input))) == 0:  # scipy hands on what it does not filter
        return np.copy(input)
    total = np.zeros_like(input)
    for axis in filtered_axes(axes, np.ndim(input)):
        before, here, after = around(input, axis, edge, cval)
        total = total + (before - 2.0 * here + after)
    return total


@expands(ndimage.sobel, shapes=[(5, 4)])
def sobel(input, axis=-1, output=None, mode="reflect", cval=0.0):
    return difference_and_smooth(input, axis, 2.0, edge_of(mode, output, np.result_type(input)), cval)


@expands(ndimage.prewitt, shapes=[(5, 4)])
def prewitt(input, axis=-1, output=None, mode="reflect", cval=0.0):
    return difference_and_smooth(input, axis, 1.0, edge_of(mode, output, np.result_type(input)), cval)


def difference_and_smooth(x, axis, weight, edge, value):
    before, _, after = around(x, axis, edge, value)
    x = after - before
    for other in axes_tuple(None, np.ndim(x)):
        if other != axis % np.ndim(x):
            before, here, after = around(x, other, edge, value)
            x = before + weight * here + after
    return x


def around(x, axis, edge, value):
    """The previous element, the element, and the next element."""
    longer = continued(x, axis, 1, 1, edge, value)
    return slice_axis(longer, axis, None, -2), x, slice_axis(longer, axis, 2, None)


# ---- interpolation -------------------------------------------------------------------------------------------------


@expands(ndimage.map_coordinates, shapes=[(4, 5), lambda rng: rng.uniform(0.1, 2.9, (2, 6)), fixed(None), fixed(1)])
def map_coordinates(input, coordinates, output=None, order=3, mode="constant", cval=0.0, prefilter=True):
    """Multilinear; outside of the array, the value or the nearest edge."""
    edge = edge_of(mode, output, np.result_type(input))
    require(order == 1, "map_coordinates has a rule for order=1.", "Pass order=1: it interpolates linearly.")
    require(
        mode == "constant" or mode == "nearest",
        "map_coordinates has a rule for mode='constant' and 'nearest'.",
        "Map the coordinates into the array first.",
    )
    rank = np.ndim(input)
    total = np.zeros_like(coordinates[0], dtype=input.dtype)
    for corner in corners(rank):
        weight = np.ones_like(coordinates[0])
        place = ()
        for axis, upper in enumerate(corner):
            last = np.shape(input)[axis] - 1
            along = np.clip(coordinates[axis], 0.0, last)
            below = np.minimum(np.floor(along), max(last - 1, 0))
            share = along - below
            weight = weight * (share if upper else 1.0 - share)
            place = place + (np.minimum(np.astype(below, np.int64) + upper, last),)
        total += weight * input[place]
    if edge == "constant":
        outside = coordinates[0] < 0.0
        for axis in axes_tuple(None, rank):
            outside = outside | (coordinates[axis] < 0.0) | (coordinates[axis] > np.shape(input)[axis] - 1)
        total = np.where(outside, cval, total)
    return total


@compile_time
def corners(rank):
    """The corners of a cell."""
    return tuple(tuple((k >> axis) & 1 for axis in range(rank)) for k in range(2**rank))
