"""Matrix functions (`expm`, `logm`, `sqrtm`, ...) of `scipy.linalg`, for one matrix at a time."""

from __future__ import annotations

import numpy as np
from scipy import linalg

from tapegen.rules.external_functions import complex_by_value, of_matrices
from tapegen.rules.helpers import compile_time, require
from tapegen.rules.linalg.scipy_eigen import rounding, with_real_eigenvalues
from tapegen.rules.linalg.scipy_linalg import one_matrix
from tapegen.rules.linalg.solve import adjoint, positive_definite, regular
from tapegen.rules.registry import expands, fixed, inactive, pullback
from tapegen.rules.templates import template


def corner(function_of_block):
    """The upper right block: the derivative of a matrix function in the direction stored there (Frechet derivative)."""
    n = np.shape(function_of_block)[0] // 2
    return np.copy(function_of_block[:n, n:])


def with_direction(a, direction):
    top = np.concatenate((a, direction), axis=1)
    return np.concatenate((top, np.concatenate((np.zeros_like(a), a), axis=1)), axis=0)


@pullback(linalg.expm, shapes=[regular])
def expm(A, *, out_bar):
    one_matrix(np.ndim(A))
    return corner(linalg.expm(with_direction(A.T, out_bar)))


@expm.pushforward
def expm_pushforward(A, *, A_dot):
    one_matrix(np.ndim(A))
    return corner(linalg.expm(with_direction(A, A_dot)))


@template(linalg.expm)
def expm_text(A):
    """Rational approximation of degree 13 (Higham 2005) of a part so small that it holds, squared again."""
    one_matrix(np.ndim(A))
    norm = np.max(np.append(np.sum(np.abs(A), axis=0), 0.0))  # also for an empty matrix
    halvings = 0
    while norm > 5.37 and halvings < 1100:
        norm = 0.5 * norm
        halvings += 1
    x = A * 0.5**halvings
    unit = np.eye(np.shape(A)[0], dtype=A.dtype)
    x2 = x @ x
    x4 = x2 @ x2
    x6 = x4 @ x2
    odd = x6 @ (x6 + 16380.0 * x4 + 40840800.0 * x2)
    odd = odd + 33522128640.0 * x6 + 10559470521600.0 * x4 + 1187353796428800.0 * x2 + 32382376266240000.0 * unit
    odd = x @ odd
    even = x6 @ (182.0 * x6 + 960960.0 * x4 + 1323241920.0 * x2)
    even = even + 670442572800.0 * x6 + 129060195264000.0 * x4 + 7771770303897600.0 * x2 + 64764752532480000.0 * unit
    power = np.linalg.solve(even - odd, even + odd)
    for _ in range(halvings):
        power = power @ power
    return power


@expands(linalg.expm_frechet, shapes=[regular, (3, 3)])
def expm_frechet(A, E, method=None, compute_expm=True, check_finite=True):
    slope = corner(linalg.expm(with_direction(A, E)))
    if compute_expm:
        return linalg.expm(A), slope
    return slope


PLACES = (
    *(0.019855071751231912, 0.10166676129318664, 0.2372337950418355, 0.4082826787521751),
    *(0.5917173212478248, 0.7627662049581645, 0.8983332387068134, 0.9801449282487681),
)
WEIGHTS = (
    *(0.05061426814518853, 0.11119051722668721, 0.15685332293894344, 0.18134189168918083),
    *(0.18134189168918083, 0.15685332293894344, 0.11119051722668721, 0.05061426814518853),
)
"""Gauss-Legendre quadrature from 0 to 1, exact for polynomials of degree 15."""


@compile_time
def gauss():
    """The nodes, and the weights."""
    return PLACES, WEIGHTS


@expands(linalg.logm, shapes=[positive_definite])
def logm(A):
    """64 times the logarithm of the 64th root, which is an integral over a short way from the unit matrix."""
    one_matrix(np.ndim(A))
    root = A
    for _ in range(6):
        root = linalg.sqrtm(root)
    unit = np.eye(np.shape(A)[0], dtype=A.dtype)
    apart = root - unit
    total = np.zeros_like(apart)
    places, weights = np.array(gauss()[0]), np.array(gauss()[1])
    for k in range(8):
        total = total + weights[k] * np.linalg.solve(unit + places[k] * apart, apart)
    return 64.0 * total


def logarithm(a):
    """`logm` as an external function that compiled code calls."""
    return linalg.logm(a)


of_matrices("nn->nn", logarithm)
inactive(logarithm)


@template(linalg.logm)
def logm_text(A):
    one_matrix(np.ndim(A))
    require(A.dtype == np.float64, "in single precision scipy may take it for complex.")
    return logarithm(A)


@pullback(linalg.sqrtm, shapes=[positive_definite])
def sqrtm(A, *, out, out_bar):
    one_matrix(np.ndim(A))
    return linalg.solve_sylvester(out.T, out.T, out_bar)


@sqrtm.pushforward
def sqrtm_pushforward(A, *, out, A_dot):
    one_matrix(np.ndim(A))
    return linalg.solve_sylvester(out, out, A_dot)


of_matrices("nn->nn", linalg.sqrtm)
complex_by_value(linalg.sqrtm, linalg.logm)

PAIRS_STAY_REAL = not np.iscomplexobj(linalg.sqrtm(np.array([[1.0, -1.0], [1.0, 1.0]])))
"""Whether scipy's root of a real matrix is real where eigenvalues are not, as it was not always."""


@expands(linalg.funm, shapes=[with_real_eigenvalues, fixed(np.exp)], written=True, of_complex=True)
def funm(A, func, disp=True):
    """Schur's form and Parlett's recurrence, as scipy does it; both divide by differences of eigenvalues."""
    one_matrix(np.ndim(A))
    require(disp, "scipy.linalg.funm(disp=False) has no rule.", "Leave it out.")
    t, z = linalg.schur(A, "complex")
    w = np.diag(t)
    n = np.size(w)
    refuse_equal(w)
    f = np.diag(np.astype(func(w), t.dtype))
    for j in range(1, n):
        for i in range(j - 1, -1, -1):
            inner = np.sum(t[i, i + 1 : j] * f[i + 1 : j, j] - f[i, i + 1 : j] * t[i + 1 : j, j])
            f[i, j] = (t[i, j] * (f[j, j] - f[i, i]) + inner) / (w[j] - w[i])
    found = z @ f @ adjoint(z)
    if np.iscomplexobj(A):
        return found
    refuse_imaginary(found)
    return np.real(found)


def refuse_equal(w):
    """Refuse numerically equal eigenvalues, for which divided differences are meaningless."""
    gap = np.abs(np.expand_dims(w, 1) - w) + np.eye(np.size(w)) * np.max(np.abs(w))
    if np.any(gap <= 10.0 * np.sqrt(rounding(w.dtype)) * np.max(np.abs(w))):
        raise ValueError("scipy.linalg.funm: eigenvalues are equal, or nearly so; use expm, logm or sqrtm")


def refuse_imaginary(found):
    """Refuse a complex result of a real matrix: in scipy its type depends on values."""
    if np.any(np.abs(np.imag(found)) > np.sqrt(rounding(found.dtype)) * np.max(np.abs(found))):
        raise ValueError("scipy.linalg.funm: the function of a real matrix is complex; pass A.astype(complex)")
