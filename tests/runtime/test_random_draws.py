"""Random draws: made as plain Python makes them, held while the derivative is taken.

The oracle seeds anew and takes differences: the same draws at both ends, so what moves are the parameters.
"""

# ruff: noqa: NPY002  (the old interface is what some programs use)

from typing import Any

import numpy as np
import pytest

import tapegen as tg
from tapegen.errors import (
    NotDifferentiable,
)
from tests.draws import (
    PROGRAMS,
    Program,
    X,
    as_bounds,
    as_indices,
    as_sizes,
    as_steps,
    fresh,
    in_conditions,
    one,
    plain,
    random_walk,
    recursion,
    several,
    slope,
    states,
    two_loops,
    unseeded,
    while_it_draws,
)

# Numba has no compiled form of some draws; then the generated Python runs.
pytestmark = pytest.mark.filterwarnings("ignore::tapegen.errors.PerformanceWarning")


def check(func: Program, backend: str) -> None:
    value, after = plain(func)
    rng = fresh()
    found, gradient = tg.value_and_grad(func, backend=backend)(X, rng)
    assert found == value
    assert states(rng) == after
    assert gradient == pytest.approx(slope(func), rel=1e-6, abs=1e-8)

    rng = fresh()
    found, tangent = tg.jvp(func, (X, rng), (1.0, None), backend=backend)
    assert found == value
    assert states(rng) == after
    assert tangent == pytest.approx(gradient, rel=1e-10)

    rng = fresh()
    assert tg.differentiable(func, backend=backend)(X, rng) == value
    assert states(rng) == after


NAMED = pytest.mark.parametrize("func", PROGRAMS, ids=lambda func: func.__name__)


@NAMED
def test_programs(func: Program) -> None:
    check(func, "python")


@pytest.mark.compiled
@NAMED
def test_programs_compiled(func: Program) -> None:
    check(func, "auto")


COMPILED = [as_bounds, as_sizes, as_steps, in_conditions, while_it_draws, random_walk, two_loops, recursion, as_indices]


@pytest.mark.parametrize("func", [as_bounds, two_loops], ids=lambda func: func.__name__)
def test_sample_is_compiled(func: Program) -> None:
    check(func, "numba")


@pytest.mark.compiled
@pytest.mark.parametrize("func", COMPILED, ids=lambda func: func.__name__)
def test_is_compiled(func: Program) -> None:
    check(func, "numba")


@NAMED
def test_second_order(func: Program) -> None:
    _, after = plain(func)
    gradient = tg.grad(func, backend="python")
    rng = fresh()
    found = tg.hvp(func, (X, rng), (1.0, None), backend="python")
    assert states(rng) == after
    assert found == pytest.approx(slope(gradient), rel=1e-5, abs=1e-6)


# ---- several runs --------------------------------------------------------------------------------------------------


def noisy(x, rng):
    return rng.normal(x, x, size=3) * x


def test_a_pullback_replays() -> None:
    rng = fresh()
    value, pullback = tg.vjp(one, X, rng, backend="python")
    after = states(rng)
    assert pullback(1.0) == pytest.approx(slope(one))
    assert pullback(2.0) == pytest.approx(2 * slope(one))
    assert states(rng) == after
    assert value == plain(one)[0]


def test_each_call_draws_anew() -> None:
    func = tg.value_and_grad(one, backend="python")
    rng = fresh()
    first, second = func(X, rng), func(X, rng)
    again = fresh()
    assert (first[0], second[0]) == (one(X, again), one(X, again))
    assert first[1] != second[1]


@pytest.mark.parametrize("mode", ["forward", "reverse", None])
def test_jacobian_draws_once(mode: Any) -> None:
    _, after = plain(noisy)
    rng = fresh()
    found = tg.jacobian(noisy, mode=mode, backend="python")(X, rng)
    assert states(rng) == after
    h = 1e-6
    np.testing.assert_allclose(found, (noisy(X + h, fresh()) - noisy(X - h, fresh())) / (2 * h), rtol=1e-6)


def _of_two(x, first, second):
    return first.normal(x, x) * second.normal(x, x) * x + first.standard_normal(2) * x


@pytest.mark.parametrize("mode", ["forward", "reverse"])
def test_jacobian_of_one_generator_under_two_names(mode: Any) -> None:
    rng, again = fresh(), fresh()
    found = tg.jacobian(_of_two, mode=mode, backend="python")(X, rng, rng)
    _of_two(X, again, again)
    assert rng.bit_generator.state == again.bit_generator.state
    above, below = fresh(), fresh()
    h = 1e-6
    np.testing.assert_allclose(
        found, (_of_two(X + h, above, above) - _of_two(X - h, below, below)) / (2 * h), rtol=1e-6
    )


def test_linearize_replays() -> None:
    rng = fresh()
    _, linear = tg.linearize(one, X, rng, backend="python")
    after = states(rng)
    assert linear(1.0, None) == pytest.approx(slope(one))
    assert linear(2.0, None) == pytest.approx(2 * slope(one))
    assert states(rng) == after


def test_check_grads() -> None:
    tg.check_grads(several, X, fresh(), order=2, modes=("forward", "reverse"), backend="python")


def _reseeded(x):
    np.random.seed()
    return np.random.normal(x, x, 3)


@pytest.mark.parametrize("func", [unseeded, _reseeded])
def test_no_second_run_draws_what_the_system_gave(func: Program) -> None:
    for derive in (tg.jacobian(func, backend="python"), lambda x: tg.linearize(func, x, backend="python")):
        with pytest.raises(NotDifferentiable, match="no two runs"):
            derive(X)

    def inside(x):
        value, pullback = tg.vjp(func, x, backend="python")
        return np.sum(value) * pullback(np.ones(3))

    with pytest.raises(NotDifferentiable, match="no two runs"):
        tg.grad(inside, backend="python")(X)
