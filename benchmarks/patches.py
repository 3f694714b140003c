"""What each patch of numba's internals gains: `python -m benchmarks.patches [--write]`.

For each patch (`tapegen.backend.numba.patches`), kernels are differentiated with it switched off and with all of them
on, one after the other in fresh processes without a cache.  Processor seconds of the first call and of later calls, as
ratios: above 1 means that the patch makes it faster.
"""

from __future__ import annotations

import argparse
import json
import math
import os
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

from tapegen.backend.numba.patches import PATCHES, SWITCH

CALL = """
import importlib, json, sys, time
import numpy as np
from numba import njit
import tapegen as tg

kernel = importlib.import_module("benchmarks.kernels." + sys.argv[1])
gradient = tg.value_and_grad(kernel.f, wrt=kernel.WRT, cache=False)
args = kernel.args()
njit(lambda x: x.sum())(np.ones(3))
begin = time.process_time()
gradient(*args)
first = time.process_time() - begin
least = float("inf")
for _ in range(7):
    begin, count = time.perf_counter(), 0
    while time.perf_counter() - begin < 0.05:
        gradient(*args)
        count += 1
    least = min(least, (time.perf_counter() - begin) / count)
print(json.dumps([first, least]))
"""
KERNELS = ("newton", "nbody", "lstm", "jacobi_2d", "gramschmidt", "mlp")
PAGE = Path(__file__).parent / "patches.md"
ALL = "all of them"


def measured(kernel: str, switched_off: str) -> tuple[float, float]:
    """Seconds of the first call and of a later one."""
    environment = {**os.environ, SWITCH: switched_off, "TAPEGEN_CACHE": "0"}
    command = [sys.executable, "-c", CALL, kernel]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=True)
    first, later = json.loads(done.stdout)
    return first, later


def gains() -> dict[str, tuple[float, float]]:
    """Geometric means over the kernels of the times without a patch by those with all: first call, later calls."""
    found: dict[str, tuple[float, float]] = {}
    logs: dict[str, list[tuple[float, float]]] = {}
    for kernel in KERNELS:
        for name in (*(patch.name for patch in PATCHES), ALL):
            whole = measured(kernel, "")
            without = measured(kernel, "1" if name == ALL else name)
            ratios = tuple(math.log(b / a) for a, b in zip(whole, without, strict=True))
            logs.setdefault(name, []).append((ratios[0], ratios[1]))
    for name, pairs in logs.items():
        found[name] = (
            math.exp(sum(first for first, _ in pairs) / len(pairs)),
            math.exp(sum(later for _, later in pairs) / len(pairs)),
        )
    return found


def table(found: Mapping[str, tuple[float, float]]) -> str:
    """The page."""
    purposes = {patch.name: patch.purpose for patch in PATCHES}
    lines = [
        "# Patches of numba's internals",
        "",
        f"Times without a patch over times with all of them, geometric means over {', '.join(KERNELS)}",
        "(`python -m benchmarks.patches --write`).",
        "",
        "| patch | for | first call | later calls |",
        "|---|---|--:|--:|",
    ]
    for name, (first, later) in found.items():
        lines.append(f"| {name} | {purposes.get(name, 'stock numba')} | {first:.2f} | {later:.2f} |")
    return "\n".join(lines) + "\n"


def main() -> None:
    """Run the command."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.patches", description=__doc__)
    parser.add_argument("--write", action="store_true", help=f"write {PAGE.name}")
    options = parser.parse_args()
    text = table(gains())
    print(text)
    if options.write:
        PAGE.write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()
