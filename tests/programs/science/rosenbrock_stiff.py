"""Rosenbrock method of second order for a stiff reaction, with the Jacobian by hand and step control."""
import numpy as np

def rhs(y, k):
    a, b = k[0] * y[0], k[1] * y[1] * y[1]
    return np.array([-a + b, a - b - k[2] * y[1]])

def jacobian(y, k):
    out = np.zeros((2, 2))
    out[0, 0] = -k[0]
    out[0, 1] = 2 * k[1] * y[1]
    out[1, 0] = k[0]
    out[1, 1] = -2 * k[1] * y[1] - k[2]
    return out

def f(y, k, t_end=0.5, h=0.1, rtol=1e-2):
    gamma = 1 - 1 / np.sqrt(2)
    t, rejected = 0.0, 0
    while t < t_end - 1e-12:
        h = min(h, t_end - t)
        w = np.eye(2) - gamma * h * jacobian(y, k)
        k1 = np.linalg.solve(w, rhs(y, k))
        k2 = np.linalg.solve(w, rhs(y + h * k1, k) - 2 * k1)
        new = y + 1.5 * h * k1 + 0.5 * h * k2
        error = np.linalg.norm(0.5 * h * (k1 + k2)) / (1e-3 + rtol * np.linalg.norm(y))
        if error <= 1.5 or rejected > 5:
            t += h
            y = new
            h *= 1.5
        else:
            rejected += 1
            h *= 0.5
    return y

ARGS = (np.array([1.0, 0.3]), np.array([3.0, 1.5, 0.7]))
