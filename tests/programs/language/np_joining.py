"""concatenate, stack, vstack, hstack, column_stack, append, split, array of scalars."""
import numpy as np


def at_top(a, b, x):
    c = np.concatenate((a, b * x, a[:1]))
    d = np.stack([a, b]) * np.vstack((b, a))
    e = np.hstack([a, b, np.array([x, x * x])])
    g = np.column_stack((a, b, a * b)) @ np.array([1.0, x, 2.0])
    h = np.stack((a, b), axis=1)
    p, q = np.split(c[:6], 2)
    i = np.append(a, x)
    return np.sum(c * c) + np.sum(d**3) + np.sum(e * e) + np.sum(g * a) + np.sum(h[:, 0] * h[:, 1]) + p @ q + np.sum(i**2)


def in_for(a, b, x):
    for i in range(2):
        a = np.concatenate((a[1:], a[:1] * x + b[i]))
    return np.sum(a * b)


def in_while(a, b, x):
    while len(a) < 8:
        a = np.append(a, a[-1] * x + a[-2])
    return np.sum(a)


def in_branch(a, b, x):
    if x > 0.0:
        m = np.array([[x, a[0]], [b[0], x * a[1]]])
    else:
        m = np.zeros((2, 2))
    return m[0, 0] * m[1, 1] - m[0, 1] * m[1, 0]


def ARGS():
    return np.array([0.9, 1.4, 0.6]), np.array([0.3, 0.2, 1.1]), 1.3
