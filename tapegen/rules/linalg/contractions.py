"""Tensor contractions: products of vectors, matrices and tensors, `einsum`, convolution."""

from __future__ import annotations

import operator
import string

import numpy as np

from tapegen.rules.helpers import (
    axes_tuple,
    compile_time,
    even_axes,
    flat,
    inverse_permutation,
    matrix_transpose,
    odd_axes,
    one_of,
    other_axes,
    require,
)
from tapegen.rules.registry import expands, fixed, pullback

# ---- matrix products -----------------------------------------------------------------------------------------------


@pullback(np.matmul, np.linalg.matmul, operator.matmul, wrt=("a", "b"), shapes=[(3, 4), (4, 2)], of_complex=True)
def matmul(a, b, *, out_bar):
    if np.ndim(a) == 1 and np.ndim(b) == 1:
        return out_bar * b, out_bar * a
    if np.ndim(a) == 1 and np.ndim(b) == 2:
        return b @ out_bar, np.outer(a, out_bar)
    if np.ndim(a) == 2 and np.ndim(b) == 1:
        return np.outer(out_bar, b), a.T @ out_bar
    if np.ndim(a) == 1:  # a row, with a stack of matrices
        rows_bar = np.expand_dims(out_bar, -2)
        a_bar = np.squeeze(rows_bar @ matrix_transpose(b), axis=-2)
        return a_bar, np.expand_dims(a, -1) @ rows_bar
    if np.ndim(b) == 1:  # a column, with a stack of matrices
        columns_bar = np.expand_dims(out_bar, -1)
        b_bar = np.squeeze(matrix_transpose(a) @ columns_bar, axis=-1)
        return columns_bar @ np.expand_dims(b, 0), b_bar
    return out_bar @ matrix_transpose(b), matrix_transpose(a) @ out_bar


@matmul.pushforward
def matmul_pushforward(a, b, *, a_dot, b_dot):
    return a_dot @ b + a @ b_dot


@pullback(np.dot, wrt=("a", "b"), shapes=[(3, 4), (4, 2)], of_complex=True)
def dot(a, b, *, out_bar):
    if np.ndim(a) == 0 or np.ndim(b) == 0:
        return out_bar * b, out_bar * a
    if np.ndim(a) == 1 and np.ndim(b) == 1:
        return out_bar * b, out_bar * a
    if np.ndim(a) == 1 and np.ndim(b) == 2:
        return np.dot(b, out_bar), np.outer(a, out_bar)
    if np.ndim(a) == 2 and np.ndim(b) == 1:
        return np.outer(out_bar, b), np.dot(a.T, out_bar)
    if np.ndim(a) == 2 and np.ndim(b) == 2:
        return np.dot(out_bar, b.T), np.dot(a.T, out_bar)
    return contraction_bar(a, b, (np.ndim(a) - 1,), (max(0, np.ndim(b) - 2),), out_bar)


@dot.pushforward
def dot_pushforward(a, b, *, a_dot, b_dot):
    return np.dot(a_dot, b) + np.dot(a, b_dot)


@pullback(np.inner, wrt=("a", "b"), shapes=[(3, 4), (2, 4)], of_complex=True)
def inner(a, b, *, out_bar):
    if np.ndim(a) == 0 or np.ndim(b) == 0:
        return out_bar * b, out_bar * a
    if np.ndim(a) == 1 and np.ndim(b) == 1:
        return out_bar * b, out_bar * a
    return contraction_bar(a, b, (np.ndim(a) - 1,), (np.ndim(b) - 1,), out_bar)


@inner.pushforward
def inner_pushforward(a, b, *, a_dot, b_dot):
    return np.inner(a_dot, b) + np.inner(a, b_dot)


@pullback(np.vdot, wrt=("a", "b"), shapes=[(4,), (4,)], of_complex=True)
def vdot(a, b, *, out_bar):
    """The first vector is conjugated."""
    return np.conj(out_bar * np.reshape(b, np.shape(a))), out_bar * np.conj(np.reshape(a, np.shape(b)))


@vdot.pushforward
def vdot_pushforward(a, b, *, a_dot, b_dot):
    return np.vdot(a_dot, b) + np.vdot(a, b_dot)


@pullback(np.outer, np.linalg.outer, wrt=("a", "b"), shapes=[(3,), (4,)], of_complex=True)
def outer(a, b, *, out_bar):
    if np.ndim(a) == 1 and np.ndim(b) == 1:
        return out_bar @ b, a @ out_bar
    return np.reshape(out_bar @ np.ravel(b), np.shape(a)), np.reshape(np.ravel(a) @ out_bar, np.shape(b))


@outer.pushforward
def outer_pushforward(a, b, *, a_dot, b_dot):
    return np.outer(a_dot, b) + np.outer(a, b_dot)


@pullback(np.tensordot, np.linalg.tensordot, wrt=("a", "b"), shapes=[(2, 3, 4), (3, 4, 5)], of_complex=True)
def tensordot(a, b, axes=2, *, out_bar):
    a_axes, b_axes = contracted_axes(axes, np.ndim(a), np.ndim(b))
    return contraction_bar(a, b, a_axes, b_axes, out_bar)


@tensordot.pushforward
def tensordot_pushforward(a, b, axes=2, *, a_dot, b_dot):
    return np.tensordot(a_dot, b, axes) + np.tensordot(a, b_dot, axes)


@compile_time
def contracted_axes(axes, a_rank, b_rank):
    """The contracted axes of `np.tensordot(a, b, axes)`, as one tuple for each operand."""
    if isinstance(axes, int):
        return tuple(range(a_rank - axes, a_rank)), tuple(range(axes))
    a_axes, b_axes = ((k,) if isinstance(k, int) else tuple(k) for k in axes)
    return tuple(k % a_rank for k in a_axes), tuple(k % b_rank for k in b_axes)


@compile_time
def restoring_order(axes, partner_axes, rank):
    """Permutation of the axes of `tensordot(out_bar, other)` (free ones, then summed ones) to the operand's order."""
    summed = tuple(axes[partner_axes.index(k)] for k in sorted(partner_axes))
    return inverse_permutation(other_axes(axes, rank) + summed)


def contraction_bar(a, b, a_axes, b_axes, out_bar):
    """Cotangents of the operands of a contraction; the result has the free axes of a, then those of b."""
    a_free = other_axes(a_axes, np.ndim(a))
    b_free = other_axes(b_axes, np.ndim(b))
    out_axes = axes_tuple(None, np.ndim(out_bar))
    a_bar = np.tensordot(out_bar, b, (out_axes[len(a_free) :], b_free))
    b_bar = np.tensordot(out_bar, a, (out_axes[: len(a_free)], a_free))
    a_bar = np.transpose(a_bar, restoring_order(a_axes, b_axes, np.ndim(a)))
    b_bar = np.transpose(b_bar, restoring_order(b_axes, a_axes, np.ndim(b)))
    return a_bar, b_bar


@expands(np.vecdot, np.linalg.vecdot, shapes=[(3, 4), (3, 4)], of_complex=True)
def vecdot(a, b, *, axis=-1):
    return np.sum(np.conj(np.moveaxis(a, axis, -1)) * np.moveaxis(b, axis, -1), axis=-1)


@expands(np.matvec, shapes=[(3, 4), (4,)], of_complex=True)
def matvec(a, b):
    return np.sum(a * np.expand_dims(b, -2), axis=-1)


@expands(np.vecmat, shapes=[(3,), (3, 4)], of_complex=True)
def vecmat(a, b):
    return np.sum(np.expand_dims(np.conj(a), -1) * b, axis=-2)


@expands(np.kron, shapes=[(2, 3), (3, 2)], of_complex=True)
def kron(a, b):
    # equal ranks, then every axis of a before the same axis of b
    rank = max(np.ndim(a), np.ndim(b))
    a = np.expand_dims(a, axes_tuple(None, rank - np.ndim(a)))
    b = np.expand_dims(b, axes_tuple(None, rank - np.ndim(b)))
    blocks = np.expand_dims(a, odd_axes(rank)) * np.expand_dims(b, even_axes(rank))
    shape = ()
    for k in axes_tuple(None, rank):
        shape = shape + (np.shape(a)[k] * np.shape(b)[k],)
    return np.reshape(blocks, shape)


@expands(np.linalg.cross, shapes=[(4, 3), (4, 3)], of_complex=True)
def linalg_cross(x1, x2, *, axis=-1):
    return np.cross(x1, x2, axis=axis)


@expands(np.cross, shapes=[(4, 3), (4, 3)], of_complex=True)
def cross(a, b, axisa=-1, axisb=-1, axisc=-1, axis=None):
    if axis is not None:
        axisa = axis
        axisb = axis
        axisc = axis
    a = np.moveaxis(a, axisa, 0)
    b = np.moveaxis(b, axisb, 0)
    if np.shape(a)[0] > 3 or np.shape(b)[0] > 3:
        raise ValueError("incompatible dimensions for cross product (dimension must be 2 or 3)")
    x = a[1] * b[2] - a[2] * b[1]
    y = a[2] * b[0] - a[0] * b[2]
    z = a[0] * b[1] - a[1] * b[0]
    return np.stack((x, y, z), axis=axisc)


# ---- convolution ---------------------------------------------------------------------------------------------------


@pullback(np.convolve, wrt=("a", "v"), shapes=[(5,), (3,)], of_complex=True)
def convolve(a, v, mode="full", *, out_bar):
    """The cotangent of the full convolution, of which the other modes are the middle, correlated with the partner."""
    if np.ndim(a) == 0 or np.ndim(v) == 0:
        return convolve_bars(flat(a), flat(v), mode, out_bar)
    return convolve_bars(a, v, mode, out_bar)


def convolve_bars(a, v, mode, out_bar):
    """Cotangents of two vectors."""
    one_of("mode", mode, ("full", "same", "valid", 2, 1, 0))
    if mode == "full":
        full_bar = out_bar
    else:
        full_bar = np.zeros(np.size(a) + np.size(v) - 1, dtype=out_bar.dtype)
        start = (np.size(full_bar) - np.size(out_bar)) // 2
        full_bar[start : start + np.size(out_bar)] = out_bar
    return np.correlate(full_bar, np.conj(v), "valid"), np.correlate(full_bar, np.conj(a), "valid")


@convolve.pushforward
def convolve_pushforward(a, v, mode="full", *, a_dot, v_dot):
    return np.convolve(a_dot, v, mode) + np.convolve(a, v_dot, mode)


@expands(np.correlate, shapes=[(5,), (3,)], of_complex=True)
def correlate(a, v, mode="valid"):
    if (mode == "same" or mode == 1) and np.size(a) < np.size(v):
        return np.convolve(np.conj(flat(v)), flat(a)[::-1], mode)[::-1]  # NumPy reverses the middle of this one
    return np.convolve(a, np.conj(flat(v)[::-1]), mode)


# ---- einsum --------------------------------------------------------------------------------------------------------


@pullback(np.einsum, wrt="operands", shapes=[fixed("ij,jk->ik"), (2, 3), (3, 4)], of_complex=True, broadcasts=True)
def einsum(subscripts, *operands, out_bar):
    """The sum over the result and all other operands, with the axes summed over alone spread out again."""
    subscripts = einsum_named(subscripts, ranks_of(operands))
    units = ()
    for k, axis in einsum_repeated(subscripts):
        units = (*units, np.eye(np.shape(operands[k])[axis], dtype=operands[k].dtype))
    subscripts = einsum_with_units(subscripts)
    bars = ()
    for k, operand in enumerate(operands):
        terms = (out_bar,) + operands[:k] + operands[k + 1 :] + units
        bar = np.einsum(einsum_pullback(subscripts, k), *terms)
        missing = einsum_lonely_axes(subscripts, k)
        if missing:
            bar = np.broadcast_to(np.expand_dims(bar, missing), np.shape(operand))
        bars = bars + (bar,)
    return bars


@einsum.pushforward
def einsum_pushforward(subscripts, *operands, operands_dot):
    terms = operands_dot[:1] + operands[1:]
    total = np.einsum(subscripts, *terms)
    for k in range(1, len(operands)):
        terms = operands[:k] + operands_dot[k : k + 1] + operands[k + 1 :]
        total = total + np.einsum(subscripts, *terms)
    return total


def ranks_of(operands):
    ranks = ()
    for operand in operands:
        ranks = ranks + (np.ndim(operand),)
    return ranks


@compile_time
def einsum_named(subscripts, ranks):
    """Subscripts without an ellipsis: its axes, counted from the last one, get letters of their own."""
    text = subscripts.replace(" ", "")
    if "..." not in text:
        return text
    inputs, arrow, result = text.partition("->")
    terms = inputs.split(",")
    counts = [rank - len(term.replace("...", "")) if "..." in term else 0 for term, rank in zip(terms, ranks)]
    letters = "".join([letter for letter in string.ascii_letters if letter not in text][: max(counts)])
    named = [term.replace("...", letters[len(letters) - count :]) for term, count in zip(terms, counts)]
    if not arrow:
        result = "..." + "".join(sorted(c for c in set(inputs) - {",", "."} if inputs.count(c) == 1))
    return f"{','.join(named)}->{result.replace('...', letters)}"


@compile_time
def einsum_repeated(subscripts):
    """Operand and axes of each letter that is repeated in one operand, of which the diagonal is taken."""
    terms = subscripts.partition("->")[0].split(",")
    return tuple((k, axis) for k, term in enumerate(terms) for axis, c in enumerate(term) if c in term[:axis])


@compile_time
def einsum_with_units(subscripts):
    """The diagonal of a matrix is the sum of its product with the unit matrix: `ii->i` is `ij,ij->i`."""
    inputs, arrow, result = subscripts.partition("->")
    if not arrow:
        result = "".join(sorted(letter for letter in set(inputs) - {","} if inputs.count(letter) == 1))
    terms = inputs.split(",")
    units = []
    for k, axis in einsum_repeated(subscripts):
        letter = next(letter for letter in string.ascii_letters if letter not in "".join([*terms, *units, result]))
        units.append(terms[k][axis] + letter)
        terms[k] = terms[k][:axis] + letter + terms[k][axis + 1 :]
    return f"{','.join([*terms, *units])}->{result}"


def einsum_terms(subscripts):
    """Letters of each operand, and of the result."""
    text = subscripts.replace(" ", "")
    inputs, arrow, result = text.partition("->")
    terms = inputs.split(",")
    for term in terms:
        repeated = len(set(term)) < len(term)
        require(not repeated, f"np.einsum has no rule for the diagonal '{term}'.", "Take np.diagonal first.")
    if not arrow:
        result = "".join(sorted(letter for letter in set(inputs) - {","} if inputs.count(letter) == 1))
    return terms, result


@compile_time
def einsum_pullback(subscripts, k):
    """Subscripts of the cotangent of operand k from that of the result and the other operands."""
    terms, result = einsum_terms(subscripts)
    others = [result, *terms[:k], *terms[k + 1 :]]
    known = "".join(letter for letter in terms[k] if any(letter in other for other in others))
    return f"{','.join(others)}->{known}"


@compile_time
def einsum_lonely_axes(subscripts, k):
    """The axes of operand k whose letter occurs nowhere else."""
    terms, result = einsum_terms(subscripts)
    others = "".join([result, *terms[:k], *terms[k + 1 :]])
    return tuple(axis for axis, letter in enumerate(terms[k]) if letter not in others)


# ---- einsum in steps -------------------------------------------------------------------------------------------------


@compile_time
def einsum_axes(subscripts):
    """For one operand: the summed axes, and the order of the others."""
    (term,), result = einsum_terms(subscripts)
    kept = [letter for letter in term if letter in result]
    return tuple(k for k, letter in enumerate(term) if letter not in result), tuple(map(kept.index, result))


@compile_time
def einsum_whole(subscripts):
    """For two operands that are summed to a scalar: the letters of all axes as the result."""
    terms, _ = einsum_terms(subscripts)
    return f"{','.join(terms)}->{''.join(dict.fromkeys(''.join(terms)))}"


def first_two(subscripts):
    """The letters of the first two operands that occur elsewhere."""
    terms, result = einsum_terms(subscripts)
    others = "".join([*terms[2:], result])
    return "".join(letter for letter in dict.fromkeys(terms[0] + terms[1]) if letter in others)


@compile_time
def einsum_first(subscripts):
    """The product of the first two of several operands."""
    terms, _ = einsum_terms(subscripts)
    return f"{terms[0]},{terms[1]}->{first_two(subscripts)}"


@compile_time
def einsum_rest(subscripts):
    """The product of that product and the other operands."""
    terms, result = einsum_terms(subscripts)
    return f"{','.join([first_two(subscripts), *terms[2:]])}->{result}"
