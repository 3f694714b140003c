"""matmul of stacks of matrices, with broadcasting."""
import numpy as np


def f(a, b, v):
    c = a @ b
    d = np.matmul(a, b[0])
    e = a @ v
    return np.sum(c * c) + np.sum(d * c) + np.sum(e**3)


def ARGS():
    rng = np.random.default_rng(3)
    return rng.uniform(0.2, 1.0, (2, 2, 3)), rng.uniform(0.2, 1.0, (2, 3, 2)), rng.uniform(0.2, 1.0, 3)
