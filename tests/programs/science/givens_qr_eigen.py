"""Eigenvalues of a symmetric matrix: QR iterations with Givens rotations and Wilkinson's shift."""
import numpy as np


def givens(a, b):
    if b == 0.0:
        return 1.0, 0.0
    r = np.hypot(a, b)
    return a / r, -b / r


def f(A):
    H = 0.5 * (A + A.T)
    n = H.shape[0]
    found = []
    while n > 1:
        for _ in range(60):
            if abs(H[n - 1, :n - 1]).sum() < 1e-13:
                break
            d = 0.5 * (H[n - 2, n - 2] - H[n - 1, n - 1])
            o = H[n - 1, n - 2]
            shift = H[n - 1, n - 1] - o * o / (d + (1.0 if d >= 0 else -1.0) * np.sqrt(d * d + o * o))
            H[:n, :n] -= shift * np.eye(n)
            turns = []
            for j in range(n - 1):
                for i in range(j + 1, n):
                    c, s = givens(H[j, j], H[i, j])
                    upper, lower = H[j, :n].copy(), H[i, :n].copy()
                    H[j, :n] = c * upper - s * lower
                    H[i, :n] = s * upper + c * lower
                    turns.append((j, i, c, s))
            for j, i, c, s in turns:
                left, right = H[:n, j].copy(), H[:n, i].copy()
                H[:n, j] = c * left - s * right
                H[:n, i] = s * left + c * right
            H[:n, :n] += shift * np.eye(n)
        found.append(H[n - 1, n - 1])
        n -= 1
    found.append(H[0, 0])
    found.sort()
    return found[0] + 2.0 * found[1] ** 2 + 0.5 * found[-1]


ARGS = (np.array([[4.0, 1.0, 0.5, 0.2], [1.0, 3.0, 0.7, 0.1], [0.5, 0.7, 1.0, 0.9], [0.2, 0.1, 0.9, -1.0]]),)
