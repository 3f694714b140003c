"""Methods and attributes of arrays, methods of ufuncs, and their keywords: both modes, to second order."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from tapegen import check_grads, differentiable
from tapegen.errors import TapegenError
from tapegen.frontend.source.synthesize import function_from_text

X = np.array([[0.7, -1.2, 0.4], [1.5, 0.3, -0.8]])
V = np.array([1.1, -0.6, 0.5])
MASK = np.array([[True, False, True], [True, True, False]])

METHODS = """
x.all() * x.sum(); x.any() * x.sum(); x.argmax() * x; x.argmin(axis=1) * x.sum(axis=1); v.argpartition(1) * v
v.argsort() * v; x.astype(np.float64); np.array([1, 0, 1]).choose(x); x.clip(-1.0, 1.0)
v.compress([True, False, True]); x.compress([True, False, True], axis=1); x.conj(); x.conjugate(); x.copy()
x.cumprod(axis=0); x.cumsum(); x.cumsum(axis=1); x.diagonal(); x.diagonal(1); x.dot(v); x.flatten()
x.item(1, 2) * x; x.max(); x.max(axis=0, keepdims=True); x.mean(axis=-1); x.min(axis=1); x[x.nonzero()]
x.prod(axis=1); x.ravel(); x.repeat(2, axis=0); x.reshape(3, 2); x.reshape((3, -1)); x.round(1) + x
v.searchsorted(0.2) * v; x[:, :, None].squeeze(); x.std(axis=0); x.std(ddof=1); x.sum(axis=(0, 1)); x.swapaxes(0, 1)
x.item(4) * x; x.T.item(-2) * x
x.take([2, 0], axis=1); x.take([5, 5]); v.tolist()[1] * v; x.trace(); x.transpose(); x.transpose(1, 0)
x.var(axis=1); x.view() * x; x.T; x.mT; x.real; x.imag + x; x.flat[2] * x; x.shape[0] * x; x.size * x; x.ndim * x
x.itemsize * x; x.nbytes * x; x.ptp() if hasattr(x, "ptp") else x.sum(); np.zeros(2, dtype=x.dtype) + x.sum()
"""

IN_PLACE = """
y.fill(v[0]); y.sort(); y.sort(axis=0); y.partition(1); y.put([0, 4], v[:2]); np.put(y, [1, -1], 5.0)
np.place(y, MASK, v); np.putmask(y, MASK, x * x); np.copyto(y, x * x, where=MASK); np.copyto(y, v)
np.fill_diagonal(y, v[:2]); np.put_along_axis(y, np.array([[1], [0]]), v[0], axis=1); np.add.at(y, (0, 1), v[1])
np.subtract.at(y[0], [0, 0, 2], v); np.multiply.at(y[0], [0, 2, 0], v); np.negative.at(y[1], [0, 1])
np.sqrt(x * x, out=y); np.exp(x, out=y, where=MASK); np.add(x, v, out=y); np.sum(x, axis=0, out=y[0])
np.maximum(x, 0.1, out=y); np.add.reduce(x, axis=0, out=y[1])
"""

UFUNCS = """
np.add.reduce(x); np.add.reduce(x, axis=1); np.add.reduce(x, axis=None)
np.add.reduce(x, axis=(0, 1), keepdims=True); np.multiply.reduce(x, axis=1); np.maximum.reduce(x, axis=0)
np.minimum.reduce(x, 1); np.subtract.reduce(x, axis=1); np.divide.reduce(x, axis=1); np.hypot.reduce(x, axis=0)
np.logaddexp.reduce(x, axis=1, keepdims=True); np.add.accumulate(x)
np.add.accumulate(x, axis=1); np.multiply.accumulate(x, axis=1); np.maximum.accumulate(x, axis=1)
np.minimum.accumulate(x, axis=0); np.subtract.accumulate(v); np.logaddexp.accumulate(x, axis=1); np.add.outer(v, v)
np.multiply.outer(x, v); np.subtract.outer(v, x); np.maximum.outer(v, [0.2, -0.4]); np.add.reduceat(v, [0, 2])
np.add.reduceat(x, [0, 2, 1], axis=1); np.multiply.reduceat(x, [0, 1], axis=1)
np.maximum.reduceat(v, np.array([0, 1])); np.logical_and.reduce(x > 0.0, axis=1) * x[:, 0]
np.hypot.reduceat(x, [0, 2, 1], axis=1); np.subtract.reduceat(v, [0, 2]); np.logical_or.accumulate(x, axis=1) * x
np.logical_xor.reduce(v) * x; np.logical_and.reduceat(x, [0, 1]) * x; np.divide.accumulate(np.array([5, 2, 3])) * v
np.hypot.reduce(x, axis=None); np.logaddexp.reduce(x, axis=(0, 1), keepdims=True)
np.maximum.reduce(x, 1, None, None, True) + x; np.hypot.outer(v, v, dtype=np.float64)
"""

KEYWORDS = """
np.sum(x, where=MASK); x.sum(axis=1, where=MASK, keepdims=True); np.sum(x, axis=0, initial=2.5); x.sum(initial=v[0])
np.prod(x, where=MASK); np.prod(x, axis=1, initial=v[1]); np.max(x, axis=0, initial=0.5)
np.max(x, where=MASK, initial=-9.0); np.min(x, axis=1, where=MASK, initial=9.0); np.mean(x, where=MASK)
np.mean(x, axis=1, where=MASK); np.var(x, axis=1, where=MASK); np.std(x, where=MASK, ddof=1)
np.add.reduce(x, axis=1, where=MASK); np.add.reduce(x, initial=1.5); np.any(x > 1.0, where=MASK) * x
np.sum(x, axis=0, dtype=np.float64); np.add(x, v, dtype=np.float64); np.multiply(x, 2, casting="same_kind")
np.cumsum(x, axis=0, dtype=np.float64); np.sqrt(x * x, where=True)
"""


def lines(text: str) -> list[str]:
    return [part.strip() for part in text.replace("\n", ";").split(";") if part.strip()]


NAMES = {"np": np, "MASK": MASK}


def value_of(expression: str) -> Callable[..., Any]:
    return function_from_text(f"def program(x, v):\n    return ({expression}) * (x.sum() + v[0])\n", dict(NAMES))


def effect_of(statement: str) -> Callable[..., Any]:
    text = f"def program(x, v):\n    y = 1.0 * x\n    {statement}\n    return y * (x.sum() + v[0])\n"
    return function_from_text(text, dict(NAMES))


PROGRAMS = [(text, value_of(text)) for text in lines(METHODS + UFUNCS + KEYWORDS)]
PROGRAMS += [(text, effect_of(text)) for text in lines(IN_PLACE)]
each = pytest.mark.parametrize("program", [pytest.param(program, id=text) for text, program in PROGRAMS])


@each
def test_both_modes_to_second_order(program: Callable) -> None:
    np.testing.assert_array_equal(differentiable(program, backend="python")(X.copy(), V.copy()), program(X, V))
    check_grads(program, X, V, modes=("forward", "reverse"), order=2, backend="python")


@pytest.mark.compiled
@each
def test_compiled(program: Callable) -> None:
    value = differentiable(program, backend="numba")(X.copy(), V.copy())
    np.testing.assert_allclose(value, program(X, V), rtol=1e-12)
    check_grads(program, X, V, backend="numba")


def test_reductions_that_numpy_may_not_fold() -> None:
    """Vectorized loops of NumPy skip elements on some processors: what they compute has no derivative."""
    program = value_of("np.power.reduce(x * x, axis=0)")
    rows = X * X
    if np.allclose(np.power.reduce(np.linspace(0.7, 1.2, 9)), functools.reduce(np.power, np.linspace(0.7, 1.2, 9))):
        np.testing.assert_allclose(np.power.reduce(rows, axis=0), functools.reduce(np.power, rows))
        check_grads(program, X, V, modes=("forward", "reverse"), order=2, backend="python")
    else:
        with pytest.raises(TapegenError, match="skips elements"):
            differentiable(program, backend="python").vjp(X.copy(), V.copy())


@pytest.mark.parametrize(
    ("expression", "reason"),
    [
        ("np.sqrt(x, where=MASK)", "is undefined where 'where=' is false"),
        ("np.max(x, where=MASK)", "'where=' of np.max"),
        ("x.view(np.int64)", "takes the bytes of numbers"),
        ("x.strides[0] * x", "the memory layout of an array"),
        ("x.base", "who owns the memory"),
        ("x.T.flat[1:]", "may not be contiguous"),
        ("x.resize(3, 2)", "in place"),
        ("np.modf.at(x, [0])", "no derivative rule"),
        ("np.hypot.reduce(x, initial=0.5)", "no derivative rule with these keywords"),
        ("np.ones_like(x, shape=(2, 3), device='gpu')", "no rule with these keywords"),
        ("np.ones_like(x, shape=(2, 3), order='Z')", "no rule with these keywords"),
        ("np.sin(x, order='A')", "np.sin has no derivative rule with 'order='"),
    ],
)
def test_refused_by_name(expression: str, reason: str) -> None:
    with pytest.raises(TapegenError, match=reason):
        differentiable(value_of(expression)).vjp(X, V)
