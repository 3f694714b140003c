"""Adaptive Simpson quadrature, recursive, of a function with a parameter."""
import math


def simpson(f, a, b):
    c = (a + b) / 2
    return (b - a) / 6 * (f(a) + 4 * f(c) + f(b))


def adaptive(f, a, b, eps, whole):
    c = (a + b) / 2
    left = simpson(f, a, c)
    right = simpson(f, c, b)
    delta = left + right - whole
    if abs(delta) <= 15 * eps:
        return left + right + delta / 15
    return adaptive(f, a, c, eps / 2, left) + adaptive(f, c, b, eps / 2, right)


def f(width, upper):
    integrand = lambda t: math.exp(-((t - 0.3) / width) ** 2) * math.cos(t)
    return adaptive(integrand, 0.0, upper, 1e-6, simpson(integrand, 0.0, upper))


ARGS = (0.35, 1.7)
