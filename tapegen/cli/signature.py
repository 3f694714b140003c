"""Signatures as text: `f8[:], f8, n=3, {'w': f8[:,::1]}` becomes example arguments of those types."""

from __future__ import annotations

import ast
import math
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from tapegen.cli.axis_sizes import Sizes
from tapegen.errors import BadArgument, printable
from tapegen.frontend.values.pytree import DTYPES

_CODES = {np.dtype(name).str[1:]: np.dtype(name).type for name in DTYPES}
_OTHER_NAMES = {"double": "f8", "intp": "i8", "int_": "i8", "uintp": "u8", "bool": "b1", "bool_": "b1", "boolean": "b1"}
_DTYPES = _CODES | {name: np.dtype(name).type for name in DTYPES} | {k: _CODES[c] for k, c in _OTHER_NAMES.items()}
"""The types of elements by their names in numba, short and long."""
_SIZES = Sizes(4)
_EXAMPLES = {"f": np.array(1.5), "c": np.array(1.5 + 0.5j), "i": np.array(3), "u": np.array(3)}
_MOST_AXES = 32
_MOST_ITEMS = 2**28

Fill = Callable[[tuple[int, ...], type], np.ndarray]
"""Makes the contents of an array of a shape and dtype."""


@dataclass(frozen=True)
class Signature:
    """Example arguments, and which of them were given as values.

    Attributes
    ----------
    text : str
        The signature as it was given.
    args, kwargs
        The example arguments.
    constants : set of tuple
        Position or name of an argument, then the keys of a part of it.
    """

    text: str
    args: tuple[Any, ...]
    kwargs: dict[str, Any]
    constants: frozenset[tuple[Any, ...]] = field(default=frozenset())

    def is_constant(self, names: list[str], name: str, path: tuple[Any, ...]) -> bool:
        """Whether a part of an argument was given as a value, or not given at all."""
        if name in names[: len(self.args)]:
            return (names.index(name), *path) in self.constants
        return name not in self.kwargs or (name, *path) in self.constants


def signature_of(text: str, fill: Fill | None = None, sizes: Sizes = _SIZES) -> Signature:
    """Arguments of the types that a signature names.

    Parameters
    ----------
    text : str
        numba's spelling: `f8` or `float64` a float, `f8[:]` any layout, `f8[::1]` C order, `f8[::1,:]` Fortran order,
        `f8[1,:]` where the first axis has size 1, `f8[()]` an array without axes; structures as Python literals;
        static values as they are (`3`, `None`, `'upwind'`), by keyword if wanted (`n=3`).
    fill : callable, optional
        Makes arrays; ones by default.  For scalars it makes arrays without axes.
    sizes : Sizes
        The sizes of axes.

    Raises
    ------
    BadArgument
        If the text is not such a signature.
    """
    if not isinstance(text, str):
        raise BadArgument(f"the signature {printable(repr(text))} is no text.", 'Write for example "f8[:], f8, n=3".')
    try:
        tree = ast.parse(f"_({text})", mode="eval").body
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        tree = None
    if not isinstance(tree, ast.Call) or not isinstance(tree.func, ast.Name):
        raise BadArgument(f"'{printable(text)}' is not a signature.", 'Write for example "f8[:], f8, n=3".')
    reader = _Reader(fill, sizes)
    args = tuple(reader(arg, (k,)) for k, arg in enumerate(tree.args))
    kwargs = {
        keyword.arg: reader(keyword.value, (keyword.arg,)) for keyword in tree.keywords if keyword.arg is not None
    }
    if len(kwargs) < len(tree.keywords):
        raise BadArgument(f"'{printable(text)}' is not a signature.", "Name keyword arguments one by one.")
    return Signature(text, args, kwargs, frozenset(reader.constants))


class _Reader:
    """Parses the arguments one by one."""

    def __init__(self, fill: Fill | None, sizes: Sizes) -> None:
        self.fill, self.sizes = fill, sizes
        self.constants: set[tuple[Any, ...]] = set()

    def __call__(self, node: ast.expr, path: tuple[Any, ...]) -> Any:
        match node:
            case ast.Constant(value):
                self.constants.add(path)
                return value
            case ast.UnaryOp(ast.USub(), ast.Constant(value)) if isinstance(value, int | float):
                self.constants.add(path)
                return -value
            case ast.Name(name) | ast.Attribute(_, name) if name in _DTYPES:
                return self._number(_DTYPES[name])
            case ast.Subscript(ast.Name(name) | ast.Attribute(_, name), index) if name in _DTYPES:
                axes = index.elts if isinstance(index, ast.Tuple) else [index]
                return self._array(_DTYPES[name], [_axis(axis, node) for axis in axes], path)
            case ast.Tuple(items):
                return tuple(self(item, (*path, k)) for k, item in enumerate(items))
            case ast.List(items):
                return [self(item, (*path, k)) for k, item in enumerate(items)]
            case ast.Dict(keys, values):
                names = [_key(key, node) for key in keys]
                return {name: self(value, (*path, name)) for name, value in zip(names, values, strict=True)}
        raise _refusal(node)

    def _number(self, dtype: type) -> Any:
        if dtype is np.bool_:
            return True
        value: Any
        if self.fill is None:
            value = _EXAMPLES[np.dtype(dtype).kind].astype(dtype)[()]
        else:
            value = self.fill((), dtype)[()]
        return value.item() if dtype in (np.float64, np.int64, np.complex128) else value

    def _array(self, dtype: type, axes: list[str], path: tuple[Any, ...]) -> np.ndarray:
        shape = self.sizes.of(path, axes)
        if len(shape) > _MOST_AXES:
            raise BadArgument(f"an array has {len(shape)} axes.", f"At most {_MOST_AXES} can be compiled.")
        if math.prod(shape) > _MOST_ITEMS:
            raise BadArgument(f"an array of shape {shape} is too large.", "Give a smaller --size.")
        made = np.ones(shape, dtype) if self.fill is None else self.fill(shape, dtype)
        if not axes or axes[-1] == "::1":
            return made
        if axes[0] == "::1":
            return np.asfortranarray(made)
        room: np.ndarray = np.empty((*shape[:-1], 2 * shape[-1]), dtype)
        strided = room[..., ::2]
        strided[...] = made
        return strided


def _key(node: ast.expr | None, whole: ast.expr) -> Any:
    try:
        key = ast.literal_eval(node) if node is not None else None
        hash(key)
    except (ValueError, TypeError):
        key = None
    if key is None:
        raise _refusal(whole)
    return key


def _axis(axis: ast.expr, node: ast.expr) -> str:
    match axis:
        case ast.Slice(None, None, None):
            return ":"
        case ast.Slice(None, None, ast.Constant(1)):
            return "::1"
        case ast.Constant(1):
            return "1"
    raise _refusal(node)


def _refusal(node: ast.expr) -> BadArgument:
    return BadArgument(
        f"'{printable(ast.unparse(node))}' is not a type.",
        "Types are f8 or float64, f4, i8, i4, b1, c16 and so on, with [:] for each axis ([::1] where it is dense), and "
        "Python literals.",
    )
