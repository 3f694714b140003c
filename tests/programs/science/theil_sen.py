"""Theil-Sen slope: the median of pairwise slopes from a nested comprehension."""
import numpy as np

def f(x, y):
    slopes = [(y[j] - y[i]) / (x[j] - x[i]) for i in range(len(x)) for j in range(i + 1, len(x)) if x[j] != x[i]]
    slope = np.median(np.array(slopes))
    intercept = np.median(y - slope * x)
    return slope + 0.5 * intercept

ARGS = (np.array([0.0, 1.1, 2.3, 2.9, 4.2]), np.array([0.3, 1.4, 1.9, 3.6, 3.9]))
