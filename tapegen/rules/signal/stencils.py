"""Stencils: boundary padding and shifted views, the building blocks of filters and convolutions."""

from __future__ import annotations

from typing import Any

import numpy as np

from tapegen.rules.helpers import axes_tuple, one_of, slice_axis


def continued(x: Any, axis: int, before: Any, after: Any, edge: str, value: Any) -> Any:
    """An array padded along one axis, before and after.

    `edge` is the boundary mode: "reflect" (d c b a | a b c d | d c b a), "mirror" (d c b | a b c d | c b a), "nearest",
    "wrap" or "constant" (the value).
    """
    axis = axis % np.ndim(x)
    if edge == "constant":
        none = ((0, 0),)
        widths = none * axis + ((before, after),) + none * (np.ndim(x) - axis - 1)
        return np.pad(x, widths, mode="constant", constant_values=value)
    return np.take(x, places_beyond(np.shape(x)[axis], before, after, edge), axis=axis)


def places_beyond(n: Any, before: Any, after: Any, edge: str) -> Any:
    """The source indices of the elements of a padded axis."""
    one_of("mode", edge, ("reflect", "mirror", "wrap", "nearest"))
    place = np.arange(-before, n + after)
    if edge == "reflect":
        place = np.mod(place, 2 * n)
        return np.minimum(place, 2 * n - 1 - place)
    if edge == "mirror":
        period = max(2 * n - 2, 1)
        place = np.mod(place, period)
        return np.minimum(place, period - place)
    if edge == "wrap":
        return np.mod(place, n)
    return np.minimum(np.maximum(place, 0), n - 1)


def shifted(x: Any, k: Any, window: Any, like: Any) -> Any:
    """The view of `x` with the shape of `like`, shifted by the position of element k of `window`."""
    step = np.size(window)
    for axis in axes_tuple(None, np.ndim(x)):
        step = step // np.shape(window)[axis]
        start = (k // step) % np.shape(window)[axis]
        x = slice_axis(x, axis, start, start + np.shape(like)[axis])
    return x
