"""Fourier transforms of `scipy.fft`: derivatives as in `fft`, values computed by scipy."""

from __future__ import annotations

import numpy as np
from scipy import fft as own

from tapegen.rules.helpers import slice_axis
from tapegen.rules.registry import expands, fixed, linear
from tapegen.rules.signal.fft import of_size, opposite, size_along, transformed_axes
from tapegen.rules.templates import template

# ---- one axis ------------------------------------------------------------------------------------------------------


@linear(own.fft, in_="x", shapes=[(5,)], of_complex=True)
def fft(x, n=None, axis=-1, norm=None, *, out_bar):
    return of_size(own.fft(out_bar, axis=axis, norm=norm), x, n, axis)


@linear(own.ifft, in_="x", shapes=[(5,)], of_complex=True)
def ifft(x, n=None, axis=-1, norm=None, *, out_bar):
    return of_size(own.ifft(out_bar, axis=axis, norm=norm), x, n, axis)


@linear(own.rfft, in_="x", shapes=[(5,)], of_complex=True)
def rfft(x, n=None, axis=-1, norm=None, *, out_bar):
    """The half of the transform that is left out has no cotangent."""
    if n is None:
        return np.real(own.fft(out_bar, np.shape(x)[axis], axis, norm))
    return of_size(np.real(own.fft(out_bar, n, axis, norm)), x, n, axis)


@linear(own.irfft, in_="x", shapes=[(4,)], of_complex=True)
def irfft(x, n=None, axis=-1, norm=None, *, out_bar):
    """All but the first coefficient, and the last of an even number, stand for two."""
    size = np.shape(out_bar)[axis]
    x_bar = np.conj(own.rfft(out_bar, axis=axis, norm=opposite(norm)))
    pairs = slice_axis(x_bar, axis, 1, (size + 1) // 2)
    pairs[...] = 2.0 * pairs
    return of_size(x_bar, x, n, axis)


@expands(own.hfft, shapes=[(4,)], of_complex=True)
def hfft(x, n=None, axis=-1, norm=None):
    return own.irfft(np.conj(x), n, axis, opposite(norm))


@expands(own.ihfft, shapes=[(5,)], of_complex=True)
def ihfft(x, n=None, axis=-1, norm=None):
    return np.conj(own.rfft(x, n, axis, opposite(norm)))


# ---- several axes --------------------------------------------------------------------------------------------------


def in_tuple(value):
    """Extents or axes, of which one may be given by itself."""
    return (value,) if isinstance(value, int) else value


@expands(own.fftn, shapes=[(3, 4)], of_complex=True)
def fftn(x, s=None, axes=None, norm=None):
    s, axes = in_tuple(s), in_tuple(axes)
    for k, axis in enumerate(transformed_axes(axes, s, np.ndim(x))):
        x = own.fft(x, size_along(s, k), axis, norm)
    return x


@expands(own.ifftn, shapes=[(3, 4)], of_complex=True)
def ifftn(x, s=None, axes=None, norm=None):
    s, axes = in_tuple(s), in_tuple(axes)
    for k, axis in enumerate(transformed_axes(axes, s, np.ndim(x))):
        x = own.ifft(x, size_along(s, k), axis, norm)
    return x


@expands(own.rfftn, shapes=[(3, 4)], of_complex=True)
def rfftn(x, s=None, axes=None, norm=None):
    s, axes = in_tuple(s), in_tuple(axes)
    axes = transformed_axes(axes, s, np.ndim(x))
    last = len(axes) - 1
    x = own.rfft(x, size_along(s, last), axes[last], norm)
    for k, axis in enumerate(axes[:last]):
        x = own.fft(x, size_along(s, k), axis, norm)
    return x


@expands(own.irfftn, shapes=[(3, 4)], of_complex=True)
def irfftn(x, s=None, axes=None, norm=None):
    """Unlike `irfft`, and unlike NumPy, scipy makes one number of one coefficient."""
    s, axes = in_tuple(s), in_tuple(axes)
    axes = transformed_axes(axes, s, np.ndim(x))
    last = len(axes) - 1
    size = max(2 * (np.shape(x)[axes[last]] - 1), 1) if s is None else s[last]
    for k, axis in enumerate(axes[:last]):
        x = own.ifft(x, size_along(s, k), axis, norm)
    return own.irfft(x, size, axes[last], norm)


@expands(own.fft2, shapes=[(3, 4)], of_complex=True)
def fft2(x, s=None, axes=(-2, -1), norm=None):
    return own.fftn(x, s, axes, norm)


@expands(own.ifft2, shapes=[(3, 4)], of_complex=True)
def ifft2(x, s=None, axes=(-2, -1), norm=None):
    return own.ifftn(x, s, axes, norm)


@expands(own.rfft2, shapes=[(3, 4)], of_complex=True)
def rfft2(x, s=None, axes=(-2, -1), norm=None):
    return own.rfftn(x, s, axes, norm)


@expands(own.irfft2, shapes=[(3, 4)], of_complex=True)
def irfft2(x, s=None, axes=(-2, -1), norm=None):
    return own.irfftn(x, s, axes, norm)


# ---- frequencies and shifts ----------------------------------------------------------------------------------------


@expands(own.fftshift, shapes=[(5,)], of_complex=True)
def fftshift(x, axes=None):
    return np.fft.fftshift(x, axes)


@expands(own.ifftshift, shapes=[(5,)], of_complex=True)
def ifftshift(x, axes=None):
    return np.fft.ifftshift(x, axes)


@expands(own.fftfreq, shapes=[fixed(5), fixed(0.7)])
def fftfreq(n, d=1.0):
    return np.fft.fftfreq(n, d)


@expands(own.rfftfreq, shapes=[fixed(5), fixed(0.7)])
def rfftfreq(n, d=1.0):
    return np.fft.rfftfreq(n, d)


# ---- compiled ------------------------------------------------------------------------------------------------------


@template(own.fft)
def fft_text(x, n=None, axis=-1, norm=None):
    return np.fft.fft(x, n, axis, norm)


@template(own.ifft)
def ifft_text(x, n=None, axis=-1, norm=None):
    return np.fft.ifft(x, n, axis, norm)


@template(own.rfft)
def rfft_text(x, n=None, axis=-1, norm=None):
    return np.fft.rfft(x, n, axis, norm)


@template(own.irfft)
def irfft_text(x, n=None, axis=-1, norm=None):
    return np.fft.irfft(x, n, axis, norm)
