"""Forward mode by operator overloading: the judge of every reverse sweep.

A `Dual` carries a value, its tangent and a *magnitude*: the tangent that would come out if every contribution were
positive.  The magnitude is the scale of rounding errors, so that a comparison can be strict without ever being wrong.
The value is computed by the very operation that the program wrote, on the very operands, so a run on duals takes the
same branches as the program itself.

The same class works on residues (`FieldDual`): there tangents are exact and no magnitude is kept.

Conventions at points without a derivative: `abs` 0 at 0, `maximum` half/half at a tie, `max` of an array an equal
split, `clip` 1 at its bounds, `x**0` 0, and a zero tangent stays zero whatever it meets.
"""

from __future__ import annotations

import math
import operator
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from tests.random_programs.field import FieldMath, FieldNumpy
from tests.random_programs.residues import OutsideField, Residue, lift

NO_NUMBERS = (str, list, tuple, dict, type(None))


@dataclass
class Monitor:
    """What happened during a run that limits what may be compared."""

    margin: float = math.inf  # the smallest relative distance of two compared numbers
    near: float = math.inf  # the same without equal numbers, which are mostly equal by construction
    nonfinite: bool = False  # a partial derivative was infinite or NaN
    dropped: bool = False  # ... where the tangent was zero, though the cotangent need not be
    tie: bool = False  # a maximum or minimum was taken of equal numbers

    def compared(self, a: Any, b: Any) -> None:
        with np.errstate(all="ignore"):
            near = np.abs(np.subtract(a, b)) / (np.abs(a) + np.abs(b))
        if np.size(near):
            equal = np.equal(a, b)
            self.margin = min(self.margin, float(np.min(np.where(equal, 0.0, near))))
            self.near = min(self.near, float(np.min(np.where(equal, np.inf, near))))

    def rounded(self, x: Any) -> None:
        """`x` was rounded: its distance from a step counts as a margin."""
        self.compared(np.asarray(x, dtype=np.float64), np.rint(np.asarray(x, dtype=np.float64)))
        self.compared(np.asarray(x, dtype=np.float64), np.floor(np.asarray(x, dtype=np.float64)) + 0.5)

    def partial(self, p: Any, t: Any) -> None:
        infinite = ~np.isfinite(p)
        if np.any(infinite):
            self.nonfinite = True
            self.dropped |= bool(np.any(infinite & np.equal(t, 0.0)))


MONITOR = Monitor()


def reset_monitor() -> Monitor:
    """Start a new run."""
    MONITOR.margin, MONITOR.near = math.inf, math.inf
    MONITOR.nonfinite, MONITOR.dropped, MONITOR.tie = False, False, False
    return MONITOR


def value(x: Any) -> Any:
    """The primal value of a dual, or of anything."""
    if isinstance(x, Dual):
        return x.v
    if isinstance(x, Whole):
        return x.view(np.ndarray)
    if isinstance(x, tuple | list):
        return type(x)(value(item) for item in x)
    return x


def is_float(v: Any) -> bool:
    """Whether a value carries a derivative."""
    if isinstance(v, np.ndarray | np.generic):
        return v.dtype.kind in "fO"
    return isinstance(v, float | Residue)


def _binary(name: str) -> tuple[Callable[..., Any], Callable[..., Any]]:
    return (lambda self, other: self.binary(name, self, other)), (lambda self, other: self.binary(name, other, self))


def _comparison(compare: Callable[[Any, Any], Any]) -> Callable[..., Any]:
    def method(self: Dual, other: Any) -> Any:
        a, b = self.v, value(other)
        if self.real:
            MONITOR.compared(a, b)
        return compare(a, b)

    return method


class Dual:
    """A number or array with its tangent `t` and magnitude `s`, all of one shape (and one memory layout)."""

    __slots__ = ("s", "t", "v")
    __array_ufunc__ = None  # ndarray + Dual is Dual.__radd__
    real: ClassVar[bool] = True
    np: ClassVar[Any] = np
    math: ClassVar[Any] = math

    def __init__(self, v: Any, t: Any, s: Any) -> None:
        self.v, self.t, self.s = v, t, s

    # ---- making ----

    @classmethod
    def constant(cls, v: Any) -> Dual:
        """A value that depends on no input."""
        return cls.fit(v, 0.0, 0.0)

    @classmethod
    def wrap(cls, v: Any) -> Any:
        """A dual for a floating array or number; anything else as it is."""
        if isinstance(v, list | tuple):
            return type(v)(cls.wrap(item) for item in v)
        if isinstance(v, np.ndarray) and v.dtype.kind == "i":
            return v.view(WHOLE[cls])
        return cls.constant(v) if is_float(v) else v

    @classmethod
    def fit(cls, v: Any, t: Any, s: Any) -> Any:
        """A dual whose tangent is spread over the shape and memory layout of `v`; `v` itself where it is no float."""
        if not is_float(v):
            return v
        if not isinstance(v, np.ndarray):
            return cls(v, float(t), float(s))
        tangent, magnitude = np.empty_like(v, dtype=np.float64), np.empty_like(v, dtype=np.float64)
        tangent[...], magnitude[...] = t, s
        return cls(v, tangent, magnitude)

    @classmethod
    def chain(cls, out: Any, *terms: tuple[Any, Any, Any] | tuple[Any, Any]) -> Any:
        """The chain rule: pairs (input, partial), or triples with the magnitude of the partial."""
        t: Any = 0.0
        s: Any = 0.0
        for x, partial, *magnitude in terms:
            if not isinstance(x, Dual):
                continue
            p = np.asarray(partial, dtype=np.float64)
            MONITOR.partial(p, x.t)
            zero = np.equal(x.t, 0.0)
            t = t + np.where(zero, 0.0, p * x.t)
            size = np.maximum(np.abs(p), np.abs(magnitude[0])) if magnitude else np.abs(p)
            s = s + np.where(np.equal(x.s, 0.0), 0.0, size * x.s)
        return cls.fit(out, t, s)

    @staticmethod
    def exact(v: Any) -> Any:
        """A value in the precision in which partial derivatives are computed."""
        return np.asarray(value(v), dtype=np.float64)[()]

    # ---- arithmetic ----

    @classmethod
    def binary(cls, name: str, x: Any, y: Any) -> Any:
        if isinstance(x, NO_NUMBERS) or isinstance(y, NO_NUMBERS):
            return NotImplemented
        out = OPERATORS[name](value(x), value(y))
        if cls.real and name in ("floordiv", "mod"):
            MONITOR.rounded(cls.exact(x) / cls.exact(y))
        return cls.chain(out, *PARTIALS[name](cls, x, y, out))

    __add__, __radd__ = _binary("add")
    __sub__, __rsub__ = _binary("sub")
    __mul__, __rmul__ = _binary("mul")
    __truediv__, __rtruediv__ = _binary("truediv")
    __pow__, __rpow__ = _binary("pow")
    __mod__, __rmod__ = _binary("mod")
    __floordiv__, __rfloordiv__ = _binary("floordiv")

    def __divmod__(self, other: Any) -> Any:
        return self // other, self % other

    def __rdivmod__(self, other: Any) -> Any:
        return other // self, other % self

    __lt__ = _comparison(operator.lt)
    __le__ = _comparison(operator.le)
    __gt__ = _comparison(operator.gt)
    __ge__ = _comparison(operator.ge)
    __eq__ = _comparison(operator.eq)
    __ne__ = _comparison(operator.ne)
    __hash__ = None

    def __matmul__(self, other: Any) -> Any:
        return self.bilinear(operator.matmul, self, other)

    def __rmatmul__(self, other: Any) -> Any:
        return self.bilinear(operator.matmul, other, self)

    def _in_place(self, name: str, other: Any) -> Dual:
        new = self.binary(name, self, other)
        if not isinstance(self.v, np.ndarray):
            return new
        IN_PLACE[name](self.v, value(other))
        self.t[...], self.s[...] = new.t, new.s
        return self

    def __iadd__(self, other: Any) -> Dual:
        return self._in_place("add", other)

    def __isub__(self, other: Any) -> Dual:
        return self._in_place("sub", other)

    def __imul__(self, other: Any) -> Dual:
        return self._in_place("mul", other)

    def __itruediv__(self, other: Any) -> Dual:
        return self._in_place("truediv", other)

    def __ipow__(self, other: Any) -> Dual:
        return self._in_place("pow", other)

    def __imod__(self, other: Any) -> Dual:
        return self._in_place("mod", other)

    def __neg__(self) -> Any:
        return self.chain(-self.v, (self, -1.0))

    def __pos__(self) -> Any:
        return self.chain(+self.v, (self, 1.0))

    def __abs__(self) -> Any:
        if self.real:
            MONITOR.compared(self.v, 0.0)
        return self.chain(abs(self.v), (self, self.np.sign(self.exact(self))))

    def __bool__(self) -> bool:
        return bool(self.v)

    def __float__(self) -> float:
        return float(self.v)

    def stepped(self) -> Any:
        """The value, about to be rounded."""
        if self.real:
            MONITOR.rounded(self.v)
        return self.v

    def __int__(self) -> int:
        return int(self.stepped())

    __trunc__ = __int__

    def __floor__(self) -> int:
        return math.floor(self.stepped())

    def __ceil__(self) -> int:
        return math.ceil(self.stepped())

    def __round__(self, digits: int | None = None) -> Any:
        return round(self.stepped()) if digits is None else self.constant(round(self.stepped(), digits))

    def __repr__(self) -> str:
        return f"Dual({self.v!r}, {self.t!r})"

    @classmethod
    def bilinear(cls, function: Callable[[Any, Any], Any], x: Any, y: Any) -> Any:
        """A product that is linear in each of its two arguments."""
        x, y = cls.wrap(x), cls.wrap(y)
        xv, yv = value(x), value(y)
        t: Any = 0.0
        s: Any = 0.0
        if isinstance(x, Dual):
            t, s = t + function(x.t, cls.exact(yv)), s + cls._size(function, x.s, yv)
        if isinstance(y, Dual):
            t, s = t + function(cls.exact(xv), y.t), s + cls._size(function, xv, y.s)
        return cls.fit(function(xv, yv), t, s)

    @classmethod
    def _size(cls, function: Callable[[Any, Any], Any], a: Any, b: Any) -> Any:
        return function(np.abs(a).astype(np.float64), np.abs(b).astype(np.float64))

    # ---- arrays ----

    @classmethod
    def linear(cls, function: Callable[..., Any], x: Any, *args: Any, **kwargs: Any) -> Any:
        """A function that is linear in `x` with non-negative weights (views too: all three parts become views)."""
        if not isinstance(x, Dual):
            return cls.wrap(function(x, *args, **kwargs))
        parts = [function(part, *args, **kwargs) for part in (x.v, x.t, x.s)]
        shared = [
            isinstance(p, np.ndarray) and np.may_share_memory(p, q) for p, q in zip(parts, (x.v, x.t, x.s), strict=True)
        ]
        if shared[0] != shared[1] or shared[0] != shared[2]:
            raise AssertionError("tangent and value differ in memory layout")
        return cls(*parts)

    def __getitem__(self, index: Any) -> Any:
        return type(self)(self.v[index], self.t[index], self.s[index])

    def __setitem__(self, index: Any, new: Any) -> None:
        if not isinstance(new, Dual):
            new = self.wrap(np.array(new) if isinstance(new, list | tuple) else new)
        self.v[index] = value(new)
        self.t[index], self.s[index] = (new.t, new.s) if isinstance(new, Dual) else (self.zero(), self.zero())

    @staticmethod
    def zero() -> Any:
        return 0.0

    def __len__(self) -> int:
        return len(self.v)

    def __iter__(self) -> Iterator[Any]:
        return (self[k] for k in range(len(self.v)))

    @property
    def shape(self) -> tuple[int, ...]:
        return self.v.shape

    @property
    def ndim(self) -> int:
        return self.v.ndim

    @property
    def size(self) -> int:
        return self.v.size

    @property
    def dtype(self) -> Any:
        return self.v.dtype

    @property
    def T(self) -> Dual:
        return self.linear(np.transpose, self)

    def item(self) -> Any:
        return type(self)(self.v.item(), self.zero() + self.t.item(), self.zero() + self.s.item())

    def copy(self) -> Any:
        return self.linear(lambda part: part.copy(), self)  # C order, where np.copy keeps the layout

    def fill(self, new: Any) -> None:
        self[...] = new

    def __getattr__(self, name: str) -> Callable[..., Any]:
        if name not in METHODS:
            raise AttributeError(name)
        function = getattr(NAMESPACES[type(self)], name)
        return lambda *args, **kwargs: function(self, *args, **kwargs)


class FieldDual(Dual):
    """Duals over residues: tangents are exact, nothing is finite or infinite."""

    __slots__ = ()
    real = False
    np = FieldNumpy()
    math = FieldMath()

    @staticmethod
    def exact(v: Any) -> Any:
        return value(v)

    @staticmethod
    def zero() -> Any:
        return Residue(0)

    @classmethod
    def fit(cls, v: Any, t: Any, s: Any) -> Any:
        if not is_float(v):
            return v
        if not isinstance(v, np.ndarray):
            return cls(v if isinstance(v, Residue) else lift(v), lift(t), None)
        if v.dtype.kind == "f":
            v = lift(v)
        tangent = np.empty_like(v)
        tangent[...] = lift(t)
        return cls(v, tangent, None)

    @classmethod
    def chain(cls, out: Any, *terms: tuple[Any, Any, Any] | tuple[Any, Any]) -> Any:
        t: Any = Residue(0)
        for x, partial, *_ in terms:
            if isinstance(x, Dual):
                t = t + partial * x.t
        return cls.fit(out, t, None)

    @classmethod
    def bilinear(cls, function: Callable[[Any, Any], Any], x: Any, y: Any) -> Any:
        x, y = cls.wrap(x), cls.wrap(y)
        xv, yv = value(x), value(y)
        t: Any = Residue(0)
        if isinstance(x, Dual):
            t = t + cls._whole(function(x.t, yv))
        if isinstance(y, Dual):
            t = t + cls._whole(function(xv, y.t))
        return cls.fit(cls._whole(function(xv, yv)), t, None)

    @staticmethod
    def _whole(x: Any) -> Any:
        return lift(0) if x is None or (isinstance(x, int) and x == 0) else x

    @classmethod
    def linear(cls, function: Callable[..., Any], x: Any, *args: Any, **kwargs: Any) -> Any:
        if not isinstance(x, Dual):
            return cls.wrap(function(x, *args, **kwargs))
        return cls(function(x.v, *args, **kwargs), function(x.t, *args, **kwargs), None)

    def __getitem__(self, index: Any) -> Any:
        return type(self)(self.v[index], self.t[index], None)

    def __setitem__(self, index: Any, new: Any) -> None:
        if not isinstance(new, Dual):
            new = self.wrap(lift(np.array(new) if isinstance(new, list | tuple) else new))
        self.v[index] = value(new)
        self.t[index] = new.t

    def _in_place(self, name: str, other: Any) -> Dual:
        new = self.binary(name, self, other)
        if not isinstance(self.v, np.ndarray):
            return new
        self.v[...], self.t[...] = new.v, new.t
        return self

    def item(self) -> Any:
        return type(self)(self.v.item(), self.t.item(), None)


class Whole(np.ndarray):
    """An array of integers; whatever floating array is computed from it is a dual, ready to be written into."""

    dual: ClassVar[type[Dual]] = Dual

    def __array_ufunc__(self, ufunc: np.ufunc, method: str, *inputs: Any, **kwargs: Any) -> Any:
        if any(isinstance(x, Dual) for x in inputs):
            return NotImplemented
        out = getattr(ufunc, method)(*(np.asarray(x) if isinstance(x, Whole) else x for x in inputs), **kwargs)
        return self.dual.wrap(out) if isinstance(out, np.ndarray) else out


class FieldWhole(Whole):
    dual = FieldDual


WHOLE: dict[type[Dual], type[Whole]] = {Dual: Whole, FieldDual: FieldWhole}

OPERATORS: dict[str, Callable[[Any, Any], Any]] = {
    "add": operator.add,
    "sub": operator.sub,
    "mul": operator.mul,
    "truediv": operator.truediv,
    "pow": operator.pow,
    "mod": operator.mod,
    "floordiv": operator.floordiv,
}
IN_PLACE: dict[str, Callable[[Any, Any], Any]] = {
    "add": operator.iadd,
    "sub": operator.isub,
    "mul": operator.imul,
    "truediv": operator.itruediv,
    "pow": operator.ipow,
    "mod": operator.imod,
}


def _power(cls: type[Dual], x: Any, y: Any, out: Any) -> tuple:
    a, b = cls.exact(x), cls.exact(y)
    if not cls.real:
        if isinstance(y, Dual):
            raise OutsideField("a power with a computed exponent")
        return ((x, _constant_power(a, b)),)
    zero = np.equal(b, 0.0)
    by_base = np.where(zero, 0.0, b * np.power(a, np.where(zero, 1.0, b - 1.0)))
    terms = [(x, by_base)]
    if isinstance(y, Dual):
        whole = cls.exact(out)
        by_exponent = np.where(np.equal(a, 0.0) & (b > 0.0), 0.0, whole * np.log(a))
        terms.append((y, by_exponent))
    return tuple(terms)


def _constant_power(a: Any, b: Any) -> Any:
    if isinstance(b, np.ndarray):
        return np.array([0 * x if k == 0 else k * x ** (k - 1) for x, k in np.broadcast(a, b)], dtype=object).reshape(
            np.broadcast(a, b).shape
        )
    return 0 * a if b == 0 else b * a ** (b - 1)


def _quotient(cls: type[Dual], x: Any, y: Any, out: Any) -> tuple:
    a, b = cls.exact(x), cls.exact(y)
    one = np.float64(1.0) if cls.real else Residue(1)
    return (x, one / b), (y, -a / (b * b))


PARTIALS: dict[str, Callable[[type[Dual], Any, Any, Any], tuple]] = {
    "add": lambda cls, x, y, out: ((x, 1.0), (y, 1.0)),
    "sub": lambda cls, x, y, out: ((x, 1.0), (y, -1.0)),
    "mul": lambda cls, x, y, out: ((x, cls.exact(y)), (y, cls.exact(x))),
    "truediv": _quotient,
    "pow": _power,
    "mod": lambda cls, x, y, out: ((x, 1.0), (y, -(cls.exact(x) // cls.exact(y)))),
    "floordiv": lambda cls, x, y, out: (),
}

METHODS = frozenset(
    "sum mean prod max min dot reshape ravel flatten transpose squeeze swapaxes var std cumsum clip take repeat "
    "trace diagonal argmax argmin argsort astype".split()
)
NAMESPACES: dict[type[Dual], Any] = {}  # the `numpy` of each class; filled by dual_numpy
