"""Divide and conquer over slices of arrays: a cut tree, the largest sum of a run, and a k-d tree's nearest point."""
import numpy as np


def cut(x, w):
    """A tree whose nodes weigh their halves; leaves where the spread is small."""
    if len(x) == 1 or np.max(x) - np.min(x) < 0.3:
        return np.sum(x * w)
    half = len(x) // 2
    low, high = cut(x[:half], w[:half]), cut(x[half:], w[half:])
    return np.tanh(low) * high + 0.5 * low


def best_run(x):
    """Best sum, best from the left, best to the right, total."""
    if len(x) == 1:
        return x[0], x[0], x[0], x[0]
    half = len(x) // 2
    best, head, tail, total = best_run(x[:half])
    best_1, head_1, tail_1, total_1 = best_run(x[half:])
    middle = tail + head_1
    return (
        max(best, best_1, middle),
        max(head, total + head_1),
        max(tail_1, total_1 + tail),
        total + total_1,
    )


def nearest(points, target, axis):
    if len(points) == 1:
        return np.sum((points[0] - target) ** 2)
    half = len(points) // 2
    first, second = points[:half], points[half:]
    if target[axis] > points[half, axis]:
        first, second = second, first
    found = nearest(first, target, 1 - axis)
    if (target[axis] - points[half, axis]) ** 2 < found:
        found = min(found, nearest(second, target, 1 - axis))
    return found


def f(x, w, points):
    best, head, _, total = best_run(x)
    return cut(x, w) + best * head + 0.1 * total + nearest(points, points[1] + x[:2], 0)


def ARGS():
    rng = np.random.default_rng(11)
    points = rng.uniform(size=(9, 2))
    return rng.normal(size=10), rng.normal(size=10), points[np.argsort(points[:, 0])]
