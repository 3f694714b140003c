"""C ABI description: the C functions of a library as data, with names, parameters, results and status codes."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Literal

from tapegen.ir.types import Type

C_TYPES = {
    "float64": "double",
    "float32": "float",
    "int64": "int64_t",
    "int32": "int32_t",
    "int16": "int16_t",
    "int8": "int8_t",
    "uint64": "uint64_t",
    "uint32": "uint32_t",
    "uint16": "uint16_t",
    "uint8": "uint8_t",
    "bool": "uint8_t",
    "complex128": "double",
    "complex64": "float",
}
"""The C types of scalars; a complex number is a pair of these, at an address."""

STATUS = (
    ("OK", 0, "no error"),
    ("MEMORY", 1, "out of memory"),
    ("PROCESSOR", 2, "the library was built for another processor"),
    ("SIZE", 3, "a size is negative or too large, or an address is missing"),
    ("SHAPE", 4, "an array that is a result does not fit where it should go; its sizes are returned"),
    ("ALIAS", 5, "an array that is written, or a result, shares memory with another"),
    ("LARGE", 6, "a matrix has more rows or columns than the library for matrices can count"),
    ("TAPE", 7, "a call with this tape has failed halfway, so it cannot be used again"),
)
"""Status codes of the interface itself; exceptions of the program are counted from `object_code.FIRST_ERROR`."""

_WORDS = frozenset(
    """alignas alignof and and_eq asm assert atomic_cancel auto bitand bitor bool break case catch char class co_await
    co_return co_yield compl concept const const_cast consteval constexpr constinit continue decltype default delete do
    double dynamic_cast else enum errno explicit export extern false float for friend goto if import inline int linux
    int8_t int16_t int32_t int64_t uint8_t uint16_t uint32_t uint64_t long main module mutable namespace new noexcept
    not not_eq nullptr operator or or_eq private protected public register reinterpret_cast requires restrict return
    short signed sizeof static static_assert static_cast struct switch synchronized template this thread_local throw
    true try typedef typeid typename typeof union unix unsigned using virtual void volatile wchar_t while xor xor_eq
    I NULL NAN INFINITY BUFSIZ EOF stdin stdout stderr status result raised code made tape copies""".split()
)


@dataclass(frozen=True, slots=True)
class Parameter:
    """A parameter of a native function.

    Attributes
    ----------
    name : str
        Its name in C.
    type : Type
        The type of a scalar or an array.
    written : bool
        Whether the function stores into it.
    value : object
        A scalar or array that the library itself holds; None for what the caller passes.
    like : str or None
        For a tangent, the parameter whose sizes it has; for a cotangent, the position of its result, whose sizes are in
        the tape.
    """

    name: str
    type: Type
    written: bool = False
    value: object = None
    like: str | None = None


@dataclass(frozen=True, slots=True)
class Result:
    """A result of a native function; `like` names the array parameter whose sizes it has."""

    name: str
    type: Type
    like: str | None = None


@dataclass(frozen=True, slots=True)
class Entry:
    """One C function.

    Attributes
    ----------
    name : str
        Its name.
    doc : str
        A description of one line.
    symbol : str
        The native function.
    parameters, results
        The parameters and results of the native function.
    kind : str
        "call"; "record": the results after the first `count` go into a tape; "pullback": the first `count` parameters
        come from one.
    count : int
    tape : str
        The type of the tape.
    marks : bool
        Whether the pullback modifies the contents of the tape while it runs, and restores them at its end.
    rooms : tuple of int
        The results for which the native function accepts arrays of the caller, after its parameters.
    """

    name: str
    doc: str
    symbol: str
    parameters: tuple[Parameter, ...]
    results: tuple[Result, ...]
    kind: Literal["call", "record", "pullback"] = "call"
    count: int = 0
    tape: str = ""
    marks: bool = False
    rooms: tuple[int, ...] = ()

    @property
    def given(self) -> tuple[Parameter, ...]:
        """The parameters that the caller passes."""
        rest = self.parameters[self.count :] if self.kind == "pullback" else self.parameters
        return tuple(parameter for parameter in rest if parameter.value is None)

    @property
    def returned(self) -> tuple[Result, ...]:
        """The results that the caller gets."""
        return self.results[: self.count] if self.kind == "record" else self.results

    @property
    def kept(self) -> tuple[Result, ...]:
        """The contents of a tape."""
        return self.results[self.count :] if self.kind == "record" else ()


def identifier(text: str, taken: Iterable[str] = ()) -> str:
    """A C identifier: letters, digits and underscores, no keyword of C or C++, none of `taken`."""
    plain = re.sub(r"[^A-Za-z0-9]+", "_", text).strip("_") or "f"
    if plain[0].isdigit():
        plain = f"f_{plain}"
    base = f"{plain}_" if plain in _WORDS or plain.startswith(("tg_", "NRT_", "numba_")) else plain
    known = set(taken)
    count = 1
    name = base
    while name in known:
        count += 1
        name = f"{base}_{count}"
    return name


__all__ = ["C_TYPES", "STATUS", "Entry", "Parameter", "Result", "identifier"]
