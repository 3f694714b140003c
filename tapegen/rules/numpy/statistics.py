"""Statistics: covariances, histograms and counts."""

from __future__ import annotations

import numpy as np

from tapegen.rules.gradient_modifiers import stop_gradient
from tapegen.rules.helpers import axes_tuple, flat, require
from tapegen.rules.registry import expands, fixed, linear

# ---- covariance ------------------------------------------------------------------------------------------------------


@expands(np.cov, shapes=[(3, 5)])
def cov(m, y=None, rowvar=True, bias=False, ddof=None, fweights=None, aweights=None):
    rows = observations(m, y, rowvar)
    matrix = covariance(rows, bias, ddof, fweights, aweights)
    if np.ndim(m) < 2 and y is None:
        return matrix[0, 0]
    return np.squeeze(matrix)


@expands(np.corrcoef, shapes=[(3, 5)])
def corrcoef(x, y=None, rowvar=True):
    rows = observations(x, y, rowvar)
    matrix = covariance(rows, False, None, None, None)
    if np.ndim(x) < 2 and y is None:
        return matrix[0, 0] / matrix[0, 0]
    scale = np.sqrt(np.diagonal(matrix))
    found = matrix / np.expand_dims(scale, 1) / scale
    # what is beyond 1 is rounding: a perfect correlation has no slope, but it has a curvature
    return np.squeeze(found + stop_gradient(np.clip(found, -1.0, 1.0) - found))


def observations(m, y, rowvar):
    """Observations with one variable in each row."""
    rows = as_rows(m, rowvar)
    if y is None:
        return rows
    return np.concatenate((rows, as_rows(y, rowvar)), axis=0)


def as_rows(m, rowvar):
    """The variables of one argument; a vector is one variable."""
    if np.ndim(m) == 0:
        return np.reshape(m, (1, 1))
    if np.ndim(m) == 1:
        return np.expand_dims(m, 0)
    if rowvar:
        return m
    return m.T


def covariance(rows, bias, ddof, fweights, aweights):
    """Weighted covariance matrix of variables in rows."""
    if ddof is None:
        ddof = 0 if bias else 1
    weights = None
    if fweights is not None:
        weights = fweights
    if aweights is not None:
        weights = aweights if weights is None else weights * aweights
    if weights is None:
        centred = rows - np.mean(rows, axis=1, keepdims=True)
        return centred @ centred.T / np.maximum(np.shape(rows)[1] - ddof, 0)
    total = np.sum(weights)
    centred = rows - np.expand_dims(np.sum(rows * weights, axis=1) / total, 1)
    factor = total - ddof
    if aweights is not None:
        factor = total - ddof * np.sum(weights * aweights) / total
    return (centred * weights) @ centred.T / factor


# ---- counts ----------------------------------------------------------------------------------------------------------


@linear(np.bincount, in_="weights", shapes=[fixed(np.array([1, 0, 3, 1])), (4,)])
def bincount(x, weights=None, minlength=0, *, out_bar):
    return np.take(out_bar, x)  # also where x are bools


@expands(np.histogram_bin_edges, shapes=[(7,), fixed(4)])
def histogram_bin_edges(a, bins=10, range=None, weights=None):
    edges = bin_edges(a, bins, range)
    if np.ndim(bins) > 0:
        return edges
    ends = () if range is None else (range[0], range[1])
    return np.astype(edges, np.result_type(a, *ends, 1.0))


def bin_edges(a, bins, span):
    """The edges of bins of equal width between the extrema, or the given edges."""
    require(not isinstance(bins, str), "np.histogram with an estimated number of bins has no rule.", "Give the number.")
    if np.ndim(bins) > 0:
        return np.asarray(bins)
    if span is not None:
        low = span[0]
        high = span[1]
        if low > high:
            raise ValueError("max must be larger than min in range parameter.")
    else:
        low = np.min(a)
        high = np.max(a)
    same = low == high
    return np.linspace(np.where(same, low - 0.5, low), np.where(same, high + 0.5, high), bins + 1)


def bin_of(a, edges):
    """The bin that each element falls into; the last one holds its upper edge; -1 outside."""
    last = np.size(edges) - 1
    k = np.searchsorted(edges, a, side="right") - 1
    k = np.where(a == edges[last], last - 1, k)
    return np.where((a < edges[0]) | (a > edges[last]), -1, k)


@expands(np.histogram, shapes=[(7,), fixed(4)])
def histogram(a, bins=10, range=None, density=None, weights=None):
    """Counts are piecewise constant; weights, densities and edges are not."""
    a = flat(a)
    edges = histogram_bin_edges(a, bins, range)
    k = bin_of(a, edges)
    count = np.size(edges) - 1
    if weights is None:
        heights = np.bincount(k + 1, minlength=count + 1)[1:]
    else:
        heights = np.bincount(k + 1, flat(weights), minlength=count + 1)[1:]
        heights = np.astype(heights, np.result_type(weights))
    if density:
        return heights / np.diff(edges) / np.sum(heights), edges
    return heights, edges


@expands(np.histogram2d, shapes=[(7,), (7,), fixed(3)])
def histogram2d(x, y, bins=10, range=None, density=None, weights=None):
    x_bins = bins
    y_bins = bins
    if np.ndim(bins) == 1 and len(bins) == 2:
        x_bins = bins[0]
        y_bins = bins[1]
    x_edges = bin_edges(x, x_bins, None if range is None else range[0])
    y_edges = bin_edges(y, y_bins, None if range is None else range[1])
    rows = np.size(x_edges) - 1
    columns = np.size(y_edges) - 1
    i = bin_of(x, x_edges)
    j = bin_of(y, y_edges)
    k = np.where((i < 0) | (j < 0), 0, i * columns + j + 1)
    if weights is None:
        weights = np.ones_like(x)
    heights = np.reshape(np.bincount(k, weights, minlength=rows * columns + 1)[1:], (rows, columns))
    if density:
        area = np.expand_dims(np.diff(x_edges), 1) * np.diff(y_edges)
        heights = heights / area / np.sum(heights)
    return heights, x_edges, y_edges


@expands(np.histogramdd, shapes=[(7, 2), fixed(3)], written=True)
def histogramdd(sample, bins=10, range=None, density=None, weights=None):
    columns = ()
    if isinstance(sample, tuple | list):
        columns = tuple(sample)
    else:
        require(np.ndim(sample) == 2, "samples are the rows of a matrix.", "Pass a matrix, or a list of coordinates.")
        for k in axes_tuple(None, np.shape(sample)[1]):
            columns = columns + (sample[:, k],)
    edges = []
    place = np.zeros_like(columns[0], dtype=np.int64)
    outside = np.zeros_like(columns[0], dtype=np.bool_)
    shape = ()
    total = 1
    for k, column in enumerate(columns):
        edge = bin_edges(column, bins[k] if np.ndim(bins) > 0 else bins, None if range is None else range[k])
        count = np.size(edge) - 1
        j = bin_of(column, edge)
        outside = outside | (j < 0)
        place = place * count + j
        total = total * count
        shape = shape + (count,)
        edges.append(edge)
    if weights is None:
        weights = np.ones_like(columns[0])
    heights = np.reshape(np.bincount(np.where(outside, 0, place + 1), weights, minlength=total + 1)[1:], shape)
    if density:
        heights = heights / np.sum(heights)
        for k, edge in enumerate(edges):
            heights = heights / np.reshape(np.diff(edge), (1,) * k + (-1,) + (1,) * (len(edges) - k - 1))
    return heights, edges
