"""Structured matrices of `scipy.linalg` (Toeplitz, circulant, companion, ...)."""

from __future__ import annotations

import numpy as np
from scipy import linalg

from tapegen.rules.helpers import one_of
from tapegen.rules.linalg.scipy_linalg import one_matrix
from tapegen.rules.registry import expands, fixed, inactive

inactive(linalg.dft, linalg.hadamard, linalg.helmert, linalg.hilbert, linalg.invhilbert, linalg.pascal)
inactive(linalg.invpascal)


@expands(linalg.toeplitz, shapes=[(3,), (4,)])
def toeplitz(c, r=None):
    one_matrix(1 + np.ndim(c))
    row = c if r is None else np.atleast_1d(r)
    n, m = np.size(c), np.size(row)
    along = np.concatenate((c[::-1], row[1:]))
    return along[np.expand_dims(np.arange(n - 1, -1, -1), 1) + np.arange(m)]


@expands(linalg.block_diag, shapes=[(2, 3), (1, 2), (2, 1)])
def block_diag(*arrs):
    width = 0
    for a in arrs:
        one_matrix(np.ndim(np.atleast_2d(a)))
        width = width + np.shape(np.atleast_2d(a))[1]
    rows = ()
    before = 0
    for a in arrs:
        block = np.atleast_2d(a)
        height, own = np.shape(block)
        left = np.zeros((height, before), dtype=block.dtype)
        right = np.zeros((height, width - before - own), dtype=block.dtype)
        rows = rows + (np.concatenate((left, block, right), axis=1),)
        before = before + own
    return np.concatenate(rows, axis=0)


@expands(linalg.hankel, shapes=[(3,), (4,)])
def hankel(c, r=None):
    one_matrix(1 + np.ndim(c))
    n = np.size(c)
    if r is None:
        along = np.concatenate((c, np.zeros_like(c)))
        return along[np.expand_dims(np.arange(n), 1) + np.arange(n)]
    along = np.concatenate((c, r[1:]))
    return along[np.expand_dims(np.arange(n), 1) + np.arange(np.size(r))]


@expands(linalg.circulant, shapes=[(4,)])
def circulant(c):
    one_matrix(1 + np.ndim(c))
    n = np.size(c)
    return c[np.mod(np.expand_dims(np.arange(n), 1) - np.arange(n), n)]


@expands(linalg.companion, shapes=[(4,)])
def companion(a):
    one_matrix(1 + np.ndim(a))
    n = np.size(a) - 1
    below = np.eye(n, dtype=a.dtype)[:-1]
    return np.concatenate((np.expand_dims(-a[1:] / a[0], 0), below), axis=0)


@expands(linalg.leslie, shapes=[(4,), (3,)])
def leslie(f, s):
    one_matrix(1 + np.ndim(f))
    below = np.concatenate((np.diag(s), np.zeros((np.size(s), 1), dtype=s.dtype)), axis=1)
    return np.concatenate((np.expand_dims(f, 0), below), axis=0)


@expands(linalg.fiedler, shapes=[(4,)])
def fiedler(a):
    one_matrix(1 + np.ndim(a))
    if np.size(a) == 0:
        raise ValueError("scipy.linalg.fiedler of no numbers is a vector, not a matrix")
    return np.abs(np.expand_dims(a, 1) - a)


@expands(linalg.fiedler_companion, shapes=[(5,)])
def fiedler_companion(a):
    """Odd coefficients to the right of the diagonal, even ones below it, two places apart."""
    one_matrix(1 + np.ndim(a))
    n = np.size(a) - 1
    c = -a[1:] / a[0]
    matrix = np.zeros((n, n), dtype=a.dtype)
    for k in range(3, n, 2):
        matrix[k, k - 2] = 1.0
    for k in range(0, n - 2, 2):
        matrix[k, k + 2] = 1.0
    matrix[0, 0] = c[0]
    for k in range(1, n, 2):
        matrix[k - 1, k] = c[k]
    for k in range(2, n, 2):
        matrix[k, k - 1] = c[k]
    if n > 1:
        matrix[1, 0] = 1.0
    return matrix


@expands(linalg.convolution_matrix, shapes=[(3,), fixed(4)])
def convolution_matrix(a, n, mode="full"):
    one_matrix(1 + np.ndim(a))
    one_of("mode", mode, ("full", "same", "valid"))
    zeros = np.zeros(n - 1, dtype=a.dtype)
    along = np.concatenate((zeros, a, zeros))
    place = np.expand_dims(np.arange(np.size(a) + n - 1), 1) - np.arange(n) + (n - 1)
    m = np.size(a)
    if mode == "same":
        place = place[(min(m, n) - 1) // 2 : (min(m, n) - 1) // 2 + max(m, n)]
    elif mode == "valid":
        place = place[min(m, n) - 1 : max(m, n)]
    return along[place]
