"""Templates of library functions that equal other NumPy functions in some cases.

`np.emath` gives complex numbers where the real function has none; in generated code a real argument has a real result.
Reductions of the package bottleneck are compiled variants of NumPy's that skip NaN.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Any

import numpy as np


def _refuse_complex(is_outside: Any) -> None:
    if np.any(is_outside):
        raise ValueError("the result of a function of np.emath is complex here: pass complex numbers")


def _is_negative(x: Any) -> Any:
    return np.less(x, 0)


def _exceeds_one(x: Any) -> Any:
    return np.greater(np.abs(x), 1)


def _where_real(function: Callable[..., Any], is_outside: Callable[[Any], Any]) -> Callable[..., Any]:
    def call(x: Any) -> Any:
        if np.isrealobj(x):
            _refuse_complex(is_outside(x))
        return function(x)

    return call


log = _where_real(np.log, _is_negative)


def logn(n: Any, x: Any) -> Any:
    return log(x) / log(n)


def power(x: Any, p: Any) -> Any:
    if np.isrealobj(x):
        _refuse_complex(np.less(x, 0))
    return np.power(x, p)


EMATH: Mapping[Callable[..., Any], Callable[..., Any]] = MappingProxyType(
    {
        np.emath.sqrt: _where_real(np.sqrt, _is_negative),
        np.emath.log: log,
        np.emath.log2: _where_real(np.log2, _is_negative),
        np.emath.log10: _where_real(np.log10, _is_negative),
        np.emath.logn: logn,
        np.emath.power: power,
        np.emath.arccos: _where_real(np.arccos, _exceeds_one),
        np.emath.arcsin: _where_real(np.arcsin, _exceeds_one),
        np.emath.arctanh: _where_real(np.arctanh, _exceeds_one),
    }
)


def nansum(a: Any, axis: Any = None) -> Any:
    return np.nansum(a, axis=axis)


def nanmean(a: Any, axis: Any = None) -> Any:
    return np.nanmean(a, axis=axis)


def nanvar(a: Any, axis: Any = None, ddof: Any = 0) -> Any:
    return np.nanvar(a, axis=axis, ddof=ddof)


def nanstd(a: Any, axis: Any = None, ddof: Any = 0) -> Any:
    return np.nanstd(a, axis=axis, ddof=ddof)


def nanmin(a: Any, axis: Any = None) -> Any:
    return np.nanmin(a, axis=axis)


def nanmax(a: Any, axis: Any = None) -> Any:
    return np.nanmax(a, axis=axis)


def nanmedian(a: Any, axis: Any = None) -> Any:
    return np.nanmedian(a, axis=axis)


_BOTTLENECK = {f.__name__: f for f in (nansum, nanmean, nanvar, nanstd, nanmin, nanmax, nanmedian)}


def of_bottleneck(func: Any) -> Callable[..., Any] | None:
    """The text of a compiled reduction of the package bottleneck, if it is one."""
    if getattr(func, "__module__", "") == "bottleneck.reduce":
        return _BOTTLENECK.get(func.__name__)
    return None
