"""Measure gradients within a budget of memory: `python -m benchmarks.memory [names] [--write]`.

Prints Markdown tables, the last two for curves: time and peak against the number of iterations, and against the budget.
Each row is run in a process of its own, once with the budget and, where the recording fits into `RECORDED` bytes, once
without.  The peak is what the process took for the call beyond what it had before.  Seconds are processor time.
`--write` puts the tables into `benchmarks/memory.md`; that takes some minutes.
"""

from __future__ import annotations

import argparse
import ctypes
import json
import math
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Sequence
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
    "burgers, 1e3 cells, little": (burgers, lambda n: (_state(1000), 0.2, n), 10**6, 2e6),
    "burgers, 1e4 cells": (burgers, lambda n: (_state(10_000), 0.2, n), 10**4, 100e6),
    "burgers, 1e4 cells, long": (burgers, lambda n: (_state(10_000), 0.2, n), 10**5, 500e6),
    "scalar while": (iterate, lambda n: (0.5, n), 10**7, 20e6),
    "n-body": (bodies, lambda n: (_random(8, 3), _random(8, 3), np.ones(8), n), 10**5, 5e6),
    "lstm": (lstm, lambda n: (0.3 * _random(64, 32), np.zeros(64), _random(100, 16), n), 10**5, 20e6),
    "gmm": (mixture, lambda n: (_random(20, 10), _random(n, 10)), 10**5, 5e6),
}


CURVES: dict[str, tuple[float, tuple[int, ...], int, tuple[float, ...]]] = {
    "burgers, 1e3 cells": (
        10e6,
        (100, 1000, 10_000, 10**5, 10**6, 10**7),
        10**5,
        (2e9, 200e6, 20e6, 10e6, 5e6, 2e6, 1e6, 0.5e6, 0.2e6),
    ),
    "scalar while": (
        1e6,
        (100, 1000, 10_000, 10**5, 10**6, 10**7),
        10**6,
        (100e6, 10e6, 1e6, 100e3, 20e3, 5e3),
    ),
}
"""Programs of which curves are drawn: budget and iterations of the first, iterations and budgets of the second."""

HEADS = (
    "| program | iterations | recorded, MB | peak, MB | seconds | us per iteration |",
    "| program | budget, MB | peak, MB | seconds | ratio | checkpoints |",
)


def _peak() -> int:
    with open("/proc/self/status", encoding="ascii") as status:
        return next(1024 * int(line.split()[1]) for line in status if line.startswith("VmHWM"))


def run(name: str, budget: float, count: int) -> dict[str, Any]:
    """Time and memory of one gradient, after a call of fewer iterations that compiles the same program."""
    func, make, _, _ = ROWS[name]
    args = make(count)
    derived = tg.differentiable(func, backend="numba", memory=int(budget), cache=True)
    enough = 1 + int(2 * budget * count / max(recorded_bytes(name, count), 1))
    derived.value_and_grad(*make(min(enough, count)))
    plan = derived.inspect(*args).report.memory
    tg.clear_workspaces()
    ctypes.CDLL(None).malloc_trim(0)  # what the C library keeps would hide what the call takes
    Path("/proc/self/clear_refs").write_text("5", encoding="ascii")  # the peak begins again
    before = _peak()
    taken: list[float] = []
    while not taken or (len(taken) < REPEATS and sum(taken) < LONGEST):
        start = time.process_time()
        value, gradient = derived.value_and_grad(*args)
        taken.append(time.process_time() - start)
    peak = _peak() - before
    return {"seconds": min(taken), "peak": peak, "sum": float(np.sum(gradient)), "value": float(value), "plan": plan}


def _alone(name: str, *calls: tuple[float, int]) -> list[dict[str, Any]]:
    """What calls with these budgets and numbers of iterations take, one after the other in one process."""
    command = [sys.executable, "-m", "benchmarks.memory", name, "--run", json.dumps(calls)]
    ran = subprocess.run(command, capture_output=True, text=True, check=False)
    if ran.returncode:
        raise SystemExit(f"{name}: {ran.stderr}")
    return [json.loads(line) for line in ran.stdout.splitlines()]


def recorded_bytes(name: str, count: int) -> float:
    """The bytes that one gradient records; a tape whose length is not known before grows to twice as much."""
    func, make, _, _ = ROWS[name]
    args = make(min(count, 1000))
    found = tg.differentiable(func, backend="python")._specialise(args, {}).recorded_bytes()
    return sum(found.values()) * count / min(count, 1000)


def rows(names: Sequence[str]) -> Iterator[str]:
    """The lines of the table of programs."""
    for name in names:
        _, _, count, budget = ROWS[name]
        size = recorded_bytes(name, count)
        (within,) = _alone(name, (budget, count))
        cells = [name, f"{count:.0e}".replace("e+0", "e"), f"{budget / 1e6:.0f}", f"{size / 1e6:.0f}"]
        if size < RECORDED:
            (recorded,) = _alone(name, (20e9, count))
            _agree(name, recorded, within)
            ratio = within["seconds"] / recorded["seconds"]
            cells += [f"{recorded['peak'] / 1e6:.0f}", f"{within['peak'] / 1e6:.1f}", f"{recorded['seconds']:.3f}"]
            cells += [f"{within['seconds']:.3f}", f"{ratio:.2f}"]
        else:
            cells += ["-", f"{within['peak'] / 1e6:.1f}", "-", f"{within['seconds']:.3f}", "-"]
        yield f"| {' | '.join(cells)} |"


def _agree(name: str, a: dict[str, Any], b: dict[str, Any]) -> None:
    assert a["value"] == b["value"], name
    assert math.isclose(a["sum"], b["sum"], rel_tol=1e-13, abs_tol=1e-300), name


def against_iterations() -> Iterator[str]:
    """The lines of the table of numbers of iterations."""
    for name, (budget, counts, _, _) in CURVES.items():
        calls = [(budget, count) for count in counts]
        for count, found in zip(counts, _alone(name, *calls), strict=True):
            seconds = found["seconds"]
            yield (
                f"| {name}, {budget / 1e6:.0f} MB | {_power(count)} | {recorded_bytes(name, count) / 1e6:.4g} | "
                f"{found['peak'] / 1e6:.2f} | {seconds:.3g} | {1e6 * seconds / count:.3g} |"
            )


def against_budget() -> Iterator[str]:
    """The lines of the table of budgets; the first of a program is enough to record."""
    for name, (_, _, count, budgets) in CURVES.items():
        measured = _alone(name, *[(budget, count) for budget in budgets])
        recorded = measured[0]
        for budget, found in zip(budgets, measured, strict=True):
            _agree(name, recorded, found)
            made = [line.partition(": ")[2] for line in found["plan"] if "checkpoints" in line and ": " in line]
            yield (
                f"| {name}, {_power(count)} | {budget / 1e6:g} | {found['peak'] / 1e6:.2f} | {found['seconds']:.3g} | "
                f"{found['seconds'] / recorded['seconds']:.2f} | {made[0] if made else '-'} |"
            )


def _power(count: int) -> str:
    return f"1e{round(math.log10(count))}"


def _told(head: str, lines: Iterator[str]) -> str:
    """A table, printed as it is measured."""
    found = [head, "|---" * head.count(" | ") + "|---|"]
    print("\n".join(found))
    for line in lines:
        print(line, flush=True)
        found.append(line)
    print()
    return "\n".join(found) + "\n"


def main() -> None:
    """Print the tables."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("names", nargs="*", help=f"of {', '.join(ROWS)}")
    parser.add_argument("--run", type=json.loads, help=argparse.SUPPRESS)
    parser.add_argument("--write", action="store_true", help="write benchmarks/memory.md")
    options = parser.parse_args()
    if options.run:
        for budget, count in options.run:
            print(json.dumps(run(options.names[0], budget, count)))
        return
    table = _told(HEAD, rows(options.names or list(ROWS)))
    if options.names:
        return
    curves = [_told(head, made()) for head, made in zip(HEADS, (against_iterations, against_budget), strict=True)]
    if options.write:
        Path(__file__).with_suffix(".md").write_text(TEXT.format(table, *curves), encoding="utf-8")


TEXT = """# Gradients within a budget of memory

`python -m benchmarks.memory --write`, one core. Seconds are processor time; the machine was busy with other work, so
ratios vary by a third. Peaks are what the process took for a call beyond what it held before. A dash stands where the
recording would take more than 6 GB.

{}
## Against the number of iterations

A budget that does not change, and ten times as many iterations in each row.

{}
## Against the budget

The first row of a program records. "up to" stands where the number of iterations is not known before the loop.

{}"""


if __name__ == "__main__":
    main()
