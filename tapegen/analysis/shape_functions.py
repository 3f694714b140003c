"""Shape functions: extents of the results of array functions from those of their arguments.

An extent is a linear form over symbols; one with a negative constant stands for 0 where it is negative (`x[1:]`).
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Mapping, Sequence
from inspect import signature
from typing import Any

import numpy as np

from tapegen.ir.nodes import Call, Const, Expr, Tuple
from tapegen.rules.external_functions import matrices

Symbol = tuple[str, str, int]
Extent = tuple[int, tuple[tuple[Symbol, int], ...]]  # constant + sum of coefficient * symbol
Extents = tuple[Extent, ...]

ONE: Extent = (1, ())


def plus(a: Extent, b: Extent, sign: int = 1) -> Extent:
    """The form a + b, or a - b."""
    terms = dict(a[1])
    for symbol, coefficient in b[1]:
        terms[symbol] = terms.get(symbol, 0) + sign * coefficient
    return a[0] + sign * b[0], tuple(sorted((s, c) for s, c in terms.items() if c))


class Unknown(Exception):
    """The extents of a result are unknown."""


class Known:
    """The arguments of a call and their extents.

    Parameters
    ----------
    call : Call
        The call.
    extents_of : callable
        Array expression -> its extents; None unless it is an array variable.
    integer : callable
        Integer expression -> its form, or None.
    unknown : tuple of Extent
        Symbols for the extents of the result.
    """

    def __init__(
        self,
        call: Call,
        extents_of: Callable[[Expr], Extents | None],
        integer: Callable[[Expr], Extent | None],
        unknown: Extents,
    ) -> None:
        self.call, self.integer, self.unknown = call, integer, unknown
        self._extents_of = extents_of

    def given(self, *names: str) -> list[Expr | None]:
        """The arguments by position or keyword; None for those left out."""
        found: Mapping[str, Expr] = {**dict(zip(names, self.call.args)), **dict(self.call.kwargs)}
        return [found.get(name) for name in names]

    def of(self, array: Any) -> list[Extent]:
        """The extents of an argument."""
        extents = None if array is None or isinstance(array, Tuple) else self._extents_of(array)
        if extents is None:
            raise Unknown
        return list(extents)

    def all_of(self, arrays: Any) -> list[list[Extent]]:
        """The extents of the arrays in a tuple."""
        if not isinstance(arrays, Tuple) or not arrays.items:
            raise Unknown
        return [self.of(item) for item in arrays.items]

    def size(self, expr: Any) -> Extent:
        """The form of an integer."""
        form = None if expr is None else self.integer(expr)
        if form is None:
            raise Unknown
        return form


def arranged(known: Known) -> Extents | None:
    """The extents of a result; None where the function or its arguments are unknown."""
    describe = _RESULTS.get(known.call.func)
    if describe is None and known.call.func in matrices():
        describe = _lettered
    if describe is None:
        return None
    try:
        extents = tuple(describe(known))
    except (Unknown, IndexError, ValueError):  # axes that the call will reject
        return None
    return extents if len(extents) == len(known.unknown) else None


# ---- arguments -------------------------------------------------------------------------------------------------------


def _constant(expr: Any) -> Any:
    """The value of a constant argument."""
    if isinstance(expr, Tuple):
        return tuple(_constant(item) for item in expr.items)
    if not isinstance(expr, Const):
        raise Unknown
    return expr.value


def _axes(expr: Any) -> tuple[int, ...]:
    value = _constant(expr)
    return value if isinstance(value, tuple) else (operator.index(value),)


def _axis(expr: Any, default: int, rank: int) -> int:
    k = default if expr is None else _constant(expr)
    if not isinstance(k, int) or not -rank <= k < rank:
        raise Unknown
    return k % rank


# ---- results ---------------------------------------------------------------------------------------------------------


def _expanded(known: Known) -> Sequence[Extent]:
    a, axis = known.given("a", "axis")
    extents = known.of(a)
    rank = len(known.unknown)
    for k in sorted(each % rank for each in _axes(axis)):
        extents.insert(k, ONE)
    return extents


def _moved(known: Known) -> Sequence[Extent]:
    a, source, destination = known.given("a", "source", "destination")
    extents = known.of(a)
    from_, to = ([range(len(extents))[k] for k in _axes(each)] for each in (source, destination))
    rest = [k for k in range(len(extents)) if k not in from_]
    for place, k in sorted(zip(to, from_, strict=True)):
        rest.insert(place, k)
    return [extents[k] for k in rest]


def _swapped(known: Known) -> Sequence[Extent]:
    a, first, second = known.given("a", "axis1", "axis2")
    extents = known.of(a)
    (j,), (k,) = _axes(first), _axes(second)
    extents[j], extents[k] = extents[k], extents[j]
    return extents


def _transposed(known: Known) -> Sequence[Extent]:
    a, axes = known.given("a", "axes")
    extents = known.of(a)
    if axes is None or axes == Const(None):
        return extents[::-1]
    return [extents[k] for k in _axes(axes)]


def _stacked(known: Known) -> Sequence[Extent]:
    arrays, axis = known.given("arrays", "axis")
    parts = known.all_of(arrays)
    k = _axis(axis, 0, len(parts[0]) + 1)
    return [*parts[0][:k], (len(parts), ()), *parts[0][k:]]


def _joined(known: Known) -> Sequence[Extent]:
    arrays, axis = known.given("arrays", "axis")
    parts = known.all_of(arrays)
    return _end_to_end(parts, _axis(axis, 0, len(parts[0])))


def _end_to_end(parts: list[list[Extent]], axis: int) -> list[Extent]:
    total: Extent = (0, ())
    for part in parts:
        if part[axis][0] < 0:
            raise Unknown  # an extent that may stand for 0 cannot be added
        total = plus(total, part[axis])
    return [*parts[0][:axis], total, *parts[0][axis + 1 :]]


def _beside(known: Known) -> Sequence[Extent]:
    """`np.hstack`."""
    parts = known.all_of(known.call.args[0])
    return _end_to_end(parts, min(1, len(parts[0]) - 1))


def _below(known: Known) -> Sequence[Extent]:
    """`np.vstack`."""
    parts = known.all_of(known.call.args[0])
    return _end_to_end([[ONE, *part] if len(part) == 1 else part for part in parts], 0)


def _columns(known: Known) -> Sequence[Extent]:
    """`np.column_stack`."""
    parts = known.all_of(known.call.args[0])
    return _end_to_end([[*part, ONE] if len(part) == 1 else part for part in parts], 1)


def _diagonal_matrix(known: Known) -> Sequence[Extent]:
    v, k = known.given("v", "k")
    (size,) = known.of(v)  # of a matrix: the diagonal
    size = plus(size, (abs(0 if k is None else _constant(k)), ()))
    return [size, size]


def _between(known: Known) -> Sequence[Extent]:
    """`np.linspace`, with an axis for the points between two scalars."""
    (points,) = known.given("start", "stop", "num")[2:]
    return [known.size(Const(50) if points is None else points)]


def _frequencies(known: Known) -> Sequence[Extent]:
    """`np.fft.fftfreq`."""
    return [known.size(known.given("n")[0])]


def _solved(known: Known) -> Sequence[Extent]:
    """`np.linalg.solve` of one matrix; stacks of matrices and of right sides are broadcast."""
    a, b = known.given("a", "b")
    if len(known.of(a)) != 2:
        raise Unknown
    return known.of(b)


def _lettered(known: Known) -> Sequence[Extent]:
    """Functions whose extents are declared by letters: equal letters mean equal extents."""
    operands, _, result = matrices()[known.call.func].partition("->")
    names = [*signature(known.call.func).parameters]
    return known.of(known.given(names[operands.split(",").index(result)])[0])


def _flat(known: Known) -> Sequence[Extent]:
    (size,) = known.of(known.call.args[0])
    return [size]


def _differences(known: Known) -> Sequence[Extent]:
    a, n, axis = known.given("a", "n", "axis")
    if len(known.call.args) > 3 or dict(known.call.kwargs).keys() & {"prepend", "append"}:
        raise Unknown
    extents = known.of(a)
    k = _axis(axis, -1, len(extents))
    extents[k] = plus(extents[k], (1 if n is None else _constant(n), ()), -1)
    return extents


def _reduced(known: Known) -> Sequence[Extent]:
    a, axis = known.given("a", "axis")
    keepdims = dict(known.call.kwargs).get("keepdims", Const(False))
    extents = known.of(a)
    axes = range(len(extents)) if axis is None or axis == Const(None) else _axes(axis)
    gone = {range(len(extents))[k] for k in axes}
    if _constant(keepdims):
        return [ONE if k in gone else extent for k, extent in enumerate(extents)]
    return _without(extents, gone)


def _without(extents: list[Extent], axes: set[int]) -> list[Extent]:
    return [extent for k, extent in enumerate(extents) if k not in axes]


def _like_first(known: Known) -> Sequence[Extent]:
    return known.of(known.call.args[0])


def _like_second(known: Known) -> Sequence[Extent]:
    return known.of(known.call.args[1])


def _product(known: Known) -> Sequence[Extent]:
    left, right = known.of(known.call.args[0]), known.of(known.call.args[1])
    if not (len(left) in (1, 2) and len(right) in (1, 2)):
        raise Unknown
    return [*left[:-1], *right[1:]]


def _outer(known: Known) -> Sequence[Extent]:
    (m,), (n,) = known.of(known.call.args[0]), known.of(known.call.args[1])
    return [m, n]


def _transformed(known: Known) -> Sequence[Extent]:
    """Fourier transforms; the extent of a half spectrum stays unknown."""
    a, n, axis = known.given("a", "n", "axis")
    extents = known.of(a)
    k = _axis(axis, -1, len(extents))
    size = None if n is None or n == Const(None) else known.size(n)
    if known.call.func is np.fft.rfft or (known.call.func is np.fft.irfft and size is None):
        extents[k] = known.unknown[k]
    elif size is not None:
        extents[k] = size
    return extents


_RESULTS: dict[Any, Callable[[Known], Sequence[Extent]]] = {
    np.expand_dims: _expanded,
    np.moveaxis: _moved,
    np.swapaxes: _swapped,
    np.transpose: _transposed,
    np.stack: _stacked,
    np.concatenate: _joined,
    np.hstack: _beside,
    np.vstack: _below,
    np.column_stack: _columns,
    np.diag: _diagonal_matrix,
    np.ravel: _flat,
    np.diff: _differences,
    **dict.fromkeys((np.sum, np.mean, np.prod, np.max, np.min, np.std, np.var), _reduced),
    **dict.fromkeys((np.any, np.all, np.argmax, np.argmin), _reduced),
    **dict.fromkeys((np.cumsum, np.cumprod), _like_first),  # except for a matrix without an axis
    np.linalg.solve: _solved,
    np.searchsorted: _like_second,
    np.interp: _like_first,
    **dict.fromkeys((operator.matmul, np.matmul, np.dot), _product),
    np.outer: _outer,
    np.linspace: _between,
    np.fft.fftfreq: _frequencies,
    **dict.fromkeys((np.fft.fft, np.fft.ifft, np.fft.rfft, np.fft.irfft), _transformed),
}
