"""Measure parallel loops beside serial ones: `python -m benchmarks.threads [names]`.

Prints a Markdown table: value and gradient without and with `parallel=True`, called in turn, for large sizes and for
small ones.  Medians of wall-clock time, and the ratio of the least times, which on a busy machine are those of moments
when several processors were free; and the processor time of all threads: what the division into chunks costs.
"""

from __future__ import annotations

import argparse
import math
import os
import statistics
import time
from collections.abc import Callable
from typing import Any

import numpy as np
from numba import prange

import tapegen as tg
from benchmarks.kernels import gmm
from tapegen.backend.numba.threads.pool import threads

FASTER, SLOWER = 1.7, 1.05
ROUNDS, SECONDS = 201, 12.0
HEAD = "| function | size | one thread, us | several, us | speedup | of the least times | processor time |"


def elementwise(x, y):
    """Array statements."""
    u = np.sin(x) * np.exp(-y * y)
    return np.sum(u * np.tanh(x + u))


def stencil(u, steps):
    """A heat equation in two dimensions, with a source that depends on the state."""
    for _ in range(steps):
        v = u.copy()
        v[1:-1, 1:-1] = u[1:-1, 1:-1] + 0.2 * (
            u[2:, 1:-1] + u[:-2, 1:-1] + u[1:-1, 2:] + u[1:-1, :-2] - 4.0 * u[1:-1, 1:-1]
        ) * (1.0 + 0.1 * u[1:-1, 1:-1])
        u = v
    return np.sum(u * u)


def monte_carlo(p, z):
    """The price of an Asian option: paths are independent."""
    total = 0.0
    for i in prange(z.shape[0]):
        s = p[0]
        mean = 0.0
        for j in range(z.shape[1]):
            s = s * math.exp((0.03 - 0.5 * p[1] * p[1]) * 0.02 + p[1] * 0.1414 * z[i, j])
            mean += s
        total += max(mean / z.shape[1] - p[2], 0.0)
    return total / z.shape[0]


def kepler(e, m):
    """Kepler's equation by Newton's method."""
    u = m
    step = 1.0
    while abs(step) > 1e-13:
        step = (u - e * math.sin(u) - m) / (1.0 - e * math.cos(u))
        u = u - step
    return u


def orbits(e, m):
    """Kepler's equation for many orbits: each iteration of the loop records as many steps as it takes."""
    total = 0.0
    for i in prange(len(e)):
        u = m[i]
        step = 1.0
        while abs(step) > 1e-13:
            step = (u - e[i] * math.sin(u) - m[i]) / (1.0 - e[i] * math.cos(u))
            u = u - step
        total += u * u
    return total


def network(x, w, b):
    """One hidden layer."""
    h = np.tanh(w @ x + b)
    return np.sum(h * h)


def _random(*shape: int) -> np.ndarray:
    return np.random.default_rng(0).random(shape)


def _gradient(function: Any, wrt: Any) -> Callable[[bool], Any]:
    return lambda parallel: tg.value_and_grad(function, wrt, backend="numba", parallel=parallel)


def _batch(function: Any, in_axes: Any, wrt: Any) -> Callable[[bool], Any]:
    return lambda parallel: tg.batch(function, in_axes, wrt=wrt, backend="numba", parallel=parallel).value_and_grad


CASES: dict[str, tuple[Callable[[bool], Any], Callable[[int], tuple[Any, ...]], int, int]] = {
    "elementwise": (_gradient(elementwise, (0, 1)), lambda n: (_random(n), _random(n)), 400_000, 50),
    "stencil": (_gradient(stencil, 0), lambda n: (_random(n, n), 10), 500, 12),
    "gmm": (_gradient(gmm.f, gmm.WRT), lambda n: gmm.args(n, 6, 10), 4000, 3),
    "monte_carlo": (
        _gradient(monte_carlo, 0),
        lambda n: (np.array([1.0, 0.2, 1.0]), _random(n, 50) - 0.5),
        10_000,
        4,
    ),
    "orbits": (_gradient(orbits, (0, 1)), lambda n: (0.9 * _random(n), 3.0 * _random(n)), 20_000, 10),
    "batch of kepler": (_batch(kepler, 0, (0, 1)), lambda n: (0.9 * _random(n), 3.0 * _random(n)), 20_000, 10),
    "batch of network": (
        _batch(network, (0, None, None), 0),
        lambda n: (_random(n, 8), _random(16, 8), _random(16)),
        20_000,
        5,
    ),
    "jacobian": (
        lambda parallel: tg.jacobian(lambda x: np.sin(np.outer(x, x)) @ x, backend="numba", parallel=parallel),
        lambda n: (_random(n),),
        150,
        4,
    ),
}


def compare(name: str, size: int) -> tuple[float, float, float, float]:
    """Medians in microseconds: one thread, several; the ratios of their least times and of their processor times."""
    make, arguments, *_ = CASES[name]
    args = arguments(size)
    functions = [make(parallel) for parallel in (False, True)]
    for function in functions:
        function(*args)
        function(*args)
    start = time.perf_counter()
    functions[0](*args)
    repeat = max(1, int(0.001 / max(time.perf_counter() - start, 1e-7)))
    walls: list[list[float]] = [[], []]
    works: list[list[float]] = [[], []]
    begin = time.perf_counter()
    for k in range(ROUNDS):
        for which in (0, 1) if k % 2 else (1, 0):
            wall, work = time.perf_counter(), time.process_time()
            for _ in range(repeat):
                functions[which](*args)
            walls[which].append((time.perf_counter() - wall) / repeat)
            works[which].append((time.process_time() - work) / repeat)
        if time.perf_counter() - begin > SECONDS:
            break
    one, several = (1e6 * statistics.median(found) for found in walls)
    return one, several, min(walls[0]) / min(walls[1]), statistics.median(works[1]) / statistics.median(works[0])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("names", nargs="*", choices=[[], *CASES], default=[])
    names = parser.parse_args().names or list(CASES)
    load = os.getloadavg()[0] if hasattr(os, "getloadavg") else math.nan
    print(f"{threads()} threads; load of the machine at the beginning: {load:.1f}\n")
    print(HEAD)
    print("|---" + "|--:" * 6 + "|")
    missed = []
    for name in names:
        for size in CASES[name][2:]:
            one, several, least, work = compare(name, size)
            speedup = one / several
            print(
                f"| {name} | {size} | {one:.1f} | {several:.1f} | {speedup:.2f} | {least:.2f} | {work:.2f} |",
                flush=True,
            )
            large = size == CASES[name][2]
            if speedup < (FASTER if large else 1.0 / SLOWER):
                missed.append(f"{name} of size {size}: {speedup:.2f}")
    load = os.getloadavg()[0] if hasattr(os, "getloadavg") else math.nan
    print(f"\nload at the end: {load:.1f}")
    print(f"goals: {FASTER} for the large sizes, at most {SLOWER} times as long for the small ones")
    print("missed: " + (", ".join(missed) or "none"))


if __name__ == "__main__":
    main()
