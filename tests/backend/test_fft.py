"""Fourier transforms in compiled code: NumPy's own loops, called without Python."""

import re
import warnings

import numpy as np
import pytest

import tapegen as tg
from tapegen.errors import PerformanceWarning
from tests.oracle import numerical_gradient

SIGNAL = np.sin(np.arange(16.0)) + 0.1 * np.arange(16.0)


@pytest.fixture(autouse=True)
def _all_compiled():
    with warnings.catch_warnings():
        warnings.simplefilter("error", PerformanceWarning)
        yield


def diffused(u, k, steps):
    m = 2.0 * np.pi * np.fft.fftfreq(u.size)
    u = u.copy()
    for _ in range(steps):
        v = np.fft.fft(u) * np.exp(-k * m**2)
        u = 1.0 * np.fft.ifft(v).real
        u[0] = 0.0
        u += 0.01 * u * (1.0 - u)
    return np.sum(u**2)


@pytest.mark.compiled
def test_a_loop_of_transforms_is_compiled():
    f = tg.differentiable(diffused, wrt=("u", "k"))
    value, (u_bar, k_bar) = f.value_and_grad(SIGNAL, 0.3, 5)
    assert value == pytest.approx(diffused(SIGNAL, 0.3, 5), rel=1e-14)
    estimate = numerical_gradient(diffused, (SIGNAL, 0.3, 5))
    np.testing.assert_allclose(u_bar, estimate.value[0,], rtol=1e-8)
    np.testing.assert_allclose(k_bar, estimate.value[1,], rtol=1e-8)


def frequencies(spacing, n):
    return np.fft.fftfreq(n, spacing), np.fft.rfftfreq(n, spacing)


def test_frequencies_are_those_of_numpy_to_the_last_bit():
    """Masks compare them with two thirds of the largest, as `np.abs(k) < k.max() * 2 / 3` does."""
    for n, length in ((8, 20.0), (27, 1.7), (96, 0.9)):
        for found, expected in zip(
            tg.vjp(frequencies, length / n, n, backend="python")[0], frequencies(length / n, n), strict=True
        ):
            np.testing.assert_array_equal(found, expected)


def test_what_is_recorded_has_a_known_size():
    forward = tg.differentiable(diffused, wrt=("u", "k")).inspect(SIGNAL, 0.3, 5).forward
    assert "_tape = np.empty((max(steps, 0), u.shape[0]), np.complex128)" in forward
    assert ".append" not in forward


def in_four_ways(u, half, axis):
    a = np.fft.fft(u, axis=axis, norm="ortho")
    b = np.fft.ifft(a, 7, axis)
    c = np.fft.rfft(u, 5, axis, "forward")
    d = np.fft.irfft(half, 6, axis)
    e = np.fft.irfft(half, axis=axis, norm="backward")
    return a, b, c, d, e, np.fft.rfft(u, axis=axis)


@pytest.mark.compiled
@pytest.mark.parametrize(("real", "complex_", "axis"), [("f8", "c16", 1), ("f4", "c8", -1)])
def test_values_are_those_of_numpy(real, complex_, axis):
    rng = np.random.default_rng(0)
    u = rng.normal(size=(3, 4, 6)).astype(real)[:, :, ::2]
    half = (rng.normal(size=(3, 4, 3)) + 1j * rng.normal(size=(3, 4, 3))).astype(complex_)
    got, want = tg.differentiable(in_four_ways, wrt="u")(u, half, axis), in_four_ways(u, half, axis)
    for mine, expected in zip(got, want, strict=True):
        assert mine.dtype == expected.dtype
        assert mine.shape == expected.shape
        np.testing.assert_allclose(mine, expected, rtol=3e-15 if real == "f8" else 3e-7, atol=0)


@pytest.mark.compiled
@pytest.mark.parametrize("n", [0, -2])
def test_the_error_of_no_points(n):
    @tg.differentiable
    def f(u, n):
        return np.sum(np.abs(np.fft.fft(u, n)) ** 2)

    message = "Invalid number of FFT data points"
    with pytest.raises(ValueError, match=message):
        np.fft.fft(SIGNAL, n)
    with pytest.raises(ValueError, match=message):
        f.value_and_grad(SIGNAL, n)


@pytest.mark.compiled
def test_the_error_of_an_empty_array():
    @tg.differentiable
    def f(u):
        return np.sum(np.fft.rfft(u).real)

    with pytest.raises(ValueError, match=re.escape("Invalid number of FFT data points (0) specified.")):
        f.value_and_grad(np.zeros(0))


def of_matrix(u):
    return np.sum(np.abs(np.fft.fft2(u) * np.arange(5.0)) ** 2)


@pytest.mark.compiled
def test_both_modes_of_two_axes():
    tg.check_grads(of_matrix, np.cos(np.arange(20.0)).reshape(4, 5), modes=("forward", "reverse"))
