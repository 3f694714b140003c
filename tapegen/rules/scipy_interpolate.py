"""Curves through points (`scipy.interpolate`): refused by name."""

from __future__ import annotations

from scipy import interpolate

from tapegen.rules.registry import refused

refused(
    interpolate.interp1d,
    interpolate.CubicSpline,
    interpolate.RegularGridInterpolator,
    reason="curves through points have no rule.",
    advice="Use np.interp, or np.searchsorted and the polynomial of the interval.",
)
