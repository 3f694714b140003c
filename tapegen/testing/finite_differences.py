"""Central differences of eighth order, for both checks."""

from __future__ import annotations

from typing import Any

import numpy as np

# at this step the truncation is far below the rounding, about 1e-13
STEP = 2.0**-8
WEIGHTS = ((1, 4 / 5), (2, -1 / 5), (3, 4 / 105), (4, -1 / 280))
FLOAT32_TOLERANCE = 2e-4


def to_float64(x: Any) -> Any:
    """The same values in double precision."""
    return np.asarray(x, dtype=np.complex128 if np.iscomplexobj(x) else np.float64)[()]


def is_float(leaf: Any) -> bool:
    """Whether a leaf is real or complex, or an array of such numbers."""
    return np.asarray(leaf).dtype.kind in "fc"
