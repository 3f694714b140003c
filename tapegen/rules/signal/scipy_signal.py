"""Convolutions and recursive filters (`scipy.signal`)."""

from __future__ import annotations

import numpy as np
from scipy import signal

from tapegen.rules.helpers import axes_tuple, flat, one_of, require, slice_axis
from tapegen.rules.registry import expands, fixed, refused
from tapegen.rules.signal.stencils import continued, shifted

refused(
    signal.filtfilt,
    signal.sosfiltfilt,
    reason="what it puts before and after the signal has no rule.",
    advice="Call lfilter on the signal, and on the result backwards.",
)

# ---- convolutions --------------------------------------------------------------------------------------------------


@expands(signal.convolve, shapes=[(5,), (3,)])
def convolve(in1, in2, mode="full", method="auto"):
    return part_of_full(full_convolution(in1, in2), in1, in2, mode, 1)


@expands(signal.fftconvolve, signal.oaconvolve, shapes=[(5,), (3,)])
def fftconvolve(in1, in2, mode="full", axes=None):
    require(axes is None, "convolutions along some axes have no rule.", "Convolve row by row.")
    return part_of_full(full_convolution(in1, in2), in1, in2, mode, 1)


@expands(signal.correlate, shapes=[(5,), (3,)])
def correlate(in1, in2, mode="full", method="auto"):
    return part_of_full(full_convolution(in1, np.flip(in2)), in1, in2, mode, 1)


@expands(signal.convolve2d, shapes=[(4, 5), (2, 3)])
def convolve2d(in1, in2, mode="full", boundary="fill", fillvalue=0):
    return convolution_of_images(in1, in2, mode, boundary, fillvalue, 1)


@expands(signal.correlate2d, shapes=[(4, 5), (3, 2)])
def correlate2d(in1, in2, mode="full", boundary="fill", fillvalue=0):
    return convolution_of_images(in1, np.flip(in2), mode, boundary, fillvalue, 0)


def full_convolution(x, window):
    """The full convolution: sums of products over pairs of elements whose indices have the same sum."""
    require(np.ndim(x) == np.ndim(window), "convolutions are of arrays of equal rank.", "Add axes of size 1.")
    if np.ndim(x) == 1:
        return np.convolve(x, window)
    shape = ()
    for axis in axes_tuple(None, np.ndim(x)):
        shape = shape + (np.shape(x)[axis] + np.shape(window)[axis] - 1,)
    total = np.zeros(shape, dtype=np.result_type(x, window))
    row = flat(window)
    for k in range(np.size(row)):
        place = shifted(total, k, window, x)
        place += row[k] * x
    return total


def part_of_full(full, x, window, mode, odd):
    """The central part of a convolution; `odd` selects the side with one more element for even windows."""
    one_of("mode", mode, ("full", "same", "valid"))
    for axis in axes_tuple(None, np.ndim(x)):
        n, m = np.shape(x)[axis], np.shape(window)[axis]
        if mode == "same":
            full = slice_axis(full, axis, (m - odd) // 2, (m - odd) // 2 + n)
        elif mode == "valid":
            full = slice_axis(full, axis, min(n, m) - 1, max(n, m))
    return full


def convolution_of_images(x, window, mode, boundary, fillvalue, odd):
    """Two-dimensional convolution with the boundary mode `boundary`."""
    one_of("boundary", boundary, ("fill", "pad", "wrap", "circular", "symm", "symmetric"))
    if boundary == "fill" or boundary == "pad":
        full = full_convolution(x - fillvalue, window) + fillvalue * np.sum(window)
        return part_of_full(full, x, window, mode, odd)
    rows, columns = np.shape(window)[0] - 1, np.shape(window)[1] - 1
    edge = "wrap" if boundary == "wrap" or boundary == "circular" else "reflect"
    longer = continued(continued(x, 0, rows, rows, edge, 0.0), 1, columns, columns, edge, 0.0)
    full = part_of_full(full_convolution(longer, window), longer, window, "valid", odd)
    return part_of_full(full, x, window, mode, odd)


# ---- recursive filters ---------------------------------------------------------------------------------------------


@expands(signal.lfilter, shapes=[(3,), lambda rng: np.array([1.2, -0.4, 0.3]), (6,)])
def lfilter(b, a, x, axis=-1, zi=None):
    b, a = np.atleast_1d(b), np.atleast_1d(a)
    rows = np.moveaxis(x, axis, 0)
    if zi is None:
        return np.moveaxis(filtered(b, a, rows, None), 0, axis)
    start = np.moveaxis(zi, axis, 0)
    y = filtered(b, a, rows, start)
    return np.moveaxis(y, 0, axis), np.moveaxis(left_behind(b, a, rows, y, start), 0, axis)


SECTIONS = fixed(np.array([[0.5, 0.2, 0.1, 1.0, -0.4, 0.3], [1.0, 0.3, 0.2, 1.0, 0.1, 0.2]]))


@expands(signal.sosfilt, shapes=[SECTIONS, (6,)], written=True)
def sosfilt(sos, x, axis=-1, zi=None):
    require(zi is None, "sosfilt with zi= has no rule.", "Call lfilter for each section.")
    y = np.moveaxis(np.asarray(x, dtype=np.result_type(sos, x)), axis, 0)
    for k in range(np.shape(sos)[0]):
        y = filtered(sos[k, :3], sos[k, 3:], y, None)
    return np.moveaxis(y, 0, axis)


def filtered(b, a, x, start):
    """`a[0] y[n] = sum b[k] x[n - k] - sum a[k] y[n - k]`, and the initial state of the filter."""
    n = np.shape(x)[0]
    y = (b[0] / a[0]) * x
    for k in range(1, min(np.size(b), n)):
        y[k:] += (b[k] / a[0]) * x[: n - k]
    if start is not None:
        held = min(np.shape(start)[0], n)
        y[:held] += start[:held]
    for i in range(1, n):
        for k in range(1, min(np.size(a), i + 1)):
            y[i] -= (a[k] / a[0]) * y[i - k]
    return y


def left_behind(b, a, x, y, start):
    """The final state of the filter."""
    n = np.shape(x)[0]
    held = np.zeros_like(start)
    for i in range(np.shape(start)[0]):
        if i + n < np.shape(start)[0]:
            held[i] += start[i + n]
        for k in range(i + 1, min(np.size(b), i + n + 1)):
            held[i] += (b[k] / a[0]) * x[n + i - k]
        for k in range(i + 1, min(np.size(a), i + n + 1)):
            held[i] -= (a[k] / a[0]) * y[n + i - k]
    return held


# ---- trends --------------------------------------------------------------------------------------------------------


@expands(signal.detrend, shapes=[(5,)])
def detrend(data, axis=-1, type="linear", bp=0):
    one_of("type", type, ("linear", "l", "constant", "c"))
    lines = np.moveaxis(data, axis, -1)
    if type == "constant" or type == "c":
        return np.moveaxis(lines - np.mean(lines, axis=-1, keepdims=True), -1, axis)
    require(isinstance(bp, int), "detrend has a rule for one place where the line breaks.", "Cut the array there.")
    if bp == 0:
        return np.moveaxis(without_trend(lines), -1, axis)
    if bp < 0 or bp > np.shape(lines)[-1]:
        raise ValueError("Breakpoints must be less than length of data along given axis.")
    parts = without_trend(lines[..., :bp]), without_trend(lines[..., bp:])
    return np.moveaxis(np.concatenate(parts, axis=-1), -1, axis)


def without_trend(lines):
    n = np.shape(lines)[-1]
    rest = lines - np.mean(lines, axis=-1, keepdims=True)
    place = np.astype(np.arange(n) - 0.5 * (n - 1), lines.dtype)
    slope = np.sum(rest * place, axis=-1, keepdims=True) / np.sum(place * place)
    return rest - slope * place
