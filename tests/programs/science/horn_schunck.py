"""Optical flow by Horn and Schunck: derivatives of images, iterations with a mean over neighbours, warping back."""

import numpy as np


def mean_of_neighbours(a):
    padded = np.pad(a, 1, mode="edge")
    return 0.25 * (padded[:-2, 1:-1] + padded[2:, 1:-1] + padded[1:-1, :-2] + padded[1:-1, 2:])


def bilinear(image, y, x):
    h, w = image.shape
    y = np.clip(y, 0.0, h - 1.001)
    x = np.clip(x, 0.0, w - 1.001)
    i, j = y.astype(int), x.astype(int)
    a, b = y - i, x - j
    return (
        (1 - a) * (1 - b) * image[i, j]
        + (1 - a) * b * image[i, j + 1]
        + a * (1 - b) * image[i + 1, j]
        + a * b * image[i + 1, j + 1]
    )


def f(first, second, alpha, iterations=8):
    gy, gx = np.gradient(0.5 * (first + second))
    gt = second - first
    u = np.zeros_like(first)
    v = np.zeros_like(first)
    bottom = alpha**2 + gx**2 + gy**2
    for _ in range(iterations):
        um, vm = mean_of_neighbours(u), mean_of_neighbours(v)
        common = (gx * um + gy * vm + gt) / bottom
        u, v = um - gx * common, vm - gy * common
    yy, xx = np.mgrid[: first.shape[0], : first.shape[1]]
    warped = bilinear(second, yy + v, xx + u)
    return np.sum((warped - first) ** 2) + 0.1 * np.sum(u**2 + v**2)


_rng = np.random.default_rng(9)
ARGS = (_rng.uniform(size=(4, 5)), _rng.uniform(size=(4, 5)), 0.8)
