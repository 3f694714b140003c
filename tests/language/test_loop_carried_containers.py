"""Containers of an earlier iteration that a name keeps while the loop makes new ones: kinds times patterns."""

from __future__ import annotations

import dataclasses
import itertools
import re
from typing import Any

import numpy as np
import pytest

import tapegen as tg
from tapegen.frontend.source.synthesize import function_from_text


@dataclasses.dataclass
class Pair:
    a: float
    b: Any


# first value, the next one made of f, a number read from it
KINDS = {
    "growing_list": ("[v * 1.0 for v in x]", "[v * 2.0 + 0.1 for v in f]", "{0}[-1] * {0}[0]"),
    "list": ("[x[0], x[1] * 1.0]", "[f[1] * 2.0, f[0] + 0.3]", "{0}[-1] * {0}[0]"),
    "dict": ("{'a': x[0], 'b': x * 1.0}", "{'a': f['a'] * 2.0, 'b': f['b'] * f['a']}", "{0}['a'] * {0}['b'][1]"),
    "object": ("Pair(x[0], x * 1.0)", "Pair(f.a * 2.0, f.b * f.a)", "{0}.a * {0}.b[1]"),
    "tuple": ("(x[0], x * 1.0)", "(f[0] * 2.0, f[1] * f[0])", "{0}[0] * {0}[1][1]"),
    "list_of_arrays": ("[x * 1.0, x * 2.0]", "[f[1] * 2.0, f[0] + 0.3]", "{0}[0][1] * {0}[1][2]"),
    "list_of_lists": (
        "[[x[0], x[1] * 1.0], [x[2], 1.0]]",
        "[[f[1][0] * 2.5, f[0][1]], [f[0][0] * 1.1 + 0.3, f[1][1]]]",
        "{0}[0][1] * {0}[1][0]",
    ),
    "array_then_list": ("x", "[f[i] * 2.0 for i in range(3)]", "{0}[-1] * {0}[0]"),
}
PATTERNS = {
    "last": "for k in range(n):\n  cur = f\n  f = NEW\n return READ(cur) + READ(f)",
    "last_bound_before": "cur = f\n for k in range(n):\n  cur = f\n  f = NEW\n return READ(cur) + READ(f)",
    "last_two": "old = cur = f\n for k in range(n):\n  old = cur\n  cur = f\n  f = NEW\n"
    " return READ(cur) + READ(f) * READ(old)",
    "some": "cur = f\n for k in range(n):\n  if k % 2 == 1:\n   cur = f\n  f = NEW\n return READ(cur) + READ(f)",
    "best": "best = f\n for k in range(n):\n  f = NEW\n  if READ(f) > READ(best) and k < 2:\n   best = f\n"
    " return READ(best) + READ(f)",
    "nested": "for k in range(n):\n  cur = f\n  for j in range(2):\n   last = f\n   f = NEW\n"
    " return READ(cur) + READ(last)",
    "while": "k = 0\n while k < n:\n  cur = f\n  f = NEW\n  k += 1\n return READ(cur) + READ(f)",
    "break": "for k in range(n + 3):\n  cur = f\n  f = NEW\n  if k == 2:\n   break\n return READ(cur) + READ(f)",
    "held": "for k in range(n):\n  hold = [f, f]\n  f = NEW\n return READ(hold[0]) + READ(f)",
    "swapped": "g = NEW\n for k in range(n):\n  f, g = g, f\n return READ(f) + 2.0 * READ(g)",
}
X = np.array([1.0, 2.0, 0.5])


def right(kind: str, pattern: str, backend: str) -> None:
    first, new, read = KINDS[kind]
    body = re.sub(r"READ\((\w+(?:\[0\])?)\)", lambda m: f"({read.format(m[1])})", PATTERNS[pattern].replace("NEW", new))
    function = function_from_text(f"def program(x, n):\n f = {first}\n {body}\n", {"Pair": Pair})
    derived = tg.value_and_grad(function, backend=backend)
    if (kind, pattern) in REFUSED:
        with pytest.raises(tg.TapegenError):
            derived(X.copy(), 3)
        return
    value, gradient = derived(X.copy(), 3)
    steps = 1e-4 * np.eye(3)
    ahead, behind = (np.array([function(X + s * step, 3) for step in steps]) for s in (1.0, -1.0))
    assert value == pytest.approx(function(X, 3), rel=1e-14)
    np.testing.assert_allclose(gradient, (ahead - behind) / 2e-4, rtol=1e-6, atol=1e-6)


REFUSED = {("array_then_list", "break")}  # its backward sweep stops with an error
EVERY = list(itertools.product(KINDS, PATTERNS))


@pytest.mark.parametrize(
    ("kind", "pattern"),
    [*EVERY[::7], ("growing_list", "last"), ("array_then_list", "last"), ("list_of_lists", "swapped")],
)
def test_sample(kind: str, pattern: str) -> None:
    right(kind, pattern, "python")


@pytest.mark.whole
@pytest.mark.parametrize(("kind", "pattern"), EVERY)
def test_every_kind_and_pattern(kind: str, pattern: str) -> None:
    right(kind, pattern, "python")


@pytest.mark.compiled
@pytest.mark.parametrize("kind", KINDS)
def test_compiled(kind: str) -> None:
    right(kind, "last_two", "auto")
