"""Windows of spectra by their names, in compiled code."""

import warnings

import numpy as np
import pytest
from scipy import signal

import tapegen as tg
from tapegen.errors import PerformanceWarning
from tapegen.rules.signal.scipy_spectral import get_window_text
from tests.oracle import numerical_gradient

NAMES = ("boxcar", "hann", "hamming", "blackman", "nuttall", "blackmanharris", "flattop")
SHORT = ("rect", "han", "ham", "black", "nut", "bkh", "flat")
SIGNAL = np.sin(np.arange(30.0)) + 0.1 * np.cos(0.3 * np.arange(30.0) ** 2)


@pytest.mark.parametrize("name", NAMES + SHORT)
def test_windows_are_those_of_scipy(name):
    for size in (1, 2, 3, 6, 7, 256):
        for periodic in (True, False):
            expected = signal.get_window(name, size, periodic)
            np.testing.assert_allclose(get_window_text(name, size, periodic), expected, rtol=0, atol=1e-15)


def windowed(x, sizes):
    total = 0.0
    for size in sizes:
        total = total + np.sum(x[:size] ** 3 * signal.get_window("hann", size))
        total = total + np.sum(x[:size] ** 2 * signal.get_window("flattop", size, False))
    return total


def spectra(x):
    f, t, z = signal.stft(x, 2.0, "hann", 8)
    _, again = signal.istft(z * (1.0 + f[:, None]), 2.0, "hann", 8)
    _, power = signal.welch(x, 2.0, "blackman", 8)
    _, cross = signal.csd(x, x[::-1] ** 2, 2.0, "hamming", 8)
    return np.sum(again**3) + np.sum(power**2) + np.sum(np.abs(cross) ** 2) + np.sum(t)


@pytest.mark.compiled
def test_spectra_are_compiled():
    with warnings.catch_warnings():
        warnings.simplefilter("error", PerformanceWarning)
        value, gradient = tg.differentiable(spectra).value_and_grad(SIGNAL)
        by_size = tg.differentiable(windowed, wrt="x").grad(SIGNAL, (1, 2, 9))
    assert value == pytest.approx(spectra(SIGNAL), rel=1e-13)
    np.testing.assert_allclose(gradient, numerical_gradient(spectra, (SIGNAL,)).value[0,], rtol=1e-8)
    expected = numerical_gradient(lambda x: windowed(x, (1, 2, 9)), (SIGNAL,)).value[0,]
    np.testing.assert_allclose(by_size, expected, rtol=1e-8, atol=1e-9)


def test_other_windows_run_as_python():
    def power(x):
        return np.sum(signal.welch(x, 2.0, ("kaiser", 8.0), 8)[1])

    with pytest.warns(PerformanceWarning, match=r"scipy\.signal\.get_window has no compiled form"):
        gradient = tg.differentiable(power).grad(SIGNAL)
    np.testing.assert_allclose(gradient, numerical_gradient(power, (SIGNAL,)).value[0,], rtol=1e-8)


@pytest.mark.compiled
def test_a_window_without_a_size_is_refused():
    def of_size(x, n):
        return np.sum(x) * np.sum(signal.get_window("hann", n))

    for one in (of_size, tg.differentiable(of_size, wrt="x")):
        with pytest.raises(ValueError, match=r"not a positive integer|non-negative"):
            one(SIGNAL, -1)
