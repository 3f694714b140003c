"""Fourier transforms: frequencies and shifts; the transforms themselves are complex."""

from __future__ import annotations

import numpy as np

from tapegen.rules.helpers import axes_tuple
from tapegen.rules.registry import expands, fixed, refused

refused(
    *(np.fft.fft, np.fft.ifft, np.fft.fft2, np.fft.ifft2, np.fft.fftn, np.fft.ifftn, np.fft.hfft, np.fft.ihfft),
    *(np.fft.rfft, np.fft.irfft, np.fft.rfft2, np.fft.irfft2, np.fft.rfftn, np.fft.irfftn),
    reason="it goes through complex numbers, which carry no derivative.",
    advice="Multiply by matrices of cosines and sines (np.cos(2.0 * np.pi * np.outer(k, t) / n) @ x).",
)


@expands(np.fft.fftfreq, shapes=[fixed(5), fixed(0.7)])
def fftfreq(n, d=1.0):
    k = np.arange(n)
    return np.where(k < (n + 1) // 2, k, k - n) / (n * d)


@expands(np.fft.rfftfreq, shapes=[fixed(5), fixed(0.7)])
def rfftfreq(n, d=1.0):
    return np.arange(n // 2 + 1) / (n * d)


@expands(np.fft.fftshift, shapes=[(3, 4)])
def fftshift(x, axes=None):
    for k in axes_tuple(axes, np.ndim(x)):
        x = np.roll(x, np.shape(x)[k] // 2, axis=k)
    return x


@expands(np.fft.ifftshift, shapes=[(3, 4)])
def ifftshift(x, axes=None):
    for k in axes_tuple(axes, np.ndim(x)):
        x = np.roll(x, -(np.shape(x)[k] // 2), axis=k)
    return x
