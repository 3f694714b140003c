"""Lists of arrays that grow, shrink and change; what is stored through an item is seen by every name of the array."""
import numpy as np


def at_top(a, x):
    rows = [a[0] * x, a[1]]
    for k in range(3):
        rows.append(np.sin(rows[k]) + a[1, 0])
    rows[2][0] = x * x
    last = rows.pop()
    last[1] *= rows[0][1]
    rows[1] = last
    return np.sum(rows[1] * rows[2]) + np.sum(np.array(rows) ** 2) + np.sum(a)


def in_for(a, x):
    total = 0.0
    for i in range(2):
        states = [a[i]]
        for k in range(3):
            state = states[-1] * x
            states.append(state)
            state[k % 2] += states[k][1]
        total += np.sum(np.stack(states) * (i + 1.0))
    return total


def in_while(a, x):
    stack = [a[0] * 1.0, a[1] * 1.0]
    total = 0.0
    while len(stack) > 0:
        top = stack.pop()
        if top[0] > 0.3:
            half = top * 0.4
            stack.append(half)
            stack.append(half * x)
            half[1] = x
        total += np.sum(top * top)
    return total


def in_branch(a, x):
    parts = [a[0], a[1]]
    if x > 0.0:
        parts.append(parts[0])
    for part in parts:
        part *= x
    return np.sum(a * a) * np.sum(parts[-1])


def ARGS():
    return np.array([[0.7, 1.3], [0.4, 0.9]]), 0.8
