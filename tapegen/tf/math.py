"""`tf.math`."""

from __future__ import annotations

from typing import Any, NoReturn

import numpy as np
import scipy.special

from tapegen import nn
from tapegen.tf.functions import (
    abs,
    acos,
    add,
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
    not_equal,
    pow,
    reduce_all,
    reduce_any,
    reduce_max,
    reduce_mean,
    reduce_min,
    reduce_prod,
    reduce_sum,
    round,
    sigmoid,
    sign,
    sin,
    sinh,
    sqrt,
    square,
    subtract,
    tan,
    tanh,
)
from tapegen.tf.values import absent, convert_to_tensor, of_one, of_two

log, log1p, expm1, ceil = of_one(np.log), of_one(np.log1p), of_one(np.expm1), of_one(np.ceil)
asinh, acosh, atanh, atan2 = of_one(np.arcsinh), of_one(np.arccosh), of_one(np.arctanh), of_two(np.arctan2)
reciprocal = of_one(np.reciprocal)
is_nan, is_finite = of_one(np.isnan), of_one(np.isfinite)
mod, floordiv = of_two(np.remainder), of_two(np.floor_divide)
erf, lgamma, digamma = of_one(scipy.special.erf), of_one(scipy.special.gammaln, "lgamma"), of_one(scipy.special.digamma)
xlogy = of_two(scipy.special.xlogy)
softplus = of_one(nn.softplus)


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
    "argmax",
    "argmin",
    "asin",
    "asinh",
    "atan",
    "atan2",
    "atanh",
    "ceil",
    "cos",
    "cosh",
    "cumprod",
    "cumsum",
    "digamma",
    "divide",
    "equal",
    "erf",
    "exp",
    "expm1",
    "floor",
    "floordiv",
    "greater",
    "greater_equal",
    "is_finite",
    "is_nan",
    "less",
    "less_equal",
    "lgamma",
    "log",
    "log1p",
    "logical_and",
    "logical_not",
    "logical_or",
    "maximum",
    "minimum",
    "mod",
    "multiply",
    "negative",
    "not_equal",
    "pow",
    "reciprocal",
    "reduce_all",
    "reduce_any",
    "reduce_max",
    "reduce_mean",
    "reduce_min",
    "reduce_prod",
    "reduce_sum",
    "round",
    "rsqrt",
    "sigmoid",
    "sign",
    "sin",
    "sinh",
    "softplus",
    "sqrt",
    "square",
    "squared_difference",
    "subtract",
    "tan",
    "tanh",
    "xlogy",
]
