"""Random program of profile views, seed 505.

refused, BadArgument: squeeze of a turned view
"""

import math

import numpy as np


def f(n, p, case):
    len_ = case[n % 1, 0, n - 1] * (p / (1.0 + abs(p)))
    v = case[::-1]
    case[n % 1, 0, n - 1] = p
    len_ = np.sin(len_) + len_ * np.sum(v)
    x = v[n % 1, 0, n - 1] * p
    v1 = v[::-1]
    v[n % 1, 0, n - 1] = p
    v /= np.sum(np.full((4,), 1.0 * x) * np.full((4,), 1.0 * x)) * np.sum(np.full((4,), 1.0 * x) * np.full((4,), 1.0 * x)) + 1.5
    x = np.sin(x) + x * np.sum(v1)
    v2 = np.squeeze(v)
    v += p
    x1 = case[n % 1, 0, n % 4] * (v2[0:1] @ v2[2:3])
    v3 = case[::-1]
    case[n % 1, 0, n % 4] = len_
    x1 = np.sin(x1) + x1 * np.sum(v3)
    for item in v:
        v[-1, n % 1, -1] = np.sum(v3[v3 > p])
    if np.any(v1 > 1.0):
        pass
    else:
        pass
    return (np.sum(case * case) + np.sum(v) + x1 + np.sum(v3) + len_ + p, v, x + np.sum(v3 * v3) + 0.5 * case.sum() + np.sum(v1) + np.sum(v * v) + np.sum(v2))


def ARGS():
    return (1, -1.0, np.array([[[-1.785, 0.027, -1.0, 0.5]]]))


WRT = (2,)
