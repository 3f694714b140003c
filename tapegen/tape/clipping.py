"""Gradient clipping by differentiable operations."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from tapegen.tape.tensors.variable import cast, convert_to_tensor


def clip_by_value(t: Any, clip_value_min: Any, clip_value_max: Any) -> Any:
    """Clip every element to two bounds."""
    return np.clip(convert_to_tensor(t), clip_value_min, clip_value_max)


def clip_by_norm(t: Any, clip_norm: Any, axes: Any = None) -> Any:
    """`t` scaled down where its Euclidean norm exceeds `clip_norm`; with `axes`, norms are taken along these."""
    t = convert_to_tensor(t)
    clip_norm = cast(clip_norm, t.dtype)
    squares = np.sum(t * t, axis=tuple(axes) if isinstance(axes, list) else axes, keepdims=True)
    positive = squares > 0
    # the norm of zeros has no derivative: they are replaced before the root
    norm = np.where(positive, np.sqrt(np.where(positive, squares, np.ones_like(squares))), squares)
    return (t * clip_norm) / np.maximum(norm, clip_norm)


def global_norm(t_list: Sequence[Any]) -> Any:
    """The Euclidean norm of all elements of several tensors; None is ignored."""
    parts = [np.sum(np.square(convert_to_tensor(t))) for t in t_list if t is not None]
    total = parts[0]
    for part in parts[1:]:
        total = total + part
    return np.sqrt(total)


def clip_by_global_norm(t_list: Sequence[Any], clip_norm: Any, use_norm: Any = None) -> tuple[list[Any], Any]:
    """Tensors scaled by one factor so that their common norm is at most `clip_norm`; and that norm before.

    Norms that are not finite make the tensors NaN.
    """
    norm = global_norm(t_list) if use_norm is None else convert_to_tensor(use_norm)
    scale = clip_norm * np.minimum(1.0 / norm, 1.0 / clip_norm)
    # inf - inf is NaN: non-finite norms stay visible
    scale = scale + (norm - norm)
    return [None if t is None else convert_to_tensor(t) * scale for t in t_list], norm
