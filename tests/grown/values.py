"""What values are, for whoever chooses among them: kinds, sizes, and the numbers inside of structures."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Iterator
from typing import Any

import numpy as np

LARGE = 1e3
MANY = 60


def children(value: Any) -> Iterator[tuple[str, Any]]:
    """Parts of a structure, each with the text that reads it (`[0]`, `.a`)."""
    if isinstance(value, dict):
        for key, child in value.items():
            yield f"[{key!r}]", child
    elif isinstance(value, list | tuple):
        for k, child in enumerate(value):
            yield f"[{k}]", child
    elif dataclasses.is_dataclass(value) and not isinstance(value, type):
        for field in dataclasses.fields(value):
            yield f".{field.name}", getattr(value, field.name)


def leaves(value: Any) -> Iterator[Any]:
    """The numbers and arrays in a value, and whatever else has no parts."""
    if isinstance(value, list | tuple | dict) or (dataclasses.is_dataclass(value) and not isinstance(value, type)):
        for _, child in children(value):
            yield from leaves(child)
    else:
        yield value


def is_real(value: Any) -> bool:
    """Whether it is a floating number or array."""
    return isinstance(value, float | np.floating) or (isinstance(value, np.ndarray) and value.dtype.kind == "f")


def is_number(value: Any) -> bool:
    """Whether it is a real number."""
    return isinstance(value, float | np.floating)


def is_array(value: Any, rank: int | None = None) -> bool:
    """Whether it is a floating array (of a rank)."""
    return isinstance(value, np.ndarray) and value.dtype.kind == "f" and (rank is None or value.ndim == rank)


def is_complex(value: Any) -> bool:
    """Whether it is complex."""
    return isinstance(value, complex | np.complexfloating) or (
        isinstance(value, np.ndarray) and value.dtype.kind == "c"
    )


def is_integer(value: Any) -> bool:
    """Whether it is an integer, but no boolean."""
    return isinstance(value, int | np.integer) and not isinstance(value, bool)


def tame(value: Any, depth: int = 0) -> bool:
    """Whether numbers in it are finite and of moderate size, and there are not many."""
    if isinstance(value, np.ndarray):
        if value.dtype == object or value.size > MANY or value.dtype.kind not in "fciub":
            return False
        return not value.size or bool(np.all(np.abs(value) < LARGE))
    if isinstance(value, bool | np.bool_ | str | None):
        return True
    if isinstance(value, int | float | complex | np.number):
        return math.isfinite(abs(value)) and abs(value) < LARGE
    if isinstance(value, list | tuple | dict):
        return len(value) <= 12 and depth < 4 and all(tame(child, depth + 1) for _, child in children(value))
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return depth < 4 and all(tame(child, depth + 1) for _, child in children(value))
    return not isinstance(value, np.generic)  # functions, ranges, classes
