"""The secant method with an early return."""
import math


def f(e, m):
    def kepler(x):
        return x - e * math.sin(x) - m

    x0, x1 = m, m + e
    f0, f1 = kepler(x0), kepler(x1)
    for _ in range(50):
        if abs(f1) < 1e-14:
            return x1
        x0, x1 = x1, x1 - f1 * (x1 - x0) / (f1 - f0)
        f0, f1 = f1, kepler(x1)
    return x1


ARGS = (0.4, 1.1)
