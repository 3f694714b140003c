"""Result types of calls, inferred by running the function on tiny prototypes of its arguments."""

from __future__ import annotations

import operator
import warnings
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from typing import Any

import numpy as np

from tapegen.frontend.values.pytree import StaticValue
from tapegen.ir import intrinsics
from tapegen.ir.types import STATIC, Array, ListOf, RandomGenerator, Scalar, TupleOf, Type

ArgType = Type | StaticValue | tuple[Any, ...]
"""The type of an argument, its value where that is known, or a tuple of these for a sequence of arguments."""


class NoResultType(Exception):
    """The function fails on every prototype; `cause` is the first failure."""

    def __init__(self, cause: Exception) -> None:
        super().__init__(str(cause))
        self.cause = cause


# (float, int, size of an axis): a function may accept one and refuse another (acosh(0.5), cross products of length 4)
_TRIALS = (
    (0.5, 2, 4),
    (1.5, 2, 4),
    (0.5, 1, 3),
    (0.5, 2, 2),
    (0.5, 1, 1),
    (-0.5, 3, 3),
    (0.5, 0, 4),
    (2.5, 4, 4),
    (0.5, 2, 16),
    (0.5, 2, 64),
)
_OTHER_SIZE = {4: 5, 3: 4, 2: 3, 1: 2, 16: 17, 64: 65}
_ALWAYS_C = frozenset({operator.matmul, np.matmul, np.dot, np.outer, np.copy})
_SIZE_OF_VALUES = frozenset(
    {np.arange, np.unique, np.unique_values, np.union1d, np.intersect1d, np.setdiff1d, np.setxor1d, np.trim_zeros}
    | {np.flatnonzero, np.argwhere, np.extract, np.compress}
)
"""Functions whose result size depends on values, so that prototypes, whose elements are all equal, do not show it."""
_CACHE: dict[Any, Type] = {}


def result_type(
    func: Callable[..., Any], args: tuple[ArgType, ...], kwargs: Mapping[str, ArgType] | None = None
) -> Type:
    """The type of `func(*args, **kwargs)`.

    Parameters
    ----------
    func : callable
        A function of NumPy, math, scipy or the builtins; it must not have side effects.
    args, kwargs
        Types, or StaticValue where the value itself is known.

    Raises
    ------
    NoResultType
        The function fails on all prototypes.
    """
    items = tuple(sorted((kwargs or {}).items()))
    key = (func, args, items)
    try:
        found = _CACHE.get(key)
    except TypeError:  # an unhashable function
        return _infer(func, args, dict(items))
    if found is None:
        found = _CACHE[key] = _infer(func, args, dict(items))
    return found


def _infer(func: Callable[..., Any], args: tuple[ArgType, ...], kwargs: dict[str, ArgType]) -> Type:
    special = _SHAPED.get(func)
    if special is not None:
        found = special(*args, **kwargs)
        if found is not None:
            return found
    first: Exception | None = None
    sizes_told = {(0.5, 2, n) for n in map(_known_size, (*args, *kwargs.values())) if n}
    for trial in (*_TRIALS, *sorted(sizes_told)):  # an array of the size that another argument gives
        try:
            value = _run(func, args, kwargs, trial, strided=True)
            type_ = _type_of(value)
        except Exception as error:
            first = first or error
            continue
        return _refine(func, args, kwargs, trial, type_)
    for trial in _TRIALS[:4]:  # a diagonal and an off-diagonal
        try:
            sizes = [(trial[0], trial[1], trial[2] - k) for k in range(len(args))]
            given = tuple(StaticValue(_prototype(arg, size, True)) for arg, size in zip(args, sizes, strict=True))
            return any_size(_type_of(_run(func, given, kwargs, trial, strided=True)))
        except Exception:
            continue
    for trial in _TRIALS[:4]:  # the initial state of a filter is shorter than the filter
        try:
            named = {name: StaticValue(_shorter(_prototype(arg, trial, True))) for name, arg in kwargs.items()}
            return any_size(_type_of(_run(func, args, named, trial, strided=True)))
        except Exception:
            continue
    assert first is not None
    raise NoResultType(first)


def _known_size(arg: ArgType) -> int:
    """The value of an argument, if it may be a size."""
    known = arg.value if isinstance(arg, StaticValue) else None
    return known if type(known) is int and 1 < known <= 4096 else 0


def _shorter(value: Any) -> Any:
    return value[..., :-1] if isinstance(value, np.ndarray) and value.ndim else value


def any_size(type_: Type) -> Type:
    """Drop sizes and layouts of prototypes, as the real ones may depend on values."""
    if isinstance(type_, TupleOf):
        return TupleOf(tuple(map(any_size, type_.items)))
    if isinstance(type_, Array):
        return replace(type_, unit=(), layout="A" if type_.rank > 1 else type_.layout)
    return type_


def is_self_contained(
    func: Callable[..., Any], args: tuple[ArgType, ...], kwargs: Mapping[str, ArgType] | None = None
) -> bool:
    """Whether a function returns a new result, of one type, and does not change its arguments (on prototypes)."""
    kinds = set()
    for trial in _TRIALS:
        given = [_prototype(arg, trial, True) for arg in args]
        named = {name: _prototype(arg, trial, True) for name, arg in (kwargs or {}).items()}
        arrays = [value for value in (*given, *named.values()) if isinstance(value, np.ndarray)]
        before = [array.copy() for array in arrays]
        try:
            with warnings.catch_warnings(), np.errstate(all="ignore"):
                warnings.simplefilter("ignore")
                value = func(*given, **named)
        except Exception:
            continue
        results = list(_flat(value if isinstance(value, (tuple, list)) else (value,)))
        kinds.add(tuple((np.asarray(part).dtype.name, np.ndim(part)) for part in results))
        if any(isinstance(part, np.ndarray) and np.shares_memory(part, a) for part in results for a in arrays):
            return False
        if not all(np.array_equal(array, old, equal_nan=True) for array, old in zip(arrays, before, strict=True)):
            return False
    return len(kinds) == 1


def _run(func: Any, args: tuple, kwargs: dict[str, Any], trial: tuple[float, int, int], *, strided: bool) -> Any:
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        return func(
            *(_prototype(arg, trial, strided) for arg in args),
            **{name: _prototype(arg, trial, strided) for name, arg in kwargs.items()},
        )


def _refine(func: Any, args: tuple, kwargs: dict[str, Any], trial: tuple, type_: Type) -> Type:
    """Drop properties that hold for one prototype only: axes of size 1 and layouts."""
    if isinstance(type_, Array):
        others: list[Any] = []
        arrays = [arg for arg in _flat((*args, *kwargs.values())) if isinstance(arg, Array) and arg.rank > 1]
        if func in _SIZE_OF_VALUES:
            return replace(type_, unit=())
        try:
            if type_.unit:
                more = (trial[0], trial[1] + 1, _OTHER_SIZE.get(trial[2], trial[2] + 1))
                others.append(_run(func, args, kwargs, more, strided=True))
            if any(arg.layout == "A" for arg in arrays):
                others.append(_run(func, args, kwargs, trial, strided=False))
        except Exception:
            return replace(type_, unit=(), layout="A")
        if type_.unit:
            others += _of_different_sizes(func, args, kwargs, trial)
        for other in map(_type_of, others):
            assert isinstance(other, Array)
            unit = tuple(a and b for a, b in zip(type_.unit, other.unit)) if other.unit else ()
            type_ = replace(type_, unit=unit if any(unit) else (), layout=_same(type_.layout, other.layout))
        if len({arg.layout for arg in arrays}) > 1 and type_.rank - sum(type_.unit) > 1 and func not in _ALWAYS_C:
            type_ = replace(type_, layout="A")  # it may depend on the strides
    elif isinstance(type_, TupleOf):
        items = tuple(
            replace(item, unit=(), layout="A" if item.rank > 1 else item.layout) if isinstance(item, Array) else item
            for item in type_.items
        )
        type_ = TupleOf(items)
    return type_


def _of_different_sizes(func: Any, args: tuple, kwargs: dict[str, Any], trial: tuple[float, int, int]) -> list[Any]:
    """The result for arguments of different sizes, where they may differ: np.convolve of equal ones has one element."""
    found = []
    for sign in (1, -1):  # of two images, the second must be the smaller one
        try:
            with warnings.catch_warnings(), np.errstate(all="ignore"):
                warnings.simplefilter("ignore")
                given = [_prototype(arg, (*trial[:2], trial[2] + sign * k), True) for k, arg in enumerate(args)]
                found.append(func(*given, **{name: _prototype(arg, trial, True) for name, arg in kwargs.items()}))
        except Exception:
            continue
    return found


def _same(a: str, b: str) -> str:
    return a if a == b else "A"


def _flat(args: Any) -> Iterator[Any]:
    for arg in args:
        if isinstance(arg, tuple):
            yield from _flat(arg)
        else:
            yield arg


# ---- prototypes ----------------------------------------------------------------------------------------------------


def _prototype(arg: ArgType, trial: tuple[float, int, int], strided: bool) -> Any:
    number, integer, size = trial
    match arg:
        case StaticValue(value):
            return value
        case tuple():
            return tuple(_prototype(item, trial, strided) for item in arg)
        case Scalar(dtype, python):
            value = True if dtype == "bool" else integer if "int" in dtype else number
            if dtype == "complex128" and python:
                return complex(number, number)
            return value if python else np.dtype(dtype).type(value)
        case TupleOf(items):
            return tuple(_prototype(item, trial, strided) for item in items)
        case ListOf(item):
            return [_prototype(item, trial, strided) for _ in range(size)]
        case RandomGenerator(kind):
            return intrinsics.GENERATORS[kind](np.random.MT19937(0))
        case Array():
            return _array(arg, number, min(integer, 1), size, strided)
    return None


def _array(type_: Array, number: float, integer: int, size: int, strided: bool) -> np.ndarray:
    shape = tuple(1 if type_.is_unit(k) else size for k in range(type_.rank))
    dtype = np.dtype(type_.dtype)
    if dtype.kind in "fc":
        array = np.full(shape, number, dtype)
        if type_.rank >= 2:  # positive definite, for the functions of linear algebra
            array += 4.0 * np.eye(*shape[-2:], dtype=dtype)
    else:
        array = np.full(shape, integer, dtype)
    if type_.layout == "F" or (type_.layout == "A" and not strided):
        return np.asfortranarray(array) if type_.rank else array
    if type_.layout == "A" and type_.rank:
        doubled = np.repeat(array, 2, axis=-1)
        return doubled[..., ::2]
    return array


def _type_of(value: Any) -> Type:
    if isinstance(value, np.ndarray):
        layout = "C" if value.flags.c_contiguous else "F" if value.flags.f_contiguous else "A"
        unit = tuple(n == 1 for n in value.shape)
        return Array(value.dtype.name, value.ndim, layout, unit if any(unit) else ())
    if isinstance(value, np.generic):
        return Scalar(value.dtype.name, python=False)
    if isinstance(value, bool):
        return Scalar("bool")
    if isinstance(value, int):
        return Scalar("int64")
    if isinstance(value, float):
        return Scalar("float64")
    if isinstance(value, complex):
        return Scalar("complex128")
    if isinstance(value, (tuple, list)):
        return TupleOf(tuple(_type_of(item) for item in value))
    if value is None or isinstance(value, str):
        return STATIC
    raise TypeError(f"a result of type {type(value).__name__} cannot be followed")


# ---- functions whose result depends on the value of a shape --------------------------------------------------------


def shape_items(shape: ArgType) -> tuple[ArgType, ...]:
    """The extents of a shape argument, one per axis."""
    if isinstance(shape, StaticValue):
        value = shape.value
        return tuple(map(StaticValue, value)) if isinstance(value, (tuple, list)) else (shape,)
    if isinstance(shape, tuple):
        return shape
    if isinstance(shape, TupleOf):
        return shape.items
    return (shape,)


def units(items: tuple[ArgType, ...]) -> tuple[bool, ...]:
    unit = tuple(isinstance(item, StaticValue) and item.value == 1 for item in items)
    return unit if any(unit) else ()


def _reshape(a: ArgType, shape: ArgType, order: ArgType = StaticValue("C"), **other: ArgType) -> Type | None:
    if not isinstance(a, Array) or other:
        return None
    items = shape_items(shape)
    plain = a.layout == "C" and order == StaticValue("C")
    one = bool(items) and all(a.is_unit(k) for k in range(a.rank))  # one element, also where the shape contains -1
    return Array(a.dtype, len(items), "C" if plain else "A", (True,) * len(items) if one else units(items))


def _broadcast_to(array: ArgType, shape: ArgType, **other: ArgType) -> Type | None:
    if other:
        return None
    items = shape_items(shape)
    dtype = array.dtype if isinstance(array, (Array, Scalar)) else None
    if dtype is None:
        return None
    return Array(dtype, len(items), "A", units(items))


def _windows(x: ArgType, window_shape: ArgType, axis: ArgType = StaticValue(None), **other: ArgType) -> Type | None:
    """The axes of the windows follow those of the array."""
    if not isinstance(x, Array) or other:
        return None
    return Array(x.dtype, x.rank + len(shape_items(window_shape)), "A")


def _copy(a: ArgType, *order: ArgType, **other: ArgType) -> Type | None:
    """`np.copy` has C order: it is printed as `a.copy()`."""
    return replace(a, layout="C") if isinstance(a, Array) and not order and not other else None


_SHAPED: dict[Any, Callable[..., Type | None]] = {
    np.reshape: _reshape,
    np.broadcast_to: _broadcast_to,
    np.lib.stride_tricks.sliding_window_view: _windows,
    np.copy: _copy,
}
