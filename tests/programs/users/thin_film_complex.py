"""Thin-film stack with complex indices by transfer matrices; s and p polarisation."""
import cmath
import numpy as np

def interface(n1, n2, c1, c2, pol):
    if pol == "s":
        r = (n1 * c1 - n2 * c2) / (n1 * c1 + n2 * c2)
        t = 2 * n1 * c1 / (n1 * c1 + n2 * c2)
    else:
        r = (n2 * c1 - n1 * c2) / (n2 * c1 + n1 * c2)
        t = 2 * n1 * c1 / (n2 * c1 + n1 * c2)
    return np.array([[1, r], [r, 1]]) / t

def stack(index, thickness, lam, angle, pol="s"):
    s0 = index[0] * np.sin(angle)
    cosines = [cmath.sqrt(1 - (s0 / n) ** 2) for n in index]
    M = interface(index[0], index[1], cosines[0], cosines[1], pol)
    for k in range(1, len(index) - 1):
        beta = 2 * np.pi * index[k] * thickness[k - 1] * cosines[k] / lam
        P = np.diag([cmath.exp(-1j * beta), cmath.exp(1j * beta)])
        M = M @ P @ interface(index[k], index[k + 1], cosines[k], cosines[k + 1], pol)
    r = M[1, 0] / M[0, 0]
    return abs(r) ** 2

def f(d, kappa, angle):
    total = 0.0
    for lam in np.linspace(450, 650, 5):
        index = [1.0 + 0j, 1.38 - 1e-3j, 2.1 - 1j * kappa, 1.52 + 0j]
        total += 0.5 * (stack(index, d, lam, angle) + stack(index, d, lam, angle, pol="p"))
    return total / 5

ARGS = (np.array([100.0, 60.0]), 0.02, 0.3)
