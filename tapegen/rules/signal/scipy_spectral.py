"""Spectral estimation (`scipy.signal`): short-time Fourier transforms and averaged periodograms."""

from __future__ import annotations

import numpy as np
from scipy import signal

from tapegen.rules.helpers import compile_time, in_precision_of, one_of, require
from tapegen.rules.registry import expands, fixed, inactive
from tapegen.rules.signal.scipy_signal import detrend as detrended
from tapegen.rules.templates import template

inactive(signal.get_window)

_COSINES: dict[str, tuple[float, ...]] = {
    **dict.fromkeys(("boxcar", "box", "ones", "rect", "rectangular"), (1.0,)),
    **dict.fromkeys(("hann", "han"), (0.5, 0.5)),
    **dict.fromkeys(("hamming", "hamm", "ham"), (0.54, 1.0 - 0.54)),
    **dict.fromkeys(("blackman", "black", "blk"), (0.42, 0.5, 0.08)),
    **dict.fromkeys(("nuttall", "nutl", "nut"), (0.3635819, 0.4891775, 0.1365995, 0.0106411)),
    **dict.fromkeys(("blackmanharris", "blackharr", "bkh"), (0.35875, 0.48829, 0.14128, 0.01168)),
    **dict.fromkeys(("flattop", "flat", "flt"), (0.21557895, 0.41663158, 0.277263158, 0.083578947, 0.006947368)),
}
"""Windows that are sums of cosines, from the middle."""


@compile_time
def cosines_of(window):
    """The cosine terms of a window by its name; other windows have no template."""
    known = isinstance(window, str) and window in _COSINES
    require(known, "of windows, sums of cosines alone have one.")
    return _COSINES[window]


@template(signal.get_window)
def get_window_text(window, Nx, fftbins=True):
    if Nx < 1:
        raise ValueError("scipy.signal.get_window: the size of a window is positive")
    angle = np.linspace(-np.pi, np.pi, Nx + 1)[:Nx] if fftbins else np.linspace(-np.pi, np.pi, Nx)
    whole = np.zeros(Nx)
    for k, weight in enumerate(cosines_of(window)):
        whole = whole + weight * np.cos(k * angle)
    return np.where(Nx == 1, 1.0, whole)


# ---- short-time transforms -----------------------------------------------------------------------------------------


@expands(signal.stft, shapes=[(20,), fixed(2.0), fixed("hann"), fixed(6)], of_complex=True)
def stft(
    x, fs=1.0, window="hann", nperseg=256, noverlap=None, nfft=None, detrend=False,
    return_onesided=True, boundary="zeros", padded=True, axis=-1, scaling="spectrum",
):  # fmt: skip
    one_of("scaling", scaling, ("spectrum", "psd"))
    line = np.moveaxis(x, axis, -1)
    size = window_size(window, nperseg, np.shape(line)[-1])
    own = own_window(window, size, x)
    step = size - (size // 2 if noverlap is None else noverlap)
    points = size if nfft is None else nfft
    if boundary is not None:
        line = extended(line, size // 2, boundary)
    if padded:
        line = with_zeros(line, np.mod(-np.mod(np.shape(line)[-1] - size, -step), size))
    onesided = return_onesided and not np.iscomplexobj(x)
    spectra = windowed_spectra(line, own, size, step, points, detrend, onesided)
    spectra = spectra * np.sqrt(1.0 / (np.square(np.sum(own)) if scaling == "spectrum" else fs * np.sum(own * own)))
    time = (0.5 * size + np.arange(np.shape(spectra)[-2]) * step) / fs
    if boundary is not None:
        time = time - 0.5 * size / fs
    return frequencies(points, fs, onesided), time, np.moveaxis(spectra, -1, axis if axis >= 0 else axis - 1)


@expands(signal.istft, shapes=[(4, 5)], of_complex=True)
def istft(
    Zxx, fs=1.0, window="hann", nperseg=None, noverlap=None, nfft=None, input_onesided=True,
    boundary=True, time_axis=-1, freq_axis=-2, scaling="spectrum",
):  # fmt: skip
    """The sum of the windows where they overlap, divided by that of the squares of the window."""
    one_of("scaling", scaling, ("spectrum", "psd"))
    spectra = np.moveaxis(Zxx, (freq_axis, time_axis), (-1, -2))
    usual = 2 * (np.shape(spectra)[-1] - 1) if input_onesided else np.shape(spectra)[-1]
    size = usual if nperseg is None else nperseg
    points = usual
    if nfft is not None:
        points = nfft
    elif input_onesided and nperseg is not None:
        points = usual + max(0, 1 - abs(nperseg - usual - 1))  # an odd window
    step = size - (size // 2 if noverlap is None else noverlap)
    if input_onesided:
        parts = np.fft.irfft(spectra + 0j, points)[..., :size]
    else:
        parts = np.fft.ifft(spectra, points)[..., :size]
    own = own_window(window, size, parts)
    scale = np.sum(own) if scaling == "spectrum" else np.sqrt(fs * np.sum(own * own))
    parts = parts * (own * scale)
    count = np.shape(parts)[-2]
    x = np.zeros(np.shape(parts)[:-2] + (size + (count - 1) * step,), dtype=parts.dtype)
    weight = np.zeros(size + (count - 1) * step, dtype=own.dtype)
    for k in range(count):
        x[..., k * step : k * step + size] += parts[..., k, :]
        weight[k * step : k * step + size] += own * own
    if boundary:
        x = x[..., size // 2 : -(size // 2)]
        weight = weight[size // 2 : -(size // 2)]
    x = x / np.where(np.abs(weight) > 1e-10, weight, 1.0)
    x = np.moveaxis(x, -1, place_of_time(time_axis, freq_axis, np.ndim(Zxx)))
    return np.arange(np.shape(x)[0]) / fs, x


@compile_time
def place_of_time(time_axis, freq_axis, rank):
    """The position of the time axis after removal of the frequency axis."""
    time, frequency = time_axis % rank, freq_axis % rank
    return time - (frequency < time)


# ---- averages of periodograms --------------------------------------------------------------------------------------


@expands(signal.welch, shapes=[(20,), fixed(2.0), fixed("hann"), fixed(6)], of_complex=True)
def welch(
    x, fs=1.0, window="hann", nperseg=None, noverlap=None, nfft=None, detrend="constant",
    return_onesided=True, scaling="density", axis=-1, average="mean",
):  # fmt: skip
    onesided = return_onesided and not np.iscomplexobj(x)
    line = np.moveaxis(x, axis, -1)
    options = (window, nperseg, noverlap, nfft, detrend)
    spectra, own, points = spectra_of(line, np.shape(line)[-1], options, onesided, x)
    power = np.square(np.real(spectra)) + np.square(np.imag(spectra))
    power = averaged(power * density(own, fs, points, scaling, onesided), average)
    return frequencies(points, fs, onesided), np.moveaxis(power, -1, axis)


@expands(signal.csd, shapes=[(20,), (20,), fixed(2.0), fixed("hann"), fixed(6)], of_complex=True)
def csd(
    x, y, fs=1.0, window="hann", nperseg=None, noverlap=None, nfft=None, detrend="constant",
    return_onesided=True, scaling="density", axis=-1, average="mean",
):  # fmt: skip
    """The shorter signal is filled up with zeros."""
    onesided = return_onesided and not np.iscomplexobj(x)
    first, second = np.moveaxis(x, axis, -1), np.moveaxis(y, axis, -1)
    size = max(np.shape(first)[-1], np.shape(second)[-1])
    first = with_zeros(first, size - np.shape(first)[-1])
    second = with_zeros(second, size - np.shape(second)[-1])
    options = (window, nperseg, noverlap, nfft, detrend)
    spectra, own, points = spectra_of(first, size, options, onesided, x)
    others, _, _ = spectra_of(second, size, options, onesided, x)
    power = np.conj(spectra) * others * density(own, fs, points, scaling, onesided)
    if average == "median":
        power = averaged(np.real(power), average) + 1j * averaged(np.imag(power), average)
    else:
        power = averaged(power, average)
    return frequencies(points, fs, onesided), np.moveaxis(power, -1, axis)


def spectra_of(line, length, options, onesided, like):
    """Spectra of the windows of a signal, the window, and how many points a spectrum has."""
    window, nperseg, noverlap, nfft, detrend = options
    size = window_size(window, nperseg, length)
    own = own_window(window, size, like)
    step = size - (size // 2 if noverlap is None else noverlap)
    points = size if nfft is None else nfft
    return windowed_spectra(line, np.conj(own), size, step, points, detrend, onesided), own, points


def density(own, fs, points, scaling, onesided):
    """The scale of squared spectra; in one-sided ones all count twice except the zero and Nyquist frequencies."""
    one_of("scaling", scaling, ("density", "spectrum"))
    if scaling == "density":
        scale = 1.0 / (np.abs(fs) * np.sum(np.real(np.conj(own) * own)))
    else:
        scale = 1.0 / np.square(np.abs(np.sum(own)))
    if not onesided:
        return scale
    k = np.arange(points // 2 + 1)
    return scale * np.astype(np.where((k == 0) | (2 * k == points), 1.0, 2.0), np.real(own).dtype)


def averaged(power, average):
    """The average over windows; a median is divided by its bias for noise."""
    one_of("average", average, ("mean", "median"))
    if average == "mean":
        return np.mean(power, axis=-2)
    k = 2.0 * np.arange(1, (np.shape(power)[-2] - 1) // 2 + 1)
    return np.median(power, axis=-2) / in_precision_of(1.0 + np.sum(1.0 / (k + 1.0) - 1.0 / k), power)


# ---- common helpers ------------------------------------------------------------------------------------------------


def window_size(window, nperseg, length):
    """The window length: a window given by name is at most as long as the signal."""
    if isinstance(window, (str, tuple)):
        return min(256 if nperseg is None else nperseg, length)
    return np.size(window)


def own_window(window, size, x):
    """The window, in the precision of the signal."""
    if isinstance(window, (str, tuple)):
        return np.astype(signal.get_window(window, size), np.result_type(np.real(x), np.float32))
    return window


def extended(line, n, boundary):
    """A signal with `n` more elements at each end."""
    one_of("boundary", boundary, ("even", "odd", "constant", "zeros"))
    size = np.shape(line)[-1]
    if boundary == "zeros":
        zeros = np.zeros(np.shape(line)[:-1] + (n,), dtype=line.dtype)
        return np.concatenate((zeros, line, zeros), axis=-1)
    ends = line[..., :1], line[..., size - 1 :]
    if boundary == "constant":
        ones = np.ones((n,), dtype=line.dtype)
        return np.concatenate((ends[0] * ones, line, ends[1] * ones), axis=-1)
    before = np.flip(line[..., 1 : n + 1], -1)
    after = np.flip(line[..., size - 1 - n : size - 1], -1)
    if boundary == "odd":
        before, after = 2.0 * ends[0] - before, 2.0 * ends[1] - after
    return np.concatenate((before, line, after), axis=-1)


def with_zeros(line, n):
    """A signal with `n` zeros at its end."""
    return np.concatenate((line, np.zeros(np.shape(line)[:-1] + (n,), dtype=line.dtype)), axis=-1)


def windowed_spectra(line, own, size, step, points, detrend, onesided):
    """The spectra of a signal, window by window, along the last axis."""
    require(detrend is False or isinstance(detrend, str), "a function for detrend= has no rule.", "Detrend before.")
    count = max(0, (np.shape(line)[-1] - size) // step + 1)
    parts = np.take(line, np.expand_dims(step * np.arange(count), 1) + np.arange(size), axis=-1)
    if detrend is not False:
        parts = detrended(parts, -1, detrend)
    if onesided:
        return np.fft.rfft(parts * own, points)
    return np.fft.fft(parts * own, points)


def frequencies(points, fs, onesided):
    """The frequencies of the spectra."""
    if onesided:
        return np.fft.rfftfreq(points, 1.0 / fs)
    return np.fft.fftfreq(points, 1.0 / fs)
