"""Once a needless refusal: a negative number to a whole power."""

import numpy as np


def f(f_bar):
    len_ = (-1) ** 2.0
    return len_ * f_bar


def ARGS():
    return (1.5,)


WRT = (0,)
