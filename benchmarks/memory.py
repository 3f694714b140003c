"""Measure gradients within a budget of memory: `python -m benchmarks.memory [names]`.

Prints a Markdown table: each row is run in a process of its own, once with the budget and, where the recording fits
into `RECORDED` bytes, once without.  The peak is what the process took for the call beyond what it had before.
"""

from __future__ import annotations

import argparse
import json
import math
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

import tapegen as tg

RECORDED = 6e9
"""Bytes that a recording program may take beside the others of this machine."""

REPEATS, LONGEST = 5, 4.0
"""Calls of which the fastest counts, and the seconds that they may take in sum."""

HEAD = (
    "| program | iterations | budget, MB | recorded, MB | peak recorded, MB | peak within budget, MB "
    "| recorded, s | within budget, s | ratio |"
)


def burgers(u0, nu, steps):
    """A nonlinear partial differential equation in one dimension, explicit steps."""
    u = u0.copy()
    for _ in range(steps):
        u[1:-1] = u[1:-1] + nu * (u[2:] - 2.0 * u[1:-1] + u[:-2]) - 0.1 * u[1:-1] * (u[2:] - u[:-2])
    return np.sum(u * u)


def iterate(x, n):
    """A scalar recurrence of a length that depends on the run."""
    k = 0
    while k < n and x < 1e300:
        x = x + 1e-3 * math.sin(x)
        k += 1
    return x


def bodies(position, velocity, mass, steps):
    """Bodies that attract each other."""
    x, v = position.copy(), velocity.copy()
    n = len(mass)
    for _ in range(steps):
        for i in range(n):
            for j in range(n):
                dx, dy, dz = x[j, 0] - x[i, 0], x[j, 1] - x[i, 1], x[j, 2] - x[i, 2]
                r2 = dx * dx + dy * dy + dz * dz + 1e-2
                w = 1e-3 * mass[j] / (r2 * math.sqrt(r2))
                v[i, 0] += w * dx
                v[i, 1] += w * dy
                v[i, 2] += w * dz
        for i in range(n):
            for k in range(3):
                x[i, k] += 1e-3 * v[i, k]
    return np.sum(x * x)


def lstm(weights, bias, inputs, steps):
    """A recurrent network over a sequence that repeats."""
    size = bias.shape[0] // 4
    h, c = np.zeros(size), np.zeros(size)
    total = 0.0
    for t in range(steps):
        gates = weights @ np.concatenate((inputs[t % inputs.shape[0]], h)) + bias
        i = 1.0 / (1.0 + np.exp(-gates[:size]))
        f = 1.0 / (1.0 + np.exp(-gates[size : 2 * size]))
        o = 1.0 / (1.0 + np.exp(-gates[2 * size : 3 * size]))
        c = f * c + i * np.tanh(gates[3 * size :])
        h = o * np.tanh(c)
        total += np.sum(h * h)
    return total


def mixture(means, points):
    """The log likelihood of points under a mixture of Gaussians."""
    total = 0.0
    for n in range(points.shape[0]):
        logs = -0.5 * np.sum((points[n] - means) ** 2, axis=1)
        top = np.max(logs)
        total += top + np.log(np.sum(np.exp(logs - top)))
    return total


def _state(cells: int) -> np.ndarray:
    return np.exp(-(np.linspace(-3.0, 3.0, cells) ** 2))


def _random(*shape: int) -> np.ndarray:
    return np.random.default_rng(1).standard_normal(shape)


ROWS: dict[str, tuple[Callable[..., Any], Callable[[int], tuple[Any, ...]], int, float]] = {
    "burgers, 1e3 cells": (burgers, lambda n: (_state(1000), 0.2, n), 10**4, 20e6),
    "burgers, 1e3 cells, long": (burgers, lambda n: (_state(1000), 0.2, n), 10**6, 200e6),
    "burgers, 1e4 cells": (burgers, lambda n: (_state(10_000), 0.2, n), 10**4, 100e6),
    "burgers, 1e4 cells, long": (burgers, lambda n: (_state(10_000), 0.2, n), 10**5, 500e6),
    "scalar while": (iterate, lambda n: (0.5, n), 10**7, 20e6),
    "n-body": (bodies, lambda n: (_random(8, 3), _random(8, 3), np.ones(8), n), 10**5, 5e6),
    "lstm": (lstm, lambda n: (0.3 * _random(64, 32), np.zeros(64), _random(100, 16), n), 10**5, 20e6),
    "gmm": (mixture, lambda n: (_random(20, 10), _random(n, 10)), 10**5, 5e6),
}


def _peak() -> int:
    with open("/proc/self/status", encoding="ascii") as status:
        return next(1024 * int(line.split()[1]) for line in status if line.startswith("VmHWM"))


def run(name: str, budget: float) -> dict[str, float]:
    """Time and memory of one gradient, after a call of few iterations that compiles."""
    func, make, count, _ = ROWS[name]
    args = make(count)
    derived = tg.differentiable(func, backend="numba", memory=int(budget), cache=True)
    derived.value_and_grad(*args)
    tg.clear_workspaces()
    Path("/proc/self/clear_refs").write_text("5", encoding="ascii")  # the peak begins again
    before = _peak()
    value, gradient = derived.value_and_grad(*args)
    peak = _peak() - before
    taken: list[float] = []
    while len(taken) < REPEATS and sum(taken) < LONGEST:
        start = time.perf_counter()
        derived.value_and_grad(*args)
        taken.append(time.perf_counter() - start)
    return {"seconds": min(taken), "peak": peak, "sum": float(np.sum(gradient)), "value": float(value)}


def _alone(name: str, budget: float) -> dict[str, float]:
    command = [sys.executable, "-m", "benchmarks.memory", name, "--run", str(budget)]
    ran = subprocess.run(command, capture_output=True, text=True, check=False)
    if ran.returncode:
        raise SystemExit(f"{name}: {ran.stderr}")
    found: dict[str, float] = json.loads(ran.stdout)
    return found


def recorded_bytes(name: str) -> float:
    """The bytes that one gradient records."""
    func, make, count, _ = ROWS[name]
    args = make(min(count, 1000))
    found = tg.differentiable(func, backend="python")._specialise(args, {}).recorded_bytes()
    return sum(found.values()) * count / min(count, 1000)


def row(name: str) -> str:
    """One line of the table."""
    _, _, count, budget = ROWS[name]
    size = recorded_bytes(name)
    within = _alone(name, budget)
    cells = [name, f"{count:.0e}".replace("e+0", "e"), f"{budget / 1e6:.0f}", f"{size / 1e6:.0f}"]
    if size < RECORDED:
        recorded = _alone(name, 20e9)
        assert recorded["value"] == within["value"], name
        assert math.isclose(recorded["sum"], within["sum"], rel_tol=1e-13, abs_tol=1e-300), name
        ratio = within["seconds"] / recorded["seconds"]
        cells += [f"{recorded['peak'] / 1e6:.0f}", f"{within['peak'] / 1e6:.1f}", f"{recorded['seconds']:.3f}"]
        cells += [f"{within['seconds']:.3f}", f"{ratio:.2f}"]
    else:
        cells += ["-", f"{within['peak'] / 1e6:.1f}", "-", f"{within['seconds']:.3f}", "-"]
    return f"| {' | '.join(cells)} |"


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("names", nargs="*", help=f"of {', '.join(ROWS)}")
    parser.add_argument("--run", type=float, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.run:
        print(json.dumps(run(options.names[0], options.run)))
        return
    print(HEAD)
    print("|---" * HEAD.count(" | ") + "|---|")
    for name in options.names or ROWS:
        print(row(name), flush=True)


if __name__ == "__main__":
    main()
