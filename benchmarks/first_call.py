"""How long the first call of a gradient takes in a fresh process: `python -m benchmarks.first_call`.

Cold is with an empty cache, warm with a full one.  What is measured begins after the imports and after the first call
of a trivial function that numba has cached, whose time is numba's own.  Times are those of the process itself, so that
others do not count.

`python -m benchmarks.first_call --sample` measures 60 programs of `tests/programs`, chosen by the hash of their names:
the processor time of a first value and gradient with `backend="numba"`, in a fresh process and its children, with an
empty cache, after the imports.  It prints the sum, median and 90th percentile, and the ten dearest; `--count 20` takes
the first 20 of them, `--each` prints every one.  Modules are loaded from bytecode, as when installed.

`python -m benchmarks.first_call --programs [NAME ...]` compares long programs of `tests/programs` with the first call
of their primal under `numba.njit`, which takes few of them as they stand: a gradient may take twice that time and a
second.
"""

from __future__ import annotations

import argparse
import hashlib
import math
import os
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Sequence
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
PROGRAM = """
import time
import numpy as np
from numba import njit
import tapegen as tg
from benchmarks.measure import plain_dispatcher
from tests.program_files import named

program = named({name!r})
njit(lambda x: x.sum())(np.ones(3))
begin = time.process_time()
try:
    plain_dispatcher(program.function)(*program.args(), **program.kwargs())
    plain = time.process_time() - begin
except Exception:  # of several kinds, where numba does not take it
    plain = float("nan")
function = tg.differentiable(wrt=program.wrt, cache=False)(program.function)
args, kwargs, bar = program.args(), program.kwargs(), program.value_bar()
begin = time.process_time()
if program.is_scalar:
    function.value_and_grad(*args, **kwargs)
else:
    function.vjp(*args, **kwargs)[1](bar)
gradient = time.process_time() - begin
print(str(function.inspect(*program.args(), **kwargs).compiled).count("\\n"), plain, gradient)
"""
SAMPLED = """
import resource, warnings
import tapegen as tg
from tests.program_files import named

def used():
    both = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    return sum(each.ru_utime + each.ru_stime for each in both)

warnings.simplefilter("ignore")
program = named({name!r})
function = tg.differentiable(wrt=program.wrt, backend="numba")(program.function)
args, kwargs, bar = program.args(), program.kwargs(), program.value_bar()
begin = used()
if program.is_scalar:
    function.value_and_grad(*args, **kwargs)
else:
    function.vjp(*args, **kwargs)[1](bar)
print(used() - begin)
"""
TRIVIAL = "from numba import njit\n\n\n@njit(cache=True)\ndef trivial(x):\n    return x.sum()\n"
KERNELS = ("newton", "lstm")
LONG = (
    *("science/glicko_ratings", "users/arm_dynamics", "science/beta_binomial", "science/sabr_smile"),
    *("science/unscented_kalman", "users/pruning_likelihood", "textbook/runge_kutta_45", "science/adams_moulton"),
    *("textbook/fft_recursive", "textbook/multigrid", "science/fast_sweeping", "science/force_field"),
)
"""Programs whose compiled text has five hundred lines and more."""


def times(name: str, folder: str, cache: str) -> tuple[float, float]:
    """Seconds of the first call of the trivial function and, without what a call takes, of the gradient."""
    environment = {**os.environ, "TAPEGEN_CACHE": "1", "TAPEGEN_CACHE_DIR": cache}
    text = CALL.format(folder=folder, name=name)
    out = subprocess.check_output([sys.executable, "-c", text], env=environment, text=True)
    trivial, first = map(float, out.split())
    return trivial, first


def compare(names: Sequence[str]) -> None:
    """Print the first calls of gradients of programs, and of their primals where numba takes these."""
    print("| program | lines compiled | primal, s | gradient, s | (gradient - 1 s) / primal |\n|---|--:|--:|--:|--:|")
    for name in names:
        out = subprocess.check_output([sys.executable, "-c", PROGRAM.format(name=name)], text=True)
        lines, primal, gradient = map(float, out.splitlines()[-1].split())
        shown = ("", "") if math.isnan(primal) else (f"{primal:.1f}", f"{(gradient - 1.0) / primal:.1f}")
        print(f"| {name} | {lines:.0f} | {shown[0]} | {gradient:.1f} | {shown[1]} |", flush=True)


def sample(count: int) -> list[str]:
    """Names of programs in the order of their hashes, without those that are not compiled."""
    from tests.program_files import collect

    names = [found.name for found in collect() if not hasattr(found.module, "UNCOMPILED")]
    return sorted(names, key=lambda name: hashlib.sha256(name.encode()).digest())[:count]


def first_gradient(name: str, bytecode: str) -> float:
    """Processor seconds of the first gradient of a program in a fresh process, with an empty cache."""
    with tempfile.TemporaryDirectory() as cache:
        environment = {**os.environ, "TAPEGEN_CACHE": "1", "TAPEGEN_CACHE_DIR": cache}
        environment |= {"PYTHONPYCACHEPREFIX": bytecode, "PYTHONDONTWRITEBYTECODE": ""}
        text = SAMPLED.format(name=name)
        return float(subprocess.check_output([sys.executable, "-c", text], env=environment, text=True).split()[-1])


def measure_sample(count: int, *, each: bool) -> None:
    """Print how long the first gradients of a sample of programs take."""
    names = sample(count)
    seconds: dict[str, float] = {}
    with tempfile.TemporaryDirectory() as bytecode:
        first_gradient(names[0], bytecode)  # it writes the bytecode of what all of them import
        for name in names:
            seconds[name] = first_gradient(name, bytecode)
            if each:
                print(f"{seconds[name]:6.2f} {name}", flush=True)
    found = sorted(seconds.values())
    middle, high = statistics.median(found), statistics.quantiles(found, n=10)[-1]
    print(f"{len(found)} programs: {sum(found):.1f} s, median {middle:.2f}, 90th percentile {high:.2f}")
    for name in sorted(seconds, key=seconds.__getitem__, reverse=True)[:10]:
        print(f"{seconds[name]:6.2f} {name}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("names", nargs="*")
    parser.add_argument("--programs", action="store_true", help="programs of tests/programs in the place of kernels")
    parser.add_argument("--sample", action="store_true", help="a sample of tests/programs")
    parser.add_argument("--count", type=int, default=60, help="programs of the sample")
    parser.add_argument("--each", action="store_true", help="print every program of the sample")
    parser.add_argument("--rounds", type=int, default=7)
    options = parser.parse_args()
    if options.sample:
        measure_sample(options.count, each=options.each)
        return
    if options.programs:
        compare(options.names or LONG)
        return
    print("| kernel | cold, s | warm, ms | trivial cached function, ms |\n|---|--:|--:|--:|")
    for name in options.names or KERNELS:
        with tempfile.TemporaryDirectory() as folder:
            (Path(folder) / "trivial.py").write_text(TRIVIAL, encoding="utf-8")
            cold = [times(name, folder, f"{folder}/{k}")[1] for k in range(max(1, options.rounds // 2))]
            warm = [times(name, folder, f"{folder}/0") for _ in range(options.rounds)]
        row = (statistics.median(cold), *(1e3 * statistics.median(column) for column in reversed(list(zip(*warm)))))
        print("| {} | {:.1f} | {:.0f} | {:.0f} |".format(name, *row), flush=True)


if __name__ == "__main__":
    main()
