"""Coordinate descent for the elastic net with a soft threshold and a stopping rule."""
import numpy as np

def soft(z, g):
    if z > g:
        return z - g
    elif z < -g:
        return z + g
    return 0.0

class ElasticNet:
    def __init__(self, alpha=1.0, ratio=0.5, max_iter=50, tol=1e-4):
        self.alpha, self.ratio = alpha, ratio
        self.max_iter, self.tol = max_iter, tol
        self.coef_ = None
        self.n_iter_ = 0

    def fit(self, X, y):
        n, p = X.shape
        beta = np.zeros(p)
        norms = (X**2).sum(axis=0) / n
        residual = y.copy()
        for it in range(self.max_iter):
            biggest = 0.0
            for j in range(p):
                old = beta[j]
                rho = X[:, j] @ residual / n + norms[j] * old
                beta[j] = soft(rho, self.alpha * self.ratio) / (norms[j] + self.alpha * (1 - self.ratio))
                if beta[j] != old:
                    residual -= (beta[j] - old) * X[:, j]
                    biggest = max(biggest, abs(beta[j] - old))
            self.n_iter_ = it + 1
            if biggest < self.tol:
                break
        self.coef_ = beta
        return self

    def predict(self, X):
        return X @ self.coef_

def f(X, y, alpha):
    model = ElasticNet(alpha=alpha, max_iter=6).fit(X, y)
    return np.mean((model.predict(X) - y) ** 2) + np.sum(np.abs(model.coef_))

def ARGS():
    rng = np.random.default_rng(5)
    X = rng.normal(size=(8, 3))
    return X, X @ np.array([1.0, 0.0, -2.0]) + 0.1 * rng.normal(size=8), 0.3
