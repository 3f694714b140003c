"""Once a needless refusal: a negative constant to a whole power."""

import numpy as np


def f(x):
    value = -0.5 if not True else -1
    return x * (value ** 3.0) ** 1


def ARGS():
    return (1.5,)


WRT = (0,)
