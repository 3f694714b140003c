"""Modified Gram-Schmidt on the columns of a matrix, in place."""
import numpy as np


def f(a):
    m, n = a.shape
    q = a.copy()
    r = np.zeros((n, n))
    for k in range(n):
        r[k, k] = np.linalg.norm(q[:, k])
        q[:, k] /= r[k, k]
        for j in range(k + 1, n):
            r[k, j] = q[:, k] @ q[:, j]
            q[:, j] -= r[k, j] * q[:, k]
    return np.sum(np.triu(r) ** 3) + np.sum(q[0])


def ARGS():
    return (np.array([[0.9, 0.2, 0.4], [0.1, 1.1, 0.3], [0.5, 0.6, 1.4], [0.7, 0.3, 0.2]]),)
