"""Cosine transforms (`scipy.fft`): linear, so that the derivative backwards is the transpose."""

from __future__ import annotations

import numpy as np
from scipy import fft

from tapegen.rules.helpers import require, slice_axis, trailing_axes
from tapegen.rules.registry import linear, refused

refused(
    fft.dctn,
    fft.idctn,
    reason="transforms along several axes have no rule.",
    advice="Call dct or idct along one axis after the other.",
)


def covered(type, n, norm):
    require(n is None, "a cosine transform with n= has no rule.", "Pad or cut the array first.")
    require(norm is None or norm == "ortho", "a cosine transform has a rule for norm=None or 'ortho'.", "Scale it.")
    require(type == 2 or type == 3 or type == 4, "a cosine transform of type 1 has no rule.", "Use type 2.")


def transposed(bar, type, axis):
    """The transpose of the transform that is not normalised."""
    if type == 2:
        return fft.dct(bar, 3, axis=axis) + slice_axis(bar, axis, 0, 1)
    if type == 4:
        return fft.dct(bar, 4, axis=axis)
    place = np.expand_dims(np.arange(np.shape(bar)[axis]), trailing_axes(axis, np.ndim(bar)))
    whole = fft.dct(bar, 2, axis=axis)
    return whole - 0.5 * np.where(place == 0, whole, 0.0)


@linear(fft.dct, in_="x", shapes=[(3, 4)])
def dct(x, type=2, n=None, axis=-1, norm=None, *, out_bar):
    covered(type, n, norm)
    if norm == "ortho":
        return fft.idct(out_bar, type, axis=axis, norm="ortho")
    return transposed(out_bar, type, axis)


@linear(fft.idct, in_="x", shapes=[(3, 4)])
def idct(x, type=2, n=None, axis=-1, norm=None, *, out_bar):
    """The inverse of type 2 is of type 3, and the other way round."""
    covered(type, n, norm)
    if norm == "ortho":
        return fft.dct(out_bar, type, axis=axis, norm="ortho")
    other = 4 if type == 4 else 5 - type
    return transposed(out_bar, other, axis) / (2.0 * np.shape(out_bar)[axis])
