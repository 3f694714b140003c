"""Gradients of a library beside those of the decorator: `python -m benchmarks.libraries [names] [--blas cblas:PATH]`.

Both are made for this machine.  Without a BLAS for the library, kernels with products of matrices compare its own loops
with the BLAS of SciPy, which the decorator uses.  Times are the least of several samples taken in turn, in seconds of
the processor, so that other processes do not count.
"""

from __future__ import annotations

import argparse
import importlib
import tempfile
import warnings
from pathlib import Path

import numba

import tapegen as tg
from benchmarks.kernels.__main__ import ORDER
from benchmarks.measure import least
from tests.libraries import load


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.libraries", description=__doc__.splitlines()[0])
    parser.add_argument("names", nargs="*", metavar="name", help=f"which kernels (default: all): {', '.join(ORDER)}")
    parser.add_argument("--blas", default="builtin", help="products of the library: builtin (default) or cblas:PATH")
    options = parser.parse_args()
    warnings.simplefilter("ignore", numba.NumbaPerformanceWarning)
    print("| kernel | decorator, ms | library, ms | ratio |\n|---|--:|--:|--:|", flush=True)
    for name in options.names or ORDER:
        kernel = importlib.import_module(f"benchmarks.kernels.{name}")
        f = tg.differentiable(kernel.f, wrt=kernel.WRT)
        args = kernel.args()
        with tempfile.TemporaryDirectory() as folder:
            built = tg.aot.build(f, *args, directory=folder, modes=["grad"], cpu="native", blas=options.blas)
            module = load(Path(built))
            calls = [lambda: f.value_and_grad(*args), lambda: module.f_value_and_grad(*args)]  # noqa: B023
            jit, library = least(calls)
        print(f"| {name} | {jit * 1e3:.3g} | {library * 1e3:.3g} | {library / jit:.2f} |", flush=True)


if __name__ == "__main__":
    main()
