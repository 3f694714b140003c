"""How much speed depends on spelling: `python -m benchmarks.spelling [names] [--write]`.

Each kernel of `benchmarks.spelling` is spelled several ways, and has an adjoint by hand.  Their gradients are compared
(exits with 1 where they differ), then timed in turn.  `--write` puts the tables into `benchmarks/spelling.md`.
"""

import argparse
import importlib
import math
import pathlib
import platform
import statistics
import sys
import warnings
from collections.abc import Callable
from functools import partial
from typing import Any

import numba
import numpy as np

import tapegen as tg
from benchmarks.measure import least
from benchmarks.spelling import Kernel, data, matrices, physics

KERNELS = physics.KERNELS | data.KERNELS | matrices.KERNELS
PLACEMENTS = 3  # times that arrays are made anew
TOLERANCE = 1e-9


Gradient = Callable[..., Any]


def gradients_of(kernel: Kernel, backend: str = "numba") -> dict[str, Gradient]:
    """Value and gradient of each spelling, of its own arguments."""
    return {
        label: tg.differentiable(wrt=kernel.wrt if each.wrt is None else each.wrt, backend=backend)(
            each.function
        ).value_and_grad
        for label, each in kernel.spellings.items()
    }


def agree(a: tuple, b: tuple) -> bool:
    """Whether values and gradients are the same but for rounding, relative to the largest entry of each part."""
    pairs = zip((a[0], *a[1]), (b[0], *b[1]), strict=True)
    return all(np.max(np.abs(np.subtract(p, q))) <= TOLERANCE * np.max(np.abs(q)) for p, q in pairs)


def differing(kernel: Kernel, hand: Gradient, gradients: dict[str, Gradient], *size: Any) -> list[str]:
    """The spellings whose value or gradient is not that of the adjoint by hand."""
    args = kernel.args(*size)
    want = hand(*args)
    found = []
    for label, spelling in kernel.spellings.items():
        value, gradient = gradients[label](*spelling.arguments(*args))
        if not agree((value, spelling.gradient(*gradient)), want):
            found.append(label)
    return found


def times_of(kernel: Kernel, hand: Gradient, gradients: dict[str, Gradient]) -> dict[str, float]:
    """Seconds of the adjoint by hand, under an empty name, and of each gradient."""
    samples = []
    for _ in range(PLACEMENTS):
        args = kernel.args()
        calls = [partial(hand, *args)]
        calls += [partial(each, *kernel.spellings[label].arguments(*args)) for label, each in gradients.items()]
        samples.append(least(calls))
    return dict(zip(("", *gradients), map(statistics.median, zip(*samples, strict=True)), strict=True))


def row(name: str, times: dict[str, float]) -> tuple[str, float, float]:
    """A line of the table, the spread of the spellings, and the ratio of the fastest to the adjoint by hand."""
    hand = times.pop("")
    ordered = sorted(times.items(), key=lambda item: item[1])
    spread, best = ordered[-1][1] / ordered[0][1], ordered[0][1] / hand
    ratios = ", ".join(f"{label} {seconds / hand:.2f}" for label, seconds in ordered)
    return f"| {name} | {hand * 1e3:.3g} | {spread:.2f} | {best:.2f} | {ratios} |", spread, best


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.spelling", description=__doc__.splitlines()[0])
    parser.add_argument("names", nargs="*", metavar="name", help=f"which kernels (default: all): {', '.join(KERNELS)}")
    parser.add_argument("--write", action="store_true", help="write benchmarks/spelling.md")
    options = parser.parse_args()
    if unknown := set(options.names) - set(KERNELS):
        parser.error(f"unknown kernel: {', '.join(sorted(unknown))}")
    warnings.simplefilter("ignore", numba.NumbaPerformanceWarning)
    table = ["| kernel | by hand, ms | spread | fastest / hand | each spelling / hand |", "|---|--:|--:|--:|---|"]
    print("\n".join(table), flush=True)
    spreads, bests, wrong = [], [], []
    for name in options.names or KERNELS:
        kernel = KERNELS[name]
        hand = importlib.import_module(f"benchmarks.hand.{name}").hand
        gradients = gradients_of(kernel)
        for size in (kernel.small, ()):
            wrong += [f"{name} {label}" for label in differing(kernel, hand, gradients, *size)]
        line, *ratios = row(name, times_of(kernel, hand, gradients))
        print(line, flush=True)
        table.append(line)
        spreads.append(ratios[0])
        bests.append(ratios[1])
    spread, best = (
        f"{geometric_mean(each):.2f} in the geometric mean, {max(each):.2f} at most" for each in (spreads, bests)
    )
    headline = (
        f"Spread of {len(spreads)} kernels (slowest / fastest gradient): {spread}.  Fastest spelling / hand: {best}."
    )
    print(headline)
    if options.write:
        versions = f"Python {platform.python_version()}, NumPy {np.__version__}, numba {numba.__version__}"
        text = [
            "# The same mathematics, spelled otherwise\n",
            headline + "\n",
            "Value and gradient of each spelling, beside an adjoint by hand, in one process and on one core, in turn, "
            "compilation excluded: the least processor time of several samples, of arrays in three places the median.",
            f"{versions}, {platform.machine()}, {platform.system()}.  By `python -m benchmarks.spelling --write`.\n",
            *table,
        ]
        (pathlib.Path(__file__).parents[1] / "spelling.md").write_text("\n".join(text) + "\n")
    if wrong:
        print(f"other gradients: {', '.join(wrong)}", file=sys.stderr)
    return 1 if wrong else 0


def geometric_mean(values: list[float]) -> float:
    """The geometric mean."""
    return math.exp(statistics.mean(map(math.log, values)))


if __name__ == "__main__":
    sys.exit(main())
