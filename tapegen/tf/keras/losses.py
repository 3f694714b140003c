"""`tf.keras.losses`."""

from __future__ import annotations

from typing import Any, NoReturn

import numpy as np

from tapegen import nn
from tapegen.errors import BadArgument
from tapegen.tf.nn import log_softmax, sigmoid_cross_entropy_with_logits
from tapegen.tf.values import absent, convert_to_tensor


class SparseCategoricalCrossentropy:
    """The mean cross entropy of classes.

    Parameters
    ----------
    from_logits : bool
        Whether scores are given, and not probabilities.
    """

    def __init__(self, from_logits: bool = False) -> None:
        self.from_logits = from_logits

    def __call__(self, y_true: Any, y_pred: Any) -> Any:
        scores = convert_to_tensor(y_pred)
        return np.mean(nn.sparse_softmax_cross_entropy(y_true, scores if self.from_logits else np.log(scores)))


def mean_squared_error(y_true: Any, y_pred: Any) -> Any:
    """The mean over the last axis of the squared difference."""
    return nn.mean_squared_error(y_true, convert_to_tensor(y_pred))


class CategoricalCrossentropy:
    """The mean cross entropy of probabilities of classes.

    Parameters
    ----------
    from_logits : bool
        Whether scores are given, and not probabilities.
    """

    def __init__(self, from_logits: bool = False) -> None:
        self.from_logits = from_logits

    def __call__(self, y_true: Any, y_pred: Any) -> Any:
        scores = convert_to_tensor(y_pred)
        logarithms = log_softmax(scores) if self.from_logits else np.log(scores)
        return -np.mean(np.sum(convert_to_tensor(y_true, scores.dtype) * logarithms, axis=-1))


class BinaryCrossentropy:
    """The mean cross entropy of two classes; from logits."""

    def __init__(self, from_logits: bool = False) -> None:
        if not from_logits:
            raise BadArgument("probabilities have lost digits near 1.", "Give from_logits=True and scores.")

    def __call__(self, y_true: Any, y_pred: Any) -> Any:
        scores = convert_to_tensor(y_pred)
        return np.mean(sigmoid_cross_entropy_with_logits(convert_to_tensor(y_true, scores.dtype), scores))


class MeanAbsoluteError:
    """The mean distance."""

    def __call__(self, y_true: Any, y_pred: Any) -> Any:
        return np.mean(np.abs(convert_to_tensor(y_pred) - y_true))


class MeanSquaredError:
    """The mean squared error."""

    def __call__(self, y_true: Any, y_pred: Any) -> Any:
        return np.mean(mean_squared_error(y_true, y_pred))


def __getattr__(name: str) -> NoReturn:
    raise absent("tapegen.tf.keras.losses", name)


__all__ = [
    "BinaryCrossentropy",
    "CategoricalCrossentropy",
    "MeanAbsoluteError",
    "MeanSquaredError",
    "SparseCategoricalCrossentropy",
    "mean_squared_error",
]
