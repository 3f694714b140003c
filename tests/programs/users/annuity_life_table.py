"""Value of a deferred joint-life annuity from a Makeham life table; option strings and early returns."""

import numpy as np


def survival(age, horizon, a, b, c):
    years = np.arange(horizon + 1)
    hazard = a * years + 1e-5 * b * c**age * (c**years - 1) / np.log(c)
    return np.exp(-hazard)


def annuity(p, v, deferral=0, kind="due", guarantee=0):
    if deferral >= len(p):
        return 0.0
    t = np.arange(len(p), dtype=float)
    pay = p.copy()
    pay[:guarantee] = np.maximum(pay[:guarantee], 1.0)
    pay[:deferral] = 0
    if kind == "due":
        return float(np.sum(pay * v**t))
    elif kind == "immediate":
        return float(np.sum(pay[1:] * v ** t[1:]))
    raise ValueError(f"unknown kind {kind!r}")


def f(makeham, rate, spouse_age):
    a, b, c = makeham
    v = 1 / (1 + rate)
    px = survival(65, 20, a, b, c)
    py = survival(spouse_age, 20, a, b * 0.9, c)
    joint = px * py
    last = px + py - joint
    premium = annuity(px, v, guarantee=5) + 0.5 * (annuity(py, v, kind="immediate") - annuity(joint, v, kind="immediate"))
    return premium + 0.1 * annuity(last, v, deferral=10) + annuity(last, v, deferral=100)


ARGS = ([0.0005, 3.0, 1.1], 0.03, 62.5)
