"""Trigonometric and hyperbolic ufuncs."""
import numpy as np


def at_top(a, b):
    s = np.sin(a) + np.cos(b) + np.tan(a) + np.arcsin(a * 0.5) + np.arccos(b * 0.3) + np.arctan(a)
    h = np.sinh(a) + np.cosh(b) + np.tanh(a) + np.arcsinh(a) + np.arccosh(b + 1.5) + np.arctanh(a * 0.5)
    d = np.arctan2(a, b) + np.hypot(a, b) + np.deg2rad(a) + np.rad2deg(b) + np.sinc(a)
    return np.sum(s * h + d)


def in_for(a, b):
    for i in range(3):
        a[i] = np.sin(a[i] * b[i]) + np.arctan2(a[i - 1], b[i])
    return np.sum(a)


def in_while(a, b):
    while np.sum(np.abs(a)) > 0.9:
        a = np.tanh(a) * np.cos(b)
    return np.sum(a * b)


def in_branch(a, b):
    if np.cos(a[0]) > 0.0:
        b = np.arctan(a) / np.cosh(b)
    return np.sum(b)


def ARGS():
    return np.array([0.3, 0.8, 0.5]), np.array([1.2, 0.4, 0.9])
