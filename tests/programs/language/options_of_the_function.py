"""Options as arguments of the differentiated function itself."""
import numpy as np


def f(x, kind, bias, flag, n):
    if kind == "square":
        x = x * x
    if bias is None:
        bias = 2.0
    if flag:
        x = x * bias
    for _ in range(n):
        x = np.sin(x)
    return np.sum(x)


def ARGS():
    return np.array([0.6, 1.1]), "square", None, True, 2
