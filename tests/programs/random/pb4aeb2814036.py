"""Once a wrong value or type: the gradient has the precision of its argument."""

import numpy as np


def f(w):
    c = w
    return w.sum() + np.sum(c)


def ARGS():
    return (np.array([1., 2.], dtype=np.float32),)


WRT = (0,)
