"""Adaptive Simpson quadrature that passes on its function values, counts its levels and returns an error estimate."""
import math


def refine(a, b, fa, fm, fb, whole, tolerance, level, k):
    m = 0.5 * (a + b)
    fl = math.sin(k * (0.5 * (a + m)) ** 2)
    fr = math.sin(k * (0.5 * (m + b)) ** 2)
    left = (m - a) / 6.0 * (fa + 4.0 * fl + fm)
    right = (b - m) / 6.0 * (fm + 4.0 * fr + fb)
    delta = left + right - whole
    if level <= 0 or abs(delta) <= 15.0 * tolerance:
        return left + right + delta / 15.0, abs(delta)
    first, error = refine(a, m, fa, fl, fm, left, 0.5 * tolerance, level - 1, k)
    second, more = refine(m, b, fm, fr, fb, right, 0.5 * tolerance, level - 1, k)
    return first + second, error + more


def f(k, b):
    fa, fm, fb = 0.0, math.sin(k * (0.5 * b) ** 2), math.sin(k * b * b)
    whole = b / 6.0 * (fa + 4.0 * fm + fb)
    area, error = refine(0.0, b, fa, fm, fb, whole, 1e-7, 12, k)
    return area + 0.0 * error


ARGS = (3.0, 2.0)
