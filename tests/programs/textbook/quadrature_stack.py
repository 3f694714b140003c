"""Adaptive trapezoid rule with an explicit stack of intervals."""
import numpy as np


def f(k, upper):
    def g(x):
        return np.sin(k * x) / (1 + x**2)

    stack = [(0.0, upper)]
    total = 0.0
    while stack:
        a, b = stack.pop()
        m = 0.5 * (a + b)
        one = 0.5 * (b - a) * (g(a) + g(b))
        two = 0.25 * (b - a) * (g(a) + 2 * g(m) + g(b))
        if abs(two - one) < 3e-4 * (b - a):
            total += two + (two - one) / 3
        else:
            stack.append((a, m))
            stack.append((m, b))
    return total


ARGS = (1.9, 2.2)
