"""Once a lost exception: a call that raises, its value unused."""

import math

import numpy as np


def f(v):
    z = math.log(-1.0)
    return v


def ARGS():
    return (1.0,)


WRT = (0,)
