"""Measure forward mode, Hessian-vector products and a Jacobian: `python -m benchmarks.modes [names] [--write]`.

Prints a Markdown table of the kernels, then the Jacobian of `benchmarks/reactions.py` (alone: `reactions`), beside
that of JAX where there is a Python with it: `--jax PYTHON`.  `--write` puts what was measured into
`benchmarks/modes.md` and keeps the rows of the other kernels, so that these may be measured one by one.
"""

from __future__ import annotations

import argparse
import importlib
import pathlib
import platform
import statistics
import subprocess
import sys
import time
import types
import warnings
from collections.abc import Callable
from typing import Any

import numba
import numpy as np

import tapegen as tg
from benchmarks import reactions
from benchmarks.kernels.__main__ import ORDER
from benchmarks.measure import LEAST_OF, PLACEMENTS, elapsed, least, plain_dispatcher, processor_time

HERE = pathlib.Path(__file__).parent
JVP_GOAL, HVP_GOAL = 2.0, 2.5
HEAD = (
    "| kernel | plain primal, ms | jvp / primal | value and gradient / primal | hvp / value and gradient | "
    "first jvp, s | first hvp, s |\n|---|--:|--:|--:|--:|--:|--:|"
)
JACOBIAN = "A dense Jacobian, 100 by 100, of a right-hand side of 200 lines:"
SAMPLES = 300

# run by a Python that has JAX; prints the seconds of the first call, and microseconds of samples
PEER = """
import sys, time
import jax
jax.config.update("jax_enable_x64", True)
import jax.numpy as jnp, numpy as np
source = open(sys.argv[1]).read().replace("import numpy as np", "import jax.numpy as np")
space = {}
exec(compile(source, sys.argv[1], "exec"), space)
y, k = (jnp.asarray(np.random.default_rng(seed).uniform(0.5, 1.5, space["SIZE"])) for seed in (1, 2))
jacobian = jax.jit(jax.jacfwd(space["rates"]))
start = time.perf_counter()
jacobian(y, k).block_until_ready()
print(time.perf_counter() - start)
for _ in range(int(sys.argv[2])):
    start = time.perf_counter()
    jacobian(y, k).block_until_ready()
    print(1e6 * (time.perf_counter() - start))
print(float(jnp.sum(jacobian(y, k))))
"""


def direction(kernel: types.ModuleType, args: tuple) -> tuple[Any, ...]:
    """A tangent for each argument that is differentiated."""
    rng = np.random.default_rng(0)
    drawn = [rng.normal(size=np.shape(arg)) if isinstance(arg, np.ndarray) else 1.0 for arg in args]
    return tuple(tangent if k in kernel.WRT else None for k, tangent in enumerate(drawn))


def kernel_row(name: str) -> str:
    """One line of the table; a figure that misses its goal is bold."""
    kernel = importlib.import_module(f"benchmarks.kernels.{name}")
    plain, ours = plain_dispatcher(kernel.f), tg.differentiable(wrt=kernel.WRT, cache=False)(kernel.f)
    args = kernel.args()
    v = direction(kernel, args)
    first_jvp = processor_time(lambda: ours.jvp(args, v))
    first_hvp = processor_time(lambda: tg.hvp(kernel.f, args, v, cache=False))
    placed = [args, *(kernel.args() for _ in range(PLACEMENTS - 1))]
    times = [_times(kernel, plain, ours, given) for given in placed]
    primal, pushed, both, product = (statistics.median(found) for found in zip(*times, strict=True))
    return (
        f"| {name} | {primal * 1e3:.3g} | {figure(pushed, JVP_GOAL)} | {both:.2f} | {figure(product, HVP_GOAL)} | "
        f"{first_jvp:.1f} | {first_hvp:.1f} |"
    )


def _times(kernel: types.ModuleType, plain: Any, ours: Any, args: tuple) -> tuple[float, ...]:
    """Seconds of the plain primal, then how many of these jvp and gradient take, and how many gradients hvp."""
    v = direction(kernel, args)
    calls: list[Callable[[], Any]] = [
        lambda: plain(*args),
        lambda: ours.jvp(args, v),
        lambda: ours.value_and_grad(*args),
        lambda: tg.hvp(kernel.f, args, v, cache=False),
    ]
    primal, pushed, both, product = least(calls)
    return primal, pushed / primal, both / primal, product / both


def figure(ratio: float, goal: float) -> str:
    return f"{ratio:.2f}" if ratio <= goal else f"**{ratio:.2f}**"


def own_samples() -> tuple[float, list[float], float]:
    """Seconds of the first call, microseconds of the others, and the sum of the Jacobian."""
    y, k = (np.random.default_rng(seed).uniform(0.5, 1.5, reactions.SIZE) for seed in (1, 2))
    jacobian = tg.jacobian(reactions.rates, mode="forward")
    first = elapsed(lambda: jacobian(y, k))
    samples = []
    for _ in range(SAMPLES):
        start = time.perf_counter()
        jacobian(y, k)
        samples.append(1e6 * (time.perf_counter() - start))
    return first, samples, float(np.sum(jacobian(y, k)))


def peer_samples(python: str) -> tuple[float, list[float], float]:
    """The same of JAX, in a process of its own."""
    command = [python, "-c", PEER, str(HERE / "reactions.py"), str(SAMPLES)]
    printed = subprocess.run(command, check=True, capture_output=True, text=True).stdout.split()
    first, *samples, total = map(float, printed)
    return first, samples, total


def jacobian_lines(python: str | None) -> list[str]:
    """What is printed of the Jacobian; JAX and tapegen are run in turn, three times each."""
    own, theirs = [], []
    for _ in range(3):
        own.append(own_samples())
        if python:
            theirs.append(peer_samples(python))
    lines = [f"tapegen: {_summary(own)}"]
    if theirs:
        np.testing.assert_allclose(own[0][2], theirs[0][2], rtol=1e-12)
        ratio = _median(theirs) / _median(own)
        lines += [f"JAX, `jit(jacfwd(rates))`: {_summary(theirs)}", f"tapegen is {ratio:.1f} times as fast"]
    return lines


def _median(runs: list[tuple[float, list[float], float]]) -> float:
    return statistics.median(statistics.median(samples) for _, samples, _ in runs)


def _summary(runs: list[tuple[float, list[float], float]]) -> str:
    return f"{_median(runs):.0f} microseconds; first call {runs[0][0]:.1f} s"


def preamble() -> str:
    """What the figures mean and where they were taken."""
    versions = f"Python {platform.python_version()}, NumPy {np.__version__}, numba {numba.__version__}"
    return (
        "# Modes, measured\n\n"
        "plain primal: under `numba.njit`.  All calls of a kernel in one process and on one core; the least processor "
        f"time of {LEAST_OF} samples, taken in turn; of {PLACEMENTS} such measurements, with arrays elsewhere, the "
        "median.\n"
        "first: transform and compilation, nothing kept on disk.\n"
        f"Goals: jvp at most {JVP_GOAL:g} primals, a Hessian-vector product at most {HVP_GOAL:g} values and "
        "gradients; bold misses its goal.\n\n"
        f"{versions}, {platform.machine()}, {platform.system()}.  Made by `python -m benchmarks.modes --write`.\n"
    )


def merged(rows: dict[str, str], jacobian: list[str], written: str) -> list[str]:
    """The lines of the table and of what follows it: what was measured now, and for the rest what is written."""
    table, _, below = written.partition("\n\n" + JACOBIAN)
    for line in table.splitlines():
        name = line.removeprefix("| ").partition(" ")[0]
        if line.startswith("| ") and name in ORDER:
            rows.setdefault(name, line)
    jacobian = jacobian or (["", JACOBIAN + below.rstrip()] if below else [])
    return [HEAD, *(rows[name] for name in ORDER if name in rows), *jacobian]


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.modes", description=__doc__.splitlines()[0])
    parser.add_argument("names", nargs="*", metavar="name", help=f"reactions, {', '.join(ORDER)} (default: all)")
    parser.add_argument("--jax", metavar="PYTHON", help="a Python that has JAX, to compare the Jacobian with")
    parser.add_argument("--write", action="store_true", help="write benchmarks/modes.md")
    options = parser.parse_args()
    names = options.names or [*ORDER, "reactions"]
    unknown = set(names) - {*ORDER, "reactions"}
    if unknown:
        parser.error(f"unknown: {', '.join(sorted(unknown))}")
    warnings.simplefilter("ignore", numba.NumbaPerformanceWarning)
    numba.njit(lambda x: x + 1.0)(1.0)  # numba's own start is nobody's compile time
    rows: dict[str, str] = {}
    jacobian: list[str] = []
    print(HEAD, flush=True)
    for name in names:
        if name != "reactions":
            rows[name] = kernel_row(name)
            print(rows[name], flush=True)
    if "reactions" in names:
        jacobian = ["", JACOBIAN, "", *(f"* {line}" for line in jacobian_lines(options.jax))]
        print("\n".join(jacobian), flush=True)
    if options.write:
        page = HERE / "modes.md"
        written = page.read_text() if page.exists() else ""
        page.write_text("\n".join([preamble(), *merged(rows, jacobian, written)]) + "\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
