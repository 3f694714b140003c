"""Filters of images (`scipy.ndimage`): refused by name."""

from __future__ import annotations

from scipy import ndimage

from tapegen.rules.registry import refused

refused(
    ndimage.gaussian_filter,
    ndimage.gaussian_filter1d,
    ndimage.uniform_filter,
    ndimage.uniform_filter1d,
    ndimage.laplace,
    ndimage.sobel,
    ndimage.correlate1d,
    ndimage.convolve1d,
    ndimage.map_coordinates,
    reason="filters of images have no rule, since what they do at a border depends on mode=.",
    advice="Write the stencil as a sum of shifted slices, with the border as you want it.",
)
