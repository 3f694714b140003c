"""Where the rules are judged: calls, exact functions, and the points at which mathematics is thin."""

from __future__ import annotations

import math
from collections.abc import Callable

import mpmath
import numpy as np
import scipy.special as special
from scipy import stats

from tapegen.testing import Case


def values(*shape: int, seed: int = 0) -> np.ndarray:
    """Well separated values of both signs, none near 0."""
    size = math.prod(shape)
    rng = np.random.default_rng(seed + 17 * size)
    x = (0.4 + np.linspace(0.0, 1.2, size) + 0.02 * seed) * rng.choice([-1.0, 1.0], size)
    return rng.permutation(x).reshape(shape)


def call(*args: object, **kwargs: object) -> Case:
    return args, kwargs


# ---- calls beyond the one that a rule declares -----------------------------------------------------------------------

AXES = (None, 0, -1, (0, 2), (-1, 0), (1,))
SINGLE_AXES = (None, 0, 1, -1)


def reduction(*, axes: tuple = AXES, **kwargs: object) -> list:
    calls = [call(values(2, 3, 4), axis=axis, keepdims=keep, **kwargs) for axis in axes for keep in (False, True)]
    return [*calls, call(values(5), **kwargs), call(values(3, 1), axis=0, **kwargs)]


LENGTHS = [call(values(6), 3), call(values(6, 4), [1, 4], axis=0), call(values(4, 6), 2, axis=-1)]
STACKED = np.stack([values(3, 3) + np.diag([3.0, -4.0, 5.0]), values(3, 3, seed=1) + np.diag([5.0, 4.0, -3.0])])
SPD = STACKED @ np.swapaxes(STACKED, -1, -2)
WEIGHTS = np.array([0.5, 1.5, 2.0, 0.7])
ZEROS = np.array([[2.0, 0.0, -1.5, 3.0], [1.0, 2.0, -0.5, 4.0], [0.0, 0.0, 1.0, 2.0]])

MISSING = np.array([[0.5, np.nan, 1.5, -2.0], [np.nan, 0.25, 0.75, 3.0], [2.5, -1.0, 0.1, np.nan]])
LACKING = np.stack([MISSING, 0.35 - 2.0 * np.roll(MISSING, 1, axis=1)])
TIED = np.array([1.5, -0.5, 1.5, 2.0, -0.5])


def with_missing(**kwargs: object) -> list:
    return [call(LACKING, axis=axis, keepdims=keep, **kwargs) for axis in AXES for keep in (False, True)]


VARIANTS: dict[Callable, list] = {
    **{func: with_missing() for func in (np.nansum, np.nanprod, np.nanmax, np.nanmin, np.nanmean, np.nanmedian)},
    **{func: with_missing() for func in (np.nanvar, np.nanstd)},
    np.nancumsum: [call(MISSING, axis=axis) for axis in SINGLE_AXES],
    np.nancumprod: [call(MISSING, axis=axis) for axis in SINGLE_AXES],
    np.nanquantile: [call(LACKING, 0.3, axis, keepdims=keep) for axis in AXES for keep in (False, True)]
    + [call(MISSING, np.array([0.1, 0.65]), 1), call(MISSING, 0.4, 0, method="lower")],
    np.nanpercentile: [call(MISSING, np.array([10.0, 65.0]), axis=0, keepdims=True)],
    np.quantile: [call(values(2, 3, 4), 0.3, axis, keepdims=keep) for axis in AXES for keep in (False, True)]
    + [call(values(7), 0.4, method=how) for how in ("lower", "higher", "nearest", "midpoint")]
    + [call(values(3, 4), np.array([0.14, 0.42, 0.86]), axis=axis) for axis in (None, 0, -1)],
    np.percentile: [
        call(values(3, 4), np.array([12.5, 80.0]), axis=1, keepdims=True),
        call(values(5), 97.0),
        call(values(3, 4), np.array([[12.5], [80.0]]), axis=0),
    ],
    np.logspace: [call(values(2), values(2), 3, axis=axis) for axis in (0, 1)],
    np.geomspace: [call(np.array([0.5, 2.0]), np.array([3.0, 0.7]), 3, axis=axis) for axis in (0, -1)],
    np.partition: [call(values(3, 4), 2, axis=0), call(values(3, 4), 5, axis=None), call(values(6), 3)],
    np.cumulative_sum: [call(values(3, 4), axis=axis, include_initial=first) for axis in (0, -1) for first in (0, 1)],
    np.cumulative_prod: [call(values(3, 4), axis=axis, include_initial=first) for axis in (0, -1) for first in (0, 1)],
    np.ediff1d: [call(values(2, 3), 0.5), call(values(4), to_begin=values(2), to_end=1.5)],
    np.unwrap: [call(np.array([[0.1, 2.0, 5.8], [3.0, -1.0, -4.5]]), axis=axis) for axis in (0, 1, -1)]
    + [call(np.array([0.1, 2.0, 5.8]), period=3.0), call(np.array([0.1, 2.0, 5.8]), 3.5)],
    np.gradient: [
        call(values(3, 4)),
        call(values(4, 5), 0.5, axis=1),
        call(values(4, 5), axis=(0, -1), edge_order=2),
        call(values(4, 5), 0.5, np.array([0.0, 0.4, 1.0, 1.1, 2.0])),
        call(values(5), np.array([0.0, 0.4, 1.0, 1.1, 2.0]), edge_order=2),
    ],
    np.resize: [call(values(2, 3), 8), call(values(3), (2, 2)), call(values(2, 2), (1, 3))],
    np.delete: [
        call(values(5), 1),
        call(values(5), slice(1, 4, 2)),
        call(values(3, 4), -1, axis=1),
        call(values(3, 4), np.array([0, 2]), axis=0),
        call(values(2, 3), np.array([1, 5])),
    ],
    np.insert: [
        call(values(5), 2, 7.5),
        call(values(5), -1, values(2)),
        call(values(2, 3), 1, values(3, seed=1), axis=0),
        call(values(2, 3), 1, values(2, seed=1), axis=1),
        call(values(2, 3), 3, 1.5),
        call(values(5), np.array([4, 0, 4]), values(3, seed=1)),
        call(values(2, 4), np.array([1, 3]), values(2, 2, seed=1), axis=1),
    ],
    np.trim_zeros: [call(np.array([0.0, 1.0, 0.0, 2.0, 0.0]), side) for side in ("f", "b", "fb")],
    np.extract: [call(np.array([True, False, True]), values(3)), call(values(2, 3) > 0.0, values(2, 3))],
    np.compress: [call([True, False, True], values(2, 3), axis=1), call([True, True], values(3, 2), axis=0)],
    np.choose: [
        call(np.array([[0, 1], [1, 0]]), [values(2, 2), 1.5]),
        call(np.array([1, 0]), values(2, 2)),
        *(call(np.array([-3, 5]), values(3, 2), mode=mode) for mode in ("clip", "wrap")),
    ],
    np.block: [call([values(2), values(3)]), call([[values(2, 2)], [values(1, 2)]]), call(values(2))],
    np.unstack: [call(values(2, 3), axis=1), call(values(2))],
    np.fill_diagonal: [call(values(3, 3), values(2)), call(values(2, 2, 2), 1.5), call(values(4, 2), 0.5)],
    np.put: [call(values(2, 3), [0, -1], 2.5), call(values(4), np.array([3, 1, 0]), values(2))],
    np.putmask: [call(values(2, 3), values(2, 3) > 0.0, 1.5), call(values(5), values(5) > 0.0, values(2))],
    np.put_along_axis: [call(values(2, 3), np.array([[1], [0]]), 2.5, -1)],
    np.copyto: [call(values(2, 3), 1.5), call(values(2, 3), values(3), where=values(2, 3) > 0.0)],
    **{func: [call(TIED)] for func in (np.unique_values, np.unique_counts, np.unique_inverse, np.unique_all)},
    np.unique: [call(TIED), call(TIED, True, True, True), call(values(2, 3), return_counts=True)],
    np.union1d: [call(TIED, values(2, 2))],
    np.intersect1d: [call(TIED, np.array([2.0, 7.0, -0.5]))],
    np.setdiff1d: [call(TIED, np.array([2.0, 7.0]))],
    np.setxor1d: [call(TIED, np.array([2.0, 7.0]))],
    np.cov: [
        call(values(5)),
        call(values(5), values(5, seed=1)),
        call(values(5, 2), rowvar=False, bias=True),
        call(values(2, 4), aweights=np.array([0.5, 1.0, 2.0, 1.5])),
        call(values(2, 4), ddof=0, fweights=np.array([1, 2, 1, 3])),
    ],
    np.corrcoef: [call(values(5), values(5, seed=1)), call(values(5, 2), rowvar=False)],
    np.bincount: [call(np.array([0, 2, 2]), values(3), 5)],
    np.histogram: [
        call(values(6), 3, density=True),
        call(values(6), 3, weights=values(6, seed=1)),
        call(values(6), np.array([-2.0, 0.0, 0.5, 2.0]), weights=values(6, seed=1)),
        call(values(2, 3), 3, (-2.5, 2.5)),
    ],
    np.histogram2d: [call(values(6), values(6, seed=1), [2, 3], density=True, weights=np.abs(values(6)))],
    np.polydiv: [call(values(2), values(4)), call(values(4), values(1))],
    np.polyint: [call(values(3), 2), call(values(3), 1, 0.5)],
    np.polyder: [call(values(5), 2), call(values(2), 3)],
    np.polyadd: [call(values(2), values(4))],
    np.polyfit: [
        call(values(5), values(5, 2, seed=1), 1),
        call(values(5), values(5, seed=2), 2, w=np.abs(values(5, seed=1))),
    ],
    np.vander: [call(values(3), 4, increasing=True), call(values(3), 2)],
    np.linalg.lstsq: [call(STACKED[0], values(3)), call(values(4, 2), values(4, 3)), call(values(2, 4), values(2))],
    np.linalg.cond: [call(STACKED), *(call(STACKED[0], p) for p in (2, -2, 1, -1, np.inf, "fro"))],
    np.linalg.tensorinv: [call(np.reshape(STACKED[0], (3, 3)), 1)],
    np.linalg.trace: [call(values(3, 4), offset=1)],
    np.linalg.diagonal: [call(values(3, 4), offset=-1)],
    np.linalg.vector_norm: [call(values(2, 3, 4), axis=axis, ord=3) for axis in (None, 1, (0, 2))]
    + [call(values(2, 3), axis=(0, 1), keepdims=True), call(values(2, 3), keepdims=True, ord=1)],
    np.linalg.matrix_norm: [call(values(2, 3, 4), ord=p, keepdims=True) for p in ("fro", "nuc", 1, -np.inf, 2)],
    np.fft.fftshift: [call(values(3, 4), axes=1), call(values(5))],
    np.fft.ifftshift: [call(values(3, 4), axes=(0, -1)), call(values(5))],
    np.i0: [call(np.array([[-3.0, 0.0], [12.0, 60.0]]))],
    np.sum: [*reduction(), call(np.zeros((3, 0))), call(np.zeros((3, 0)), axis=1), call(np.array(2.0)), call(1.5)],
    np.mean: reduction(),
    np.var: [*reduction(ddof=1), call(values(2, 3), 0), call(values(2, 3), 1, correction=1)],
    np.std: [*reduction(ddof=1), call(values(2, 3), 0), call(values(2, 3), 1, correction=1)],
    np.prod: [*reduction(), call(ZEROS), call(ZEROS, axis=1), call(ZEROS, axis=0, keepdims=True)],
    np.max: reduction(),
    np.min: reduction(),
    np.ptp: reduction(),
    np.median: [*reduction(), call(values(4, 5), axis=0), call(np.array(2.0))],
    np.average: [
        *reduction(axes=SINGLE_AXES),
        call(values(3, 4), axis=1, weights=WEIGHTS),
        call(values(4, 3), axis=0, weights=WEIGHTS, keepdims=True),
        call(values(3, 4), weights=np.abs(values(3, 4))),
    ],
    np.cumsum: [call(values(2, 3, 4), axis=axis) for axis in SINGLE_AXES] + [call(values(5)), call(np.zeros(0))],
    np.cumprod: [call(values(2, 3, 4), axis=axis) for axis in SINGLE_AXES] + [call(ZEROS, axis=1), call(ZEROS)],
    np.diff: [call(values(4, 5), n=n, axis=axis) for n in (0, 1, 2, 3) for axis in (0, 1, -1)] + [call(values(1))],
    np.trapezoid: [
        call(values(6)),
        call(values(6), np.linspace(0.0, 1.0, 6) ** 2),
        call(values(4, 3), np.linspace(0.0, 1.0, 4) ** 2, axis=0),
        call(values(4, 3), dx=0.5, axis=0),
        call(values(2, 3), values(2, 3, seed=2)),
    ],
    np.where: [
        call(np.array([True, False, True]), values(2, 3), 1.5),
        call(np.array([[True], [False]]), values(3), values(2, 1)),
        call(True, 1.5, 2.5),
    ],
    np.maximum: [call(values(2, 3), 0.1), call(values(2, 1), values(3, seed=1)), call(0.5, 0.75)],
    np.minimum: [call(values(2, 3), 0.1), call(values(2, 1), values(3, seed=1)), call(0.5, 0.75)],
    np.fmax: [call(values(2, 1), values(3, seed=1))],
    np.fmin: [call(values(2, 1), values(3, seed=1))],
    np.multiply: [call(values(2, 3), 1.5), call(values(2, 1), values(3)), call(values(2, 3), np.array([1, 2, 3]))],
    np.power: [
        call(np.abs(values(3)), 3),
        call(values(3), 2),
        call(values(3), np.array([0, 1, 2])),
        call(values(4), 3),
    ],
    math.log: [call(1.7)],
    math.fsum: [call((1.5, -0.5, 2.0)), call([1.5, 2.0])],
    math.dist: [call((1.5, -0.5), (0.2, 0.7))],
    np.divmod: [call(np.array([2.9, -0.4]), np.array([1.2, 1.1])), call(np.array([2.9, -0.4]), 1.2)],
    np.modf: [call(np.array([1.3, -2.7]))],
    np.clip: [call(values(5), -0.9, None), call(values(5), None, 0.9), call(values(5), -0.9, np.full(5, 0.9))],
    np.reshape: [
        call(values(2, 6), (3, -1)),
        call(values(2, 6), (3, 4), order="F"),
        call(values(2, 6), -1),
        call(np.zeros((2, 0)), (0, 3)),
        call(values(6, 2).T, (3, 4)),
    ],
    np.ravel: [call(values(2, 6), order="F"), call(values(2, 6).T), call(np.array(3.0))],
    np.squeeze: [call(values(3, 1, 1), axis=1), call(values(1, 3, 1), axis=(0, -1)), call(values(1, 1))],
    np.expand_dims: [call(values(3, 2), -1), call(values(3, 2), (0, 2)), call(np.array(1.0), 0)],
    np.atleast_1d: [call(1.5), call(values(2, 3))],
    np.atleast_2d: [call(1.5), call(values(2, 3))],
    np.atleast_3d: [call(1.5), call(values(2, 3)), call(values(2, 3, 2))],
    np.broadcast_to: [call(2.5, (3,)), call(values(3), (2, 3)), call(values(1, 3), (0, 2, 3))],
    np.transpose: [
        call(values(2, 3, 4), (2, 0, 1)),
        call(values(2, 3, 4), (-1, 0, 1)),
        call(values(3)),
        call(values(2, 3)),
    ],
    np.moveaxis: [call(values(2, 3, 4), (0, 1), (-1, 0)), call(values(2, 3, 4), -1, 0)],
    np.swapaxes: [call(values(2, 3), -1, 0)],
    np.flip: [call(values(2, 3), axis=0), call(values(2, 3), axis=(0, 1)), call(values(2, 3), axis=-1)],
    np.rot90: [call(values(2, 3), k) for k in (-1, 0, 2, 3)] + [call(values(2, 3, 2), 1, (1, 2))],
    np.roll: [call(values(5), -2), call(values(3, 4), 1, axis=0), call(values(3, 4), (1, -1), axis=(0, 1))],
    np.repeat: [
        call(values(3, 2), 2, axis=0),
        call(values(3, 2), 3, axis=-1),
        call(values(3), np.array([1, 0, 2])),
        call(values(2, 3), np.array([1, 0, 2]), axis=1),
        call(values(3), [1, 0, 2]),
        call(values(2), 0),
        call(1.5, 3),
    ],
    np.tile: [
        call(values(3), 2),
        call(values(2, 3), 2),
        call(values(3), (2, 2)),
        call(values(2, 3), (2, 1, 3)),
        call(2.0, 3),
    ],
    np.pad: [
        call(values(3), (1, 2)),
        call(values(2, 3), ((1, 0), (0, 2)), "constant", constant_values=7.0),
        call(values(2, 3), (2,)),
        call(values(2, 3), ((1, 2),)),
        call(values(4), 2, "edge"),
        call(values(3), (4, 7), "reflect"),
        call(values(2, 3), ((1, 5), (4, 0)), "symmetric"),
        call(values(2, 3), ((1, 2),), mode="wrap"),
        call(values(3, 1), (2, 1), mode="reflect"),
        call(values(2, 2, 2), 1, "edge"),
    ],
    np.rollaxis: [
        call(values(2, 3, 4), 0, 2),
        call(values(2, 3, 4), 1, 3),
        call(values(2, 3, 4), -1, -2),
        call(values(2, 3), 1),
    ],
    np.astype: [call(np.array(1.5), np.float32)],
    np.convolve: [
        call(values(n), values(m, seed=1), mode)
        for n, m in ((5, 2), (2, 5), (4, 4))
        for mode in ("full", "same", "valid")
    ],
    np.correlate: [call(values(5), values(2, seed=1), mode) for mode in ("full", "same", "valid")],
    np.polyval: [call(values(3), 0.7), call([1.5, 0.5], values(3)), call(values(1), values(2))],
    np.vecdot: [call(values(2, 3), values(3, seed=1)), call(values(3, 2), values(3, 2, seed=1), axis=0)],
    np.triu: [call(values(3, 4), 1), call(values(2, 3, 3), -1)],
    np.tril: [call(values(3, 4), -1), call(values(2, 3, 3), 1)],
    np.diag: [
        call(values(3), 1),
        call(values(3), -2),
        *(call(values(3, 4), k) for k in (-4, -1, 0, 2, 3)),
        call(values(4, 3).T),
    ],
    np.diagflat: [call(values(2, 2), -1)],
    np.diagonal: [call(values(3, 4), k) for k in (-1, 2)]
    + [call(values(2, 3, 4), 1, 2, 1), call(values(2, 3, 4), 0, -1, 0)],
    np.trace: [call(values(3, 4), k) for k in (-1, 2)]
    + [call(values(2, 3, 4), 1, 2, 1), call(values(3, 4), 1, -1, -2)],
    np.concatenate: [
        call((values(2, 3), values(2, 1)), axis=1),
        call([values(2, 3), values(2, 1)], axis=-1),
        call([values(2, 3), values(2)], axis=None),
        call([values(2, 2, 2), values(2, 2, 1)], axis=2),
        call([values(1, 1, 2, 1), values(1, 1, 2, 2)], axis=3),
        call([values(1, 1, 2, 1, 2), values(1, 1, 2, 1, 1)], axis=4),
        call([values(3), np.zeros(0)]),
    ],
    np.stack: [
        *(call([values(2, 3), values(2, 3, seed=1)], axis=axis) for axis in (1, 2, -1, -2)),
        call([values(1, 2, 2), values(1, 2, 2, seed=1)], axis=3),
        call([values(1, 1, 1, 2), values(1, 1, 1, 2, seed=1)], axis=4),
        call([1.5, 2.5]),
    ],
    np.vstack: [call([values(2, 3), values(1, 3)]), call([1.5, 2.5])],
    np.hstack: [call([values(3), values(2)]), call([1.5, values(2)]), call([values(2, 1, 2), values(2, 2, 2)])],
    np.column_stack: [call([values(3), values(3, seed=1)])],
    np.dstack: [call([values(2), values(2, seed=1)])],
    np.append: [call(values(2, 3), values(2)), call(values(3), 1.5), call(values(2, 3), values(2, 1), axis=1)],
    np.split: LENGTHS,
    np.array_split: [*LENGTHS, call(values(7), 3), call(values(5, 2), 3)],
    np.hsplit: [call(values(4), 2)],
    np.vsplit: [call(values(4, 2), [1])],
    np.array: [call([1.5, 2.5, 3.5]), call([[1.5, 2.5], [3.5, 4.5]]), call((values(3), values(3, seed=1))), call(2.5)],
    np.asarray: [call([1.5, 2.5]), call(values(2, 2), np.float64)],
    np.full_like: [call(values(2, 3), values(3)), call(np.array(1.0), 2.0)],
    np.full: [call((2, 3), values(3)), call(4, 1.5), call((), 1.5)],
    np.linspace: [
        call(0.5, 2.0, 5),
        call(0.5, 2.0, num=4, endpoint=False),
        call(0.5, 2.0, 1),
        call(values(2), values(2, seed=1), 3),
    ],
    np.arange: [call(2.5)],
    np.meshgrid: [
        call(values(3), values(2), indexing="ij"),
        call(values(3), values(2), values(4)),
        call(values(2), values(3), values(4), indexing="ij"),
        call(values(3)),
    ],
    np.take: [
        call(values(5), np.array([0, 3, 3, -1])),
        call(values(3, 4), 2, axis=1),
        call(values(3, 4), np.array([[0, 2], [2, 2]]), axis=0),
        call(values(2, 3, 2), np.array([[0, 2], [2, 1]]), axis=1),
        call(values(3, 4).T, np.array([5, 5, 0])),
        call(values(3, 4), np.array([1, 1]), axis=-1),
        call(values(4), 2),
        call(values(4), np.array([-7, 9, 2, 5]), mode="wrap"),
        call(values(3, 4), np.array([[-1, 9], [2, 12]]), mode="clip"),
        call(values(3, 4), np.array([5, -2, 1]), axis=0, mode="clip"),
        call(values(3, 4), np.array([5, -2, 1]), axis=-1, mode="wrap"),
    ],
    np.take_along_axis: [
        call(values(5), np.array([0, 3, 3]), axis=0),
        call(values(2, 3), np.array([[1, 0, 1]]), axis=0),
        call(values(2, 2, 3), np.argsort(values(2, 2, 3), axis=1), axis=1),
    ],
    np.sort: [call(values(6)), call(values(3, 4), axis=0), call(values(3, 4), axis=None), call(values(2, 3, 2), 1)],
    np.select: [call([np.arange(3) < 1, np.arange(3) > 1], [values(3), 1.5], values(3, seed=1))],
    np.interp: [
        call(0.3, np.array([0.0, 1.0, 3.0]), np.array([1.0, 2.0, -1.0])),
        call(values(2, 2), np.array([-2.5, 0.1, 2.5]), values(3)),
    ],
    np.matmul: [
        call(values(3), values(3, seed=1)),
        call(values(2, 3), values(3)),
        call(values(3), values(3, 2)),
        call(values(2, 2, 3), values(3, 2)),
        call(values(2, 2, 3), values(2, 3, 2)),
        call(values(2, 3), values(2, 3, 2)),
        call(values(3), values(2, 3, 2)),
        call(values(2, 2, 3), values(3)),
        call(values(0, 3), values(3, 2)),
    ],
    np.dot: [
        call(values(3), values(3, seed=1)),
        call(values(2, 3), values(3)),
        call(values(3), values(3, 2)),
        call(1.5, values(2, 2)),
        call(values(2, 2), 1.5),
        call(1.5, 2.5),
        call(values(2, 2, 3), values(2, 3, 2)),
        call(values(2, 2, 3), values(3)),
        call(values(3), values(2, 3, 2)),
    ],
    np.inner: [call(values(3), values(3, seed=1)), call(values(2, 3), values(3)), call(1.5, values(3))],
    np.vdot: [call(values(2, 3), values(3, 2, seed=1))],
    np.outer: [call(values(2, 2), values(3)), call(values(2), 1.5)],
    np.tensordot: [
        call(values(2, 3), values(4), 0),
        call(values(2, 3, 4), values(4, 3, 2), ((1, 2), (1, 0))),
        call(values(2, 3, 4), values(5, 4), (-1, 1)),
        call(values(2, 3, 4), values(4, 2, 3, 2), axes=((0, 1, 2), (1, 2, 0))),
    ],
    np.kron: [call(values(2), values(3)), call(values(2), values(3, 2)), call(values(2, 2, 2), values(3))],
    np.cross: [call(values(3), values(3, seed=1)), call(values(3, 2), values(3, 2, seed=1), axis=0)],
    np.einsum: [
        call("ij,ij->", values(2, 3), values(2, 3, seed=1)),
        call("ij->j", values(2, 3)),
        call("ij->ji", values(2, 3)),
        call("ij->", values(2, 3)),
        call("i,j", values(2), values(3)),
        call("bij,bjk->bik", values(2, 2, 3), values(2, 3, 2)),
        call("ij, jk, kl -> il", values(2, 3), values(3, 2), values(2, 2)),
        call("ij,k->i", values(2, 3), values(2)),
        call("...i,...i->...", values(2, 3), values(2, 3, seed=1)),
        call("...ij,jk", values(2, 2, 3), values(3, 2)),
        call("a...,...b->...ab", values(2, 3), values(2, 3, 2)),
        call("...ij->...", values(2, 2, 3)),
        call("ii->i", values(3, 3)),
        call("ii", values(3, 3)),
        call("iji,j,ii->j", values(2, 3, 2), values(3), values(2, 2, seed=1)),
    ],
    np.linalg.solve: [
        call(STACKED[0], values(3, 2)),
        call(STACKED, values(2, 3, 2)),
        call(STACKED, values(3)),
        call(STACKED[0], values(2, 3, 2)),
    ],
    np.linalg.inv: [call(STACKED)],
    np.linalg.det: [call(STACKED)],
    np.linalg.slogdet: [call(STACKED)],
    np.linalg.cholesky: [call(SPD), call(SPD[0], upper=True)],
    np.linalg.eigh: [call(SPD), call(SPD[0], "U")],
    np.linalg.qr: [call(STACKED[0]), call(STACKED)],
    np.linalg.svd: [
        call(STACKED, full_matrices=False),
        call(STACKED[0][:2], full_matrices=False),
        call(STACKED[0], compute_uv=False),
    ],
    np.linalg.pinv: [call(STACKED[0][:2]), call(STACKED)],
    np.linalg.matrix_power: [call(STACKED[0] / 4, n) for n in (0, 1, 2, 3, -2)],
    np.linalg.norm: [
        *(call(values(4), ord) for ord in (None, 1, 2, 3, 2.5, np.inf, -np.inf, 0)),
        *(call(values(3, 4), ord) for ord in ("fro", "nuc", 1, -1, 2, -2, np.inf, -np.inf)),
        *(
            call(values(3, 4, seed=1), ord, axis=axis, keepdims=True)
            for ord in (None, 1, 3, np.inf)
            for axis in (0, -1)
        ),
        *(
            call(values(2, 3, 4, seed=5), ord, axis=axis)
            for ord in (1, -np.inf, 2, "nuc")
            for axis in ((1, 2), (2, 0), (-1, -2))
        ),
        call(values(2, 3, 4)),
        call(values(3), axis=0),
    ],
}


SIMPLEX = (stats.multinomial.logpmf, stats.dirichlet.logpdf)
"""Functions of probabilities with the sum 1: no single one of them can be moved (tests/rules/test_scipy.py)."""

# ---- the functions in arbitrary precision ----------------------------------------------------------------------------

EXACT: dict[Callable, Callable] = {
    np.add: lambda x, y: x + y,
    np.subtract: lambda x, y: x - y,
    np.multiply: lambda x, y: x * y,
    np.remainder: lambda x, y: x - y * mpmath.floor(x / y),
    np.fmod: lambda x, y: x - y * mpmath.mpf(int(x / y)),
    np.nextafter: lambda x, y: x,
    np.negative: lambda x: -x,
    **dict.fromkeys((np.positive, np.real_if_close, np.nan_to_num), lambda x: x),
    **dict.fromkeys((np.fabs, np.absolute), mpmath.fabs),
    np.copysign: lambda x, y: mpmath.fabs(x) * mpmath.sign(y),
    np.heaviside: lambda x, at_zero: (1 + mpmath.sign(x)) / 2,
    np.deg2rad: lambda x: x * mpmath.pi / 180,
    np.rad2deg: lambda x: x * 180 / mpmath.pi,
    np.clip: lambda x, low, high: min(max(x, low), high),
    np.angle: mpmath.arg,
    np.exp: mpmath.exp,
    np.exp2: lambda x: mpmath.mpf(2) ** x,
    np.expm1: mpmath.expm1,
    np.log: mpmath.log,
    np.log2: lambda x: mpmath.log(x, 2),
    np.log10: mpmath.log10,
    np.log1p: lambda x: mpmath.log(1 + x),
    np.sqrt: mpmath.sqrt,
    np.cbrt: mpmath.cbrt,
    np.square: lambda x: x * x,
    np.reciprocal: lambda x: 1 / x,
    np.sin: mpmath.sin,
    np.cos: mpmath.cos,
    np.tan: mpmath.tan,
    np.arcsin: mpmath.asin,
    np.arccos: mpmath.acos,
    np.arctan: mpmath.atan,
    np.arctan2: mpmath.atan2,
    np.hypot: mpmath.hypot,
    np.sinh: mpmath.sinh,
    np.cosh: mpmath.cosh,
    np.tanh: mpmath.tanh,
    np.arcsinh: mpmath.asinh,
    np.arccosh: mpmath.acosh,
    np.arctanh: mpmath.atanh,
    np.sinc: mpmath.sincpi,
    np.power: mpmath.power,
    np.divide: lambda x, y: x / y,
    np.logaddexp: lambda x, y: mpmath.log(mpmath.exp(x) + mpmath.exp(y)),
    np.logaddexp2: lambda x, y: mpmath.log(mpmath.mpf(2) ** x + mpmath.mpf(2) ** y, 2),
    math.log: mpmath.log,
    math.erf: mpmath.erf,
    math.erfc: mpmath.erfc,
    math.gamma: mpmath.gamma,
    math.lgamma: mpmath.loggamma,
    special.expit: lambda x: 1 / (1 + mpmath.exp(-x)),
    special.log_expit: lambda x: -mpmath.log(1 + mpmath.exp(-x)),
    special.logit: lambda x: mpmath.log(x / (1 - x)),
    special.erf: mpmath.erf,
    special.erfc: mpmath.erfc,
    special.erfcx: lambda x: mpmath.exp(x * x) * mpmath.erfc(x),
    special.erfinv: mpmath.erfinv,
    special.ndtr: mpmath.ncdf,
    special.log_ndtr: lambda x: mpmath.log(mpmath.ncdf(x)),
    special.gamma: mpmath.gamma,
    special.gammaln: mpmath.loggamma,
    special.digamma: mpmath.digamma,
    special.beta: mpmath.beta,
    special.betaln: lambda a, b: mpmath.log(mpmath.beta(a, b)),
    special.xlogy: lambda x, y: x * mpmath.log(y),
    special.xlog1py: lambda x, y: x * mpmath.log(1 + y),
    special.j0: lambda x: mpmath.besselj(0, x),
    special.j1: lambda x: mpmath.besselj(1, x),
    special.i0: lambda x: mpmath.besseli(0, x),
    special.i1: lambda x: mpmath.besseli(1, x),
    special.i0e: lambda x: mpmath.besseli(0, x) * mpmath.exp(-x),
    special.i1e: lambda x: mpmath.besseli(1, x) * mpmath.exp(-x),
    special.y0: lambda x: mpmath.bessely(0, x),
    special.y1: lambda x: mpmath.bessely(1, x),
    special.k0: lambda x: mpmath.besselk(0, x),
    special.k1: lambda x: mpmath.besselk(1, x),
    special.k0e: lambda x: mpmath.besselk(0, x) * mpmath.exp(x),
    special.k1e: lambda x: mpmath.besselk(1, x) * mpmath.exp(x),
    # ive and kve of scipy are good to 1e-14, and cancel in the derivative
    special.jv: mpmath.besselj,
    special.yv: mpmath.bessely,
    special.iv: mpmath.besseli,
    special.kv: mpmath.besselk,
    special.hyp0f1: mpmath.hyp0f1,
    special.hyp1f1: mpmath.hyp1f1,
    special.hyp2f1: mpmath.hyp2f1,
    special.rgamma: mpmath.rgamma,
    special.loggamma: mpmath.loggamma,
    special.polygamma: lambda n, x: mpmath.psi(int(n), x),
    special.zeta: mpmath.zeta,
    special.poch: mpmath.rf,
    special.binom: mpmath.binomial,
    special.betainc: lambda a, b, x: mpmath.betainc(a, b, 0, x, regularized=True),
    special.gammainc: lambda a, x: mpmath.gammainc(a, 0, x, regularized=True),
    special.gammaincc: lambda a, x: mpmath.gammainc(a, x, regularized=True),
    special.dawsn: lambda x: mpmath.sqrt(mpmath.pi) / 2 * mpmath.exp(-x * x) * mpmath.erfi(x),
    special.exp1: mpmath.e1,
    special.expi: mpmath.ei,
    special.spence: lambda z: mpmath.polylog(2, 1 - z),
    special.erfcinv: lambda x: mpmath.erfinv(1 - x),
    special.ndtri: lambda x: mpmath.sqrt(2) * mpmath.erfinv(2 * x - 1),
    special.entr: lambda x: -x * mpmath.log(x),
    special.rel_entr: lambda x, y: x * mpmath.log(x / y),
    special.kl_div: lambda x, y: x * mpmath.log(x / y) - x + y,
    special.pseudo_huber: lambda d, r: d * d * (mpmath.sqrt(1 + (r / d) ** 2) - 1),
    special.boxcox: lambda x, k: mpmath.expm1(k * mpmath.log(x)) / k,
    special.boxcox1p: lambda x, k: mpmath.expm1(k * mpmath.log(1 + x)) / k,
    special.expm1: mpmath.expm1,
    special.log1p: lambda x: mpmath.log(1 + x),
    special.cbrt: mpmath.cbrt,
    special.exp2: lambda x: mpmath.mpf(2) ** x,
    special.exp10: lambda x: mpmath.mpf(10) ** x,
}

# arguments outside the sampled domain where a formula could lose digits
HARD_POINTS: dict[Callable, list[tuple[float, ...]]] = {
    np.sinc: [(1e-9,), (1e-4,), (0.0317,), (0.0319,), (-0.002,)],
    np.logaddexp: [(800.0, 799.0), (-30.0, 5.0)],
    np.power: [(1e-8, 3.5), (40.0, -3.0)],
    np.hypot: [(3e160, 4e160), (3e-170, 4e-170)],
    math.gamma: [(-0.5,), (-2.3,), (0.01,), (20.0,)],
    math.lgamma: [(1e-3,), (150.0,), (1e6,)],
    special.expit: [(-600.0,)],
    special.log_ndtr: [(-20.0,)],
    special.boxcox: [(2.0, 1e-9), (0.5, 0.14), (3.0, -0.09)],
    special.spence: [(0.999999,), (1.000001,)],
    special.rgamma: [(-0.5,), (-2.3,)],
}


# ---- the table of conventions ----------------------------------------------------------------------------------------

INF, NAN = np.inf, np.nan
SPECIAL_POINTS = [
    (np.absolute, (0.0,), (0.0,)),
    (np.sqrt, (0.0,), (INF,)),
    (np.cbrt, (0.0,), (INF,)),
    (np.hypot, (0.0, 0.0), (0.0, 0.0)),
    (np.sinc, (0.0,), (0.0,)),
    (np.copysign, (0.0, -1.0), (0.0, None)),
    (np.power, (0.0, 0.0), (0.0, 0.0)),
    (np.power, (0.0, 2.0), (0.0, 0.0)),
    (np.power, (0.0, 1.0), (1.0, 0.0)),
    (np.power, (0.0, 0.5), (INF, 0.0)),
    (np.power, (-2.0, 3), (12.0, NAN)),
    (np.arctan2, (0.0, 0.0), (NAN, NAN)),
    (np.log, (0.0,), (INF,)),
    (np.clip, (-1.0, -1.0, 1.0), (1, 0, 0)),
    (np.clip, (1.0, -1.0, 1.0), (1, 0, 0)),
    (np.clip, (1.5, -1.0, 1.0), (0, 0, 1)),
    (np.clip, (-1.5, -1.0, 1.0), (0, 1, 0)),
    (np.clip, (0.0, 1.0, -1.0), (0, 0, 1)),
    (np.clip, (5.0, None, None), (1, None, None)),
    (np.nan_to_num, (NAN,), (0,)),
    (np.exp, (1000.0,), (INF,)),
    (special.xlogy, (0.0, 0.0), (-INF, 0.0)),
    (special.j1, (0.0,), (0.5,)),
    (special.i1, (0.0,), (0.5,)),
    (special.i1e, (0.0,), (0.5,)),
    (special.spence, (1.0,), (-1.0,)),
    (special.rgamma, (0.0,), (1.0,)),
    (special.rgamma, (-1.0,), (-1.0,)),
    (special.rgamma, (-2.0,), (2.0,)),
    (special.rgamma, (-3.0,), (-6.0,)),
    (special.poch, (-2.0, 1.0), (1.0, NAN)),
    (special.poch, (-2.0, 4.0), (2.0, 0.0)),
    (special.poch, (0.0, 1.0), (1.0, 0.0)),
    (special.poch, (0.0, 0.0), (0.0, NAN)),
    (special.binom, (3.0, 4.0), (0.25, -0.25)),
    (special.binom, (3.0, 5.0), (-1.0 / 20.0, 1.0 / 20.0)),
    (special.binom, (3.0, -1.0), (0.0, 0.25)),
    (special.binom, (4.0, -2.0), (0.0, -1.0 / 30.0)),
    (special.boxcox, (1.0, 0.0), (1.0, 0.0)),
]

SPECIAL_COTANGENTS = [
    (np.maximum, (2.0, 2.0), {}, (0.5, 0.5)),
    (np.minimum, (2.0, 2.0), {}, (0.5, 0.5)),
    (np.maximum, (INF, INF), {}, (0.5, 0.5)),
    (np.fmax, (NAN, 2.0), {}, (0.0, 1.0)),
    (np.fmin, (1.0, NAN), {}, (1.0, 0.0)),
    (np.max, (np.array([1.0, 3.0, 3.0]),), {}, np.array([0.0, 0.5, 0.5])),
    (np.min, (np.array([[1.0, 1.0], [3.0, 2.0]]),), {"axis": 1}, np.array([[0.5, 0.5], [0.0, 1.0]])),
    (np.std, (np.full(3, 2.0),), {}, np.zeros(3)),
    (np.prod, (np.array([2.0, 0.0, 3.0]),), {}, np.array([0.0, 6.0, 0.0])),
    (np.prod, (np.array([2.0, 0.0, 0.0]),), {}, np.zeros(3)),
    (np.linalg.norm, (np.zeros(3),), {}, np.zeros(3)),
    (np.linalg.norm, (np.zeros((2, 2)),), {"axis": 0}, np.zeros((2, 2))),
    (np.linalg.norm, (np.zeros(3),), {"ord": 1}, np.zeros(3)),
    (np.linalg.norm, (np.zeros(3),), {"ord": 3}, np.zeros(3)),
    (np.linalg.norm, (np.array([2.0, -2.0]), INF), {}, np.array([0.5, -0.5])),
    (special.logsumexp, (np.full(2, -INF),), {}, np.zeros(2)),
]
