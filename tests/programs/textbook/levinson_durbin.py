"""Levinson-Durbin recursion: autoregressive coefficients from the autocovariances of a series."""
import numpy as np


def autocovariance(x, lag):
    n = len(x)
    centred = x - x.mean()
    return sum(centred[t] * centred[t + lag] for t in range(n - lag)) / n


def f(x, order=3):
    r = [autocovariance(x, k) for k in range(order + 1)]
    a = [1.0]
    error = r[0]
    for k in range(1, order + 1):
        acc = 0.0
        for j in range(k):
            acc += a[j] * r[k - j]
        reflection = -acc / error
        padded = a + [0.0]
        a = [padded[j] + reflection * padded[k - j] for j in range(k + 1)]
        error *= 1.0 - reflection**2
    return np.array(a), error


def ARGS():
    return (np.array([0.4, 1.1, 0.3, -0.7, -0.9, 0.2, 1.3, 0.8, -0.4, -1.0]),)
