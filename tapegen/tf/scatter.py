"""Tensors put together from parts at given places."""

from __future__ import annotations

from typing import Any

import numpy as np

from tapegen.rules.gradient_modifiers import stop_gradient
from tapegen.tape import Tensor, custom_gradient
from tapegen.tf.values import convert_to_tensor, sizes


def scatter_nd(indices: Any, updates: Any, shape: Any) -> Any:
    """Zeros with updates added at places along the first axes."""
    places = _places(indices)

    @custom_gradient
    def scattered(parts: Any) -> Any:
        whole = np.zeros(sizes(shape), parts.dtype)
        np.add.at(whole, places, stop_gradient(parts).numpy())
        return whole, lambda upstream: upstream[places]

    return scattered(convert_to_tensor(updates))


def tensor_scatter_nd_add(tensor: Any, indices: Any, updates: Any) -> Any:
    """A tensor with updates added at places."""
    whole = convert_to_tensor(tensor)
    return whole + scatter_nd(indices, convert_to_tensor(updates, whole.dtype), whole.shape)


def tensor_scatter_nd_update(tensor: Any, indices: Any, updates: Any) -> Any:
    """A tensor with other slices at places."""
    whole = convert_to_tensor(tensor)
    taken = np.zeros(whole.shape, bool)
    taken[_places(indices)] = True
    return np.where(taken, scatter_nd(indices, convert_to_tensor(updates, whole.dtype), whole.shape), whole)


def unsorted_segment_sum(data: Any, segment_ids: Any, num_segments: Any) -> Any:
    """Sums of the slices of each segment."""
    whole = convert_to_tensor(data)
    ids = np.asarray(segment_ids)
    return scatter_nd(ids[..., None], whole, (int(num_segments), *whole.shape[ids.ndim :]))


def segment_sum(data: Any, segment_ids: Any) -> Any:
    """Sums of the slices of each segment; the segments come in order."""
    return unsorted_segment_sum(data, segment_ids, np.max(np.asarray(segment_ids)) + 1)


def sequence_mask(lengths: Any, maxlen: Any = None, dtype: Any = np.bool_) -> Tensor:
    """For each length a row that holds in its first places."""
    ends = np.asarray(lengths)[..., None]
    return Tensor((np.arange(int(ends.max() if maxlen is None else maxlen)) < ends).astype(dtype))


def _places(indices: Any) -> tuple[Any, ...]:
    """Places along the first axes, as NumPy takes them."""
    return tuple(np.moveaxis(np.asarray(indices), -1, 0))
