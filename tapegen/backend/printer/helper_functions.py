"""Helper functions that generated source defines for itself, because NumPy has no single function for them."""

from __future__ import annotations

import ast
import re
from collections.abc import Callable
from typing import Any

from tapegen.backend.printer.formatter.expressions import expression_line
from tapegen.backend.printer.namespace import Namespace
from tapegen.ir import vector_math

_COUNTERS = "ijklmnopqr"
_VECTORS, _SUMS = "abcdefgh", tuple(f"total_{k}" for k in range(8))
_OWN = {"x", "y", "z", "like", "total", "lead", "axes", "longer", *_COUNTERS, *_VECTORS, *_SUMS}
LOCALS_OF_HELPERS = vector_math.LOCALS | _OWN
"""Variables of the functions below, which must not be aliases of NumPy."""

INLINED = 'njit(error_model="numpy", forceinline=True)'
"""The decorator of functions that must be inlined into their callers, without reordering of sums."""


class Helpers:
    """The helper functions of one source, written when first used.

    Parameters
    ----------
    names : Namespace
        The names of the source.
    compiled : bool
        Whether numba compiles the source: then an axis must be a constant, so each rank gets a function of its own.
    """

    def __init__(self, names: Namespace, compiled: bool) -> None:
        self.names = names
        self.compiled = compiled
        self.texts: dict[str, list[str]] = {}  # name -> lines of the function
        self.reordered: set[str] = set()  # those whose sums are added up in any order
        self.inlined: set[str] = set()  # those that must be inlined into their callers
        self._elementary: dict[Callable[..., Any], str] = {}
        self._functions: dict[tuple[int, ...], str] = {}
        self._growing: dict[int, str] = {}
        self._dots: dict[tuple[tuple[int, ...], bool], str] = {}

    def elementary(self, function: Callable[..., Any]) -> ast.expr:
        """A function of `ir.vector_math`, written after those it calls."""
        if function not in self._elementary:
            known = {each.__name__: expression_line(self.elementary(each)) for each in vector_math.CALLED[function]}
            name = known[function.__name__] = self.names.fresh(function.__name__)
            known["np"] = expression_line(self.names.module("numpy"))
            words = re.compile(rf"\b({'|'.join(known)})\b(?=[.(])")
            text = vector_math.text_of(function)
            self.texts[name] = [words.sub(lambda found: known[found[0]], line) for line in text]
            self._elementary[function] = name
            self.inlined.add(name)
        return ast.Name(self._elementary[function])

    def sum_to(self, rank: int, rank_like: int) -> ast.expr:
        """The function that sums over broadcast axes, for operands of these ranks (one or more)."""
        key = (rank, rank_like) if self.compiled else ()
        if key not in self._functions:
            name = self.names.fresh(f"sum_{rank}d_to_{rank_like}d" if self.compiled else "sum_to")
            self._functions[key] = name
            self.texts[name] = self._sum_of_rank(name, rank, rank_like) if self.compiled else _sum_to(name)
        return ast.Name(self._functions[key])

    def zeros_beside(self) -> ast.expr:
        """The function that makes zeros with the memory layout of another array."""
        key = (0,)
        if key not in self._functions:
            name = self._functions[key] = self.names.fresh("zeros_beside")
            np = expression_line(self.names.module("numpy"))
            self.texts[name] = [
                f"def {name}(x):",
                '    """Zeros whose axes run through memory in the order and direction of those of `x`."""',
                f"    return {np}.zeros_like(x)[tuple(slice(None, None, -1 if k < 0 else 1) for k in x.strides)]",
            ]
        return ast.Name(self._functions[key])

    def of_parts(self) -> ast.expr:
        """The function that makes a complex array from its parts."""
        key = (1,)
        if key not in self._functions:
            name = self._functions[key] = self.names.fresh("of_parts")
            np = expression_line(self.names.module("numpy"))
            self.texts[name] = [
                f"def {name}(x, y):",
                '    """The complex numbers whose real parts are `x` and whose imaginary parts are `y`."""',
                f"    z = {np}.empty({np}.broadcast(x, y).shape, {np}.result_type(x, y, {np}.complex64))",
                "    z.real, z.imag = x, y",
                "    return z",
            ]
        return ast.Name(self._functions[key])

    def checkpoint_distance(self) -> ast.expr:
        """The function that decides where the next checkpoint is."""
        key = (2,)
        if key not in self._functions:
            name = self._functions[key] = self.names.fresh("checkpoint_distance")
            self.texts[name] = [
                f"def {name}(segments, free):",
                '    """How many segments after a checkpoint the next one is made (revolve)."""',
                "    longest, shorter, runs = 1, 1, 0",
                "    while longest < segments:",
                "        runs += 1",
                "        longest, shorter = longest * (free + runs) // runs, longest",
                "    return min(shorter, segments - shorter * free // (free + runs - 1))",
            ]
        return ast.Name(self._functions[key])

    def grown(self, rank: int) -> ast.expr:
        """The function that grows a full tape of this rank."""
        if rank not in self._growing:
            name = self.names.fresh("grown" if rank == 1 else f"grown_{rank}d")
            self._growing[rank] = name
            self.texts[name] = self._grown(name, rank)
        return ast.Name(self._growing[rank])

    def dots(self, pairs: tuple[int, ...], single: bool) -> ast.expr:
        """The function that multiplies vectors: the first one here with the second, the third with the fourth, ..."""
        if (pairs, single) not in self._dots:
            name = self._dots[pairs, single] = self.names.fresh("products")
            zero = f"{expression_line(self.names.module('numpy'))}.float32(0.0)" if single else "0.0"
            self.texts[name] = _products(name, pairs, zero)
            self.reordered.add(name)
        return ast.Name(self._dots[pairs, single])

    def _grown(self, name: str, rank: int) -> list[str]:
        np = expression_line(self.names.module("numpy"))
        shape = ", ".join(["2 * x.shape[0]", *(f"x.shape[{axis}]" for axis in range(1, rank))])
        shape = shape if rank == 1 else f"({shape})"
        lines = [
            f"def {name}(x):",
            '    """A copy of `x` with room for twice as many items."""',
            f"    longer = {np}.empty({shape}, x.dtype)",
        ]
        axes = _COUNTERS[:rank]
        for axis, letter in enumerate(axes):
            lines.append(f"{'    ' * (axis + 1)}for {letter} in range(x.shape[{axis}]):")
        index = ", ".join(axes)
        return [*lines, f"{'    ' * (rank + 1)}longer[{index}] = x[{index}]", "    return longer"]

    def _sum_of_rank(self, name: str, rank: int, rank_like: int) -> list[str]:
        np = expression_line(self.names.module("numpy"))
        axes = _COUNTERS[:rank]
        lead = rank - rank_like
        lines = [
            f"def {name}(x, like):",
            '    """Sum `x` over the axes along which an array shaped as `like` was broadcast."""',
            f"    total = {np}.zeros(like.shape, x.dtype)",
        ]
        for axis, letter in enumerate(axes):
            lines.append(f"{'    ' * (axis + 1)}for {letter} in range(x.shape[{axis}]):")
        # an axis of size 1 was broadcast: all indices modulo 1 are 0
        index = ", ".join(f"{letter} % like.shape[{axis}]" for axis, letter in enumerate(axes[lead:]))
        lines.append(f"{'    ' * (rank + 1)}total[{index}] += x[{', '.join(axes)}]")
        return [*lines, "    return total"]


def _sum_to(name: str) -> list[str]:
    return [
        f"def {name}(x, like):",
        '    """Sum `x` over the axes along which an array shaped as `like` was broadcast."""',
        "    lead = x.ndim - like.ndim",
        "    axes = [k for k in range(x.ndim) if k < lead or like.shape[k - lead] != x.shape[k]]",
        "    return x.sum(axis=tuple(axes)).reshape(like.shape)",
    ]


def _products(name: str, pairs: tuple[int, ...], zero: str) -> list[str]:
    letters = [_VECTORS[k] for k in pairs]
    used = sorted(set(letters))
    sizes = [f"{letter}.size" for letter in used]
    differ = " != ".join(sizes) if len(sizes) < 3 else f"not ({' == '.join(sizes)})"
    factors = list(zip(letters[::2], letters[1::2], strict=True))
    sums = _SUMS[: len(factors)]
    return [
        f"def {name}({', '.join(used)}):",
        f'    """{", ".join(f"{x} @ {y}" for x, y in factors)}."""',
        *([f"    if {differ}:", '        raise ValueError("shapes are not aligned")'] if len(used) > 1 else []),
        *(f"    {total} = {zero}" for total in sums),
        f"    for i in range({sizes[0]}):",
        *(f"        {total} += {x}[i] * {y}[i]" for total, (x, y) in zip(sums, factors, strict=True)),
        f"    return {', '.join(sums)}",
    ]
