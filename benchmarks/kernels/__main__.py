"""Measure the kernels: `python -m benchmarks.kernels [names] [--write]`.

Prints a Markdown table; `--write` puts it into `benchmarks/kernels.md`.  Exits with 1 when a gradient is wrong.
"""

import argparse
import importlib
import pathlib
import platform
import sys
import warnings

import numba
import numpy as np

from benchmarks.measure import Measurement, measure

HERE = pathlib.Path(__file__).parent
ORDER = (
    "newton",
    "logistic_map",
    "lorenz96",
    "nbody",
    "jacobi_2d",
    "heat_3d",
    "seidel_2d",
    "syrk",
    "cholesky",
    "lu",
    "trisolv",
    "gramschmidt",
    "mlp",
    "max_recursion",
    "logreg",
    "gmm",
    "lstm",
    "elementwise_chain",
    "black_scholes",
)
TOLERANCE = 1e-6
HEAD = (
    "| kernel | plain primal, ms | value and gradient, ms | ratio | first | goal | recorded bytes | "
    "first call, s | allowed, s | error |\n|---|--:|--:|--:|--:|--:|--:|--:|--:|--:|"
)


def row(m: Measurement) -> str:
    """One line of the table; a figure that misses its target is bold."""
    ratio = f"{m.ratio:.2f}" if m.ratio <= m.first else f"**{m.ratio:.2f}**"
    compile_time = f"{m.first_gradient:.2f}"
    if m.first_gradient > m.allowed_first_call:
        compile_time = f"**{compile_time}**"
    recorded = "by iterations" if m.recorded is None else f"{m.recorded:,}"
    return (
        f"| {m.name} | {m.primal * 1e3:.3g} | {m.gradient * 1e3:.3g} | {ratio} | {m.first:g} | {m.goal:g} | "
        f"{recorded} | {compile_time} | {m.allowed_first_call:.2f} | {m.error:.0e} |"
    )


def preamble() -> str:
    """What the figures mean and where they were taken."""
    versions = f"Python {platform.python_version()}, NumPy {np.__version__}, numba {numba.__version__}"
    return (
        "# The kernels, measured\n\n"
        "ratio = time of value and gradient / time of the plain primal under `numba.njit`, both in one process and on "
        "one core, compilation excluded: the least processor time of several samples in turn, of arrays in five places "
        "the median.\n"
        "first, goal: the targets; bold misses its target.  first call: transform and compilation.  error: against "
        "extrapolated central differences at a small size.\n\n"
        f"{versions}, {platform.machine()}, {platform.system()}.  Made by `python -m benchmarks.kernels --write`.\n"
    )


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.kernels", description=__doc__.splitlines()[0])
    parser.add_argument("names", nargs="*", metavar="name", help=f"which kernels (default: all): {', '.join(ORDER)}")
    parser.add_argument("--write", action="store_true", help="write benchmarks/kernels.md")
    options = parser.parse_args()
    unknown = set(options.names) - set(ORDER)
    if unknown:
        parser.error(f"unknown kernel: {', '.join(sorted(unknown))}")
    # strided operands of `@` are what some kernels are about
    warnings.simplefilter("ignore", numba.NumbaPerformanceWarning)
    numba.njit(lambda x: x + 1.0)(1.0)  # numba's own start is nobody's compile time
    print(HEAD, flush=True)
    rows = []
    wrong = []
    for name in options.names or ORDER:
        result = measure(importlib.import_module(f"benchmarks.kernels.{name}"))
        rows.append(row(result))
        print(rows[-1], flush=True)
        if not result.error <= TOLERANCE:
            wrong.append(name)
    if options.write:
        (HERE.parent / "kernels.md").write_text("\n".join([preamble(), HEAD, *rows]) + "\n")
    if wrong:
        print(f"wrong gradients: {', '.join(wrong)}", file=sys.stderr)
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
