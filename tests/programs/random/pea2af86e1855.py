"""Random program of profile overwrite, seed 41260655.

O2, UnboundLocalError : File '/tmp/audit/fuzz/tests/random_programs/adapter.py', line 115, in __call
"""

import math

import numpy as np


def f(q):
    for j1 in range(1):
        for k in range(2):
            q -= q
    return (q, q)


def ARGS():
    return (1.5,)


WRT = (0,)
