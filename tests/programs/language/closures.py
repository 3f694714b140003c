"""Nested functions, closures and lambdas."""
import math


def at_top(x, y):
    def inner(t):
        return t * x + y

    square = lambda v: v * v
    return square(inner(2.0)) + inner(y)


def in_for(x, y):
    s = 0.0
    for i in range(3):
        term = lambda z: math.sin(z) * x + i
        s += term(y) * s + term(x)
    return s


def in_while(x, y):
    def step(v):
        return v + 0.5 * (y - v * v)

    n = 0
    while n < 5:
        x = step(x)
        n += 1
    return x


def in_branch(x, y):
    if x > 0.0:
        def g(t):
            return t * y
    else:
        def g(t):
            return t + y
    return g(x) * g(y)


ARGS = (1.3, 0.8)
