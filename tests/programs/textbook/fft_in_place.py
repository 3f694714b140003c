"""Recursive FFT of any power of two, in place on real and imaginary parts, through views of even and odd entries."""
import math

import numpy as np


def fft(re, im):
    n = len(re)
    if n == 1:
        return
    even_re, even_im = re[::2].copy(), im[::2].copy()
    odd_re, odd_im = re[1::2].copy(), im[1::2].copy()
    fft(even_re, even_im)
    fft(odd_re, odd_im)
    half = n // 2
    for k in range(half):
        c, s = math.cos(2.0 * math.pi * k / n), -math.sin(2.0 * math.pi * k / n)
        tr = c * odd_re[k] - s * odd_im[k]
        ti = c * odd_im[k] + s * odd_re[k]
        re[k], im[k] = even_re[k] + tr, even_im[k] + ti
        re[k + half], im[k + half] = even_re[k] - tr, even_im[k] - ti


def haar(x):
    """The same shape of recursion on slices of one array: sums in front, differences behind."""
    n = len(x)
    if n == 1:
        return
    sums = (x[0::2] + x[1::2]) / math.sqrt(2.0)
    x[n // 2 :] = (x[0::2] - x[1::2]) / math.sqrt(2.0)
    x[: n // 2] = sums
    haar(x[: n // 2])


def f(signal, gain):
    re, im = gain * signal, np.zeros(len(signal))
    fft(re, im)
    haar(signal)
    power = re * re + im * im
    return np.sum(np.sqrt(power[1:] + 0.5)) + signal[0] * signal[3]


def ARGS():
    rng = np.random.default_rng(5)
    return rng.normal(size=8), 0.8
