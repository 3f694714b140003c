"""Recursive functions: direct with a counter, by bisection of an array, mutual, and ended by a value."""
import numpy as np


def power(x, n):
    if n == 0:
        return 1.0
    if n % 2 == 1:
        return x * power(x, n - 1)
    half = power(x, n // 2)
    return half * half


def pairwise(a, lo, hi):
    if hi - lo == 1:
        return a[lo] * a[lo]
    mid = (lo + hi) // 2
    return pairwise(a, lo, mid) + 0.5 * pairwise(a, mid, hi)


def at_top(a, x):
    return power(x, 7) + pairwise(a, 0, 5)


def in_for(a, x):
    s = 0.0
    for n in range(4):
        s += power(x, n) * a[n]
    return s


def in_while(a, x):
    k = 1
    while k < 5:
        x = x + 0.1 * pairwise(a, 0, k)
        k += 1
    return x


def in_branch(a, x):
    if x > 0.0:
        x = power(x, 5)
    return x * pairwise(a, 1, 4)


def ARGS():
    return np.array([0.5, 1.2, 0.8, 0.3, 1.1]), 1.15
