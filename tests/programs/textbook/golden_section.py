"""Golden-section search for a minimum; its value depends smoothly on the parameters."""
import math


def f(a, b):
    def g(x):
        return math.cosh(a * (x - 0.7)) + b * x * x

    ratio = (math.sqrt(5.0) - 1.0) / 2.0
    lo, hi = -1.0, 2.0
    x1, x2 = hi - ratio * (hi - lo), lo + ratio * (hi - lo)
    f1, f2 = g(x1), g(x2)
    while abs(hi - lo) > 1e-7:
        if f1 < f2:
            hi, x2, f2 = x2, x1, f1
            x1 = hi - ratio * (hi - lo)
            f1 = g(x1)
        else:
            lo, x1, f1 = x1, x2, f2
            x2 = lo + ratio * (hi - lo)
            f2 = g(x2)
    return g((lo + hi) / 2)


ARGS = (1.3, 0.4)
