"""Registration of two pictures: affine warp with bilinear sampling, mutual information with soft bins."""

import numpy as np


def sample(img, y, x):
    h, w = img.shape
    inside = (y >= 0) & (y <= h - 1) & (x >= 0) & (x <= w - 1)
    y0 = np.clip(np.floor(y).astype(int), 0, h - 2)
    x0 = np.clip(np.floor(x).astype(int), 0, w - 2)
    fy, fx = y - y0, x - x0
    top = img[y0, x0] * (1 - fx) + img[y0, x0 + 1] * fx
    bottom = img[y0 + 1, x0] * (1 - fx) + img[y0 + 1, x0 + 1] * fx
    return np.where(inside, top * (1 - fy) + bottom * fy, 0.0)


def warp(img, theta, shift, scale=1.0):
    h, w = img.shape
    gy, gx = np.meshgrid(np.arange(h) - (h - 1) / 2, np.arange(w) - (w - 1) / 2, indexing="ij")
    c, s = np.cos(theta), np.sin(theta)
    y = scale * (c * gy - s * gx) + (h - 1) / 2 + shift[0]
    x = scale * (s * gy + c * gx) + (w - 1) / 2 + shift[1]
    return sample(img, y, x)


def mutual_information(a, b, bins=4, width=0.2):
    centres = np.linspace(0, 1, bins)
    wa = np.exp(-((a.ravel()[:, None] - centres) ** 2) / width)
    wb = np.exp(-((b.ravel()[:, None] - centres) ** 2) / width)
    wa /= wa.sum(axis=1, keepdims=True)
    wb /= wb.sum(axis=1, keepdims=True)
    joint = wa.T @ wb / len(wa)
    pa, pb = joint.sum(1), joint.sum(0)
    return np.sum(joint * np.log(joint / np.outer(pa, pb)))


def f(theta, shift, moving):
    fixed = np.fromfunction(lambda i, j: 0.5 + 0.4 * np.sin(i * 0.9 + j * 0.5), (6, 6))
    warped = warp(moving, theta, shift)
    mask = warped != 0
    ssd = ((warped - fixed)[mask] ** 2).mean()
    return ssd - mutual_information(fixed, warped)


ARGS = (0.11, np.array([0.23, -0.31]), np.random.default_rng(3).uniform(0.1, 0.9, (6, 6)))
