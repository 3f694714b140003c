"""Runge-Kutta-Fehlberg with step control: accepted and rejected steps depend on the values."""
import numpy as np

A = [
    [],
    [1 / 4],
    [3 / 32, 9 / 32],
    [1932 / 2197, -7200 / 2197, 7296 / 2197],
    [439 / 216, -8.0, 3680 / 513, -845 / 4104],
    [-8 / 27, 2.0, -3544 / 2565, 1859 / 4104, -11 / 40],
]
B5 = [16 / 135, 0.0, 6656 / 12825, 28561 / 56430, -9 / 50, 2 / 55]
B4 = [25 / 216, 0.0, 1408 / 2565, 2197 / 4104, -1 / 5, 0.0]


def f(y0, k, t_end):
    def rhs(y):
        return np.array([-k[0] * y[0] + k[1] * y[1] * y[1], k[0] * y[0] - k[1] * y[1] * y[1] - k[2] * y[1]])

    t, h = 0.0, 0.4
    y = y0.copy()
    while t < t_end:
        h = min(h, t_end - t)
        stages = np.zeros((6, 2))
        for i in range(6):
            yi = y.copy()
            for j in range(i):
                yi += h * A[i][j] * stages[j]
            stages[i] = rhs(yi)
        high = y + h * sum(b * s for b, s in zip(B5, stages))
        low = y + h * sum(b * s for b, s in zip(B4, stages))
        error = np.max(np.abs(high - low))
        if error <= 1e-4:
            t += h
            y = high
        h *= min(3.0, max(0.2, 0.9 * (1e-4 / error) ** 0.2))
    return y[0] + 2 * y[1]


def ARGS():
    return np.array([1.0, 0.2]), np.array([2.0, 3.0, 1.1]), 1.5
