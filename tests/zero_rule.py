"""An interpreter of the rule for zero cotangents (docs/conventions.md), which shares nothing with tapegen.

Each element of a cotangent is a number and whether the program used the value: a selection takes that away, and only
there a product is zero whatever the partial derivative is.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

Pull = Callable[[np.ndarray, np.ndarray], tuple[np.ndarray, np.ndarray]]


class Traced:
    """A value whose operations are kept, to be followed backwards by `slope`."""

    __array_priority__ = 100.0

    def __init__(self, value: Any, sources: tuple[tuple[Traced, Pull], ...] = ()) -> None:
        self.value = np.array(value, float)
        self.sources = sources

    @property
    def size(self) -> int:
        return self.value.size

    @property
    def shape(self) -> tuple[int, ...]:
        return self.value.shape

    def __len__(self) -> int:
        return len(self.value)

    def __array_ufunc__(self, ufunc: Any, method: str, *args: Any, **kwargs: Any) -> Any:
        assert method == "__call__" and not kwargs
        return _applied(ufunc, *args)

    def __array_function__(self, func: Any, types: Any, args: Any, kwargs: Any) -> Any:
        return _FUNCTIONS[func](*args, **kwargs)

    def __getitem__(self, index: Any) -> Traced:
        index = _plain(index)

        def pull(bar: np.ndarray, used: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
            whole, touched = np.zeros(self.shape), np.zeros(self.shape, bool)
            np.add.at(whole, index, bar)
            np.logical_or.at(touched, index, used)
            return whole, touched

        return Traced(self.value[index], ((self, pull),))

    def __setitem__(self, index: Any, value: Any) -> None:
        before, place = Traced(self.value, self.sources), _plain(index)
        kept = np.ones(self.shape, bool)
        kept[place] = False

        def pull(bar: np.ndarray, used: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
            return np.where(kept, bar, 0.0), used & kept

        self.value = before.value.copy()
        self.value[place] = _plain(value)
        self.sources = ((before, pull),)
        if isinstance(value, Traced):
            self.sources += ((value, lambda bar, used: (bar[place], used[place])),)

    def sum(self) -> Traced:
        return _sum(self)

    def copy(self) -> Traced:
        return Traced(self.value, ((self, lambda bar, used: (bar, used)),))


def slope(func: Callable[..., Any], x: Any) -> np.ndarray:
    """The derivative of a function of one value with a number as its result."""
    source = Traced(x)
    with np.errstate(all="ignore"):
        result = func(source)
        order: list[Traced] = []
        _visit(result, order, set())
        bars = {id(item): (np.zeros(item.shape), np.zeros(item.shape, bool)) for item in order}
        bars.setdefault(id(source), (np.zeros(source.shape), np.zeros(source.shape, bool)))
        bars[id(result)] = np.ones(()), np.ones((), bool)
        for item in reversed(order):
            bar, used = bars[id(item)]
            for other, pull in item.sources:
                more, touched = pull(bar, used)
                more, touched = (_fitted(part, other.shape) for part in (more, touched))
                held, before = bars[id(other)]
                bars[id(other)] = held + more, before | touched
    return bars[id(source)][0]


def _visit(item: Traced, order: list[Traced], seen: set[int]) -> None:
    if id(item) in seen:
        return
    seen.add(id(item))
    for other, _ in item.sources:
        _visit(other, order, seen)
    order.append(item)


def _fitted(part: np.ndarray, shape: tuple[int, ...]) -> np.ndarray:
    reduce = np.any if part.dtype == bool else np.sum
    while part.ndim > len(shape):
        part = reduce(part, axis=0)
    for axis, n in enumerate(shape):
        if n == 1 and part.shape[axis] != 1:
            part = reduce(part, axis=axis, keepdims=True)
    return np.broadcast_to(part, shape)


def _plain(value: Any) -> Any:
    return value.value if isinstance(value, Traced) else value


def _used(factor: Any) -> Any:
    """Where a factor without derivative leaves something to be used."""
    return True if isinstance(factor, Traced) else np.asarray(factor) != 0


_PARTIALS: dict[Any, Callable[..., tuple[Any, ...]]] = {
    np.add: lambda x, y: (1.0, 1.0),
    np.subtract: lambda x, y: (1.0, -1.0),
    np.multiply: lambda x, y: (y, x),
    np.divide: lambda x, y: (1.0 / y, -(x / y) / y),
    np.negative: lambda x: (-1.0,),
    np.power: lambda x, y: (y * x ** (y - 1.0), 0.0),
    np.sqrt: lambda x: (0.5 / np.sqrt(x),),
    np.log: lambda x: (1.0 / x,),
    np.log1p: lambda x: (1.0 / (1.0 + x),),
    np.exp: lambda x: (np.exp(x),),
    np.arctan: lambda x: (1.0 / (1.0 + x * x),),
    np.square: lambda x: (2.0 * x,),
}
_CHOICES: dict[Any, Callable[..., tuple[Any, Any]]] = {
    np.maximum: lambda x, y: ((x > y) + 0.5 * (x == y), (x < y) + 0.5 * (x == y)),
    np.minimum: lambda x, y: ((x < y) + 0.5 * (x == y), (x > y) + 0.5 * (x == y)),
}


def _applied(func: Any, *args: Any) -> Any:
    values = [np.asarray(_plain(arg), float) for arg in args]
    if func not in _PARTIALS and func not in _CHOICES:
        return func(*map(_plain, args))  # a comparison
    sources = []
    if func in _CHOICES:
        sources = [(arg, _weighted(weight)) for arg, weight in zip(args, _CHOICES[func](*values), strict=True)]
    else:
        for k, (arg, partial) in enumerate(zip(args, _PARTIALS[func](*values), strict=True)):
            touched = _used(args[1 - k]) if func is np.multiply else True
            sources.append((arg, _times(partial, touched)))
    return Traced(func(*values), tuple((arg, pull) for arg, pull in sources if isinstance(arg, Traced)))


def _times(partial: Any, touched: Any) -> Pull:
    return lambda bar, used: (np.where(used & touched, bar * partial, 0.0), used & touched)


def _weighted(weight: Any) -> Pull:
    return lambda bar, used: (np.where(weight != 0.0, bar * weight, 0.0), used & (weight != 0.0))


def _where(test: Any, x: Any, y: Any) -> Traced:
    chosen = np.asarray(_plain(test), bool)
    pairs = ((x, chosen), (y, ~chosen))
    sources = tuple((arg, _weighted(np.where(kept, 1.0, 0.0))) for arg, kept in pairs if isinstance(arg, Traced))
    return Traced(np.where(chosen, _plain(x), _plain(y)), sources)


def _sum(x: Traced) -> Traced:
    def pull(bar: np.ndarray, used: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        return np.broadcast_to(bar, x.shape), np.broadcast_to(used, x.shape)

    return Traced(np.sum(x.value), ((x, pull),))


_FUNCTIONS: dict[Any, Callable[..., Any]] = {
    np.where: _where,
    np.sum: _sum,
    np.clip: lambda x, low, high: _where((x.value >= low) & (x.value <= high), x, np.clip(x.value, low, high)),
    np.copy: lambda x: x.copy(),
    np.zeros_like: lambda x: Traced(np.zeros(x.shape)),
    np.empty_like: lambda x: Traced(np.zeros(x.shape)),
}


def _operator(func: Any, turned: bool = False) -> Callable[..., Any]:
    if turned:
        return lambda self, other: _applied(func, other, self)
    return lambda self, *other: _applied(func, self, *other)


for _name, _func in (
    ("add", np.add),
    ("sub", np.subtract),
    ("mul", np.multiply),
    ("truediv", np.divide),
    ("pow", np.power),
):
    setattr(Traced, f"__{_name}__", _operator(_func))
    setattr(Traced, f"__r{_name}__", _operator(_func, turned=True))
for _name, _func in (("gt", np.greater), ("lt", np.less), ("ge", np.greater_equal), ("le", np.less_equal)):
    setattr(Traced, f"__{_name}__", _operator(_func))
Traced.__neg__ = _operator(np.negative)  # type: ignore[attr-defined]
