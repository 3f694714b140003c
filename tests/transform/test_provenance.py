"""The primal statement that each line of a backward sweep belongs to."""

from __future__ import annotations

import inspect
from typing import Any

import numpy as np

from tapegen import differentiable


def march(u0: Any, k: Any, n: Any) -> Any:
    u = u0.copy()
    for _ in range(n):
        u[1:-1] += k * (u[2:] - u[:-2])
        u = np.tanh(u)
    return np.sum(u**2)


def causes(function: Any, *args: Any) -> list[tuple[str, str]]:
    """Each line of the backward sweep that is no comment, with the user's statement that it reverses."""
    source = differentiable(function, wrt=(0, 1), backend="python").inspect(*args).backward_source
    lines, start = inspect.getsourcelines(function)
    found = []
    for n, line in enumerate(source.text.splitlines(), 1):
        span = source.origin(n)
        if span is not None and not line.lstrip().startswith("#"):
            found.append((line.strip(), lines[span.line - start].strip()))
    return found


def test_adjoint_statements_know_the_statement_that_they_reverse() -> None:
    found = causes(march, np.ones(5), 0.1, 3)
    assert found[0][0].startswith("def march_pullback")
    step = "u[1:-1] += k * (u[2:] - u[:-2])"
    assert found[1:] == [
        ("u_bar = 2 * u * result_bar", "return np.sum(u**2)"),
        ("k_bar = 0.0", "for _ in range(n):"),
        ("for trip in range(n - 1, -1, -1):", "for _ in range(n):"),
        ("u_bar = (1.0 - u_1_kept_tape[trip] * u_1_kept_tape[trip]) * u_bar", "u = np.tanh(u)"),
        ("u_add_bar = u_bar[1:-1].copy()", step),
        ("u_difference_bar = k * u_add_bar", step),
        ("u_bar[:-2] -= u_difference_bar", step),
        ("u_bar[2:] += u_difference_bar", step),
        ("k_bar += np.sum(u_difference_tape[trip] * u_add_bar)", step),
        ("u0_bar = u_bar.copy()", "u = u0.copy()"),
    ]
