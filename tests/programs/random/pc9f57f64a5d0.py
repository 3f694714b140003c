"""Once a lost exception: an unused integer division by zero."""

import numpy as np


def f(x, k):
    y = 1 // k
    return x * x


def ARGS():
    return (1.5, 0)


WRT = (0,)
