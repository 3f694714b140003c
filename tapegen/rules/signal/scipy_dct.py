"""Cosine and sine transforms (`scipy.fft`): linear, so that the pullback is the transpose."""

from __future__ import annotations

import numpy as np
from scipy import fft

from tapegen.rules.helpers import axes_tuple, compile_time, one_of, require, slice_axis, trailing_axes
from tapegen.rules.registry import linear

# ---- along one axis ------------------------------------------------------------------------------------------------


@linear(fft.dct, in_="x", shapes=[(3, 4)])
def dct(x, type=2, n=None, axis=-1, norm=None, *, out_bar):
    return cosine_bar(out_bar, x, type, n, axis, norm)


@linear(fft.idct, in_="x", shapes=[(3, 4)])
def idct(x, type=2, n=None, axis=-1, norm=None, *, out_bar):
    return cosine_bar(out_bar, x, inverse_type(type), n, axis, inverse_norm(norm))


@linear(fft.dst, in_="x", shapes=[(3, 4)])
def dst(x, type=2, n=None, axis=-1, norm=None, *, out_bar):
    return sine_bar(out_bar, x, type, n, axis, norm)


@linear(fft.idst, in_="x", shapes=[(3, 4)])
def idst(x, type=2, n=None, axis=-1, norm=None, *, out_bar):
    return sine_bar(out_bar, x, inverse_type(type), n, axis, inverse_norm(norm))


@compile_time
def inverse_type(type):
    """The inverse of type 2 is of type 3, and the other way round."""
    return {2: 3, 3: 2}.get(type, type)


@compile_time
def inverse_norm(norm):
    """An inverse is divided by the number of points where the transform is not."""
    return {None: "forward", "backward": "forward", "forward": "backward"}.get(norm, norm)


def cosine_bar(bar, x, type, n, axis, norm):
    """The transpose of `dct`; without a norm, type 1 has half the weight at both ends and type 3 at the first."""
    one_of("norm", norm, (None, "backward", "ortho", "forward"))
    one_of("type", type, (1, 2, 3, 4))
    if norm == "ortho":
        return restored(fft.idct(bar, type, axis=axis, norm="ortho"), x, n, axis)
    if type == 1:
        bar = ends_times(fft.dct(ends_times(bar, axis, 2.0, 2.0), 1, axis=axis), axis, 0.5, 0.5)
    elif type == 2:
        bar = fft.dct(ends_times(bar, axis, 2.0, 1.0), 3, axis=axis)
    elif type == 3:
        bar = ends_times(fft.dct(bar, 2, axis=axis), axis, 0.5, 1.0)
    else:
        bar = fft.dct(bar, 4, axis=axis)
    if norm == "forward":
        bar = bar / (2 * np.shape(bar)[axis] - (2 if type == 1 else 0))
    return restored(bar, x, n, axis)


def sine_bar(bar, x, type, n, axis, norm):
    """The transpose of `dst`; without a norm, type 3 has half the weight at the last point."""
    one_of("norm", norm, (None, "backward", "ortho", "forward"))
    one_of("type", type, (1, 2, 3, 4))
    if norm == "ortho":
        return restored(fft.idst(bar, type, axis=axis, norm="ortho"), x, n, axis)
    if type == 2:
        bar = fft.dst(ends_times(bar, axis, 1.0, 2.0), 3, axis=axis)
    elif type == 3:
        bar = ends_times(fft.dst(bar, 2, axis=axis), axis, 1.0, 0.5)
    else:
        bar = fft.dst(bar, type, axis=axis)
    if norm == "forward":
        bar = bar / (2 * np.shape(bar)[axis] + (2 if type == 1 else 0))
    return restored(bar, x, n, axis)


def ends_times(x, axis, first, last):
    """An array whose first and last elements along an axis are scaled."""
    n = np.shape(x)[axis]
    place = np.expand_dims(np.arange(n), trailing_axes(axis, np.ndim(x)))
    if first != 1.0:
        x = np.where(place == 0, first * x, x)
    if last != 1.0:
        x = np.where(place == n - 1, last * x, x)
    return x


def restored(bar, x, n, axis):
    """The cotangent of an array that was truncated or zero-padded to n points."""
    if n is None:
        return bar
    whole = np.zeros_like(x)
    kept = slice_axis(whole, axis, None, n)
    kept += slice_axis(bar, axis, None, np.shape(x)[axis])
    return whole


# ---- along several axes --------------------------------------------------------------------------------------------


@linear(fft.dctn, in_="x", shapes=[(3, 4)])
def dctn(x, type=2, s=None, axes=None, norm=None, *, out_bar):
    require(s is None, "transforms along several axes have no rule with s=.", "Pad or cut the array first.")
    for axis in axes_tuple(axes, np.ndim(x)):
        out_bar = cosine_bar(out_bar, x, type, None, axis, norm)
    return out_bar


@linear(fft.idctn, in_="x", shapes=[(3, 4)])
def idctn(x, type=2, s=None, axes=None, norm=None, *, out_bar):
    require(s is None, "transforms along several axes have no rule with s=.", "Pad or cut the array first.")
    for axis in axes_tuple(axes, np.ndim(x)):
        out_bar = cosine_bar(out_bar, x, inverse_type(type), None, axis, inverse_norm(norm))
    return out_bar


@linear(fft.dstn, in_="x", shapes=[(3, 4)])
def dstn(x, type=2, s=None, axes=None, norm=None, *, out_bar):
    require(s is None, "transforms along several axes have no rule with s=.", "Pad or cut the array first.")
    for axis in axes_tuple(axes, np.ndim(x)):
        out_bar = sine_bar(out_bar, x, type, None, axis, norm)
    return out_bar


@linear(fft.idstn, in_="x", shapes=[(3, 4)])
def idstn(x, type=2, s=None, axes=None, norm=None, *, out_bar):
    require(s is None, "transforms along several axes have no rule with s=.", "Pad or cut the array first.")
    for axis in axes_tuple(axes, np.ndim(x)):
        out_bar = sine_bar(out_bar, x, inverse_type(type), None, axis, inverse_norm(norm))
    return out_bar
