"""Warnings that a program makes errors of, and what handles them: here nothing warns."""

import warnings

import numpy as np


def conformal(latitude, e):
    f1, f2 = 1.0 - e * np.sin(latitude), 1.0 + e * np.sin(latitude)
    try:
        with warnings.catch_warnings(record=True):
            warnings.simplefilter("error")
            found = 2.0 * np.arctan(np.sqrt((1.0 + np.sin(latitude)) / (1.0 - np.sin(latitude)) * (f1 / f2) ** e))
    except (ArithmeticError, RuntimeWarning):
        found = np.pi / 2.0
    return found


def periods(rate, payment, value):
    rate, payment, value = map(np.asarray, [rate, payment, value])
    no_rate = False
    with np.errstate(divide="raise"):
        try:
            z = payment * (1.0 + rate) / rate
        except FloatingPointError:
            no_rate = True
    if no_rate:
        return value / payment
    return np.log(z / (value + z)) / np.log(1.0 + rate)


def ratio(a, b):
    with np.errstate(invalid="raise", under="ignore"):
        return np.sum(np.sqrt(a / b) + b)


def f(x, e, rate, a):
    total = ratio(a, x) + np.exp(x)
    for k in range(3):
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            if k == 1:
                continue
            a = a * np.log(a + k + 2.0)
        total += a.sum()
    return conformal(x, e), periods(rate, -150.0, 8000.0), total


ARGS = (0.7, 0.08, 0.005, np.array([0.5, 1.5, 2.5]))
