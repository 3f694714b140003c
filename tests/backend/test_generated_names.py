"""Names that generated text gives to what has none in the user's."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from tapegen import differentiable
from tapegen.ir.names import TEMPORARY, NameSupply


def test_intermediate_results_do_not_look_like_the_users_names() -> None:
    assert [NameSupply().fresh(TEMPORARY), NameSupply({"x"}, {"x"}).fresh(TEMPORARY)] == ["t", "t"]
    supply = NameSupply({"t"}, {"t"})
    assert [supply.fresh(TEMPORARY), supply.fresh(TEMPORARY), supply.fresh("t")] == ["tmp", "tmp_1", "t_1"]
    assert NameSupply((), {"t", "tmp"}).fresh(TEMPORARY) == "aux"


def test_a_user_who_calls_the_time_t_gets_expressions_as_written() -> None:
    def march(u: Any, k: float) -> Any:
        for t in range(3):
            u[1:-1] += k * t * (u[2:] - 2.0 * u[1:-1] + u[:-2])
        return np.sum(u)

    text = str(differentiable(march, wrt=(0, 1)).inspect(np.ones(6), 0.1).primal)
    assert "u[1:-1] += k * t * (u[2:] - 2.0 * u[1:-1] + u[:-2])" in text


def test_results_of_one_call_have_the_users_names() -> None:
    def f(x: float, y: float) -> Any:
        q, r = divmod(x, y)
        _, s = divmod(y, x)
        return q * r + r + s

    text = differentiable(f).inspect(7.5, 2.0).joint
    assert "q, r = divmod(x, y)" in text
    assert "q * r + r" in text


def test_an_underscore_stays_one_where_nobody_reads_it() -> None:
    def f(x: float, trip: float, n: int) -> Any:
        for _ in range(n):
            for _ in range(3):
                x = x * trip
        for _ in range(4):
            x = np.sin(x)
        return x

    text = differentiable(f).inspect(0.5, 2.0, 2).joint
    assert "for _ in range(n):" in text
    assert "__" not in text
    assert "for trip_1 in range(4):" in text  # the tape is read by it
    assert differentiable(f).grad(0.5, 2.0, 2) == differentiable(f, backend="python").grad(0.5, 2.0, 2)


def test_what_a_call_returns_has_the_name_under_which_the_caller_keeps_it() -> None:
    def squashed(x: float) -> float:
        if x > 9.0:
            return x * 0.1
        return 1.0 / (1.0 + math.exp(-x))

    def pair(x: float) -> Any:
        low = x - 1.0
        return low, x * x

    def f(x: float, y: float) -> Any:
        gate = squashed(x)
        below, other = pair(y)
        total = 0.0
        for weight in [x * y, x + y]:
            total += weight * weight
        return squashed(gate * below + other) * total

    inspected = differentiable(f, wrt=(0, 1)).inspect(0.5, 2.0)
    text = inspected.primal
    for line in ("gate = 1.0 / (1.0 + math.exp(-x))", "low = y - 1.0", "other = y * y", "weight = x * y"):
        assert line in text
    assert "result = " in text
    assert "result_1" not in text
    assert "gate_bar" in inspected.backward


def test_a_branch_that_only_says_whether_is_no_branch() -> None:
    def is_near(x: float, y: float) -> bool:
        if abs(x - y) < 1.0:  # noqa: SIM103
            return True
        return False

    def f(x: float, y: float) -> Any:
        far = True
        if is_near(x, y):
            far = False
        return x * y if far else x + y

    text = differentiable(f).inspect(0.5, 2.0).primal
    assert "True" not in text
    assert [differentiable(f, backend="python").grad(0.5, y) for y in (1.0, 2.0)] == [1.0, 2.0]
