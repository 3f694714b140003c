"""Once a needless refusal."""

import numpy as np


TABLE = [1.0, 1.0, 1.0]


def f(sin):
    out = TABLE
    for x_bar_1 in range(2):
        value = TABLE
    else:
        for n_tape, backward in zip(out, value):
            pass
    return sin


def ARGS():
    return (1.0,)


WRT = (0,)
