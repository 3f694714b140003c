"""Messages of two ranks.

Messages of the backward sweep are numbered: the k-th message of the program with a tag from one rank to another has the
number k on both sides.  They never block the sender, and a receiver keeps those that it does not want yet, so no order
in which ranks come to them can make ranks wait for each other.
"""

from __future__ import annotations

from collections import Counter, defaultdict, deque
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np

from tapegen.errors import BadArgument
from tapegen.ir.intrinsics import acts
from tapegen.ir.types import FLOAT, INT, Array, TupleOf
from tapegen.rules.helpers import compile_time
from tapegen.rules.implicit import primitive

RESERVED = 32767
"""The tag of the backward sweep: the largest that every MPI has."""

_sent: Counter[tuple[int, int, int]] = Counter()
_received: Counter[tuple[int, int, int]] = Counter()
_requests: dict[int, deque[_Message]] = {}
_lines: dict[tuple[int, int], deque[_Message]] = {}  # requested from a rank, and not numbered yet
_posts: list[tuple[Any, Any]] = []  # requests, and the memory that they read
_mail: dict[tuple[int, int, int, int], deque[np.ndarray]] = defaultdict(deque)
_made = 0


@cache
def _mpi() -> Any:
    from mpi4py import MPI

    return MPI


def communicator(handle: int) -> Any:
    """The communicator that an integer denotes."""
    return _mpi().Comm.f2py(handle)


def array_of(dtype: Any, shape: Any) -> Array:
    """The type of an array that is received, from the types of `shape`."""
    return Array(np.dtype(dtype.value).name, len(shape.items if isinstance(shape, TupleOf) else shape), "C")


@compile_time
def carries(dtype: Any) -> bool:
    """Whether arrays of a dtype carry derivatives."""
    return bool(np.issubdtype(dtype, np.inexact))


# ---- of the program --------------------------------------------------------------------------------------------------


@acts
@primitive(lambda order, comm, x, dest, tag: TupleOf((FLOAT, INT)))
def sent(order: float, comm: int, x: Any, dest: int, tag: int) -> tuple[float, int]:
    """`comm.Send(x, dest, tag)`; returns the number of the message too."""
    _check_tag(tag)
    communicator(comm).Send(x, dest, tag)
    return order, _count(_sent, comm, dest, tag)


@acts
@primitive(lambda order, comm, shape, dtype, source, tag: TupleOf((array_of(dtype, shape), FLOAT, INT, INT, INT)))
def received(
    order: float, comm: int, shape: Sequence[int], dtype: Any, source: int, tag: int
) -> tuple[np.ndarray, float, int, int, int]:
    """What `comm.Recv` receives, and who sent it, with which tag and number."""
    _check_tag(tag)
    data = np.zeros(shape, dtype)
    mpi, status = _mpi(), _mpi().Status()
    if source == mpi.PROC_NULL:
        return data, order, source, tag, -1
    if tag == mpi.ANY_TAG:
        _matched(comm, source, status).Recv(data, status)
    else:
        communicator(comm).Recv(data, source, tag, status)
    return data, order, *_seen(comm, status, data)


@acts
@primitive(
    lambda order, comm, x, dest, sendtag, shape, dtype, source, recvtag: TupleOf(
        (array_of(dtype, shape), FLOAT, INT, INT, INT, INT)
    )
)
def exchanged(
    order: float,
    comm: int,
    x: Any,
    dest: int,
    sendtag: int,
    shape: Sequence[int],
    dtype: Any,
    source: int,
    recvtag: int,
) -> tuple[np.ndarray, float, int, int, int, int]:
    """`comm.Sendrecv`: a message is sent and another one received; neither waits for the other."""
    _check_tag(sendtag)
    request = communicator(comm).Isend(x, dest, sendtag)
    number = _count(_sent, comm, dest, sendtag)
    data, order, found, tag, count = received(order, comm, shape, dtype, source, recvtag)
    request.Wait()
    return data, order, number, found, tag, count


# ---- requests of the program -----------------------------------------------------------------------------------------


@acts
@primitive(lambda order, comm, x, dest, tag, request: TupleOf((FLOAT, INT, INT)))
def send_started(order: float, comm: int, x: Any, dest: int, tag: int, request: int) -> tuple[float, int, int]:
    """`comm.Isend`; returns the request, a new one for -1, and the number of the message."""
    _check_tag(tag)
    made = _Message(communicator(comm).Isend(x, dest, tag), x, tag)
    return order, _kept(made, request), _count(_sent, comm, dest, tag)


@acts
@primitive(lambda order, request, floats: TupleOf((FLOAT, INT)))
def send_completed(order: float, request: int, floats: bool) -> tuple[float, int]:
    """`request.Wait()` of a message that is sent; of floats, it has a tangent."""
    _taken(request).request.Wait()
    return order, 0


@acts
@primitive(lambda order, comm, shape, dtype, source, tag, request: TupleOf((FLOAT, INT)))
def receive_started(
    order: float, comm: int, shape: Sequence[int], dtype: Any, source: int, tag: int, request: int
) -> tuple[float, int]:
    """`comm.Irecv`; returns the request, a new one for -1."""
    _check_tag(tag)
    mpi = _mpi()
    if source == mpi.ANY_SOURCE:
        raise BadArgument(
            "which rank a request of any source receives from is not followed.",
            "Name the source of Irecv, or use Recv.",
        )
    data = np.zeros(shape, dtype)
    made = _Message(communicator(comm).Irecv(data, source, tag), data, tag)
    if source != mpi.PROC_NULL:
        line = _lines.setdefault((comm, source), deque())
        line.append(made)
        _number(comm, source, None)
    return order, _kept(made, request)


@acts
@primitive(lambda order, request, comm, shape, dtype, source: TupleOf((array_of(dtype, shape), FLOAT, INT, INT)))
def receive_completed(
    order: float, request: int, comm: int, shape: Sequence[int], dtype: Any, source: int
) -> tuple[np.ndarray, float, int, int]:
    """`request.Wait()` of a message that is received; returns its tag and number too."""
    made = _taken(request)
    made.wait()
    if source != _mpi().PROC_NULL and made.number < 0:
        _number(comm, source, made)
    return made.data, order, made.tag, made.number


@dataclass(slots=True, eq=False)
class _Message:
    """A message that was started."""

    request: Any
    data: Any
    tag: int
    number: int = -1
    done: bool = False

    def wait(self) -> None:
        """Wait until it is received."""
        if not self.done:
            status = _mpi().Status()
            self.request.Wait(status)
            self.done = True
            if status.Get_source() != _mpi().PROC_NULL:
                _check_size(status, self.data)
                self.tag = status.Get_tag()


def _number(comm: int, source: int, last: _Message | None) -> None:
    """Number the messages that are requested from a rank, in the order of the requests, up to `last` at least.

    That is the order in which MPI matches them.  The number of a message depends on the tags of those before it; where
    one of any tag was requested before one that is complete, it has been sent, and to wait for it is safe.
    """
    line = _lines.get((comm, source), deque())
    while line and (last is not None or line[0].done or line[0].tag != _mpi().ANY_TAG):
        first = line.popleft()
        if first.tag == _mpi().ANY_TAG:
            first.wait()
        first.number = _count(_received, comm, source, first.tag)
        if first is last:
            last = None


def _kept(made: _Message, request: int) -> int:
    global _made
    if request < 0:
        request = _made = _made + 1
    _requests.setdefault(request, deque()).append(made)
    return request


def _taken(request: int) -> _Message:
    """The oldest message of a request: that of the program, then that of its tangent."""
    waiting = _requests.get(request)
    if waiting is None:
        raise BadArgument("a request is waited for twice.", "Wait once for each Isend and Irecv.")
    made = waiting.popleft()
    if not waiting:
        del _requests[request]
    return made


def check_requests() -> None:
    """Refuse requests that nobody has waited for.

    Raises
    ------
    BadArgument
        If there are any; they are forgotten.
    """
    if _requests:
        count = len(_requests)
        _requests.clear()
        _lines.clear()
        raise BadArgument(
            f"{count} messages were started by Isend or Irecv and not waited for.", "Call Wait of each request."
        )


# ---- of the backward sweep -------------------------------------------------------------------------------------------


@acts
@primitive(lambda order, comm, x, dest, tag, number: TupleOf((FLOAT, INT)))
def posted(order: float, comm: int, x: Any, dest: int, tag: int, number: int) -> tuple[float, int]:
    """Send the cotangent of what was received from `dest`, without waiting."""
    if dest != _mpi().PROC_NULL:
        head = np.array([tag, number], np.int64).tobytes()
        data = head + np.ascontiguousarray(x).tobytes()
        _posts[:] = [(request, kept) for request, kept in _posts if not request.Test()]
        _posts.append((communicator(comm).Isend([data, _mpi().BYTE], dest, RESERVED), data))
    return order, 0


@acts
@primitive(lambda order, comm, shape, dtype, source, tag, number: TupleOf((array_of(dtype, shape), FLOAT)))
def fetched(
    order: float, comm: int, shape: Sequence[int], dtype: Any, source: int, tag: int, number: int
) -> tuple[np.ndarray, float]:
    """The cotangent of what was sent to `source`."""
    if source == _mpi().PROC_NULL:
        return np.zeros(shape, dtype), order
    waiting = _mail[comm, source, tag, number]
    while not waiting:
        status = _mpi().Status()
        _keep(comm, communicator(comm).Mprobe(source, RESERVED, status), status)
    return np.reshape(waiting.popleft().view(dtype), shape), order


def _keep(comm: int, message: Any, status: Any) -> None:
    """Receive a message of the backward sweep."""
    data = np.empty(status.Get_count(_mpi().BYTE), np.uint8)
    message.Recv([data, _mpi().BYTE])
    tag, number = data[:16].view(np.int64).tolist()
    _mail[comm, status.Get_source(), tag, number].append(data[16:].copy())


def wait_for_posts() -> None:
    """Wait until all messages of the backward sweep have arrived."""
    for request, _ in _posts:
        request.Wait()
    _posts.clear()


# ---- common ----------------------------------------------------------------------------------------------------------


def _matched(comm: int, source: int, status: Any) -> Any:
    """The next message of the program with any tag; one of the backward sweep of a faster rank is kept."""
    while True:
        message = communicator(comm).Mprobe(source, _mpi().ANY_TAG, status)
        if status.Get_tag() != RESERVED:
            return message
        _keep(comm, message, status)


def _seen(comm: int, status: Any, data: np.ndarray) -> tuple[int, int, int]:
    """Source, tag and number of a message that was received."""
    _check_size(status, data)
    source, tag = status.Get_source(), status.Get_tag()
    if line := _lines.get((comm, source)):
        _number(comm, source, line[-1])
    return source, tag, _count(_received, comm, source, tag)


def _count(counter: Counter[tuple[int, int, int]], comm: int, other: int, tag: int) -> int:
    counter[comm, other, tag] += 1
    return counter[comm, other, tag]


def _check_tag(tag: int) -> None:
    if tag == RESERVED:
        raise BadArgument(f"the tag {RESERVED} is that of backward sweeps.", "Use another one.")


def _check_size(status: Any, data: np.ndarray) -> None:
    count = status.Get_count(_mpi().BYTE)
    if count != data.nbytes:
        raise BadArgument(
            f"rank {status.Get_source()} sent {count} bytes for a buffer of shape {data.shape} and dtype {data.dtype}, "
            f"which has {data.nbytes}.",
            "Send and receive arrays of one size and dtype.",
        )


__all__ = [
    "RESERVED",
    "array_of",
    "carries",
    "check_requests",
    "communicator",
    "exchanged",
    "fetched",
    "posted",
    "receive_completed",
    "receive_started",
    "received",
    "send_completed",
    "send_started",
    "sent",
    "wait_for_posts",
]
