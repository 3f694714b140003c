"""Functions of `scipy.linalg`, for one matrix at a time."""

from __future__ import annotations

import numpy as np
from scipy import linalg

from tapegen.rules.external_functions import of_matrices
from tapegen.rules.helpers import as_float64, compile_time, matrix_transpose, no_overwriting, one_of, require
from tapegen.rules.linalg.factorizations import qr as qr_of_numpy
from tapegen.rules.linalg.factorizations import qr_pushforward as qr_tangent_of_numpy
from tapegen.rules.linalg.factorizations import svd as svd_of_numpy
from tapegen.rules.linalg.factorizations import svd_pushforward as svd_tangent_of_numpy
from tapegen.rules.linalg.solve import full_rank, positive_definite, regular
from tapegen.rules.registry import expands, fixed, pullback
from tapegen.rules.templates import template


@compile_time
def one_matrix(rank, right=0):
    """Refuse stacks of matrices or right-hand sides, for which the formulas do not hold."""
    known = rank == 2 and right <= 2
    require(known, "this function of a stack of matrices has no rule.", "Call it for one matrix at a time.")


# ---- solving -------------------------------------------------------------------------------------------------------


@expands(linalg.det, shapes=[regular])
def det(a, overwrite_a=False, check_finite=True):
    no_overwriting(overwrite_a=overwrite_a)
    return np.linalg.det(a)


@expands(linalg.inv, shapes=[regular])
def inv(a, overwrite_a=False, check_finite=True, *, assume_a=None, lower=False):
    no_overwriting(overwrite_a=overwrite_a)
    require(
        assume_a in (None, "gen", "general"),
        "scipy.linalg.inv has a rule for general matrices.",
        "Leave assume_a out.",
    )
    return np.linalg.inv(a)


ONE_TRIANGLE = (
    *("sym", "symmetric", "her", "hermitian", "pos", "positive definite"),
    *("upper triangular", "lower triangular"),
)
"""Structures of which scipy reads one triangle, so that the other one has no derivative."""


@expands(linalg.solve, shapes=[regular, (3,)])
def solve(a, b, lower=False, overwrite_a=False, overwrite_b=False, check_finite=True, assume_a=None, transposed=False):
    one_matrix(np.ndim(a))
    no_overwriting(overwrite_a=overwrite_a, overwrite_b=overwrite_b)
    require(
        assume_a in (None, "gen", "general", *ONE_TRIANGLE),
        "scipy.linalg.solve has a rule for general, symmetric, positive definite and triangular matrices.",
        "Leave assume_a out.",
    )
    if assume_a in ONE_TRIANGLE:
        triangular = assume_a in ("upper triangular", "lower triangular")
        from_below = assume_a == "lower triangular" if triangular else lower
        part = np.tril(a) if from_below else np.triu(a)
        a = part if triangular else part + part.T - np.diag(np.diag(a))
        if assume_a in ("pos", "positive definite"):
            np.linalg.cholesky(a)  # raises if it is not positive definite
    if transposed:
        return np.linalg.solve(a.T, b)
    return np.linalg.solve(a, b)


@pullback(linalg.solve_triangular, wrt=("a", "b"), shapes=[regular, (3,)])
def solve_triangular(
    a, b, trans=0, lower=False, unit_diagonal=False, overwrite_b=False, check_finite=True, *, out, out_bar
):
    one_matrix(np.ndim(a), np.ndim(b))
    no_overwriting(overwrite_b=overwrite_b)
    transposed = is_transposed(trans)
    b_bar = linalg.solve_triangular(a, out_bar, 0 if transposed else 1, lower, unit_diagonal)
    pair = outer_product(out, b_bar) if transposed else outer_product(b_bar, out)
    return -part_read(pair, lower, unit_diagonal), b_bar


@solve_triangular.pushforward
def solve_triangular_pushforward(
    a, b, trans=0, lower=False, unit_diagonal=False, overwrite_b=False, check_finite=True, *, out, a_dot, b_dot
):
    one_matrix(np.ndim(a), np.ndim(b))
    no_overwriting(overwrite_b=overwrite_b)
    slope = part_read(a_dot, lower, unit_diagonal)
    if is_transposed(trans):
        slope = slope.T
    return linalg.solve_triangular(a, b_dot - slope @ out, trans, lower, unit_diagonal)


@template(linalg.solve_triangular)
def solve_triangular_text(a, b, trans=0, lower=False, unit_diagonal=False, overwrite_b=False, check_finite=True):
    one_matrix(np.ndim(a), np.ndim(b))
    matrix = part_read(a, lower, unit_diagonal)
    if unit_diagonal:
        matrix = matrix + np.eye(np.shape(a)[0])
    if is_transposed(trans):
        return np.linalg.solve(matrix.T, b)
    return np.linalg.solve(matrix, b)


@compile_time
def is_transposed(trans):
    """Whether a system is that of the transpose; the rules are those of real matrices."""
    one_of("trans", trans, (0, 1, 2, "N", "T", "C"))
    return trans not in (0, "N")


def outer_product(x, y):
    """Sum of the outer products of columns."""
    if np.ndim(x) == 1:
        return np.outer(x, y)
    return x @ y.T


def part_read(a, lower, unit_diagonal):
    """The triangle of a matrix that the function reads."""
    if lower:
        return np.tril(a, -1) if unit_diagonal else np.tril(a)
    return np.triu(a, 1) if unit_diagonal else np.triu(a)


@expands(linalg.solve_banded, shapes=[fixed((1, 1)), lambda rng: rng.uniform(0.1, 0.4, (3, 4)) + [[0], [2], [0]], (4,)])
def solve_banded(l_and_u, ab, b, overwrite_ab=False, overwrite_b=False, check_finite=True):
    one_matrix(np.ndim(ab))
    no_overwriting(overwrite_ab=overwrite_ab, overwrite_b=overwrite_b)
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
    one_matrix(np.ndim(q))
    one_matrix(max(np.ndim(a), np.ndim(b)))
    q_bar = linalg.solve_sylvester(a.T, b.T, out_bar)
    return -q_bar @ out.T, -out.T @ q_bar, q_bar


@solve_sylvester.pushforward
def solve_sylvester_pushforward(a, b, q, *, out, a_dot, b_dot, q_dot):
    one_matrix(np.ndim(q))
    one_matrix(max(np.ndim(a), np.ndim(b)))
    return linalg.solve_sylvester(a, b, q_dot - a_dot @ out - out @ b_dot)


of_matrices("mm,nn,mn->mn", linalg.solve_sylvester)


@expands(linalg.solve_continuous_lyapunov, shapes=[positive_definite, (3, 3)], written=True)
def solve_continuous_lyapunov(a, q):
    return linalg.solve_sylvester(a, matrix_transpose(a), q)


@expands(linalg.solve_discrete_lyapunov, shapes=[lambda rng: rng.uniform(-0.4, 0.4, (3, 3)), (3, 3)], written=True)
def solve_discrete_lyapunov(a, q, method=None):
    """As scipy solves it: small systems for all elements at once, large ones by a bilinear transformation."""
    require(method in (None, "direct", "bilinear"), "this method has no rule.", "Use 'direct' or 'bilinear'.")
    a, q = as_float64(a), as_float64(q)
    n = np.shape(a)[0]
    if method == "direct" or (method is None and n < 10):
        return np.reshape(np.linalg.solve(np.eye(n * n) - np.kron(a, a), np.ravel(q)), np.shape(q))
    right = np.linalg.inv(a.T + np.eye(n))
    b = (a.T - np.eye(n)) @ right
    return linalg.solve_sylvester(b.T, b, -2.0 * (np.linalg.inv(a + np.eye(n)) @ q @ right))


# ---- factors -------------------------------------------------------------------------------------------------------


@expands(linalg.cholesky, shapes=[positive_definite])
def cholesky(a, lower=False, overwrite_a=False, check_finite=True):
    no_overwriting(overwrite_a=overwrite_a)
    if np.ndim(a) == 0:
        return np.reshape(np.sqrt(a), (1, 1))
    if lower:
        return np.linalg.cholesky(a)
    return matrix_transpose(np.linalg.cholesky(matrix_transpose(a)))


# up to scipy 1.17 the other triangle of the result keeps its old contents
_KEEPS_THE_REST = linalg.cho_factor(np.array([[2.0, 1.0], [1.0, 2.0]]))[0][1, 0] == 1.0


@expands(linalg.cho_factor, shapes=[positive_definite], written=True)
def cho_factor(a, lower=False, overwrite_a=False, check_finite=True):
    one_matrix(np.ndim(a))
    no_overwriting(overwrite_a=overwrite_a)
    if lower:
        factor = np.linalg.cholesky(a)
        return (factor + np.triu(a, 1) if _KEEPS_THE_REST else factor), True
    factor = np.linalg.cholesky(a.T).T
    return (factor + np.tril(a, -1) if _KEEPS_THE_REST else factor), False


@expands(linalg.cho_solve, shapes=[lambda rng: (positive_definite(rng), True), (3,)], written=True)
def cho_solve(c_and_lower, b, overwrite_b=False, check_finite=True):
    no_overwriting(overwrite_b=overwrite_b)
    c, lower = c_and_lower
    one_matrix(np.ndim(c), np.ndim(b))
    if lower:
        return linalg.solve_triangular(c, linalg.solve_triangular(c, b, 0, True), 1, True)
    return linalg.solve_triangular(c, linalg.solve_triangular(c, b, 1, False), 0, False)


@pullback(linalg.lu, shapes=[regular])
def lu(a, permute_l=False, overwrite_a=False, check_finite=True, p_indices=False, *, out, out_bar):
    """Of a square matrix: the order of the rows does not change in a neighbourhood."""
    one_matrix(np.ndim(a))
    three_factors(permute_l, overwrite_a, p_indices)
    p, lower, upper = out
    return p @ product_bar(lower, upper, out_bar[1], out_bar[2])


@lu.pushforward
def lu_pushforward(a, permute_l=False, overwrite_a=False, check_finite=True, p_indices=False, *, out, a_dot):
    one_matrix(np.ndim(a))
    three_factors(permute_l, overwrite_a, p_indices)
    p, lower, upper = out
    lower_dot, upper_dot = factors_dot(lower, upper, p.T @ a_dot)
    return None, lower_dot, upper_dot


def three_factors(permute_l, overwrite_a, p_indices):
    no_overwriting(overwrite_a=overwrite_a)
    require(
        not permute_l and not p_indices,
        "scipy.linalg.lu has a rule for the permutation as a matrix.",
        "Leave permute_l and p_indices out.",
    )


def product_bar(lower, upper, lower_bar, upper_bar):
    """Cotangent of the product of triangular factors, the first with a unit diagonal."""
    middle = np.tril(lower.T @ lower_bar, -1) + np.triu(upper_bar @ upper.T)
    return np.linalg.solve(upper, np.linalg.solve(lower.T, middle).T).T


def factors_dot(lower, upper, product_dot):
    """Tangents of triangular factors of a product."""
    slope = np.linalg.solve(upper.T, np.linalg.solve(lower, product_dot).T).T
    return lower @ np.tril(slope, -1), np.triu(slope) @ upper


@template(linalg.lu)
def lu_text(a, permute_l=False, overwrite_a=False, check_finite=True, p_indices=False):
    one_matrix(np.ndim(a))
    three_factors(permute_l, overwrite_a, p_indices)
    packed, pivots = linalg.lu_factor(a)
    unit = np.eye(np.shape(a)[0], dtype=a.dtype)
    return swapped_back(unit, pivots), np.tril(packed, -1) + unit, np.triu(packed)


@pullback(linalg.lu_factor, shapes=[regular])
def lu_factor(a, overwrite_a=False, check_finite=True, *, out, out_bar):
    """Both factors in one matrix, without the unit diagonal."""
    no_overwriting(overwrite_a=overwrite_a)
    one_matrix(np.ndim(a))
    packed, pivots = out
    lower = np.tril(packed, -1) + np.eye(np.shape(a)[0], dtype=a.dtype)
    return swapped_back(product_bar(lower, np.triu(packed), out_bar[0], out_bar[0]), pivots)


@lu_factor.pushforward
def lu_factor_pushforward(a, overwrite_a=False, check_finite=True, *, out, a_dot):
    one_matrix(np.ndim(a))
    no_overwriting(overwrite_a=overwrite_a)
    packed, pivots = out
    lower = np.tril(packed, -1) + np.eye(np.shape(a)[0], dtype=a.dtype)
    lower_dot, upper_dot = factors_dot(lower, np.triu(packed), swapped(a_dot, pivots))
    return lower_dot + upper_dot, None


@template(linalg.lu_factor)
def lu_factor_text(a, overwrite_a=False, check_finite=True):
    """Elimination by rows, each time with the largest element of the column."""
    one_matrix(np.ndim(a))
    n = np.shape(a)[0]
    packed = np.copy(a)
    pivots = np.zeros(n, dtype=np.int32)
    for k in range(n):
        p = k + np.argmax(np.abs(packed[k:, k]))
        pivots[k] = p
        row = np.copy(packed[k])
        packed[k] = packed[p]
        packed[p] = row
        if packed[k, k] != 0.0:
            for i in range(k + 1, n):
                packed[i, k] = packed[i, k] / packed[k, k]
                packed[i, k + 1 :] -= packed[i, k] * packed[k, k + 1 :]
    return packed, pivots


@expands(linalg.lu_solve, shapes=[lambda rng: linalg.lu_factor(regular(rng)), (3,)], written=True)
def lu_solve(lu_and_piv, b, trans=0, overwrite_b=False, check_finite=True):
    no_overwriting(overwrite_b=overwrite_b)
    packed, pivots = lu_and_piv
    one_matrix(np.ndim(packed), np.ndim(b))
    one_matrix(1 + np.ndim(pivots))
    if np.size(pivots) != np.shape(packed)[0]:
        raise ValueError("scipy.linalg.lu_solve: there are not as many pivots as rows")
    if not is_transposed(trans):
        inner = linalg.solve_triangular(packed, swapped(b, pivots), 0, True, True)
        return linalg.solve_triangular(packed, inner, 0, False)
    inner = linalg.solve_triangular(packed, b, 1, False)
    return swapped_back(linalg.solve_triangular(packed, inner, 1, True, True), pivots)


def swapped(rows, pivots):
    """Rows after the swaps of an elimination."""
    return rows[order_of(pivots)]


def swapped_back(rows, pivots):
    """Rows as they were before the swaps."""
    return rows[np.argsort(order_of(pivots))]


def order_of(pivots):
    """The row permutation that results from the swaps."""
    order = np.arange(np.size(pivots))
    for k in range(np.size(pivots)):
        place = pivots[k]
        other = order[place]
        order[place] = order[k]
        order[k] = other
    return order


@pullback(linalg.qr)
def qr(a, overwrite_a=False, lwork=None, mode="full", pivoting=False, check_finite=True, *, out, out_bar):
    require(mode == "economic" and not pivoting, "scipy.linalg.qr has a rule for mode='economic' only.", "Say so.")
    no_overwriting(overwrite_a=overwrite_a)
    return qr_of_numpy(a, out=out, out_bar=out_bar)


@qr.pushforward
def qr_pushforward(a, overwrite_a=False, lwork=None, mode="full", pivoting=False, check_finite=True, *, out, a_dot):
    require(mode == "economic" and not pivoting, "scipy.linalg.qr has a rule for mode='economic' only.", "Say so.")
    no_overwriting(overwrite_a=overwrite_a)
    return qr_tangent_of_numpy(a, out=out, a_dot=a_dot)


@template(linalg.qr)
def qr_text(a, overwrite_a=False, lwork=None, mode="full", pivoting=False, check_finite=True):
    require(mode == "economic" and not pivoting, "compiled code has the thin form only.")
    return np.linalg.qr(a)


@expands(linalg.qr_multiply, shapes=[full_rank, (3,), fixed("left")])
def qr_multiply(a, c, mode="right", pivoting=False, conjugate=False, overwrite_a=False, overwrite_c=False):
    one_matrix(np.ndim(a), np.ndim(c))
    require(not pivoting, "scipy.linalg.qr_multiply(pivoting=True) has no rule.", "Leave it out.")
    no_overwriting(overwrite_a=overwrite_a, overwrite_c=overwrite_c)
    one_of("mode", mode, ("left", "right"))
    q, r = linalg.qr(a, mode="economic")
    if mode == "left":
        return q @ c, r
    return c @ q, r


@pullback(linalg.svd, shapes=[full_rank, fixed(False)])
def svd(a, full_matrices=True, compute_uv=True, overwrite_a=False, check_finite=True, *, out, out_bar):
    no_overwriting(overwrite_a=overwrite_a)
    return svd_of_numpy(a, full_matrices, compute_uv, out=out, out_bar=out_bar)


@svd.pushforward
def svd_pushforward(a, full_matrices=True, compute_uv=True, overwrite_a=False, check_finite=True, *, out, a_dot):
    no_overwriting(overwrite_a=overwrite_a)
    return svd_tangent_of_numpy(a, full_matrices, compute_uv, out=out, a_dot=a_dot)


@template(linalg.svd)
def svd_text(a, full_matrices=True, compute_uv=True, overwrite_a=False, check_finite=True):
    return np.linalg.svd(a, full_matrices, compute_uv)


@expands(linalg.polar, shapes=[full_rank], written=True, of_complex=True)
def polar(a, side="right"):
    one_matrix(np.ndim(a))
    one_of("side", side, ("left", "right"))
    w, s, vh = np.linalg.svd(a, full_matrices=False)
    if side == "right":
        return w @ vh, (np.conj(vh).T * s) @ vh
    return w @ vh, (w * s) @ np.conj(w).T
