"""Sizes that are piecewise linear functions of one other size, as those of slices of a vector with a halo.

The pieces of such a function end where constants of it balance, so that it is linear beyond their sum: what holds for
all values up to there, and for some more, holds for all of them.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Generic, TypeVar

Symbol = TypeVar("Symbol")

_MOST = 64
"""Values that are tried."""


@dataclass(frozen=True, slots=True)
class Piecewise(Generic[Symbol]):
    """A sum of a constant and of multiples of symbols and of functions, such as minima, of other such sums.

    Attributes
    ----------
    constant : int
        The constant.
    symbols : tuple of (Symbol, int)
        The symbols with their coefficients.
    functions : tuple of (callable, tuple of Piecewise, int)
        The functions with their arguments and coefficients.
    """

    constant: int
    symbols: tuple[tuple[Symbol, int], ...]
    functions: tuple[tuple[Callable[..., int], tuple[Piecewise[Symbol], ...], int], ...]

    def value(self, number: int) -> int:
        """Its value where its only symbol has this value."""
        total = self.constant + number * sum(coefficient for _, coefficient in self.symbols)
        for func, args, coefficient in self.functions:
            total += coefficient * func(*(arg.value(number) for arg in args))
        return total

    def tried(self, is_never_one: Callable[[Symbol], bool]) -> tuple[Symbol, list[int]] | None:
        """Its only symbol, and the values of it that represent all values; None if it has others or too many."""
        symbols: set[Symbol] = set()
        end = 2 * self._constants(symbols) + 4
        if len(symbols) != 1 or end > _MOST:
            return None
        (symbol,) = symbols
        return symbol, [number for number in range(end + 1) if number != 1 or not is_never_one(symbol)]

    def line(self, tried: list[int]) -> tuple[int, int] | None:
        """The coefficient and the constant of a linear function that has the same extents; None if there is none."""
        found = [max(self.value(number), 0) for number in tried]
        slope = found[-1] - found[-2]
        constant = found[-1] - slope * tried[-1]
        same = all(each == max(slope * number + constant, 0) for number, each in zip(tried, found, strict=True))
        return (slope, constant) if same else None

    def _constants(self, symbols: set[Symbol]) -> int:
        """The sum of all constants; collects the symbols."""
        symbols.update(symbol for symbol, _ in self.symbols)
        inner = (abs(factor) * arg._constants(symbols) for _, args, factor in self.functions for arg in args)
        return abs(self.constant) + sum(inner)
