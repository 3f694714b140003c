"""Dantzig's simplex method on a tableau; the optimum of a linear program and its sensitivities."""
import numpy as np


def simplex(A, b, c):
    m, n = A.shape
    T = np.zeros((m + 1, n + m + 1))
    T[:m, :n] = A
    T[:m, n:n + m] = np.eye(m)
    T[:m, -1] = b
    T[-1, :n] = -c
    basis = list(range(n, n + m))
    for _ in range(20):
        col = int(np.argmin(T[-1, :-1]))
        if T[-1, col] >= -1e-12:
            break
        best, row = np.inf, -1
        for i in range(m):
            if T[i, col] > 1e-12:
                ratio = T[i, -1] / T[i, col]
                if ratio < best:
                    best, row = ratio, i
        if row < 0:
            raise ValueError("unbounded")
        T[row] /= T[row, col]
        for i in range(m + 1):
            if i != row:
                T[i] -= T[i, col] * T[row]
        basis[row] = col
    x = np.zeros(n)
    for i, k in enumerate(basis):
        if k < n:
            x[k] = T[i, -1]
    return T[-1, -1], x


def f(A, b, c):
    value, x = simplex(A, b, c)
    return value + 0.3 * x[0] * x[1]


ARGS = (np.array([[1.0, 1.2, 0.5], [2.0, 0.4, 1.0], [0.3, 1.0, 1.1]]), np.array([4.0, 5.0, 3.0]), np.array([3.0, 2.0, 2.2]))
