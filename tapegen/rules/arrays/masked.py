"""Masked arrays, which are refused."""

from __future__ import annotations

import numpy as np

from tapegen.rules.registry import refused

refused(
    *(np.ma.array, np.ma.masked_array, np.ma.masked_where, np.ma.masked_invalid, np.ma.masked_equal),
    reason="it makes an array class with its own semantics.",
    advice="Use a plain array; instead of a mask, np.where or weights of 0.0.",
)
