"""reshape, transpose, swapaxes, squeeze, expand_dims, broadcast_to, ravel, repeat, tile, roll, flips."""
import numpy as np


def at_top(m):
    a = np.reshape(m, (3, 2)) * np.transpose(m)
    b = np.expand_dims(m, 0) * np.broadcast_to(m[0], (4, 2, 3))
    c = np.squeeze(m[:, None, :]) * np.swapaxes(m.T, 0, 1)
    d = np.ravel(m) * m.flatten() + np.repeat(m[0], 2) + np.tile(m[1], 2)
    e = np.roll(m, 1, axis=1) * np.flip(m) + np.fliplr(m) * np.flipud(m) + np.moveaxis(m.T, 0, 1)
    g = np.atleast_2d(m[0]) * m + np.rot90(m, 2)
    return np.sum(a * a) + np.sum(b) + np.sum(c * c) + np.sum(d * d) + np.sum(e**3) + np.sum(g * g)


def in_for(m):
    for i in range(2):
        m = m.T * np.roll(m, i).reshape(m.shape[1], m.shape[0])
    return np.sum(m)


def in_while(m):
    n = m.size
    while n > 4:
        m = np.swapaxes(m, 0, 1) * 1.3
        n -= 1
    return np.sum(m[0] * m[1])


def in_branch(m):
    if m.shape[0] < m.shape[1]:
        m = m.T
    return np.sum(m.reshape(-1)[::2] ** 2)


def ARGS():
    return (np.array([[0.7, 1.2, 0.4], [1.1, 0.3, 0.9]]),)
