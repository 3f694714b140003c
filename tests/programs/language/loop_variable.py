"""The loop variable changed in the body and read after the loop; a counter changed in the loop it bounds."""
import numpy as np


def f(a):
    s = 0.0
    n = 3
    for i in range(n):
        n = 10
        s += a[i] * i
        i = i + 1
        s = s * a[i]
    s += a[i] * n
    for j in range(0, 4, 2):
        last = a[j]
    return s * last * j


def ARGS():
    return (np.array([0.9, 1.4, 0.6, 1.1]),)
