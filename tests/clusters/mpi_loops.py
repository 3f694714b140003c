"""What each rank of `test_mpi.test_loops_are_compiled` runs: loops over elements between messages."""

from __future__ import annotations

from typing import Any

import numpy as np
from mpi4py import MPI

import tapegen as tg

comm = MPI.COMM_WORLD
left = comm.rank - 1 if comm.rank > 0 else MPI.PROC_NULL
right = comm.rank + 1 if comm.rank + 1 < comm.size else MPI.PROC_NULL


def march(u: Any, k: float) -> Any:
    w = np.zeros((u.size + 2, 3))
    for i in range(u.size):
        w[i + 1, 1] = u[i] * (i + 1)
    new, total = w.copy(), 0.0
    for _ in range(3):
        comm.Sendrecv(w[1], left, 0, w[-1], right, 0)
        comm.Sendrecv(w[-2], right, 1, w[0], left, 1)
        inner = w[1:-1]
        for i in range(1, w.shape[0] - 1):
            for j in range(3):
                new[i, j] = w[i, j] + k * inner[i - 1, j] * (w[i - 1, j] - 2.0 * w[i, j] + w[i + 1, j])
        w, new = new, w
        total += comm.allreduce(w[1, 1])
    while total > 0.5:
        total = 0.5 * total + 0.01 * w[1, 1]
    return total * np.sum(w)


u = np.random.default_rng(comm.rank).uniform(0.5, 1.5, 6)
want = tg.value_and_grad(march, wrt=("u", "k"), backend="python")(u, 0.1)
have = tg.differentiable(march, wrt=("u", "k"))
for _ in range(2):
    value, (u_bar, k_bar) = have.value_and_grad(u, 0.1)
    assert type(value) is type(want[0])
    assert value == want[0]
    np.testing.assert_allclose(u_bar, want[1][0], rtol=1e-12)
    np.testing.assert_allclose(k_bar, want[1][1], rtol=1e-12)
    assert have(u, 0.1) == value
last: Any = have._inline_cache.last
texts = [source.text for source in last.parts.sources.values()]
assert any("def march_value_and_grad_loop_2(" in text and "njit" in text for text in texts)
print("passed", flush=True)
