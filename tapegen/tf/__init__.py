"""Names of TensorFlow: with `import tapegen.tf as tf` scripts run that use its automatic differentiation.

Aliases and no more: there is no second implementation.  Python's numbers become float32 and int32, as in TensorFlow,
and tensors print as TensorFlow's do from the moment that this module is imported.
"""

from __future__ import annotations

import builtins
from typing import Any, NoReturn

import numpy as np

from tapegen.nn import Module
from tapegen.rules.surgery import stop_gradient
from tapegen.tape import (
    Tensor,
    UnconnectedGradients,
    cast,
    clip_by_global_norm,
    clip_by_norm,
    clip_by_value,
    custom_gradient,
    grad_pass_through,
    identity,
    recompute_grad,
)
from tapegen.tape.tensor import Traced
from tapegen.tf import autodiff, image, keras, linalg, math, nn, random
from tapegen.tf.autodiff import ForwardAccumulator, GradientTape
from tapegen.tf.functions import (
    abs,
    acos,
    add,
    argmax,
    argmin,
    asin,
    atan,
    boolean_mask,
    broadcast_to,
    concat,
    cos,
    cosh,
    cumsum,
    divide,
    einsum,
    equal,
    exp,
    expand_dims,
    floor,
    gather,
    gather_nd,
    greater,
    greater_equal,
    less,
    less_equal,
    logical_and,
    logical_not,
    logical_or,
    matmul,
    maximum,
    minimum,
    multiply,
    negative,
    norm,
    not_equal,
    ones_like,
    pad,
    pow,
    rank,
    reduce_all,
    reduce_any,
    reduce_max,
    reduce_mean,
    reduce_min,
    reduce_prod,
    reduce_sum,
    reshape,
    reverse,
    round,
    shape,
    sigmoid,
    sign,
    sin,
    sinh,
    size,
    sort,
    split,
    sqrt,
    square,
    squeeze,
    stack,
    subtract,
    tan,
    tanh,
    tensordot,
    tile,
    transpose,
    unstack,
    where,
    zeros_like,
)
from tapegen.tf.keras import losses, optimizers
from tapegen.tf.registered import AdjustContrastv2, RegisterGradient, no_gradient
from tapegen.tf.values import (
    Variable,
    absent,
    constant,
    convert_to_tensor,
    eye,
    fill,
    linspace,
    one_hot,
    ones,
    range,
    zeros,
)

Traced.printed_as = "tf"

float16, float32, float64 = np.float16, np.float32, np.float64
int8, int16, int32, int64 = np.int8, np.int16, np.int32, np.int64
uint8, bool = np.uint8, np.bool_
newaxis = None


def function(func: Any = None, **options: Any) -> Any:
    """Decorate a function: it stays as it is."""
    return func if func is not None else lambda given: given


def print(*inputs: Any, **options: Any) -> None:
    """Print values."""
    builtins.print(*(item.numpy() if isinstance(item, Traced) else item for item in inputs), **options)


class TensorSpec:
    """The shape and dtype of an argument."""

    def __init__(self, shape: Any, dtype: Any = np.float32, name: str | None = None) -> None:
        self.shape, self.dtype, self.name = shape, np.dtype(dtype), name


def __getattr__(name: str) -> NoReturn:
    raise absent("tapegen.tf", name)


__all__ = [
    "AdjustContrastv2",
    "ForwardAccumulator",
    "GradientTape",
    "Module",
    "RegisterGradient",
    "Tensor",
    "TensorSpec",
    "UnconnectedGradients",
    "Variable",
    "abs",
    "acos",
    "add",
    "argmax",
    "argmin",
    "asin",
    "atan",
    "autodiff",
    "bool",
    "boolean_mask",
    "broadcast_to",
    "cast",
    "clip_by_global_norm",
    "clip_by_norm",
    "clip_by_value",
    "concat",
    "constant",
    "convert_to_tensor",
    "cos",
    "cosh",
    "cumsum",
    "custom_gradient",
    "divide",
    "einsum",
    "equal",
    "exp",
    "expand_dims",
    "eye",
    "fill",
    "float16",
    "float32",
    "float64",
    "floor",
    "function",
    "gather",
    "gather_nd",
    "grad_pass_through",
    "greater",
    "greater_equal",
    "identity",
    "image",
    "int8",
    "int16",
    "int32",
    "int64",
    "keras",
    "less",
    "less_equal",
    "linalg",
    "linspace",
    "logical_and",
    "logical_not",
    "logical_or",
    "losses",
    "math",
    "matmul",
    "maximum",
    "minimum",
    "multiply",
    "negative",
    "newaxis",
    "nn",
    "no_gradient",
    "norm",
    "not_equal",
    "one_hot",
    "ones",
    "ones_like",
    "optimizers",
    "pad",
    "pow",
    "print",
    "random",
    "range",
    "rank",
    "recompute_grad",
    "reduce_all",
    "reduce_any",
    "reduce_max",
    "reduce_mean",
    "reduce_min",
    "reduce_prod",
    "reduce_sum",
    "reshape",
    "reverse",
    "round",
    "shape",
    "sigmoid",
    "sign",
    "sin",
    "sinh",
    "size",
    "sort",
    "split",
    "sqrt",
    "square",
    "squeeze",
    "stack",
    "stop_gradient",
    "subtract",
    "tan",
    "tanh",
    "tensordot",
    "tile",
    "transpose",
    "uint8",
    "unstack",
    "where",
    "zeros",
    "zeros_like",
]
