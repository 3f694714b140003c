"""Random draws: errors, where generators come from, other ways to a derivative, what is on disk."""

# ruff: noqa: NPY002  (the old interface is what some programs use)

import inspect
import os
import random
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numba
import numpy as np
import pytest
import scipy.stats
from numpy.random import PCG64

import tapegen as tg
from tapegen.errors import (
    BadArgument,
    BuildError,
    MissingRule,
    NotDifferentiable,
    TapegenError,
)
from tapegen.export.module import ExportRequest, module_text
from tests.draws import KEPT, X, fresh, plain, slope, states, unseeded

# Numba has no compiled form of some draws; then the generated Python runs.
pytestmark = pytest.mark.filterwarnings("ignore::tapegen.errors.PerformanceWarning")

Program = Callable[..., Any]
ROOT = Path(__file__).parents[2]


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
    text = module_text([ExportRequest(tg.differentiable(_shaken), (X, fresh()), {})], readable=True)
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
        accumulator.jvp(tg.differentiable(unseeded, backend="python")(x))


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
