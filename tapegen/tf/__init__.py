"""Names of TensorFlow: with `import tapegen.tf as tf` scripts run that use its automatic differentiation.

Aliases and no more: there is no second implementation.  Python's numbers become float32 and int32, as in TensorFlow,
and tensors print as TensorFlow's do from the moment that this module is imported.
"""

from __future__ import annotations

import builtins
from typing import Any, NoReturn

import numpy as np

from tapegen.rules.gradient_modifiers import stop_gradient
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
from tapegen.tape.tensors.tensor import Traced
from tapegen.tf import autodiff, image, keras, linalg, math, nn, random
from tapegen.tf.autodiff import ForwardAccumulator, GradientTape
from tapegen.tf.control_flow import cond, map_fn, scan, while_loop
from tapegen.tf.functions import (
    abs,
    acos,
    add,
    add_n,
    argmax,
    argmin,
    asin,
    atan,
    boolean_mask,
    broadcast_to,
    complex,
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
    meshgrid,
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
    reduce_logsumexp,
    reduce_max,
    reduce_mean,
    reduce_min,
    reduce_prod,
    reduce_sum,
    repeat,
    reshape,
    reverse,
    roll,
    round,
    scalar_mul,
    shape,
    sigmoid,
    sign,
    sin,
    sinh,
    size,
    slice,
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
    truediv,
    unstack,
    where,
    zeros_like,
)
from tapegen.tf.gradient_registry import AdjustContrastv2, RegisterGradient, no_gradient
from tapegen.tf.keras import losses, optimizers
from tapegen.tf.module import Module
from tapegen.tf.scatter import scatter_nd, sequence_mask, tensor_scatter_nd_add, tensor_scatter_nd_update
from tapegen.tf.values import (
    TensorShape,
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
Traced.shape_type = TensorShape

float16, float32, float64 = np.float16, np.float32, np.float64
int8, int16, int32, int64 = np.int8, np.int16, np.int32, np.int64
uint8, bool = np.uint8, np.bool_
complex64, complex128 = np.complex64, np.complex128
newaxis = None


def function(func: Any = None, **options: Any) -> Any:
    """Decorate a function: it stays as it is."""
    return func if func is not None else lambda given: given


def print(*inputs: Any, **options: Any) -> None:
    """Print values."""
    builtins.print(*(item.numpy() if isinstance(item, Traced) else item for item in inputs), **options)


def is_tensor(x: Any) -> builtins.bool:
    """Whether a value is a tensor or a variable."""
    return isinstance(x, Traced)


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
    "TensorShape",
    "TensorSpec",
    "UnconnectedGradients",
    "Variable",
    "abs",
    "acos",
    "add",
    "add_n",
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
    "complex",
    "complex64",
    "complex128",
    "concat",
    "cond",
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
    "is_tensor",
    "keras",
    "less",
    "less_equal",
    "linalg",
    "linspace",
    "logical_and",
    "logical_not",
    "logical_or",
    "losses",
    "map_fn",
    "math",
    "matmul",
    "maximum",
    "meshgrid",
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
    "reduce_logsumexp",
    "reduce_max",
    "reduce_mean",
    "reduce_min",
    "reduce_prod",
    "reduce_sum",
    "repeat",
    "reshape",
    "reverse",
    "roll",
    "round",
    "scalar_mul",
    "scan",
    "scatter_nd",
    "sequence_mask",
    "shape",
    "sigmoid",
    "sign",
    "sin",
    "sinh",
    "size",
    "slice",
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
    "tensor_scatter_nd_add",
    "tensor_scatter_nd_update",
    "tensordot",
    "tile",
    "transpose",
    "truediv",
    "uint8",
    "unstack",
    "where",
    "while_loop",
    "zeros",
    "zeros_like",
]
