"""Quicksort in place, of keys and of what goes with them: the partition of Lomuto, and a call for each side."""
import numpy as np


def quicksort(keys, values, low, high):
    if low >= high:
        return
    pivot = keys[high]
    wall = low
    for k in range(low, high):
        if keys[k] < pivot:
            keys[k], keys[wall] = keys[wall], keys[k]
            values[k], values[wall] = values[wall], values[k]
            wall += 1
    keys[high], keys[wall] = keys[wall], keys[high]
    values[high], values[wall] = values[wall], values[high]
    quicksort(keys, values, low, wall - 1)
    quicksort(keys, values, wall + 1, high)


def f(keys, values):
    mixed = values * 1.5
    quicksort(keys, mixed, 0, len(keys) - 1)
    total = 0.0
    for k in range(len(keys)):
        total += keys[k] * mixed[k] * (k + 1)
    return total


def ARGS():
    rng = np.random.default_rng(3)
    return rng.normal(size=11), rng.normal(size=11)
