"""The BLAS and LAPACK provider of a library: built-in C code, or a library with the C interface."""

from __future__ import annotations

import ctypes
import os
from collections.abc import Iterable
from dataclasses import dataclass
from importlib.resources import files
from pathlib import Path

from tapegen.errors import BuildError

_LAPACK = frozenset(
    f"numba_{name}"
    for name in ("xxgetrf", "ez_xxgetri", "xgesv", "xxpotrf", "ez_xxxevd", "ez_gesdd", "ez_geqrf", "ez_xxgqr")
)
"""Symbols that machine code calls for factorizations, as far as `lapack.c` has them."""


@dataclass(frozen=True, slots=True)
class Products:
    """A provider.

    Attributes
    ----------
    name : str
        `builtin` or `cblas`.
    library : str
        The file to link; empty for none.
    prefix : str
        The prefix of the names of its functions; the libraries in wheels have one.
    """

    name: str
    library: str = ""
    prefix: str = ""

    @classmethod
    def of(cls, choice: str) -> Products:
        """`builtin`, or `cblas:PATH`.

        Raises
        ------
        BuildError
            For another text, or a file that is no such library.
        """
        kind, _, path = choice.partition(":")
        if choice == "builtin":
            return cls("builtin")
        if kind != "cblas" or not path:
            raise BuildError(f"'{choice}' is no way to multiply matrices.", "Give builtin or cblas:PATH.")
        advice = "Give the path of a library with the functions of CBLAS."
        library = os.path.realpath(path)
        if not os.path.isfile(library):
            raise BuildError(f"there is no file '{path}'.", advice)
        try:
            loaded = ctypes.CDLL(library)
        except OSError as error:
            raise BuildError(f"'{path}' is no library: {error}.", advice) from None
        for prefix in ("", "scipy_"):
            if hasattr(loaded, f"{prefix}cblas_dgemm"):
                if _counts_in_64_bits(loaded, prefix):
                    raise BuildError(f"'{path}' counts in integers of 64 bits.", "Give one with 32 bits (LP64).")
                return cls("cblas", library, prefix)
        raise BuildError(f"'{path}' has no function cblas_dgemm.", advice)

    def text(self, needed: Iterable[str]) -> str:
        """The C text for machine code that calls these functions.

        Raises
        ------
        BuildError
            If it factorizes matrices, and the provider has no routines for that.
        """
        factorizes = bool(_LAPACK.intersection(needed))
        if self.name == "builtin":
            if factorizes:
                raise BuildError(
                    "the functions call LAPACK (np.linalg), which is not part of a library.",
                    "Give a library with CBLAS and LAPACK, OpenBLAS for one: --blas cblas:PATH.",
                )
            return _file("products.c")
        parts = [f"#define TG_BLAS(name) {self.prefix}##name\n" if self.prefix else "#define TG_BLAS(name) name\n"]
        return "\n".join([*parts, _file("cblas.c"), *([_file("lapack.c")] if factorizes else [])])

    @property
    def flags(self) -> tuple[str, ...]:
        """Arguments of the linker; the library is found again at its present path."""
        return (self.library, f"-Wl,-rpath,{Path(self.library).parent}") if self.library else ()


def _counts_in_64_bits(library: ctypes.CDLL, prefix: str) -> bool:
    """Whether its Fortran functions read 64-bit integers: such a function would find a negative size here."""
    dot = getattr(library, f"{prefix}ddot_", None)
    if dot is None:
        return False
    dot.restype = ctypes.c_double
    size, step, x = (ctypes.c_int32 * 2)(1, -1), ctypes.c_int64(1), ctypes.c_double(1.0)
    return float(dot(size, ctypes.byref(x), ctypes.byref(step), ctypes.byref(x), ctypes.byref(step))) != 1.0


def _file(name: str) -> str:
    return files(__package__).joinpath(name).read_text(encoding="utf-8")


__all__ = ["Products"]
