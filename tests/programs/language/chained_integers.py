"""Named integers, each made of the one before twice, that choose elements."""

import numpy as np


def f(a, k0):
    s = 0.0
    k1 = k0 * 3 - k0 // 2
    k2 = k1 * 3 - k1 // 2
    k3 = k2 * 3 - k2 // 2
    k4 = k3 * 3 - k3 // 2
    k5 = k4 * 3 - k4 // 2
    k6 = k5 * 3 - k5 // 2
    k7 = k6 * 3 - k6 // 2
    k8 = k7 * 3 - k7 // 2
    k9 = k8 * 3 - k8 // 2
    k10 = k9 * 3 - k9 // 2
    k11 = k10 * 3 - k10 // 2
    k12 = k11 * 3 - k11 // 2
    k13 = k12 * 3 - k12 // 2
    k14 = k13 * 3 - k13 // 2
    for i in range(4):
        s += a[(i + k14) % 4] * a[i]
    a[k14 % 3 :] = a[k14 % 3 :] * 2.0
    return s + np.sum(a)


ARGS = (np.array([0.5, -1.5, 2.0, 0.25]), 1)
