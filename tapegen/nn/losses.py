"""Losses: one number for each example, or their mean."""

from __future__ import annotations

from typing import Any

import numpy as np

from tapegen.errors import BadArgument
from tapegen.nn.functions import log_softmax
from tapegen.tape.tensors.tensor import Traced


def sparse_softmax_cross_entropy(labels: Any, logits: Any) -> Any:
    """The cross entropy of each example between a class and the softmax of logits.

    Parameters
    ----------
    labels : array of int
        The class of each example, from 0.
    logits : array or tensor
        Scores of the classes along one more axis, the last.

    Returns
    -------
    array or tensor
        In the shape of `labels`.

    Raises
    ------
    BadArgument
        If the shapes do not fit, or a label is no class.
    """
    classes = np.asarray(labels.numpy() if isinstance(labels, Traced) else labels)
    if classes.dtype.kind not in "iu":
        raise BadArgument(f"labels have the type {classes.dtype}.", "Give the number of the class of each example.")
    if logits.shape[:-1] != classes.shape:
        raise BadArgument(
            f"labels of shape {classes.shape} do not fit logits of shape {logits.shape}.",
            "Logits have the axes of the labels, and one more for the classes.",
        )
    if classes.size and not (classes.min() >= 0 and classes.max() < logits.shape[-1]):
        raise BadArgument(
            f"labels run from {classes.min()} to {classes.max()}, and there are {logits.shape[-1]} classes.",
            "Count the classes from 0.",
        )
    chosen = np.take_along_axis(log_softmax(logits), classes[..., None], axis=-1)
    return -np.squeeze(chosen, axis=-1)


def mean_squared_error(targets: Any, predictions: Any) -> Any:
    """The mean over the last axis of the squared difference.

    Parameters
    ----------
    targets, predictions : array or tensor
        What is compared.

    Returns
    -------
    array or tensor
        One number for each example: without the last axis.
    """
    return np.mean((predictions - targets) ** 2, axis=-1)
