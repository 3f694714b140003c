"""Activations, written with NumPy: they take tensors, arrays and numbers, and keep the dtype.

None of them overflows, and their derivatives are right where a piece begins: that of `relu` at 0 is 0, of `elu` 1.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from tapegen.rules.gradient_modifiers import stop_gradient


def relu(x: Any) -> Any:
    """`x` where it is positive, else 0.

    Parameters
    ----------
    x : number, array or tensor
        The input.

    Returns
    -------
    number, array or tensor
        In the shape of `x`.
    """
    return np.where(x > 0, x, 0.0)


def elu(x: Any) -> Any:
    """`x` where it is positive, else `exp(x) - 1`.

    Parameters
    ----------
    x : number, array or tensor
        The input.

    Returns
    -------
    number, array or tensor
        In the shape of `x`.
    """
    positive = x > 0
    return np.where(positive, x, np.expm1(np.where(positive, 0.0, x)))


def tanh(x: Any) -> Any:
    """The hyperbolic tangent.

    Parameters
    ----------
    x : number, array or tensor
        The input.

    Returns
    -------
    number, array or tensor
        In the shape of `x`.
    """
    return np.tanh(x)


def softplus(x: Any) -> Any:
    """`log(1 + exp(x))`, which does not overflow.

    Parameters
    ----------
    x : number, array or tensor
        The input.

    Returns
    -------
    number, array or tensor
        In the shape of `x`.
    """
    positive, power = _power(x)
    return np.where(positive, x, 0.0) + np.log1p(power)


def sigmoid(x: Any) -> Any:
    """`1 / (1 + exp(-x))`, with a small relative error also for small results.

    Parameters
    ----------
    x : number, array or tensor
        The input.

    Returns
    -------
    number, array or tensor
        In the shape of `x`.
    """
    positive, power = _power(x)
    return np.where(positive, 1.0, power) / (1.0 + power)


def _power(x: Any) -> Any:
    """`exp(-abs(x))`, whose derivative from below is taken at 0: each branch stays smooth there."""
    positive = x > 0
    return positive, np.exp(np.where(positive, -x, x))


def softmax(logits: Any, axis: int = -1) -> Any:
    """`exp(logits)` divided by its sum along an axis.

    Parameters
    ----------
    logits : number, array or tensor
        Logarithms of weights.
    axis : int
        The axis along which the results sum to 1.

    Returns
    -------
    number, array or tensor
        In the shape of `logits`.
    """
    powers = np.exp(_shifted(logits, axis))
    return powers / np.sum(powers, axis=axis, keepdims=True)


def log_softmax(logits: Any, axis: int = -1) -> Any:
    """The logarithm of `softmax`, accurate also for small probabilities.

    Parameters
    ----------
    logits : number, array or tensor
        Logarithms of weights.
    axis : int
        The axis along which the exponentials of the results sum to 1.

    Returns
    -------
    number, array or tensor
        In the shape of `logits`.
    """
    shifted = _shifted(logits, axis)
    return shifted - np.log(np.sum(np.exp(shifted), axis=axis, keepdims=True))


def _shifted(logits: Any, axis: int) -> Any:
    # no result depends on the shift, so neither does a derivative
    return logits - stop_gradient(np.max(logits, axis=axis, keepdims=True))
