"""Functions that compiled code takes from libraries as they stand."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from tapegen.rules.registry import load_awaited

_NUMBERS: dict[Any, str] = {}


def of_numbers(*funcs: Callable[..., Any], dtype: str = "float64") -> None:
    """Functions of numbers, element by element, that compiled code takes from a library (`backend.special`)."""
    _NUMBERS.update(dict.fromkeys(funcs, dtype))


def numbers() -> Mapping[Callable[..., Any], str]:
    """The functions declared by `of_numbers`, and the dtype that they compute in."""
    load_awaited()
    return _NUMBERS


_MATRICES: dict[Any, str] = {}


def of_matrices(sizes: str, *funcs: Callable[..., Any]) -> None:
    """Functions of matrices that compiled code takes from LAPACK (`backend.lapack`).

    Letters stand for the sizes of operands and results, as in `np.einsum`: "mm,nn,mn->mn".
    """
    _MATRICES.update(dict.fromkeys(funcs, sizes))


def matrices() -> Mapping[Callable[..., Any], str]:
    """The functions declared by `of_matrices`, and their sizes."""
    load_awaited()
    return _MATRICES
