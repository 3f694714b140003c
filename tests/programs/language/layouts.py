"""Fortran order, strided, reversed and transposed arguments."""
import numpy as np


def f(fortran, strided, backwards, turned):
    s = np.sum(fortran * turned)
    for i in range(len(strided)):
        s += strided[i] * backwards[-1 - i]
    fortran[0] *= strided[:2]
    backwards[1:] += fortran[0, 0]
    return s + np.sum(fortran @ turned.T) + np.sum(backwards**2)


def ARGS():
    base = np.linspace(0.5, 1.6, 12)
    fortran = np.asfortranarray(base[:4].reshape(2, 2))
    return fortran, base[::4], np.linspace(1.0, 2.0, 3)[::-1], base[8:].reshape(2, 2).T
