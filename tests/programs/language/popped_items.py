"""Items that are popped and not used, or popped until the list is empty."""

import numpy as np


def at_top(x):
    items = []
    for _ in x:
        items.append(0.5)
    items.pop()
    items.append(x[0])
    items.append(x[1])
    items.pop()
    return items[-1] * x[2] + items[0] * x[3]


def in_for(x):
    items = []
    for v in x:
        items.append(v * v)
    for k in range(1, len(items)):
        items[k - 1] = items[k]
    items.pop()
    return items[0] * items[1]


def in_while(x):
    items = []
    for v in x:
        items.append(v * v)
    total, k = 0.0, 0
    while len(items) > 0:
        if k % 2:
            items.pop()
        else:
            total = total * x[0] + items.pop()
        k += 1
    return total


def in_branch(x):
    rows = []
    for v in x:
        rows.append(x * v)
    if x[0] > 1.0:
        rows.pop()
        rows.append(x)
    rows.pop()
    return np.sum(rows[0] * rows[-1])


def ARGS():
    return (np.array([1.3, 0.4, 2.2, -0.7]),)
