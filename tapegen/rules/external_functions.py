"""Functions that programs take from libraries as they stand, and what is to be known of them."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Set
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


_COMPLEX_BY_VALUE: set[Any] = set()


def complex_by_value(*funcs: Callable[..., Any]) -> None:
    """Functions whose results are complex for some real operands; derivatives hold where they are real."""
    _COMPLEX_BY_VALUE.update(funcs)


def may_turn_complex() -> Set[Callable[..., Any]]:
    """The functions declared by `complex_by_value`."""
    load_awaited()
    return _COMPLEX_BY_VALUE
