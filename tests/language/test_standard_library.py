"""Calls of Python's own library and of objects that libraries make of functions."""

from __future__ import annotations

import copy
import dataclasses
import functools
import math
import operator
import statistics
import sys
import textwrap
from collections import defaultdict
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest
from scipy import stats
from scipy.stats import norm

import tapegen as tg
from tapegen import check_grads, differentiable
from tapegen.errors import NotDifferentiable, UnsupportedSyntax

X = np.array([0.3, 0.7, 1.1, 0.2])


@dataclass(frozen=True)
class State:
    place: float
    speed: float = 1.0
    name: str = "a"

    def __post_init__(self) -> None:
        if self.place < -100:
            raise ValueError(self.place)


@dataclass
class Pair:
    first: State
    rest: list[State]


class Bag:
    def __init__(self, values: Any) -> None:
        self.values = values
        self.items = [values, values]
        self.same = self.items


def reduced(x: Any) -> Any:
    return (
        functools.reduce(operator.mul, [x[0], 2.0, x[1]])
        + functools.reduce(lambda a, b: a + b * b, x, 1.0)
        + functools.reduce(lambda a, b: a * b, (x[0] + k for k in range(3)))
        + functools.reduce(np.matmul, [np.outer(x, x) for _ in range(2)], np.eye(4))[0, 1]
    )


def dataclasses_changed(x: Any) -> Any:
    state = dataclasses.replace(State(x[0]), speed=x[1] ** 2)
    pair = Pair(state, [State(x[2]), state])
    shown = dataclasses.asdict(pair)
    total = shown["first"]["speed"] ** 2 + shown["rest"][0]["place"] * shown["rest"][1]["place"]
    total += sum(part**2 for part in dataclasses.astuple(state)[:2])
    total += sum(getattr(state, field.name) ** 3 for field in dataclasses.fields(state) if field.name != "name")
    return total + sum(value for name, value in vars(state).items() if name != "name")


def copies(x: Any) -> Any:
    bag = Bag(x[:2] * 1.0)
    deep, shallow = copy.deepcopy(bag), copy.copy(bag)
    deep.same.append(bag.values)
    deep.items[0][0] = 5.0
    bag.values[1] = 7.0 * x[2]
    grown = [x[0]]
    rows = [x * 1.0]
    for k in range(3):
        grown.append(x[1] * k)
        rows.append(x * k)
    other = copy.copy(grown)
    other.append(x[2])
    kept = copy.deepcopy(rows)
    rows[1][0] = 0.0
    total = len(deep.items) * x[0] + deep.items[1][0] + deep.items[0][1] + shallow.values[1] + shallow.items[1][0]
    return total + sum(other) + sum(copy.deepcopy(grown)) * x[3] + sum(row[0] ** 2 for row in kept) + rows[1][0]


def statistical(x: Any) -> Any:
    data = [x[0], x[1] ** 2, 1.0, x[3]]
    return (
        statistics.fmean(v * v for v in x)
        + statistics.mean(data)
        + statistics.stdev(data)
        + statistics.pstdev(x)
        + statistics.variance(data, 0.5)
        + statistics.pvariance(data)
        + statistics.median(data)
        + statistics.median(data[:3])
        + statistics.fmean(data, weights=[1.0, 2.0, x[2], 1.0])
    )


hinge = np.vectorize(lambda t, k: t**2 if t > 0.5 else k * t)


@np.vectorize
def exponential(t: Any) -> Any:
    return math.exp(t)


def vectorised(x: Any) -> Any:
    inner = np.vectorize(lambda v: v * x[0], otypes=[float])
    return hinge(np.outer(x, x), x[1]).sum() + exponential(x).prod() + inner(x)[1:].sum() + float(hinge(x[0], 2.0))


def merged_dicts(x: Any) -> Any:
    merged = {"a": x[0], "b": 2.0} | {"b": x[1], "c": x[2]}
    return sum(k * value for k, value in enumerate(merged.values()))


def sets(x: Any) -> Any:
    fixed = {0, 3}
    free = [k for k in range(4) if k not in fixed]
    matrix = np.outer(x, x) + np.eye(4)
    solved = np.zeros(4)
    solved[free] = np.linalg.solve(matrix[free][:, free], x[free])
    names = sorted({name for pair in (("a", "b"), ("c", "a")) for name in pair})
    weights = {name: x[k] for k, name in enumerate(names)}
    total = solved @ x
    for name in sorted(set(names) - {"a"}):
        total += weights[name] ** 2
    return total * len(frozenset((1, 1, 2))) if 3 in fixed | {5} else total


standard = stats.norm(0.5, 2.0)


def distributions(x: Any) -> Any:
    given = norm(x[0], scale=x[1])
    total = given.logpdf(0.3) + given.cdf(x).sum() + standard.ppf(x[0])
    total += norm.ppf(np.array([0.2, 0.9])) @ x[:2] + norm.pdf(x, loc=x[2]).sum()
    return total + stats.gamma(a=2.0, scale=x[0]).logpdf(1.0) + stats.beta(2.0, 3.0).logpdf(x[3])


def measured(func: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(func)
    def inner(*args: Any, **kwargs: Any) -> Any:
        return func(*args, **kwargs) * 1.0

    return inner


@measured
def weighted(r: Any, weight: float = 1.0) -> Any:
    return weight * r**2


@functools.lru_cache
def quartic(r: float) -> float:
    return r**4


def decorated(x: Any) -> Any:
    return weighted(x[0], 2.0) + weighted(x[1], weight=3.0) + weighted(x).sum() + quartic(x[2])


def warnings_aside(x: Any) -> Any:
    parts = {"log": x[1:] - x[1], "bias": x * 2.0}
    with np.errstate(divide="ignore", invalid="ignore"):
        logs = np.where(parts["log"] > 0, np.log(parts["log"]), 0.0)
        if x[0] > 100:
            return x[0]
    return logs.sum() + sum(np.sum(part) for name, part in parts.items() if name.startswith("b"))


def list_of_slices(x: Any) -> Any:
    cube = np.multiply.outer(np.outer(x, x), x)
    core, near = cube[1:-1, 1:-1, 1:-1], np.zeros((2, 2, 2))
    for axis in range(3):
        for part in (slice(None, -2), slice(2, None)):
            index = [slice(1, -1)] * 3
            index[axis] = part
            np.add(near, cube[tuple(index)], out=near)
    core += 0.1 * near
    return (cube**2).sum()


PROGRAMS = [
    decorated,
    warnings_aside,
    list_of_slices,
    reduced,
    dataclasses_changed,
    copies,
    statistical,
    vectorised,
    merged_dicts,
    sets,
    distributions,
]


@pytest.mark.parametrize("program", PROGRAMS)
def test_value_and_gradient(program: Callable[[Any], Any]) -> None:
    value = differentiable(program, backend="python").value_and_grad(X)[0]
    assert value == pytest.approx(program(X), rel=1e-14)
    assert type(value) is type(program(X))
    check_grads(program, X, modes=("forward", "reverse"), backend="python")


@pytest.mark.compiled
@pytest.mark.parametrize("program", [reduced, dataclasses_changed, copies, statistical, sets])
def test_compiled(program: Callable[[Any], Any]) -> None:
    check_grads(program, X, backend="numba")


def test_a_draw_under_a_name_that_becomes_active_is_a_constant() -> None:
    def path(x: Any, rng: Any) -> Any:
        state = rng.standard_normal(2)
        for k in range(3):
            state = state * x[k] + rng.standard_normal(2)
        return state.sum()

    check_grads(path, X, np.random.default_rng(0), wrt=0, backend="python")


def test_what_cannot_be_followed_is_refused_where_the_user_calls_it() -> None:
    def of_text(x: Any) -> Any:
        return x[0] * len(textwrap.dedent(str(x[0])))

    def of_keys(x: Any) -> Any:
        cells = defaultdict(list)
        cells[int(x[0])].append(x[1])
        return x[0]

    def of_values(x: Any) -> Any:
        return x[0] * len({x[0], x[1]})

    def of_set(x: Any) -> Any:
        seen: set[int] = set()
        seen.add(1)
        return x[0]

    def raising(x: Any) -> Any:
        with np.errstate(all="raise"):
            return x[0] / x[1]

    for program, kind, reason in (
        (raising, NotDifferentiable, "np.errstate calls a function, or raises where a number is too small"),
        (of_text, NotDifferentiable, r"'textwrap.dedent' cannot be followed"),
        (of_keys, NotDifferentiable, "'defaultdict' are not followed"),
        (of_values, UnsupportedSyntax, "set of computed values"),
        (of_set, NotDifferentiable, "'set.add'"),
    ):
        with pytest.raises(kind, match=reason) as caught:
            differentiable(program).grad(X)
        assert caught.value.span is not None
        assert caught.value.span.file == __file__


def test_products_begin_with_what_is_given() -> None:
    def product(x):
        return math.prod([x, 2.0 * x], start=x) + math.prod((x, 3.0), start=2)

    value, slope = differentiable(product, backend="python").value_and_grad(0.7)
    assert value == product(0.7)
    assert slope == pytest.approx(6.0 * 0.7**2 + 6.0)


def test_fields_of_float_info() -> None:
    def bounded(x: float) -> float:
        if x > sys.float_info.max / 2.0:
            return -sys.float_info.max
        return x * x + sys.float_info.epsilon

    assert tg.value_and_grad(bounded, backend="python")(2.0) == (bounded(2.0), 4.0)
    assert tg.value_and_grad(bounded, backend="python")(1.7e308) == (-sys.float_info.max, 0.0)
