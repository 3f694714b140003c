"""Derivatives taken inside of functions that write copies, count, and read what changes afterwards."""

import numpy as np

import tapegen as tg


def potential(x):
    return np.sum(np.sin(x) * x)


def at_top(x):
    kept = x * 1.0
    _, pullback = tg.vjp(lambda v: np.sum(v * v * kept), x, backend="python")
    slope = tg.grad(lambda v: np.sum(v * v * kept), backend="python")
    kept[0] = 3.0
    return np.sum(pullback(1.0) * x) + np.sum(slope(x)) + kept[0] * x[0]


def in_for(x):
    w = np.zeros(3)
    total = 0.0

    def loss(v):
        changed = w.copy()
        changed[0] = v[0]
        return np.sum(changed * v * x)

    def weighted(v):
        nonlocal total
        return v * v * total

    for k in range(3):
        w = w + tg.grad(loss, backend="python")(x)
        total += tg.grad(weighted, backend="python")(x[k]) + x[k]
    return np.sum(w) * total


def in_while(x):
    def line(step, d):
        return potential(x + step * d)

    d = -tg.grad(potential, backend="python")(x)
    step, k = 0.1, 0
    while k < 3:
        first = tg.grad(line, backend="python")(step, d)
        second = tg.grad(tg.grad(line, backend="python"), backend="python")(step, d)
        step -= first / (abs(second) + 1.0)
        k += 1
    return line(step, d)


def in_branch(x):
    def stacked(v):
        items = [v[0]]
        for _ in range(3):
            items.append(items[-1] * v[1] + v[2])
        items.pop()
        return items[-1] * items.pop()

    if x[0] > 0.0:
        return np.sum(tg.grad(stacked, backend="python")(x) * x)
    return potential(x)


def ARGS():
    return (np.array([0.7, -0.4, 1.2]),)
