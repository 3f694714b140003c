"""Once a lost exception: an unused remainder of a division by zero."""

import numpy as np


def f(x, k):
    for i in range(k):
        y = 1 % (i - 2)
    return x * x


def ARGS():
    return (1.5, 5)


WRT = (0,)
