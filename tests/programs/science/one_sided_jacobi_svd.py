"""Singular values by one-sided Jacobi rotations of the columns."""
import numpy as np


def f(A):
    U = A.copy()
    m, n = U.shape
    for sweep in range(12):
        off = 0.0
        for p in range(n - 1):
            for q in range(p + 1, n):
                alpha = U[:, p] @ U[:, p]
                beta = U[:, q] @ U[:, q]
                gamma = U[:, p] @ U[:, q]
                off = max(off, abs(gamma) / np.sqrt(alpha * beta))
                if abs(gamma) < 1e-15:
                    continue
                zeta = (beta - alpha) / (2.0 * gamma)
                t = np.sign(zeta) / (abs(zeta) + np.sqrt(1.0 + zeta**2))
                c = 1.0 / np.sqrt(1.0 + t * t)
                s = c * t
                U[:, [p, q]] = U[:, [p, q]] @ np.array([[c, s], [-s, c]])
        if off < 1e-12:
            break
    sigma = np.sqrt((U**2).sum(axis=0))
    sigma = np.sort(sigma)[::-1]
    return sigma[0] / sigma[-1] + sigma.sum()


ARGS = (np.array([[1.0, 0.4, 0.3], [0.2, 1.5, 0.1], [0.7, 0.3, 0.9], [0.5, 0.8, 0.2]]),)
