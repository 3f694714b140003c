"""Measure batches beside loops: `python -m benchmarks.batch [names] [--write]`.

Prints a Markdown table, which `--write` puts into `benchmarks/batch.md`: gradients of all instances by a loop of calls
in Python, by a loop over `f.njit.value_and_grad` that is written by hand and compiled by numba, and by `tg.batch`.
"""

from __future__ import annotations

import argparse
import math
import platform
import statistics
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numba
import numpy as np

import tapegen as tg
from benchmarks.measure import PLACEMENTS, least

FASTER_THAN_PYTHON, SLOWER_THAN_NATIVE = 10.0, 1.1
HEAD = "| function | instances | Python loop, us | numba loop, us | batch, us | Python / batch | batch / numba |"


def square_root(a, x):
    """Newton's method, each instance with its own number of iterations."""
    y = x
    while abs(y * y - a) > 1e-12 * a:
        y = 0.5 * (y + a / y)
    return y


def kepler(e, m):
    """Kepler's equation by Newton's method."""
    u = m
    step = 1.0
    while abs(step) > 1e-13:
        step = (u - e * math.sin(u) - m) / (1.0 - e * math.cos(u))
        u = u - step
    return u


def misfit(p, t):
    """A sum of squares of a small model."""
    total = 0.0
    for i in range(t.size):
        r = p[0] * math.exp(-p[1] * t[i]) + p[2] - math.sin(t[i])
        total = total + r * r
    return total


def network(x, w, b):
    """One hidden layer."""
    h = np.tanh(w @ x + b)
    return np.sum(h * h)


def decay(u, k):
    """A time loop that stores into arrays."""
    v = u.copy()
    for _ in range(8):
        for i in range(1, v.size):
            v[i] = v[i] + k * (v[i - 1] - v[i])
    return np.sum(v * v)


def _pairs(function: Any) -> Callable[..., Any]:
    def loop(x, y):
        values, gradients = np.empty(len(x)), np.empty(len(x))
        for i in range(len(x)):
            values[i], gradients[i] = function(x[i], y[i])
        return values, gradients

    return numba.njit(loop)


def _rows(function: Any) -> Callable[..., Any]:
    def loop(x, k):
        values, gradients = np.empty(len(x)), np.empty(x.shape)
        for i in range(len(x)):
            value, gradient = function(x[i], k)
            values[i] = value
            gradients[i] = gradient
        return values, gradients

    return numba.njit(loop)


def _rows_of_three(function: Any) -> Callable[..., Any]:
    def loop(x, w, b):
        values, gradients = np.empty(len(x)), np.empty(x.shape)
        for i in range(len(x)):
            value, gradient = function(x[i], w, b)
            values[i] = value
            gradients[i] = gradient
        return values, gradients

    return numba.njit(loop)


def _random(seed: int) -> np.random.Generator:
    return np.random.default_rng(seed)


CASES: dict[str, tuple[Any, Any, Any, Callable[[int], tuple[Any, ...]]]] = {
    "square_root": (square_root, _pairs, 0, lambda n: (_random(0).uniform(1.0, 9.0, n), np.ones(n))),
    "kepler": (kepler, _pairs, 0, lambda n: (_random(1).uniform(0.0, 0.9, n), _random(2).uniform(0.1, 3.0, n))),
    "misfit": (misfit, _rows, (0, None), lambda n: (_random(3).uniform(0.5, 1.5, (n, 3)), np.linspace(0.0, 2.0, 8))),
    "network": (
        network,
        _rows_of_three,
        (0, None, None),
        lambda n: (_random(4).normal(size=(n, 4)), _random(5).normal(size=(8, 4)), _random(6).normal(size=8)),
    ),
    "decay": (decay, _rows, (0, None), lambda n: (_random(7).uniform(0.5, 1.5, (n, 16)), 0.2)),
}


def python_loop(function: Any, in_axes: Any, args: tuple[Any, ...]) -> list[Any]:
    """One call of the compiled gradient for each instance; numbers are Python's own, which are passed fastest."""
    axes = (0,) * len(args) if in_axes == 0 else in_axes
    count = len(args[0])
    columns = [
        [arg] * count if axis is None else arg.tolist() if arg.ndim == 1 else arg
        for arg, axis in zip(args, axes, strict=True)
    ]
    return [function(*instance) for instance in zip(*columns, strict=True)]


def measure(name: str, count: int) -> tuple[float, float, float]:
    """Seconds of the three loops: medians over places of the arrays in memory."""
    func, native, in_axes, make = CASES[name]
    own = tg.differentiable(func, backend="numba")
    loop = native(own.njit.value_and_grad)
    batched = tg.batch(own, in_axes)
    found = []
    for _ in range(PLACEMENTS):
        args = make(count)
        for ours, theirs in zip(batched.value_and_grad(*args), loop(*args), strict=True):
            np.testing.assert_allclose(ours, theirs, rtol=1e-9)

        def in_python(args: Any = args) -> Any:
            return python_loop(own.value_and_grad, in_axes, args)

        def in_numba(args: Any = args) -> Any:
            return loop(*args)

        def in_batch(args: Any = args) -> Any:
            return batched.value_and_grad(*args)

        found.append(least([in_python, in_numba, in_batch]))
    python, numba_, batch = (statistics.median(times) for times in zip(*found, strict=True))
    return python, numba_, batch


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.batch", description=__doc__.splitlines()[0])
    parser.add_argument("names", nargs="*", default=list(CASES))
    parser.add_argument("--instances", type=int, default=1000)
    parser.add_argument("--write", action="store_true", help="write benchmarks/batch.md")
    options = parser.parse_args()
    table = [HEAD, "|---|" + "--:|" * 6]
    print("\n".join(table))
    for name in options.names:
        python, native, batch = measure(name, options.instances)
        table.append(
            f"| {name} | {options.instances} | {1e6 * python:.0f} | {1e6 * native:.1f} | {1e6 * batch:.1f} | "
            f"{python / batch:.0f} | {batch / native:.2f} |"
        )
        print(table[-1], flush=True)
    if options.write:
        versions = f"Python {platform.python_version()}, NumPy {np.__version__}, numba {numba.__version__}"
        text = TEXT.format(table="\n".join(table), system=f"{versions}, {platform.machine()}, {platform.system()}")
        Path(__file__).with_suffix(".md").write_text(text, encoding="utf-8")


TEXT = """# Batches, measured

Gradients of all instances of a batch: by a loop of calls in Python, by a loop over `f.njit.value_and_grad` that is
written by hand and compiled by numba, and by `tg.batch`, in processor time. The goals are at least 10 times as fast as
the first, and at most 1.1 times as long as the second. Made by `python -m benchmarks.batch --write`.

{system}.

{table}
"""


if __name__ == "__main__":
    main()
