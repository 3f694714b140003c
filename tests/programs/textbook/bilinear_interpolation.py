"""An image sampled along a path by bilinear interpolation, clamped at the border."""
import math

import numpy as np


def sample(image, y, x):
    h, w = image.shape
    y = min(max(y, 0.0), h - 1.001)
    x = min(max(x, 0.0), w - 1.001)
    i, j = int(y), int(x)
    dy, dx = y - i, x - j
    top = (1 - dx) * image[i, j] + dx * image[i, j + 1]
    bottom = (1 - dx) * image[i + 1, j] + dx * image[i + 1, j + 1]
    return (1 - dy) * top + dy * bottom


def f(image, radius, centre):
    s = 0.0
    for k in range(5):
        angle = 2 * math.pi * k / 5
        s += sample(image, centre[0] + radius * math.sin(angle), centre[1] + radius * math.cos(angle)) ** 2
    return s


def ARGS():
    return np.random.default_rng(12).uniform(size=(4, 4)), 1.35, (1.4, 1.3)
