"""Gradient clipping by differentiable operations."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from tapegen.tape.tensors.variable import cast, convert_to_tensor


def clip_by_value(t: Any, clip_value_min: Any, clip_value_max: Any) -> Any:
    """Clip every element to two bounds.

    Parameters
    ----------
    t : array_like or tensor
        What is clipped.
    clip_value_min, clip_value_max : array_like or tensor
        The bounds.

    Returns
    -------
    tensor
        In the shape of `t`.
    """
    return np.clip(convert_to_tensor(t), clip_value_min, clip_value_max)


def clip_by_norm(t: Any, clip_norm: Any, axes: Any = None) -> Any:
    """Scale down a tensor whose Euclidean norm exceeds a bound.

    Parameters
    ----------
    t : array_like or tensor
        What is scaled.
    clip_norm : float
        The bound of the norm.
    axes : int or sequence of int, optional
        Axes along which norms are computed, each scaled for itself; by default all of them, as one norm.

    Returns
    -------
    tensor
        In the shape of `t`.
    """
    t = convert_to_tensor(t)
    clip_norm = cast(clip_norm, t.dtype)
    squares = np.sum(t * t, axis=tuple(axes) if isinstance(axes, list) else axes, keepdims=True)
    positive = squares > 0
    # the norm of zeros has no derivative: they are replaced before the root
    norm = np.where(positive, np.sqrt(np.where(positive, squares, np.ones_like(squares))), squares)
    return (t * clip_norm) / np.maximum(norm, clip_norm)


def global_norm(t_list: Sequence[Any]) -> Any:
    """The Euclidean norm of all elements of several tensors.

    Parameters
    ----------
    t_list : sequence of tensors
        None among them is ignored.

    Returns
    -------
    tensor
        One number.
    """
    parts = [np.sum(np.square(convert_to_tensor(t))) for t in t_list if t is not None]
    total = parts[0]
    for part in parts[1:]:
        total = total + part
    return np.sqrt(total)


def clip_by_global_norm(t_list: Sequence[Any], clip_norm: Any, use_norm: Any = None) -> tuple[list[Any], Any]:
    """Scale tensors by one factor, such that their common norm is at most a bound.

    Parameters
    ----------
    t_list : sequence of tensors
        What is scaled; None stays None.
    clip_norm : float
        The bound of the norm.
    use_norm : float or tensor, optional
        The norm, if it is known already.

    Returns
    -------
    tensors : list of tensors
        The scaled tensors.  If the norm is not finite, they are NaN.
    norm : tensor
        The common norm before scaling.
    """
    norm = global_norm(t_list) if use_norm is None else convert_to_tensor(use_norm)
    scale = clip_norm * np.minimum(1.0 / norm, 1.0 / clip_norm)
    # inf - inf is NaN: non-finite norms stay visible
    scale = scale + (norm - norm)
    return [None if t is None else convert_to_tensor(t) * scale for t in t_list], norm
