"""Lists that grow and shrink."""
import numpy as np


def at_top(a, x):
    items = []
    for v in a:
        items.append(v * x)
    last = items.pop()
    items[0] = items[1] * last
    return items[0] + items[1] * last + len(items)


def in_for(a, x):
    history = [x]
    for i in range(4):
        history.append(history[-1] * a[i % 3] + history[0])
    s = 0.0
    for h in history:
        s += h * h
    return s


def in_while(a, x):
    stack = [x, a[0]]
    total = 0.0
    while len(stack) > 0:
        top = stack.pop()
        if top > 0.4:
            stack.append(top * 0.5)
            stack.append(top * 0.3)
        total += top * top
    return total


def in_branch(a, x):
    values = [a[0], a[1]]
    if x > 0.0:
        values.append(x)
    return sum(values) * values[-1]


def ARGS():
    return np.array([0.7, 1.3, 0.4]), 0.9
