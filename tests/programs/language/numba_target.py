"""The differentiated function is itself a numba function, with a parallel loop."""
import numba
import numpy as np
from numba import njit, prange


@njit(parallel=True)
def f(a, x):
    s = 0.0
    b = np.empty_like(a)
    for i in prange(a.size):
        b[i] = np.sin(a[i] * x)
        s += b[i] * b[i]
    return s + numba.float64(0.5) * b[0]


def ARGS():
    return np.array([0.9, -1.4, 0.6]), 1.2
