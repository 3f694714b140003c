"""How long the first call of a gradient takes in a fresh process: `python -m benchmarks.first_call`.

Cold is with an empty cache, warm with a full one.  What is measured begins after the imports and after the first call
of a trivial function that numba has cached, whose time is numba's own.  Times are those of the process itself, so that
others do not count.
"""

from __future__ import annotations

import argparse
import os
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path

CALL = """
import importlib, sys, time
import numpy as np
from numba import njit
import tapegen as tg
sys.path.insert(0, {folder!r})
from trivial import trivial
kernel = importlib.import_module("benchmarks.kernels." + {name!r})
gradient = tg.value_and_grad(kernel.f, wrt=kernel.WRT)
args = kernel.args()
start = time.process_time()
trivial(np.ones(3))
begin = time.process_time()
gradient(*args)
first = time.process_time()
gradient(*args)
print(begin - start, (first - begin) - (time.process_time() - first))
"""
TRIVIAL = "from numba import njit\n\n\n@njit(cache=True)\ndef trivial(x):\n    return x.sum()\n"
KERNELS = ("newton", "lstm")


def times(name: str, folder: str, cache: str) -> tuple[float, float]:
    """Seconds of the first call of the trivial function and, without what a call takes, of the gradient."""
    environment = {**os.environ, "TAPEGEN_CACHE": "1", "TAPEGEN_CACHE_DIR": cache}
    text = CALL.format(folder=folder, name=name)
    out = subprocess.check_output([sys.executable, "-c", text], env=environment, text=True)
    trivial, first = map(float, out.split())
    return trivial, first


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("kernels", nargs="*", default=KERNELS)
    parser.add_argument("--rounds", type=int, default=7)
    options = parser.parse_args()
    print("| kernel | cold, s | warm, ms | trivial cached function, ms |\n|---|--:|--:|--:|")
    for name in options.kernels:
        with tempfile.TemporaryDirectory() as folder:
            (Path(folder) / "trivial.py").write_text(TRIVIAL, encoding="utf-8")
            cold = [times(name, folder, f"{folder}/{k}")[1] for k in range(max(1, options.rounds // 2))]
            warm = [times(name, folder, f"{folder}/0") for _ in range(options.rounds)]
        row = (statistics.median(cold), *(1e3 * statistics.median(column) for column in reversed(list(zip(*warm)))))
        print("| {} | {:.1f} | {:.0f} | {:.0f} |".format(name, *row), flush=True)


if __name__ == "__main__":
    main()
