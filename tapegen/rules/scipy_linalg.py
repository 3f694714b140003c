"""Functions of `scipy.linalg`, for one matrix at a time."""

from __future__ import annotations

import numpy as np
from scipy import linalg

from tapegen.rules.factorisations import eigh as eigh_of_numpy
from tapegen.rules.factorisations import eigh_pushforward as eigh_tangent_of_numpy
from tapegen.rules.factorisations import qr as qr_of_numpy
from tapegen.rules.factorisations import qr_pushforward as qr_tangent_of_numpy
from tapegen.rules.factorisations import svd as svd_of_numpy
from tapegen.rules.factorisations import svd_pushforward as svd_tangent_of_numpy
from tapegen.rules.helpers import compile_time, matrix_transpose, require
from tapegen.rules.linalg import adjoint, full_rank, positive_definite, regular
from tapegen.rules.registry import expands, fixed, pullback, refused, text

refused(
    linalg.hessenberg,
    reason="the factors are not unique, and LAPACK chooses among them by no rule that has a derivative.",
    advice="Use eigh, svd, qr or solve.",
)
refused(linalg.rsf2csf, reason="its factors are complex.", advice="Use eigh, svd, qr or solve.")
refused(linalg.funm, reason="it calls a function of matrices.", advice="Use expm, logm or sqrtm.")
refused(linalg.qr_multiply, reason="it multiplies by a factor that it does not form.", advice="Use qr and @.")


def with_real_eigenvalues(rng):
    """A real matrix that is not symmetric, whose eigenvalues are real and differ."""
    return np.diag([1.0, 2.2, 3.7]) + rng.uniform(-0.3, 0.3, (3, 3))


@compile_time
def one_matrix(rank, right=0):
    """Rules whose formulas are not those of stacks, neither of matrices nor of right-hand sides."""
    known = rank == 2 and right <= 2
    require(known, "this function of a stack of matrices has no rule.", "Call it for one matrix at a time.")


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
    one_matrix(np.ndim(a))
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
    one_matrix(np.ndim(a), np.ndim(b))
    transposed = trans == 1 or trans == "T"
    b_bar = linalg.solve_triangular(a, out_bar, 0 if transposed else 1, lower, unit_diagonal)
    pair = outer_product(out, b_bar) if transposed else outer_product(b_bar, out)
    return -part_read(pair, lower, unit_diagonal), b_bar


@solve_triangular.pushforward
def solve_triangular_pushforward(a, b, trans=0, lower=False, unit_diagonal=False, *, out, a_dot, b_dot):
    one_matrix(np.ndim(a), np.ndim(b))
    slope = part_read(a_dot, lower, unit_diagonal)
    if trans == 1 or trans == "T":
        slope = slope.T
    return linalg.solve_triangular(a, b_dot - slope @ out, trans, lower, unit_diagonal)


@text(linalg.solve_triangular)
def solve_triangular_text(a, b, trans=0, lower=False, unit_diagonal=False, overwrite_b=False, check_finite=True):
    one_matrix(np.ndim(a), np.ndim(b))
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
    one_matrix(np.ndim(ab))
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


# ---- factors -------------------------------------------------------------------------------------------------------


@expands(linalg.cholesky, shapes=[positive_definite])
def cholesky(a, lower=False, overwrite_a=False, check_finite=True):
    require(not overwrite_a, "overwrite_a=True writes into an argument.", "Leave it out.")
    if np.ndim(a) == 0:
        return np.reshape(np.sqrt(a), (1, 1))
    if lower:
        return np.linalg.cholesky(a)
    return matrix_transpose(np.linalg.cholesky(matrix_transpose(a)))


@expands(linalg.cho_factor, shapes=[positive_definite], written=True)
def cho_factor(a, lower=False, overwrite_a=False, check_finite=True):
    """The other triangle of the result holds what it held before."""
    one_matrix(np.ndim(a))
    require(not overwrite_a, "overwrite_a=True writes into an argument.", "Leave it out.")
    if lower:
        return np.linalg.cholesky(a) + np.triu(a, 1), True
    return np.linalg.cholesky(a.T).T + np.tril(a, -1), False


@expands(linalg.cho_solve, shapes=[lambda rng: (positive_definite(rng), True), (3,)], written=True)
def cho_solve(c_and_lower, b, overwrite_b=False, check_finite=True):
    c, lower = c_and_lower
    one_matrix(np.ndim(c), np.ndim(b))
    if lower:
        return linalg.solve_triangular(c, linalg.solve_triangular(c, b, 0, True), 1, True)
    return linalg.solve_triangular(c, linalg.solve_triangular(c, b, 1, False), 0, False)


@pullback(linalg.lu, shapes=[regular])
def lu(a, *, out, out_bar):
    """Of a square matrix: the order of the rows does not change in a neighbourhood."""
    one_matrix(np.ndim(a))
    p, lower, upper = out
    return p @ product_bar(lower, upper, out_bar[1], out_bar[2])


@lu.pushforward
def lu_pushforward(a, *, out, a_dot):
    one_matrix(np.ndim(a))
    p, lower, upper = out
    lower_dot, upper_dot = factors_dot(lower, upper, p.T @ a_dot)
    return None, lower_dot, upper_dot


def product_bar(lower, upper, lower_bar, upper_bar):
    """Cotangent of the product of triangular factors, the first with a unit diagonal."""
    middle = np.tril(lower.T @ lower_bar, -1) + np.triu(upper_bar @ upper.T)
    return np.linalg.solve(upper, np.linalg.solve(lower.T, middle).T).T


def factors_dot(lower, upper, product_dot):
    """Tangents of triangular factors of a product."""
    slope = np.linalg.solve(upper.T, np.linalg.solve(lower, product_dot).T).T
    return lower @ np.tril(slope, -1), np.triu(slope) @ upper


@text(linalg.lu)
def lu_text(a):
    packed, pivots = linalg.lu_factor(a)
    unit = np.eye(np.shape(a)[0], dtype=a.dtype)
    return swapped_back(unit, pivots), np.tril(packed, -1) + unit, np.triu(packed)


@pullback(linalg.lu_factor, shapes=[regular])
def lu_factor(a, overwrite_a=False, check_finite=True, *, out, out_bar):
    """Both factors in one matrix, without the unit diagonal."""
    one_matrix(np.ndim(a))
    packed, pivots = out
    lower = np.tril(packed, -1) + np.eye(np.shape(a)[0], dtype=a.dtype)
    return swapped_back(product_bar(lower, np.triu(packed), out_bar[0], out_bar[0]), pivots)


@lu_factor.pushforward
def lu_factor_pushforward(a, overwrite_a=False, check_finite=True, *, out, a_dot):
    one_matrix(np.ndim(a))
    packed, pivots = out
    lower = np.tril(packed, -1) + np.eye(np.shape(a)[0], dtype=a.dtype)
    lower_dot, upper_dot = factors_dot(lower, np.triu(packed), swapped(a_dot, pivots))
    return lower_dot + upper_dot, None


@text(linalg.lu_factor)
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
    packed, pivots = lu_and_piv
    one_matrix(np.ndim(packed), np.ndim(b))
    one_matrix(1 + np.ndim(pivots))
    if np.size(pivots) != np.shape(packed)[0]:
        raise ValueError("scipy.linalg.lu_solve: there are not as many pivots as rows")
    if trans == 0:
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
    """Which row is where after the swaps."""
    order = np.arange(np.size(pivots))
    for k in range(np.size(pivots)):
        place = pivots[k]
        other = order[place]
        order[place] = order[k]
        order[k] = other
    return order


@pullback(linalg.schur, shapes=[with_real_eigenvalues], of_complex=True, phases=True)
def schur(a, output="real", lwork=None, overwrite_a=False, sort=None, check_finite=True, *, out, out_bar):
    """Triangular factors of eigenvalues that differ; phases of complex vectors are held as they are."""
    one_matrix(np.ndim(a))
    require(not overwrite_a, "overwrite_a=True writes into an argument.", "Leave it out.")
    require(sort is None, "scipy.linalg.schur(sort=) has no rule.", "Leave sort out.")
    t, z = out
    refuse_blocks(t)
    t_bar = np.triu(np.conj(out_bar[0]))
    upper = adjoint(t)
    pull = upper @ t_bar - t_bar @ upper + adjoint(z) @ np.conj(out_bar[1])
    return np.conj(z @ (t_bar + turn_pulled(t, pull - adjoint(pull))) @ adjoint(z))


@schur.pushforward
def schur_pushforward(a, output="real", lwork=None, overwrite_a=False, sort=None, check_finite=True, *, out, a_dot):
    one_matrix(np.ndim(a))
    t, z = out
    refuse_blocks(t)
    slope = adjoint(z) @ a_dot @ z
    lower = turn_pushed(t, slope)
    turn = lower - adjoint(lower)
    return np.triu(slope + t @ turn - turn @ t), z @ turn


def refuse_blocks(t):
    """The real form has blocks where eigenvalues are complex: their shape is LAPACK's choice."""
    if np.any(np.tril(t, -1) != 0.0):
        raise ValueError("scipy.linalg.schur: a real form with blocks is not unique; pass output='complex'")


def turn_pushed(t, slope):
    """The strictly lower x for which `x @ t - t @ x` has the elements of slope below the diagonal, column by column."""
    n = np.shape(t)[0]
    x = np.zeros_like(slope)
    for j in range(n - 1):
        for i in range(n - 1, j, -1):
            known = slope[i, j] - np.sum(x[i, :j] * t[:j, j]) + np.sum(t[i, i + 1 :] * x[i + 1 :, j])
            x[i, j] = known / (t[j, j] - t[i, i])
    return x


def turn_pulled(t, pull):
    """The transpose of `turn_pushed`, from the diagonal to the corner."""
    n = np.shape(t)[0]
    y = np.zeros_like(pull)
    for j in range(n - 2, -1, -1):
        for i in range(j + 1, n):
            known = pull[i, j] - np.sum(y[i, j + 1 : i] * np.conj(t[j, j + 1 : i]))
            known = known + np.sum(np.conj(t[j + 1 : i, i]) * y[j + 1 : i, j])
            y[i, j] = known / np.conj(t[j, j] - t[i, i])
    return y


@pullback(linalg.eigh)
def eigh(a, *, lower=True, eigvals_only=False, check_finite=True, out, out_bar):
    if eigvals_only:
        w, v = np.linalg.eigh(a if lower else matrix_transpose(a))
        return eigh_of_numpy(a, "L" if lower else "U", out=(w, v), out_bar=(out_bar, np.zeros_like(v)))
    return eigh_of_numpy(a, "L" if lower else "U", out=out, out_bar=out_bar)


@eigh.pushforward
def eigh_pushforward(a, *, lower=True, eigvals_only=False, check_finite=True, out, a_dot):
    if eigvals_only:
        w, v = np.linalg.eigh(a if lower else matrix_transpose(a))
        w_dot, _ = eigh_tangent_of_numpy(a, "L" if lower else "U", out=(w, v), a_dot=a_dot)
        return w_dot
    return eigh_tangent_of_numpy(a, "L" if lower else "U", out=out, a_dot=a_dot)


@text(linalg.eigh)
def eigh_text(a, *, lower=True, eigvals_only=False, check_finite=True):
    require(eigvals_only, "the vectors of compiled code may have other signs.")
    w, _ = np.linalg.eigh(a if lower else matrix_transpose(a))
    return w


@pullback(linalg.eigh_tridiagonal, wrt=("d", "e"), shapes=[fixed(np.array([2.0, 3.0, 4.5])), (2,)])
def eigh_tridiagonal(d, e, eigvals_only=False, *, out, out_bar):
    one_matrix(1 + max(np.ndim(d), np.ndim(e)))
    matrix = np.diag(d)
    if eigvals_only:
        w, v = np.linalg.eigh(np.diag(d) + np.diag(e, -1))
        bar = eigh_of_numpy(matrix, "L", out=(w, v), out_bar=(out_bar, np.zeros_like(v)))
    else:
        bar = eigh_of_numpy(matrix, "L", out=out, out_bar=out_bar)
    return np.copy(np.diag(bar)), np.copy(np.diag(bar, -1))


@eigh_tridiagonal.pushforward
def eigh_tridiagonal_pushforward(d, e, eigvals_only=False, *, out, d_dot, e_dot):
    one_matrix(1 + max(np.ndim(d), np.ndim(e)))
    a_dot = np.diag(d_dot) + np.diag(e_dot, -1)
    if eigvals_only:
        w, v = np.linalg.eigh(np.diag(d) + np.diag(e, -1))
        w_dot, _ = eigh_tangent_of_numpy(a_dot, "L", out=(w, v), a_dot=a_dot)
        return w_dot
    return eigh_tangent_of_numpy(a_dot, "L", out=out, a_dot=a_dot)


@text(linalg.eigh_tridiagonal)
def eigh_tridiagonal_text(d, e, eigvals_only=False):
    require(eigvals_only, "the vectors of compiled code may have other signs.")
    w, _ = np.linalg.eigh(np.diag(d) + np.diag(e, -1))
    return w


@pullback(linalg.qr, shapes=[full_rank, fixed(False), fixed(None), fixed("economic")])
def qr(a, overwrite_a=False, lwork=None, mode="full", pivoting=False, check_finite=True, *, out, out_bar):
    require(mode == "economic" and not pivoting, "scipy.linalg.qr has a rule for mode='economic' only.", "Say so.")
    return qr_of_numpy(a, out=out, out_bar=out_bar)


@qr.pushforward
def qr_pushforward(a, overwrite_a=False, lwork=None, mode="full", pivoting=False, check_finite=True, *, out, a_dot):
    require(mode == "economic" and not pivoting, "scipy.linalg.qr has a rule for mode='economic' only.", "Say so.")
    return qr_tangent_of_numpy(a, out=out, a_dot=a_dot)


@text(linalg.qr)
def qr_text(a, overwrite_a=False, lwork=None, mode="full", pivoting=False, check_finite=True):
    require(mode == "economic" and not pivoting, "compiled code has the thin form only.")
    return np.linalg.qr(a)


@pullback(linalg.svd, shapes=[full_rank, fixed(False)])
def svd(a, full_matrices=True, compute_uv=True, overwrite_a=False, check_finite=True, *, out, out_bar):
    return svd_of_numpy(a, full_matrices, compute_uv, out=out, out_bar=out_bar)


@svd.pushforward
def svd_pushforward(a, full_matrices=True, compute_uv=True, overwrite_a=False, check_finite=True, *, out, a_dot):
    return svd_tangent_of_numpy(a, full_matrices, compute_uv, out=out, a_dot=a_dot)


@text(linalg.svd)
def svd_text(a, full_matrices=True, compute_uv=True, overwrite_a=False, check_finite=True):
    return np.linalg.svd(a, full_matrices, compute_uv)


@expands(linalg.polar, shapes=[full_rank], written=True)
def polar(a, side="right"):
    one_matrix(np.ndim(a))
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
    one_matrix(np.ndim(A))
    return corner(linalg.expm(with_direction(A.T, out_bar)))


@expm.pushforward
def expm_pushforward(A, *, A_dot):
    one_matrix(np.ndim(A))
    return corner(linalg.expm(with_direction(A, A_dot)))


@text(linalg.expm)
def expm_text(A):
    """Rational approximation of degree 13 (Higham 2005) of a part so small that it holds, squared again."""
    one_matrix(np.ndim(A))
    norm = np.max(np.append(np.sum(np.abs(A), axis=0), 0.0))  # of a matrix without elements as well
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
    one_matrix(np.ndim(A))
    return linalg.solve_sylvester(out.T, out.T, out_bar)


@sqrtm.pushforward
def sqrtm_pushforward(A, *, out, A_dot):
    one_matrix(np.ndim(A))
    return linalg.solve_sylvester(out, out, A_dot)
