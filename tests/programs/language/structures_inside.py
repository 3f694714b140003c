"""Tuples, dicts and lists built and read inside the function."""
import numpy as np


def at_top(a, x):
    state = {"pos": a * x, "vel": x}
    state["vel"] = state["vel"] * 2.0
    pair = (state["pos"], state["vel"])
    return np.sum(pair[0]) * pair[1]


def in_for(a, x):
    state = (x, a)
    for i in range(3):
        p, q = state
        state = (p + q[i], q * p)
    return state[0] + np.sum(state[1])


def in_while(a, x):
    box = {"x": x, "n": 0}
    while box["n"] < 3:
        box["x"] = box["x"] * a[box["n"]] + x
        box["n"] += 1
    return box["x"]


def in_branch(a, x):
    parts = [a, a * 2.0]
    if x > 0.0:
        parts = [parts[1], parts[0] * x]
    return np.sum(parts[0] * parts[1])


def ARGS():
    return np.array([0.9, 1.4, 0.6]), 1.2
