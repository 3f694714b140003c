"""Functions of tensors that stand under `tf` itself."""

from __future__ import annotations

import builtins
import functools
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from tapegen import nn
from tapegen.errors import BadArgument
from tapegen.rules.gradient_modifiers import stop_gradient
from tapegen.tape import cast
from tapegen.tape.tensors.tensor import Traced
from tapegen.tf.values import Axis, axes, constant, convert_to_tensor, of_one, of_two, sizes

zeros_like, ones_like = of_one(np.zeros_like), of_one(np.ones_like)


def _reduction(function: Callable[..., Any]) -> Callable[..., Any]:
    def call(input_tensor: Any, axis: Axis = None, keepdims: builtins.bool = False, name: str | None = None) -> Any:
        tensor = convert_to_tensor(input_tensor)
        dtype: Any = np.bool_ if function in (np.any, np.all) else tensor.dtype
        return cast(function(tensor, axis=axes(axis), keepdims=keepdims), dtype)

    call.__name__ = call.__qualname__ = f"reduce_{function.__name__}"
    return call


reduce_sum, reduce_mean, reduce_prod = _reduction(np.sum), _reduction(np.mean), _reduction(np.prod)
reduce_max, reduce_min = _reduction(np.max), _reduction(np.min)
reduce_any, reduce_all = _reduction(np.any), _reduction(np.all)


def reduce_logsumexp(input_tensor: Any, axis: Axis = None, keepdims: builtins.bool = False) -> Any:
    """`log(sum(exp(x)))` along axes, without overflow."""
    tensor = convert_to_tensor(input_tensor)
    largest = stop_gradient(np.max(tensor, axis=axes(axis), keepdims=True))
    sums = np.log(np.sum(np.exp(tensor - largest), axis=axes(axis), keepdims=True)) + largest
    return sums if keepdims else np.squeeze(sums, axis=axes(axis))


abs, negative, exp, sqrt, square, sign = (of_one(f) for f in (np.abs, np.negative, np.exp, np.sqrt, np.square, np.sign))
sin, cos, tan, tanh, floor, round = (of_one(f) for f in (np.sin, np.cos, np.tan, np.tanh, np.floor, np.round))
asin, acos, atan, sinh, cosh = (of_one(f) for f in (np.arcsin, np.arccos, np.arctan, np.sinh, np.cosh))
sigmoid = of_one(nn.sigmoid)
add, subtract, multiply, divide, pow = (of_two(f) for f in (np.add, np.subtract, np.multiply, np.divide, np.power))
maximum, minimum, equal, not_equal = (of_two(f) for f in (np.maximum, np.minimum, np.equal, np.not_equal))
less, less_equal, greater, greater_equal = (of_two(f) for f in (np.less, np.less_equal, np.greater, np.greater_equal))
logical_and, logical_or, logical_not = of_two(np.logical_and), of_two(np.logical_or), of_one(np.logical_not)


truediv = divide


def scalar_mul(scalar: Any, x: Any) -> Any:
    """A number times a tensor."""
    return multiply(scalar, x)


def add_n(inputs: Sequence[Any]) -> Any:
    """The sum of several tensors."""
    return functools.reduce(add, inputs)


def complex(real: Any, imag: Any) -> Any:
    """The complex number of two parts."""
    return convert_to_tensor(real) + 1j * convert_to_tensor(imag)


def matmul(a: Any, b: Any, transpose_a: builtins.bool = False, transpose_b: builtins.bool = False) -> Any:
    """The product of matrices."""
    left: Any = convert_to_tensor(a)
    right: Any = convert_to_tensor(b)
    left = np.swapaxes(left, -1, -2) if transpose_a else left
    return left @ (np.swapaxes(right, -1, -2) if transpose_b else right)


def tensordot(a: Any, b: Any, axes: Any) -> Any:
    """Sums of products along axes of both."""
    return np.tensordot(convert_to_tensor(a), convert_to_tensor(b), axes)


def einsum(equation: str, *inputs: Any) -> Any:
    """Sums of products, as `numpy.einsum` writes them."""
    return np.einsum(equation, *map(convert_to_tensor, inputs))


# ---- shapes ----------------------------------------------------------------------------------------------------------


def shape(input: Any) -> Any:
    """The extents of the axes, as a tensor."""
    return constant(np.array(np.shape(input), np.int32))


def size(input: Any) -> Any:
    """The number of elements, as a tensor."""
    return constant(np.int32(np.size(input)))


def rank(input: Any) -> Any:
    """The number of axes, as a tensor."""
    return constant(np.int32(np.ndim(input)))


def reshape(tensor: Any, shape: Any) -> Any:
    """The same elements in another shape; the sizes may be tensors."""
    return np.reshape(convert_to_tensor(tensor), sizes(shape))


def transpose(a: Any, perm: Sequence[int] | None = None) -> Any:
    """The axes in another order."""
    return np.transpose(convert_to_tensor(a), perm)


def expand_dims(input: Any, axis: int) -> Any:
    """One more axis of size 1."""
    return np.expand_dims(convert_to_tensor(input), axis)


def squeeze(input: Any, axis: Axis = None) -> Any:
    """Without axes of size 1."""
    return np.squeeze(convert_to_tensor(input), axis=axes(axis))


def broadcast_to(input: Any, shape: Any) -> Any:
    """Repeat along axes until it has a shape."""
    return np.broadcast_to(convert_to_tensor(input), sizes(shape))


def tile(input: Any, multiples: Any) -> Any:
    """Repeat along each axis."""
    return np.tile(convert_to_tensor(input), sizes(multiples))


def repeat(input: Any, repeats: Any, axis: int | None = None) -> Any:
    """Each element or slice several times."""
    return np.repeat(convert_to_tensor(input), _bare(repeats), axis=axis)


def roll(input: Any, shift: Any, axis: Any) -> Any:
    """Moved along axes; what leaves at the end comes in at the start."""
    return np.roll(convert_to_tensor(input), shift, axis=axes(axis))


def slice(input_: Any, begin: Any, size: Any) -> Any:
    """A part by its start and its extents (-1: up to the end)."""
    starts, extents = sizes(begin), sizes(size)
    pairs = zip(starts, extents, strict=True)
    return convert_to_tensor(input_)[tuple(builtins.slice(lo, None if n == -1 else lo + n) for lo, n in pairs)]


def meshgrid(*args: Any, indexing: Any = "xy") -> list[Any]:
    """Coordinates of the points of a grid."""
    return list(np.meshgrid(*map(convert_to_tensor, args), indexing=indexing))


def reverse(tensor: Any, axis: Any) -> Any:
    """Backwards along axes."""
    return np.flip(convert_to_tensor(tensor), axes(axis))


def concat(values: Sequence[Any], axis: int) -> Any:
    """Tensors one after the other along an axis."""
    return np.concatenate([convert_to_tensor(value) for value in values], axis=axis)


def stack(values: Sequence[Any], axis: int = 0) -> Any:
    """Tensors along a new axis."""
    return np.stack([convert_to_tensor(value) for value in values], axis=axis)


def unstack(value: Any, axis: int = 0) -> list[Any]:
    """The slices along an axis."""
    tensor: Any = convert_to_tensor(value)
    return list(np.moveaxis(tensor, axis, 0))


def split(value: Any, num_or_size_splits: Any, axis: int = 0) -> list[Any]:
    """Equal parts along an axis, or parts of given sizes."""
    where_ = num_or_size_splits
    cuts = where_ if isinstance(where_, int) else [int(n) for n in np.cumsum(sizes(where_))[:-1]]
    return list(np.split(convert_to_tensor(value), cuts, axis))


def pad(tensor: Any, paddings: Any, mode: str = "CONSTANT", constant_values: float = 0) -> Any:
    """With borders around it."""
    widths = [sizes(pair) for pair in paddings]
    if mode.upper() == "CONSTANT":
        return np.pad(convert_to_tensor(tensor), widths, constant_values=constant_values)
    kinds: dict[str, Any] = {"REFLECT": "reflect", "SYMMETRIC": "symmetric"}
    if mode.upper() not in kinds:
        raise BadArgument(f"mode={mode!r} is unknown.", "Give CONSTANT, REFLECT or SYMMETRIC.")
    return np.pad(convert_to_tensor(tensor), widths, mode=kinds[mode.upper()])


# ---- choosing --------------------------------------------------------------------------------------------------------


def _bare(item: Any) -> Any:
    return item.numpy() if isinstance(item, Traced) else np.asarray(item)


def gather(params: Any, indices: Any, axis: int = 0) -> Any:
    """Slices of a tensor at indices along an axis."""
    return np.take(convert_to_tensor(params), _bare(indices), axis=axis)


def gather_nd(params: Any, indices: Any) -> Any:
    """Slices of a tensor at places: the last axis of the indices counts along the first axes."""
    return convert_to_tensor(params)[tuple(np.moveaxis(_bare(indices), -1, 0))]


def boolean_mask(tensor: Any, mask: Any) -> Any:
    """The elements where a mask holds."""
    return convert_to_tensor(tensor)[_bare(mask)]


def where(condition: Any, x: Any = None, y: Any = None) -> Any:
    """`x` where the condition holds, else `y`; with neither, the places where it holds."""
    if x is None and y is None:
        return constant(np.argwhere(_bare(condition)))
    if not isinstance(x, Traced) and not isinstance(y, Traced):
        x = convert_to_tensor(x)
    return np.where(condition, x, y)


def argmax(input: Any, axis: int = 0) -> Any:
    """Where the largest element stands."""
    return np.argmax(convert_to_tensor(input), axis=axis)


def argmin(input: Any, axis: int = 0) -> Any:
    """Where the smallest element stands."""
    return np.argmin(convert_to_tensor(input), axis=axis)


def sort(values: Any, axis: int = -1, direction: str = "ASCENDING") -> Any:
    """In increasing order along an axis, or in decreasing order (DESCENDING)."""
    if direction not in ("ASCENDING", "DESCENDING"):
        raise BadArgument(f"direction={direction!r} is unknown.", "Give ASCENDING or DESCENDING.")
    rising = np.sort(convert_to_tensor(values), axis=axis)
    return np.flip(rising, axis) if direction == "DESCENDING" else rising


def cumsum(x: Any, axis: int = 0, exclusive: builtins.bool = False, reverse: builtins.bool = False) -> Any:
    """Running sums along an axis; `exclusive` of the element itself, with `reverse` from the end."""
    tensor = convert_to_tensor(x)
    terms: Any = np.flip(tensor, axis) if reverse else tensor
    sums = np.cumsum(terms, axis=axis) - (terms if exclusive else 0)
    return np.flip(sums, axis) if reverse else sums


def norm(tensor: Any, ord: Any = "euclidean", axis: Axis = None, keepdims: builtins.bool = False) -> Any:
    """The norm of all elements, or along axes."""
    value = convert_to_tensor(tensor)
    if ord in ("euclidean", "fro", 2):
        return np.sqrt(np.sum(value * value, axis=axes(axis), keepdims=keepdims))
    if ord == 1:
        return np.sum(np.abs(value), axis=axes(axis), keepdims=keepdims)
    if ord == np.inf:
        return np.max(np.abs(value), axis=axes(axis), keepdims=keepdims)
    return np.sum(np.abs(value) ** ord, axis=axes(axis), keepdims=keepdims) ** (1.0 / ord)
