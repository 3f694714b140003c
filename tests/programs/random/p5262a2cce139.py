"""Random program of profile alias, seed 13.

crash, joint ValueError generated text: File '<tapegen f_value_and_grad 1edd6c490eae>', line 92, in 
"""

import math

import numpy as np


def f(v):
    for j in range(5):
        x1, x = (1.0, np.sum(v[v < 1.0]))
    return x


def ARGS():
    return (np.array([1.0, 1.0]),)


WRT = (0,)
