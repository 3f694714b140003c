"""Types of the values that a program carries.  "Unknown" is not a type."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True, slots=True, eq=False, init=False)
class Scalar:
    """A scalar type.  There is one object for each type: Scalars are compared and hashed as objects.

    `python` distinguishes Python's `float`/`int`/`bool` from NumPy's scalars: each operation follows the error rule of
    its own operands (`1.0 / 0.0` raises, `np.float64(1) / 0` gives inf), and Python scalars promote weakly.
    """

    dtype: str  # "float64", "float32", "int64", "bool", "complex128", ... (NumPy's names)
    python: bool = True

    def __new__(cls, dtype: str, python: bool = True) -> Scalar:
        scalar = _SCALARS.get((dtype, python))
        if scalar is None:
            scalar = object.__new__(cls)
            object.__setattr__(scalar, "dtype", dtype)
            object.__setattr__(scalar, "python", python)
            scalar = _SCALARS.setdefault((dtype, python), scalar)  # another thread may have inserted it first
        return scalar

    def __reduce__(self) -> tuple[Any, ...]:
        return Scalar, (self.dtype, self.python)


_SCALARS: dict[tuple[str, bool], Scalar] = {}


@dataclass(frozen=True, slots=True)
class Array:
    """A NumPy array.

    `unit[k]` says that axis k is *known* to have size 1; an axis that is not marked may still have size 1 unless the
    program's own argument checks exclude it.  `layout` is "C", "F" or "A" (any).
    """

    dtype: str
    rank: int
    layout: str = "A"
    unit: tuple[bool, ...] = ()  # empty means no axis is known to be 1

    def is_unit(self, axis: int) -> bool:
        return bool(self.unit) and self.unit[axis]


@dataclass(frozen=True, slots=True)
class ListOf:
    """A Python list of equally typed items that grows and shrinks at run time."""

    item: Type


@dataclass(frozen=True, slots=True)
class TupleOf:
    """A tuple (shape arguments, results of several values).  Structures of the user are flattened when lowered."""

    items: tuple[Type, ...]


@dataclass(frozen=True, slots=True)
class Static:
    """The type of a compile-time constant that is not a scalar: None, str, dtype, slice, function."""


@dataclass(frozen=True, slots=True)
class RandomGenerator:
    """A random number generator.  Each draw changes its state, and runs exactly once, in program order."""

    kind: str  # NumPy's class: "Generator" or "RandomState"


Type = Scalar | Array | ListOf | TupleOf | Static | RandomGenerator

FLOAT = Scalar("float64")
INT = Scalar("int64")
BOOL = Scalar("bool")
STATIC = Static()

COMPLEX = frozenset({"complex128", "complex64"})
FLOATING = frozenset({"float64", "float32"}) | COMPLEX
NARROW_INTEGERS = frozenset({"int8", "int16", "int32", "uint8", "uint16", "uint32", "uint64"})
"""The dtypes that do not hold every 64-bit integer of Python: NumPy raises where it converts another one."""


def is_floating(type_: Type) -> bool:
    """Whether values of this type can carry a derivative."""
    kind = type(type_)
    if kind is Scalar or kind is Array:
        return type_.dtype in FLOATING  # type: ignore[union-attr]
    if isinstance(type_, ListOf):
        return is_floating(type_.item)
    return isinstance(type_, TupleOf) and any(is_floating(item) for item in type_.items)


def is_complex(type_: Type | None) -> bool:
    """Whether values of this type have an imaginary part."""
    kind = type(type_)
    if kind is Scalar or kind is Array:
        return type_.dtype in COMPLEX  # type: ignore[union-attr]
    if isinstance(type_, ListOf):
        return is_complex(type_.item)
    return isinstance(type_, TupleOf) and any(is_complex(item) for item in type_.items)


def python_class(type_: Scalar) -> type:
    """The Python class (`bool`, `int`, `float`, `complex`) of a scalar type."""
    return {"float64": float, "int64": int, "bool": bool, "complex128": complex}[type_.dtype]
