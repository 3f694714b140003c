"""What Python does with its containers: views of dicts, keys that come with a loop, heaps, names that outlive a list.

Each function is compared with plain Python, bit for bit, and with extrapolated differences.
"""

from __future__ import annotations

import bisect
import heapq
import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from tapegen import differentiable
from tapegen.errors import BadArgument, NotDifferentiable, UnsupportedSyntax
from tests.oracle import numerical_gradient

AT = 1.3


class Tank:
    level = 0.5

    def __init__(self, area: Any) -> None:
        self.area = area

    def fill(self, flow: float) -> Any:
        self.level += flow * self.area
        return self.level


# ---- views of dicts ------------------------------------------------------------------------------------------------


def values_seen_later(x: Any) -> Any:
    d = {"a": x, "b": 2.0 * x}
    values, keys, items = d.values(), d.keys(), d.items()
    d["a"] = 5.0 * x * x
    d["c"] = x**3
    held = [values, x]
    return sum(values) + len(keys) * x + dict(items)["c"] * sum(held[0])


def values_that_change_under_a_loop(x: Any) -> Any:
    d = {"a": x, "b": 2.0 * x}
    total = 0.0
    for _, v in d.items():
        d["b"] = 7.0 * x
        total += v * x
    for k in reversed(d.keys()):
        total += d[k] * total
    return total


def views_in_calls(x: Any) -> Any:
    d = {"a": x, "b": 2.0 * x}
    a, b = d.values()
    (_, v), *_ = d.items()
    total = a * b + v + max(d.values()) + min(d.values(), default=1.0) + sum(map(abs, d.values()))
    for (k, u), w in zip(d.items(), [1.0, 2.0]):
        total += u * w * (k in d)
    return total + np.prod(np.array([*d.values()])) + sorted(d.values(), key=lambda t: -t)[0]


def keys_as_sets(x: Any) -> Any:
    d, e = {"a": x, "b": 2.0 * x}, {"b": x, "a": 2.0 * x}
    same = d.keys() == e.keys()
    tuples = isinstance(d.items(), tuple)
    return x * (2.0 if same else 1.0) + x * len(d.keys() - {"a"}) + (x if tuples else x * x)


# ---- keys and attributes that come with a loop ---------------------------------------------------------------------


def keys_of_a_loop(x: Any) -> Any:
    d: dict[str, list[Any]] = {}
    a = np.array([x, 2.0 * x, 3.0 * x])
    for i in range(len(a)):
        for k in ("u", "v"):
            d.setdefault(k, []).append(a[i] * i)
    return sum(sum(v) for v in d.values()) + d["u"][2] ** 2


def memory(x: Any) -> Any:
    known: dict[int, Any] = {}

    def fib(n: int) -> Any:
        if n in known:
            return known[n]
        known[n] = x if n < 2 else fib(n - 1) + fib(n - 2) * x
        return known[n]

    total = 0.0
    for n in range(6):
        total += fib(n)
    return total


def attribute_of_the_class(x: Any) -> Any:
    tank, total = Tank(x), 0.0
    for _ in range(4):
        total += tank.fill(0.1) * x
    other = Tank(x)
    if x > 1.0:
        other.level = x * x
    steps = 0
    while tank.level < 5.0:
        tank.fill(x)
        steps += 1
    return total + tank.level * steps + other.level


# ---- names and parts -----------------------------------------------------------------------------------------------


def functions_of_a_comprehension(x: Any) -> Any:
    late = [lambda: k * x for k in range(3)]  # noqa: B023
    early = [lambda k=k: k * x for k in range(3)]
    return sum(f() for f in late) + sum(f() for f in early)


def walrus_in_a_comprehension(x: Any) -> Any:
    powers = [y := x] + [y := y * x for _ in range(3)]
    if any((last := k * x) > 2.0 for k in range(5)):
        return sum(powers) * y + last
    return x


def deleted_parts(x: Any) -> Any:
    d, items = {"a": x, "b": 2.0 * x, (0, 1): x * x}, [x, 2.0 * x, 3.0 * x]
    del d["a"], items[0]
    del d[0, 1], items[-1]
    return sum(d.values()) * len(d) + items[0] * len(items)


def parts_of_ranges(x: Any) -> Any:
    a, total = np.ones(4) * x, 0.0
    for i in range(len(a))[::-1]:
        total = total * x + a[i] * i
    for i in range(len(a))[1:-1]:
        total = total * x + a[i] * i
    for i in range(9, 0, -2)[1::2]:
        total = total * x + i
    return total + range(5)[-1] * x


def dicts_from_keys(x: Any) -> Any:
    d = dict.fromkeys(["a", "b", "a"], 0.0)
    d["a"] += x
    e = dict.fromkeys(d, x)
    return sum(d.values()) + sum(e.values()) * x


def grids(x: Any) -> Any:
    a = np.ones((2, 3)) * x
    rows, columns = np.mgrid[: a.shape[0], : a.shape[1]]
    p, q = np.mgrid[0:1:3j, 0:x:4j]
    u, v = np.ogrid[:3, 0.5:2.5:0.5]
    return np.sum(rows * a + columns * a**2) + np.sum(p * x + q) + np.sum(u * x + v * x**2) + np.mgrid[1:x:5j].sum()


def all_singular_vectors(x: Any) -> Any:
    a = np.array([[x, 1.0], [0.3, 2.0 * x]])
    u, s, vh = np.linalg.svd(a)
    return u[0, 0] * vh[1, 0] * s[0] + s[1] ** 2


# ---- heaps and places ----------------------------------------------------------------------------------------------


def the_best_of_all(x: Any) -> Any:
    top: list[Any] = []
    for k in range(6):
        heapq.heappush(top, (k - 2.2) ** 2 * x)
        if len(top) > 3:
            heapq.heappop(top)
    return sum(top) + top[0] * x + sum(heapq.nsmallest(2, [x, 2.0 * x, x * x])) + heapq.nlargest(1, top)[0]


def heap_in_place(x: Any) -> Any:
    items = [5.0 * x, x, 3.0 * x, x * x, 2.0 * x]
    heapq.heapify(items)
    least = heapq.heappop(items)
    return least * x + items[1] * items[2] + items[0]


def shortest_ways(x: Any) -> Any:
    weights = np.array([[0.0, 1.2, 9.0, 0.3], [1.1, 0.0, 2.0, 2.0], [1.0, 1.0, 0.0, 0.8], [9.0, 0.7, 0.6, 0.0]]) * x
    dist = np.full(len(weights), np.inf)
    dist[0] = 0.0
    queue: list[tuple[Any, int]] = []
    heapq.heappush(queue, (0.0, 0))
    while queue:
        d, u = heapq.heappop(queue)
        if d > dist[u]:
            continue
        for v in range(len(weights)):
            if d + weights[u, v] < dist[v]:
                dist[v] = d + weights[u, v]
                heapq.heappush(queue, (dist[v], v))
    return dist.sum()


def looked_up(x: Any) -> Any:
    knots, values = [0.0, 0.5, 1.0, 2.0], np.array([x, 2.0 * x, x * x, 1.0])
    k = bisect.bisect_right(knots, x) - 1
    w = (x - knots[k]) / (knots[k + 1] - knots[k])
    return (1.0 - w) * values[k] + w * values[k + 1] + bisect.bisect_left(values, 2.0, lo=1) * x


def powers_by_a_modulus(x: Any) -> Any:
    state = 12345
    total = x * pow(2, 3, 5)
    for _ in range(4):
        state = pow(state, 3, 1009)  # a generator of numbers that look like random ones
        total = total + x ** pow(base=state, exp=2, mod=5)
    return total


def cheapest_first(x: Any) -> Any:
    costs = np.array([2.0 * x, x, x * x, 0.5])
    left, order = list(range(4)), []
    while left:
        best = left[0]
        for j in left:
            if costs[j] < costs[best]:
                best = j
        left.remove(best)
        order.append(best)
    return sum((k + 1.0) * costs[j] for k, j in enumerate(order)) * (1 + order.count(2)) + order.index(2) * x


def places_in_lists(x: Any) -> Any:
    held, fixed = [x, 2.0, 3.0, x * x], (x, 2.0, x)
    k = fixed.index(2.0) if x > 1.0 else 2
    taken = held.pop(k)
    held.remove(3.0)
    grown: list[Any] = []
    for i in range(6):
        grown.append(x * i)
    first = grown.pop(grown.index(max(grown)) - 2) * grown.pop(-3)
    return taken * held[1] + first * len(held) + fixed.count(x) * sum(grown)


def sums_of_floats(x: Any) -> Any:
    """Python 3.12 began to carry along what additions lose."""
    terms = []
    while len(terms) < 6:
        terms.append(math.exp(x * len(terms)) * (-1.0) ** len(terms))
    total = sum(math.sin(x * k) * 10.0**k for k in range(9)) + sum([x, 1e16 * x, 1.0, -1e16 * x, 3, x], 0.5)
    of_numpy = sum(np.full(3, x)) + sum([x, 1e16 * x, 2.0 * x, np.float64(x), x]) + sum(terms, np.float64(x))
    return total + sum(terms) + sum(terms, 5) + sum(terms, x) + sum([1e308 * x, 1.0, -1e308 * x]) + of_numpy


FUNCTIONS: list[Callable[..., Any]] = [
    *(values_seen_later, values_that_change_under_a_loop, views_in_calls, keys_as_sets),
    *(keys_of_a_loop, memory, attribute_of_the_class, functions_of_a_comprehension, walrus_in_a_comprehension),
    *(deleted_parts, parts_of_ranges, dicts_from_keys, grids, all_singular_vectors),
    *(the_best_of_all, heap_in_place, shortest_ways, looked_up, powers_by_a_modulus),
    *(cheapest_first, places_in_lists, sums_of_floats),
]


@pytest.mark.parametrize("function", FUNCTIONS, ids=lambda f: f.__name__)
def test_values_and_gradients_are_those_of_plain_python(function: Callable[..., Any]) -> None:
    value, gradient = differentiable(backend="python")(function).value_and_grad(AT)
    assert value == function(AT)
    estimate = numerical_gradient(function, (AT,))
    assert abs(gradient - estimate.value[(0,)]) <= 1e-9 * abs(gradient) + 10.0 * estimate.error[(0,)]


@pytest.mark.compiled
@pytest.mark.parametrize("function", [values_seen_later, shortest_ways], ids=lambda f: f.__name__)
def test_compiled_code_does_the_same(function: Callable[..., Any]) -> None:
    assert differentiable(function).value_and_grad(AT) == pytest.approx(
        differentiable(backend="python")(function).value_and_grad(AT), rel=1e-14
    )


# ---- what is printed -----------------------------------------------------------------------------------------------


def table(x: float, k: int) -> float:
    root, row = np.sqrt(x), np.array([x, 2.0])
    print("%d items: %8.3f|%-8.2e|%+g %% %i %s" % (x, x, x, root, k, None), "x: %s" % row, "%s, %r" % (k, root))
    print("{} {0:.2f} {name!r} {{}}".replace("{} ", "").format(x, name=root), "{:>5}, {}".format(k, row))
    print([x, [k, "a"]], (x, k), f"{[x, 2.0]} {root!r} {root} {x!r}", "%d items, " % k + f"{x:.1f}")
    return x


def test_text_is_printed_as_python_prints_it(capsys: pytest.CaptureFixture[str]) -> None:
    table(AT, 3)
    expected = capsys.readouterr().out
    assert differentiable(backend="python")(table).grad(AT, 3) == 1.0
    assert capsys.readouterr().out == expected


# ---- errors of the program itself -----------------------------------------------------------------------------------


def inverses(x: float, k: int, m: int) -> float:
    return x * pow(k, -2, m) + x * x * pow(3, -1, 7)


def power(x: float, k: int, m: int) -> float:
    return x * pow(k, 3, m)


def absent_from_a_list(x: float, k: int, m: int) -> float:
    places = [2, 5, m]
    return x * places.index(k)


def absent_from_a_tuple(x: float, k: int, m: int) -> float:
    return x * (2, 5, m).index(k)


def nothing_to_remove(x: float, k: int, m: int) -> float:
    places = [2, 5, m]
    places.remove(k)
    return x * len(places)


def nothing_known_to_remove(x: float, k: int, m: int) -> float:
    places = [2, 5]
    places.remove(7)
    return x * len(places)


def unknown_word(x: float, k: int, m: int) -> float:
    return x * ["a", "b"].index("c")


def too_few_words(x: float, k: int, m: int) -> float:
    words = "%d of %d"
    print(words % (k,))
    return x


def too_many_words(x: float, k: int, m: int) -> float:
    words = "%d of it"
    print(words % (k, m))
    return x


def outcome(call: Callable[..., Any], *args: Any) -> Any:
    try:
        return call(*args)
    except Exception as error:
        return type(error), str(error)


RAISING = [
    *(inverses, power, absent_from_a_list, absent_from_a_tuple, nothing_to_remove, nothing_known_to_remove),
    *(unknown_word, too_few_words, too_many_words),
]
NUMBERS = [(3, 7), (3, -7), (-2, 9), (6, 9), (4, 1), (5, -1), (2, 0), (0, 5), (12345, 1009)]


@pytest.mark.parametrize("function", RAISING, ids=lambda f: f.__name__)
def test_errors_are_those_of_plain_python(function: Callable[..., Any]) -> None:
    generated = differentiable(backend="python")(function)
    for k, m in NUMBERS:
        expected = outcome(function, AT, k, m)
        assert outcome(generated, AT, k, m) == expected, (k, m)
        assert outcome(lambda *args: generated.value_and_grad(*args)[0], AT, k, m) == expected, (k, m)


@pytest.mark.compiled
@pytest.mark.parametrize("function", [inverses, nothing_to_remove], ids=lambda f: f.__name__)
def test_compiled_code_raises_the_same(function: Callable[..., Any]) -> None:
    compiled = differentiable(function)
    for k, m in NUMBERS:
        assert outcome(compiled, AT, k, m) == outcome(function, AT, k, m), (k, m)


# ---- classes -------------------------------------------------------------------------------------------------------


def whole_at_first(x: Any) -> Any:
    total = 0
    for _ in range(3):
        total = total + x if isinstance(total, int) else total + 10.0 * x
    return total


def whole_on_one_path(x: Any) -> Any:
    power = 1 if x > 1.0 else x
    doubled = power + power
    return x * (3.0 if type(doubled) is int else 5.0)


def of_numpy_later(x: Any) -> Any:
    total = 0.0
    for value in np.full(3, x):
        total = total + 10.0 * value if isinstance(total, np.float64) else total + value
    return total


def whole_in_a_list(x: Any) -> Any:
    rows = [0]
    while len(rows) < 4:
        rows.append(rows[-1] + x)
    last = rows[-1]
    return x if isinstance(last, int) else last


def steps(n: Any, x: Any) -> Any:
    return 0 if n < x else x + steps(n - 1, x)


def whole_in_a_recursion(x: Any) -> Any:
    return x * (3.0 if type(steps(x + 3.0, x)) is int else 5.0)


def truth_or_number(x: Any) -> Any:
    found = True if x > 1.0 else 2
    return x * (3.0 if isinstance(found, bool) else 5.0)


def number_on_all_paths(x: Any) -> Any:
    total = 0
    for k in range(3):
        total += x * k
    made = total * 2.0
    factor = 3.0 if isinstance(total, (int, float)) else 5.0
    return made * factor if isinstance(made, float) else 0.0


CLASSES = [whole_at_first, whole_on_one_path, of_numpy_later, whole_in_a_list, whole_in_a_recursion, truth_or_number]


@pytest.mark.parametrize("function", CLASSES, ids=lambda f: f.__name__)
def test_a_class_that_depends_on_the_path_is_refused(function: Callable[..., Any]) -> None:
    with pytest.raises(NotDifferentiable, match="depending on the path") as caught:
        differentiable(backend="python")(function).value_and_grad(AT)
    assert "Give it one type on all paths" in str(caught.value)


def test_a_class_that_all_paths_share_is_known() -> None:
    assert differentiable(backend="python")(number_on_all_paths).value_and_grad(AT) == (number_on_all_paths(AT), 18.0)


# ---- what is refused -----------------------------------------------------------------------------------------------


def compared_values(x: Any) -> Any:
    d = {"a": x}
    return x if d.values() == d.values() else 2.0 * x


def compared_methods(x: Any) -> Any:
    tank = Tank(x)
    return x if tank.fill == tank.fill else 2.0 * x


def set_in_a_loop(x: Any) -> Any:
    total = 0.0
    for k in {3, 1, 2}:
        total = total * x + k
    return total


def shuffled_constants(x: Any) -> Any:
    order = [3.0, 1.0, 2.0]
    bisect.insort(order, 2.5)
    return order[2] * x


def modulus_without_integers(x: Any) -> Any:
    return pow(2, 3, x)


def named_places(x: Any) -> Any:
    print("%(x)s" % {"x": x})
    return x


@pytest.mark.parametrize(
    ("function", "error", "reason", "advice"),
    [
        (compared_values, UnsupportedSyntax, "a view of the values of a dict is not compared", "the dicts themselves"),
        (compared_methods, UnsupportedSyntax, "a function is not compared with a function", "Compare"),
        (set_in_a_loop, NotDifferentiable, "the order of a set is not that of the next process", "sorted(...)"),
        (modulus_without_integers, TypeError, "3rd argument not allowed unless all arguments are integers", ""),
        (named_places, NotDifferentiable, "the format '%(x)s' is not supported", "Write an f-string"),
        (shuffled_constants, NotDifferentiable, "'insort_right' is not written in Python", "Write it in Python"),
    ],
    ids=lambda item: getattr(item, "__name__", ""),
)
def test_what_would_be_guessed_is_refused(
    function: Callable[..., Any], error: type[Exception], reason: str, advice: str
) -> None:
    with pytest.raises(error) as caught:
        differentiable(backend="python")(function).grad(AT)
    assert reason in str(caught.value)
    assert advice in str(caught.value)


def test_singular_vectors_that_nothing_determines_have_no_derivative() -> None:
    def spread(x: Any) -> Any:
        u, s, _ = np.linalg.svd(np.array([[x, 1.0], [0.3, 2.0 * x], [x, x]]))
        return u[0, 0] * s[0]

    function = differentiable(backend="python")(spread)
    for derivative in (function.grad, lambda at: function.jvp((at,), (1.0,))):
        with pytest.raises(BadArgument, match="full_matrices=False only"):
            derivative(AT)


def test_what_is_no_sequence_has_no_items() -> None:
    def first(x: Any) -> Any:
        return {"a": x}.values()[0]  # type: ignore[index]

    with pytest.raises(TypeError, match="'dict_values' object is not subscriptable"):
        differentiable(backend="python")(first).grad(AT)
