"""`tf.random`: other numbers than TensorFlow's, from NumPy's generators."""

from __future__ import annotations

from typing import Any

import numpy as np

from tapegen.nn import set_seed
from tapegen.nn.layers import generator
from tapegen.tape import Tensor
from tapegen.tf.values import constant, sizes


def normal(shape: Any, mean: float = 0.0, stddev: float = 1.0, dtype: Any = np.float32, seed: Any = None) -> Tensor:
    """Normally distributed numbers."""
    return constant(_generator(seed).normal(mean, stddev, sizes(shape)), dtype)


def uniform(shape: Any, minval: Any = 0, maxval: Any = 1, dtype: Any = np.float32, seed: Any = None) -> Tensor:
    """Evenly distributed numbers."""
    draw = _generator(seed)
    if np.dtype(dtype).kind in "iu":
        return constant(draw.integers(minval, maxval, sizes(shape)), dtype)
    return constant(draw.uniform(minval, maxval, sizes(shape)), dtype)


def shuffle(value: Any, seed: Any = None) -> Tensor:
    """The rows in another order."""
    return constant(_generator(seed).permutation(np.asarray(value)))


def _generator(seed: Any) -> np.random.Generator:
    return generator() if seed is None else np.random.default_rng(seed)


__all__ = ["normal", "set_seed", "shuffle", "uniform"]
