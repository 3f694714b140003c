"""Random program of profile names, seed 11.

crash, split ValueError generated text: File '<tapegen f_pullback 20698f910f96>', line 123, in f_pul
"""

import math

import numpy as np


def f(result):
    for i1 in range(3):
        s = np.sum(result[result > 1.0])
    s, i_1 = (1.0, s)
    return result + i_1


def ARGS():
    return (np.array([1.0, 2.0]),)


WRT = (0,)
