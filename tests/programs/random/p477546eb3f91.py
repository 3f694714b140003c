"""Once a crash: a function without a result."""

import numpy as np


def f(p):
    pass


def ARGS():
    return (1.0,)


WRT = (0,)
