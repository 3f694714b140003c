"""Ranks and lengths that the shapes of the arguments decide, behind branches, factorisations and broadcast shapes."""

import numpy as np


def stacked(a, b):
    shape = np.broadcast_shapes(np.shape(a), np.shape(b))
    made = np.ones(shape + (1, 2))
    made[..., 0, 1] = a * b
    return made


def rotated(first, second, third):
    return np.array([first * second, second + third, third * third])


def matrices(quaternions):
    q = quaternions.reshape((-1, 4))
    count = len(np.dot(q * q, [1.0] * q.shape[1]))
    made = np.zeros((count, 2, 3))
    made[:, 0, 0] = 1.0 - q[:, 2]
    made[:, 1, 2] = q[:, 0] * q[:, 3]
    return made.squeeze()


def heights(s, p):
    s, p = np.broadcast_arrays(s, p)
    means = (s[1:, ...] + s[:-1, ...]) / 2.0 * np.diff(p, axis=0)
    return np.cumsum(np.concatenate(((s[0, ...] * p[0, ...])[None, ...], means), axis=0), axis=0).squeeze()


def f(c, x, q, s, p):
    trace = c.trace()
    if trace > 100.0:
        e = np.sqrt((1.0 + np.diag(c)) / 2.0)
    else:
        e = np.array([c[1, 2] - c[2, 1], c[2, 0] - c[0, 2], c[0, 1] - c[1, 0]]) / (4.0 * trace)
    values, vectors = np.linalg.eigh(c @ c.T)
    chosen = vectors[:, np.argmax(values)] ** 2
    a = np.sum(stacked(x[:, 0], x[:, 1]), axis=0)
    total = np.array([trace, *e, *chosen, *a[0]])
    return np.sum(total * np.cos(total)), rotated(*chosen), matrices(q) @ chosen, heights(s, p), matrices(x[:, :2].ravel())


ARGS = (
    np.array([[1.2, 0.3, -0.4], [0.2, 0.9, 0.5], [-0.1, 0.6, 2.1]]),
    np.array([[0.3, 0.8, 1.1], [1.4, 0.2, 0.7], [0.4, 0.5, 0.3], [0.9, 1.3, 0.6]]),
    np.array([0.7, 0.1, 0.5, -0.3]),
    np.array([[34.0], [35.0], [36.5]]),
    np.array([[1.0], [1.5], [2.5]]),
)
