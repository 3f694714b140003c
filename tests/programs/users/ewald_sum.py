"""Ewald sum of point charges in a cubic box: real space with erfc, reciprocal by complex structure factors."""
import itertools
import numpy as np
from scipy.special import erfc

def f(pos, q, box, alpha=0.9):
    n = len(q)
    real = 0.0
    for i, j in itertools.combinations(range(n), 2):
        d = pos[i] - pos[j]
        d -= box * np.round(d / box)
        r = np.linalg.norm(d)
        real += q[i] * q[j] * erfc(alpha * r) / r
    recip = 0.0
    kmax = 2
    for kx, ky, kz in itertools.product(range(-kmax, kmax + 1), repeat=3):
        if kx == ky == kz == 0:
            continue
        k = 2 * np.pi / box * np.array([kx, ky, kz])
        k2 = k @ k
        S = np.sum(q * np.exp(1j * pos @ k))
        recip += np.exp(-k2 / (4 * alpha**2)) / k2 * np.abs(S) ** 2
    recip *= 2 * np.pi / box**3
    return real + recip - alpha / np.sqrt(np.pi) * np.sum(q**2)

rng = np.random.default_rng(2)
ARGS = (rng.uniform(0, 3, (4, 3)), np.array([1.0, -1.0, 0.5, -0.5]), 3.0)
