"""A network written as classes, with layers in a list."""
import numpy as np


class Dense:
    def __init__(self, w, b, activation):
        self.w = w
        self.b = b
        self.activation = activation

    def __call__(self, x):
        z = x @ self.w + self.b
        if self.activation == "relu":
            return np.maximum(0, z)
        if self.activation == "tanh":
            return np.tanh(z)
        return z


class Network:
    def __init__(self, layers):
        self.layers = layers

    def predict(self, x):
        for layer in self.layers:
            x = layer(x)
        return x


def f(w1, b1, w2, b2, x, y):
    net = Network([Dense(w1, b1, "tanh"), Dense(w2, b2, None)])
    return np.mean((net.predict(x) - y) ** 2)


def ARGS():
    rng = np.random.default_rng(18)
    shapes = ((2, 3), (3,), (3, 1), (1,), (4, 2), (4, 1))
    return tuple(rng.normal(size=shape) for shape in shapes)


WRT = ("w1", "b1", "w2", "b2")
