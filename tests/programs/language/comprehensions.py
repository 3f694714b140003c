"""List comprehensions over ranges, arrays and tuples; filtered and nested."""
import numpy as np


def at_top(a, x):
    squares = [v * v for v in a]
    table = [x**k for k in range(4)]
    even = [a[i] * i for i in range(len(a)) if i % 2 == 0]
    return sum(squares) * table[3] + sum(even) + len(even)


def in_for(a, x):
    s = 0.0
    for i in range(3):
        row = [x * j + a[i] for j in range(i + 1)]
        s += row[-1] * row[0]
    return s


def in_while(a, x):
    k = 0
    while k < 2:
        a = np.array([v * x + k for v in a])
        k += 1
    return np.sum(a * a)


def in_branch(a, x):
    if x > 0.0:
        m = np.array([[u * v for u in a] for v in a])
    else:
        m = np.zeros((3, 3))
    return np.sum(m * m)


def ARGS():
    return np.array([0.7, 1.3, 0.4]), 0.9
