"""Horner's rule for a polynomial and its derivative; Newton's method with deflation finds all real roots."""
import numpy as np


def horner(coef, x):
    value = 0.0
    slope = 0.0
    for c in coef:
        slope = slope * x + value
        value = value * x + c
    return value, slope


def f(coef, start):
    total = 0.0
    while len(coef) > 1:
        x = start
        for _ in range(40):
            value, slope = horner(coef, x)
            if abs(value) < 1e-13:
                break
            x = x - value / slope
        total += x * x
        reduced = np.zeros(len(coef) - 1)
        reduced[0] = coef[0]
        for i in range(1, len(reduced)):
            reduced[i] = coef[i] + x * reduced[i - 1]
        coef = reduced
    return total


def ARGS():
    return np.poly([0.5, 1.3, 2.4]), 0.1


WRT = (0,)
