"""Names that generated code may want for itself: bars, tapes, shadows of builtins, Greek letters."""
import numpy as np


def f(x_bar, x, np_tape, α):
    t = x * x_bar
    t_1 = t + α
    tape = np.sin(t_1) * np_tape
    out_bar = tape
    value = out_bar * t
    range_ = value + x
    len_ = [range_, tape]
    trips = 0
    for i in range(2):
        trips += 1
        t_bar = len_[i] * trips
        t = t + t_bar
    max = t * 2.0
    return max + range_


ARGS = (0.9, 1.4, 0.6, 0.3)
