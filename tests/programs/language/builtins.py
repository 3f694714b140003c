"""abs, min, max, sum, pow, round, len, divmod, float, int, bool."""
import numpy as np


def at_top(a, x):
    s = abs(-x) + min(x, a[0]) + max(x, a[0], a[1]) + sum(a) + pow(x, 3)
    q, r = divmod(x * 7.0, 2.0)
    n = int(x * 3.0) + len(a) + round(x)
    return s * n + r * q + float(n) * bool(x) * x + round(x, 2) + pow(x, x)


def in_for(a, x):
    s = 0.0
    for i in range(len(a)):
        s = max(s, a[i]) + min(x, a[i] * 2.0) * abs(a[i] - x)
    return s


def in_while(a, x):
    n = 0
    while int(x) < 5:
        x = x + max(a) * min(a)
        n += int(x) % 2
    return x * float(n)


def in_branch(a, x):
    if bool(len(a)) and sum(a) > max(a):
        return sum([x, x * a[0]]) + min([a[1], x]) + max(a)
    return x


def ARGS():
    return np.array([0.9, 1.4, 0.6]), 1.37
