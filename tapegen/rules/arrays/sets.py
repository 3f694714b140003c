"""Set functions: sorted unique elements.  Of equal elements the first one carries the derivative."""

from __future__ import annotations

import numpy as np

from tapegen.rules.helpers import flat, require
from tapegen.rules.registry import expands


def sorted_runs(row):
    """The sorting permutation of the elements, and a mask of where a new value begins."""
    order = np.argsort(row, kind="stable")
    ordered = row[order]
    changes = ordered[1:] != ordered[:-1]
    if row.dtype != np.int64:
        changes = changes & np.logical_not(np.isnan(ordered[1:]) & np.isnan(ordered[:-1]))
    first = np.ones(min(1, np.size(row)), dtype=np.bool_)
    return order, np.concatenate((first, changes))


def positions_in(order, first):
    """For each element, the index of its value among the unique values."""
    position = np.zeros_like(order)
    position[order] = np.cumsum(first) - 1
    return position


def run_lengths(first):
    """The number of occurrences of each value."""
    starts = np.flatnonzero(first)
    end = np.ones(1, dtype=np.int64) * np.size(first)
    return np.diff(np.concatenate((starts, end)))


def distinct(x):
    """The sorted unique elements of an array."""
    row = flat(x)
    order, first = sorted_runs(row)
    return row[order[np.flatnonzero(first)]]


@expands(np.unique, shapes=[(5,)])
def unique(ar, return_index=False, return_inverse=False, return_counts=False, axis=None):
    require(axis is None, "np.unique(axis=...) has no rule.", "Take the unique elements of the whole array.")
    row = flat(ar)
    order, first = sorted_runs(row)
    places = order[np.flatnonzero(first)]
    found = (row[places],)
    if return_index:
        found = found + (places,)
    if return_inverse:
        found = found + (np.reshape(positions_in(order, first), np.shape(ar)),)
    if return_counts:
        found = found + (run_lengths(first),)
    if len(found) == 1:
        return found[0]
    return found


@expands(np.unique_values, shapes=[(5,)])
def unique_values(x):
    return distinct(x)


@expands(np.unique_counts, shapes=[(5,)])
def unique_counts(x):
    row = flat(x)
    order, first = sorted_runs(row)
    return row[order[np.flatnonzero(first)]], run_lengths(first)


@expands(np.unique_inverse, shapes=[(5,)])
def unique_inverse(x):
    row = flat(x)
    order, first = sorted_runs(row)
    return row[order[np.flatnonzero(first)]], np.reshape(positions_in(order, first), np.shape(x))


@expands(np.unique_all, shapes=[(5,)])
def unique_all(x):
    row = flat(x)
    order, first = sorted_runs(row)
    places = order[np.flatnonzero(first)]
    return row[places], places, np.reshape(positions_in(order, first), np.shape(x)), run_lengths(first)


@expands(np.union1d, shapes=[(5,), (3,)])
def union1d(ar1, ar2):
    return distinct(np.concatenate((flat(ar1), flat(ar2))))


@expands(np.intersect1d, shapes=[(5,), (3,)])
def intersect1d(ar1, ar2, assume_unique=False, return_indices=False):
    require(not return_indices, "np.intersect1d(return_indices=True) has no rule.", "Find the places with np.isin.")
    left = flat(ar1) if assume_unique else distinct(ar1)
    right = flat(ar2) if assume_unique else distinct(ar2)
    both = np.concatenate((left, right))
    order = np.argsort(both, kind="stable")
    ordered = both[order]
    return ordered[np.flatnonzero(ordered[1:] == ordered[:-1])]


@expands(np.setdiff1d, shapes=[(5,), (3,)])
def setdiff1d(ar1, ar2, assume_unique=False):
    left = flat(ar1) if assume_unique else distinct(ar1)
    return left[np.flatnonzero(np.logical_not(np.isin(left, ar2)))]


@expands(np.setxor1d, shapes=[(5,), (3,)])
def setxor1d(ar1, ar2, assume_unique=False):
    left = flat(ar1) if assume_unique else distinct(ar1)
    right = flat(ar2) if assume_unique else distinct(ar2)
    both = np.concatenate((left, right))
    ordered = both[np.argsort(both, kind="stable")]
    edge = np.ones(min(1, np.size(both)), dtype=np.bool_)
    changes = ordered[1:] != ordered[:-1]
    alone = np.concatenate((edge, changes)) & np.concatenate((changes, edge))
    return ordered[np.flatnonzero(alone)]
