"""Derivative rules of communication: what a rank has received goes back to who sent it.

The gradient is that of the sum over the ranks of what each of them returns: every rank seeds its own result.
"""

from __future__ import annotations

import numpy as np

from tapegen.rules.helpers import require
from tapegen.rules.mpi.collectives import (
    broadcast,
    collected,
    dealt,
    extreme,
    gathered,
    reduced,
    scattered_sum,
    summed,
    synchronized,
)
from tapegen.rules.mpi.messages import (
    carries,
    exchanged,
    fetched,
    posted,
    receive_completed,
    receive_started,
    received,
    send_completed,
    send_started,
    sent,
)
from tapegen.rules.mpi.order import begun, ended, finished, seeded, settled
from tapegen.rules.registry import pullback

_ALIKE = "Exchange arrays of one kind, or call Send and Recv."


# ---- order -----------------------------------------------------------------------------------------------------------


@pullback(begun, wrt=("order", "x"), of_complex=True)
def begun_pullback(order, x, *, out_bar):
    order_bar, _ = settled(out_bar)
    return order_bar, ended(np.zeros_like(x) if np.ndim(x) > 0 else 0.0, order_bar)


@begun_pullback.pushforward
def begun_pushforward(order, x, *, order_dot, x_dot):
    return order_dot


@pullback(ended, wrt=("x", "order"), of_complex=True)
def ended_pullback(x, order, *, out_bar):
    return out_bar, seeded(out_bar, order)


@ended_pullback.pushforward
def ended_pushforward(x, order, *, x_dot, order_dot):
    return ended(x_dot, order_dot)


@pullback(finished, wrt=("order",))
def finished_pullback(order, *, out_bar):
    return out_bar[0]


@finished_pullback.pushforward
def finished_pushforward(order, *, order_dot):
    return order_dot, None


# ---- messages --------------------------------------------------------------------------------------------------------


@pullback(sent, wrt=("order", "x"), of_complex=True)
def sent_pullback(order, comm, x, dest, tag, *, out, out_bar):
    if not carries(x.dtype):
        return out_bar[0], None
    x_bar, order_bar = fetched(out_bar[0], comm, np.shape(x), x.dtype, dest, tag, out[1])
    return order_bar, x_bar


@sent_pullback.pushforward
def sent_pushforward(order, comm, x, dest, tag, *, order_dot, x_dot):
    if not carries(x.dtype):
        return order_dot, None
    order_dot, _ = sent(order_dot, comm, x_dot, dest, tag)
    return order_dot, None


@pullback(received, wrt=("order",), of_complex=True)
def received_pullback(order, comm, shape, dtype, source, tag, *, out, out_bar):
    if not carries(dtype):
        return out_bar[1]
    order_bar, _ = posted(out_bar[1], comm, out_bar[0], out[2], out[3], out[4])
    return order_bar


@received_pullback.pushforward
def received_pushforward(order, comm, shape, dtype, source, tag, *, out, order_dot):
    if not carries(dtype):
        return None, order_dot, None, None, None
    data_dot, order_dot, _, _, _ = received(order_dot, comm, shape, dtype, out[2], out[3])
    return data_dot, order_dot, None, None, None


@pullback(exchanged, wrt=("order", "x"), of_complex=True)
def exchanged_pullback(order, comm, x, dest, sendtag, shape, dtype, source, recvtag, *, out, out_bar):
    order_bar = out_bar[1]
    if carries(dtype):
        order_bar, _ = posted(order_bar, comm, out_bar[0], out[3], out[4], out[5])
    if not carries(x.dtype):
        return order_bar, None
    x_bar, order_bar = fetched(order_bar, comm, np.shape(x), x.dtype, dest, sendtag, out[2])
    return order_bar, x_bar


@exchanged_pullback.pushforward
def exchanged_pushforward(order, comm, x, dest, sendtag, shape, dtype, source, recvtag, *, out, order_dot, x_dot):
    if carries(x.dtype) and carries(dtype):
        data_dot, order_dot, _, _, _, _ = exchanged(order_dot, comm, x_dot, dest, sendtag, shape, dtype, out[3], out[4])
        return data_dot, order_dot, None, None, None, None
    require(not carries(x.dtype) and not carries(dtype), "Sendrecv exchanges floats for integers here.", _ALIKE)
    return None, order_dot, None, None, None, None


@pullback(send_started, wrt=("order", "x"), of_complex=True)
def send_started_pullback(order, comm, x, dest, tag, request, *, out, out_bar):
    if not carries(x.dtype):
        return out_bar[0], None
    x_bar, order_bar = fetched(out_bar[0], comm, np.shape(x), x.dtype, dest, tag, out[2])
    return order_bar, x_bar


@send_started_pullback.pushforward
def send_started_pushforward(order, comm, x, dest, tag, request, *, out, order_dot, x_dot):
    if not carries(x.dtype):
        return order_dot, None, None
    order_dot, _, _ = send_started(order_dot, comm, x_dot, dest, tag, out[1])
    return order_dot, None, None


@pullback(send_completed, wrt=("order",))
def send_completed_pullback(order, request, floats, *, out_bar):
    return out_bar[0]


@send_completed_pullback.pushforward
def send_completed_pushforward(order, request, floats, *, order_dot):
    if not floats:
        return order_dot, None
    order_dot, _ = send_completed(order_dot, request, floats)
    return order_dot, None


@pullback(receive_started, wrt=("order",))
def receive_started_pullback(order, comm, shape, dtype, source, tag, request, *, out_bar):
    return out_bar[0]


@receive_started_pullback.pushforward
def receive_started_pushforward(order, comm, shape, dtype, source, tag, request, *, out, order_dot):
    if not carries(dtype):
        return order_dot, None
    order_dot, _ = receive_started(order_dot, comm, shape, dtype, source, tag, out[1])
    return order_dot, None


@pullback(receive_completed, wrt=("order",), of_complex=True)
def receive_completed_pullback(order, request, comm, shape, dtype, source, *, out, out_bar):
    if not carries(dtype):
        return out_bar[1]
    order_bar, _ = posted(out_bar[1], comm, out_bar[0], source, out[2], out[3])
    return order_bar


@receive_completed_pullback.pushforward
def receive_completed_pushforward(order, request, comm, shape, dtype, source, *, order_dot):
    if not carries(dtype):
        return None, order_dot, None, None
    data_dot, order_dot, _, _ = receive_completed(order_dot, request, comm, shape, dtype, source)
    return data_dot, order_dot, None, None


# ---- collective operations -------------------------------------------------------------------------------------------


@pullback(summed, wrt=("order", "x"), of_complex=True)
def summed_pullback(order, comm, x, *, out_bar):
    x_bar, order_bar = summed(out_bar[1], comm, out_bar[0])
    return order_bar, x_bar


@summed_pullback.pushforward
def summed_pushforward(order, comm, x, *, order_dot, x_dot):
    return summed(order_dot, comm, x_dot)


@pullback(reduced, wrt=("order", "x"), of_complex=True)
def reduced_pullback(order, comm, x, root, *, out_bar):
    x_bar, order_bar = broadcast(out_bar[1], comm, out_bar[0], root)
    return order_bar, x_bar


@reduced_pullback.pushforward
def reduced_pushforward(order, comm, x, root, *, order_dot, x_dot):
    return reduced(order_dot, comm, x_dot, root)


@pullback(broadcast, wrt=("order", "x"), of_complex=True)
def broadcast_pullback(order, comm, x, root, *, out_bar):
    x_bar, order_bar = reduced(out_bar[1], comm, out_bar[0], root)
    return order_bar, x_bar


@broadcast_pullback.pushforward
def broadcast_pushforward(order, comm, x, root, *, order_dot, x_dot):
    return broadcast(order_dot, comm, x_dot, root)


@pullback(gathered, wrt=("order", "x"), of_complex=True)
def gathered_pullback(order, comm, x, *, out_bar):
    x_bar, order_bar = scattered_sum(out_bar[1], comm, out_bar[0])
    return order_bar, x_bar


@gathered_pullback.pushforward
def gathered_pushforward(order, comm, x, *, order_dot, x_dot):
    return gathered(order_dot, comm, x_dot)


@pullback(collected, wrt=("order", "x"), of_complex=True)
def collected_pullback(order, comm, x, root, *, out_bar):
    x_bar, order_bar = dealt(out_bar[1], comm, out_bar[0], root)
    return order_bar, x_bar


@collected_pullback.pushforward
def collected_pushforward(order, comm, x, root, *, order_dot, x_dot):
    return collected(order_dot, comm, x_dot, root)


@pullback(dealt, wrt=("order", "x"), of_complex=True)
def dealt_pullback(order, comm, x, root, *, out_bar):
    x_bar, order_bar = collected(out_bar[1], comm, out_bar[0], root)
    return order_bar, x_bar


@dealt_pullback.pushforward
def dealt_pushforward(order, comm, x, root, *, order_dot, x_dot):
    return dealt(order_dot, comm, x_dot, root)


@pullback(extreme, wrt=("order", "x"))
def extreme_pullback(order, comm, x, op, *, out_bar):
    return out_bar[1], None


@extreme_pullback.pushforward
def extreme_pushforward(order, comm, x, op, *, order_dot, x_dot):
    return None, order_dot


@pullback(synchronized, wrt=("order",))
def synchronized_pullback(order, comm, *, out_bar):
    return out_bar[0]


@synchronized_pullback.pushforward
def synchronized_pushforward(order, comm, *, order_dot):
    return order_dot, None
