"""Loops over what `itertools` and NumPy's iterators make, and sequences that are taken apart."""

from __future__ import annotations

import itertools
import math
import operator
from collections.abc import Callable
from itertools import combinations, product
from typing import Any

import numpy as np
import pytest

from tapegen import check_grads, differentiable
from tapegen.errors import NotDifferentiable, UnsupportedSyntax

X = np.array([[0.7, 1.4, 1.2, 0.3], [1.1, 0.2, 0.6, 0.9], [0.8, 0.5, 1.3, 1.6]])


def every_pair_of_indices(x: Any) -> Any:
    total = 0.0
    for i, j in product(range(x.shape[0]), range(x.shape[1])):
        if x[i, j] < 0.4:
            continue
        x[i, j] = x[i, j] ** 2
        total += x[i, j] * (i + j)
    else:
        total *= 2.0
    return total * i


def left_early(x: Any) -> Any:
    total = 0.0
    for i, j in product(range(x.shape[0]), range(x.shape[1])):
        if total > 3:
            break
        total += x[i, j] ** 2 * (i + 1)
    return total


def returned_early(x: Any) -> Any:
    for i, j in np.ndindex(x.shape):
        if x[i, j] > 1.25:
            return x[i, j] ** 2 * (i + j)
    return 0.0


def around_each_cell(x: Any) -> Any:
    total = 0.0
    for i, j in product(range(1, x.shape[0] - 1), range(1, x.shape[1] - 1)):
        for di, dj in product((-1, 0, 1), repeat=2):
            total += x[i, j] * x[i + di, j + dj] * (2 + di)
    return total


def indices(x: Any) -> Any:
    total = 0.0
    for index in np.ndindex(x.shape):
        total += x[index] ** 2 * index[0]
    for i, j in np.ndindex(*x.shape):
        total += x[i, j] ** 3
    for (i, j), value in np.ndenumerate(x):
        total += value**2 * i * j
    for index, value in np.ndenumerate(x):
        total += value**2 * x[index]
    for _, value in np.ndenumerate(x[0]):
        total += value**2
    return total


def pairs_of_items(x: Any) -> Any:
    total = 0.0
    for i, j in combinations(range(len(x)), 2):
        total += (x[i] @ x[j]) ** 2
    for a, b, c in combinations(x, 3):
        total += a @ b * c[0]
    for a, b in itertools.combinations_with_replacement(x, 2):
        total += a @ b * b[0]
    for pair in combinations(x, 2):
        total += pair[0] @ pair[1]
    for a, b in combinations(x, 2):
        if total > 1e3:
            break
        total += a @ b * b[1]
    total += sum(a[0] * b[1] for a, b in itertools.permutations(x, 2))
    for a, b in combinations([1.0, 2.0, x[0, 0]], 2):
        total += a * b**2
    return total


def one_after_the_other(x: Any) -> Any:
    first, second, _ = x
    total = 0.0
    for a, b in itertools.pairwise(first):
        total += (b - a) ** 2
    for a, b in itertools.pairwise([1.0, x[0, 0], 2.0 * x[1, 1]]):
        total += (b - a) ** 2
    for a in itertools.chain(first, second):
        total += a**4
    for a in itertools.chain([1.0], first[:2].copy()):
        total += a**4
    for a in itertools.islice(first, 1, None, 2):
        total += a**2
    for a in itertools.islice(first, 2):
        total += a**3
    for a, b in itertools.zip_longest([first[0], first[1]], [2.0], fillvalue=1.5):
        total += a**2 * b
    return total + sum(itertools.starmap(lambda a, b: a * b**2, zip(first, second, strict=True)))


def running_totals(x: Any) -> Any:
    total = 0.0
    for part in itertools.accumulate(x[0]):
        total += part**2
    for part in itertools.accumulate(x[1], operator.mul, initial=2.0):
        total += part
    return total + max(itertools.accumulate([x[0, 1], x[2, 2], 1.0]))


def without_an_end(x: Any) -> Any:
    total = 0.0
    for k, a in zip(itertools.count(3), x[0], strict=False):
        total += k * a**2
    for a, sign in zip(x[1], itertools.cycle((1, -1)), strict=False):
        total += sign * a**2
    for a, power in zip(x[2], itertools.repeat(3), strict=False):
        total += a**power
    root = x[0, 0]
    for n in itertools.count(1):
        root = 0.5 * (root + x[0, 1] / root)
        if n > 30 or abs(root * root - x[0, 1]) < 1e-13:
            break
    for k in itertools.count(10, -2):
        if k < 4:
            break
        if k == 6:
            continue
        total += x[1, 1] ** k
    return total + root * n


def taken_apart(x: Any) -> Any:
    a, b, c = (row[0] ** 2 for row in x)
    d, *rest = x[0, :3]
    largest = max((v for v in x[1]), default=0.0)
    return a * b + c * d + len(rest) * largest + math.hypot(*x[2]) + sum((v**2 for v in x[1]), 0.5) + min([], default=a)


def spread_over_parameters(x: Any) -> Any:
    def model(t: float, height: float, centre: float, width: float, base: float) -> float:
        return height * math.exp(-(((t - centre) / width) ** 2)) + base

    return sum((model(t, *x[1]) - y) ** 2 for t, y in zip((0.0, 0.5, 1.0, 2.0), x[0], strict=True))


def changed_while_they_are_read(x: Any) -> Any:
    total = 0.0
    y, z = x[0] * 1.0, x[1] * 1.0
    for a, b in product(y, z):  # Python has all items before the first iteration
        y += b
        z[1] = a
        total += a * b
    for a, b in combinations(y, 2):
        y[2] = a * b
        total += a * b**2
    for v in itertools.chain(y, z):  # and here it looks at each when its turn comes
        z[2] = v * y[0]
        total += v**2
    for a, b in itertools.pairwise(z):
        z[3] = a
        total += a * b
    return total


def parts_of_known_number(x: Any) -> Any:
    links = ((0.1, 1.0), (0.4, 2.0), (0.3, 3.0))
    return sum(a * row[1] ** b for row, (a, b) in zip(x, links, strict=True)) * tuple(x[0])[1]


def taken_one_by_one(x: Any) -> Any:
    first = next(iter({"a": x[0, 1] ** 2, "b": x[0, 2]}.values()))
    rows = iter(x)
    top = next(rows)
    total = first * top[0]
    for row in rows:
        total += row[0] * row[1]
    pairs = zip(x[0], x[1], strict=True)
    a, b = next(pairs)
    numbers = iter(range(x.shape[1]))
    k0 = next(numbers)
    odd = itertools.count(1, 2)
    last = next(iter([]), x[2, 3]) * next(odd) + next(odd)
    return total + a / b + sum(u * v for u, v in pairs) + last * sum(x[k0, k] ** 2 for k in numbers)


def first_and_rest(x: Any) -> Any:
    points = product(x[0], x[1])
    u, v = next(points)
    items = iter([x[0, 0], x[1, 1], x[2, 2]])
    left, total = next(iter(items)), u * v
    for right in items:
        total += left * right**2
        left = right
    for a, b in points:
        total = 0.9 * total + a * b**2
    return total + next(iter(()), 0.5)


PROGRAMS = [
    every_pair_of_indices,
    left_early,
    returned_early,
    around_each_cell,
    indices,
    pairs_of_items,
    one_after_the_other,
    running_totals,
    without_an_end,
    taken_apart,
    spread_over_parameters,
    changed_while_they_are_read,
    parts_of_known_number,
    taken_one_by_one,
    first_and_rest,
]


@pytest.mark.parametrize("program", PROGRAMS)
def test_value_and_gradient(program: Callable[[Any], Any]) -> None:
    mine, theirs = X.copy(), X.copy()
    assert differentiable(program, backend="python").value_and_grad(mine)[0] == pytest.approx(
        program(theirs), rel=1e-15
    )
    np.testing.assert_array_equal(mine, theirs)
    check_grads(program, X, modes=("forward", "reverse"), backend="python")


@pytest.mark.compiled
@pytest.mark.parametrize("program", PROGRAMS)
def test_compiled(program: Callable[[Any], Any]) -> None:
    check_grads(program, X, backend="numba")


def test_a_product_is_written_as_loops_inside_each_other() -> None:
    def squares(x: Any) -> Any:
        total = 0.0
        for i, j in product(range(x.shape[0]), range(x.shape[1])):
            total += x[i, j] ** 2
        return total

    text = differentiable(squares).inspect(X).primal
    assert "    for i in range(x.shape[0]):" in text
    assert "        for j in range(x.shape[1]):" in text


def test_a_program_for_three_rows_is_not_used_for_two() -> None:
    f = differentiable(pairs_of_items, backend="python")
    for rows in (3, 2, 3):
        assert f.value_and_grad(X[:rows].copy())[0] == pytest.approx(pairs_of_items(X[:rows]))


def test_nothing_to_loop_over() -> None:
    def nothing(x: Any) -> Any:
        total = 1.0
        for i, j in product(range(0), range(len(x))):
            total += x[i, j]
        for i, j in product(range(len(x)), range(0)):
            total += x[i, j]
        for a, b in combinations(range(1), 2):
            total += x[a, b]
        for a, b in itertools.pairwise(x[:1]):
            total += a[0] * b[0]
        return total * x[0, 0]

    assert differentiable(nothing, backend="python").value_and_grad(X.copy())[0] == nothing(X)


def test_what_cannot_be_followed_is_refused() -> None:
    def changed(x: Any) -> Any:
        for n in itertools.count():
            n += 1
            if n > 3:
                return x[0] * n

    def of_floats(x: Any) -> Any:
        for t in itertools.count(0.5):
            if t > 3:
                return x[0] * t

    with pytest.raises(UnsupportedSyntax, match="the loop assigns it"):
        differentiable(changed).grad(np.ones(2))
    with pytest.raises(NotDifferentiable, match="Count with integers"):
        differentiable(of_floats).grad(np.ones(2))


def grown_afterwards(x: Any) -> Any:
    items = [x[0], x[1]]
    pairs = zip(items, x, strict=False)
    items.append(x[2])  # which Python still sees
    return sum(a * b for a, b in pairs)


def grown_in_a_loop(x: Any) -> Any:
    items = [x[0]]
    numbered = enumerate(items)
    for v in x:
        items.append(v)
    return sum(k * v for k, v in numbered)


def at_one_of_two_places(x: Any) -> Any:
    items = iter(x)
    if x[0] > 0.5:
        next(items)
    return next(items)


def in_every_iteration(x: Any) -> Any:
    items, total = iter(x), 0.0
    for _ in range(2):
        total += next(items)
    return total


def consumed_twice(x: Any) -> Any:
    items = iter(x)
    return sum(a * b for a, b in zip(items, items, strict=True))


def of_a_generator(x: Any) -> Any:
    def squares() -> Any:
        for v in x:
            yield v**2

    return next(squares())


@pytest.mark.parametrize(
    ("program", "reason"),
    [
        (grown_afterwards, "has changed since the iterator was made"),
        (grown_in_a_loop, "has changed since the iterator was made"),
        (at_one_of_two_places, "gives its items once"),
        (in_every_iteration, "gives its items once"),
        (consumed_twice, "gives its items once"),
        (of_a_generator, "computed at once"),
    ],
)
def test_iterators_that_are_refused(program: Callable[[Any], Any], reason: str) -> None:
    with pytest.raises(NotDifferentiable, match=reason):
        differentiable(program).grad(np.array([0.7, 1.4, 1.2, 0.3]))


@pytest.mark.parametrize("backend", ["python", "numba"])
def test_iterators_that_end(backend: str) -> None:
    def second(x: Any) -> Any:
        items = iter(x)
        next(items)
        return next(items) ** 2

    def of_one(x: Any) -> Any:
        items = iter([x[0]])
        return next(items) * next(items)

    def of_none(x: Any) -> Any:
        return next(x)

    f = differentiable(second, backend=backend)
    np.testing.assert_array_equal(f.grad(X[0]), [0.0, 2 * X[0, 1], 0.0, 0.0])
    with pytest.raises(StopIteration):
        f.grad(X[0, :1])
    with pytest.raises(StopIteration):
        differentiable(of_one, backend=backend).grad(X[0])
    with pytest.raises(TypeError, match="not an iterator"):
        differentiable(of_none, backend=backend).grad(X[0])
