"""Names that generated text gives to what has none in the user's."""

from __future__ import annotations

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
