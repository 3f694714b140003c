"""Fourier transforms of `numpy.fft`.

A transform is a symmetric matrix, so it is its own transpose; transforms of real signals keep half of the spectrum.
"""

from __future__ import annotations

import numpy as np

from tapegen.rules.helpers import axes_tuple, compile_time, slice_axis
from tapegen.rules.registry import expands, fixed, linear

# ---- one axis ------------------------------------------------------------------------------------------------------


@linear(np.fft.fft, in_="a", shapes=[(5,)], of_complex=True)
def fft(a, n=None, axis=-1, norm=None, *, out_bar):
    return of_size(np.fft.fft(out_bar, axis=axis, norm=norm), a, n, axis)


@linear(np.fft.ifft, in_="a", shapes=[(5,)], of_complex=True)
def ifft(a, n=None, axis=-1, norm=None, *, out_bar):
    return of_size(np.fft.ifft(out_bar, axis=axis, norm=norm), a, n, axis)


@linear(np.fft.rfft, in_="a", shapes=[(5,)], of_complex=True)
def rfft(a, n=None, axis=-1, norm=None, *, out_bar):
    """The half of the transform that is left out has no cotangent."""
    if n is None:
        return np.real(np.fft.fft(out_bar, np.shape(a)[axis], axis, norm))
    return of_size(np.real(np.fft.fft(out_bar, n, axis, norm)), a, n, axis)


@linear(np.fft.irfft, in_="a", shapes=[(4,)], of_complex=True)
def irfft(a, n=None, axis=-1, norm=None, *, out_bar):
    """All but the first coefficient, and the last of an even number, stand for two."""
    size = np.shape(out_bar)[axis]
    a_bar = np.conj(np.fft.rfft(out_bar, axis=axis, norm=opposite(norm)))
    pairs = slice_axis(a_bar, axis, 1, (size + 1) // 2)
    pairs[...] = 2.0 * pairs
    return of_size(a_bar, a, n, axis)


@expands(np.fft.hfft, shapes=[(4,)], of_complex=True)
def hfft(a, n=None, axis=-1, norm=None):
    return np.fft.irfft(np.conj(a), n, axis, opposite(norm))


@expands(np.fft.ihfft, shapes=[(5,)], of_complex=True)
def ihfft(a, n=None, axis=-1, norm=None):
    return np.conj(np.fft.rfft(a, n, axis, opposite(norm)))


@compile_time
def opposite(norm):
    """The normalization of the transform that corresponds to `norm` for the inverse."""
    return {None: "forward", "backward": "forward", "forward": "backward"}.get(norm, norm)


def of_size(x, a, n, axis):
    """`x` truncated or zero-padded to the size of `a`, which was truncated or padded to `n`."""
    if n is None:
        return x
    filled = np.zeros(np.shape(a), dtype=x.dtype)
    count = min(np.shape(a)[axis], np.shape(x)[axis])
    inner = slice_axis(filled, axis, 0, count)
    inner[...] = slice_axis(x, axis, 0, count)
    return filled


# ---- several axes --------------------------------------------------------------------------------------------------


@expands(np.fft.fftn, shapes=[(3, 4)], of_complex=True)
def fftn(a, s=None, axes=None, norm=None):
    for k, axis in enumerate(transformed_axes(axes, s, np.ndim(a))):
        a = np.fft.fft(a, size_along(s, k), axis, norm)
    return a


@expands(np.fft.ifftn, shapes=[(3, 4)], of_complex=True)
def ifftn(a, s=None, axes=None, norm=None):
    for k, axis in enumerate(transformed_axes(axes, s, np.ndim(a))):
        a = np.fft.ifft(a, size_along(s, k), axis, norm)
    return a


@expands(np.fft.rfftn, shapes=[(3, 4)], of_complex=True)
def rfftn(a, s=None, axes=None, norm=None):
    axes = transformed_axes(axes, s, np.ndim(a))
    last = len(axes) - 1
    a = np.fft.rfft(a, size_along(s, last), axes[last], norm)
    for k, axis in enumerate(axes[:last]):
        a = np.fft.fft(a, size_along(s, k), axis, norm)
    return a


@expands(np.fft.irfftn, shapes=[(3, 4)], of_complex=True)
def irfftn(a, s=None, axes=None, norm=None):
    axes = transformed_axes(axes, s, np.ndim(a))
    last = len(axes) - 1
    for k, axis in enumerate(axes[:last]):
        a = np.fft.ifft(a, size_along(s, k), axis, norm)
    return np.fft.irfft(a, size_along(s, last), axes[last], norm)


@expands(np.fft.fft2, shapes=[(3, 4)], of_complex=True)
def fft2(a, s=None, axes=(-2, -1), norm=None):
    return np.fft.fftn(a, s, axes, norm)


@expands(np.fft.ifft2, shapes=[(3, 4)], of_complex=True)
def ifft2(a, s=None, axes=(-2, -1), norm=None):
    return np.fft.ifftn(a, s, axes, norm)


@expands(np.fft.rfft2, shapes=[(3, 4)], of_complex=True)
def rfft2(a, s=None, axes=(-2, -1), norm=None):
    return np.fft.rfftn(a, s, axes, norm)


@expands(np.fft.irfft2, shapes=[(3, 4)], of_complex=True)
def irfft2(a, s=None, axes=(-2, -1), norm=None):
    return np.fft.irfftn(a, s, axes, norm)


def transformed_axes(axes, s, rank):
    """The axes of a transform: all of them, or as many of the last as there are sizes."""
    if axes is None and s is not None:
        return axes_tuple(None, rank)[rank - len(s) :]
    if axes is None:
        return axes_tuple(None, rank)
    return axes


def size_along(s, k):
    """The size to which the k-th axis is truncated or padded; None for its own."""
    if s is None:
        return None
    return s[k]


# ---- frequencies and shifts ----------------------------------------------------------------------------------------


@expands(np.fft.fftfreq, shapes=[fixed(5), fixed(0.7)])
def fftfreq(n, d=1.0):
    k = np.arange(n)
    return np.where(k < (n + 1) // 2, k, k - n) * (1.0 / (n * d))


@expands(np.fft.rfftfreq, shapes=[fixed(5), fixed(0.7)])
def rfftfreq(n, d=1.0):
    return np.arange(n // 2 + 1) * (1.0 / (n * d))


@expands(np.fft.fftshift, shapes=[(3, 4)], of_complex=True)
def fftshift(x, axes=None):
    for k in axes_tuple(axes, np.ndim(x)):
        x = np.roll(x, np.shape(x)[k] // 2, axis=k)
    return x


@expands(np.fft.ifftshift, shapes=[(3, 4)], of_complex=True)
def ifftshift(x, axes=None):
    for k in axes_tuple(axes, np.ndim(x)):
        x = np.roll(x, -(np.shape(x)[k] // 2), axis=k)
    return x
