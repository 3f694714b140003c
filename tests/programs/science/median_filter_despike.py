"""A moving median removes spikes; edges are repeated, the rest passes."""
import numpy as np

def f(signal, threshold, half=1):
    n = signal.shape[0]
    clean = signal.copy()
    replaced = 0
    for i in range(n):
        lo, hi = max(0, i - half), min(n, i + half + 1)
        window = signal[lo:hi]
        med = np.median(window)
        mad = np.median(np.abs(window - med)) + 0.05
        if abs(signal[i] - med) > threshold * mad:
            clean[i] = med
            replaced += 1
    return np.sum(np.diff(clean) ** 2) + 0.1 * np.sum(clean) * replaced

WRT = (0,)
ARGS = (np.array([0.1, 0.2, 3.0, 0.35, 0.5, -2.0, 0.6]), 3.0)
