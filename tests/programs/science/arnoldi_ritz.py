"""Arnoldi iteration with a Hessenberg buffer and a breakdown test; the residual of the small system."""
import numpy as np

class Krylov:
    def __init__(self, matrix, size, tol=1e-12):
        assert matrix.shape[0] == matrix.shape[1], f"square matrix expected, got {matrix.shape}"
        self.matrix = matrix
        self.tol = tol
        n = matrix.shape[0]
        self.basis = np.zeros((n, size + 1))
        self.hessenberg = np.zeros((size + 1, size))
        self.used = 0

    def run(self, start):
        self.basis[:, 0] = start / np.linalg.norm(start)
        for j in range(self.hessenberg.shape[1]):
            w = self.matrix @ self.basis[:, j]
            for i in range(j + 1):
                self.hessenberg[i, j] = np.dot(self.basis[:, i], w)
                w -= self.hessenberg[i, j] * self.basis[:, i]
            beta = np.sqrt(np.sum(w * w))
            self.hessenberg[j + 1, j] = beta
            self.used += 1
            if beta < self.tol:
                break
            self.basis[:, j + 1] = w / beta
        return self

def f(a, b):
    krylov = Krylov(a, 3).run(b)
    k = krylov.used
    h = krylov.hessenberg[:k, :k]
    y = np.linalg.solve(h + 2.0 * np.eye(k), np.ones(k))
    return np.sum(krylov.basis[:, :k] @ y) + np.trace(h)

def ARGS():
    a = np.array([[2.0, -0.5, 0.1, 0.3], [-0.4, 1.5, 0.2, 0.0], [0.3, 0.1, 1.1, -0.6], [0.0, 0.2, -0.3, 0.9]])
    return a, np.array([1.0, 0.5, -0.3, 0.8])
