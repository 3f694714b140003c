"""Gradients in float32 beside those in float64: `python -m benchmarks.float32 [names] [--write]`.

The kernels of `benchmarks.kernels` and the spellings of `benchmarks.spelling` are called with the same arguments in
both precisions, in turn.  `--write` puts the table into `benchmarks/float32.md`.
"""

import argparse
import importlib
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
from benchmarks.kernels.__main__ import ORDER
from benchmarks.measure import least
from benchmarks.spelling.__main__ import KERNELS, geometric_mean, gradients_of

SUITE = tuple(name for name in ORDER if name not in ("newton", "logistic_map"))
"""Without the one whose steps do not reach 1e-12 in float32, and the one without arrays."""
PLACEMENTS = 3  # times that arrays are made anew
Case = tuple[Callable[..., Any], Callable[[], tuple]]
HEAD = "| kernel | float64, ms | float32, ms | times as fast | difference |\n|---|--:|--:|--:|--:|"


def cases(names: list[str]) -> dict[str, Case]:
    """Value and gradient of each kernel and spelling, and what makes its arguments."""
    found: dict[str, Case] = {}
    for name in SUITE:
        if not names or name in names:
            kernel = importlib.import_module(f"benchmarks.kernels.{name}")
            found[name] = tg.differentiable(wrt=kernel.WRT, backend="numba")(kernel.f).value_and_grad, kernel.args
    for name, kernel in KERNELS.items():
        if not names or name in names:
            for label, gradient in gradients_of(kernel).items():
                spelling = kernel.spellings[label]
                found[f"{name} {label}"] = gradient, partial(_arguments, kernel.args, spelling.arguments)
    return found


def _arguments(args: Callable[[], tuple], spelled: Callable[..., tuple]) -> tuple:
    return spelled(*args())


def single(tree: Any) -> Any:
    """The same arguments with arrays and NumPy scalars in float32; Python's numbers follow what they meet."""
    if isinstance(tree, np.ndarray | np.float64):
        return tree.astype(np.float32) if tree.dtype == np.float64 else tree
    if isinstance(tree, dict):
        return {key: single(item) for key, item in tree.items()}
    if isinstance(tree, tuple) and hasattr(tree, "_fields"):
        return type(tree)(*map(single, tree))
    if isinstance(tree, tuple | list):
        return type(tree)(map(single, tree))
    if hasattr(tree, "__dataclass_fields__"):
        return type(tree)(**{key: single(getattr(tree, key)) for key in tree.__dataclass_fields__})
    return tree


def leaves(tree: Any) -> list[np.ndarray]:
    """The arrays and numbers of a gradient."""
    if isinstance(tree, dict):
        return [leaf for item in tree.values() for leaf in leaves(item)]
    if isinstance(tree, tuple | list):
        return [leaf for item in tree for leaf in leaves(item)]
    if hasattr(tree, "__dataclass_fields__"):
        return [leaf for key in tree.__dataclass_fields__ for leaf in leaves(getattr(tree, key))]
    return [] if tree is None else [np.asarray(tree)]


def difference(a: Any, b: Any) -> float:
    """The largest difference between two gradients, relative to the largest entry of each part."""
    pairs = zip(leaves(a), leaves(b), strict=True)
    return max(float(np.max(np.abs(p - q)) / max(np.max(np.abs(q)), 1e-300)) for p, q in pairs)


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.float32", description=__doc__.splitlines()[0])
    parser.add_argument("names", nargs="*", metavar="name", help="which kernels (default: all)")
    parser.add_argument("--write", action="store_true", help="write benchmarks/float32.md")
    options = parser.parse_args()
    if unknown := set(options.names) - {*SUITE, *KERNELS}:
        parser.error(f"unknown kernel: {', '.join(sorted(unknown))}")
    warnings.simplefilter("ignore", numba.NumbaPerformanceWarning)
    print(HEAD, flush=True)
    rows, ratios, refused = [], [], []
    for name, (gradient, args) in cases(options.names).items():
        try:
            gradient(*single(args()))
        except tg.TapegenError as error:
            refused.append(f"* {name}: {error.reason}")
            continue
        samples = []
        for _ in range(PLACEMENTS):
            double = args()
            calls = [partial(gradient, *double), partial(gradient, *single(double))]
            samples.append(least(calls))
        both = [statistics.median(each) * 1e3 for each in zip(*samples, strict=True)]
        ratios.append(statistics.median(a / b for a, b in samples))
        off = difference(calls[1]()[1], calls[0]()[1])
        rows.append(f"| {name} | {both[0]:.3g} | {both[1]:.3g} | {ratios[-1]:.2f} | {off:.0e} |")
        print(rows[-1], flush=True)
    headline = f"float32 is {geometric_mean(ratios):.2f} times as fast as float64 in the geometric mean."
    print("\n".join([*refused, headline]))
    if options.write:
        versions = f"Python {platform.python_version()}, NumPy {np.__version__}, numba {numba.__version__}"
        text = [
            "# Gradients in float32\n",
            headline + "\n",
            "Value and gradient with arrays in both precisions, in one process and on one core, in turn, compilation "
            "excluded: the least processor time of several samples, of arrays in three places the median.  difference: "
            "between the two gradients, relative to the largest entry.",
            f"{versions}, {platform.machine()}, {platform.system()}.  By `python -m benchmarks.float32 --write`.\n",
            HEAD,
            *rows,
            "\nRefused in float32, as the type of a value depends on the path:\n",
            *refused,
        ]
        (pathlib.Path(__file__).parent / "float32.md").write_text("\n".join(text) + "\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
