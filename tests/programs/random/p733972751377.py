"""Once a crash: a choice of two precisions as a condition."""

import numpy as np


def f(w, z):
    for i in range(1):
        s = 1.0
    if w[0] if w else s:
        pass
    return 1.0


def ARGS():
    return (np.array([1.5], dtype=np.float32), 1.0)


WRT = (1,)
