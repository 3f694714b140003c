"""Eigenvalue decompositions of `scipy.linalg` (Schur, Hessenberg, tridiagonal), for one matrix at a time."""

from __future__ import annotations

import numpy as np
from scipy import linalg

from tapegen.rules.external_functions import of_matrices
from tapegen.rules.helpers import compile_time, matrix_transpose, no_overwriting, one_of, require
from tapegen.rules.linalg.factorizations import eigh as eigh_of_numpy
from tapegen.rules.linalg.factorizations import eigh_pushforward as eigh_tangent_of_numpy
from tapegen.rules.linalg.scipy_linalg import one_matrix
from tapegen.rules.linalg.solve import adjoint
from tapegen.rules.registry import fixed, inactive, pullback, refused
from tapegen.rules.templates import template

refused(
    linalg.rsf2csf,
    reason="which eigenvalue of a block comes first is LAPACK's choice.",
    advice="Use schur with output='complex'.",
)


def with_real_eigenvalues(rng):
    """A nonsymmetric real matrix with distinct real eigenvalues."""
    return np.diag([1.0, 2.2, 3.7]) + rng.uniform(-0.3, 0.3, (3, 3))


@compile_time
def rounding(dtype):
    """The machine epsilon: the distance of 1 to the next float."""
    return float(np.finfo(dtype).eps)


@pullback(linalg.schur, shapes=[with_real_eigenvalues], of_complex=True, phases=True)
def schur(a, output="real", lwork=None, overwrite_a=False, sort=None, check_finite=True, *, out, out_bar):
    """Triangular factors of eigenvalues that differ; phases of complex vectors are held as they are."""
    one_matrix(np.ndim(a))
    no_overwriting(overwrite_a=overwrite_a)
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
    no_overwriting(overwrite_a=overwrite_a)
    require(sort is None, "scipy.linalg.schur(sort=) has no rule.", "Leave sort out.")
    t, z = out
    refuse_blocks(t)
    slope = adjoint(z) @ a_dot @ z
    lower = turn_pushed(t, slope)
    turn = lower - adjoint(lower)
    return np.triu(slope + t @ turn - turn @ t), z @ turn


# what compiled code calls


def quasi_triangular(a):
    return linalg.schur(a)


def triangular(a):
    return linalg.schur(a, "complex")


of_matrices("nn->nn,nn", quasi_triangular, triangular)
inactive(quasi_triangular, triangular, of_complex=True)  # called only in code that is already derived


@template(linalg.schur)
def schur_text(a, output="real", lwork=None, overwrite_a=False, sort=None, check_finite=True):
    one_matrix(np.ndim(a))
    require(sort is None, "of sorted forms there is none.")
    one_of("output", output, ("real", "r", "complex", "c"))
    if output == "complex" or output == "c":
        return triangular(a)
    return quasi_triangular(a)


def refuse_blocks(t):
    """Refuse 2x2 blocks of the real Schur form (complex eigenvalues), whose normalization is LAPACK's choice."""
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


@template(linalg.eigh)
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


def takes_stevd():
    """Whether scipy calls LAPACK's stevd, as it does since 1.16."""
    try:
        linalg.eigh_tridiagonal(np.array([1.0, 2.0]), np.array([1.0]), lapack_driver="stevd")
    except ValueError:
        return False
    return True


_BY_STEVD = takes_stevd()

# what compiled code calls


def tridiagonal_values(d, e):
    return linalg.eigh_tridiagonal(d, e, eigvals_only=True)


def tridiagonal_pairs(d, e):
    return linalg.eigh_tridiagonal(d, e)


of_matrices("n,k->n", tridiagonal_values)
of_matrices("n,k->n,nn", tridiagonal_pairs)
inactive(tridiagonal_values, tridiagonal_pairs)


@template(linalg.eigh_tridiagonal)
def eigh_tridiagonal_text(d, e, eigvals_only=False):
    one_matrix(1 + max(np.ndim(d), np.ndim(e)))
    if eigvals_only:
        return tridiagonal_values(d, e)
    require(_BY_STEVD, "the vectors of compiled code may have other signs.")
    return tridiagonal_pairs(d, e)


@pullback(linalg.hessenberg, shapes=[lambda rng: rng.uniform(-1.0, 1.0, (5, 5)), fixed(True)])
def hessenberg(a, calc_q=False, overwrite_a=False, check_finite=True, *, out, out_bar):
    """The first column of q stays, so that q and h are unique but for signs if no element below the diagonal is 0."""
    one_matrix(np.ndim(a))
    no_overwriting(overwrite_a=overwrite_a)
    if not calc_q:
        h, q = linalg.hessenberg(a, calc_q=True)
        return hessenberg_bar(h, q, out_bar, np.zeros_like(q))
    return hessenberg_bar(out[0], out[1], out_bar[0], out_bar[1])


@hessenberg.pushforward
def hessenberg_pushforward(a, calc_q=False, overwrite_a=False, check_finite=True, *, out, a_dot):
    one_matrix(np.ndim(a))
    no_overwriting(overwrite_a=overwrite_a)
    if not calc_q:
        h, q = linalg.hessenberg(a, calc_q=True)
        h_dot, _ = hessenberg_dot(h, q, a_dot)
        return h_dot
    return hessenberg_dot(out[0], out[1], a_dot)


def hessenberg_dot(h, q, a_dot):
    """Column by column: `slope + h @ turn - turn @ h` has zeros where h has them."""
    refuse_reduced(h)
    slope = q.T @ a_dot @ q
    lower = np.zeros_like(slope)
    for j in range(np.shape(h)[0] - 2):
        known = slope[j + 2 :, j] + h[j + 2 :, j + 1 :] @ lower[j + 1 :, j] - lower[j + 2 :, : j + 1] @ h[: j + 1, j]
        lower[j + 2 :, j + 1] = known / h[j + 1, j]
    turn = lower - lower.T
    return np.triu(slope + h @ turn - turn @ h, -1), q @ turn


def hessenberg_bar(h, q, h_bar, q_bar):
    """The transpose of `hessenberg_dot`."""
    refuse_reduced(h)
    slope_bar = np.triu(h_bar, -1)
    pull = h.T @ slope_bar - slope_bar @ h.T + q.T @ q_bar
    pull = pull - pull.T
    rest = np.zeros_like(pull)
    for j in range(np.shape(h)[0] - 3, -1, -1):
        known = pull[j + 2 :, j + 1] / h[j + 1, j]
        rest[j + 2 :, j] = known
        pull[j + 1 :, j] += known @ h[j + 2 :, j + 1 :]
        pull[j + 2 :, : j + 1] -= np.outer(known, h[: j + 1, j])
    return np.astype(q @ (slope_bar + rest) @ q.T, h.dtype)  # of small matrices q is float64


def refuse_reduced(h):
    """Refuse a numerically reducible matrix: the remaining block may start with any vector."""
    if np.any(np.abs(np.diag(h, -1)[:-1]) <= 100.0 * rounding(h.dtype) * np.max(np.append(np.abs(h), 0.0))):
        raise ValueError("scipy.linalg.hessenberg: with a zero below the diagonal the factors are not unique")


@template(linalg.hessenberg)
def hessenberg_text(a, calc_q=False, overwrite_a=False, check_finite=True):
    """Reflections, each of which clears a column below its second element."""
    one_matrix(np.ndim(a))
    n = np.shape(a)[0]
    h = np.copy(a)
    q = np.eye(n, dtype=a.dtype)
    for k in range(n - 2):
        v = np.copy(h[k + 1 :, k])
        if np.any(v[1:] != 0.0):
            v[0] += np.copysign(np.sqrt(np.sum(v * v)), v[0])
            v = v / np.sqrt(np.sum(v * v))
            h[k + 1 :] -= 2.0 * np.outer(v, v @ h[k + 1 :])
            h[:, k + 1 :] -= 2.0 * np.outer(h[:, k + 1 :] @ v, v)
            q[:, k + 1 :] -= 2.0 * np.outer(q[:, k + 1 :] @ v, v)
    if calc_q:
        return np.triu(h, -1), q
    return np.triu(h, -1)
