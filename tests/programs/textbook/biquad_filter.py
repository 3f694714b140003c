"""A cascade of second-order filters run over a signal, and the energy of what comes out."""
import math

import numpy as np


def lowpass(cutoff, quality):
    w = 2 * math.pi * cutoff
    alpha = math.sin(w) / (2 * quality)
    b1 = 1 - math.cos(w)
    b = [b1 / 2, b1, b1 / 2]
    a = [1 + alpha, -2 * math.cos(w), 1 - alpha]
    return [x / a[0] for x in b], [x / a[0] for x in a]


def lfilter(b, a, x):
    y = np.zeros(len(x))
    z1, z2 = 0.0, 0.0
    for n, v in enumerate(x):
        out = b[0] * v + z1
        z1 = b[1] * v - a[1] * out + z2
        z2 = b[2] * v - a[2] * out
        y[n] = out
    return y


def f(signal, cutoffs, quality):
    y = signal
    for cutoff in cutoffs:
        b, a = lowpass(cutoff, quality)
        y = lfilter(b, a, y)
    tail = y[len(y) // 2 :]
    return 10 * math.log10(sum(v**2 for v in tail) / len(tail))


def ARGS():
    return np.sin(np.arange(16) * 0.9) + 0.3, np.array([0.11, 0.2]), 0.8
