"""Integers of 8 to 64 bits: made by their types, as indices, wrapping as NumPy's do; systems of mixed dtypes."""

import numpy as np

BYTES = np.array([1, 2, 250], dtype=np.uint8)
SHORT = np.array([100, 27, -3], dtype=np.int8)


def at_top(x):
    k = np.uint8(1)
    mixed = np.linalg.solve(np.eye(2, dtype=np.float32) * 4, x[:2])
    return x[k] * np.int16(3) + np.uint32(2) * x[0] + x[2] * np.uint8(3.7) + np.sum(x[:3] * (SHORT + np.int8(100))) * mixed[1]


def in_for(x):
    total = 0.0
    for i in range(3):
        total += x[BYTES[i] % np.uint8(4)] * BYTES[i] * x[SHORT[i] - SHORT[i]]
    return total * (BYTES[2] + np.uint8(5))


def in_branch(x):
    n = np.int32(x[2] * 3)
    if n > np.int8(5):
        return x[0] * n + x[1] * np.float32(n) + x[3] * np.uint64(7)
    return x[1]


def ARGS():
    return (np.array([1.3, 0.4, 2.2, -0.7]),)
