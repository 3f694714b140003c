"""Power iteration with a stopping test; the Rayleigh quotient."""
import numpy as np


def f(a, v):
    old = 0.0
    value = 1.0
    iterations = 0
    while abs(value - old) > 1e-13 and iterations < 500:
        w = a @ v
        v = w / np.sqrt(np.sum(w**2))
        old = value
        value = v @ a @ v
        iterations += 1
    return value


def ARGS():
    a = np.array([[2.0, 0.4, 0.1], [0.4, 1.2, 0.3], [0.1, 0.3, 0.7]])
    return a, np.array([1.0, 0.5, 0.2])


WRT = (0,)
# The stopping test looks at the value, whose error is the square of the vector's where `a` is symmetric, and a
# difference moves `a` off symmetry to another number of trips.  Measured: 1.4e-7 here, 3e-13 against differences with the
# number of trips held at 20; at 39 matrices near this one median 1e-11, 90 % below 3e-11.
TOL = 1e-6
