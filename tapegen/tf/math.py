"""`tf.math`."""

from __future__ import annotations

from typing import Any, NamedTuple, NoReturn

import numpy as np
import scipy.special

from tapegen import nn
from tapegen.tf.functions import (
    abs,
    acos,
    add,
    add_n,
    argmax,
    argmin,
    asin,
    atan,
    cos,
    cosh,
    cumsum,
    divide,
    equal,
    exp,
    floor,
    greater,
    greater_equal,
    less,
    less_equal,
    logical_and,
    logical_not,
    logical_or,
    maximum,
    minimum,
    multiply,
    negative,
    norm,
    not_equal,
    pow,
    reduce_all,
    reduce_any,
    reduce_logsumexp,
    reduce_max,
    reduce_mean,
    reduce_min,
    reduce_prod,
    reduce_sum,
    round,
    scalar_mul,
    sigmoid,
    sign,
    sin,
    sinh,
    sqrt,
    square,
    subtract,
    tan,
    tanh,
    truediv,
)
from tapegen.tf.scatter import segment_sum, unsorted_segment_sum
from tapegen.tf.values import Axis, absent, axes, constant, convert_to_tensor, of_one, of_two


class TopK(NamedTuple):
    """What `top_k` gives."""

    values: Any
    indices: Any


log, log1p, expm1, ceil = of_one(np.log), of_one(np.log1p), of_one(np.expm1), of_one(np.ceil)
asinh, acosh, atanh, atan2 = of_one(np.arcsinh), of_one(np.arccosh), of_one(np.arctanh), of_two(np.arctan2)
reciprocal = of_one(np.reciprocal)
is_nan, is_finite = of_one(np.isnan), of_one(np.isfinite)
mod, floordiv = of_two(np.remainder), of_two(np.floor_divide)
erf, lgamma, digamma = of_one(scipy.special.erf), of_one(scipy.special.gammaln, "lgamma"), of_one(scipy.special.digamma)
xlogy = of_two(scipy.special.xlogy)
softplus = of_one(nn.softplus)


def softmax(logits: Any, axis: int = -1) -> Any:
    """`exp(logits)` over its sum along an axis."""
    return nn.softmax(convert_to_tensor(logits), axis)


def log_softmax(logits: Any, axis: int = -1) -> Any:
    """The logarithm of `softmax`."""
    return nn.log_softmax(convert_to_tensor(logits), axis)


erfc, erfinv, ndtri = of_one(scipy.special.erfc), of_one(scipy.special.erfinv), of_one(scipy.special.ndtri)
real, imag, conj, angle = of_one(np.real), of_one(np.imag), of_one(np.conj, "conj"), of_one(np.angle)
log_sigmoid = of_one(lambda x: -nn.softplus(-x), "log_sigmoid")


def reduce_variance(input_tensor: Any, axis: Axis = None, keepdims: bool = False) -> Any:
    """The mean square distance from the mean along axes."""
    return np.var(convert_to_tensor(input_tensor), axis=axes(axis), keepdims=keepdims)


def reduce_std(input_tensor: Any, axis: Axis = None, keepdims: bool = False) -> Any:
    """The root of the variance along axes."""
    return np.std(convert_to_tensor(input_tensor), axis=axes(axis), keepdims=keepdims)


def reduce_euclidean_norm(input_tensor: Any, axis: Axis = None, keepdims: bool = False) -> Any:
    """The root of the sum of squares along axes."""
    return norm(input_tensor, axis=axis, keepdims=keepdims)


def l2_normalize(x: Any, axis: Axis = None, epsilon: float = 1e-12) -> Any:
    """A tensor over its norm; the norm is not smaller than the root of `epsilon`."""
    tensor = convert_to_tensor(x)
    return tensor / np.sqrt(np.maximum(np.sum(tensor * tensor, axis=axes(axis), keepdims=True), epsilon))


def divide_no_nan(x: Any, y: Any) -> Any:
    """`x / y`, and 0 where `y` is 0."""
    below = convert_to_tensor(y)
    is_zero = np.equal(below, 0)
    return np.where(is_zero, 0.0, divide(x, np.where(is_zero, 1.0, below)))


def multiply_no_nan(x: Any, y: Any) -> Any:
    """`x * y`, and 0 where `y` is 0."""
    factor = convert_to_tensor(y)
    return np.where(np.equal(factor, 0), 0.0, multiply(x, factor))


def top_k(input: Any, k: int = 1) -> TopK:
    """The largest elements along the last axis in decreasing order, and where they stand."""
    tensor = convert_to_tensor(input)
    places = np.argsort(-tensor.numpy(), axis=-1, kind="stable")[..., :k]
    return TopK(np.take_along_axis(tensor, places, axis=-1), constant(places.astype(np.int32)))


def count_nonzero(input: Any, axis: Axis = None) -> Any:
    """How many elements are not 0."""
    return np.count_nonzero(convert_to_tensor(input), axis=axes(axis))


def cumprod(x: Any, axis: int = 0) -> Any:
    """Running products along an axis."""
    return np.cumprod(convert_to_tensor(x), axis=axis)


def squared_difference(x: Any, y: Any) -> Any:
    """`(x - y) ** 2`."""
    return np.square(subtract(x, y))


def rsqrt(x: Any) -> Any:
    """`1 / sqrt(x)`."""
    return 1.0 / np.sqrt(convert_to_tensor(x))


def __getattr__(name: str) -> NoReturn:
    raise absent("tapegen.tf.math", name)


__all__ = [
    "abs",
    "acos",
    "acosh",
    "add",
    "add_n",
    "angle",
    "argmax",
    "argmin",
    "asin",
    "asinh",
    "atan",
    "atan2",
    "atanh",
    "ceil",
    "conj",
    "cos",
    "cosh",
    "count_nonzero",
    "cumprod",
    "cumsum",
    "digamma",
    "divide",
    "divide_no_nan",
    "equal",
    "erf",
    "erfc",
    "erfinv",
    "exp",
    "expm1",
    "floor",
    "floordiv",
    "greater",
    "greater_equal",
    "imag",
    "is_finite",
    "is_nan",
    "l2_normalize",
    "less",
    "less_equal",
    "lgamma",
    "log",
    "log1p",
    "log_sigmoid",
    "log_softmax",
    "logical_and",
    "logical_not",
    "logical_or",
    "maximum",
    "minimum",
    "mod",
    "multiply",
    "multiply_no_nan",
    "ndtri",
    "negative",
    "not_equal",
    "pow",
    "real",
    "reciprocal",
    "reduce_all",
    "reduce_any",
    "reduce_euclidean_norm",
    "reduce_logsumexp",
    "reduce_max",
    "reduce_mean",
    "reduce_min",
    "reduce_prod",
    "reduce_std",
    "reduce_sum",
    "reduce_variance",
    "round",
    "rsqrt",
    "scalar_mul",
    "segment_sum",
    "sigmoid",
    "sign",
    "sin",
    "sinh",
    "softmax",
    "softplus",
    "sqrt",
    "square",
    "squared_difference",
    "subtract",
    "tan",
    "tanh",
    "top_k",
    "truediv",
    "unsorted_segment_sum",
    "xlogy",
]
