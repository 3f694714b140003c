"""One assignment and update step of k-means, and the cost afterwards."""
import numpy as np


def f(points, centres):
    n, k = len(points), len(centres)
    sums = np.zeros_like(centres)
    counts = np.zeros(k)
    for i in range(n):
        best, where = np.inf, -1
        for j in range(k):
            dist = np.sum((points[i] - centres[j]) ** 2)
            if dist < best:
                best = dist
                where = j
        sums[where] += points[i]
        counts[where] += 1
    cost = 0.0
    for j in range(k):
        if counts[j] > 0:
            centres[j] = 0.9 * sums[j] / counts[j] + 0.1 * centres[j]
    for p in points:
        cost += min([np.sum((p - c) ** 2) for c in centres])
    return cost


def ARGS():
    rng = np.random.default_rng(2)
    points = np.concatenate([rng.normal(0, 0.3, (4, 2)), rng.normal(2, 0.3, (4, 2))])
    return points, np.array([[0.3, 0.1], [1.6, 2.2]])
