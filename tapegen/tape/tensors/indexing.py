"""Indexing and conversion of tensors: operations that Python writes as syntax, with rules as in the registry."""

from __future__ import annotations

import operator
from collections.abc import Callable
from typing import Any

import numpy as np

from tapegen.rules.rule import Rule
from tapegen.tape.engine.operations import Operation
from tapegen.tape.engine.state import STATE, Call
from tapegen.tape.tensors.tensor import Tensor, Traced, fresh, note

_BASIC = (int, slice, np.integer, type(None), type(Ellipsis))


def _getitem_bar(a, index, *, out_bar):  # type: ignore[no-untyped-def]
    """Repeated indices add up."""
    a_bar = np.zeros_like(a)
    if is_basic(index):
        a_bar[index] = out_bar
    else:
        np.add.at(a_bar, index, out_bar)
    return a_bar


def _astype_bar(x, dtype, *, out_bar):  # type: ignore[no-untyped-def]
    return out_bar  # in the type of its argument by the sweep


def _convert(x: Any, dtype: Any) -> Any:
    return x.astype(dtype)


_convert.__name__ = "astype"
GETITEM = Operation(operator.getitem, Rule(operator.getitem, "linear", _getitem_bar, ("a",), of_complex=True))
ASTYPE = Operation(_convert, Rule(_convert, "linear", _astype_bar, ("x",), of_complex=True))


def is_basic(index: Any) -> bool:
    """Whether an index makes a view, or selects elements that are all different."""
    items = index if isinstance(index, tuple) else (index,)
    return all(isinstance(i, _BASIC) or (isinstance(i, np.ndarray) and i.dtype == bool) for i in items) and (
        sum(isinstance(i, np.ndarray) for i in items) <= 1
    )


def getitem(x: Traced, index: Any) -> Tensor:
    """`x[index]`."""
    value, number = x._operand()
    index = bare_index(index)
    out = fresh(value[index])
    if STATE.active:
        note(Call(GETITEM, (value, index), {}, (number, 0), out._value, (out._id,)))
    return out


def bare_index(index: Any) -> Any:
    """An index with values in place of tensors."""
    if isinstance(index, Traced):
        value = index._operand()[0]
        return value if value.ndim or value.dtype == bool else int(value)
    if isinstance(index, tuple):
        return tuple(map(bare_index, index))
    if isinstance(index, slice):
        return slice(bare_index(index.start), bare_index(index.stop), bare_index(index.step))
    if isinstance(index, list):
        return np.asarray([bare_index(item) for item in index]) if index else index
    return index


def astype(x: Any, dtype: Any, **options: Any) -> Tensor:
    """`x.astype(dtype)`."""
    value, number = x._operand() if isinstance(x, Traced) else (np.asarray(x), 0)
    dtype = np.dtype(dtype)
    out = fresh(value.astype(dtype))
    if STATE.active:
        note(Call(ASTYPE, (value, dtype), {}, (number, 0), out._value, (out._id,)))
    return out


SPECIAL: dict[Any, Callable[..., Any]] = {np.astype: astype}
"""Functions that NumPy defines for arrays only, not for its scalars."""
