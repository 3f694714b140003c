"""Lists of objects, lists and dicts that are made in loops and changed later."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np
import pytest

from tapegen import check_grads, differentiable
from tapegen.errors import NotDifferentiable

X = np.array([0.3, 0.7, 1.1, 0.2])


class Body:
    def __init__(self, mass: Any, place: Any) -> None:
        self.mass, self.place = mass, place

    def move(self, way: Any) -> None:
        self.place = self.place + way


@dataclass
class Particle:
    position: np.ndarray
    mass: float = 1.0

    def push(self, way: Any) -> None:
        self.position += way


def made_of_an_array(x: Any) -> Any:
    bodies = [Body(1.0 + k, v) for k, v in enumerate(x)]
    for body, other in pairwise(bodies):
        body.move(0.5 * other.place)
        other.move(-body.place * body.mass)
    return sum(body.place * body.mass for body in bodies)


def appended(x: Any) -> Any:
    bodies = []
    for m, v in zip(x, x[::-1], strict=True):
        bodies.append(Body(m, v))
    steps = 0
    while steps < 3:
        for body in bodies:
            body.move(-0.1 * body.place * body.mass)
        steps += 1
    return sum(body.place**2 for body in bodies)


def pairs(x: Any) -> Any:
    particles = [Particle(row.copy(), 1.0 + row[0]) for row in np.outer(x, x)]
    for _ in range(2):
        for i, one in enumerate(particles):
            for other in particles[:i]:
                force = (one.position - other.position) * one.mass * other.mass
                one.push(-0.1 * force)
                other.push(0.1 * force)
    return sum((p.position**2).sum() for p in particles)


def counted_by_an_argument(x: Any, count: int = 3) -> Any:
    bodies = [Body(1.0, x[0] * k) for k in range(count)]
    for body in bodies:
        body.move(x[1])
    return sum(body.place**2 for body in bodies)


def tables(x: Any) -> Any:
    grid = [[0.0 for _ in range(3)] for _ in range(len(x))]
    for i in range(len(x)):
        for j in range(3):
            grid[i][j] = x[i] * j
            if j:
                grid[i][j] += grid[i][j - 1]
    layers = [{"w": x * k, "b": float(k)} for k in range(3)]
    for layer in layers:
        layer["w"] = layer["w"] * 2 + layer["b"]
    return sum(sum(row) ** 2 for row in grid) + sum((layer["w"] ** 2).sum() for layer in layers)


def lists_that_grow_inside(x: Any) -> Any:
    rows, queues = [], [[] for _ in range(3)]
    for i in range(len(x)):
        rows.append([x[i]])
        rows[-1].append(x[i] ** 2)
        queues[i % 3].append(x[i] * i)
        for j in range(i):
            rows[j].append(x[i] * x[j])
    return sum(row[-1] * len(row) for row in rows) + sum(sum(queue) ** 2 for queue in queues)


def rows_with_names(x: Any) -> Any:
    first = [x[0], x[1]]
    rows = [first]
    for v in x:
        row = [v, 1.0]
        rows.append(row)
        row[0] = 9.0 * x[0] * v
    first[0] = 7.0 * x[0] ** 2
    return rows[1][0] * rows[0][0] + sum(row[0] for row in rows)


@pytest.mark.parametrize(
    "function",
    [made_of_an_array, appended, pairs, counted_by_an_argument, tables, lists_that_grow_inside, rows_with_names],
)
def test_loops_that_fill_them_are_written_out(function: Callable[[Any], Any]) -> None:
    made = differentiable(function, backend="python")
    for x in (X, X[:3] + 0.1, X):
        value, _ = made.value_and_grad(x)
        assert value == pytest.approx(function(x), rel=1e-14)
        check_grads(made, x)


def some(x: Any) -> Any:
    bodies = []
    for v in x:
        if v > 0.5:
            bodies.append(Body(1.0, v))
    for body in bodies:
        body.move(1.0)
    return sum(body.place for body in bodies)


def until(x: Any) -> Any:
    bodies, total = [], 0.0
    while total < 3.0:
        bodies.append(Body(1.0, x[0]))
        total += x[0]
    for body in bodies:
        body.move(1.0)
    return sum(body.place for body in bodies)


def counted_by_a_float(x: Any, count: float = 3.5) -> Any:
    bodies = [Body(1.0, x[0] * k) for k in range(int(count))]
    for body in bodies:
        body.move(1.0)
    return sum(body.place for body in bodies)


@pytest.mark.parametrize("function", [some, until, counted_by_a_float])
def test_lists_whose_length_only_the_run_knows(function: Callable[[Any], Any]) -> None:
    with pytest.raises(NotDifferentiable, match="changes an item of a list that grows") as caught:
        differentiable(function, backend="python").grad(X)
    assert caught.value.span is not None
    assert caught.value.span.text() == "self.place"
    assert "arrays" in caught.value.advice
