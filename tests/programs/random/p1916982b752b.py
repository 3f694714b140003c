"""Once a needless refusal: an empty index array."""

import numpy as np


def f(b):
    b[1:1] -= b[np.array([], dtype=np.int64)]
    return b.sum()


def ARGS():
    return (np.array([1., 2.]),)


WRT = (0,)
