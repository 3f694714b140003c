"""Projections of an image: every pixel, met by np.ndenumerate, is shared between two cells of a detector."""

import numpy as np

def f(image, angles):
    n = image.shape[0]
    sino = np.zeros((len(angles), n))
    centre = (n - 1) / 2
    for a, theta in enumerate(angles):
        c, s = np.cos(theta), np.sin(theta)
        for (i, j), value in np.ndenumerate(image):
            t = (j - centre) * c + (i - centre) * s + centre
            lo = int(np.floor(t))
            w = t - lo
            if 0 <= lo < n:
                sino[a, lo] += (1 - w) * value
            if 0 <= lo + 1 < n:
                sino[a, lo + 1] += w * value
    target = np.ones_like(sino)
    return ((sino - target) ** 2).mean()

WRT = (0,)
ARGS = (np.random.default_rng(8).uniform(size=(4, 4)), np.array([0.1, 0.9, 1.8]))
