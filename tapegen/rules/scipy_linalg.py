"""Functions of `scipy.linalg`, for one matrix at a time."""

from __future__ import annotations

import numpy as np
from scipy import linalg

from tapegen.rules.helpers import require
from tapegen.rules.linalg import eigh as eigh_of_numpy
from tapegen.rules.linalg import eigh_pushforward as eigh_tangent_of_numpy
from tapegen.rules.linalg import full_rank, positive_definite, regular
from tapegen.rules.linalg import qr as qr_of_numpy
from tapegen.rules.linalg import qr_pushforward as qr_tangent_of_numpy
from tapegen.rules.linalg import svd as svd_of_numpy
from tapegen.rules.linalg import svd_pushforward as svd_tangent_of_numpy
from tapegen.rules.registry import expands, fixed, pullback, refused, text

refused(
    linalg.schur,
    linalg.hessenberg,
    reason="the factors are not unique, and LAPACK chooses among them by no rule that has a derivative.",
    advice="Use eigh, svd, qr or solve.",
)
refused(linalg.funm, reason="it calls a function of matrices.", advice="Use expm, logm or sqrtm.")

# ---- solving -------------------------------------------------------------------------------------------------------


@expands(linalg.det, shapes=[regular])
def det(a, overwrite_a=False, check_finite=True):
    require(not overwrite_a, "overwrite_a=True writes into an argument.", "Leave it out.")
    return np.linalg.det(a)


@expands(linalg.inv, shapes=[regular])
def inv(a, overwrite_a=False, check_finite=True):
    require(not overwrite_a, "overwrite_a=True writes into an argument.", "Leave it out.")
    return np.linalg.inv(a)


@expands(linalg.solve, shapes=[regular, (3,)])
def solve(a, b, lower=False, overwrite_a=False, overwrite_b=False, check_finite=True, assume_a=None, transposed=False):
    require(not (overwrite_a or overwrite_b), "overwrite_a=True writes into an argument.", "Leave it out.")
    require(
        assume_a is None or assume_a == "gen" or assume_a == "general",
        "scipy.linalg.solve has a rule for general matrices.",
        "Leave assume_a out.",
    )
    if transposed:
        return np.linalg.solve(a.T, b)
    return np.linalg.solve(a, b)


@pullback(linalg.solve_triangular, wrt=("a", "b"), shapes=[regular, (3,)])
def solve_triangular(a, b, trans=0, lower=False, unit_diagonal=False, *, out, out_bar):
    transposed = trans == 1 or trans == "T"
    b_bar = linalg.solve_triangular(a, out_bar, 0 if transposed else 1, lower, unit_diagonal)
    pair = outer_product(out, b_bar) if transposed else outer_product(b_bar, out)
    return -part_read(pair, lower, unit_diagonal), b_bar


@solve_triangular.pushforward
def solve_triangular_pushforward(a, b, trans=0, lower=False, unit_diagonal=False, *, out, a_dot, b_dot):
    slope = part_read(a_dot, lower, unit_diagonal)
    if trans == 1 or trans == "T":
        slope = slope.T
    return linalg.solve_triangular(a, b_dot - slope @ out, trans, lower, unit_diagonal)


@text(linalg.solve_triangular)
def solve_triangular_text(a, b, trans=0, lower=False, unit_diagonal=False, overwrite_b=False, check_finite=True):
    matrix = part_read(a, lower, unit_diagonal)
    if unit_diagonal:
        matrix = matrix + np.eye(np.shape(a)[0])
    if trans == 1 or trans == "T":
        return np.linalg.solve(matrix.T, b)
    return np.linalg.solve(matrix, b)


def outer_product(x, y):
    """Sum of the outer products of columns."""
    if np.ndim(x) == 1:
        return np.outer(x, y)
    return x @ y.T


def part_read(a, lower, unit_diagonal):
    """The triangle of a matrix that is read."""
    if lower:
        return np.tril(a, -1) if unit_diagonal else np.tril(a)
    return np.triu(a, 1) if unit_diagonal else np.triu(a)


@expands(linalg.solve_banded, shapes=[fixed((1, 1)), lambda rng: rng.uniform(0.1, 0.4, (3, 4)) + [[0], [2], [0]], (4,)])
def solve_banded(l_and_u, ab, b, overwrite_ab=False, overwrite_b=False, check_finite=True):
    below, above = l_and_u
    n = np.shape(ab)[1]
    matrix = np.zeros((n, n), dtype=ab.dtype)
    for k in range(above + 1):
        matrix = matrix + np.diag(ab[above - k, k:], k)
    for k in range(1, below + 1):
        matrix = matrix + np.diag(ab[above + k, : n - k], -k)
    return np.linalg.solve(matrix, b)


@pullback(linalg.solve_sylvester, wrt=("a", "b", "q"), shapes=[positive_definite, positive_definite, (3, 3)])
def solve_sylvester(a, b, q, *, out, out_bar):
    q_bar = linalg.solve_sylvester(a.T, b.T, out_bar)
    return -q_bar @ out.T, -out.T @ q_bar, q_bar


@solve_sylvester.pushforward
def solve_sylvester_pushforward(a, b, q, *, out, a_dot, b_dot, q_dot):
    return linalg.solve_sylvester(a, b, q_dot - a_dot @ out - out @ b_dot)


# ---- factors -------------------------------------------------------------------------------------------------------


@expands(linalg.cholesky, shapes=[positive_definite])
def cholesky(a, lower=False, overwrite_a=False, check_finite=True):
    require(not overwrite_a, "overwrite_a=True writes into an argument.", "Leave it out.")
    if lower:
        return np.linalg.cholesky(a)
    return np.linalg.cholesky(a.T).T


@expands(linalg.cho_factor, shapes=[positive_definite], written=True)
def cho_factor(a, lower=False, overwrite_a=False, check_finite=True):
    """The other triangle of the result holds what it held before."""
    require(not overwrite_a, "overwrite_a=True writes into an argument.", "Leave it out.")
    if lower:
        return np.linalg.cholesky(a) + np.triu(a, 1), True
    return np.linalg.cholesky(a.T).T + np.tril(a, -1), False


@expands(linalg.cho_solve, shapes=[lambda rng: (positive_definite(rng), True), (3,)], written=True)
def cho_solve(c_and_lower, b, overwrite_b=False, check_finite=True):
    c, lower = c_and_lower
    if lower:
        return linalg.solve_triangular(c, linalg.solve_triangular(c, b, 0, True), 1, True)
    return linalg.solve_triangular(c, linalg.solve_triangular(c, b, 1, False), 0, False)


@pullback(linalg.lu, shapes=[regular])
def lu(a, *, out, out_bar):
    """Of a square matrix: the order of the rows does not change in a neighbourhood."""
    p, lower, upper = out
    middle = np.tril(lower.T @ out_bar[1], -1) + np.triu(out_bar[2] @ upper.T)
    left = np.linalg.solve(lower.T, middle)
    return p @ np.linalg.solve(upper, left.T).T


@lu.pushforward
def lu_pushforward(a, *, out, a_dot):
    p, lower, upper = out
    slope = np.linalg.solve(upper.T, np.linalg.solve(lower, p.T @ a_dot).T).T
    return None, lower @ np.tril(slope, -1), np.triu(slope) @ upper


@pullback(linalg.eigh)
def eigh(a, *, lower=True, eigvals_only=False, check_finite=True, out, out_bar):
    if eigvals_only:
        w, v = linalg.eigh(a, lower=lower)
        return eigh_of_numpy(a, "L" if lower else "U", out=(w, v), out_bar=(out_bar, np.zeros_like(v)))
    return eigh_of_numpy(a, "L" if lower else "U", out=out, out_bar=out_bar)


@eigh.pushforward
def eigh_pushforward(a, *, lower=True, eigvals_only=False, check_finite=True, out, a_dot):
    if eigvals_only:
        w, v = linalg.eigh(a, lower=lower)
        w_dot, _ = eigh_tangent_of_numpy(a, "L" if lower else "U", out=(w, v), a_dot=a_dot)
        return w_dot
    return eigh_tangent_of_numpy(a, "L" if lower else "U", out=out, a_dot=a_dot)


@pullback(linalg.eigh_tridiagonal, wrt=("d", "e"), shapes=[fixed(np.array([2.0, 3.0, 4.5])), (2,)])
def eigh_tridiagonal(d, e, eigvals_only=False, *, out, out_bar):
    matrix = np.diag(d)
    if eigvals_only:
        w, v = linalg.eigh_tridiagonal(d, e)
        bar = eigh_of_numpy(matrix, "L", out=(w, v), out_bar=(out_bar, np.zeros_like(v)))
    else:
        bar = eigh_of_numpy(matrix, "L", out=out, out_bar=out_bar)
    return np.copy(np.diag(bar)), np.copy(np.diag(bar, -1))


@eigh_tridiagonal.pushforward
def eigh_tridiagonal_pushforward(d, e, eigvals_only=False, *, out, d_dot, e_dot):
    a_dot = np.diag(d_dot) + np.diag(e_dot, -1)
    if eigvals_only:
        w, v = linalg.eigh_tridiagonal(d, e)
        w_dot, _ = eigh_tangent_of_numpy(a_dot, "L", out=(w, v), a_dot=a_dot)
        return w_dot
    return eigh_tangent_of_numpy(a_dot, "L", out=out, a_dot=a_dot)


@pullback(linalg.qr, shapes=[full_rank, fixed(False), fixed(None), fixed("economic")])
def qr(a, overwrite_a=False, lwork=None, mode="full", pivoting=False, check_finite=True, *, out, out_bar):
    require(mode == "economic" and not pivoting, "scipy.linalg.qr has a rule for mode='economic' only.", "Say so.")
    return qr_of_numpy(a, out=out, out_bar=out_bar)


@qr.pushforward
def qr_pushforward(a, overwrite_a=False, lwork=None, mode="full", pivoting=False, check_finite=True, *, out, a_dot):
    require(mode == "economic" and not pivoting, "scipy.linalg.qr has a rule for mode='economic' only.", "Say so.")
    return qr_tangent_of_numpy(a, out=out, a_dot=a_dot)


@pullback(linalg.svd, shapes=[full_rank, fixed(False)])
def svd(a, full_matrices=True, compute_uv=True, overwrite_a=False, check_finite=True, *, out, out_bar):
    return svd_of_numpy(a, full_matrices, compute_uv, out=out, out_bar=out_bar)


@svd.pushforward
def svd_pushforward(a, full_matrices=True, compute_uv=True, overwrite_a=False, check_finite=True, *, out, a_dot):
    return svd_tangent_of_numpy(a, full_matrices, compute_uv, out=out, a_dot=a_dot)


@expands(linalg.polar, shapes=[full_rank], written=True)
def polar(a, side="right"):
    w, s, vh = np.linalg.svd(a, full_matrices=False)
    if side == "right":
        return w @ vh, (vh.T * s) @ vh
    return w @ vh, (w * s) @ w.T


# ---- functions of a matrix -----------------------------------------------------------------------------------------


def corner(function_of_block):
    """The upper right quarter: the derivative of a function of a matrix, where the matrix holds a direction there."""
    n = np.shape(function_of_block)[0] // 2
    return np.copy(function_of_block[:n, n:])


def with_direction(a, direction):
    top = np.concatenate((a, direction), axis=1)
    return np.concatenate((top, np.concatenate((np.zeros_like(a), a), axis=1)), axis=0)


@pullback(linalg.expm, shapes=[regular])
def expm(A, *, out_bar):
    return corner(linalg.expm(with_direction(A.T, out_bar)))


@expm.pushforward
def expm_pushforward(A, *, A_dot):
    return corner(linalg.expm(with_direction(A, A_dot)))


@expands(linalg.logm, shapes=[positive_definite])
def logm(A):
    """64 times the logarithm of the 64th root, which is an integral over a short way from the unit matrix."""
    root = A
    for _ in range(6):
        root = linalg.sqrtm(root)
    unit = np.eye(np.shape(A)[0], dtype=A.dtype)
    apart = root - unit
    total = np.zeros_like(apart)
    for place, weight in (
        (0.019855071751231912, 0.05061426814518853),
        (0.10166676129318664, 0.11119051722668721),
        (0.2372337950418355, 0.15685332293894344),
        (0.4082826787521751, 0.18134189168918083),
        (0.5917173212478248, 0.18134189168918083),
        (0.7627662049581645, 0.15685332293894344),
        (0.8983332387068134, 0.11119051722668721),
        (0.9801449282487681, 0.05061426814518853),
    ):  # Gauss and Legendre
        total = total + weight * np.linalg.solve(unit + place * apart, apart)
    return 64.0 * total


@pullback(linalg.sqrtm, shapes=[positive_definite])
def sqrtm(A, *, out, out_bar):
    return linalg.solve_sylvester(out.T, out.T, out_bar)


@sqrtm.pushforward
def sqrtm_pushforward(A, *, out, A_dot):
    return linalg.solve_sylvester(out, out, A_dot)


# ---- matrices with a pattern ---------------------------------------------------------------------------------------


@expands(linalg.toeplitz, shapes=[(3,), (4,)])
def toeplitz(c, r=None):
    row = c if r is None else r
    n, m = np.size(c), np.size(row)
    along = np.concatenate((c[::-1], row[1:]))
    return along[np.expand_dims(np.arange(n - 1, -1, -1), 1) + np.arange(m)]


@expands(linalg.block_diag, shapes=[(2, 3), (1, 2), (2, 1)])
def block_diag(*arrs):
    width = 0
    for a in arrs:
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
