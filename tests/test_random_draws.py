"""Random draws: made as plain Python makes them, held while the derivative is taken.

The oracle seeds anew and takes differences: the same draws at both ends, so what moves are the parameters.
"""

# ruff: noqa: NPY002  (the old interface is what some programs use)

from __future__ import annotations

import inspect
import os
import random
import subprocess
import sys
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numba
import numpy as np
import pytest
import scipy.stats
from numpy.random import PCG64, Generator, default_rng

import tapegen as tg
from tapegen.errors import (
    BadArgument,
    BuildError,
    MissingRule,
    NotDifferentiable,
    PerformanceWarning,
    TapegenError,
)
from tapegen.written import Wanted, module_text

Program = Callable[..., Any]
ROOT = Path(__file__).parent.parent

KEPT = np.random.default_rng(7)
PROGRAMS: list[Program] = []


def program(func: Program) -> Program:
    PROGRAMS.append(func)
    return func


# ---- programs ------------------------------------------------------------------------------------------------------


@program
def in_order(x, rng):
    a = rng.normal()
    b = rng.normal()
    return (b - 2 * a) * x


@program
def as_indices(x, rng):
    v = np.arange(5.0) * x
    return v[rng.integers(0, 5)] * x + v[rng.integers(0, 5)]


@program
def in_conditions(x, rng):
    total = 0.0
    for _ in range(20):
        if x > 0 and rng.random() < 0.5:
            total += rng.normal(x, 1.0)
        elif rng.random() < 0.5 or rng.random() < 0.5:
            total += x * x
    return total + rng.random()


@program
def while_it_draws(x, rng):
    s = x
    while rng.random() < 0.9:
        s = s * rng.uniform(0.9, 1.0 + 0.01 * x)
    return s


@program
def in_a_conditional_expression(x, rng):
    y = rng.normal(x, 1.0) if rng.random() < 0.5 else rng.gumbel(x, x)
    return y * y


@program
def not_used(x, rng):
    rng.normal()
    unused = rng.random(3)  # noqa: F841
    return x * rng.normal()


@program
def random_walk(x, rng):
    p = np.zeros(3)
    for _ in range(10):
        p = p + x * rng.standard_normal(3) + 0.1 * np.sin(p) * rng.laplace(0.0, x)
    return np.sum(p**2)


@program
def stored_backwards(x, rng):
    p = np.zeros(6)
    for i in range(5, -1, -1):
        p[i] = rng.normal(x, i + 1.0)
    return np.sum(p * np.arange(6.0) ** 2)


@program
def two_loops(x, rng):
    p = np.zeros(6)
    q = np.zeros(6)
    for i in range(6):
        p[i] = rng.normal(x, i + 1.0)
    for i in range(6):
        q[i] = rng.normal(x, i + 1.0)
    return np.sum(p * q * np.arange(6.0) ** 2)


@program
def orders(x, rng):
    v = np.sin(np.arange(6.0) * x)
    w = rng.permutation(v)
    rng.shuffle(v)
    chosen = rng.choice(w, 4) * rng.choice(v, 4, replace=False)
    return np.sum(v * np.arange(6.0)) + np.dot(w, v) + np.sum(chosen)


@program
def axes(x, rng):
    a = np.outer(np.arange(1.0, 4.0) * x, np.arange(2.0, 6.0) * x * x)
    rng.shuffle(a, axis=1)
    rng.shuffle(a)
    b = rng.permuted(a, axis=1) + rng.permuted(a)
    return np.sum(b * np.arange(12.0).reshape(3, 4)) + np.sum(rng.permutation(a, axis=1)[0]) * x


@program
def a_global_generator(x, rng):
    return KEPT.normal(x, 2.0) * x * rng.random()


@program
def numpys_own(x, rng):
    return np.random.normal(x, x) * np.random.exponential(x) + rng.random()


@program
def numpys_own_seeded(x, rng):
    np.random.seed(3)
    a = np.random.normal(x, x, size=4)
    return np.sum(a**2) * np.random.rand() + np.random.uniform(0, x) + np.sum(np.random.randn(3) * x)


@program
def made_inside(x, rng):
    first = np.random.default_rng(0)
    s = 0.0
    for k in range(3):
        other = np.random.default_rng(k)
        s += other.normal(x, x) * first.logistic(x, 2.0)
    return s * np.random.RandomState(5).normal(x, 1.0)


@program
def in_a_function(x, rng):
    def noise(mean):
        return rng.normal(mean, mean, size=3)

    return np.sum(noise(x) * noise(2 * x))


def _calls_itself(x, rng, n):
    if n == 0:
        return x
    return _calls_itself(x, rng, n - 1) * rng.normal(1.0, x)


@program
def recursion(x, rng):
    return _calls_itself(x, rng, 4)


@program
def by_shape(x, rng):
    number = rng.lognormal(x, x) + rng.rayleigh(x) + rng.weibull(x) + rng.pareto(x) + rng.power(x)
    number += rng.triangular(-x, 0.3 * x, 2 * x) + rng.gamma(2.0, x)
    number *= rng.triangular(-1.0, 0.5, 2.0) + rng.triangular(-1, 0, 2)
    return number + np.sum(rng.lognormal(x, x, 3)) + np.sum(rng.triangular(-x, 0.3 * x, 2 * x, 30))


@program
def by_shape_of_the_old_kind(x, rng):
    old = np.random.RandomState(4)
    number = old.lognormal(x, x) + old.rayleigh(x) + old.weibull(x) + old.pareto(x) + old.power(x)
    number += old.triangular(-x, 0.3 * x, 2 * x) + old.gamma(2.0, x)
    return number + np.sum(old.lognormal(x, x, 3)) + np.sum(old.triangular(-x, 0.3 * x, 2 * x, 30))


@program
def counts(x, rng):
    k = rng.poisson(3.0)
    n = rng.binomial(10, 0.3)
    c = rng.choice(5, p=[0.1, 0.2, 0.3, 0.2, 0.2])
    b = rng.integers(0, 4, size=5)
    v = np.arange(1.0, 6.0) * x
    return k * x + n * x * x + v[c] + np.sum(v[b]) + np.sum(rng.multinomial(5, [0.5, 0.5]) * x)


@program
def of_arrays(x, rng):
    v = np.array([0.5, 1.0, 2.0]) * x
    a = rng.normal(v, 1.0) * rng.normal(v, v * v)
    c = rng.normal(0.0, v, size=(2, 3)) * rng.uniform(v, v + np.ones((2, 1)))
    listed = rng.normal([1.0, 2.0, x], 2.0)
    return np.sum(a) + np.sum(c) + np.sum(rng.normal(v[:1], 1.0, size=3)) * np.sum(listed)


@program
def into_arrays(x, rng):
    b = np.zeros(4)
    rng.standard_normal(out=b)
    c = np.zeros(3, np.float32)
    rng.random(out=c, dtype=np.float32)
    d = rng.standard_normal(3, dtype=np.float32)
    return np.sum(b * x) + np.sum(c.astype(np.float64) * x) + np.sum(d.astype(np.float64) * x)


@program
def stopped(x, rng):
    return rng.normal(x, tg.stop_gradient(2.0)) * rng.poisson(3.0) * rng.standard_gamma(tg.stop_gradient(2.0))


@program
def gradient_inside(x, rng):
    def inner(y, r):
        return np.sum(r.normal(y, x, 3) ** 2)

    g = tg.grad(inner, backend="python")(x, rng)
    v, d = tg.jvp(inner, (x, rng), (1.0, None), backend="python")
    return g * x + d * v * rng.normal(x, 1.0)


def _several(x, rng):
    return rng.normal(x, x, size=3) * x + KEPT.normal() * x * x


def _one(x, rng):
    return np.sum(_several(x, rng) ** 2)


@program
def jacobian_inside(x, rng):
    return np.sum(tg.jacobian(_several, backend="python")(x, rng)) * rng.normal(x, 1.0)


@program
def rows_inside(x, rng):
    return np.sum(tg.jacobian(_several, mode="reverse", backend="python")(x, rng)) * rng.normal(x, 1.0)


@program
def hessian_inside(x, rng):
    def objective(v, r):
        return np.sum(r.normal(v, v) ** 3) * np.sum(v)

    return np.sum(tg.hessian(objective, backend="python")(np.array([0.5, 1.0, 2.0]) * x, rng)) * rng.normal(x, 1.0)


@program
def pullback_inside(x, rng):
    value, pullback = tg.vjp(_one, x, rng, backend="python")
    between = rng.normal()
    return value * pullback(1.0) * between * rng.normal(x, 1.0) + pullback(2.0)


@program
def imported_by_name(x, rng):
    return default_rng(3).normal(x, x) + Generator(PCG64(2)).normal(x, x) * rng.random()


@program
def by_the_class(x, rng):
    kind = 2.0 if type(rng) is np.random.Generator else 3.0
    if isinstance(rng, np.random.RandomState):
        return x
    return rng.normal(x, kind) if isinstance(rng, np.random.Generator) and hasattr(rng, "integers") else 2 * x


@program
def several_names(x, rng):
    g = rng if rng.random() < 0.5 else np.random.default_rng(3)
    s = x * g.normal(x, 1.0)
    for k in range(3):
        s = s * g.normal(1.0, x)
        g = np.random.default_rng(k) if k != 1 else rng
    return s + sum(each.normal(x, 1.0) for each in [g, rng])


@program
def lists(x, rng):
    return rng.choice([x, x * x]) * rng.permutation([x, x * x, 3 * x])[0] + rng.choice((x, 2.0))


@program
def as_bounds(x, rng):
    s = 0.0
    for i in range(rng.integers(1, 4)):
        for j in range(rng.integers(0, 3)):
            s += rng.normal(x, i + 1.0) * x**j
    return s + x


@program
def as_bounds_by_arithmetic(x, rng):
    s = x
    for _ in range(3):
        k = min(rng.integers(0, 5), 3)
        for j in range(k, 2 * (k + 1)):
            s = np.sin(s) + x * 0.1 * j
    return s


@program
def as_sizes(x, rng):
    s = x
    for _ in range(4):
        n = rng.integers(1, 4)
        v = rng.normal(s, 1.0, size=n)
        w = np.zeros(n)
        for j in range(n):
            w[j] = np.tanh(v[j] * x)
        s = s * 0.5 + np.sum(w * v)
    return s


@program
def as_ends_of_slices(x, rng):
    s = x
    for _ in range(3):
        low = rng.integers(0, 2)
        high = rng.integers(3, 6)
        v = np.arange(6.0) * s
        v[low:high] = v[low:high] ** 2 * 0.01
        s = np.sum(v) * 0.1
    return s


@program
def as_steps(x, rng):
    s = x
    k = 0
    while k < 6:
        step = rng.integers(1, 3)
        for j in range(k, k + step):
            s = np.cos(s * j) * x
        k += step
    return s


# ---- the oracle ----------------------------------------------------------------------------------------------------

X = 1.3


def fresh() -> np.random.Generator:
    """All generators as at the beginning; the one that is an argument."""
    KEPT.bit_generator.state = np.random.default_rng(7).bit_generator.state
    np.random.seed(11)
    return np.random.default_rng(5)


def states(rng: np.random.Generator) -> tuple[str, ...]:
    kept = np.random.get_state(legacy=False)
    return repr(rng.bit_generator.state), repr(KEPT.bit_generator.state), repr(kept)


def plain(func: Program, x: float = X) -> tuple[Any, tuple[str, ...]]:
    rng = fresh()
    return func(x, rng), states(rng)


def slope(func: Program) -> float:
    h = 1e-6
    return (func(X + h, fresh()) - func(X - h, fresh())) / (2 * h)


@pytest.fixture(autouse=True)
def uncompiled() -> Iterator[None]:
    """Numba has no compiled form of some draws; then the generated Python runs."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", PerformanceWarning)
        yield


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
    value, pullback = tg.vjp(_one, X, rng, backend="python")
    after = states(rng)
    assert pullback(1.0) == pytest.approx(slope(_one))
    assert pullback(2.0) == pytest.approx(2 * slope(_one))
    assert states(rng) == after
    assert value == plain(_one)[0]


def test_each_call_draws_anew() -> None:
    func = tg.value_and_grad(_one, backend="python")
    rng = fresh()
    first, second = func(X, rng), func(X, rng)
    again = fresh()
    assert (first[0], second[0]) == (_one(X, again), _one(X, again))
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
    _, linear = tg.linearize(_one, X, rng, backend="python")
    after = states(rng)
    assert linear(1.0, None) == pytest.approx(slope(_one))
    assert linear(2.0, None) == pytest.approx(2 * slope(_one))
    assert states(rng) == after


def test_check_grads() -> None:
    tg.check_grads(_several, X, fresh(), order=2, modes=("forward", "reverse"), backend="python")


def _unseeded(x):
    return np.random.default_rng().normal(x, x, 3)


def _reseeded(x):
    np.random.seed()
    return np.random.normal(x, x, 3)


@pytest.mark.parametrize("func", [_unseeded, _reseeded])
def test_no_second_run_draws_what_the_system_gave(func: Program) -> None:
    for derive in (tg.jacobian(func, backend="python"), lambda x: tg.linearize(func, x, backend="python")):
        with pytest.raises(NotDifferentiable, match="no two runs"):
            derive(X)

    def inside(x):
        value, pullback = tg.vjp(func, x, backend="python")
        return np.sum(value) * pullback(np.ones(3))

    with pytest.raises(NotDifferentiable, match="no two runs"):
        tg.grad(inside, backend="python")(X)


# ---- errors --------------------------------------------------------------------------------------------------------


def _fails_later(x, rng, v):
    a = rng.normal(x, 1.0) * KEPT.normal()
    return a * v[int(np.random.rand()) + 5]


@pytest.mark.parametrize("backend", ["python", pytest.param("auto", marks=pytest.mark.compiled)])
def test_after_an_exception_the_state_is_that_of_plain_python(backend: str) -> None:
    rng = fresh()
    with pytest.raises(IndexError, match="index 5"):
        _fails_later(X, rng, np.zeros(3))
    after = states(rng)
    rng = fresh()
    with pytest.raises(IndexError, match="index 5"):
        tg.grad(_fails_later, backend=backend)(X, rng, np.zeros(3))
    assert states(rng) == after


def _fails_by_what_is_drawn(x, rng):
    total = 0.0
    for _ in range(50):
        k = rng.integers(0, 10)
        if k == 7:
            raise ValueError(f"drew {k} at {total}")
        total += rng.normal(x, 1.0)
    return total


def test_the_exception_is_that_of_the_same_draws() -> None:
    rng = fresh()
    with pytest.raises(ValueError, match="drew 7") as expected:
        _fails_by_what_is_drawn(X, rng)
    after = states(rng)
    rng = fresh()
    with pytest.raises(ValueError, match="drew 7") as found:
        tg.grad(_fails_by_what_is_drawn, backend="python")(X, rng)
    assert str(found.value).splitlines()[0] == str(expected.value)
    assert states(rng) == after


REFUSED = {
    "poisson": lambda x, rng: rng.poisson(x) * x,
    "binomial": lambda x, rng: rng.binomial(3, 0.1 * x) * x,
    "choice": lambda x, rng: rng.choice(3, p=np.array([0.5 * x, 1 - 0.5 * x, 0.0])) * x,
    "beta": lambda x, rng: rng.beta(x, 1.0),
    "standard_gamma": lambda x, rng: rng.standard_gamma(x),
    "gamma by its shape": lambda x, rng: rng.gamma(x, 2.0),
    "dirichlet": lambda x, rng: rng.dirichlet(np.array([x, 1.0]))[0],
    "covariance": lambda x, rng: rng.multivariate_normal(np.zeros(2), np.eye(2) * x)[0],
    "standard_t": lambda x, rng: rng.standard_t(x),
    "vonmises": lambda x, rng: rng.vonmises(x, 1.0),
    "wald": lambda x, rng: rng.wald(x, 1.0),
    "f": lambda x, rng: np.random.f(x, 2.0),
    "compared": lambda x, rng: x if rng.poisson(x) > 2 else 2 * x,
}


@pytest.mark.parametrize("name", REFUSED)
def test_draws_without_a_derivative(name: str) -> None:
    with pytest.raises(MissingRule, match="is not differentiated") as caught:
        tg.grad(REFUSED[name], backend="python")(X, fresh())
    assert caught.value.advice


class Fixed(np.random.Generator):
    def normal(self, loc=0.0, scale=1.0, size=None):
        return loc * 7.0 + 0.0 * scale


def test_a_class_derived_from_generators() -> None:
    rng = Fixed(PCG64(1))
    assert tg.value_and_grad(lambda x, r: r.normal(x, x), backend="python")(X, rng) == (7.0 * X, 7.0)
    with pytest.raises(NotDifferentiable, match="no single generator"):
        tg.grad(lambda x, r: r.standard_normal() * x, backend="python")(X, rng)


def test_what_is_written_into_an_argument() -> None:
    def shuffled(v, rng):
        rng.shuffle(v)
        rng.standard_normal(out=v[:1])
        return np.sum(v * np.arange(1.0, 4.0)) * v[1]

    v, w = np.array([0.5, 1.0, 2.0]), np.array([0.5, 1.0, 2.0])
    value, gradient = tg.value_and_grad(shuffled, backend="python")(v, fresh())
    assert value == shuffled(w, fresh())
    assert np.array_equal(v, w)
    start = np.array([0.5, 1.0, 2.0])
    moved = [shuffled(start + h * e, fresh()) for e in np.eye(3) for h in (1e-6, -1e-6)]
    np.testing.assert_allclose(gradient, (np.array(moved[::2]) - np.array(moved[1::2])) / 2e-6, rtol=1e-6, atol=1e-8)


def _list_in_order(x, rng):
    items = [x, 2 * x, 3 * x]
    rng.shuffle(items)
    return items[0] * items[1]


UNFOLLOWED = {
    "the order of a list": _list_in_order,
    "bytes": lambda x, rng: rng.bytes(3)[0] * x,
    "spawn": lambda x, rng: rng.spawn(2)[0].normal(x, 1.0),
    "bit_generator": lambda x, rng: np.random.Generator(rng.bit_generator).normal(x, 1.0),
    "get_state": lambda x, rng: x * len(np.random.get_state()),
    "a function of the generator": lambda x, rng: x * len(str(rng)),
}


@pytest.mark.parametrize("name", UNFOLLOWED)
def test_other_uses_of_a_generator(name: str) -> None:
    with pytest.raises(TapegenError):
        tg.grad(UNFOLLOWED[name], backend="python")(X, fresh())


HIDDEN = {
    "rvs": (lambda x, rng: x * np.sum(scipy.stats.norm.rvs(size=3)), "random_state=0"),
    "rvs from the argument": (lambda x, rng: x * scipy.stats.norm.rvs(random_state=rng), "random_state=0"),
    "rvs by its parameter": (lambda x, rng: scipy.stats.norm.rvs(x), "random_state=0"),
    "a frozen distribution": (lambda x, rng: x * np.sum(FROZEN.rvs(3)), "random_state=0"),
    "a matrix": (lambda x, rng: x * scipy.stats.special_ortho_group(3).rvs()[0, 0], "random_state=0"),
    "Python's": (lambda x, rng: x * random.random(), "default_rng"),
    "Python's gauss": (lambda x, rng: x * random.gauss(0.0, 1.0), "default_rng"),
}
FROZEN = scipy.stats.norm(1.0, 2.0)


@pytest.mark.parametrize("name", HIDDEN)
def test_draws_from_a_generator_that_is_not_followed(name: str) -> None:
    func, advice = HIDDEN[name]
    with pytest.raises(TapegenError) as caught:
        tg.grad(func, backend="python")(X, fresh())
    assert advice in caught.value.advice


def test_a_seed_is_an_argument_like_others() -> None:
    value, slope_ = tg.value_and_grad(
        lambda x: x * np.sum(scipy.stats.norm.rvs(size=3, random_state=4)), backend="python"
    )(X)
    expected = np.sum(scipy.stats.norm.rvs(size=3, random_state=4))
    assert (value, slope_) == (X * expected, expected)


def _deep(x, rng):
    if x < 0.1:
        return x
    return _deep(x * 0.5, rng) * rng.normal(1.0, x)


def test_recursion_as_deep_as_a_value_says() -> None:
    with pytest.raises(NotDifferentiable, match="draws random numbers"):
        tg.grad(_deep, backend="python")(X, fresh())


WRONG = {
    "scale": (ValueError, lambda x, rng: rng.normal(0.0, -x)),
    "a constant scale": (ValueError, lambda x, rng: rng.normal(0.0, -1.0) * x),
    "no method": (AttributeError, lambda x, rng: rng.nope(3) * x),
    "arguments": (TypeError, lambda x, rng: rng.normal(x, 1.0, 3, 4)),
    "size": (ValueError, lambda x, rng: np.sum(rng.normal(np.ones(3) * x, 1.0, size=(1,)))),
    "no shape": (ValueError, lambda x, rng: np.sum(rng.normal(np.ones(3) * x, 1.0, size=4))),
    "negative": (ValueError, lambda x, rng: x * np.sum(rng.normal(0.0, 1.0, size=-4))),
}


@pytest.mark.parametrize("name", WRONG)
def test_errors_of_numpy(name: str) -> None:
    kind, func = WRONG[name]
    with pytest.raises(kind):
        func(X, fresh())
    with pytest.raises(kind):
        tg.grad(func, backend="python")(X, fresh())


# ---- where generators come from ------------------------------------------------------------------------------------


class Model:
    def __init__(self) -> None:
        self.rng = np.random.default_rng(1)
        self.weight = 2.0

    def __call__(self, x: float) -> float:
        return self.rng.normal(self.weight * x, 1.0) * x


def test_attribute_of_an_object() -> None:
    value, _ = tg.value_and_grad(Model().__call__, backend="python")(1.5)
    model = Model()
    assert value == model(1.5)
    func = tg.value_and_grad(model.__call__, backend="python")
    assert func(1.5)[0] == np.random.default_rng(1).normal(size=2)[1] * 1.5 + 3.0 * 1.5


def test_a_bound_method() -> None:
    draw = np.random.default_rng(3).normal
    value, gradient = tg.value_and_grad(lambda x: draw(x, 1.0) * x, backend="python")(1.5)
    z = np.random.default_rng(3).standard_normal()
    assert value == (1.5 + z) * 1.5
    assert gradient == pytest.approx(3.0 + z)


def test_returned() -> None:
    rng = fresh()
    value, pullback = tg.vjp(lambda x, r: {"a": r.normal(x, 1.0), "r": r}, X, rng, backend="python")
    assert value["r"] is rng
    with pytest.raises(BadArgument):
        pullback({"a": 1.0})


def _descent(w, rng, xs, ys):
    for _ in range(50):
        i = rng.integers(0, 10)
        w = w - 0.1 * (w * xs[i] - ys[i]) * xs[i]
    return w


@pytest.mark.parametrize("backend", ["python", pytest.param("numba", marks=pytest.mark.compiled)])
def test_stochastic_gradient_descent(backend: str) -> None:
    xs = np.linspace(0, 1, 10)
    ys = 2 * xs + 0.1
    value, gradient = tg.value_and_grad(_descent, backend=backend)(0.5, fresh(), xs, ys)
    assert value == _descent(0.5, fresh(), xs, ys)
    h = 1e-6
    estimate = (_descent(0.5 + h, fresh(), xs, ys) - _descent(0.5 - h, fresh(), xs, ys)) / (2 * h)
    assert gradient == pytest.approx(estimate, rel=1e-6)


# ---- other ways to a derivative ------------------------------------------------------------------------------------


def _shaken(x, rng):
    return rng.normal(x, 2.0) * x * x


def _shaken_by_the_global(x):
    return KEPT.normal(x, 2.0) * x


SHAKEN = tg.differentiable(_shaken)


@numba.njit
def _in_compiled_code(x, rng):
    return SHAKEN.njit.value_and_grad(x, rng), SHAKEN.njit(x, rng)


def test_inside_compiled_code_a_generator_is_passed_on() -> None:
    found = _in_compiled_code(X, fresh())
    rng = fresh()
    assert found[0] == (_shaken(X, rng), pytest.approx(slope(_shaken)))
    assert found[1] == _shaken(X, rng)


def test_compiled_code_would_keep_a_global_generator() -> None:
    derived = tg.differentiable(_shaken_by_the_global)

    @numba.njit
    def compiled(x):
        return derived.njit(x)

    with pytest.raises(NotDifferentiable, match="'KEPT' from outside"):
        compiled(X)


@pytest.mark.parametrize("func", [_shaken, _shaken_by_the_global])
def test_no_library_draws(func: Program, tmp_path: Path) -> None:
    args = (X, fresh())[: len(inspect.signature(func).parameters)]
    with pytest.raises(BuildError, match="generator of random numbers"):
        tg.aot.build(tg.differentiable(func), *args, directory=str(tmp_path), name="draws")


def test_a_written_module_takes_the_generator() -> None:
    text = module_text([Wanted(tg.differentiable(_shaken), (X, fresh()), {})], readable=True)
    namespace: dict[str, Any] = {}
    exec(text, namespace)
    rng = fresh()
    assert namespace["_shaken_value_and_grad"](X, rng) == (plain(_shaken)[0], pytest.approx(slope(_shaken)))
    assert states(rng) == plain(_shaken)[1]


def test_on_a_tape() -> None:
    x = tg.Variable(X)
    with tg.GradientTape() as tape:
        y = SHAKEN(x, fresh())
    assert y.numpy() == plain(_shaken)[0]
    assert tape.gradient(y, x).numpy() == pytest.approx(slope(_shaken))
    with tg.GradientTape(), pytest.raises(NotDifferentiable, match="leaves the tape"):
        _shaken(x, fresh())


def _shaken_array(x, rng):
    return rng.normal(x, 2.0 * x, size=3) * x * x


SHAKEN_ARRAY = tg.differentiable(_shaken_array, backend="python")


def test_a_tape_draws_once_for_every_order() -> None:
    x, rng = tg.Variable(X), fresh()
    with tg.GradientTape() as outer:
        with tg.GradientTape(persistent=True) as inner:
            y = SHAKEN(x, rng)
        g = inner.gradient(y, x)
    assert inner.gradient(y, x).numpy() == g.numpy() == pytest.approx(slope(_shaken))
    # (x + 2 z) x^2
    z = fresh().standard_normal()
    assert outer.gradient(g, x).numpy() == pytest.approx(6 * X + 4 * z)
    assert states(rng) == plain(_shaken)[1]


def test_tangents_on_a_tape_are_those_of_the_value() -> None:
    x, rng = tg.Variable(X), fresh()
    with tg.ForwardAccumulator(x, 1.0) as accumulator:
        y = SHAKEN(x, rng)
    assert accumulator.jvp(y).numpy() == pytest.approx(slope(_shaken))
    assert states(rng) == plain(_shaken)[1]


def test_jacobian_on_a_tape() -> None:
    x, rng = tg.Variable(X), fresh()
    with tg.GradientTape() as tape:
        y = SHAKEN_ARRAY(x, rng)
    z = fresh().standard_normal(3)
    np.testing.assert_allclose(tape.jacobian(y, x).numpy(), 3 * X**2 * (1 + 2 * z), rtol=1e-12)
    assert states(rng) == plain(_shaken_array)[1]


def test_tangents_of_what_the_system_seeds() -> None:
    x = tg.Variable(X)
    with tg.ForwardAccumulator(x, 1.0) as accumulator, pytest.raises(NotDifferentiable, match="no two runs"):
        accumulator.jvp(tg.differentiable(_unseeded, backend="python")(x))


# ---- on disk -------------------------------------------------------------------------------------------------------

ON_DISK = """
import numpy as np
import tapegen as tg


@tg.differentiable
def shaken(x, rng):
    return rng.normal(x, 2.0) * x + rng.random()


print(shaken.value_and_grad(1.3, np.random.default_rng(5)))
"""


def test_a_second_process_draws_the_same(tmp_path: Path) -> None:
    (tmp_path / "shaken.py").write_text(ON_DISK)
    environment = {
        **os.environ,
        "PYTHONPATH": str(ROOT),
        "TAPEGEN_CACHE": "1",
        "TAPEGEN_CACHE_DIR": str(tmp_path / "cache"),
    }
    command = [sys.executable, "-W", "ignore", str(tmp_path / "shaken.py")]
    runs = []
    for _ in range(2):
        done = subprocess.run(command, capture_output=True, text=True, env=environment, check=True)
        runs.append((done.stdout, sorted(path.name for path in (tmp_path / "cache").iterdir())))
    assert runs[0] == runs[1]
    assert runs[0][1]
