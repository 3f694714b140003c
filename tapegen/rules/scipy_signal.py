"""Convolutions of `scipy.signal` along one axis; what else it does to data is refused by name."""

from __future__ import annotations

import numpy as np
from scipy import signal

from tapegen.rules.helpers import require
from tapegen.rules.registry import expands, refused

refused(
    signal.lfilter,
    signal.sosfilt,
    signal.filtfilt,
    reason="recursive filters have no rule.",
    advice="Write the recurrence as a loop: loops are differentiated, and compiled.",
)
refused(
    signal.convolve2d,
    signal.correlate2d,
    reason="convolutions along two axes have no rule.",
    advice="Write them as loops or as a sum of shifted slices.",
)
refused(
    signal.stft,
    signal.istft,
    signal.welch,
    signal.csd,
    reason="its spectrum has no rule here.",
    advice="Cut the windows yourself and use np.fft.",
)


@expands(signal.convolve, signal.fftconvolve, signal.oaconvolve, shapes=[(5,), (3,)])
def convolve(in1, in2, mode="full"):
    require(np.ndim(in1) == 1, "scipy.signal.convolve has a rule for vectors.", "Convolve row by row.")
    require(mode == "full", "scipy.signal.convolve has a rule for mode='full'.", "Cut the part out of the full result.")
    return np.convolve(in1, in2)


@expands(signal.correlate, shapes=[(5,), (3,)])
def correlate(in1, in2, mode="full"):
    require(np.ndim(in1) == 1, "scipy.signal.correlate has a rule for vectors.", "Correlate row by row.")
    require(
        mode == "full", "scipy.signal.correlate has a rule for mode='full'.", "Cut the part out of the full result."
    )
    return np.convolve(in1, in2[::-1])


@expands(signal.detrend, shapes=[(5,)])
def detrend(data, axis=-1, type="linear"):
    lines = np.moveaxis(data, axis, -1)
    rest = lines - np.mean(lines, axis=-1, keepdims=True)
    if type == "linear":
        n = np.shape(lines)[-1]
        place = np.arange(n, dtype=lines.dtype) - 0.5 * (n - 1)
        slope = np.sum(rest * place, axis=-1, keepdims=True) / np.sum(place * place)
        rest = rest - slope * place
    return np.moveaxis(rest, -1, axis)
