"""Newton's method for two equations, with a convergence test and a limit on the number of steps."""
import numpy as np


def residual(v, p):
    x, y = v
    return np.array([x**2 + y**2 - p[0], np.exp(x) - p[1] * y - 1.0])


def jacobian(v, p):
    x, y = v
    return np.array([[2 * x, 2 * y], [np.exp(x), -p[1]]])


def f(p, start):
    v = start.copy()
    for iteration in range(30):
        r = residual(v, p)
        if np.linalg.norm(r) < 1e-10:
            break
        v = v - np.linalg.solve(jacobian(v, p), r)
    else:
        raise RuntimeError(f"no convergence after {iteration} steps")
    return v[0] * v[1]


def ARGS():
    return np.array([2.3, 1.4]), np.array([1.0, 1.1])
