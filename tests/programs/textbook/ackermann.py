"""Ackermann's function on integers, which decides how often floats are multiplied; and a walk of two functions."""


def ackermann(m, n, x, y):
    if m == 0:
        return n + 1, x * 1.01 + 0.01 * y
    if n == 0:
        return ackermann(m - 1, 1, x + 0.001 * y * y, y)
    inner, x = ackermann(m, n - 1, x, y)
    return ackermann(m - 1, inner, 0.99 * x, y)


def climb(x, energy):
    if energy <= 0.0:
        return x
    return slide(x * 1.1, energy - x)


def slide(x, energy):
    if energy < 0.5:
        return x * x
    return climb(x - 0.05 * energy, energy - 0.4) + 0.1 * energy


def f(m, n, x, y):
    value, z = ackermann(m, n, x, y)
    return z * value + climb(y, 3.0 * x)


ARGS = (2, 2, 1.0, 0.7)
