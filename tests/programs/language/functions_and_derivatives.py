"""Pairs of functions of which one is the derivative of the other, so that the backward sweep reads what is known."""

import math

import numpy as np


def at_top(x, y):
    return math.sin(x) * math.cos(x) + math.exp(y) * math.sqrt(x) + math.log(x) / x


def in_for(x, y):
    total = 0.0
    for k in range(4):
        s = math.sin(x)
        c = np.cos(x)
        total += s * y + c
        x = x + 0.1 * c * s
        e = np.exp(total)
        y = y * np.exp(total) / e + 0.1 * np.tanh(e)
    return total * x * y


def in_while(x, y):
    step = 1.0
    while abs(step) > 1e-9:
        step = (x - y * math.sin(x) - 0.7) / (1.0 - y * math.cos(x))
        x -= step
    return x * x + y


def in_branch(x, y):
    c = math.cos(x)
    if c > -2.0:
        x = x + 1.0
        z = math.sin(x) * c
    else:
        z = c
    return z * y * math.cosh(x) + math.sinh(x)


ARGS = (0.8, 0.3)
