"""Recursive FFT on cosine and sine parts, with slices of even and odd entries."""
import numpy as np


def transform(re, im):
    n = re.size
    if n == 1:
        return re, im
    er, ei = transform(re[::2], im[::2])
    odd_r, odd_i = transform(re[1::2], im[1::2])
    k = np.arange(n // 2)
    c, s = np.cos(2 * np.pi * k / n), -np.sin(2 * np.pi * k / n)
    tr = c * odd_r - s * odd_i
    ti = s * odd_r + c * odd_i
    return np.concatenate([er + tr, er - tr]), np.concatenate([ei + ti, ei - ti])


def f(signal):
    re, im = transform(signal, np.zeros(signal.size))
    return np.sum(np.sqrt(re**2 + im**2) * np.arange(signal.size))


def ARGS():
    return (np.sin(np.arange(8.0)) + 0.2,)
