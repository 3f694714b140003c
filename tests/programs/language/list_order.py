"""Lists put in order: `sorted` and `sort` with keys and in reverse, `max` and `min` by a key, queues."""

import numpy as np


def at_top(x):
    ordered = sorted(x)
    pairs = [(x[i], x[j]) for i in range(3) for j in range(i)]
    pairs.sort(key=lambda p: p[0] * p[1])
    table = {"a": x[0] * x[1], "b": x[2]}
    best = max(table.items(), key=lambda item: item[1])[1]
    nearest = min(x[0], x[1], x[2], key=abs)
    down = sorted([x[0], x[3], x[2]], reverse=True)
    return pairs[0][0] + pairs[-1][1] * best + nearest**2 + sum(k * v for k, v in enumerate(ordered)) * down[1]


def in_for(x):
    found = []
    for k, v in enumerate(x):
        found.append((v * v, k))
    found = sorted(found, key=lambda item: -item[0])
    total = 0.0
    for rank, (value, k) in enumerate(found):
        total += (rank + 1) * value * (k + 1)
    scores = [v * v for v in x]
    best = max(range(len(scores)), key=lambda k: scores[k])
    return total * x[best] + min(found, key=lambda item: item[0])[0]


def in_while(x):
    queue = [x[0], x[1]]
    total, k = 0.0, 0
    while k < 5:
        first = queue.pop(0)
        total += first * (k + 1)
        queue.append(first * 0.5 + x[2])
        if k % 2:
            queue.append(x[3])
        k += 1
    return total + sum(queue)


def in_branch(x):
    rows = []
    for v in x:
        rows.append(x * v)
    if x[0] > 1.0:
        first = rows.pop(0)
    else:
        first = rows.pop()
    rows.sort(key=lambda row: row[0] + row[1], reverse=True)
    return np.sum(first**2) + np.sum(rows[0] * rows[-1])


def ARGS():
    return (np.array([1.3, 0.4, 2.2, -0.7]),)
