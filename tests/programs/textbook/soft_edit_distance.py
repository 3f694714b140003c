"""Edit distance with learned costs and a soft minimum, on strings given as code points."""
import math

import numpy as np


def softmin(a, b, c, temperature):
    low = min(a, b, c)
    total = math.exp((low - a) / temperature) + math.exp((low - b) / temperature) + math.exp((low - c) / temperature)
    return low - temperature * math.log(total)


def f(insertion, deletion, substitution, temperature, first, second):
    previous = [j * insertion for j in range(len(second) + 1)]
    for i, p in enumerate(first):
        current = [(i + 1) * deletion]
        for j, q in enumerate(second):
            same = 0.0 if p == q else substitution
            current.append(softmin(previous[j] + same, previous[j + 1] + deletion, current[j] + insertion, temperature))
        previous = current
    return previous[-1]


def ARGS():
    return 1.0, 1.2, 1.7, 0.4, np.array([3, 1, 4, 1, 5]), np.array([3, 4, 1, 9])
