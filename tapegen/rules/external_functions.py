"""Table of external functions, which compiled code calls in libraries, and their signatures."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Set
from typing import Any

from tapegen.rules.registry import load_awaited

_NUMBERS: dict[Any, str] = {}


def of_numbers(*funcs: Callable[..., Any], dtype: str = "float64") -> None:
    """Declare scalar functions, applied element-wise, that compiled code calls in a library."""
    _NUMBERS.update(dict.fromkeys(funcs, dtype))


def numbers() -> Mapping[Callable[..., Any], str]:
    """The functions declared by `of_numbers`, and their dtype."""
    load_awaited()
    return _NUMBERS


_EQUALS: dict[Any, Any] = {}


def same_number(func: Callable[..., Any], other: Callable[..., Any]) -> None:
    """Declare that a function declared by `of_numbers` is another one, which has a vector variant."""
    _EQUALS[func] = other


def same_numbers() -> Mapping[Callable[..., Any], Callable[..., Any]]:
    """The functions declared by `same_number`, and the others."""
    load_awaited()
    return _EQUALS


_VECTORS: dict[Any, str] = {}


def has_vector_variant(func: Callable[..., Any], name: str) -> None:
    """Declare that a function declared by `of_numbers` has the vector variant of this name in `ir.vector_math`."""
    _VECTORS[func] = name


def vector_variants() -> Mapping[Callable[..., Any], str]:
    """The functions declared by `has_vector_variant`, and the names of their variants."""
    load_awaited()
    return _VECTORS


_MATRICES: dict[Any, str] = {}


def of_matrices(sizes: str, *funcs: Callable[..., Any]) -> None:
    """Declare matrix functions that compiled code calls in LAPACK (`backend.numba.lapack`).

    Letters denote the extents of operands and results, as in `np.einsum`: "mm,nn,mn->mn".
    """
    _MATRICES.update(dict.fromkeys(funcs, sizes))


def matrices() -> Mapping[Callable[..., Any], str]:
    """The functions declared by `of_matrices`, and their extents."""
    load_awaited()
    return _MATRICES


_COMPLEX_BY_VALUE: set[Any] = set()


def complex_by_value(*funcs: Callable[..., Any]) -> None:
    """Declare functions whose results are complex for some real operands; derivatives hold where they are real."""
    _COMPLEX_BY_VALUE.update(funcs)


def may_turn_complex() -> Set[Callable[..., Any]]:
    """The functions declared by `complex_by_value`."""
    load_awaited()
    return _COMPLEX_BY_VALUE
