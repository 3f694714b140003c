"""`tf.random`: other numbers than TensorFlow's, from NumPy's generators."""

from __future__ import annotations

from typing import Any, NoReturn

import numpy as np

from tapegen.nn import set_seed
from tapegen.nn.layers import generator
from tapegen.tape import Tensor
from tapegen.tf.values import absent, constant, sizes


def normal(shape: Any, mean: float = 0.0, stddev: float = 1.0, dtype: Any = np.float32, seed: Any = None) -> Tensor:
    """Normally distributed numbers."""
    return constant(_generator(seed).normal(mean, stddev, sizes(shape)), dtype)


def uniform(shape: Any, minval: Any = 0, maxval: Any = 1, dtype: Any = np.float32, seed: Any = None) -> Tensor:
    """Evenly distributed numbers."""
    draw = _generator(seed)
    if np.dtype(dtype).kind in "iu":
        return constant(draw.integers(minval, maxval, sizes(shape)), dtype)
    return constant(draw.uniform(minval, maxval, sizes(shape)), dtype)


def truncated_normal(
    shape: Any, mean: float = 0.0, stddev: float = 1.0, dtype: Any = np.float32, seed: Any = None
) -> Tensor:
    """Normally distributed numbers, those further than two deviations from the mean drawn again."""
    draw = _generator(seed)
    numbers = draw.standard_normal(sizes(shape))
    while (far := np.abs(numbers) > 2.0).any():
        numbers[far] = draw.standard_normal(int(far.sum()))
    return constant(mean + stddev * numbers, dtype)


def stateless_normal(shape: Any, seed: Any, mean: float = 0.0, stddev: float = 1.0, dtype: Any = np.float32) -> Tensor:
    """The same normally distributed numbers for the same two seeds."""
    return normal(shape, mean, stddev, dtype, sizes(seed))


def stateless_uniform(shape: Any, seed: Any, minval: Any = 0, maxval: Any = 1, dtype: Any = np.float32) -> Tensor:
    """The same evenly distributed numbers for the same two seeds."""
    return uniform(shape, minval, maxval, dtype, sizes(seed))


def __getattr__(name: str) -> NoReturn:
    raise absent("tapegen.tf.random", name)


def shuffle(value: Any, seed: Any = None) -> Tensor:
    """The rows in another order."""
    return constant(_generator(seed).permutation(np.asarray(value)))


def _generator(seed: Any) -> np.random.Generator:
    return generator() if seed is None else np.random.default_rng(seed)


__all__ = ["normal", "set_seed", "shuffle", "stateless_normal", "stateless_uniform", "truncated_normal", "uniform"]
