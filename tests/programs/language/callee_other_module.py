"""Functions imported from another module, which has globals of its own."""
import numpy as np

from tests.programs.language import shared_formulas
from tests.programs.language.shared_formulas import decay as fading


def at_top(x, y):
    return fading(x, y) * shared_formulas.scale(y)


def in_for(x, y):
    s = 0.0
    for i in range(3):
        s += shared_formulas.decay(x, rate=y * i)
    return s


def in_while(x, y):
    while fading(x, y) > 0.3:
        x = x + shared_formulas.scale(0.2)
    return x * y + fading(x, y)


def in_branch(x, y):
    if shared_formulas.scale(x) > 0.0:
        y = fading(y, x)
    return np.square(y)


ARGS = (0.8, 1.1)
