"""Arrays of every rank."""
import numpy as np


def f(a0, a2, a3, a4, a5):
    s = a0 * np.sum(a2)
    t = a3 * a2
    s = s + np.sum(t * t)
    for i in range(2):
        s = s + np.sum(a4[i, 1] * a2) * a5[i, 0, 1, 0, 1]
    a5[0, 1] = a4[0] * a5[1, 0]
    return s + np.sum(a5 * a5)


def ARGS():
    rng = np.random.default_rng(1)
    shapes = ((), (2, 2), (3, 2, 2), (2, 2, 2, 2), (2, 2, 2, 2, 2))
    a0, a2, a3, a4, a5 = (np.asarray(rng.uniform(0.5, 1.5, shape)) for shape in shapes)
    return a0, a2, a3, a4, a5
