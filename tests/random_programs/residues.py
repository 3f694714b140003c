"""Numbers modulo the Mersenne prime 2^61 - 1, as Python numbers.

Differentiation is algebra: the product rule, the chain rule and the order of sweeps hold in any field.  Running a
program and its gradient on residues makes their agreement *exact*: one wrong digit is an error, and rounding never is.
A function such as `sin` becomes a formal function: some fixed pseudo-random map, with the derivative that
calculus gives it (`cos`).  Identities between functions of one argument (`cos**2 + sin**2 == 1`; `cosh`,
`sinh`, `tanh` from `exp`) hold by construction.  What has no formal counterpart raises `OutsideField`.
"""

from __future__ import annotations

import functools
import math
import zlib
from collections.abc import Callable
from fractions import Fraction
from typing import Any

import numpy as np

PRIME = (1 << 61) - 1


class OutsideField(Exception):
    """The program uses something that has no meaning modulo a prime."""


@functools.lru_cache(maxsize=4096)
def _rational(x: float) -> int:
    """The residue of the simple fraction that a float stands for: 0.6666666666666666 is 2/3.

    A number that a program writes out, or that a compiler computed from such numbers (1.0 / 1.5), is a short fraction
    rounded a few times; taken back to the fraction it obeys the laws of the field exactly.  Fractions as short as this
    lie further apart than the rounding reaches.
    """
    if not math.isfinite(x):
        raise OutsideField(f"{x} is no residue")
    exact = Fraction(x)
    short = exact.limit_denominator(max(1, math.isqrt(int((1 << 42) / max(1.0, abs(x))))))
    if abs(short - exact) <= abs(exact) / (1 << 50):
        exact = short
    return exact.numerator * pow(exact.denominator, -1, PRIME) % PRIME


def residue(x: Any) -> int | None:
    """The residue of a number; None for anything that is no number."""
    if isinstance(x, Residue):
        return x.n
    kind = type(x)
    if kind is int or kind is bool:
        return x % PRIME
    if kind is float:
        return _rational(x)
    if isinstance(x, np.generic) and x.dtype.kind in "fiub":
        return residue(x.item())
    return None


@functools.lru_cache(maxsize=4096)
def _formal(name: str, n: int) -> int:
    """A fixed pseudo-random map of residues, one per name."""
    c = zlib.crc32(name.encode()) * 2654435761 + 12345
    n = (n * n + c) % PRIME
    return (n * n % PRIME * n + c * c) % PRIME


def _binary(operation: Callable[[int, int], int]) -> tuple[Callable[..., Any], Callable[..., Any]]:
    """A dunder method and its reflection."""

    def forward(self: Residue, other: Any) -> Any:
        n = other.n if type(other) is Residue else residue(other)
        return NotImplemented if n is None else Residue(operation(self.n, n))

    def reflected(self: Residue, other: Any) -> Any:
        n = residue(other)
        return NotImplemented if n is None else Residue(operation(n, self.n))

    return forward, reflected


def _inverse(n: int) -> int:
    if n == 0:
        raise ZeroDivisionError("division by zero residue")
    return pow(n, -1, PRIME)


def _comparison(compare: Callable[[float, float], bool]) -> Callable[..., Any]:
    def method(self: Residue, other: Any) -> Any:
        if isinstance(other, float | np.floating) and math.isinf(other):  # the start value of a running maximum
            return compare(0, 1 if other > 0 else -1)
        n = residue(other)
        return NotImplemented if n is None else bool(compare(ordered(self.n), ordered(n)))

    return method


def signed(n: int) -> int:
    """The representative between -P/2 and P/2."""
    return n if n <= PRIME // 2 else n - PRIME


def _short_fraction(n: int) -> float | None:
    """The number where a residue stands for a short fraction: a constant of the program."""
    limit = 1 << 20
    a, b, x, y = PRIME, n, 0, 1  # the extended algorithm of Euclid, stopped half way: b = y * n
    while abs(b) > limit:
        quotient = a // b
        a, b, x, y = b, a - quotient * b, y, x - quotient * y
    return b / y if 0 < abs(y) <= limit else None


@functools.lru_cache(maxsize=4096)
def ordered(n: int) -> float:
    """Gives residues a sign and an order: that of the number where the residue stands for a short fraction.

    So constants compare as they do when a compiler compares them.
    """
    number = _short_fraction(n)
    return signed(n) if number is None else number


class Residue:
    """One number modulo the prime.  NumPy's object loops call its methods (`np.sin(array)` calls `.sin()`)."""

    __slots__ = ("n",)
    shape = ()
    ndim = 0
    size = 1

    def __init__(self, n: int) -> None:
        self.n = n % PRIME

    __add__, __radd__ = _binary(lambda a, b: a + b)
    __sub__, __rsub__ = _binary(lambda a, b: a - b)
    __mul__, __rmul__ = _binary(lambda a, b: a * b)
    __truediv__, __rtruediv__ = _binary(lambda a, b: a * _inverse(b))
    __lt__ = _comparison(lambda a, b: a < b)
    __le__ = _comparison(lambda a, b: a <= b)
    __gt__ = _comparison(lambda a, b: a > b)
    __ge__ = _comparison(lambda a, b: a >= b)
    __eq__ = _comparison(lambda a, b: a == b)
    __ne__ = _comparison(lambda a, b: a != b)

    def __hash__(self) -> int:
        return hash(self.n)

    def __pow__(self, exponent: Any) -> Any:
        if isinstance(exponent, np.ndarray):
            return NotImplemented
        n = residue(exponent)
        if n is None:
            return NotImplemented
        twice = signed(2 * n % PRIME)
        if abs(twice) > 64:
            raise OutsideField("a power whose exponent is neither whole nor a half")
        base = _inverse(self.n) if twice // 2 < 0 else self.n
        power = Residue(pow(base, abs(twice // 2), PRIME))
        if twice % 2 and _short_fraction(self.n) is not None:
            raise OutsideField("a root of a constant, which a compiler may know")
        return power * self.sqrt() if twice % 2 else power

    def __rpow__(self, base: Any) -> Any:
        raise OutsideField("a power with a computed exponent")

    def __floordiv__(self, other: Any) -> Any:
        n = residue(other)
        return NotImplemented if n is None else (self / Residue(n)).floor()

    def __rfloordiv__(self, other: Any) -> Any:
        n = residue(other)
        return NotImplemented if n is None else (Residue(n) / self).floor()

    def __mod__(self, other: Any) -> Any:
        n = residue(other)
        return NotImplemented if n is None else self - Residue(n) * (self // other)

    def __rmod__(self, other: Any) -> Any:
        n = residue(other)
        return NotImplemented if n is None else Residue(n) % self

    def __divmod__(self, other: Any) -> Any:
        return self // other, self % other

    def __rdivmod__(self, other: Any) -> Any:
        return other // self, other % self

    def __neg__(self) -> Residue:
        return Residue(-self.n)

    def __pos__(self) -> Residue:
        return self

    def __abs__(self) -> Residue:
        return -self if ordered(self.n) < 0 else self

    def __bool__(self) -> bool:
        return self.n != 0

    def __repr__(self) -> str:
        return f"Residue({signed(self.n)})"

    def __float__(self) -> float:
        raise OutsideField("a residue stored as a float")

    # ---- whole numbers: small, fixed by the residue, without a derivative ----

    def _small(self, function: Callable[[float], int]) -> int:
        """What rounding gives: the true number for a short fraction, a small formal one for all others."""
        x = ordered(self.n)
        if abs(x) < 1 << 30:
            return function(x)
        return _formal(function.__name__, self.n) % 7 - 3

    def __int__(self) -> int:
        return self._small(int)

    __index__ = None
    __trunc__ = __int__

    def __floor__(self) -> int:
        return self._small(math.floor)

    def __ceil__(self) -> int:
        return self._small(math.ceil)

    def __round__(self, digits: int | None = None) -> Any:
        small = self._small(round)
        return small if digits is None else Residue(small)

    def floor(self) -> Residue:
        return Residue(self._small(math.floor))

    def ceil(self) -> Residue:
        return Residue(self._small(math.ceil))

    def rint(self) -> Residue:
        return Residue(self._small(round))

    def trunc(self) -> Residue:
        return Residue(self._small(int))

    # ---- formal functions ----

    def _map(self, name: str) -> Residue:
        return Residue(_formal(name, self.n))

    def exp(self) -> Residue:
        return self._map("exp")

    def expm1(self) -> Residue:
        return self._map("exp") - 1

    def log(self) -> Residue:
        return self._map("log")

    def log1p(self) -> Residue:
        return (1 + self)._map("log")

    def sqrt(self) -> Residue:
        return self._map("sqrt")

    def cbrt(self) -> Residue:
        return self._map("cbrt")

    def sin(self) -> Residue:
        t = self._map("half angle")
        return 2 * t / (1 + t * t)

    def cos(self) -> Residue:
        t = self._map("half angle")
        return (1 - t * t) / (1 + t * t)

    def tan(self) -> Residue:
        return self.sin() / self.cos()

    def sinh(self) -> Residue:
        e = self.exp()
        return (e - 1 / e) / 2

    def cosh(self) -> Residue:
        e = self.exp()
        return (e + 1 / e) / 2

    def tanh(self) -> Residue:
        return self.sinh() / self.cosh()

    def arcsin(self) -> Residue:
        return self._map("arcsin")

    def arccos(self) -> Residue:
        return self._map("arccos")

    def arctan(self) -> Residue:
        return self._map("arctan")

    def arcsinh(self) -> Residue:
        return self._map("arcsinh")

    def arctan2(self, other: Any) -> Residue:
        return (self + 3 * other)._map("arctan2")

    def hypot(self, other: Any) -> Residue:
        return (self * self + other * other).sqrt()

    # ---- what a NumPy scalar also answers ----

    def conjugate(self) -> Residue:
        return self

    @property
    def real(self) -> Residue:
        return self

    @property
    def T(self) -> Residue:
        return self

    def copy(self) -> Residue:
        return self

    def item(self) -> Residue:
        return self

    def sum(self, *args: Any, **kwargs: Any) -> Residue:
        return self

    def reshape(self, *shape: Any) -> np.ndarray:
        return np.array(self, dtype=object).reshape(*shape)

    def astype(self, dtype: Any, **kwargs: Any) -> Any:
        return self if dtype is float or hasattr(dtype, "dtype") else np.dtype(dtype).type(int(self))


def lift(x: Any) -> Any:
    """A number or array with its floating entries made residues."""
    if isinstance(x, Residue):
        return x
    if isinstance(x, np.ndarray):
        if x.dtype.kind != "f" and x.dtype.kind != "O":
            return x
        out = np.empty_like(x, dtype=object)
        for index in np.ndindex(x.shape):
            out[index] = lift(x[index])
        return out
    n = residue(x)
    if n is None:
        raise OutsideField(f"{type(x).__name__} is no number")
    return Residue(n)
