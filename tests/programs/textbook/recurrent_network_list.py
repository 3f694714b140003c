"""A recurrent network that keeps its states in a list."""
import numpy as np


def cell(x, h, w, u, b):
    return np.tanh(w @ x + u @ h + b)


def f(w, u, b, xs, targets):
    states = [np.zeros(b.shape[0])]
    for x in xs:
        states.append(cell(x, states[-1], w, u, b))
    loss = 0.0
    for h, y in zip(states[1:], targets):
        loss += 0.5 * np.sum((h - y) ** 2)
    return loss / len(targets)


def ARGS():
    rng = np.random.default_rng(9)
    return tuple(rng.normal(scale=0.6, size=shape) for shape in ((3, 2), (3, 3), (3,), (4, 2), (4, 3)))
