"""Operations of all ranks of a communicator.

Their sizes are compared first: MPI itself may hang or write out of bounds where ranks disagree.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from tapegen.errors import BadArgument
from tapegen.ir.intrinsics import acts
from tapegen.ir.types import FLOAT, INT, Array, TupleOf
from tapegen.rules.implicit import primitive
from tapegen.rules.mpi.messages import communicator


def _of_rank(more: int) -> Any:
    """The result type: an array with so many more axes than `x`, and the order."""
    return lambda order, comm, x, *_: TupleOf((Array(x.dtype, x.rank + more, "C"), FLOAT))


def _agreeing(comm: int, x: np.ndarray, what: str) -> Any:
    """The communicator, where all ranks pass arrays of one size."""
    found, size = communicator(comm), x.nbytes
    least = np.array([size, -size])
    found.Allreduce(least.copy(), least, _op("MIN"))
    if least[0] != -least[1]:
        raise BadArgument(
            f"the ranks pass between {least[0]} and {-least[1]} bytes to {what}; this one {size}, in shape {x.shape}.",
            "Pass arrays of one shape and dtype on all ranks.",
        )
    return found


def _op(name: str) -> Any:
    from mpi4py import MPI

    return getattr(MPI, name)


@acts
@primitive(_of_rank(0))
def summed(order: float, comm: int, x: np.ndarray) -> tuple[np.ndarray, float]:
    """The sum over the ranks, on all of them."""
    x = np.ascontiguousarray(x)
    total = np.empty_like(x)
    _agreeing(comm, x, "Allreduce").Allreduce(x, total)
    return total.reshape(x.shape), order


@acts
@primitive(_of_rank(0))
def reduced(order: float, comm: int, x: np.ndarray, root: int) -> tuple[np.ndarray, float]:
    """The sum over the ranks on one of them, zeros on the others."""
    total = np.zeros(x.shape, x.dtype)
    _agreeing(comm, x, "Reduce").Reduce(np.ascontiguousarray(x), total, root=root)
    return total, order


@acts
@primitive(_of_rank(0))
def broadcast(order: float, comm: int, x: np.ndarray, root: int) -> tuple[np.ndarray, float]:
    """The array of one rank, on all of them."""
    data = np.array(x, order="C")
    _agreeing(comm, x, "Bcast").Bcast(data, root)
    return data, order


@acts
@primitive(_of_rank(1))
def gathered(order: float, comm: int, x: np.ndarray) -> tuple[np.ndarray, float]:
    """The arrays of all ranks, on all of them, along a new first axis."""
    found = _agreeing(comm, x, "Allgather")
    data = np.empty((found.size, *x.shape), x.dtype)
    found.Allgather(np.ascontiguousarray(x), data)
    return data, order


@acts
@primitive(_of_rank(-1))
def scattered_sum(order: float, comm: int, x: np.ndarray) -> tuple[np.ndarray, float]:
    """The part of the sum over the ranks that belongs to this one."""
    data = np.empty(x.shape[1:], x.dtype)
    _agreeing(comm, x, "Reduce_scatter").Reduce_scatter_block(np.ascontiguousarray(x), data)
    return data, order


@acts
@primitive(_of_rank(1))
def collected(order: float, comm: int, x: np.ndarray, root: int) -> tuple[np.ndarray, float]:
    """The arrays of all ranks on one of them, along a new first axis; zeros on the others."""
    found = _agreeing(comm, x, "Gather")
    data = np.zeros((found.size, *x.shape), x.dtype)
    found.Gather(np.ascontiguousarray(x), data if found.rank == root else None, root)
    return data, order


@acts
@primitive(_of_rank(-1))
def dealt(order: float, comm: int, x: np.ndarray, root: int) -> tuple[np.ndarray, float]:
    """The part of the array of one rank that belongs to this one."""
    data = np.empty(x.shape[1:], x.dtype)
    found = _agreeing(comm, x, "Scatter")
    found.Scatter(np.ascontiguousarray(x) if found.rank == root else None, data, root)
    return data, order


@acts
@primitive(lambda order, comm, x, op: TupleOf((Array("bool", x.rank, "C"), FLOAT)))
def extreme(order: float, comm: int, x: np.ndarray, op: str) -> tuple[np.ndarray, float]:
    """Where this rank has the largest ("MAX") or smallest ("MIN") value; of several ranks, the first one."""
    found, x = _agreeing(comm, x, "a reduction"), np.ascontiguousarray(x)
    best = np.empty_like(x)
    found.Allreduce(x, best, _op(op))
    mine = np.where((x == best) | (x != x), found.rank, found.size)
    first = np.empty_like(mine)
    found.Allreduce(mine, first, _op("MIN"))
    return first == found.rank, order


@acts
@primitive(lambda order, comm: TupleOf((FLOAT, INT)))
def synchronized(order: float, comm: int) -> tuple[float, int]:
    """`comm.Barrier()`."""
    communicator(comm).Barrier()
    return order, 0


__all__ = [
    "broadcast",
    "collected",
    "dealt",
    "extreme",
    "gathered",
    "reduced",
    "scattered_sum",
    "summed",
    "synchronized",
]
