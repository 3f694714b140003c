"""Indexing functions (`take`, `choose`, `select`), and interpolation in tables."""

from __future__ import annotations

import numpy as np

from tapegen.rules.helpers import axes_tuple, is_bool, one_of, open_range, require, unflat
from tapegen.rules.registry import expands, fixed, linear


@linear(np.take, in_="a", shapes=[(3, 4), fixed(np.array([2, 0, 2]))], of_complex=True)
def take(a, indices, axis=None, *, mode="raise", out_bar):
    """Repeated indices add up."""
    indices = indices_in_range(a, indices, axis, mode)
    if axis is None or np.ndim(a) == 0:
        flat_bar = np.zeros(np.size(a), dtype=a.dtype)
        np.add.at(flat_bar, indices, out_bar)
        return unflat(flat_bar, a)
    axis = axis % np.ndim(a)
    a_bar = np.zeros_like(a)
    rows_bar = np.moveaxis(a_bar, axis, 0)
    if np.ndim(indices) == 0:
        rows_bar[indices] += out_bar
    elif np.ndim(indices) == 1:
        np.add.at(rows_bar, indices, np.moveaxis(out_bar, axis, 0))
    else:
        block = axes_tuple(None, np.ndim(indices))
        taken = axes_tuple(None, axis + np.ndim(indices))[axis:]
        np.add.at(rows_bar, indices, np.moveaxis(out_bar, taken, block))
    return a_bar


def indices_in_range(a, indices, axis, mode):
    """The indices that `np.take` uses for out-of-range and negative ones, depending on `mode`."""
    one_of("mode", mode, ("raise", "wrap", "clip", 2, 1, 0))
    if is_bool(np.result_type(np.asarray(indices))):  # positions, not a mask
        indices = np.astype(indices, np.int64)
    if mode == "raise" or mode == 2:
        return indices
    n = np.size(a) if axis is None or np.ndim(a) == 0 else np.shape(a)[axis]
    if mode == "wrap" or mode == 1:
        return np.mod(indices, n)
    return np.minimum(np.maximum(indices, 0), n - 1)


@linear(np.take_along_axis, in_="arr", shapes=[(3, 4), fixed(np.array([[2, 0], [1, 1], [0, 3]]))], of_complex=True)
def take_along_axis(arr, indices, axis=-1, *, out_bar):
    """Repeated indices add up."""
    require(axis is not None, "np.take_along_axis(axis=None) has no rule.", "Flatten the array first.")
    arr_bar = np.zeros_like(arr)
    place = ()
    for k in axes_tuple(None, np.ndim(arr)):
        if k == axis % np.ndim(arr):
            place = place + (indices,)
        else:
            place = place + (open_range(np.shape(arr)[k], k, np.ndim(arr)),)
    np.add.at(arr_bar, place, out_bar)
    return arr_bar


@linear(
    np.select,
    in_=("choicelist", "default"),
    shapes=[fixed([np.arange(4) < 2, np.arange(4) < 3]), [(4,), (4,)]],
    of_complex=True,
    broadcasts=True,
)
def select(condlist, choicelist, default=0, *, out_bar):
    """The first condition that holds takes its choice."""
    bars = ()
    for condition in condlist:
        bars = bars + (np.where(condition, out_bar, 0.0),)
        out_bar = np.where(condition, 0.0, out_bar)
    return bars, out_bar


@expands(np.interp, shapes=[(5,), fixed(np.linspace(-1.0, 1.25, 4)), (4,)])
def interp(x, xp, fp, left=None, right=None, period=None):
    """Linear between table points, where the slope to the right counts; constant outside the table, or periodic."""
    if period is not None:
        period = np.abs(period)
        x = x % period
        order = np.argsort(xp % period)
        xp = (xp % period)[order]
        fp = fp[order]
        xp = np.concatenate((xp[-1:] - period, xp, xp[:1] + period))
        fp = np.concatenate((fp[-1:], fp, fp[:1]))
    k = np.clip(np.searchsorted(xp, x, side="right") - 1, 0, np.size(xp) - 2)
    inside = fp[k] + (x - xp[k]) * (fp[k + 1] - fp[k]) / (xp[k + 1] - xp[k])
    below = fp[0] if left is None or period is not None else left
    above = fp[-1] if right is None or period is not None else right
    return np.where(x < xp[0], below, np.where(x > xp[-1], above, inside))
