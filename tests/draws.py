"""Programs that draw random numbers, and what plain Python makes of them."""

# ruff: noqa: NPY002  (the old interface is what some programs use)

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.random import PCG64, Generator, default_rng

import tapegen as tg

Program = Callable[..., Any]
KEPT = np.random.default_rng(7)
PROGRAMS: list[Program] = []


def program(func: Program) -> Program:
    PROGRAMS.append(func)
    return func


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


def several(x, rng):
    return rng.normal(x, x, size=3) * x + KEPT.normal() * x * x


def one(x, rng):
    return np.sum(several(x, rng) ** 2)


@program
def jacobian_inside(x, rng):
    return np.sum(tg.jacobian(several, backend="python")(x, rng)) * rng.normal(x, 1.0)


@program
def rows_inside(x, rng):
    return np.sum(tg.jacobian(several, mode="reverse", backend="python")(x, rng)) * rng.normal(x, 1.0)


@program
def hessian_inside(x, rng):
    def objective(v, r):
        return np.sum(r.normal(v, v) ** 3) * np.sum(v)

    return np.sum(tg.hessian(objective, backend="python")(np.array([0.5, 1.0, 2.0]) * x, rng)) * rng.normal(x, 1.0)


@program
def pullback_inside(x, rng):
    value, pullback = tg.vjp(one, x, rng, backend="python")
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


def unseeded(x):
    return np.random.default_rng().normal(x, x, 3)
