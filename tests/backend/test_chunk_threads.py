"""Threads that run the chunks of compiled loops: bits, errors, several callers, forks."""

from __future__ import annotations

import os
import signal
import threading
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
from numba import prange

import tapegen as tg
from tapegen.backend.numba.threads import pool
from tapegen.errors import BadArgument

R = np.random.default_rng(3)
SIZE = 40_000
X, W = R.random(SIZE), R.random(SIZE)


@tg.differentiable(wrt=("x", "w"), backend="numba", parallel=True)
def terms(x: np.ndarray, w: np.ndarray) -> float:
    s = 0.0
    for i in prange(len(x)):
        if x[i] < 0.0:
            raise ValueError(f"iteration {i}")
        s += np.exp(-x[i]) * w[i % 7]
    return s


@pytest.fixture(autouse=True)
def threads() -> Iterator[None]:
    """As many threads as before, afterwards."""
    before = tg.config.threads
    yield
    tg.config.threads = before


def bits(found: Any) -> list[bytes]:
    value, gradient = found
    return [np.float64(value).tobytes(), *(part.tobytes() for part in gradient)]


def test_bits_do_not_depend_on_the_number_of_threads() -> None:
    found = []
    for count in (1, 2, 4, 3, 1):
        tg.config.threads = count
        found.append(bits(terms.value_and_grad(X, W)))
    assert all(each == found[0] for each in found)
    serial, (by_x, by_w) = terms.with_options(parallel=False).value_and_grad(X, W)
    value, (x_bar, w_bar) = terms.value_and_grad(X, W)
    np.testing.assert_allclose(value, serial, rtol=1e-13)
    np.testing.assert_array_equal(x_bar, by_x)
    np.testing.assert_allclose(w_bar, by_w, rtol=1e-12)
    assert "run_chunks" in terms.inspect(X, W).compiled
    assert "run_chunks" not in terms.with_options(parallel=False).inspect(X, W).compiled


def test_threads_take_part() -> None:
    tg.config.threads = 3
    terms(X, W)
    assert pool._pool().started >= 2


@pytest.mark.parametrize("count", [1, 4])
def test_the_error_is_that_of_the_first_iteration(count: int) -> None:
    tg.config.threads = count
    x = X.copy()
    x[[7000, 7001, SIZE - 1, 23_456]] = -1.0
    for call in (terms, terms.value_and_grad):
        with pytest.raises(ValueError, match=r"iteration 7000\b"):
            call(x, W)
    assert bits(terms.value_and_grad(X, W)) == bits(terms.value_and_grad(X, W))


def test_several_threads_of_python() -> None:
    tg.config.threads = 2
    want = bits(terms.value_and_grad(X, W))
    failed: list[BaseException | None] = []

    def call() -> None:
        try:
            for _ in range(30):
                assert bits(terms.value_and_grad(X, W)) == want
        except BaseException as error:
            failed.append(error)

    callers = [threading.Thread(target=call) for _ in range(4)]
    for caller in callers:
        caller.start()
    for caller in callers:
        caller.join(120)
        assert not caller.is_alive()
    assert failed == []


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork")
def test_a_forked_process_runs_alone() -> None:
    tg.config.threads = 4
    want = bits(terms.value_and_grad(X, W))
    child = os.fork()
    if child == 0:  # no thread of the parent lives here
        signal.alarm(60)
        try:
            tg.config.threads = 2
            os._exit(0 if bits(terms.value_and_grad(X, W)) == want else 1)
        finally:
            os._exit(2)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    assert bits(terms.value_and_grad(X, W)) == want


def test_the_number_of_threads_is_positive() -> None:
    for count in (0, -1, 1.5, True, "all"):
        with pytest.raises(BadArgument, match="a positive number"):
            tg.config.threads = count  # type: ignore[assignment]
