"""`numpy` and `math` on dual numbers: what random programs call, each function with a derivative written by hand."""

from __future__ import annotations

import builtins
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from tests.random_programs.duals import MONITOR, NAMESPACES, PARTIALS, Dual, FieldDual, is_float, value
from tests.random_programs.field import FloatType
from tests.random_programs.residues import Residue, lift

# name -> partial derivative from (namespace, argument, result)
UNARY: dict[str, Callable[[Any, Any, Any], Any]] = {
    "sin": lambda m, x, y: m.cos(x),
    "cos": lambda m, x, y: -m.sin(x),
    "tan": lambda m, x, y: 1 + y * y,
    "exp": lambda m, x, y: y,
    "expm1": lambda m, x, y: m.exp(x),
    "exp2": lambda m, x, y: y * np.log(2.0),
    "log": lambda m, x, y: 1 / x,
    "log1p": lambda m, x, y: 1 / (1 + x),
    "log2": lambda m, x, y: 1 / (x * np.log(2.0)),
    "log10": lambda m, x, y: 1 / (x * np.log(10.0)),
    "sqrt": lambda m, x, y: 0.5 / y,
    "cbrt": lambda m, x, y: 1 / (3 * y * y),
    "square": lambda m, x, y: 2 * x,
    "tanh": lambda m, x, y: 1 - y * y,
    "sinh": lambda m, x, y: m.cosh(x),
    "cosh": lambda m, x, y: m.sinh(x),
    "arctan": lambda m, x, y: 1 / (1 + x * x),
    "arcsin": lambda m, x, y: 1 / m.sqrt(1 - x * x),
    "arccos": lambda m, x, y: -1 / m.sqrt(1 - x * x),
    "arcsinh": lambda m, x, y: 1 / m.sqrt(1 + x * x),
    "reciprocal": lambda m, x, y: -y * y,
    "negative": lambda m, x, y: -1.0,
    "abs": lambda m, x, y: m.sign(x),
    "degrees": lambda m, x, y: 180.0 / np.pi,
    "radians": lambda m, x, y: np.pi / 180.0,
}
UNARY["absolute"] = UNARY["fabs"] = UNARY["abs"]
# the partial is a difference of larger numbers: its rounding error scales with this
SIZE: dict[str, Callable[[Any, Any], Any]] = {
    "tanh": lambda x, y: 1 + y * y,
    "arcsin": lambda x, y: (1 + x * x) / np.sqrt(np.abs(1 - x * x)) ** 3,
    "arccos": lambda x, y: (1 + x * x) / np.sqrt(np.abs(1 - x * x)) ** 3,
    "log1p": lambda x, y: (1 + np.abs(x)) / (1 + x) ** 2,
    "sin": lambda x, y: 1 + 0 * x,
    "cos": lambda x, y: 1 + 0 * x,
}
ARITHMETIC = {
    "multiply": "mul",
    "subtract": "sub",
    "divide": "truediv",
    "true_divide": "truediv",
    "power": "pow",
    "mod": "mod",
    "remainder": "mod",
}
KINKED = frozenset({"abs", "absolute", "fabs", "sqrt", "cbrt"})
ROUNDING = ("sign", "floor", "ceil", "rint", "trunc", "round")
FLAT = (*ROUNDING, "floor_divide", "ones_like", "zeros_like", "empty_like")
PLAIN = (
    "argmax argmin argsort isfinite isnan isinf any all shape ndim size count_nonzero array_equal allclose "
    "equal less greater"
)
MAKERS = "zeros ones empty eye identity linspace arange tri"
VIEWS = (
    "transpose ravel flip squeeze expand_dims swapaxes moveaxis broadcast_to diagonal atleast_1d atleast_2d "
    "fliplr flipud rot90 rollaxis"
)
MOVERS = "sum mean roll tril triu diag trace cumsum repeat tile copy take"
JOINERS = "concatenate stack vstack hstack column_stack"
MATH_NAMES = {"atan": "arctan", "asin": "arcsin", "acos": "arccos", "asinh": "arcsinh"}


def _axis_first(x: Any, axis: int | None) -> Any:
    return np.ravel(x) if axis is None else np.moveaxis(x, axis, 0)


class DualNumpy:
    """`numpy` for one class of duals."""

    pi, e, newaxis, inf, nan = np.pi, np.e, None, np.inf, np.nan
    int64, bool_, intp = np.int64, np.bool_, np.intp

    def __init__(self, dual: type[Dual]) -> None:
        self.dual = dual
        self.float64 = np.float64 if dual.real else FloatType
        self.float32 = np.float32 if dual.real else FloatType
        self.add = _AddAt(self)

    def __getattr__(self, name: str) -> Any:
        if name in UNARY:
            return self._unary(name)
        if name in FLAT or name in MAKERS.split():
            return self._flat(name)
        if name in PLAIN.split():
            return self._plain(name)
        if name in VIEWS.split() or name in MOVERS.split():
            function = getattr(self.dual.np, name)
            return lambda x, *args, **kwargs: self.dual.linear(function, self._array(x), *args, **kwargs)
        if name in JOINERS.split():
            return lambda parts, *args, **kwargs: self._join(name, parts, *args, **kwargs)
        if name in ("dot", "matmul", "outer", "inner", "vdot"):
            function = getattr(self.dual.np, name)
            return lambda a, b: self.dual.bilinear(function, self._array(a), self._array(b))
        if name in ARITHMETIC:
            return self._arithmetic(name, ARITHMETIC[name])
        raise AttributeError(f"the oracle has no np.{name}")

    def _array(self, x: Any) -> Any:
        """What NumPy makes of an argument: a list of duals is an array."""
        return self.array(x) if isinstance(x, list | tuple) else x

    def _unary(self, name: str) -> Callable[[Any], Any]:
        function, partial = getattr(self.dual.np, name), UNARY[name]

        def call(x: Any) -> Any:
            x = self._array(x)
            out = function(value(x))
            if not isinstance(x, Dual):
                return self.dual.wrap(out)
            return self.chain_unary(name, x, out, partial)

        return call

    def _flat(self, name: str) -> Callable[..., Any]:
        """A function whose derivative is zero."""
        function = getattr(self.dual.np, name)

        def call(*args: Any, **kwargs: Any) -> Any:
            if name in ROUNDING and isinstance(args[0], Dual):
                args[0].stepped()
            return self.dual.wrap(function(*map(value, args), **_values(kwargs)))

        return call

    def chain_unary(self, name: str, x: Dual, out: Any, partial: Callable[[Any, Any, Any], Any]) -> Any:
        exact, result = self.dual.exact(x), self.dual.exact(out)
        if not self.dual.real:
            return self.dual.chain(out, (x, partial(self.dual.np, exact, result)))
        if name in KINKED:
            MONITOR.compared(exact, 0.0)
        size = SIZE[name](exact, result) if name in SIZE else 0.0
        return self.dual.chain(out, (x, partial(np, exact, result), size))

    def _plain(self, name: str) -> Callable[..., Any]:
        function = getattr(self.dual.np, name)

        def call(*args: Any, **kwargs: Any) -> Any:
            values = [value(self._array(arg)) for arg in args]
            if self.dual.real and name.startswith("arg"):
                flat = np.sort(np.ravel(values[0]))
                MONITOR.compared(flat[1:], flat[:-1])
            return function(*values, **kwargs)

        return call

    # ---- element-wise functions of two or three arguments ----

    def _pick(self, function: Callable[..., Any], share: Callable[[Any, Any], Any], a: Any, b: Any) -> Any:
        a, b = self._array(a), self._array(b)
        out = function(value(a), value(b))
        if self.dual.real:
            MONITOR.compared(value(a), value(b))
        first = np.asarray(share(value(a), value(b)), dtype=bool)
        tie = np.asarray(np.equal(value(a), value(b)), dtype=bool)
        MONITOR.tie |= bool(np.any(tie))
        weight = np.where(tie, 0.5, np.where(first, 1.0, 0.0))[()]
        return self.dual.chain(out, (a, weight), (b, 1.0 - weight))

    def maximum(self, a: Any, b: Any) -> Any:
        return self._pick(np.maximum, np.greater, a, b)

    def minimum(self, a: Any, b: Any) -> Any:
        return self._pick(np.minimum, np.less, a, b)

    def arctan2(self, y: Any, x: Any) -> Any:
        a, b = self.dual.exact(y), self.dual.exact(x)
        q = a * a + b * b
        return self.dual.chain(self.dual.np.arctan2(value(y), value(x)), (y, b / q), (x, -a / q))

    def hypot(self, x: Any, y: Any) -> Any:
        out = self.dual.np.hypot(value(x), value(y))
        h = self.dual.exact(out)
        return self.dual.chain(out, (x, self.dual.exact(x) / h), (y, self.dual.exact(y) / h))

    def logaddexp(self, x: Any, y: Any) -> Any:
        out = self.dual.np.logaddexp(value(x), value(y))
        h = self.dual.exact(out)
        return self.dual.chain(out, (x, np.exp(self.dual.exact(x) - h)), (y, np.exp(self.dual.exact(y) - h)))

    def _arithmetic(self, name: str, operator: str) -> Callable[[Any, Any], Any]:
        function = getattr(self.dual.np, name)

        def call(a: Any, b: Any) -> Any:
            a, b = self._array(a), self._array(b)
            out = function(value(a), value(b))
            return self.dual.chain(out, *PARTIALS[operator](self.dual, a, b, out))

        return call

    def where(self, test: Any, a: Any, b: Any) -> Any:
        test = value(test)
        out = self.dual.np.where(test, value(a), value(b))
        if not is_float(out):
            return out
        if not self.dual.real:
            return self.dual.fit(out, np.where(test, _tangent(a), _tangent(b)), None)
        chosen = [np.where(test, _part(a, part), _part(b, part)) for part in ("t", "s")]
        return self.dual.fit(out, *chosen)

    def clip(self, x: Any, low: Any, high: Any) -> Any:
        v, lo, hi = value(x), value(low), value(high)
        if self.dual.real:
            MONITOR.compared(v, lo)
            MONITOR.compared(v, hi)
        inside = np.asarray((v >= lo) & (v <= hi), dtype=bool)
        below, above = np.asarray(v < lo, dtype=bool) & ~inside, np.asarray(v > hi, dtype=bool)
        out = np.clip(v, lo, hi)
        return self.dual.chain(
            out,
            (x, np.where(inside, 1.0, 0.0)[()]),
            (low, np.where(below, 1.0, 0.0)[()]),
            (high, np.where(above, 1.0, 0.0)[()]),
        )

    # ---- reductions ----

    def _extreme(self, function: Callable[..., Any], x: Any, axis: Any, keepdims: bool) -> Any:
        x = self._array(x)
        out = function(value(x), axis=axis, keepdims=keepdims)
        if not isinstance(x, Dual):
            return self.dual.wrap(out)
        full = function(x.v, axis=axis, keepdims=True)
        if self.dual.real:
            rest = np.sort(_axis_first(x.v, axis), axis=0)
            MONITOR.compared(rest[1:], rest[:-1])
        hit = np.asarray(np.equal(x.v, full), dtype=bool)
        count = np.sum(hit, axis=axis, keepdims=True)
        MONITOR.tie |= bool(np.any(count > 1))
        share = hit / count if self.dual.real else np.where(hit, 1 / lift(count.astype(np.float64)), lift(0))
        return self._weighted(out, x, share, axis, keepdims)

    def _weighted(self, out: Any, x: Dual, weight: Any, axis: Any, keepdims: bool, size: Any = None) -> Any:
        """A reduction with the given partial derivative for each entry."""
        if not self.dual.real:
            return self.dual.fit(out, self.dual.np.sum(weight * x.t, axis=axis, keepdims=keepdims), None)
        MONITOR.partial(weight, x.t)
        size = np.abs(weight) if size is None else size
        t = np.sum(np.where(x.t == 0.0, 0.0, weight * x.t), axis=axis, keepdims=keepdims)
        return self.dual.fit(out, t, np.sum(size * x.s, axis=axis, keepdims=keepdims))

    def max(self, x: Any, axis: Any = None, keepdims: bool = False) -> Any:
        return self._extreme(np.max, x, axis, keepdims)

    def min(self, x: Any, axis: Any = None, keepdims: bool = False) -> Any:
        return self._extreme(np.min, x, axis, keepdims)

    amax, amin = max, min

    def prod(self, x: Any, axis: Any = None, keepdims: bool = False) -> Any:
        x = self._array(x)
        out = self.dual.np.prod(value(x), axis=axis, keepdims=keepdims)
        if not isinstance(x, Dual):
            return self.dual.wrap(out)
        others = np.ones_like(x.v)
        if axis is None:
            flat = x.v.ravel()
            for k, index in enumerate(np.ndindex(x.v.shape)):
                others[index] = self.dual.np.prod(np.delete(flat, k))
        else:
            there = np.moveaxis(others, axis, 0)
            for k in range(x.v.shape[axis]):
                there[k] = self.dual.np.prod(np.delete(x.v, k, axis=axis), axis=axis)
        return self._weighted(out, x, others, axis, keepdims)

    def var(self, x: Any, axis: Any = None, keepdims: bool = False) -> Any:
        out = self.dual.np.var(value(x), axis=axis, keepdims=keepdims)
        if not isinstance(x, Dual):
            return self.dual.wrap(out)
        exact = self.dual.exact(x)
        mean = self.dual.np.mean(exact, axis=axis, keepdims=True)
        n = x.v.size // builtins.max(1, np.size(out))
        if not self.dual.real:
            return self._weighted(out, x, 2 * (exact - mean) / n, axis, keepdims)
        return self._weighted(
            out, x, 2.0 * (exact - mean) / n, axis, keepdims, 2.0 * (np.abs(exact) + np.abs(mean)) / n
        )

    def std(self, x: Any, axis: Any = None, keepdims: bool = False) -> Any:
        var = self.var(x, axis, keepdims)
        out = self.dual.np.std(value(x), axis=axis, keepdims=keepdims)
        return self.dual.chain(out, (var, 0.5 / self.dual.exact(out))) if isinstance(var, Dual) else self.dual.wrap(out)

    def diff(self, x: Any) -> Any:
        return x[..., 1:] - x[..., :-1]

    def sort(self, x: Any) -> Any:
        order = np.argsort(value(x), axis=-1, kind="stable")
        if self.dual.real and np.size(order):
            ordered = np.sort(value(x), axis=-1)
            MONITOR.compared(ordered[..., 1:], ordered[..., :-1])
        return self.dual.linear(np.take_along_axis, x, order, axis=-1)

    def median(self, x: Any) -> Any:
        ordered = self.sort(self._array(x))
        n = len(ordered)
        middle = 0.5 * ordered[(n - 1) // 2] + 0.5 * ordered[n // 2]
        return self.dual.fit(self.dual.np.median(value(ordered)), middle.t, middle.s) if self.dual.real else middle

    def ptp(self, x: Any) -> Any:
        return self.max(x) - self.min(x)

    def trapezoid(self, x: Any) -> Any:
        x = self._array(x)
        whole = self.sum(0.5 * x[1:] + 0.5 * x[:-1])
        return self.dual.fit(self.dual.np.trapezoid(value(x)), whole.t, whole.s) if self.dual.real else whole

    def divmod(self, a: Any, b: Any) -> Any:
        return a // b, a % b

    def modf(self, x: Any) -> Any:
        fraction, whole = self.dual.np.modf(value(x))
        MONITOR.rounded(value(x))
        return self.dual.chain(fraction, (x, 1.0)), whole

    def norm(self, x: Any) -> Any:
        out = self.dual.np.linalg.norm(value(x))
        safe = self.dual.exact(x) / out if out else 0.0 * self.dual.exact(x)
        return self._weighted(out, x, safe, None, False)

    # ---- making and joining ----

    def array(self, x: Any, dtype: Any = None, **kwargs: Any) -> Any:
        if isinstance(x, Dual):
            x = self.dual.linear(np.array, x)
            return self.astype(x, dtype) if dtype is not None else x
        if not isinstance(x, list | tuple):
            return self.dual.wrap(self.dual.np.array(x, dtype=dtype))
        plain = np.asarray(_parts(x, value))
        if plain.dtype.kind not in "fO" and dtype is None:
            return self.dual.wrap(plain)
        v = self.dual.np.array(_parts(x, value), dtype=dtype)
        if not is_float(v):
            return v
        if not self.dual.real:
            return self.dual.fit(v, np.array(_parts(x, _tangent)), None)
        return self.dual.fit(v, np.array(_parts(x, _tangent)), np.array(_parts(x, lambda item: _part(item, "s"))))

    asarray = lambda self, x, dtype=None: x if isinstance(x, Dual) and dtype is None else self.array(x, dtype)  # noqa: E731

    def full(self, shape: Any, new: Any) -> Any:
        out = self.dual.np.full(shape, value(new))
        return self.dual.fit(out, _part(new, "t"), _part(new, "s")) if isinstance(new, Dual) else self.dual.wrap(out)

    def full_like(self, x: Any, new: Any) -> Any:
        out = self.dual.np.full_like(value(x), value(new))
        return self.dual.fit(out, _part(new, "t"), _part(new, "s")) if isinstance(new, Dual) else self.dual.wrap(out)

    def append(self, x: Any, new: Any) -> Any:
        return self._join("concatenate", [self.ravel(self.array(part)) for part in (x, new)])

    def astype(self, x: Dual, dtype: Any) -> Any:
        if not self.dual.real:
            return self.array(x) if dtype in (float, FloatType) else self.dual.np.cast(x.v, dtype)
        return self.dual.fit(x.v.astype(dtype), x.t, x.s)

    def reshape(self, x: Any, *shape: Any) -> Any:
        return self.dual.linear(np.reshape, self._array(x), shape[0] if len(shape) == 1 else shape)

    def flatten(self, x: Dual) -> Any:
        return self.dual.linear(lambda part: part.flatten(), x)

    def _join(self, name: str, parts: Sequence[Any], *args: Any, **kwargs: Any) -> Any:
        parts = [self.dual.wrap(part) for part in parts]
        function = getattr(np, name)
        out = function([value(part) for part in parts], *args, **kwargs)
        if not is_float(out):
            return out
        tangents = [_shaped(part, "t") for part in parts]
        sizes = [_shaped(part, "s") for part in parts] if self.dual.real else None
        s = function(sizes, *args, **kwargs) if sizes is not None else None
        return self.dual.fit(out, function(tangents, *args, **kwargs), s)


class _AddAt:
    """`np.add`, and `np.add.at`, which adds every occurrence of a repeated index."""

    def __init__(self, namespace: DualNumpy) -> None:
        self.namespace = namespace

    def __call__(self, a: Any, b: Any) -> Any:
        return self.namespace._arithmetic("add", "add")(a, b)

    def at(self, x: Dual, index: Any, new: Any) -> None:
        np.add.at(x.v, index, value(new))
        if isinstance(new, Dual):
            np.add.at(x.t, index, new.t)
            if x.real:
                np.add.at(x.s, index, new.s)


class DualMath:
    """`math` for one class of duals."""

    pi, e, inf, nan = np.pi, np.e, np.inf, np.nan

    def __init__(self, dual: type[Dual]) -> None:
        self.dual = dual

    def __getattr__(self, name: str) -> Any:
        function = getattr(self.dual.math, name)
        known = MATH_NAMES.get(name, name)
        if known not in UNARY:
            return lambda *args: function(*map(value, args))

        def call(x: Any) -> Any:
            out = function(value(x))
            if not isinstance(x, Dual):
                return out
            return NAMESPACES[self.dual].chain_unary(known, x, out, UNARY[known])

        return call

    def modf(self, x: Any) -> Any:
        fraction, whole = self.dual.math.modf(value(x))
        MONITOR.rounded(value(x))
        return self.dual.chain(fraction, (x, 1.0)), whole

    def atan2(self, y: Any, x: Any) -> Any:
        a, b = self.dual.exact(y), self.dual.exact(x)
        q = a * a + b * b
        return self.dual.chain(self.dual.math.atan2(value(y), value(x)), (y, b / q), (x, -a / q))

    def hypot(self, x: Any, y: Any) -> Any:
        out = self.dual.math.hypot(value(x), value(y))
        h = self.dual.exact(out)
        return self.dual.chain(out, (x, self.dual.exact(x) / h), (y, self.dual.exact(y) / h))


def _values(kwargs: dict[str, Any]) -> dict[str, Any]:
    return {name: value(item) for name, item in kwargs.items()}


def _part(x: Any, part: str) -> Any:
    return getattr(x, part) if isinstance(x, Dual) else 0.0


def _tangent(x: Any) -> Any:
    return x.t if isinstance(x, Dual) else Residue(0) if isinstance(x, Residue) else 0.0


def _shaped(x: Any, part: str) -> Any:
    """The tangent of a part of a joined array, with zeros where the part carries none."""
    return getattr(x, part) if isinstance(x, Dual) else np.zeros(np.shape(x))


def _parts(x: Any, function: Callable[[Any], Any]) -> Any:
    """A nested list with a function applied to its leaves."""
    return [_parts(item, function) for item in x] if isinstance(x, list | tuple) else function(x)


for _dual in (Dual, FieldDual):
    NAMESPACES[_dual] = DualNumpy(_dual)
