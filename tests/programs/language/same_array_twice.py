"""One array for two parameters: its gradient has two parts, and a write is seen through both names."""
import numpy as np

from tests.programs.language.mutating_callee import shift


def f(a, x):
    return combine(a, a) * x + combine(a[1:], a[:-1])


def combine(p, q):
    s = np.sum(p * q)
    shift(p, 0.5)
    return s + np.sum(q * q * q)


def ARGS():
    return np.array([0.6, 1.2, 0.9]), 0.7
