"""Templates of cosine and sine transforms (`scipy.fft`) for compiled code: Fourier transforms of twice the length.

With w = exp(-i pi / 2N) the sum over n of x[n] cos(pi k (2n + 1) / 2N) is the real part of w**k times the k-th of 2N
points of the Fourier transform of x; the other types follow in the same way, sines by the imaginary part.
"""

from __future__ import annotations

import numpy as np
from scipy import fft

from tapegen.rules.helpers import axes_tuple, one_of
from tapegen.rules.signal.scipy_dct import ends_times, inverse_norm, inverse_type
from tapegen.rules.templates import template


@template(fft.dct)
def dct_text(x, type=2, n=None, axis=-1, norm=None):
    return np.moveaxis(cosines(with_points(x, n, axis), type, norm), -1, axis)


@template(fft.idct)
def idct_text(x, type=2, n=None, axis=-1, norm=None):
    return np.moveaxis(cosines(with_points(x, n, axis), inverse_type(type), inverse_norm(norm)), -1, axis)


@template(fft.dst)
def dst_text(x, type=2, n=None, axis=-1, norm=None):
    return np.moveaxis(sines(with_points(x, n, axis), type, norm), -1, axis)


@template(fft.idst)
def idst_text(x, type=2, n=None, axis=-1, norm=None):
    return np.moveaxis(sines(with_points(x, n, axis), inverse_type(type), inverse_norm(norm)), -1, axis)


@template(fft.dctn)
def dctn_text(x, type=2, s=None, axes=None, norm=None):
    for axis in axes_tuple(axes, np.ndim(x)):
        x = dct_text(x, type, None, axis, norm)
    return x


@template(fft.idctn)
def idctn_text(x, type=2, s=None, axes=None, norm=None):
    for axis in axes_tuple(axes, np.ndim(x)):
        x = idct_text(x, type, None, axis, norm)
    return x


@template(fft.dstn)
def dstn_text(x, type=2, s=None, axes=None, norm=None):
    for axis in axes_tuple(axes, np.ndim(x)):
        x = dst_text(x, type, None, axis, norm)
    return x


@template(fft.idstn)
def idstn_text(x, type=2, s=None, axes=None, norm=None):
    for axis in axes_tuple(axes, np.ndim(x)):
        x = idst_text(x, type, None, axis, norm)
    return x


def with_points(x, n, axis):
    """The floats of an array with the axis last, truncated or zero-padded to n points."""
    line = 1.0 * np.moveaxis(x, axis, -1)
    if n is None:
        return line
    filled = np.zeros(np.shape(line)[:-1] + (n,), dtype=line.dtype)
    count = min(np.shape(line)[-1], n)
    filled[..., :count] = line[..., :count]
    return filled


def cosines(x, type, norm):
    """`dct` along the last axis."""
    one_of("norm", norm, (None, "backward", "ortho", "forward"))
    one_of("type", type, (1, 2, 3, 4))
    n = np.shape(x)[-1]
    root = 2.0**0.5
    if norm == "ortho" and type == 1:
        x = ends_times(x, -1, root, root)
    if norm == "ortho" and type == 3:
        x = ends_times(x, -1, root, 1.0)
    if type == 1:
        y = np.real(np.fft.rfft(np.concatenate((x, np.flip(x[..., 1:-1], axis=-1)), axis=-1)))
    elif type == 2:
        y = 2.0 * np.real(phases(n, 2, 0) * np.fft.rfft(x, 2 * n)[..., :n])
    elif type == 3:
        y = np.real(np.fft.fft(ends_times(2.0 * x, -1, 0.5, 1.0) * phases(n, 2, 0), 2 * n)[..., :n])
    else:
        y = 2.0 * np.real(phases(n, 2, 1) * np.fft.fft(x * phases(n, 2, 0), 2 * n)[..., :n])
    if norm == "ortho" and type == 1:
        y = ends_times(y, -1, 1.0 / root, 1.0 / root)
    if norm == "ortho" and type == 2:
        y = ends_times(y, -1, 1.0 / root, 1.0)
    return scaled(y, norm, 2 * n - 2 if type == 1 else 2 * n, x)


def sines(x, type, norm):
    """`dst` along the last axis."""
    one_of("norm", norm, (None, "backward", "ortho", "forward"))
    one_of("type", type, (1, 2, 3, 4))
    n = np.shape(x)[-1]
    root = 2.0**0.5
    if norm == "ortho" and type == 3:
        x = ends_times(x, -1, 1.0, root)
    if type == 1:
        zero = 0.0 * x[..., :1]
        y = -np.imag(np.fft.rfft(np.concatenate((zero, x, zero, -np.flip(x, axis=-1)), axis=-1))[..., 1 : n + 1])
    elif type == 2:
        y = -2.0 * np.imag(phases(n, 2, 2) * np.fft.rfft(x, 2 * n)[..., 1:])
    elif type == 3:
        whole = np.fft.fft(ends_times(2.0 * x, -1, 1.0, 0.5) * phases(n, 2, 0), 2 * n)[..., :n]
        y = -np.imag(phases(n, 4, 2) * whole)
    else:
        y = -2.0 * np.imag(phases(n, 2, 1) * np.fft.fft(x * phases(n, 2, 0), 2 * n)[..., :n])
    if norm == "ortho" and type == 2:
        y = ends_times(y, -1, 1.0, 1.0 / root)
    return scaled(y, norm, 2 * n + 2 if type == 1 else 2 * n, x)


def phases(n, step, first):
    """exp(-i pi (step k + first) / 4n) for the k-th point."""
    angle = (np.pi / (4 * n)) * (step * np.arange(n) + first)
    return np.cos(angle) - 1j * np.sin(angle)


def scaled(y, norm, points, x):
    """A transform normalized by `norm`, in the precision of x."""
    if norm == "forward":
        y = y / points
    elif norm == "ortho":
        y = y / np.sqrt(points)
    return np.astype(y, x.dtype)
