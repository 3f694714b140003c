"""Random program of profile outputs, seed 0.

finds, sqrt: factor one half forgotten: 
"""

import math

import numpy as np


def f(q, p):
    p = np.sum(np.array([1.0 * p, p, p]) * np.sqrt(abs(np.linspace(0.0, 1.0, 3)) + 0.5) * np.sqrt(np.where(np.ones((3,)) <= p, np.full((3,), 1.0 * p), q) * np.where(np.ones((3,)) <= p, np.full((3,), 1.0 * p), q) + 0.25))
    buf = np.zeros(3)
    return 0.5 * buf.sum() + p


def ARGS():
    return (0.212, -0.753)


WRT = (0, 1)
