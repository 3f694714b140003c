"""Polynomials as arrays of coefficients, highest power first."""

from __future__ import annotations

import numpy as np

from tapegen.rules.helpers import flat, require
from tapegen.rules.registry import expands, fixed, pullback, refused


@expands(np.polyval, shapes=[(4,), (3,)], of_complex=True)
def polyval(p, x):
    """Horner's scheme; the columns of a matrix are polynomials."""
    p = np.asarray(p)
    if np.ndim(p) == 0:
        p = flat(p)
    y = np.zeros_like(x)
    if np.result_type(y, p) != y.dtype:
        if np.shape(p)[0] == 0:
            raise ValueError("the value of no coefficients has the type of x")
        y = np.astype(y, np.result_type(y, p))
    if np.ndim(p) > 1:
        y = y + np.zeros(np.shape(p)[1:], dtype=p.dtype)
    for k in range(np.shape(p)[0]):
        y = y * x + p[k]
    return y


@expands(np.poly, shapes=[(4,)])
def poly(seq_of_zeros):
    """The product of `x - zero`."""
    zeros = np.asarray(seq_of_zeros)
    require(np.ndim(zeros) == 1, "np.poly of a matrix goes through complex eigenvalues.", "Use np.linalg.det.")
    p = np.zeros(np.size(zeros) + 1, dtype=zeros.dtype)
    p[0] = 1.0
    for k in range(np.size(zeros)):
        p[1 : k + 2] -= zeros[k] * p[: k + 1]
    return p


def longer(p, q):
    """Coefficients of a polynomial with leading zeros, so that it is not shorter than another one."""
    p = flat(np.asarray(p))
    q = flat(np.asarray(q))
    return np.concatenate((np.zeros(max(0, np.size(q) - np.size(p)), dtype=p.dtype), p))


@expands(np.polyadd, shapes=[(4,), (3,)], of_complex=True)
def polyadd(a1, a2):
    return longer(a1, a2) + longer(a2, a1)


@expands(np.polysub, shapes=[(4,), (3,)], of_complex=True)
def polysub(a1, a2):
    return longer(a1, a2) - longer(a2, a1)


@expands(np.polymul, shapes=[(4,), (3,)], of_complex=True)
def polymul(a1, a2):
    return np.convolve(flat(np.asarray(a1)), flat(np.asarray(a2)))


@expands(np.polyder, shapes=[(4,)], of_complex=True)
def polyder(p, m=1):
    p = np.asarray(p)
    for _ in range(m):
        p = p[:-1] * np.arange(np.size(p) - 1, 0, -1)
    return p


@expands(np.polyint, shapes=[(4,)], of_complex=True)
def polyint(p, m=1, k=None):
    p = np.asarray(p)
    for j in range(m):
        constant = np.zeros(1, dtype=p.dtype)
        if k is not None and np.ndim(k) == 0:
            constant = np.reshape(k, (1,))
        elif k is not None:
            constant = np.reshape(k[j], (1,))
        p = np.concatenate((p / np.arange(np.size(p), 0, -1), constant))
    return p


@expands(np.polydiv, shapes=[(5,), (3,)])
def polydiv(u, v):
    """Long division; how many leading zeros the remainder loses is piecewise constant."""
    u = np.asarray(u)
    v = np.asarray(v)
    require(np.ndim(u) <= 1 and np.ndim(v) <= 1, "np.polydiv has a rule for vectors only.", "Divide them one by one.")
    u = flat(u)
    v = flat(v)
    n = np.size(v)
    count = np.size(u) - n + 1
    q = np.zeros(max(count, 1), dtype=np.result_type(u, v))
    r = np.copy(np.astype(u, np.result_type(u, v)))
    for k in range(count):
        q[k] = r[k] / v[0]
        r[k : k + n] -= q[k] * v
    rest = r[max(count, 0) :]
    small = np.concatenate((np.isclose(rest, 0.0), np.zeros(1, dtype=np.bool_)))
    return q, np.copy(r[max(count, 0) + min(np.argmin(small), np.size(rest) - 1) :])


@expands(np.polyfit, shapes=[fixed(np.array([0.1, 0.5, 0.9, 1.6, 2.2])), (5,), fixed(2)])
def polyfit(x, y, deg, rcond=None, full=False, w=None):
    """Least squares with columns of length 1."""
    require(not full, "np.polyfit(full=True) has no rule.", "Leave full out.")
    powers = np.vander(x, deg + 1)
    if w is not None:
        powers = powers * np.expand_dims(w, 1)
        y = y * w if np.ndim(y) == 1 else y * np.expand_dims(w, 1)
    scale = np.sqrt(np.sum(powers * powers, axis=0))
    c = np.linalg.pinv(powers / scale) @ y
    if np.ndim(y) == 1:
        return c / scale
    return c / np.expand_dims(scale, 1)


@expands(np.vander, shapes=[(4,)], of_complex=True)
def vander(x, N=None, increasing=False):
    if N is None:
        N = np.size(x)
    powers = np.arange(N)
    if not increasing:
        powers = powers[::-1]
    return np.expand_dims(x, 1) ** powers


def roots_of_any(p):
    """`np.roots`, complex in any case, so that the type of the result is known."""
    return np.roots(p).astype(np.result_type(p, np.complex64))


@pullback(
    np.roots, roots_of_any, shapes=[fixed(np.array([1.0 + 0.2j, -3.0 + 0j, 3.5 - 0.4j, -2.5 + 0j]))], of_complex=True
)
def roots(p, *, out, out_bar):
    """Where a polynomial is zero it stays zero; roots that are equal have no derivative (inf or NaN)."""
    powers = powers_of(out, np.size(p))
    return -(out_bar / slope_at(powers, np.asarray(p), out)) @ powers


@roots.pushforward
def roots_pushforward(p, *, out, p_dot):
    powers = powers_of(out, np.size(p))
    return -(powers @ np.asarray(p_dot)) / slope_at(powers, np.asarray(p), out)


def powers_of(out, count):
    """The powers of each root that multiply the coefficients."""
    return np.expand_dims(out, 1) ** np.arange(count, dtype=np.real(out).dtype)[::-1]


def slope_at(powers, p, out):
    """The derivative of the polynomial at its roots."""
    return powers[:, 1:] @ (p[:-1] * np.arange(np.size(p) - 1, 0, -1, dtype=np.real(out).dtype))


refused(
    np.poly1d,
    reason="its result is an object with coefficients inside.",
    advice="Keep the coefficients in an array: np.polyval(p, x), np.polyder, np.polyint, np.polymul.",
)
refused(np.sort_complex, reason="it orders complex numbers.", advice="Sort their parts with np.sort.")
