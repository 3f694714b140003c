"""Views and lists that a trip writes into once more just before it is left."""
import numpy as np


def at_top(b, x):
    for i in range(x.size):
        start = 1 if x[i] > 0.3 else 2
        part = b[start:]
        b[start:] = part * x[:1]
        if x[i] > 1.0:
            b[0] *= 0.5
            return np.sum(b * b)
    return np.sum(b * b)


def in_for(b, x):
    total = 0.0
    for i in range(x.size):
        found = []
        for j in range(i + 1):
            found.append(x[j] * x[i])
        if x[i] > 0.45:
            found.append(x[0] ** 2)
            for a in found:
                total += a * a * b[0]
            if x[i] > 1.0:
                break
            continue
        for a in found:
            total += np.sin(a)
    return total


def in_while(b, x):
    i = 0
    while i < x.size:
        start = 1 if x[i] > 0.3 else 2
        part = b[start:]
        b[start:] = part * x[:1] + part
        i += 1
        if x[i - 1] > 0.45:
            if x[i - 1] > 1.0:
                b[0] *= x[1]
                break
            b[1:] *= 0.5
            continue
        b[0] += part[0] * x[2]
    return np.sum(b * b) * i


def in_branch(b, x):
    total = 0.0
    if x[0] > 0.0:
        for i in range(x.size):
            rows = [b[: i + 1] * x[i]]
            if x[i] > 1.0:
                rows.append(b[:2] * x[0])
                total += sum(np.sum(row * row) for row in rows)
                break
            if x[i] > 0.45:
                rows.append(b[1:3] * x[1])
                continue
            total += np.sum(np.exp(rows[0]))
    return total


ARGS = (np.array([1.0, 0.5, -0.7, 1.3, 0.9]), np.array([0.2, 0.5, 0.4, 1.5, 0.7]))
