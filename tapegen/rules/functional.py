"""Higher-order functions: `piecewise`, `apply_along_axis` and the like."""

from __future__ import annotations

import numpy as np

from tapegen.rules.helpers import require
from tapegen.rules.registry import expands, fixed


def above_half(x):
    """A function for the automatic test."""
    return x * x - 0.5


def below_half(x):
    """A function for the automatic test."""
    return np.sin(x)


def length(x):
    """A function for the automatic test."""
    return np.sqrt(np.sum(x * x))


POINTS = fixed(np.array([-1.5, 0.7, 0.2, 2.5]))
CONDITIONS = fixed([np.array([False, True, False, True]), np.array([True, False, False, False])])


@expands(np.piecewise, shapes=[POINTS, CONDITIONS, fixed([above_half, below_half, 3.0])], written=True, of_complex=True)
def piecewise(x, condlist, funclist, *args):
    """A function gets the elements for which its condition holds; one more is for all others."""
    if np.ndim(x) == 0:
        return piecewise_of_number(x, condlist, funclist, args)
    if not isinstance(condlist, list | tuple):
        condlist = (condlist,)
    others = np.ones_like(x, dtype=np.bool_)
    y = np.zeros_like(x)
    for k, func in enumerate(funclist):
        chosen = others
        if k < len(condlist):
            chosen = condlist[k]
            others = others & np.logical_not(chosen)
        if callable(func):
            y[chosen] = func(x[chosen], *args)
        else:
            y[chosen] = func
    return y


def piecewise_of_number(x, condlist, funclist, args):
    """Only functions whose condition holds are called, with a vector of one element."""
    if not isinstance(condlist, list | tuple) and np.ndim(condlist) == 0:
        condlist = (condlist,)
    row = np.reshape(np.asarray(x), (1,))
    others = True
    y = np.zeros_like(row)
    for k, func in enumerate(funclist):
        chosen = others
        if k < len(condlist):
            chosen = bool(condlist[k])
            others = others and not chosen
        if chosen:
            if callable(func):
                y[:] = func(np.copy(row), *args)
            else:
                y[:] = func
    return np.reshape(y, ())


@expands(np.apply_along_axis, shapes=[fixed(length), fixed(0), (3, 4)], written=True, of_complex=True)
def apply_along_axis(func1d, axis, arr, *args):
    lanes = np.moveaxis(arr, axis, -1)
    rows = np.reshape(np.copy(lanes), (-1, np.shape(lanes)[-1]))
    parts = []
    for k in range(np.shape(rows)[0]):
        parts.append(func1d(rows[k], *args))
    stacked = np.array(parts)
    results = np.reshape(stacked, np.shape(lanes)[:-1] + np.shape(stacked)[1:])
    if np.ndim(stacked) == 1:
        return results
    require(np.ndim(stacked) == 2, "np.apply_along_axis needs numbers or vectors as results.", "Write the loop.")
    return np.moveaxis(results, -1, axis)


@expands(np.apply_over_axes, shapes=[fixed(np.sum), (2, 3, 4), fixed((0, 2))], written=True, of_complex=True)
def apply_over_axes(func, a, axes):
    if not isinstance(axes, tuple | list):
        axes = (axes,)
    for axis in axes:
        result = func(a, axis)
        a = result if np.ndim(result) == np.ndim(a) else np.expand_dims(result, axis)
    return a


@expands(np.fromfunction, shapes=[fixed(lambda i, j: i + 2.0 * j), fixed((2, 3))], written=True, of_complex=True)
def fromfunction(function, shape, dtype=np.float64):
    grids = ()
    for k, _ in enumerate(shape):
        grids = grids + (np.indices(shape, dtype=dtype)[k],)
    return function(*grids)
