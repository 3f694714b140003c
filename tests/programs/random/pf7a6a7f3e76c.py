"""Once a crash: a constant result."""

import numpy as np


def f(y):
    return 2.0


def ARGS():
    return (1.0,)


WRT = (0,)
