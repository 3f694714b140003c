"""Haar transform in place by levels, soft threshold of the details, inverse."""
import numpy as np

ROOT = np.sqrt(2.0)

def forward(x):
    n = len(x)
    while n > 1:
        half = n // 2
        a = (x[0:n:2] + x[1:n:2]) / ROOT
        d = (x[0:n:2] - x[1:n:2]) / ROOT
        x[:half], x[half:n] = a, d
        n = half

def inverse(x):
    n = 1
    while n < len(x):
        a, d = x[:n].copy(), x[n : 2 * n].copy()
        x[0 : 2 * n : 2] = (a + d) / ROOT
        x[1 : 2 * n : 2] = (a - d) / ROOT
        n *= 2

def f(x, threshold):
    work = x.copy()
    forward(work)
    details = work[1:]
    details[:] = np.sign(details) * np.maximum(np.abs(details) - threshold, 0)
    inverse(work)
    return np.sum((work - 0.5) ** 2)

ARGS = (np.array([0.3, 1.7, -0.4, 0.8, 2.5, 0.2, -1.6, 0.9]), 0.4)
