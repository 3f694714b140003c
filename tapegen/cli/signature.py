"""Signatures as text: `f8[:], f8, n=3, {'w': f8[:,::1]}` becomes example arguments of those types."""

from __future__ import annotations

import ast
from typing import Any

import numpy as np

from tapegen.errors import BadArgument

_DTYPES = {"f8": np.float64, "f4": np.float32, "i8": np.int64, "i4": np.int32, "b1": np.bool_}
_SCALARS: dict[str, Any] = {"f8": 1.5, "f4": np.float32(1.5), "i8": 3, "i4": np.int32(3), "b1": True}
_SIZE = 4


def example_arguments(text: str) -> tuple[tuple[Any, ...], dict[str, Any]]:
    """Arguments of the types that a signature names.

    Parameters
    ----------
    text : str
        numba's spelling: `f8` a float, `f8[:]` any layout, `f8[::1]` C order, `f8[::1,:]` Fortran order; structures as
        Python literals; static values as they are (`3`, `None`, `'upwind'`), by keyword if wanted (`n=3`).

    Raises
    ------
    BadArgument
        If the text is not such a signature.
    """
    try:
        tree = ast.parse(f"_({text})", mode="eval").body
    except SyntaxError:
        raise BadArgument(f"'{text}' is not a signature", 'write for example "f8[:], f8, n=3"') from None
    assert isinstance(tree, ast.Call)
    return tuple(_example(arg) for arg in tree.args), {
        keyword.arg: _example(keyword.value) for keyword in tree.keywords if keyword.arg is not None
    }


def _example(node: ast.expr) -> Any:
    match node:
        case ast.Constant(value):
            return value
        case ast.UnaryOp(ast.USub(), ast.Constant(value)) if isinstance(value, int | float):
            return -value
        case ast.Name(name) if name in _SCALARS:
            return _SCALARS[name]
        case ast.Subscript(ast.Name(name), index) if name in _DTYPES:
            axes = index.elts if isinstance(index, ast.Tuple) else [index]
            return _array(_DTYPES[name], [_is_dense(axis, node) for axis in axes])
        case ast.Tuple(items):
            return tuple(_example(item) for item in items)
        case ast.List(items):
            return [_example(item) for item in items]
        case ast.Dict(keys, values):
            return {ast.literal_eval(k): _example(v) for k, v in zip(keys, values, strict=True) if k is not None}
    raise _refusal(node)


def _is_dense(axis: ast.expr, node: ast.expr) -> bool:
    match axis:
        case ast.Slice(None, None, None):
            return False
        case ast.Slice(None, None, ast.Constant(1)):
            return True
    raise _refusal(node)


def _refusal(node: ast.expr) -> BadArgument:
    return BadArgument(
        f"'{ast.unparse(node)}' is not a type",
        "types are f8, f4, i8, i4, b1, with [:] for each axis ([::1] where it is dense), and Python literals",
    )


def _array(dtype: type, dense: list[bool]) -> np.ndarray:
    shape = (_SIZE,) * len(dense)
    if dense[-1]:
        return np.ones(shape, dtype)
    if dense[0]:
        return np.ones(shape, dtype, order="F")
    return np.ones((*shape[:-1], 2 * _SIZE), dtype)[..., ::2]
