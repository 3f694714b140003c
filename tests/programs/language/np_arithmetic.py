"""Arithmetic ufuncs by name, rounding, signs, and min/max."""
import numpy as np


def at_top(a, b):
    s = np.add(a, b) * np.subtract(a, b) + np.multiply(a, b) / np.divide(a, b) + np.negative(a) + np.positive(b)
    s = s + np.maximum(a, b) * np.minimum(a, b) + np.fmax(a, b) + np.fmin(a, b) + np.abs(a - 2.0) + np.fabs(-b)
    s = s + np.sign(a) * b + np.floor(a * 3.0) * b + np.ceil(b) * a + np.rint(a) + np.trunc(b) * a + np.copysign(a, -b)
    s = s + np.mod(a * 5.0, b) + np.fmod(a * 5.0, b) + np.floor_divide(a * 5.0, b) * a + np.remainder(a, 0.4)
    return np.sum(s + np.heaviside(a, 0.5) * b + np.clip(a, 0.5, 1.0) + np.true_divide(b, a))


def in_for(a, b):
    for i in range(3):
        a = np.maximum(a, b * i) - np.minimum(a, 0.35)
    return np.sum(a * a)


def in_while(a, b):
    n = 0
    while n < 3:
        a = np.clip(a * b, 0.25, 0.95) + np.abs(a - b)
        n += 1
    return np.sum(a)


def in_branch(a, b):
    if np.sign(a[0] - b[0]) < 0:
        a = np.add(a, b) * np.where(a > b, a, b)
    return np.sum(a)


def ARGS():
    return np.array([0.31, 0.83, 1.52]), np.array([1.21, 0.42, 0.93])
