"""How long tapegen itself works: `python -m benchmarks.transform [--profile]`.

Everything between the call and numba: lowering, deriving, the readable and the compiled text.  Prints milliseconds for
50 lines of programs of several lengths, and the exponent of their growth; `--profile` prints where the time goes.
"""

from __future__ import annotations

import argparse
import cProfile
import linecache
import math
import pstats
import random
import time
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np

import tapegen as tg

LENGTHS = (50, 100, 200, 400)
ROUNDS = 3
ARGUMENTS = (np.ones(6), np.ones(6), 0.5, 6)

# what a person writes into a simulation: {n} counts the paragraphs
PARAGRAPHS = (
    """\
    rate{n} = 0.5 * k + s
    decay{n} = np.exp(-rate{n} * rate{n})
    gain{n} = rate{n} / (1.0 + decay{n})
    s = 0.9 * s + 0.1 * np.sin(gain{n}) * decay{n}
""",
    """\
    for i in range(1, n - 1):
        flux = u[i] * v[i] + s
        u[i] = u[i] + 0.1 * (u[i - 1] - 2.0 * flux)
        s += flux * flux * 1e-3
""",
    """\
    if s > 0.3:
        s = s * 0.5
        v[0] = v[0] * s
    else:
        s = np.tanh(s) + k
""",
    """\
    w{n} = u * v + s
    u[1:] += w{n}[:-1] * 0.01
    s = s + np.sum(w{n} * w{n}) * 1e-3
""",
    """\
    total{n} = 0.0
    for i in range(n):
        for j in range(i):
            total{n} += u[j] * v[i]
    s = s + total{n} * 1e-3
""",
    """\
    x{n} = s
    trips{n} = 0
    while abs(x{n} * x{n} - k) > 1e-3 and trips{n} < 5:
        x{n} = 0.5 * (x{n} + k / x{n})
        trips{n} += 1
    s = s + x{n} * 1e-2
""",
)


def function_of(lines: int, seed: int = 0) -> Callable[..., Any]:
    """A function of about so many lines."""
    choose = random.Random(seed)
    text = "def f(u, v, k, n):\n    s = 1.0 * k\n"
    paragraphs = 0
    while text.count("\n") < lines - 2:
        if paragraphs % len(PARAGRAPHS) == 0:
            order = choose.sample(PARAGRAPHS, len(PARAGRAPHS))
        text += order[paragraphs % len(PARAGRAPHS)].format(n=paragraphs)
        paragraphs += 1
    text += "    return s\n"
    file = f"<program of {lines} lines, {seed}>"
    linecache.cache[file] = (len(text), None, text.splitlines(True), file)
    namespace: dict[str, Any] = {"np": np, "__name__": "benchmarks.transform"}
    exec(compile(text, file, "exec"), namespace)
    return namespace["f"]


def transform(function: Callable[..., Any]) -> str:
    """All that happens before numba; returns the text for it."""
    derived = tg.differentiable(function, wrt=(0, 1, 2))
    return str(derived.inspect(*ARGUMENTS).compiled)


def seconds(lines: int) -> float:
    """The shortest of several times of the processor, for a program of so many lines."""
    found = []
    for seed in range(ROUNDS):
        function = function_of(lines, seed)
        start = time.process_time()
        transform(function)
        found.append(time.process_time() - start)
    return min(found)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--profile", action="store_true")
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    seconds(LENGTHS[0])  # rules are traced once
    if options.profile:
        profile = cProfile.Profile()
        profile.runcall(transform, function_of(200, ROUNDS))
        pstats.Stats(profile).sort_stats("tottime").print_stats(40)
        return
    times = [seconds(lines) for lines in LENGTHS]
    for lines, each in zip(LENGTHS, times, strict=True):
        print(f"{lines:4} lines: {each * 1e3:6.0f} ms, {each * 1e3 * 50 / lines:5.1f} ms for 50 lines")
    exponent = math.log(times[-1] / times[0]) / math.log(LENGTHS[-1] / LENGTHS[0])
    print(f"growth: lines ** {exponent:.2f}")


if __name__ == "__main__":
    main()
