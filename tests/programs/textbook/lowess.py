"""Locally weighted regression with tricube weights of the nearest points, made robust by bisquare weights."""
import numpy as np


def tricube(u):
    return np.where(np.abs(u) < 1, (1 - np.abs(u) ** 3) ** 3, 0.0)


def f(x, y, share=0.6, rounds=2):
    n = len(x)
    k = int(np.ceil(share * n))
    robust = np.ones(n)
    fitted = np.empty(n)
    for _ in range(rounds):
        for i in range(n):
            distance = np.abs(x - x[i])
            width = np.sort(distance)[k - 1]
            w = robust * tricube(distance / (1.001 * width))
            sw, swx, swy = w.sum(), (w * x).sum(), (w * y).sum()
            swxx, swxy = w @ x**2, w @ (x * y)
            slope = (sw * swxy - swx * swy) / (sw * swxx - swx**2)
            fitted[i] = (swy - slope * swx) / sw + slope * x[i]
        error = np.abs(y - fitted)
        robust = np.clip(1 - (error / (6 * np.median(error))) ** 2, 0, 1) ** 2
    return ((y - fitted) ** 2).mean() + fitted[n // 2]


def ARGS():
    x = np.array([0.1, 0.45, 0.8, 1.3, 1.55, 2.1, 2.4, 3.05])
    return x, np.array([0.2, 0.6, 0.5, 1.1, 2.4, 0.9, 0.7, 0.35])
