"""Matrix exponential by scaling and squaring of a Taylor series; the number of squarings depends on the norm."""
import numpy as np


def expm(a):
    norm = np.max(np.sum(np.abs(a), axis=1))
    squarings = 0
    while norm > 0.5:
        norm /= 2
        squarings += 1
    a = a / 2**squarings
    result = np.eye(len(a))
    term = np.eye(len(a))
    for k in range(1, 15):
        term = term @ a / k
        result += term
    for _ in range(squarings):
        result = result @ result
    return result


def f(a, t):
    return np.sum(expm(a * t)[0] ** 2)


def ARGS():
    return np.array([[0.2, 1.1, -0.4], [-0.9, 0.1, 0.5], [0.3, -0.6, 0.4]]), 1.3
