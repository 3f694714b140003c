"""Exponentials, logarithms, powers and roots."""
import numpy as np


def at_top(a, b):
    e = np.exp(a) + np.exp2(b) + np.expm1(a) + np.log(a) + np.log2(b) + np.log10(a) + np.log1p(b)
    p = np.sqrt(a) + np.cbrt(b) + np.square(a) + np.power(a, b) + a**3 + a**b + 2.0**b + a**-1.5 + np.reciprocal(b)
    m = np.logaddexp(a, b) + np.logaddexp2(a, b) + np.float_power(a, 2.5)
    return np.sum(e * p + m)


def in_for(a, b):
    for i in range(3):
        a = np.sqrt(a * a + np.exp(-b) * i)
    return np.sum(np.log(a))


def in_while(a, b):
    while np.max(a) < 4.0:
        a = np.power(a, 1.0 + 0.3 * b) + 0.5
    return np.sum(a)


def in_branch(a, b):
    if np.log(b[0]) > 0.0:
        b = np.logaddexp(a, b)
    return np.sum(b * b)


def ARGS():
    return np.array([0.3, 0.8, 1.5]), np.array([1.2, 0.4, 0.9])
