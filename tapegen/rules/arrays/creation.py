"""Array creation: copies, conversions, constant and evenly spaced arrays."""

from __future__ import annotations

import numpy as np

from tapegen.rules.helpers import other_axes, unflat
from tapegen.rules.registry import expands, fixed, linear, pullback


@linear(np.copy, np.ascontiguousarray, np.asfortranarray, in_="a", shapes=[(3, 4)], of_complex=True)
def copy(a, *, out_bar):
    return out_bar


@linear(np.astype, in_="x", shapes=[(3, 4), fixed(np.float64)], of_complex=True)
def astype(x, dtype, *, out_bar):
    return out_bar  # the compiler converts it to the type of the argument


@linear(np.array, in_="object", shapes=[(3, 4)], of_complex=True)
def array(object, dtype=None, *, copy=True, order="K", ndmin=0, out_bar):
    return items_like(out_bar, object)


@linear(np.asarray, np.asanyarray, in_="a", shapes=[(3, 4)], of_complex=True)
def asarray(a, dtype=None, *, copy=None, order="K", out_bar):
    return items_like(out_bar, a)


def items_like(out_bar, a):
    """The elements of the cotangent of an array, in the nesting of the sequence that made it."""
    if not isinstance(a, tuple | list):
        return np.reshape(out_bar, np.shape(a))
    bars = ()
    for k, item in enumerate(a):
        bars = bars + (items_like(out_bar[k], item),)
    return bars


@linear(np.full, in_="fill_value", shapes=[fixed((3, 4)), ()], of_complex=True)
def full(shape, fill_value, dtype=None, *, out_bar):
    return out_bar  # un-broadcasting is the compiler's


@linear(np.full_like, in_="fill_value", shapes=[(3, 4), ()], of_complex=True)
def full_like(a, fill_value, dtype=None, *, out_bar):
    return out_bar  # un-broadcasting is the compiler's


@linear(np.linspace, in_=("start", "stop"), shapes=[(), ()], of_complex=True, broadcasts=True)
def linspace(start, stop, num=50, endpoint=True, *, out_bar):
    weight = np.linspace(0.0, 1.0, num, endpoint=endpoint, dtype=out_bar.dtype)
    return np.tensordot(1.0 - weight, out_bar, 1), np.tensordot(weight, out_bar, 1)


@expands(np.logspace, shapes=[(), ()])
def logspace(start, stop, num=50, endpoint=True, base=10.0, *, axis=0):
    return base ** np.linspace(start, stop, num, endpoint=endpoint, axis=axis)


@expands(np.geomspace, shapes=[fixed(0.5), fixed(3.0)])
def geomspace(start, stop, num=50, endpoint=True, *, axis=0):
    """Of a sign: from start to stop, each the same multiple of the one before."""
    ratio = stop / start
    share = np.linspace(0.0, 1.0, num, endpoint=endpoint)
    if np.ndim(ratio) == 0:
        return start * ratio**share
    return np.moveaxis(start * ratio ** np.reshape(share, (-1,) + (1,) * np.ndim(ratio)), 0, axis)


@pullback(np.arange, wrt=("start", "step"), shapes=[fixed(0.5), fixed(3.1), fixed(0.4)])
def arange(start, stop=None, step=1, dtype=None, *, out_bar):
    """`start + k * step`; the number of elements carries no derivative."""
    if stop is None:
        return None, None
    return np.sum(out_bar), np.arange(np.size(out_bar), dtype=out_bar.dtype) @ out_bar


@arange.pushforward
def arange_pushforward(start, stop=None, step=1, dtype=None, *, out, start_dot, step_dot):
    if stop is None:
        return np.zeros_like(out)
    return start_dot + np.arange(np.size(out)) * step_dot


@linear(np.meshgrid, in_="xi", shapes=[(3,), (4,)], of_complex=True)
def meshgrid(*xi, indexing="xy", copy=True, out_bar):
    bars = ()
    for k, x in enumerate(xi):
        axis = 1 - k if indexing == "xy" and k < 2 and len(xi) > 1 else k
        bars = bars + (unflat(np.sum(out_bar[k], axis=other_axes((axis,), len(xi))), x),)
    return bars
