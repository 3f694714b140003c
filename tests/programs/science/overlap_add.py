"""Windowed frames, scaled one by one and added back with overlap."""
import numpy as np

def frames(x, size, hop):
    count = 1 + (len(x) - size) // hop
    return np.stack([x[k * hop : k * hop + size] for k in range(count)])

def overlap_add(blocks, hop):
    count, size = blocks.shape
    out = np.zeros((count - 1) * hop + size)
    for k in range(count):
        out[k * hop : k * hop + size] += blocks[k]
    return out

def f(x, gains, size=4, hop=2):
    window = 0.5 - 0.5 * np.cos(2 * np.pi * np.arange(size) / size)
    blocks = frames(x, size, hop) * window
    energy = np.sqrt(np.sum(blocks**2, axis=1, keepdims=True)) + 1e-3
    blocks /= energy
    blocks *= gains[:, None]
    return overlap_add(blocks, hop)

ARGS = (
    np.array([0.3, 0.1, -0.4, 0.8, 0.5, -0.2, 0.6, 0.9]),
    np.array([1.0, 0.5, 2.0]),
)
