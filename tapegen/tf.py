"""Names of TensorFlow: with `import tapegen.tf as tf` scripts run that use its automatic differentiation.

Aliases and no more: there is no second implementation.  Python's numbers become float32 and int32, as in TensorFlow,
and tensors print as TensorFlow's do from the moment that this module is imported.
"""

from __future__ import annotations

import builtins
from collections.abc import Callable, Sequence
from types import SimpleNamespace
from typing import Any, TypeVar

import numpy as np

from tapegen import nn as _nn
from tapegen import tape as _tape
from tapegen.errors import BadArgument
from tapegen.nn.layers import takes_training
from tapegen.nn.module import Module
from tapegen.rules.surgery import stop_gradient
from tapegen.tape import (
    ForwardAccumulator,
    GradientTape,
    Tensor,
    UnconnectedGradients,
    clip_by_global_norm,
    clip_by_norm,
    clip_by_value,
    custom_gradient,
    grad_pass_through,
    identity,
    recompute_grad,
)
from tapegen.tape.derived import missing
from tapegen.tape.operation import Operation
from tapegen.tape.places import user_span
from tapegen.tape.tensor import Traced

Func = TypeVar("Func", bound=Callable[..., Any])
Axis = int | Sequence[int] | None

Traced.printed_as = "tf"

float16, float32, float64 = np.float16, np.float32, np.float64
int8, int16, int32, int64 = np.int8, np.int16, np.int32, np.int64
uint8, bool = np.uint8, np.bool_


def _dtype(value: Any, dtype: Any) -> Any:
    """The dtype of new values: Python's numbers are single precision."""
    if dtype is not None or isinstance(value, Traced | np.ndarray | np.generic):
        return dtype
    kind = np.asarray(value).dtype.kind if not _holds_tensors(value) else ""
    return {"f": np.float32, "i": np.int32}.get(kind)


def _holds_tensors(value: Any) -> builtins.bool:
    if isinstance(value, list | tuple):
        return any(_holds_tensors(item) for item in value)
    return isinstance(value, Traced)


# ---- values ----------------------------------------------------------------------------------------------------------


class Variable(_tape.Variable):
    """A variable; see `tapegen.Variable`."""

    __slots__ = ()

    def __init__(self, initial_value: Any, trainable: builtins.bool = True, name: str | None = None, dtype: Any = None):
        super().__init__(initial_value, trainable, f"{name or 'Variable'}:0", _dtype(initial_value, dtype))


def constant(value: Any, dtype: Any = None, shape: Any = None, name: str | None = None) -> Tensor:
    """A tensor of the given numbers."""
    return _tape.constant(value, _dtype(value, dtype), shape, name)


def convert_to_tensor(value: Any, dtype: Any = None, name: str | None = None) -> Tensor:
    """A tensor of the same value."""
    return _tape.convert_to_tensor(value, _dtype(value, dtype), name)


cast = _tape.cast


def zeros(shape: Any, dtype: Any = np.float32) -> Tensor:
    """A tensor of zeros."""
    return Tensor(np.zeros(shape, dtype))


def ones(shape: Any, dtype: Any = np.float32) -> Tensor:
    """A tensor of ones."""
    return Tensor(np.ones(shape, dtype))


def fill(dims: Any, value: Any) -> Tensor:
    """A tensor of one number."""
    return constant(value, shape=tuple(dims))


def eye(num_rows: int, num_columns: int | None = None, dtype: Any = np.float32) -> Tensor:
    """The identity matrix."""
    return Tensor(np.eye(num_rows, num_columns, dtype=dtype))


def linspace(start: Any, stop: Any, num: int) -> Tensor:
    """Evenly spaced numbers."""
    return constant(np.linspace(start, stop, num), np.float32)


def range(*limits: Any, dtype: Any = None) -> Tensor:
    """Numbers from a start (0) to a limit, by a step (1)."""
    return constant(np.arange(*limits), dtype or _dtype(sum(limits), None))


def _with(function: Callable[..., Any]) -> Callable[..., Any]:
    """A NumPy function of one value."""

    def call(input: Any, name: str | None = None) -> Any:
        return function(convert_to_tensor(input))

    call.__name__ = call.__qualname__ = function.__name__
    return call


def _with_two(function: Callable[..., Any]) -> Callable[..., Any]:
    """A NumPy function of two values; a Python number or list takes the type of the other."""

    def call(x: Any, y: Any, name: str | None = None) -> Any:
        if not isinstance(x, Traced) and not isinstance(y, Traced):
            x = convert_to_tensor(x)
        return function(x, y)

    call.__name__ = call.__qualname__ = function.__name__
    return call


zeros_like, ones_like = _with(np.zeros_like), _with(np.ones_like)


# ---- functions -------------------------------------------------------------------------------------------------------


def _axis(axis: Axis) -> Any:
    return axis if axis is None or isinstance(axis, int) else tuple(axis)


def _reduction(function: Callable[..., Any]) -> Callable[..., Any]:
    def call(input_tensor: Any, axis: Axis = None, keepdims: builtins.bool = False, name: str | None = None) -> Any:
        tensor = convert_to_tensor(input_tensor)
        return cast(function(tensor, axis=_axis(axis), keepdims=keepdims), _result_type(function, tensor))

    call.__name__ = call.__qualname__ = f"reduce_{function.__name__}"
    return call


def _result_type(function: Callable[..., Any], tensor: Tensor) -> Any:
    return np.bool_ if function in (np.any, np.all) else tensor.dtype


reduce_sum, reduce_mean, reduce_prod = _reduction(np.sum), _reduction(np.mean), _reduction(np.prod)
reduce_max, reduce_min = _reduction(np.max), _reduction(np.min)
reduce_any, reduce_all = _reduction(np.any), _reduction(np.all)

abs, negative, exp, sqrt, square, sign = (_with(f) for f in (np.abs, np.negative, np.exp, np.sqrt, np.square, np.sign))
sin, cos, tan, tanh, floor, round = (_with(f) for f in (np.sin, np.cos, np.tan, np.tanh, np.floor, np.round))
asin, acos, atan, sinh, cosh = (_with(f) for f in (np.arcsin, np.arccos, np.arctan, np.sinh, np.cosh))
add, subtract, multiply, divide, pow = (_with_two(f) for f in (np.add, np.subtract, np.multiply, np.divide, np.power))
maximum, minimum, equal, not_equal = (_with_two(f) for f in (np.maximum, np.minimum, np.equal, np.not_equal))
less, less_equal, greater, greater_equal = (
    _with_two(f) for f in (np.less, np.less_equal, np.greater, np.greater_equal)
)
sigmoid = _with(_nn.sigmoid)


def matmul(a: Any, b: Any, transpose_a: builtins.bool = False, transpose_b: builtins.bool = False) -> Any:
    """The product of matrices."""
    left: Any = convert_to_tensor(a)
    right: Any = convert_to_tensor(b)
    left = np.swapaxes(left, -1, -2) if transpose_a else left
    return left @ (np.swapaxes(right, -1, -2) if transpose_b else right)


def reshape(tensor: Any, shape: Any) -> Any:
    """The same elements in another shape; the sizes may be tensors."""
    return np.reshape(convert_to_tensor(tensor), [int(n) for n in shape])


def transpose(a: Any, perm: Sequence[int] | None = None) -> Any:
    """The axes in another order."""
    return np.transpose(convert_to_tensor(a), perm)


def expand_dims(input: Any, axis: int) -> Any:
    """One more axis of size 1."""
    return np.expand_dims(convert_to_tensor(input), axis)


def squeeze(input: Any, axis: Axis = None) -> Any:
    """Without axes of size 1."""
    return np.squeeze(convert_to_tensor(input), axis=_axis(axis))


def concat(values: Sequence[Any], axis: int) -> Any:
    """Tensors one after the other along an axis."""
    return np.concatenate([convert_to_tensor(value) for value in values], axis=axis)


def stack(values: Sequence[Any], axis: int = 0) -> Any:
    """Tensors along a new axis."""
    return np.stack([convert_to_tensor(value) for value in values], axis=axis)


def gather(params: Any, indices: Any, axis: int = 0) -> Any:
    """Slices of a tensor at indices along an axis."""
    where_ = indices.numpy() if isinstance(indices, Traced) else np.asarray(indices)
    return np.take(convert_to_tensor(params), where_, axis=axis)


def pad(tensor: Any, paddings: Any, mode: str = "CONSTANT", constant_values: float = 0) -> Any:
    """With borders around it."""
    widths = [tuple(int(n) for n in pair) for pair in paddings]
    if mode.upper() == "CONSTANT":
        return np.pad(convert_to_tensor(tensor), widths, constant_values=constant_values)
    kinds: dict[str, Any] = {"REFLECT": "reflect", "SYMMETRIC": "symmetric"}
    if mode.upper() not in kinds:
        raise BadArgument(f"mode={mode!r} is unknown.", "Give CONSTANT, REFLECT or SYMMETRIC.")
    return np.pad(convert_to_tensor(tensor), widths, mode=kinds[mode.upper()])


def where(condition: Any, x: Any, y: Any) -> Any:
    """`x` where the condition holds, else `y`."""
    return np.where(condition, x, y)


def einsum(equation: str, *inputs: Any) -> Any:
    """Sums of products, as `numpy.einsum` writes them."""
    return np.einsum(equation, *map(convert_to_tensor, inputs))


def argmax(input: Any, axis: int = 0) -> Any:
    """Where the largest element stands."""
    return np.argmax(convert_to_tensor(input), axis=axis)


def norm(tensor: Any, ord: Any = "euclidean", axis: Axis = None, keepdims: builtins.bool = False) -> Any:
    """The norm of all elements, or along axes."""
    value = convert_to_tensor(tensor)
    if ord in ("euclidean", "fro", 2):
        return np.sqrt(np.sum(value * value, axis=_axis(axis), keepdims=keepdims))
    if ord == 1:
        return np.sum(np.abs(value), axis=_axis(axis), keepdims=keepdims)
    if ord == np.inf:
        return np.max(np.abs(value), axis=_axis(axis), keepdims=keepdims)
    return np.sum(np.abs(value) ** ord, axis=_axis(axis), keepdims=keepdims) ** (1.0 / ord)


# ---- gradients of operations that have none --------------------------------------------------------------------------

_REGISTERED: dict[str, Callable[..., Any] | None] = {}


class RegisterGradient:
    """Decorate a function that gives the gradient of an operation: `gradient(op, *upstream)`, with `op.inputs`."""

    def __init__(self, op_type: str) -> None:
        self.op_type = op_type

    def __call__(self, gradient: Func) -> Func:
        """Register the function; it is returned as it is."""
        _REGISTERED[self.op_type] = gradient
        return gradient


def no_gradient(op_type: str) -> None:
    """Declare that an operation has no gradient: None instead of an error."""
    _REGISTERED[op_type] = None


def AdjustContrastv2(images: Any, contrast_factor: Any) -> Any:
    """The distance from the mean of each channel, times a factor."""
    mean = np.mean(images, axis=(-3, -2), keepdims=True)
    return (images - mean) * contrast_factor + mean


def _adjust_contrast(images: Any, contrast_factor: Any) -> Any:
    """Pictures of another contrast.  As in TensorFlow this operation has no gradient until one is registered."""
    inputs = (convert_to_tensor(images), convert_to_tensor(contrast_factor))
    refused = missing(Operation(AdjustContrastv2, None), user_span())

    def unregistered(op: Any, *upstream: Any) -> Any:
        raise refused

    given: Callable[..., Any] | None = _REGISTERED.get("AdjustContrastv2", unregistered)
    if given is None:
        return stop_gradient(AdjustContrastv2(*map(stop_gradient, inputs)))
    gradient = given

    @custom_gradient
    def adjusted(first: Any, second: Any) -> Any:
        result = AdjustContrastv2(stop_gradient(first), stop_gradient(second))
        op = SimpleNamespace(type="AdjustContrastv2", inputs=inputs, outputs=(result,))
        return result, lambda *upstream: gradient(op, *upstream)

    return adjusted(*inputs)


# ---- functions that do nothing here ----------------------------------------------------------------------------------


def function(func: Any = None, **options: Any) -> Any:
    """Decorate a function: it stays as it is."""
    return func if func is not None else lambda given: given


class TensorSpec:
    """The shape and dtype of an argument."""

    def __init__(self, shape: Any, dtype: Any = np.float32, name: str | None = None) -> None:
        self.shape, self.dtype, self.name = shape, np.dtype(dtype), name


# ---- namespaces ------------------------------------------------------------------------------------------------------


def _normal(shape: Any, mean: float = 0.0, stddev: float = 1.0, dtype: Any = np.float32, seed: Any = None) -> Tensor:
    """Normally distributed numbers."""
    return constant(_generator(seed).normal(mean, stddev, tuple(shape)), dtype)


def _uniform(shape: Any, minval: Any = 0, maxval: Any = 1, dtype: Any = np.float32, seed: Any = None) -> Tensor:
    """Evenly distributed numbers."""
    draw = _generator(seed)
    if np.dtype(dtype).kind in "iu":
        return constant(draw.integers(minval, maxval, tuple(shape)), dtype)
    return constant(draw.uniform(minval, maxval, tuple(shape)), dtype)


def _generator(seed: Any) -> np.random.Generator:
    from tapegen.nn.layers import generator

    return generator() if seed is None else np.random.default_rng(seed)


def _cross_entropy(labels: Any, logits: Any, name: str | None = None) -> Any:
    return _nn.sparse_softmax_cross_entropy(labels, convert_to_tensor(logits))


class _Layer(Module):
    """A module that is called through its method `call`, as Keras has it."""

    call: Callable[..., Any]

    def __call__(self, inputs: Any, training: builtins.bool = False) -> Any:
        return self.call(inputs, training=training) if takes_training(type(self).call) else self.call(inputs)


class _SparseCategoricalCrossentropy:
    """The mean cross entropy of classes."""

    def __init__(self, from_logits: builtins.bool = False) -> None:
        self.from_logits = from_logits

    def __call__(self, y_true: Any, y_pred: Any) -> Any:
        scores = convert_to_tensor(y_pred)
        return np.mean(_nn.sparse_softmax_cross_entropy(y_true, scores if self.from_logits else np.log(scores)))


class _MeanSquaredError:
    """The mean squared error."""

    def __call__(self, y_true: Any, y_pred: Any) -> Any:
        return np.mean(_nn.mean_squared_error(y_true, convert_to_tensor(y_pred)))


random = SimpleNamespace(normal=_normal, uniform=_uniform, set_seed=_nn.set_seed)
math = SimpleNamespace(
    **{f.__name__: f for f in (reduce_sum, reduce_mean, reduce_prod, reduce_max, reduce_min, reduce_any, reduce_all)},
    **{name: globals()[name] for name in "abs negative exp sqrt square sign sin cos tan tanh floor round".split()},
    **{name: globals()[name] for name in "asin acos atan sinh cosh add subtract multiply divide pow maximum".split()},
    **{name: globals()[name] for name in "minimum equal not_equal less less_equal greater greater_equal".split()},
    sigmoid=sigmoid,
    softplus=_with(_nn.softplus),
    log=_with(np.log),
    log1p=_with(np.log1p),
    expm1=_with(np.expm1),
    is_nan=_with(np.isnan),
    argmax=argmax,
)
nn = SimpleNamespace(
    relu=_with(_nn.relu),
    elu=_with(_nn.elu),
    sigmoid=sigmoid,
    tanh=tanh,
    softplus=math.softplus,
    softmax=lambda logits, axis=-1: _nn.softmax(convert_to_tensor(logits), axis),
    log_softmax=lambda logits, axis=-1: _nn.log_softmax(convert_to_tensor(logits), axis),
    sparse_softmax_cross_entropy_with_logits=_cross_entropy,
)
linalg = SimpleNamespace(
    solve=lambda matrix, rhs: np.linalg.solve(convert_to_tensor(matrix), convert_to_tensor(rhs)),
    inv=_with(np.linalg.inv),
    det=_with(np.linalg.det),
    matmul=matmul,
    norm=norm,
    eye=eye,
)
image = SimpleNamespace(adjust_contrast=_adjust_contrast)
autodiff = SimpleNamespace(ForwardAccumulator=ForwardAccumulator, GradientTape=GradientTape)
keras = SimpleNamespace(
    Sequential=_nn.Sequential,
    Model=_Layer,
    layers=SimpleNamespace(Dense=_nn.Dense, BatchNormalization=_nn.BatchNormalization, Layer=_Layer),
    optimizers=SimpleNamespace(SGD=_nn.SGD, Adam=_nn.Adam),
    losses=SimpleNamespace(
        SparseCategoricalCrossentropy=_SparseCategoricalCrossentropy, MeanSquaredError=_MeanSquaredError
    ),
)

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
    "asin",
    "atan",
    "autodiff",
    "bool",
    "cast",
    "clip_by_global_norm",
    "clip_by_norm",
    "clip_by_value",
    "concat",
    "constant",
    "convert_to_tensor",
    "cos",
    "cosh",
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
    "math",
    "matmul",
    "maximum",
    "minimum",
    "multiply",
    "negative",
    "nn",
    "no_gradient",
    "norm",
    "not_equal",
    "ones",
    "ones_like",
    "pad",
    "pow",
    "random",
    "range",
    "recompute_grad",
    "reduce_all",
    "reduce_any",
    "reduce_max",
    "reduce_mean",
    "reduce_min",
    "reduce_prod",
    "reduce_sum",
    "reshape",
    "round",
    "sigmoid",
    "sign",
    "sin",
    "sinh",
    "sqrt",
    "square",
    "squeeze",
    "stack",
    "stop_gradient",
    "subtract",
    "tan",
    "tanh",
    "transpose",
    "uint8",
    "where",
    "zeros",
    "zeros_like",
]
