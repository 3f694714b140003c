"""Diffusion in three dimensions: a view of the core, neighbours by lists of slices, results written through out=."""

import numpy as np

def f(u0, alpha, steps=3):
    u = u0.copy()
    lap = np.empty_like(u[1:-1, 1:-1, 1:-1])
    core = u[1:-1, 1:-1, 1:-1]
    for _ in range(steps):
        np.multiply(core, -6.0, out=lap)
        for axis in range(3):
            for sl in (slice(None, -2), slice(2, None)):
                idx = [slice(1, -1)] * 3
                idx[axis] = sl
                np.add(lap, u[tuple(idx)], out=lap)
        core += alpha * lap
    return float((u[..., ::2] ** 2).sum())

WRT = (0, 1)
ARGS = (np.random.default_rng(2).uniform(size=(4, 5, 4)), 0.1)
