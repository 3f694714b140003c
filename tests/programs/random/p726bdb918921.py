"""Random program of profile calls, seed 11.

crash, joint IndexError generated text: specialise.py, in _run
"""

import math

import numpy as np


def f(b, w):
    x = b.item()
    return 1.0


def ARGS():
    return (np.array(1.0), np.array([1.0]))


WRT = (1,)
