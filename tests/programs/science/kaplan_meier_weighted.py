"""Weighted Kaplan-Meier curve with censoring, built as a list of steps and interpolated."""
import numpy as np

def survival(times, events, weights):
    order = np.argsort(times)
    at_risk = weights.sum()
    s = 1.0
    steps = [(0.0, 1.0)]
    for i in order:
        if events[i]:
            s *= 1.0 - weights[i] / at_risk
            steps.append((times[i], s))
        at_risk -= weights[i]
    return steps

def at(steps, t):
    value = steps[0][1]
    for time, s in steps:
        if time > t:
            break
        value = s
    return value

def f(weights, times):
    events = np.array([True, False, True, True, False, True])
    steps = survival(times, events, weights)
    area = 0.0
    for (t0, s0), (t1, _) in zip(steps[:-1], steps[1:]):
        area += (t1 - t0) * s0
    return area + at(steps, 2.5)

ARGS = (
    np.array([1.0, 0.8, 1.2, 0.9, 1.1, 0.7]),
    np.array([3.1, 1.2, 0.7, 2.2, 4.0, 5.3]),
)
