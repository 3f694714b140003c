"""Random loops over `prange`, run in chunks of one iteration: nothing that is proved may be refuted by a run.

`TAPEGEN_RANDOM_LOOPS` sets how many (default 60).  Values and gradients are compared with those of generated Python.
"""

from __future__ import annotations

import os
import random
import warnings
from collections import Counter
from typing import Any

import numpy as np
import pytest
from numba import prange

import tapegen as tg
from tapegen.frontend.source.synthesize import function_from_text
from tests.chunk_orders import checked_chunks
from tests.grown.checks import FINE, judge
from tests.grown.grow import grown
from tests.grown.known import KNOWN
from tests.test_programs import assert_same

COUNT = int(os.environ.get("TAPEGEN_RANDOM_LOOPS", "60"))
PARTS = 4
GROWN = 5

HEAD = """
def f(x, w, m, p):
    n = len(x)
    s, total = 0.0, 1.0
    y, z, h = np.zeros(n), x * 0.5, np.zeros(n)
    t = np.zeros(3)
    c = np.zeros((n, 3))
"""
TAIL = "    return s + total * np.sum(y * w) + np.sum(z) + np.sum(h * h) + np.sum(c * m) + np.sum(t)\n"


class Body:
    """Random statements of one iteration."""

    def __init__(self, seed: int) -> None:
        self.random = random.Random(seed)
        self.names = ["1.5", "x[i]", "w[i]", "x[p[i]]", "m[i, 1]", "w[n - 1 - i]", "x[(i + 1) % n]"]

    def value(self, depth: int = 2) -> str:
        """A random expression."""
        choice = self.random.randrange(6) if depth else 5
        if choice < 3:
            return f"({self.value(depth - 1)} {self.random.choice('+-*')} {self.value(depth - 1)})"
        if choice < 5:
            return f"np.{self.random.choice(['sin', 'tanh', 'cos'])}({self.value(depth - 1)})"
        return self.random.choice(self.names)

    def lines(self) -> list[str]:
        """The statements of one loop."""
        return [line for _ in range(self.random.randint(2, 5)) for line in self.statement()]

    def statement(self) -> list[str]:
        """One statement, with the lines inside."""
        kinds = [self._number, self._sum, self._element, self._scattered, self._row, self._temporary, self._branch]
        kinds += [self._inner, self._view, self._dependent, self._repeated]
        return self.random.choice(kinds)()

    def _number(self) -> list[str]:
        name = f"a{len(self.names)}"
        line = f"{name} = {self.value()}"
        self.names.append(name)
        return [line]

    def _sum(self) -> list[str]:
        return [f"s {self.random.choice(['+=', '-='])} {self.value()}"]

    def _element(self) -> list[str]:
        return [f"{self.random.choice(['y', 'z'])}[i] {self.random.choice(['=', '+='])} {self.value()}"]

    def _scattered(self) -> list[str]:
        return [f"h[{self.random.choice(['p[i]', '(i + 2) % n', '0'])}] += {self.value()}"]

    def _row(self) -> list[str]:
        return [f"c[i] {self.random.choice(['=', '+='])} m[i] * {self.value()}"]

    def _temporary(self) -> list[str]:
        given = [f"t[{self.random.choice(['k', 'k', '(k + 1) % 3'])}] = m[i, k] * {self.value(1)}"]
        return ["for k in range(3):", *(f"    {line}" for line in given), f"s += t[{self.random.randrange(3)}] * w[i]"]

    def _branch(self) -> list[str]:
        names = list(self.names)
        inside = self.statement()
        self.names = names
        return [f"if {self.random.choice(['i % 2 == 0', 'x[i] > 0.1', 'p[i] > 1'])}:", *(f"    {e}" for e in inside)]

    def _inner(self) -> list[str]:
        return ["r = 0.0", "for k in range(3):", f"    r += m[i, k] * {self.value(1)}", "y[i] += r * r"]

    def _repeated(self) -> list[str]:
        """As many times as the values decide: a tape that grows."""
        test = f"abs(q) > {self.random.choice(['0.1', '0.6'])}"
        step = f"q = 0.5 * np.sin(q) + 0.1 * q * {self.random.choice(['x[i]', 'np.cos(q)', 'r'])}"
        return [f"q, r = {self.value(1)}, w[i]", f"while {test}:", f"    {step}", "    r = r * 0.5", "s += q * r"]

    def _view(self) -> list[str]:
        return ["v = c[i]", f"v[{self.random.randrange(3)}] += {self.value()}"]

    def _dependent(self) -> list[str]:
        """What must run in order, mostly."""
        return self.random.choice(
            [
                ["total = total * 0.5 + x[i]"],
                [f"y[(i + 1) % n] = y[i] * 0.5 + {self.value(1)}"],
                ["z[p[i]] = x[i] * x[i]"],
                ["s += h[i]"],
                [f"h[i] = {self.value(1)}"],
            ]
        )


def made(seed: int) -> Any:
    """A random function."""
    body = Body(seed)
    loops = []
    for _ in range(body.random.randint(1, 2)):
        names = list(body.names)
        loops += ["    for i in prange(n):", *(f"        {line}" for line in body.lines())]
        body.names = names
    return function_from_text("\n".join([HEAD.strip("\n"), *loops, TAIL]), {"np": np, "prange": prange})


def arguments() -> tuple[Any, ...]:
    rng = np.random.default_rng(1)
    return rng.normal(size=5), rng.normal(size=5), rng.normal(size=(5, 3)), np.array([2, 0, 2, 4, 1])


RAN: Counter[bool] = Counter()


@pytest.mark.parametrize("part", range(PARTS))
def test_random_loops(part: int) -> None:
    for seed in range(part, COUNT, PARTS):
        function = made(seed)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            value, gradient = tg.value_and_grad(function, ("x", "w", "m"), backend="python")(*arguments())
            with checked_chunks() as ran:
                found = tg.value_and_grad(function, ("x", "w", "m"), parallel=True, cache=False)(*arguments())
        assert_same(found[0], value, f"seed {seed}: value", 1e-10)
        assert_same(found[1], gradient, f"seed {seed}: gradient", 1e-10)
        RAN[any(chunks > 1 for chunks in ran)] += 1
    assert RAN[True] > RAN[False]  # most have a loop that runs in chunks


@pytest.mark.parametrize("first", range(0, 20, GROWN))
def test_grown_programs(first: int) -> None:
    for seed in range(first, first + GROWN):
        if seed not in KNOWN:
            verdict = judge(grown(seed, GROWN).text(), ["reverse", "chunks"])
            assert verdict.kind in FINE, f"seed {seed}: {verdict}"
