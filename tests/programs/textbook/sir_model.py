"""SIR epidemic with a contact rate that drops when infections pass a threshold; misfit to counts."""
import numpy as np


def f(beta, gamma, i0, observed):
    s, i, r = 1.0 - i0, i0, 0.0
    misfit = 0.0
    for day in range(len(observed)):
        contact = beta
        if i > 0.12:
            contact = 0.5 * beta
        for sub in range(4):
            infections = contact * s * i * 0.25
            recoveries = gamma * i * 0.25
            s -= infections
            i += infections - recoveries
            r += recoveries
        misfit += (i - observed[day]) ** 2 / (observed[day] + 1e-3)
    return misfit


def ARGS():
    return 0.9, 0.25, 0.01, np.array([0.015, 0.03, 0.06, 0.1, 0.14, 0.16, 0.17])
