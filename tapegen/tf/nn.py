"""`tf.nn`."""

from __future__ import annotations

from typing import Any, NoReturn

import numpy as np

from tapegen import nn
from tapegen.tf.functions import add, gather, reduce_mean, sigmoid, tanh
from tapegen.tf.math import erf, l2_normalize, log_softmax, reduce_variance, softmax, softplus
from tapegen.tf.random import uniform
from tapegen.tf.values import absent, convert_to_tensor, of_one

relu, elu = of_one(nn.relu), of_one(nn.elu)


selu = of_one(
    lambda x: 1.0507009873554805 * np.where(x >= 0, x, 1.6732632423543772 * np.expm1(np.where(x >= 0, 0.0, x))), "selu"
)
relu6 = of_one(lambda x: np.where(x < 6, nn.relu(x), 6.0), "relu6")
silu = swish = of_one(lambda x: x * nn.sigmoid(x), "silu")
l2_loss = of_one(lambda x: np.sum(x * x) / 2, "l2_loss")


def leaky_relu(features: Any, alpha: float = 0.2) -> Any:
    """`x` where it is positive, else `alpha * x`."""
    x = convert_to_tensor(features)
    return np.where(x > 0, x, alpha * x)


def gelu(features: Any, approximate: bool = False) -> Any:
    """`x` times the probability that a normal number is smaller; or with `approximate` a formula near to it."""
    x = convert_to_tensor(features)
    if approximate:
        return 0.5 * x * (1.0 + np.tanh(0.7978845608028654 * (x + 0.044715 * x**3)))
    return 0.5 * x * (1.0 + erf(x * 0.7071067811865476))


def dropout(x: Any, rate: float, noise_shape: Any = None, seed: Any = None) -> Any:
    """Some elements replaced by 0, and the others enlarged so that the sum stays as it is on average."""
    tensor = convert_to_tensor(x)
    kept = uniform(tensor.shape if noise_shape is None else noise_shape, seed=seed).numpy() >= rate
    return np.where(kept, tensor / (1.0 - rate), 0.0)


def bias_add(value: Any, bias: Any) -> Any:
    """A vector added along the last axis."""
    return add(value, bias)


def moments(x: Any, axes: Any, keepdims: bool = False) -> tuple[Any, Any]:
    """The mean and the variance along axes."""
    return reduce_mean(x, axes, keepdims), reduce_variance(x, axes, keepdims)


def embedding_lookup(params: Any, ids: Any) -> Any:
    """Rows of a table."""
    return gather(params, ids)


def softmax_cross_entropy_with_logits(labels: Any, logits: Any, axis: int = -1, name: str | None = None) -> Any:
    """The cross entropy of each example between probabilities and the softmax of logits."""
    return -np.sum(convert_to_tensor(labels) * log_softmax(logits, axis), axis=axis)


def sigmoid_cross_entropy_with_logits(labels: Any, logits: Any, name: str | None = None) -> Any:
    """The cross entropy of each element between a probability and the sigmoid of a logit."""
    return softplus(logits) - convert_to_tensor(labels) * convert_to_tensor(logits)


def sparse_softmax_cross_entropy_with_logits(labels: Any, logits: Any, name: str | None = None) -> Any:
    """The cross entropy of each example between a class and the softmax of logits."""
    return nn.sparse_softmax_cross_entropy(labels, convert_to_tensor(logits))


def __getattr__(name: str) -> NoReturn:
    raise absent("tapegen.tf.nn", name)


__all__ = [
    "bias_add",
    "dropout",
    "elu",
    "embedding_lookup",
    "gelu",
    "l2_loss",
    "l2_normalize",
    "leaky_relu",
    "log_softmax",
    "moments",
    "relu",
    "relu6",
    "selu",
    "sigmoid",
    "sigmoid_cross_entropy_with_logits",
    "silu",
    "softmax",
    "softmax_cross_entropy_with_logits",
    "softplus",
    "sparse_softmax_cross_entropy_with_logits",
    "swish",
    "tanh",
]
