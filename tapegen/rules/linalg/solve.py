"""Linear systems, determinants, inverses and norms.

Matrices may come in stacks: all but the last two axes are batch axes.
"""

from __future__ import annotations

import numpy as np

from tapegen.rules.helpers import axes_tuple, keep_axis, kept_count, lanes, matrix_transpose, one_axis, one_of, require
from tapegen.rules.registry import expands, fixed, pullback

# ---- example matrices for the automatic test -----------------------------------------------------------------------


def regular(rng):
    """A well conditioned matrix."""
    return rng.uniform(-0.5, 0.5, (3, 3)) + np.diag([2.0, -2.5, 3.0])


def positive_definite(rng):
    """A symmetric matrix with eigenvalues near 2, 3 and 4."""
    off = rng.uniform(-0.2, 0.2, (3, 3))
    return off @ off.T + np.diag([2.0, 3.0, 4.0])


def full_rank(rng):
    """A tall matrix with well separated singular values."""
    return np.eye(4, 3) * np.array([1.0, 2.0, 3.0]) + rng.uniform(-0.2, 0.2, (4, 3))


# ---- solving -------------------------------------------------------------------------------------------------------


@pullback(np.linalg.solve, wrt=("a", "b"), shapes=[regular, (3,)], of_complex=True)
def solve(a, b, *, out, out_bar):
    if np.ndim(b) == 1 and np.ndim(a) == 2:
        b_bar = np.linalg.solve(a.T, out_bar)
        return -np.outer(b_bar, out), b_bar
    if np.ndim(b) == 1:
        columns_bar = np.linalg.solve(matrix_transpose(a), np.expand_dims(out_bar, -1))
        return -columns_bar * np.expand_dims(out, -2), np.squeeze(columns_bar, axis=-1)
    b_bar = np.linalg.solve(matrix_transpose(a), out_bar)
    return -b_bar @ matrix_transpose(out), b_bar


@solve.pushforward
def solve_pushforward(a, b, *, out, a_dot, b_dot):
    if np.ndim(b) == 1:
        columns_dot = np.expand_dims(b_dot, -1) - a_dot @ np.expand_dims(out, -1)
        return np.squeeze(np.linalg.solve(a, columns_dot), axis=-1)
    return np.linalg.solve(a, b_dot - a_dot @ out)


@pullback(np.linalg.inv, shapes=[regular], of_complex=True)
def inv(a, *, out, out_bar):
    return -matrix_transpose(out) @ out_bar @ matrix_transpose(out)


@inv.pushforward
def inv_pushforward(a, *, out, a_dot):
    return -out @ a_dot @ out


@pullback(np.linalg.det, shapes=[regular], of_complex=True)
def det(a, *, out, out_bar):
    """Of a regular matrix; a singular one is refused by `inv`."""
    if np.ndim(a) == 2:
        return out_bar * out * np.linalg.inv(a).T
    return np.expand_dims(out_bar * out, (-2, -1)) * matrix_transpose(np.linalg.inv(a))


@det.pushforward
def det_pushforward(a, *, out, a_dot):
    return out * np.sum(matrix_transpose(np.linalg.inv(a)) * a_dot, axis=(-2, -1))


@pullback(np.linalg.slogdet, shapes=[regular], of_complex=True)
def slogdet(a, *, out, out_bar):
    """The sign of a real determinant carries no derivative; that of a complex one turns."""
    bar = out_bar[1]
    if np.iscomplexobj(a):
        bar = bar + 1j * np.imag(out_bar[0] * out[0])
    if np.ndim(a) == 2:
        return bar * np.linalg.inv(a).T
    return np.expand_dims(bar, (-2, -1)) * matrix_transpose(np.linalg.inv(a))


@slogdet.pushforward
def slogdet_pushforward(a, *, out, a_dot):
    slope = np.sum(matrix_transpose(np.linalg.inv(a)) * a_dot, axis=(-2, -1))
    if np.iscomplexobj(a):
        return out[0] * 1j * np.imag(slope), np.real(slope)
    return None, slope


@pullback(np.linalg.pinv, shapes=[full_rank], of_complex=True)
def pinv(a, rcond=None, hermitian=False, *, rtol=None, out, out_bar):
    """Golub and Pereyra (1973), where the rank is constant nearby."""
    require(not hermitian, "np.linalg.pinv(hermitian=True) reads one triangle.", "Leave hermitian out.")
    require(
        rcond is None and rtol is None,
        "np.linalg.pinv has a rule without a tolerance: what is left out moves what is kept.",
        "Use np.linalg.svd, and divide by the singular values that count.",
    )
    out_t = adjoint(out)
    bar_t = matrix_transpose(out_bar)
    rest_left = np.eye(np.shape(a)[-2], dtype=a.dtype) - a @ out
    rest_right = np.eye(np.shape(a)[-1], dtype=a.dtype) - out @ a
    direct = -out_t @ np.conj(out_bar) @ out_t
    return np.conj(direct + rest_left @ bar_t @ out @ out_t + out_t @ out @ bar_t @ rest_right)


@pinv.pushforward
def pinv_pushforward(a, rcond=None, hermitian=False, *, rtol=None, out, a_dot):
    out_t = adjoint(out)
    dot_t = adjoint(a_dot)
    rest_left = np.eye(np.shape(a)[-2], dtype=a.dtype) - a @ out
    rest_right = np.eye(np.shape(a)[-1], dtype=a.dtype) - out @ a
    return -out @ a_dot @ out + out @ out_t @ dot_t @ rest_left + rest_right @ dot_t @ out_t @ out


@expands(np.linalg.matrix_power, shapes=[regular, fixed(5)], of_complex=True)
def matrix_power(a, n):
    """By repeated squaring; the exponent is known when compiling."""
    require(abs(n) <= 1024, "np.linalg.matrix_power has a rule for exponents up to 1024.", "Write the loop.")
    return power_of(a, n)


def power_of(a, n):
    """`n` factors `a`."""
    if n < 0:
        return power_of(np.linalg.inv(a), -n)
    if n == 0:
        return np.broadcast_to(np.eye(np.shape(a)[-1], dtype=a.dtype), np.shape(a))
    if n == 1:
        return a
    half = power_of(a, n // 2)
    if n % 2 == 0:
        return half @ half
    return half @ half @ a


def adjoint(x):
    """The conjugated transpose of each matrix."""
    return np.conj(matrix_transpose(x))


@expands(np.linalg.lstsq, shapes=[full_rank, (4,)])
def lstsq(a, b, rcond=None):
    """Of full rank; the sums of squares are given where there are more equations than unknowns."""
    if rcond is None or rcond <= 0.0 or rcond >= 1.0:  # LAPACK takes the machine epsilon
        x = np.linalg.pinv(a) @ b
        rank = np.linalg.matrix_rank(a)
    else:
        s = np.linalg.svdvals(a)
        rank = np.sum(s > rcond * s[0])
        x = np.linalg.pinv(a) @ b if rank == min(np.shape(a)) else least_squares_of_rank(a, b, rank)
    rest = b - a @ x
    squares = np.sum(rest * rest, axis=0, keepdims=np.ndim(b) == 1)
    given = min(max(np.shape(a)[0] - np.shape(a)[1], 0), 1) * max(0, 1 - np.shape(a)[1] + rank)
    return x, squares[: given * np.shape(squares)[0]], rank, np.linalg.svdvals(a)


def least_squares_of_rank(a, b, rank):
    """With the largest singular values alone, which move with what is left out."""
    u, s, vt = np.linalg.svd(a, full_matrices=False)
    kept = np.arange(np.size(s)) < rank
    inverse = np.where(kept, 1.0 / np.where(kept, s, 1.0), 0.0)
    return (np.transpose(vt) * inverse) @ (np.transpose(u) @ b)


@expands(
    np.linalg.tensorsolve, shapes=[lambda rng: np.reshape(np.eye(6) * 2.0 + 0.1, (2, 3, 6)), (2, 3)], of_complex=True
)
def tensorsolve(a, b, axes=None):
    if axes is not None:
        axes = axes_tuple(axes, np.ndim(a))
        a = np.moveaxis(a, axes, axes_tuple(None, np.ndim(a))[np.ndim(a) - len(axes) :])
    rest = np.shape(a)[np.ndim(b) :]
    x = np.linalg.solve(np.reshape(a, (np.size(b), np.size(b))), np.ravel(b))
    return np.reshape(x, rest)


@expands(
    np.linalg.tensorinv, shapes=[lambda rng: np.reshape(np.eye(6) * 2.0 + 0.1, (2, 3, 6)), fixed(2)], of_complex=True
)
def tensorinv(a, ind=2):
    rows = np.shape(a)[:ind]
    columns = np.shape(a)[ind:]
    total = 1
    for n in rows:
        total = total * n
    return np.reshape(np.linalg.inv(np.reshape(a, (total, total))), columns + rows)


@expands(np.linalg.cond, shapes=[regular], of_complex=True)
def cond(x, p=None):
    if p is None or p == 2:
        s = np.linalg.svdvals(x)
        return s[..., 0] / s[..., -1]
    if p == -2:
        s = np.linalg.svdvals(x)
        return s[..., -1] / s[..., 0]
    return np.linalg.norm(x, p, axis=(-2, -1)) * np.linalg.norm(np.linalg.inv(x), p, axis=(-2, -1))


@expands(np.linalg.trace, shapes=[(2, 3, 4)], of_complex=True)
def linalg_trace(x, *, offset=0, dtype=None):
    return np.sum(np.diagonal(x, offset, -2, -1), axis=-1, dtype=dtype)


@expands(np.linalg.diagonal, shapes=[(2, 3, 4)], of_complex=True)
def linalg_diagonal(x, *, offset=0):
    return np.diagonal(x, offset, -2, -1)


@expands(np.linalg.multi_dot, shapes=[[(2, 3), (3, 4), (4, 2)]], of_complex=True)
def multi_dot(arrays):
    product = arrays[0]
    for a in arrays[1:]:
        product = product @ a
    return product


# ---- norms ---------------------------------------------------------------------------------------------------------


@pullback(np.linalg.norm, shapes=[(3, 4)], of_complex=True)
def norm(x, ord=None, axis=None, keepdims=False, *, out, out_bar):
    """Where the norm is not smooth, the derivative of least norm (0 at the origin; what ties shares alike)."""
    axes = axes_tuple(axis, np.ndim(x))
    length = keep_axis(out, axis, keepdims)
    length_bar = keep_axis(out_bar, axis, keepdims)
    if ord is None or ord == "fro" or (len(axes) == 1 and ord == 2):
        return np.conj(x) * (length_bar / (length + (length == 0.0)))
    if len(axes) == 1:
        return vector_norm_bar(x, ord, axis, length, length_bar)
    return matrix_norm_bar(x, ord, axis, length, length_bar)


@norm.pushforward
def norm_pushforward(x, ord=None, axis=None, keepdims=False, *, out, x_dot):
    axes = axes_tuple(axis, np.ndim(x))
    if ord is None or ord == "fro" or (len(axes) == 1 and ord == 2):
        return np.sum(np.real(np.conj(x) * x_dot), axis=axis, keepdims=keepdims) / (out + (out == 0.0))
    length = keep_axis(out, axis, keepdims)
    if len(axes) == 1:
        slope = vector_norm_bar(x, ord, axis, length, 1.0)
    else:
        slope = matrix_norm_bar(x, ord, axis, length, 1.0)
    return np.sum(np.real(slope * x_dot), axis=axis, keepdims=keepdims)


def direction(x):
    """The derivative of the absolute value (the conjugated complex sign); 0 at 0."""
    if not np.iscomplexobj(x):
        return np.sign(x)
    size = np.abs(x)
    return np.conj(x) / (size + (size == 0.0))


def vector_norm_bar(x, ord, axis, length, length_bar):
    """Cotangent for a vector norm along one axis; `length` and its cotangent broadcast against x."""
    if ord == 0:
        return np.zeros_like(x)
    if ord == 1:
        return direction(x) * length_bar
    if ord == np.inf or ord == -np.inf:
        hit = np.abs(x) == length
        return np.where(hit, direction(x) * length_bar / kept_count(hit, axis, x.dtype), 0.0)
    return direction(x) * (np.abs(x) / (length + (length == 0.0))) ** (ord - 1) * length_bar


def matrix_norm_bar(x, ord, axis, length, length_bar):
    """Cotangent for a norm of matrices in two axes; `length` and its cotangent broadcast against x."""
    one_of("ord", ord, ("nuc", 1, -1, 2, -2, np.inf, -np.inf))
    axes = axes_tuple(axis, np.ndim(x))
    if ord == 1 or ord == -1 or ord == np.inf or ord == -np.inf:
        summed = axes[0] if ord == 1 or ord == -1 else axes[1]
        sums = np.sum(np.abs(x), axis=summed, keepdims=True)
        hit = sums == length
        return np.where(hit, direction(x) * length_bar / kept_count(hit, axis, x.dtype), 0.0)
    u, _, vh = np.linalg.svd(np.moveaxis(x, axes, (-2, -1)), full_matrices=False)
    if ord == "nuc":
        slope = u @ vh
    elif ord == 2:
        slope = np.expand_dims(u[..., :, 0], -1) * np.expand_dims(vh[..., 0, :], -2)
    else:
        slope = np.expand_dims(u[..., :, -1], -1) * np.expand_dims(vh[..., -1, :], -2)
    return np.conj(np.moveaxis(slope, (-2, -1), axes)) * length_bar


@expands(np.linalg.vector_norm, shapes=[(3, 4)], of_complex=True)
def vector_norm(x, *, axis=None, keepdims=False, ord=2):
    if axis is None or isinstance(axis, tuple):
        length = np.linalg.norm(lanes(x, axis), ord, axis=0)
        return keep_axis(length, one_axis(axis, np.ndim(x), 0, keepdims), False)
    return np.linalg.norm(x, ord, axis=axis, keepdims=keepdims)


@expands(np.linalg.matrix_norm, shapes=[(3, 4)], of_complex=True)
def matrix_norm(x, *, keepdims=False, ord="fro"):
    return np.linalg.norm(x, ord, axis=(-2, -1), keepdims=keepdims)
