"""A chain of element-wise functions and its sum: one pass for the value and the gradient."""

import math

import numpy as np

from benchmarks.hand import by_hand


@by_hand
def hand(x, y):
    n = x.size
    x_bar, y_bar = np.empty(n), np.empty(n)
    total = 0.0
    for i in range(n):
        a, b = x[i], y[i]
        sine, decay = math.sin(a), math.exp(-b * b)
        u = sine * decay
        v = math.tanh(u + a * b)
        total += u * v + math.sin(v) * b
        v_bar = u + math.cos(v) * b
        w_bar = v_bar * (1.0 - v * v)
        u_bar = v + w_bar
        x_bar[i] = u_bar * math.cos(a) * decay + w_bar * b
        y_bar[i] = math.sin(v) + w_bar * a - 2.0 * b * u_bar * u
    return total, (x_bar, y_bar)
