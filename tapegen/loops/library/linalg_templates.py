"""Templates of linear algebra in terms of what numba supports: stacks of matrices, options, norms."""

from __future__ import annotations

from typing import Any

import numpy as np

from tapegen.ir.nodes import Call
from tapegen.loops.library.templates import Chosen, known, rank_of
from tapegen.rules.helpers import axes_tuple
from tapegen.rules.templates import template_by_call


def matrices(a):
    """A stack of matrices along one axis."""
    count = 1
    for k in axes_tuple(None, np.ndim(a) - 2):
        count = count * np.shape(a)[k]
    return np.reshape(np.copy(a), (count,) + np.shape(a)[-2:])


def _stacked(func: Any, text: Any, *, options: bool = False) -> None:
    """Register a template for stacks; with `options` also for single matrices with keywords."""

    @template_by_call(func)
    def choose(call: Call) -> Chosen:
        return text if rank_of(call.args[0]) > 2 or (options and (call.kwargs or len(call.args) > 1)) else None


def inv_stack(a):
    rows = matrices(a)
    out = np.zeros_like(rows)
    for k in range(np.shape(rows)[0]):
        out[k] = np.linalg.inv(rows[k])
    return np.reshape(out, np.shape(a))


def det_stack(a):
    rows = matrices(a)
    out = np.zeros(np.shape(rows)[0], dtype=a.dtype)
    for k in range(np.shape(rows)[0]):
        out[k] = np.linalg.det(rows[k])
    return np.reshape(out, np.shape(a)[:-2])


def slogdet_stack(a):
    rows = matrices(a)
    sign = np.zeros(np.shape(rows)[0], dtype=a.dtype)
    size = np.zeros(np.shape(rows)[0], dtype=a.dtype)
    for k in range(np.shape(rows)[0]):
        sign[k], size[k] = np.linalg.slogdet(rows[k])
    return np.reshape(sign, np.shape(a)[:-2]), np.reshape(size, np.shape(a)[:-2])


def pinv_stack(a):
    rows = matrices(a)
    out = np.zeros((np.shape(rows)[0], np.shape(a)[-1], np.shape(a)[-2]), dtype=a.dtype)
    for k in range(np.shape(rows)[0]):
        out[k] = np.linalg.pinv(rows[k])
    return np.reshape(out, np.shape(a)[:-2] + np.shape(out)[1:])


def cholesky_text(a, upper=False):
    if upper:
        return np.swapaxes(np.linalg.cholesky(np.swapaxes(a, -1, -2)), -1, -2)
    rows = matrices(a)
    out = np.zeros_like(rows)
    for k in range(np.shape(rows)[0]):
        out[k] = np.linalg.cholesky(np.copy(rows[k]))
    return np.reshape(out, np.shape(a))


@template_by_call(np.linalg.eigh)
def _eigh(call: Call) -> Chosen:
    lower = known(call, 1, "UPLO", "L") == "L"  # of the other triangle the vectors may have other signs
    return eigh_text if lower and (rank_of(call.args[0]) > 2 or len(call.args) > 1 or call.kwargs) else None


def eigh_text(a, UPLO="L"):
    rows = matrices(a)
    w = np.zeros(np.shape(rows)[:2], dtype=a.real.dtype)
    v = np.zeros_like(rows)
    for k in range(np.shape(rows)[0]):
        w[k], v[k] = np.linalg.eigh(np.copy(rows[k]))
    return np.reshape(w, np.shape(a)[:-1]), np.reshape(v, np.shape(a))


def qr_text(a, mode="reduced"):
    if np.ndim(a) == 2:
        return np.linalg.qr(a)
    rows = matrices(a)
    n = np.shape(rows)[0]
    least = min(np.shape(a)[-2], np.shape(a)[-1])
    q = np.zeros((n, np.shape(a)[-2], least), dtype=a.dtype)
    r = np.zeros((n, least, np.shape(a)[-1]), dtype=a.dtype)
    for k in range(n):
        q[k], r[k] = np.linalg.qr(np.copy(rows[k]))
    lead = np.shape(a)[:-2]
    return np.reshape(q, lead + np.shape(q)[1:]), np.reshape(r, lead + np.shape(r)[1:])


def svd_text(a, full_matrices=True, compute_uv=True):
    if np.ndim(a) == 2 and compute_uv:
        return np.linalg.svd(a, full_matrices)
    if np.ndim(a) == 2:
        _, values, _ = np.linalg.svd(a, False)
        return values
    rows = matrices(a)
    n = np.shape(rows)[0]
    m = np.shape(a)[-2]
    p = np.shape(a)[-1]
    least = min(m, p)
    u = np.zeros((n, m, m if full_matrices else least), dtype=a.dtype)
    s = np.zeros((n, least), dtype=a.real.dtype)
    vh = np.zeros((n, p if full_matrices else least, p), dtype=a.dtype)
    for k in range(n):
        u[k], s[k], vh[k] = np.linalg.svd(np.copy(rows[k]), full_matrices)
    lead = np.shape(a)[:-2]
    values = np.reshape(s, lead + np.shape(s)[1:])
    if not compute_uv:
        return values
    return np.reshape(u, lead + np.shape(u)[1:]), values, np.reshape(vh, lead + np.shape(vh)[1:])


_stacked(np.linalg.inv, inv_stack)
_stacked(np.linalg.det, det_stack)
_stacked(np.linalg.slogdet, slogdet_stack)
_stacked(np.linalg.pinv, pinv_stack)
_stacked(np.linalg.cholesky, cholesky_text, options=True)
_stacked(np.linalg.qr, qr_text, options=True)


@template_by_call(np.linalg.svd)
def _svd(call: Call) -> Chosen:
    plain = rank_of(call.args[0]) == 2 and not call.kwargs and len(call.args) <= 2
    return None if plain else svd_text


@template_by_call(np.linalg.solve)
def _solve(call: Call) -> Chosen:
    kinds = {getattr(arg.type, "dtype", "") for arg in call.args}
    if len(kinds) > 1 and not any("complex" in kind for kind in kinds):
        return solve_in_float64
    return solve_stack if rank_of(call.args[0]) > 2 or rank_of(call.args[1]) > 2 else None


def solve_in_float64(a, b):
    return np.linalg.solve(a.astype(np.float64), b.astype(np.float64))


def solve_stack(a, b):
    columns = np.expand_dims(b, -1) if np.ndim(b) == 1 else b
    lead = np.shape(np.zeros(np.shape(a)[:-2]) + np.zeros(np.shape(columns)[:-2]))
    left = matrices(np.broadcast_to(a, lead + np.shape(a)[-2:]))
    right = matrices(np.broadcast_to(columns, lead + np.shape(columns)[-2:]))
    out = np.zeros_like(right)
    for k in range(np.shape(out)[0]):
        out[k] = np.linalg.solve(np.copy(left[k]), np.copy(right[k]))
    x = np.reshape(out, lead + np.shape(columns)[-2:])
    if np.ndim(b) == 1:
        return np.squeeze(x, axis=-1)
    return x


# ---- norms -----------------------------------------------------------------------------------------------------------


@template_by_call(np.linalg.norm)
def _norm(call: Call) -> Chosen:
    order, axis, rank = known(call, 1, "ord", None), known(call, 2, "axis", None), rank_of(call.args[0])
    vectors = isinstance(axis, int) or (axis is None and rank == 1)
    if order is None or (vectors and order in (1, 2, np.inf, -np.inf)) or (order == "fro" and rank == 2):
        return None
    return vector_norm if vectors else matrix_norm


def vector_norm(x, ord=None, axis=None, keepdims=False):
    size = np.abs(x)
    if ord == 0:
        return np.sum(np.where(size == 0.0, 0.0, np.ones_like(size)), axis=axis, keepdims=keepdims)
    return np.sum(size**ord, axis=axis, keepdims=keepdims) ** (1.0 / ord)


def matrix_norm(x, ord=None, axis=None, keepdims=False):
    axes = axes_tuple(axis, np.ndim(x))
    if ord == "fro":
        return np.sqrt(np.sum(x * x, axis=axes, keepdims=keepdims))
    if ord == 1 or ord == -1 or ord == np.inf or ord == -np.inf:
        summed = axes[0] if ord == 1 or ord == -1 else axes[1]
        sums = np.sum(np.abs(x), axis=summed, keepdims=True)
        if ord > 0:
            return np.max(sums, axis=axes, keepdims=keepdims)
        return np.min(sums, axis=axes, keepdims=keepdims)
    values = np.linalg.svd(np.moveaxis(x, axes, (-2, -1)), full_matrices=False, compute_uv=False)
    if ord == "nuc":
        length = np.sum(values, axis=-1)
    elif ord == 2:
        length = np.max(values, axis=-1)
    else:
        length = np.min(values, axis=-1)
    if keepdims:
        return np.expand_dims(length, axes)
    return length
