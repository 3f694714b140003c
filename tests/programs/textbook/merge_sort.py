"""Merge sort of floats: two sorted halves, merged into a new array."""
import numpy as np


def merge_sort(x):
    n = len(x)
    if n <= 1:
        return x.copy()
    left = merge_sort(x[: n // 2])
    right = merge_sort(x[n // 2 :])
    out = np.empty(n)
    i = j = 0
    for k in range(n):
        if j >= len(right) or (i < len(left) and left[i] <= right[j]):
            out[k] = left[i]
            i += 1
        else:
            out[k] = right[j]
            j += 1
    return out


def f(x, scale):
    y = merge_sort(np.sin(x) * scale)
    return np.sum(y * np.arange(1.0, len(x) + 1.0))


def ARGS():
    return np.linspace(0.1, 5.3, 13), 1.7
