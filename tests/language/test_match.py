"""`match` statements: every kind of pattern, guards, and what is refused."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import pytest

from tapegen import check_grads, differentiable
from tapegen.errors import UnsupportedSyntax
from tests.sources import define


@dataclass
class Circle:
    radius: float


@dataclass
class Box:
    width: float
    height: float


class Point(NamedTuple):
    x: float
    y: float


def area(shape: Any) -> Any:
    match shape:
        case Circle(radius) if radius > 10:
            return 0.0
        case Circle(radius=radius):
            return math.pi * radius**2
        case Box(width, height):
            return width * height
        case (a, b):
            return a * b**2
        case [a, *rest, b]:
            return a * b + sum(rest)
        case {"kind": "cube", "edge": edge}:
            return edge**3
        case float(edge):
            return edge**2
        case None | False:
            return 1.0
        case "x" | "y" as name:
            return 2.0 if name == "x" else 3.0
        case _:
            return 5.0


def shapes(x: Any) -> Any:
    found = [
        area(Circle(x[0])),
        area(Circle(11.0)),
        area(Box(x[0], x[1])),
        area((x[1], x[2])),
        area([x[0], x[1], x[2], x[1]]),
        area({"kind": "cube", "edge": x[2]}),
        area({"kind": "ball", "edge": x[2]}) * x[0],
        area(x[0] * 1.0),
        area(None) * x[0],
        area("y") * x[1],
        area(7) * x[2],
        area(Point(x[1], x[2])),
    ]
    return sum(found)


def numbers(x: Any, n: int) -> Any:
    total = 0.0
    for k in range(n):
        match k % 3:
            case 0:
                total += x[k]
            case 1 if x[k] > 1.0:
                total += x[k] ** 2
            case rest:
                total += rest * x[k] ** 3
    match n:
        case 5:
            scale = 1.0
        case large if large > 7:
            scale = 2.0
        case _:
            scale = x[0] * large  # a guard that fails has bound its name all the same
    return total * scale


def inside_each_other(x: Any) -> Any:
    match (x[0], [x[1], "sum"]):
        case (a, [b, "product"]):
            return a * b
        case (a, [b, how]):
            match how:
                case "sum":
                    return a + b**2
    return 0.0


X = np.array([0.5, 1.5, 2.5, 3.5, 0.7, 1.2, 0.4])


def test_value_and_gradient() -> None:
    for program, args in ((shapes, (X,)), (numbers, (X, 7)), (numbers, (X, 5)), (inside_each_other, (X,))):
        assert differentiable(program, backend="python").value_and_grad(*args)[0] == pytest.approx(program(*args))
        check_grads(program, *args, modes=("forward", "reverse"), backend="python")


@pytest.mark.compiled
def test_compiled() -> None:
    check_grads(numbers, X, 7, backend="numba")


def test_origins_are_the_lines_of_the_cases() -> None:
    backward = differentiable(numbers).inspect(X, 7).backward
    for line in ("scale = x[0] * large", "total += x[k] ** 2", "total += rest * x[k] ** 3"):
        assert f"# {line}" in backward


@pytest.mark.parametrize(
    ("case", "reason"),
    [('{"a": a, **rest}', "takes the rest of a dict"), ("[a] | (a, _)", "an alternative of a pattern binds a name")],
)
def test_refused(case: str, reason: str) -> None:
    source = f"def f(x):\n    match x:\n        case {case}:\n            return a\n    return x[0]\n"
    with pytest.raises(UnsupportedSyntax, match=reason) as caught:
        differentiable(define(source)).grad(X)
    assert caught.value.span is not None
    assert caught.value.span.line == 3
