"""Once a needless refusal: a list of one value."""

import numpy as np


def f(q):
    b1 = [q for i in range(2)]
    return np.sum(b1)


def ARGS():
    return (1.0,)


WRT = (0,)
