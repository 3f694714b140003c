"""`numpy` and `math` over residues: what makes a program text compute modulo a prime, unchanged."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from tests.random_programs.residues import OutsideField, Residue, lift


class FloatType:
    """Stands for `float64`: converts numbers to residues, and is the dtype of an array of them."""

    dtype = np.dtype(object)

    def __new__(cls, x: Any = 0.0) -> Any:
        return lift(x)


def _is_float(dtype: Any) -> bool:
    return dtype is None or dtype in (float, FloatType, object) or getattr(dtype, "kind", "") in ("f", "O")


def _no_counterpart(name: str) -> Callable[..., Any]:
    def refuse(*args: Any, **kwargs: Any) -> Any:
        raise OutsideField(name)

    return refuse


class FieldNumpy:
    """`numpy` with arrays of residues where NumPy would make arrays of floats.

    Everything not defined here is NumPy's own function: its object loops do the rest.
    """

    float64 = FloatType
    float32 = FloatType
    pi, e = lift(math.pi), lift(math.e)

    def __getattr__(self, name: str) -> Any:
        if name in FORMAL_REFUSALS:
            return _no_counterpart(name)
        function = getattr(np, name)
        if name in FORMAL:  # also of plain floats
            return lambda *args: lift(function(*map(lift, args)))
        return function

    @staticmethod
    def cast(x: Any, dtype: Any) -> Any:
        if _is_float(dtype):
            return lift(x)
        if isinstance(x, np.ndarray):
            return np.array([int(item) for item in x.ravel()], dtype=dtype).reshape(x.shape)
        return np.dtype(dtype).type(int(x))

    @staticmethod
    def _made(shape: Any, value: Any, dtype: Any, order: str = "C") -> np.ndarray:
        if not _is_float(dtype):
            return np.full(shape, value, dtype=dtype, order=order)
        out = np.empty(shape, dtype=object, order=order)
        out[...] = value
        return out

    def zeros(self, shape: Any, dtype: Any = None, order: str = "C") -> np.ndarray:
        return self._made(shape, lift(0) if _is_float(dtype) else 0, dtype, order)

    def ones(self, shape: Any, dtype: Any = None, order: str = "C") -> np.ndarray:
        return self._made(shape, lift(1) if _is_float(dtype) else 1, dtype, order)

    def empty(self, shape: Any, dtype: Any = None, order: str = "C") -> np.ndarray:
        # None: arithmetic on an entry that was never written fails
        return np.empty(shape, dtype=object if _is_float(dtype) else dtype, order=order)

    def full(self, shape: Any, value: Any, dtype: Any = None, order: str = "C") -> np.ndarray:
        if dtype is None and not isinstance(value, float | Residue | np.floating | np.ndarray):
            return np.full(shape, value)
        if isinstance(value, np.ndarray) and value.dtype.kind in "iub" and dtype is None:
            return np.full(shape, value)
        value = value if isinstance(value, float) and math.isinf(value) else lift(value)
        return self._made(shape, value, dtype, order)

    def _like(self, x: Any, value: int | None, dtype: Any, shape: Any = None) -> np.ndarray:
        kind = dtype
        if kind is None and isinstance(x, np.ndarray) and x.dtype.kind in "iub":
            kind = x.dtype
        out = np.empty_like(x, dtype=object if _is_float(kind) else kind, shape=shape)
        if value is not None:
            out[...] = lift(value) if _is_float(kind) else value
        return out

    def zeros_like(self, x: Any, dtype: Any = None, shape: Any = None) -> np.ndarray:
        return self._like(x, 0, dtype, shape)

    def ones_like(self, x: Any, dtype: Any = None, shape: Any = None) -> np.ndarray:
        return self._like(x, 1, dtype, shape)

    def empty_like(self, x: Any, dtype: Any = None, shape: Any = None) -> np.ndarray:
        return self._like(x, None, dtype, shape)

    def full_like(self, x: Any, value: Any, dtype: Any = None) -> np.ndarray:
        out = self._like(x, None, dtype)
        out[...] = lift(value) if out.dtype == object else value
        return out

    def array(self, x: Any, dtype: Any = None, copy: Any = True, order: Any = "K") -> np.ndarray:
        out = np.array(x, order=order) if isinstance(x, np.ndarray) else np.array(x)
        if dtype is None:
            return lift(out) if out.dtype.kind in "fO" else out
        return self.cast(out, dtype)

    def asarray(self, x: Any, dtype: Any = None, order: Any = None) -> np.ndarray:
        same = isinstance(x, np.ndarray) and (dtype is None or (x.dtype == object) == _is_float(dtype))
        return x if same else self.array(x, dtype)

    def asfortranarray(self, x: Any) -> np.ndarray:
        return lift(np.asfortranarray(x))

    def eye(self, n: int, m: int | None = None, k: int = 0, dtype: Any = None) -> np.ndarray:
        return lift(np.eye(n, m, k))

    identity = eye

    def linspace(self, start: Any, stop: Any, num: int = 50) -> np.ndarray:
        return self.array([start + (stop - start) * k / (num - 1) for k in range(num)], dtype=float)

    def arange(self, *args: Any, dtype: Any = None) -> np.ndarray:
        out = np.arange(*args)
        return out if dtype is None else self.cast(out, dtype)

    def tril(self, x: Any, k: int = 0) -> np.ndarray:
        return np.where(np.tri(*x.shape[-2:], k=k, dtype=bool), x, lift(0))

    def triu(self, x: Any, k: int = 0) -> np.ndarray:
        return np.where(np.tri(*x.shape[-2:], k=k - 1, dtype=bool), lift(0), x)

    def diag(self, x: Any, k: int = 0) -> np.ndarray:
        if x.ndim == 2:
            return np.diag(x, k)
        out = self.zeros((len(x) + abs(k),) * 2)
        for i, item in enumerate(x):
            out[i + max(0, -k), i + max(0, k)] = item
        return out

    def where(self, test: Any, a: Any, b: Any) -> Any:
        out = np.where(test, a, b)
        return lift(out) if out.dtype == object else out

    def sum(self, x: Any, axis: Any = None, keepdims: bool = False, **kwargs: Any) -> Any:
        x = np.asarray(x)
        out = np.sum(x, axis=axis, keepdims=keepdims)
        return lift(out) if x.dtype == object else out  # an empty object array sums to the int 0

    def prod(self, x: Any, axis: Any = None, keepdims: bool = False) -> Any:
        out = np.prod(x, axis=axis, keepdims=keepdims)
        return lift(out) if np.asarray(x).dtype == object else out

    def mean(self, x: Any, axis: Any = None, keepdims: bool = False) -> Any:
        x = np.asarray(x)
        total = np.sum(x, axis=axis, keepdims=keepdims)
        return lift(total) / (x.size // max(1, np.size(total)))

    def var(self, x: Any, axis: Any = None, keepdims: bool = False) -> Any:
        d = x - self.mean(x, axis=axis, keepdims=True)
        return self.mean(d * d, axis=axis, keepdims=keepdims)

    def std(self, x: Any, axis: Any = None, keepdims: bool = False) -> Any:
        return np.sqrt(self.var(x, axis, keepdims))

    def dot(self, a: Any, b: Any) -> Any:
        return self._product(np.dot, a, b)

    def matmul(self, a: Any, b: Any) -> Any:
        return self._product(np.matmul, a, b)

    @staticmethod
    def _product(function: Callable[..., Any], a: Any, b: Any) -> Any:
        out = function(a, b)
        if isinstance(out, np.ndarray):
            return lift(out) if out.dtype == object else out
        return lift(0) if out is None or (isinstance(out, int) and not out) else out

    def sign(self, x: Any) -> Any:
        return lift(np.sign(x))

    def hypot(self, a: Any, b: Any) -> Any:
        return np.sqrt(np.multiply(a, a) + np.multiply(b, b))

    def real(self, x: Any) -> Any:
        return x

    conj = conjugate = real

    def isnan(self, x: Any) -> Any:
        return np.zeros(np.shape(x), dtype=bool)[()]

    isinf = isnan

    def isfinite(self, x: Any) -> Any:
        return np.ones(np.shape(x), dtype=bool)[()]


FORMAL = frozenset(
    "sin cos tan exp expm1 log log1p sqrt cbrt sinh cosh tanh arcsin arccos arctan arcsinh arctan2 "
    "floor ceil rint trunc".split()
)
FORMAL_REFUSALS = frozenset(
    "log2 log10 exp2 logaddexp logaddexp2 linalg fft interp float_power divmod modf median trapezoid".split()
)


class FieldMath:
    """`math` on residues."""

    pi, e = lift(math.pi), lift(math.e)

    def __getattr__(self, name: str) -> Any:
        alias = {"asin": "arcsin", "acos": "arccos", "atan": "arctan", "asinh": "arcsinh", "fabs": "__abs__"}.get(
            name, name
        )
        alias = {"floor": "__floor__", "ceil": "__ceil__", "trunc": "__int__"}.get(name, alias)
        if not hasattr(Residue, alias):
            return _no_counterpart(f"math.{name}")
        return lambda x: getattr(lift(x), alias)()

    def atan2(self, y: Any, x: Any) -> Any:
        return lift(y).arctan2(x)

    def hypot(self, x: Any, y: Any) -> Any:
        return lift(x).hypot(lift(y))

    def pow(self, x: Any, y: Any) -> Any:
        return lift(x) ** y

    def isnan(self, x: Any) -> bool:
        return False

    isinf = isnan

    def isfinite(self, x: Any) -> bool:
        return True

    def copysign(self, x: Any, y: Any) -> Any:
        return abs(lift(x)) if y >= 0 else -abs(lift(x))
