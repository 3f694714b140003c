"""Leapfrog of Hamiltonian Monte Carlo, with the gradient of the potential taken inside."""
import numpy as np
import tapegen as tg

def potential(q, precision):
    return 0.5 * q @ precision @ q + 0.1 * np.sum(q**4)

def f(q, p, precision, step=0.1, length=4):
    slope = tg.grad(potential)
    p = p - 0.5 * step * slope(q, precision)
    for k in range(length):
        q = q + step * p
        if k < length - 1:
            p = p - step * slope(q, precision)
    p = p - 0.5 * step * slope(q, precision)
    return potential(q, precision) + 0.5 * np.sum(p * p)

ARGS = (
    np.array([0.5, -0.3]),
    np.array([0.2, 0.7]),
    np.array([[2.0, 0.3], [0.3, 1.0]]),
)
