"""What each rank of `test_mpi` runs: derivatives of functions that communicate, beside differences.

Differences are of plain Python, all ranks together: one element of one rank is changed at a time.
"""

from __future__ import annotations

import faulthandler
import json
import linecache
import random
import re
import sys
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest
from mpi4py import MPI

import tapegen as tg

comm = MPI.COMM_WORLD
rank, size = comm.rank, comm.size
after, before = (rank + 1) % size, (rank - 1) % size
right = rank + 1 if rank + 1 < size else MPI.PROC_NULL
left = rank - 1 if rank > 0 else MPI.PROC_NULL


# ---- functions that communicate --------------------------------------------------------------------------------------


def halo(u: Any) -> Any:
    """A chain of ranks, by requests in a time loop, inside of a function that is called."""
    w = np.zeros(u.size + 2)
    w[1:-1] = u
    for _ in range(3):
        _exchange(w)
        w[1:-1] += 0.1 * w[1:-1] * (w[:-2] - 2.0 * w[1:-1] + w[2:])
    return np.sum(w[1:-1] ** 2) * (rank + 1)


def _exchange(w: Any) -> None:
    requests = []
    if rank > 0:
        requests.append(comm.Isend(w[1:2], rank - 1, 1))
        requests.append(comm.Irecv(w[0:1], rank - 1, 2))
    if rank + 1 < size:
        requests.append(comm.Isend(w[-2:-1], rank + 1, 2))
        requests.append(comm.Irecv(w[-1:], rank + 1, 1))
    MPI.Request.Waitall(requests)


def ring(u: Any) -> Any:
    v, x, total = np.empty_like(u), u.copy(), 0.0
    for _ in range(2):
        comm.Sendrecv(x * x, dest=after, recvbuf=v, source=before)
        x = np.sin(v) + 0.1 * x
        total += np.sum(x * v)
    return total


def open_chain(u: Any) -> Any:
    """What is received from no rank leaves the buffer as it is."""
    v = u.copy()
    comm.Sendrecv(u**2, right, 5, v, left, 5)
    comm.Send(v, right, 7)
    comm.Recv(v, left, 7)
    return np.sum(v**2)


def any_source(u: Any) -> Any:
    """The rank that receives remembers who sent."""
    if rank > 0:
        comm.Send(np.sin(u), 0, 10 + rank)
        return np.sum(u**3)
    for _ in range(1, size):
        v = np.empty_like(u)
        comm.Recv(v, MPI.ANY_SOURCE, MPI.ANY_TAG)
        u = u * v
    return np.sum(u)


def crossed(u: Any) -> Any:
    """Requests that are completed in another order than they were made, of one tag and of any tag."""
    a, b, c, d = np.empty_like(u), np.empty_like(u), np.empty_like(u), np.empty_like(u)
    s1 = comm.Isend(u * u, after)
    s2 = comm.Isend(u * 3.0, after, 0)
    r1 = comm.Irecv(a, before)
    r2 = comm.Irecv(b, before, 0)
    r2.Wait()
    r1.Wait()
    s2.Wait()
    s1.Wait()
    s3 = comm.Isend(a * b, after)
    r3 = comm.Irecv(c, before)
    s4 = comm.Isend(a + b * b, after)
    r4 = comm.Irecv(d, before)
    r4.wait()
    s4.Wait()
    r3.Wait()
    s3.wait()
    return np.sum(c * d * d)


def sums(u: Any) -> Any:
    t = np.empty_like(u)
    comm.Allreduce(u * u, t, op=MPI.SUM)
    v = u * t
    comm.Allreduce(MPI.IN_PLACE, v)
    return comm.allreduce(np.sum(v * u)) * np.sum(u)


def rooted(u: Any) -> Any:
    b = u * u
    comm.Bcast(b, root=size - 1)
    v = b * u
    total = np.zeros_like(u)
    comm.Reduce([v, MPI.DOUBLE], [total, MPI.DOUBLE], root=0)
    return np.sum(total * u) if rank == 0 else np.sum(np.sin(v))


def gathers(u: Any) -> Any:
    whole = np.empty((size, u.size))
    comm.Allgather(u * u, whole)
    parts = np.empty((size, u.size)) if rank == 1 else None
    comm.Gather(u * whole[0], parts, root=1)
    mine = np.empty_like(u)
    comm.Scatter(parts * parts if rank == 1 else None, mine, root=1)
    comm.Barrier()
    return np.sum(mine * whole[rank - 1])


def extremes(u: Any) -> Any:
    t, b = np.empty_like(u), np.zeros_like(u)
    comm.Allreduce(u * u, t, op=MPI.MAX)
    comm.Reduce(u, b, op=MPI.MIN, root=0)
    return np.sum(t * u + b) * comm.allreduce(np.sum(u), op=MPI.MIN)


def until(u: Any) -> Any:
    """All ranks make as many iterations as the data of all ask for."""
    x, v = u.copy(), np.empty_like(u)
    while comm.allreduce(np.sum(x * x)) > 1.0:
        x = 0.6 * x
    comm.Sendrecv(x, after, 0, v, before, 0)
    return np.sum(x * v)


def passed_on(u: Any) -> Any:
    """The first rank returns a constant, the others only pass on what they receive."""
    v = np.ones_like(u)
    if rank == 0:
        comm.Send(u, 1)
        return 3.0
    comm.Recv(v, rank - 1)
    if rank + 1 < size:
        comm.Send(v * v, rank + 1)
        return 0
    return np.sum(v)


def all_to_all(u: Any) -> Any:
    """Requests of both kinds in one list, which grows in loops over the ranks."""
    requests, buffers = [], []
    for other in range(size):
        if other != rank:
            b = np.empty_like(u)
            buffers.append(b)
            requests.append(comm.Irecv(b, other))
    for other in range(size):
        if other != rank:
            requests.append(comm.Isend(u * (other + 1), other))
    for request in requests:
        request.Wait()
    return sum(np.sum(b * b) for b in buffers) + np.sum(u)


def pipelined(u: Any) -> Any:
    """Requests that one iteration makes and the next one waits for."""
    x, v = u.copy(), np.empty_like(u)
    s, r = comm.Isend(x, after), comm.Irecv(v, before)
    for _ in range(3):
        r.Wait()
        s.Wait()
        x = x * v
        v = np.empty_like(u)
        s, r = comm.Isend(x, after), comm.Irecv(v, before)
    r.Wait()
    s.Wait()
    return np.sum(x * v)


def integers(u: Any) -> Any:
    """Integers have no adjoint; the messages beside them do."""
    count = np.array([rank + 2])
    other, v = np.empty_like(count), np.empty_like(u)
    request = comm.Isend(count, after, 3)
    comm.Recv(other, before, 3)
    request.Wait()
    comm.Sendrecv(u * other[0], after, 4, v, before, 4)
    return np.sum(v * u)


FUNCTIONS: list[Callable[[Any], Any]] = [
    halo,
    ring,
    open_chain,
    any_source,
    crossed,
    sums,
    rooted,
    gathers,
    extremes,
    until,
    passed_on,
    all_to_all,
    pipelined,
    integers,
]


def random_program(seed: int) -> Callable[[Any], Any]:
    """Rounds of requests between random ranks, which are made and waited for in random orders."""
    rng = random.Random(seed)
    lines = ["def program(u):", "    total = 0.0"]
    made = 0
    for _ in range(3):
        starts: list[str] = []
        waits: list[str] = []
        uses: list[str] = []
        for source in range(size):
            for dest in range(size):
                wild = rng.random() < 0.4
                for _ in range(rng.choice([0, 1, 1, 2])):
                    made += 1
                    tag = rng.choice([0, 1])
                    if source == rank:
                        starts.append(f"    s{made} = comm.Isend(u * {made / 10}, {dest}, {tag})")
                        waits.append(f"    s{made}.Wait()")
                    if dest == rank:
                        named = "" if wild else f", {tag}"
                        starts.append(f"    b{made} = np.empty_like(u); r{made} = comm.Irecv(b{made}, {source}{named})")
                        waits.append(f"    r{made}.Wait()")
                        uses.append(f"    total += np.sum(b{made} * b{made} * {made}.0); u = np.sin(u + b{made})")
        own = random.Random(seed * 100 + rank)
        for part in (starts, waits):
            own.shuffle(part)
        lines += [*starts, *waits, *uses]
    text = "\n".join([*lines, "    return total", ""])
    name = f"<random program {seed}>"
    linecache.cache[name] = (len(text), None, text.splitlines(True), name)
    space: dict[str, Any] = {"np": np, "comm": comm, "__name__": __name__}
    exec(compile(text, name, "exec"), space)
    return space["program"]


# ---- checks ----------------------------------------------------------------------------------------------------------


def differences(function: Callable[[Any], Any], points: np.ndarray) -> np.ndarray:
    """The derivatives of the sum over the ranks, by central differences."""
    found, step = np.zeros(points.shape), 1e-6
    for index in np.ndindex(*points.shape):
        for sign in (1.0, -1.0):
            moved = points.copy()
            moved[index] += sign * step
            comm.Barrier()  # a message of any source belongs to this call
            found[index] += sign * comm.allreduce(function(moved[rank])) / (2.0 * step)
    return found


def check(function: Callable[[Any], Any]) -> None:
    """Compare value, gradient, pullback and tangent."""
    points = np.random.default_rng(0).uniform(0.5, 1.5, (size, 3))
    u, direction = points[rank], np.cos(points[rank])
    want = differences(function, points)[rank]
    comm.Barrier()
    expected = function(u.copy())
    comm.Barrier()
    value, gradient = tg.value_and_grad(function)(u.copy())
    comm.Barrier()
    np.testing.assert_allclose(value, expected, rtol=1e-14)  # messages of any source are multiplied in any order
    np.testing.assert_allclose(gradient, want, rtol=1e-6, atol=1e-7)
    value, pullback = tg.vjp(function, u.copy())
    for factor in (1.0, 2.0):
        comm.Barrier()
        np.testing.assert_allclose(pullback(factor), factor * gradient, rtol=1e-14)
    comm.Barrier()
    _, tangent = tg.jvp(function, (u.copy(),), (direction,))
    comm.Barrier()
    np.testing.assert_allclose(comm.allreduce(tangent), comm.allreduce(gradient @ direction), rtol=1e-10)


def check_random() -> None:
    for seed in range(4):
        function = random_program(seed)
        points = np.random.default_rng(seed).uniform(0.5, 1.5, (size, 2))
        value, gradient = tg.value_and_grad(function)(points[rank].copy())
        assert value == function(points[rank].copy())
        want = differences(function, points)[rank]
        np.testing.assert_allclose(gradient, want, rtol=1e-6, atol=1e-6)


def check_communicator_as_argument() -> None:
    def energy(world: Any, u: Any) -> Any:
        t = np.empty_like(u)
        world.Allreduce(u * u, t)
        return np.sum(t * world.Get_size())

    half = comm.Split(rank % 2)
    for world in (comm, half):
        gradient = tg.grad(energy, wrt="u")(world, np.array([1.0, 2.0]))
        np.testing.assert_allclose(gradient, world.size**2 * np.array([2.0, 4.0]))


def check_tie() -> None:
    """The first rank that has the maximum has the derivative."""

    def largest(u: Any) -> Any:
        return comm.allreduce(u, op=MPI.MAX)

    assert tg.grad(largest)(2.0) == (size if rank == 0 else 0.0)


# ---- refusals --------------------------------------------------------------------------------------------------------


def never_waited(u: Any) -> Any:
    comm.Isend(u, after)
    v = np.empty_like(u)
    comm.Recv(v, before)
    return np.sum(v)


def waited_on_one_path(u: Any) -> Any:
    request = comm.Isend(u, after)
    v = np.empty_like(u)
    comm.Recv(v, before)
    if u[0] < 0.0:
        request.Wait()
    return np.sum(v)


def waited_twice(u: Any) -> Any:
    v = np.empty_like(u)
    sent, request = comm.Isend(u, after), comm.Irecv(v, before)
    request.Wait()
    request.Wait()
    sent.Wait()
    return np.sum(v)


def of_another_size(u: Any) -> Any:
    v = np.empty(4)
    comm.Sendrecv(u, after, 0, v, before)
    return np.sum(v)


def of_different_sizes(u: Any) -> Any:
    t = np.zeros(3 if rank else 2)
    comm.Allreduce(u[: t.size].copy(), t)
    return np.sum(t)


def request_of_any_source(u: Any) -> Any:
    v = np.empty_like(u)
    request = comm.Irecv(v)
    request.Wait()
    return np.sum(v)


def product(u: Any) -> Any:
    t = np.zeros(3)
    comm.Allreduce(u, t, op=MPI.PROD)
    return np.sum(t)


def synchronous(u: Any) -> Any:
    comm.Ssend(u, 0)
    return np.sum(u)


def part_of_buffer(u: Any) -> Any:
    comm.Send([u, 2, MPI.DOUBLE], 0)
    return np.sum(u)


def with_status(u: Any) -> Any:
    comm.Recv(u, status=MPI.Status())
    return np.sum(u)


def reserved_tag(u: Any) -> Any:
    comm.Send(u, 0, 32767)
    return np.sum(u)


def own_error(u: Any) -> Any:
    if u[0] > 0.0:
        raise ValueError("mine")
    return comm.allreduce(np.sum(u))


def inside(u: Any) -> Any:
    return np.sum(tg.grad(sums)(u))


def recursive(u: Any) -> Any:
    return comm.allreduce(np.sum(u)) if np.sum(u) < 1.0 else recursive(0.5 * u)


REFUSED: list[tuple[Callable[[Any], Any], type[Exception], str]] = [
    (never_waited, tg.NotDifferentiable, "no Wait of its request"),
    (waited_on_one_path, tg.BadArgument, "1 messages were started"),
    (waited_twice, tg.BadArgument, "waited for twice"),
    (of_another_size, tg.BadArgument, r"sent 24 bytes for a buffer of shape \(4,\)"),
    (of_different_sizes, tg.BadArgument, "between 16 and 24 bytes to Allreduce"),
    (request_of_any_source, tg.BadArgument, "any source"),
    (product, tg.NotDifferentiable, "no adjoint"),
    (synchronous, tg.NotDifferentiable, "'Ssend'"),
    (part_of_buffer, tg.NotDifferentiable, "datatype of its own"),
    (with_status, tg.NotDifferentiable, "status"),
    (reserved_tag, tg.BadArgument, "tag 32767"),
    (own_error, ValueError, "^mine$"),
    (inside, tg.NotDifferentiable, "inside of another function"),
    (recursive, tg.NotDifferentiable, "recursive"),
]


def check_refused(function: Callable[[Any], Any], kind: type[Exception], match: str) -> None:
    with pytest.raises(kind) as caught:
        tg.grad(function)(np.array([1.0, 2.0, 3.0]))
    error = caught.value
    assert re.search(match, getattr(error, "reason", str(error))), error
    assert not isinstance(error, tg.TapegenError) or error.span is not None
    assert "/templates/" not in str(error)


def check_jacobian() -> None:
    with pytest.raises(tg.NotDifferentiable, match="Jacobian"):
        tg.jacobian(sums)(np.ones(2))


def check_numba() -> None:
    with pytest.raises(tg.BuildError, match="communicates"):
        tg.grad(sums, backend="numba")(np.ones(2))


# ---- driver ----------------------------------------------------------------------------------------------------------


def checks() -> Iterator[tuple[str, Callable[[], None]]]:
    for function in FUNCTIONS:
        yield function.__name__, lambda function=function: check(function)
    yield "random", check_random
    yield "communicator", check_communicator_as_argument
    yield "tie", check_tie
    yield "jacobian", check_jacobian
    yield "numba", check_numba
    for function, kind, match in REFUSED:
        yield function.__name__, lambda call=(function, kind, match): check_refused(*call)


def main() -> None:
    faulthandler.dump_traceback_later(float(sys.argv[1]), exit=True)
    for name, run in checks():
        try:
            run()
            outcome = "passed"
        except Exception as error:
            outcome = f"rank {rank}: {type(error).__name__}: {error}"
        found = comm.gather(outcome)
        if rank == 0:
            print(json.dumps([name, next((each for each in found if each != "passed"), "passed")]), flush=True)


if __name__ == "__main__":
    main()
