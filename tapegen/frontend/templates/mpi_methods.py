"""Methods of mpi4py's communicators as text over the functions of `tapegen.rules.mpi`.

Each one has the parameters of the method, after the communicator and what this process is in it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from types import MappingProxyType
from typing import Any

import numpy as np

from tapegen.rules.helpers import require
from tapegen.rules.mpi.collectives import (
    broadcast,
    collected,
    dealt,
    extreme,
    gathered,
    reduced,
    summed,
    synchronized,
)
from tapegen.rules.mpi.messages import (
    carries,
    exchanged,
    receive_completed,
    receive_started,
    received,
    send_completed,
    send_started,
    sent,
)

PROC_NULL = -1
ANY_SOURCE, ANY_TAG = -2, -1


def ordered(operation: Callable[..., Any], *args: Any) -> Any:
    """Call an operation with the order of the program, which it changes; returns its other results."""
    raise AssertionError("part of a program")


def is_waited_for(site: int) -> None:
    """Note that the request of a call is waited for."""
    raise AssertionError("part of a program")


def new_site() -> int:
    """The number of a call that starts a message."""
    raise AssertionError("part of a program")


# ---- messages --------------------------------------------------------------------------------------------------------


def send(comm: Any, rank: int, size: int, buf: Any, dest: int, tag: int = 0) -> None:
    ordered(sent, comm, buf, dest, tag)


def recv(comm: Any, rank: int, size: int, buf: Any, source: int = ANY_SOURCE, tag: int = ANY_TAG) -> None:
    data, _, _, _ = ordered(received, comm, np.shape(buf), buf.dtype, source, tag)
    if source != PROC_NULL:
        buf[...] = data


def sendrecv(
    comm: Any,
    rank: int,
    size: int,
    sendbuf: Any,
    dest: int,
    sendtag: int = 0,
    recvbuf: Any = None,
    source: int = ANY_SOURCE,
    recvtag: int = ANY_TAG,
) -> None:
    data, _, _, _, _ = ordered(
        exchanged, comm, sendbuf, dest, sendtag, np.shape(recvbuf), recvbuf.dtype, source, recvtag
    )
    if source != PROC_NULL:
        recvbuf[...] = data


class SendRequest:
    """What Isend returns."""

    __tapegen_inside__ = "a request of MPI"

    def __init__(self, request: int, site: int, floats: bool) -> None:
        self.request, self.site, self.floats = request, site, floats

    def Wait(self, status: None = None) -> bool:
        is_waited_for(self.site)
        ordered(send_completed, self.request, self.floats)
        return True

    wait = Wait


class ReceiveRequest:
    """What Irecv returns: its buffer has the message after `Wait`."""

    __tapegen_inside__ = "a request of MPI"

    def __init__(self, request: int, site: int, comm: Any, buf: Any, source: int) -> None:
        self.request, self.site, self.comm, self.buf, self.source = request, site, comm, buf, source

    def Wait(self, status: None = None) -> bool:
        is_waited_for(self.site)
        buf = self.buf
        data, _, _ = ordered(receive_completed, self.request, self.comm, np.shape(buf), buf.dtype, self.source)
        if self.source != PROC_NULL:
            buf[...] = data
        return True

    wait = Wait


def isend(comm: Any, rank: int, size: int, buf: Any, dest: int, tag: int = 0) -> SendRequest:
    request, _ = ordered(send_started, comm, buf, dest, tag, -1)
    return SendRequest(request, new_site(), carries(buf.dtype))


def irecv(comm: Any, rank: int, size: int, buf: Any, source: int = ANY_SOURCE, tag: int = ANY_TAG) -> ReceiveRequest:
    request = ordered(receive_started, comm, np.shape(buf), buf.dtype, source, tag, -1)
    return ReceiveRequest(request, new_site(), comm, buf, source)


def wait_all(requests: Sequence[Any], statuses: None = None) -> bool:
    for request in requests:
        request.Wait()
    return True


# ---- collective operations -------------------------------------------------------------------------------------------


def bcast(comm: Any, rank: int, size: int, buf: Any, root: int = 0) -> None:
    buf[...] = ordered(broadcast, comm, buf, root)


def reduction(comm: Any, x: Any, op: str) -> Any:
    """What is summed over the ranks: of a maximum, what the first rank that has it contributes, and zeros."""
    if op == "SUM":
        return x
    return np.where(ordered(extreme, comm, x, op), x, np.zeros_like(x))


def allreduce(comm: Any, rank: int, size: int, sendbuf: Any, recvbuf: Any, op: str = "SUM") -> None:
    if isinstance(sendbuf, str):
        recvbuf[...] = ordered(summed, comm, reduction(comm, recvbuf, op))
    else:
        recvbuf[...] = np.reshape(ordered(summed, comm, reduction(comm, sendbuf, op)), np.shape(recvbuf))


def allreduce_object(comm: Any, rank: int, size: int, sendobj: Any, op: str = "SUM") -> Any:
    if np.ndim(sendobj) > 0:
        return ordered(summed, comm, reduction(comm, sendobj, op))
    return ordered(summed, comm, reduction(comm, np.full(1, sendobj), op))[0]


def reduce(comm: Any, rank: int, size: int, sendbuf: Any, recvbuf: Any, op: str = "SUM", root: int = 0) -> None:
    if isinstance(sendbuf, str):
        total = ordered(reduced, comm, reduction(comm, recvbuf, op), root)
    else:
        total = ordered(reduced, comm, reduction(comm, sendbuf, op), root)
    if rank == root:
        recvbuf[...] = np.reshape(total, np.shape(recvbuf))


def allgather(comm: Any, rank: int, size: int, sendbuf: Any, recvbuf: Any) -> None:
    require(not isinstance(sendbuf, str), "Allgather with MPI.IN_PLACE is not followed.", "Pass the part of this rank.")
    recvbuf[...] = np.reshape(ordered(gathered, comm, sendbuf), np.shape(recvbuf))


def gather(comm: Any, rank: int, size: int, sendbuf: Any, recvbuf: Any, root: int = 0) -> None:
    require(not isinstance(sendbuf, str), "Gather with MPI.IN_PLACE is not followed.", "Pass the part of this rank.")
    data = ordered(collected, comm, sendbuf, root)
    if rank == root:
        recvbuf[...] = np.reshape(data, np.shape(recvbuf))


def scatter(comm: Any, rank: int, size: int, sendbuf: Any, recvbuf: Any, root: int = 0) -> None:
    require(not isinstance(recvbuf, str), "Scatter with MPI.IN_PLACE is not followed.", "Pass a buffer for this rank.")
    if rank == root:
        recvbuf[...] = ordered(dealt, comm, np.reshape(sendbuf, (size,) + np.shape(recvbuf)), root)
    else:
        recvbuf[...] = ordered(dealt, comm, np.zeros((size,) + np.shape(recvbuf), recvbuf.dtype), root)


def barrier(comm: Any, rank: int, size: int) -> None:
    ordered(synchronized, comm)


def get_rank(comm: Any, rank: int, size: int) -> int:
    return rank


def get_size(comm: Any, rank: int, size: int) -> int:
    return size


METHODS: Mapping[str, Callable[..., Any]] = MappingProxyType(
    {
        "Send": send,
        "Recv": recv,
        "Isend": isend,
        "Irecv": irecv,
        "Sendrecv": sendrecv,
        "Bcast": bcast,
        "Reduce": reduce,
        "Allreduce": allreduce,
        "allreduce": allreduce_object,
        "Allgather": allgather,
        "Gather": gather,
        "Scatter": scatter,
        "Barrier": barrier,
        "barrier": barrier,
        "Get_rank": get_rank,
        "Get_size": get_size,
    }
)
"""Methods of communicators."""
