"""Derivatives with respect to `*args`: all of them, and single ones."""

from __future__ import annotations

import functools
from typing import Any

import numpy as np
import pytest

import tapegen as tg
from tapegen.errors import BadArgument


def product(x: float, *factors: float) -> float:
    for k, factor in enumerate(factors):
        x = x * factor ** (k + 1)
    return x


class Scaled:
    """A method with `*args`."""

    def value(self, *factors: float) -> float:
        return product(2.0, *factors)


ARGS = (1.5, 2.0, 3.0)
SLOPES = (18.0, 13.5, 18.0)


def test_positions_behind_the_parameters_count_the_call() -> None:
    assert tg.grad(product, wrt=(0, 1, 2), backend="python")(*ARGS) == pytest.approx(SLOPES)
    assert tg.grad(product, wrt=2, backend="python")(*ARGS) == pytest.approx(SLOPES[2])
    assert tg.grad(Scaled().value, wrt=(0, 1), backend="python")(2.0, 3.0) == pytest.approx((18.0, 24.0))


def test_the_parameter_itself_is_all_of_them() -> None:
    for wrt in (1, "factors"):
        assert tg.grad(product, wrt=wrt, backend="python")(*ARGS) == pytest.approx(SLOPES[1:])
    assert tg.grad(product, wrt="factors.1", backend="python")(*ARGS) == pytest.approx(SLOPES[2])


def test_bound_arguments_are_not_counted() -> None:
    for bound in (1, 2):
        function = functools.partial(product, *ARGS[:bound])
        rest, slopes = ARGS[bound:], SLOPES[bound:]
        wrt = tuple(range(len(rest)))
        found = tg.jvp(function, rest, (1.0,) * len(rest), backend="python")
        assert found[1] == pytest.approx(sum(slopes))
        if len(wrt) > 1:
            assert tg.grad(function, wrt=wrt, backend="python")(*rest) == pytest.approx(slopes)


@pytest.mark.parametrize("backend", ["python", "numba"])
def test_tangents_of_single_ones(backend: str) -> None:
    f: Any = tg.differentiable(product, backend=backend)
    for tangents in ((1.0, 2.0, 0.5), (None, 2.0, None), (None, None, 1.0)):
        given = [0.0 if tangent is None else tangent for tangent in tangents]
        assert f.jvp(ARGS, tangents)[1] == pytest.approx(np.dot(given, SLOPES))


def test_a_position_that_the_call_does_not_have() -> None:
    with pytest.raises(BadArgument, match=r"wrt='factors\.3': there are 2 of them"):
        tg.grad(product, wrt=4, backend="python")(*ARGS)
