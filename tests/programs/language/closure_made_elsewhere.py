"""A function that was made by a function, with values and arrays in its closure."""
import numpy as np


def make(order, knots):
    scale = 1.0 / order

    def model(x, w):
        s = 0.0
        for k in range(order):
            s += w[k] * np.sum((knots - x) ** 2) ** k * scale
        return s

    return model


f = make(3, np.array([0.1, 0.5, 0.7]))


def ARGS():
    return 0.4, np.array([0.3, 1.1, -0.6])
