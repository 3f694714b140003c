"""GP marginal likelihood by Cholesky, ARD kernel from composed kernel objects with __add__ and __mul__."""
import numpy as np
from scipy.linalg import solve_triangular, cho_solve

class Kernel:
    def __add__(self, other):
        return Sum(self, other)
    def __mul__(self, other):
        return Product(self, other)

class Sum(Kernel):
    def __init__(self, a, b):
        self.a, self.b = a, b
    def __call__(self, X, Y):
        return self.a(X, Y) + self.b(X, Y)

class Product(Sum):
    def __call__(self, X, Y):
        return self.a(X, Y) * self.b(X, Y)

class RBF(Kernel):
    def __init__(self, scales, amp=1.0):
        self.scales = scales
        self.amp = amp
    def __call__(self, X, Y):
        d = (X[:, None, :] - Y[None, :, :]) / self.scales
        return self.amp**2 * np.exp(-0.5 * np.sum(d * d, axis=-1))

class Periodic(Kernel):
    def __init__(self, period):
        self.period = period
    def __call__(self, X, Y):
        d = np.abs(X[:, None, 0] - Y[None, :, 0])
        return np.exp(-2 * np.sin(np.pi * d / self.period) ** 2)

def f(theta, X, y):
    k = RBF(np.exp(theta["log_scales"]), theta["amp"]) * Periodic(theta["period"]) + RBF(np.array([2.0, 3.0]))
    K = k(X, X) + theta["noise"] ** 2 * np.eye(len(X))
    L = np.linalg.cholesky(K)
    alpha = cho_solve((L, True), y)
    half = solve_triangular(L, y, lower=True)
    nll = 0.5 * half @ half + np.log(np.diag(L)).sum() + 0.5 * len(y) * np.log(2 * np.pi)
    loo = y - alpha / np.diag(np.linalg.inv(K))
    return nll + 0.1 * np.mean((y - loo) ** 2)

rng = np.random.default_rng(3)
X = rng.uniform(0, 3, (6, 2))
ARGS = ({"log_scales": np.array([0.1, -0.2]), "amp": 1.2, "period": 1.7, "noise": 0.3}, X, np.sin(X[:, 0]) + 0.1 * X[:, 1])
