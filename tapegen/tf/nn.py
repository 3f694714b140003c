"""`tf.nn`."""

from __future__ import annotations

from typing import Any, NoReturn

from tapegen import nn
from tapegen.tf.functions import sigmoid, tanh
from tapegen.tf.math import softplus
from tapegen.tf.values import absent, convert_to_tensor, of_one

relu, elu = of_one(nn.relu), of_one(nn.elu)


def softmax(logits: Any, axis: int = -1) -> Any:
    """`exp(logits)` over its sum along an axis."""
    return nn.softmax(convert_to_tensor(logits), axis)


def log_softmax(logits: Any, axis: int = -1) -> Any:
    """The logarithm of `softmax`."""
    return nn.log_softmax(convert_to_tensor(logits), axis)


def sparse_softmax_cross_entropy_with_logits(labels: Any, logits: Any, name: str | None = None) -> Any:
    """The cross entropy of each example between a class and the softmax of logits."""
    return nn.sparse_softmax_cross_entropy(labels, convert_to_tensor(logits))


def __getattr__(name: str) -> NoReturn:
    raise absent("tapegen.tf.nn", name)


__all__ = [
    "elu",
    "log_softmax",
    "relu",
    "sigmoid",
    "softmax",
    "softplus",
    "sparse_softmax_cross_entropy_with_logits",
    "tanh",
]
