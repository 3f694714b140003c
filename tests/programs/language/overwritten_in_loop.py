"""Values that rules reuse (exp, sqrt, tanh, division) overwritten in the same loop."""
import numpy as np


def f(x, y):
    for i in range(4):
        x = np.exp(-x)
        y = np.sqrt(y + x)
        x = x / y
        y = np.tanh(y) * x
        x = 1.0 / (x + y)
    return x * y


ARGS = (0.6, 1.3)
