"""Partitions of data: the items of a list, and the parts of dask collections and xarray objects."""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from typing import Any

import dask
import numpy as np

from tapegen.errors import BadArgument

_HOW = "Pass a list of partitions, a dask collection, or a chunked xarray object."


def partitions_of(data: Any) -> list[Any]:
    """The partitions of data; each one is a value, a future, or delayed.

    A partition is an item of a list, the list of items in a part of a dask bag, a block of a dask array or of a chunked
    DataArray, and a dict of blocks of a dict of dask arrays, of a Dataset, or of the columns in a part of a DataFrame.

    Raises
    ------
    BadArgument
        There are none, or this is nothing that has partitions.
    """
    found = _found(data)
    if not found:
        raise BadArgument("there are no partitions.", "Pass one at least: the sum of none has no gradient.")
    return found


def _found(data: Any) -> list[Any]:
    kind = type(data).__name__
    if _is_of("xarray", data, "Dataset"):
        return _blocks({name: (var.dims, var.data) for name, var in data.data_vars.items()})
    if _is_of("xarray", data, "DataArray"):
        return [block["x"] for block in _blocks({"x": (data.dims, data.data)})]
    if isinstance(data, Mapping):
        for name, array in data.items():
            if not _is_of("dask.array", array, "Array"):
                raise BadArgument(f"{name!r} is of type {type(array).__name__} in a dict of partitions.", _HOW)
            if any(n > 1 for n in array.numblocks[1:]):
                raise BadArgument(
                    f"{name!r} has chunks along axis {next(k for k, n in enumerate(array.numblocks) if k and n > 1)}.",
                    "Chunk the arrays of a dict along axis 0 alone: array.rechunk({0: n, 1: -1}).",
                )
        return _blocks({name: ((0, *[(name, k) for k in range(1, x.ndim)])[: x.ndim], x) for name, x in data.items()})
    if _is_of("dask.bag", data, "Bag"):
        return [dask.delayed(list)(part) for part in data.to_delayed()]
    if _is_of("dask.array", data, "Array"):
        return data.to_delayed().ravel().tolist()
    if _is_of("dask.dataframe", data, "DataFrame") or _is_of("dask.dataframe", data, "Series"):
        return [dask.delayed(_columns)(part) for part in data.to_delayed()]
    if isinstance(data, Sequence) and not isinstance(data, str | bytes):
        return list(data)
    if isinstance(data, np.ndarray):
        raise BadArgument("an array has no partitions.", "Pass a list of its parts: np.array_split(array, 8).")
    raise BadArgument(f"the partitions are of type {kind}.", _HOW)


def _is_of(module: str, data: Any, name: str) -> bool:
    """Whether data is of a class of a module, which is not imported for this."""
    return isinstance(data, getattr(sys.modules.get(module), name, ()))


def _blocks(arrays: Mapping[Any, tuple[Sequence[Any], Any]]) -> list[dict[Any, Any]]:
    """The blocks of arrays with named axes: one for each combination of chunks along their axes.

    An array without an axis is in every block along it.
    """
    chunks: dict[Any, tuple[int, ...]] = {}
    for name, (axes, array) in arrays.items():
        if not _is_of("dask.array", array, "Array"):
            continue
        for axis, found in zip(axes, array.chunks, strict=True):
            if chunks.setdefault(axis, found) != found:
                raise BadArgument(
                    f"{name!r} has chunks {found} where another array has {chunks[axis]}.",
                    "Chunk them alike: .rechunk for arrays, .unify_chunks() for xarray.",
                )
    if not chunks:
        raise BadArgument("nothing here is chunked.", "Chunk it (.chunk({'time': 100})), or pass a list of parts.")
    made: list[dict[Any, Any]] = []
    delayed = {name: _delayed(axes, array, chunks) for name, (axes, array) in arrays.items()}
    order = list(chunks)
    for index in np.ndindex(*[len(chunks[axis]) for axis in order]):
        at = dict(zip(order, index, strict=True))
        made.append(
            {
                name: delayed[name][tuple([at[axis] for axis in axes if axis in at])]
                for name, (axes, _) in arrays.items()
            }
        )
    return made


def _delayed(axes: Sequence[Any], array: Any, chunks: Mapping[Any, tuple[int, ...]]) -> Any:
    """The delayed blocks of an array by their indices; one that is in memory is cut like the others."""
    import dask.array

    if not _is_of("dask.array", array, "Array"):
        array = dask.array.from_array(array, chunks=tuple([chunks.get(axis, -1) for axis in axes]))
    return array.to_delayed().reshape([len(chunks[axis]) for axis in axes if axis in chunks])


def _columns(part: Any) -> Any:
    """A part of a DataFrame as a dict of arrays, of a Series as an array."""
    return {name: part[name].to_numpy() for name in part} if hasattr(part, "columns") else part.to_numpy()


__all__ = ["partitions_of"]
