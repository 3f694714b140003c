"""Nested tuples, lists, dicts and named tuples as arguments."""
from typing import NamedTuple

import numpy as np


class Layer(NamedTuple):
    weight: np.ndarray
    bias: float


def f(params, pair, layer, items):
    x = params["w"] * pair[0] + params["inner"]["b"]
    x = np.tanh(x @ layer.weight + layer.bias)
    for value in items:
        x = x * value
    (_, (scale, shift)) = pair
    return np.sum(x * scale) + shift + params["n"]


def ARGS():
    params = {"w": np.array([0.4, 0.9]), "inner": {"b": 0.3}, "n": 2}
    return params, (np.array([1.1, 0.6]), (1.5, 0.2)), Layer(np.array([[0.5, 0.2], [0.8, 1.1]]), 0.1), [0.7, 1.3, 0.9]
