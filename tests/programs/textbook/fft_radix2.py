"""Radix-2 FFT in real arithmetic: bit reversal and butterflies in place."""
import math

import numpy as np


def fft(re, im):
    n = len(re)
    j = 0
    for i in range(1, n):
        bit = n >> 1
        while j & bit:
            j ^= bit
            bit >>= 1
        j |= bit
        if i < j:
            re[i], re[j] = re[j], re[i]
            im[i], im[j] = im[j], im[i]
    length = 2
    while length <= n:
        angle = -2 * math.pi / length
        for start in range(0, n, length):
            for k in range(length // 2):
                c, s = math.cos(angle * k), math.sin(angle * k)
                p, q = start + k, start + k + length // 2
                tr = re[q] * c - im[q] * s
                ti = re[q] * s + im[q] * c
                re[q], im[q] = re[p] - tr, im[p] - ti
                re[p] += tr
                im[p] += ti
        length *= 2


def f(signal, weight):
    re = signal.copy()
    im = np.zeros_like(re)
    fft(re, im)
    power = re**2 + im**2
    return np.sum(power * weight)


def ARGS():
    return np.sin(np.arange(8.0)) + 0.2, np.linspace(0.1, 1.0, 8)
