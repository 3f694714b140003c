"""Loops and branches seven deep, with escapes from several levels."""
import numpy as np


def f(a, x):
    total = 0.0
    for i in range(3):
        if i != 1:
            k = 0
            while k < 3:
                for j in range(2):
                    if a[j] > 0.5:
                        for m in range(3):
                            if m == 2 and i == 2:
                                break
                            if m == 1:
                                x = x * 1.05
                                continue
                            total += a[(i + j + m) % 4] * x
                            while total > 4.0:
                                total = total / 2.0
                                if k == 2:
                                    x = x + 0.01 * total
                    else:
                        total -= a[j] * a[k]
                k += 1
        else:
            total = total * x
    return total * x


def ARGS():
    return np.array([0.4, 1.3, 0.9, 1.7]), 0.8
