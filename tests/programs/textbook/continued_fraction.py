"""Incomplete gamma function by series or by Lentz's continued fraction, whichever converges."""
import math


def series(a, x):
    ap = a
    total = term = 1.0 / a
    for _ in range(200):
        ap += 1.0
        term *= x / ap
        total += term
        if abs(term) < abs(total) * 1e-16:
            break
    return total * math.exp(-x + a * math.log(x) - math.lgamma(a))


def fraction(a, x):
    tiny = 1e-300
    b = x + 1.0 - a
    c = 1.0 / tiny
    d = 1.0 / b
    h = d
    for i in range(1, 200):
        an = -i * (i - a)
        b += 2.0
        d = an * d + b
        if abs(d) < tiny:
            d = tiny
        c = b + an / c
        if abs(c) < tiny:
            c = tiny
        d = 1.0 / d
        delta = d * c
        h *= delta
        if abs(delta - 1.0) < 1e-15:
            break
    return math.exp(-x + a * math.log(x) - math.lgamma(a)) * h


def gammp(a, x):
    if x < a + 1.0:
        return series(a, x)
    return 1.0 - fraction(a, x)


def f(a, x):
    return gammp(a, x) * gammp(a, 3.0 * x)


ARGS = (1.7, 1.4)
