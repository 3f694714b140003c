"""A real discrete Fourier transform written as two matrices; noise is subtracted with a floor."""
import numpy as np

def dft_matrices(n):
    k = np.arange(n)
    angle = -2.0 * np.pi * np.outer(k, k) / n
    return np.cos(angle), np.sin(angle)

def f(x, noise, floor=0.1):
    n = x.size
    c, s = dft_matrices(n)
    re, im = c @ x, s @ x
    mag = np.hypot(re, im)
    phase = np.arctan2(im, re)
    reduced = np.where(mag - noise > floor * mag, mag - noise, floor * mag)
    re, im = reduced * np.cos(phase), reduced * np.sin(phase)
    return (c @ re + s @ im) / n

WRT = (0, 1)
ARGS = (np.array([0.31, 0.82, -0.43, 0.94, -0.25]), 0.3)
