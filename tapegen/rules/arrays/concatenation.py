"""Concatenation and splitting of arrays."""

from __future__ import annotations

import numpy as np

from tapegen.rules.helpers import index_axis, slice_axis, unflat
from tapegen.rules.registry import expands, fixed, linear

# ---- concatenation -------------------------------------------------------------------------------------------------


@linear(np.concatenate, in_="arrays", shapes=[[(2, 3), (2, 3), (2, 3)]], of_complex=True)
def concatenate(arrays, axis=0, *, out_bar):
    bars = ()
    start = 0
    for a in arrays:
        if axis is None:
            stop = start + np.size(a)
            bars = bars + (unflat(out_bar[start:stop], a),)
        else:
            stop = start + np.shape(a)[axis]
            bars = bars + (slice_axis(out_bar, axis, start, stop),)
        start = stop
    return bars


@linear(np.stack, in_="arrays", shapes=[[(2, 3), (2, 3), (2, 3)]], of_complex=True)
def stack(arrays, axis=0, *, out_bar):
    bars = ()
    for k, _ in enumerate(arrays):
        bars = bars + (index_axis(out_bar, axis, k),)
    return bars


@linear(
    np.vstack, getattr(np, "row_stack", np.vstack), in_="tup", shapes=[[(3,), (2, 3), (3,)]], of_complex=True
)  # deprecated since 2.0
def vstack(tup, *, out_bar):
    bars = ()
    start = 0
    for a in tup:
        if np.ndim(a) < 2:
            stop = start + 1
            bars = bars + (np.reshape(out_bar[start], np.shape(a)),)
        else:
            stop = start + np.shape(a)[0]
            bars = bars + (out_bar[start:stop],)
        start = stop
    return bars


@linear(np.hstack, in_="tup", shapes=[[(2, 3), (2, 1), (2, 2)]], of_complex=True)
def hstack(tup, *, out_bar):
    bars = ()
    start = 0
    for a in tup:
        if np.ndim(a) == 0:
            stop = start + 1
            bars = bars + (out_bar[start],)
        elif np.ndim(a) == 1:
            stop = start + np.shape(a)[0]
            bars = bars + (out_bar[start:stop],)
        else:
            stop = start + np.shape(a)[1]
            bars = bars + (out_bar[:, start:stop],)
        start = stop
    return bars


@linear(np.column_stack, in_="tup", shapes=[[(3,), (3, 2), (3,)]], of_complex=True)
def column_stack(tup, *, out_bar):
    bars = ()
    start = 0
    for a in tup:
        if np.ndim(a) < 2:
            stop = start + 1
            bars = bars + (np.reshape(out_bar[:, start], np.shape(a)),)
        else:
            stop = start + np.shape(a)[1]
            bars = bars + (out_bar[:, start:stop],)
        start = stop
    return bars


@linear(np.dstack, in_="tup", shapes=[[(2, 3), (2, 3, 2), (2, 3)]], of_complex=True)
def dstack(tup, *, out_bar):
    bars = ()
    start = 0
    for a in tup:
        if np.ndim(a) < 3:
            stop = start + 1
            bars = bars + (np.reshape(out_bar[:, :, start], np.shape(a)),)
        else:
            stop = start + np.shape(a)[2]
            bars = bars + (out_bar[:, :, start:stop],)
        start = stop
    return bars


@expands(np.append, shapes=[(2, 3), (1, 3)], of_complex=True)
def append(arr, values, axis=None):
    if axis is None:
        return np.concatenate((np.ravel(arr), np.ravel(values)))
    return np.concatenate((arr, values), axis=axis)


# ---- splitting -----------------------------------------------------------------------------------------------------


@linear(np.split, np.array_split, in_="ary", shapes=[(6, 4), fixed(3)], of_complex=True)
def split(ary, indices_or_sections, axis=0, *, out_bar):
    return np.concatenate(out_bar, axis=axis)


@linear(np.vsplit, in_="ary", shapes=[(6, 4), fixed(3)], of_complex=True)
def vsplit(ary, indices_or_sections, *, out_bar):
    return np.concatenate(out_bar, axis=0)


@linear(np.hsplit, in_="ary", shapes=[(2, 4), fixed(2)], of_complex=True)
def hsplit(ary, indices_or_sections, *, out_bar):
    return np.concatenate(out_bar, axis=0 if np.ndim(ary) == 1 else 1)


@linear(np.dsplit, in_="ary", shapes=[(2, 3, 4), fixed(2)], of_complex=True)
def dsplit(ary, indices_or_sections, *, out_bar):
    return np.concatenate(out_bar, axis=2)
