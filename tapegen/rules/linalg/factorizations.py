"""Factorizations of matrices, real and complex: Cholesky, QR, eigenvalues, singular values.

The formulas are those of the literature, where a scalar changes by the real part of the trace of the adjoint of its
cotangent times the change of the matrix; `np.conj` of inputs and outputs converts to tapegen's convention
(docs/complex.md), and does nothing for real values.  Phases that LAPACK is free to choose are held constant, except
those of `eig`, where the largest element of each vector is real.
"""

from __future__ import annotations

import numpy as np

from tapegen.rules.helpers import matrix_transpose, one_of, require
from tapegen.rules.linalg.solve import adjoint, full_rank, positive_definite
from tapegen.rules.registry import expands, fixed, pullback

# ---- Cholesky --------------------------------------------------------------------------------------------------------


@pullback(np.linalg.cholesky, shapes=[positive_definite], of_complex=True)
def cholesky(a, *, upper=False, out, out_bar):
    """NumPy reads one triangle of `a` only, so only that triangle has a derivative."""
    if upper:
        return matrix_transpose(cholesky_bar(adjoint(out), matrix_transpose(out_bar)))
    return np.conj(cholesky_bar(out, np.conj(out_bar)))


def cholesky_bar(lower, lower_bar):
    """Cotangent of the lower triangle of a matrix from that of its factor."""
    inverse = np.linalg.inv(lower)
    s = adjoint(inverse) @ lower_half(adjoint(lower) @ lower_bar) @ inverse
    return lower_half(s + adjoint(s))


def lower_half(x):
    """The lower triangle, with the diagonal halved."""
    return np.tril(x) - 0.5 * x * np.eye(np.shape(x)[-1], dtype=x.dtype)


@cholesky.pushforward
def cholesky_pushforward(a, *, upper=False, out, a_dot):
    if upper:
        return adjoint(cholesky_dot(adjoint(out), adjoint(a_dot)))
    return cholesky_dot(out, a_dot)


def cholesky_dot(lower, a_dot):
    """Tangent of a factor from the lower triangle of that of the matrix."""
    inverse = np.linalg.inv(lower)
    return lower @ lower_half(inverse @ symmetric_from(a_dot) @ adjoint(inverse))


def symmetric_from(x):
    """The symmetric or Hermitian matrix with the lower triangle of `x`."""
    if np.iscomplexobj(x):
        return np.tril(x, -1) + adjoint(np.tril(x, -1)) + np.real(x) * np.eye(np.shape(x)[-1], dtype=x.dtype)
    return np.tril(x) + matrix_transpose(np.tril(x, -1))


# ---- eigenvalues -----------------------------------------------------------------------------------------------------


def where_defined(x, gap):
    """`x / gap`, and 0 where both are 0; elsewhere a zero of `x` has a derivative, which second derivatives read."""
    undefined = (x == 0.0) & (gap == 0.0)
    return np.where(undefined, 0.0, x / np.where(undefined, 1.0, gap))


def over_gaps(x, w):
    """Off-diagonal elements over `w[j] - w[i]`; 0 / 0 is 0: eigenvectors that do not rotate may share an eigenvalue."""
    gap = np.expand_dims(w, -2) - np.expand_dims(w, -1)
    off_diagonal = (1.0 - np.eye(np.shape(w)[-1], dtype=w.dtype)) * x
    return where_defined(off_diagonal, gap)


@pullback(np.linalg.eigh, shapes=[positive_definite], of_complex=True, phases=True)
def eigh(a, UPLO="L", *, out, out_bar):
    """NumPy reads one triangle only.  Eigenvectors of equal eigenvalues have no derivative (inf or NaN)."""
    one_of("UPLO", UPLO, ("L", "l", "U", "u"))
    w, v = out
    w_bar, v_bar = out_bar
    inner = over_gaps(adjoint(v) @ np.conj(v_bar), w)
    s = (v * np.expand_dims(w_bar, -2) + v @ inner) @ adjoint(v)
    if UPLO == "L" or UPLO == "l":
        return np.conj(lower_half(s + adjoint(s)))
    return matrix_transpose(lower_half(s + adjoint(s)))


@eigh.pushforward
def eigh_pushforward(a, UPLO="L", *, out, a_dot):
    one_of("UPLO", UPLO, ("L", "l", "U", "u"))
    w, v = out
    if UPLO == "L" or UPLO == "l":
        s = symmetric_from(a_dot)
    else:
        s = symmetric_from(adjoint(a_dot))
    turn = adjoint(v) @ s @ v
    unit = np.eye(np.shape(w)[-1], dtype=w.dtype)
    return np.real(np.sum(unit * turn, axis=-1)), v @ over_gaps(turn, w)


@expands(np.linalg.eigvalsh, shapes=[positive_definite], of_complex=True)
def eigvalsh(a, UPLO="L"):
    w, _ = np.linalg.eigh(a, UPLO)
    return w


def not_normal(rng):
    """A complex matrix with well separated eigenvalues."""
    spread = rng.uniform(-0.3, 0.3, (3, 3)) + 1j * rng.uniform(-0.3, 0.3, (3, 3))
    return spread + np.diag([1.0, 2.0 + 1.0j, -1.0 + 0.5j])


def eig_of_real(a):
    """Of a real matrix, whose eigenvalues may be real or not: complex in any case, so that their type is known."""
    w, v = np.linalg.eig(a)
    return w.astype(np.result_type(a, np.complex64)), v.astype(np.result_type(a, np.complex64))


@pullback(np.linalg.eig, eig_of_real, shapes=[not_normal], of_complex=True)
def eig(a, *, out, out_bar):
    """Vectors have the length 1, and their largest elements are real."""
    w, v = out
    v_bar = np.conj(out_bar[1])
    along = np.expand_dims(np.sum(np.conj(v) * v_bar, axis=-2), -2)
    largest = largest_of(v)
    v_bar = v_bar - np.real(along) * v - 1j * np.imag(along) * largest / np.sum(largest * v, axis=-2, keepdims=True)
    inner = over_gaps(matrix_transpose(v) @ np.conj(v_bar), w)
    inner = inner + np.expand_dims(out_bar[0], -1) * np.eye(np.shape(w)[-1], dtype=w.dtype)
    return np.linalg.solve(matrix_transpose(v), inner @ matrix_transpose(v))


@eig.pushforward
def eig_pushforward(a, *, out, a_dot):
    w, v = out
    turn = np.linalg.solve(v, a_dot @ v)
    v_dot = v @ over_gaps(turn, w)
    largest = largest_of(v)
    longer = np.real(np.sum(np.conj(v) * v_dot, axis=-2, keepdims=True))
    turned = np.imag(np.sum(largest * v_dot, axis=-2, keepdims=True)) / np.sum(largest * v, axis=-2, keepdims=True)
    return np.sum(np.eye(np.shape(w)[-1], dtype=w.dtype) * turn, axis=-1), v_dot - (longer + 1j * turned) * v


def largest_of(v):
    """1 at the largest element of each vector, else 0."""
    k = np.argmax(np.abs(v), axis=-2)
    hit = np.expand_dims(np.arange(np.shape(v)[-2]), -1) == np.expand_dims(k, -2)
    return np.astype(hit, v.dtype)


def eigvals_of_real(a):
    """Complex in any case."""
    return np.astype(np.linalg.eigvals(a), np.result_type(a, np.complex64))


@expands(eigvals_of_real, shapes=[not_normal], of_complex=True)
def eigvals_of_real_formula(a):
    w, _ = eig_of_real(a)
    return w


@expands(np.linalg.eigvals, shapes=[not_normal], of_complex=True)
def eigvals(a):
    w, _ = np.linalg.eig(a)
    return w


# ---- QR --------------------------------------------------------------------------------------------------------------


@pullback(np.linalg.qr, shapes=[full_rank], of_complex=True)
def qr(a, mode="reduced", *, out, out_bar):
    """Of a matrix with at least as many rows as columns, of full rank; the diagonal of R is real."""
    require(mode == "reduced", "np.linalg.qr has a rule for mode='reduced' only.", "Leave mode out.")
    q, r = out
    q_bar = np.conj(out_bar[0])
    m = r @ adjoint(np.triu(np.conj(out_bar[1]))) - adjoint(q_bar) @ q
    return np.conj(adjoint(np.linalg.solve(r, adjoint(q_bar + q @ symmetric_from(m)))))


@qr.pushforward
def qr_pushforward(a, mode="reduced", *, out, a_dot):
    q, r = out
    slope = matrix_transpose(np.linalg.solve(matrix_transpose(r), matrix_transpose(a_dot)))
    inner = adjoint(q) @ slope
    turn = np.tril(inner, -1) - adjoint(np.tril(inner, -1))
    if np.iscomplexobj(a):
        turn = turn + 1j * np.imag(inner) * np.eye(np.shape(inner)[-1], dtype=inner.dtype)
    return slope - q @ (inner - turn), (inner - turn) @ r


# ---- singular values -------------------------------------------------------------------------------------------------


@expands(np.linalg.svdvals, shapes=[full_rank], of_complex=True)
def svdvals(x):
    return np.linalg.svd(x, compute_uv=False)


def over_square_gaps(x, s):
    """The off-diagonal elements over `s[j]**2 - s[i]**2`; 0 / 0 is 0."""
    row = np.expand_dims(s, -2)
    column = np.expand_dims(s, -1)
    gap = (row - column) * (row + column)
    turn = (1.0 - np.eye(np.shape(s)[-1], dtype=s.dtype)) * x
    return where_defined(turn, gap)


OF_THE_THIN_FORM = "np.linalg.svd of a matrix that is not square has a rule for full_matrices=False only"


@pullback(np.linalg.svd, shapes=[full_rank, fixed(False)], of_complex=True, phases=True)
def svd(a, full_matrices=True, compute_uv=True, *, out, out_bar):
    """Thin form (Townsend 2016).  Singular vectors of equal singular values have no derivative (inf or NaN)."""
    if not compute_uv:
        u, _, vh = np.linalg.svd(a, full_matrices=False)
        return np.conj(u * np.expand_dims(out_bar, -2) @ vh)
    if full_matrices and np.shape(a)[-2] != np.shape(a)[-1]:
        raise ValueError(OF_THE_THIN_FORM)
    u, s, vh = out
    u_bar = np.conj(out_bar[0])
    v_bar = matrix_transpose(out_bar[2])
    ut = adjoint(u)
    v = adjoint(vh)
    row = np.expand_dims(s, -2)
    column = np.expand_dims(s, -1)
    unit = np.eye(np.shape(s)[-1], dtype=s.dtype)
    turn_u = over_square_gaps(ut @ u_bar - adjoint(u_bar) @ u, s)
    turn_v = over_square_gaps(vh @ v_bar - adjoint(v_bar) @ v, s)
    core = turn_u * row + column * turn_v + unit * np.expand_dims(out_bar[1], -1)
    if np.iscomplexobj(a):
        core = core + 1j * unit * np.imag(ut @ u_bar) / row
    a_bar = u @ core @ vh
    a_bar = a_bar + ((u_bar - u @ (ut @ u_bar)) / row) @ vh
    return np.conj(a_bar + u @ adjoint((v_bar - v @ (vh @ v_bar)) / row))


@svd.pushforward
def svd_pushforward(a, full_matrices=True, compute_uv=True, *, out, a_dot):
    if not compute_uv:
        u, _, vh = np.linalg.svd(a, full_matrices=False)
        return np.real(np.sum(np.conj(u) * (a_dot @ adjoint(vh)), axis=-2))
    if full_matrices and np.shape(a)[-2] != np.shape(a)[-1]:
        raise ValueError(OF_THE_THIN_FORM)
    u, s, vh = out
    ut = adjoint(u)
    v = adjoint(vh)
    row = np.expand_dims(s, -2)
    column = np.expand_dims(s, -1)
    unit = np.eye(np.shape(s)[-1], dtype=s.dtype)
    inner = ut @ a_dot @ v
    turn_u = over_square_gaps(inner * row + column * adjoint(inner), s)
    turn_v = over_square_gaps(column * inner + adjoint(inner) * row, s)
    if np.iscomplexobj(a):
        turn_u = turn_u + 1j * unit * np.imag(inner) / row
    left = a_dot @ v
    right = adjoint(a_dot) @ u
    u_dot = u @ turn_u + (left - u @ (ut @ left)) / row
    v_dot = v @ turn_v + (right - v @ (vh @ right)) / row
    return u_dot, np.real(np.sum(unit * inner, axis=-1)), adjoint(v_dot)
