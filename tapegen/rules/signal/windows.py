"""Window functions: weights that fall off towards both ends."""

from __future__ import annotations

import math

import numpy as np

from tapegen.rules.registry import expands, fixed


def places(M):
    """M points from -1 to 1; 0 for a single point."""
    return (2.0 * np.arange(M) - (M - 1)) / max(M - 1, 1)


@expands(np.bartlett, shapes=[fixed(5)])
def bartlett(M):
    return 1.0 - np.abs(places(M))


@expands(np.hanning, shapes=[fixed(5)])
def hanning(M):
    return 0.5 + 0.5 * np.cos(math.pi * places(M))


@expands(np.hamming, shapes=[fixed(5)])
def hamming(M):
    return 0.54 + 0.46 * np.cos(math.pi * places(M))


@expands(np.blackman, shapes=[fixed(5)])
def blackman(M):
    return 0.42 + 0.5 * np.cos(math.pi * places(M)) + 0.08 * np.cos(2.0 * math.pi * places(M))


@expands(np.kaiser, shapes=[fixed(5), fixed(2.5)])
def kaiser(M, beta):
    x = places(M)
    return np.i0(beta * np.sqrt(1.0 - x * x)) / np.i0(beta)
