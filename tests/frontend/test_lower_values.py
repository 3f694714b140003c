"""Calls, containers and captured values: the lowered program does what plain Python does."""

from __future__ import annotations

import dataclasses
import functools
import math
from typing import Any, NamedTuple

import numba
import numpy as np
import pytest

from tapegen.frontend.values.pytree import Slot, Struct
from tests.interpret import run
from tests.lowering import agree, lower

X = np.array([0.5, -1.5, 2.0, 0.25, -0.75])
M = np.arange(12.0).reshape(3, 4) * 0.5 - 2.0


# ---- functions -------------------------------------------------------------------------------------------------------

GRAVITY = 9.81
TABLE = np.array([1.0, 2.0, 4.0])
OPTIONS = {"scale": 2.0, "power": 3, "weights": np.array([0.5, 0.25]), "deep": {"name": "a"}}


class Point(NamedTuple):
    x: float
    y: float = 2.0

    def norm2(self):
        return self.x * self.x + self.y * self.y


@dataclasses.dataclass
class Spring:
    stiffness: float
    rest: float = 1.0
    tags: list = dataclasses.field(default_factory=list)

    @property
    def half(self):
        return 0.5 * self.stiffness

    def energy(self, length):
        stretch = length - self.rest
        return self.half * stretch * stretch

    def __add__(self, other):
        return Spring(self.stiffness + other.stiffness, self.rest)


class Counter:
    step = 2

    def __init__(self, start):
        self.count = start
        self.log = []

    def advance(self, x):
        self.count = self.count + self.step
        self.log.append(x)
        return self.count * x

    def __call__(self, x):
        return x + self.count


CAPTURED = Spring(3.0, 0.5)


def helper(x, *, k=2.0):
    y = x * k
    return y + 1.0


def mutating(a, k):
    a[k] = a[k] * 2.0
    a[0] += 1.0


def recursive(n):
    return 1.0 if n == 0 else n * recursive(n - 1)


@numba.njit
def compiled(x):
    return x * x


@numba.vectorize
def scalar_only(x, y):
    if x > y:
        return x
    return 2.0 * y


def keyword_calls(x):
    return helper(x) + helper(x, k=3.0) + helper(k=x, x=1.0)


def star_calls(x):
    def inner(*args, scale=1.0, **rest):
        total = 0.0
        for a in args:
            total += a
        return total * scale + rest["more"]

    values = (x, 2.0)
    options = {"scale": 3.0, "more": x}
    return inner(1.0, *values, **options)


def closures(x):
    def make(k):
        return lambda v: v * k + offset

    offset = 1.0
    double, triple = make(2.0), make(3.0)
    offset = x
    return double(x) + triple(x)


def passed_functions(x):
    def twice(f, v):
        return f(f(v))

    return twice(math.sin, x) + twice(lambda v: v * v, x) + twice(functools.partial(pow, 2.0), x)


def mutates_through_a_call(a):
    mutating(a, 1)
    mutating(a[2:], 1)
    return a


def static_recursion(x):
    return recursive(5) * x


def argument_recursion(x, n):
    return recursive(n) * x


def numba_functions(x, v):
    total = 0.0
    for i in numba.prange(3):
        total += compiled(x) * i
    return total + np.sum(scalar_only(v, x)) + scalar_only(x, 0.1) + numba.float64(2) * x


def captured_values(x):
    return x * GRAVITY + TABLE[1] + OPTIONS["scale"] * OPTIONS["weights"][0] ** OPTIONS["power"] + CAPTURED.energy(x)


def captured_whole(x):
    total = 0.0
    for name, value in OPTIONS.items():
        if name == "scale":
            total += value * x
    return total + np.sum(TABLE) + len(OPTIONS)


# ---- containers ------------------------------------------------------------------------------------------------------


def tuples(x, y):
    pair = (x, y)
    (a, b), c = pair, 3.0
    first, *rest = (a, b, c, x)
    last = pair[-1]
    return first + rest[1] * last, rest, pair + (1,), pair * 2, len(pair)


def named_tuples(p):
    q = p._replace(y=p.x + 1.0)
    r = Point(p.norm2())
    return q, r.x * r.y, q[1]


def dicts(x):
    d = {"a": x, "b": [x, 2.0]}
    d["c"] = d["a"] + 1.0
    d["b"][0] = 5.0
    e = {**d, "a": 0.0}
    total = 0.0
    for key in e:
        if key != "b":
            total += e[key]
    return d, total, e.get("z", 7.0), {k: 2.0 for k in ("u", "v")}


def dict_in_loop(x):
    state = {"s": 0.0, "n": 0}
    for v in x:
        state["s"] = state["s"] + v
        state["n"] += 1
    return state["s"] / state["n"]


def objects(spring, x):
    both = spring + Spring(1.0)
    both.rest = x
    return both.energy(2.0), spring.half, both


def object_state_in_loop(x):
    counter = Counter(1)
    total = 0.0
    for v in x:
        total += counter.advance(v)
    return total, counter.count, counter(1.0)


def aliased_lists(x):
    a = [x, 1.0]
    b = a
    b.append(2.0)
    b[0] = 3.0
    return a[0] + a[2], a is b


def structure_in_loop(x, v):
    state = (x, v)
    for _ in range(3):
        q, p = state
        state = (q + 0.1 * p, p - 0.1 * q)
    return state


def list_state_in_loop(x, v):
    state = [x, v]
    for _ in range(3):
        state = [state[1], state[0] * 0.5]
    return state


def structures_in_branches(x):
    pair = (x, 1.0)
    if x > 0.0:
        pair = (2.0, pair[0])
    return pair


def growing_list(x):
    items = []
    for v in x:
        if v > 0.0:
            items.append(v * 2.0)
    return sum(items), len(items), items[-1], np.array(items)


def growing_list_of_pairs(x):
    items = [(0.0, 0)]
    for i in range(x.size):
        items.append((x[i], i))
    value, place = items[2]
    return value, place, len(items)


def stack_machine(x):
    stack = [x, 1.0]
    total = 0.0
    while stack:
        v = stack.pop()
        total += v
        if v > 0.6:
            stack.append(v * 0.5)
            stack.append(v * 0.25)
    return total


def list_by_count(x, n):
    row = [0.0] * n
    for i in range(n):
        row[i] = x[i] + i
    return row[0] * row[n - 1]


def list_that_moves(x):
    previous = [0.0, 1.0]
    for v in x:
        current = [v]
        for p in previous:
            current.append(p + v)
        previous = current
    return previous[0], len(previous)


def list_slices(x):
    items = [v * 2.0 for v in x]
    total = 0.0
    for v in items[1:]:
        total += v
    for a, b in zip(items[:-1], items[1:]):
        total += a * b
    return total


def comprehensions(x, m):
    squares = [v * v for v in x if v > 0.0]
    table = np.array([[a * b for a in x] for b in x])
    rows = np.array([np.sum(row) for row in m])
    pairs = [i * j for i in range(3) for j in range(i)]
    return sum(squares), table, rows, pairs[2], {str(k): k * 2 for k in range(3)}


def generators(x):
    return (
        sum(v * v for v in x),
        any(v > 1.0 for v in x),
        all(v > 1.0 for v in x),
        max([v for v in x]),
        sum(k for k in (1, 2, 3)),
        sum(a * b for a in x for b in x if a < b),
    )


def iteration(x, m):
    total = 0.0
    for i, v in enumerate(x):
        total += i * v
    for i, v in enumerate(reversed(x), start=2):
        total -= i * v
    for a, b in zip(x, x[1:]):
        total += a * b
    for row in m:
        for v in row:
            total += v
    for name, k in zip(("a", "b"), (1, 2)):
        total += k if name == "a" else 10.0
    for i in reversed(range(1, 4)):
        total = total * 0.5 + i
    for _, (a, b) in enumerate(zip(x, range(10))):
        total += a * b
    return total


def unrolled_with_break(x):
    total = 0.0
    for k in (1.0, 2.0, 3.0, 4.0):
        if total > x:
            break
        if k == 2.0:
            continue
        total += k
    else:
        total += 100.0
    return total


def unrolled_with_return(x):
    for k, f in enumerate((math.sin, math.cos)):
        if f(x) > 0.9:
            return k, f(x)
    return -1, 0.0


def layers(weights, x):
    for k in range(len(weights)):
        w, b = weights[k]
        x = np.tanh(w @ x + b)
    return np.sum(x)


def builtins_used(x, n):
    return (
        abs(x),
        min(x, 1.0),
        max(n, 2),
        pow(x, 2),
        round(x * 10.0),
        round(x, 1),
        int(x * 7.3),
        float(n),
        bool(n),
        sum([x, 2.0, n]),
        divmod(n, 2),
        isinstance(x, float),
        len("abc"),
        sorted((3, 1, 2)),
        tuple(range(3)),
        list(map(lambda v: v + 1, (1, 2))),
        type(n) is int,
    )


def extremes_of_array(x):
    return max(x), min(x), sum(x)


PROGRAMS: list[tuple[Any, ...]] = [
    (keyword_calls, 0.5),
    (star_calls, 0.5),
    (closures, 0.5),
    (passed_functions, 0.5),
    (mutates_through_a_call, X),
    (static_recursion, 0.5),
    (argument_recursion, 0.5, 4),
    (numba_functions, 0.5, X),
    (captured_values, 0.5),
    (captured_whole, 0.5),
    (tuples, 0.5, 1.5),
    (named_tuples, Point(0.5, 1.5)),
    (dicts, 0.5),
    (dict_in_loop, X),
    (objects, Spring(2.0), 0.5),
    (object_state_in_loop, X),
    (aliased_lists, 0.5),
    (structure_in_loop, 0.5, 1.5),
    (list_state_in_loop, 0.5, 1.5),
    (structures_in_branches, 0.5),
    (structures_in_branches, -0.5),
    (growing_list, X),
    (growing_list_of_pairs, X),
    (stack_machine, 2.0),
    (list_by_count, X, 3),
    (list_that_moves, X),
    (list_slices, X),
    (comprehensions, X, M),
    (generators, X),
    (iteration, X, M),
    (unrolled_with_break, 0.5),
    (unrolled_with_break, 5.0),
    (unrolled_with_break, 500.0),
    (unrolled_with_return, 0.1),
    (unrolled_with_return, 1.0),
    (layers, [(M[:, :3], X[:3]), (M[:2, :3], X[:2])], X[:3]),
    (builtins_used, 0.5, 3),
    (extremes_of_array, X),
]


@pytest.mark.parametrize("program", PROGRAMS, ids=lambda program: program[0].__name__)
def test_does_what_python_does(program: tuple[Any, ...]) -> None:
    func, *args = program
    agree(func, *args)


# ---- what the caller is told -----------------------------------------------------------------------------------------


def test_parameters_are_leaves_with_paths() -> None:
    lowered = lower(layers, [(M[:, :3], X[:3])], X[:3])
    assert [(p.var.name, p.argument, p.path) for p in lowered.params] == [
        ("weights_0_0", "weights", (0, 0)),
        ("weights_0_1", "weights", (0, 1)),
        ("x", "x", ()),
    ]


def test_captured_arrays_are_hidden_parameters_and_captured_numbers_are_guards(monkeypatch: pytest.MonkeyPatch) -> None:
    lowered = lower(captured_values, 0.5)
    hidden = {param.var.name: param.getter() for param in lowered.params if param.getter is not None}
    assert hidden["TABLE"] is TABLE
    assert hidden["OPTIONS_scale"] == 2.0
    assert hidden["CAPTURED_stiffness"] == 3.0
    arguments = {"x": 0.5}
    assert lowered.holds(arguments)
    monkeypatch.setitem(globals(), "GRAVITY", 1.62)
    assert not lowered.holds(arguments)


def test_a_captured_array_of_another_type_needs_another_program(monkeypatch: pytest.MonkeyPatch) -> None:
    lowered = lower(captured_values, 0.5)
    monkeypatch.setitem(globals(), "TABLE", np.array([[1.0, 2.0]]))
    assert not lowered.holds({"x": 0.5})


def test_recursion_is_lowered_once_for_all_depths() -> None:
    lowered = agree(argument_recursion, 0.5, 4)
    assert lowered.statics == ()
    assert lowered.holds({"x": 0.5, "n": 5})
    assert run(lowered.function, 0.5, 20) == (argument_recursion(0.5, 20),)


def test_the_output_keeps_its_structure() -> None:
    output = lower(named_tuples, Point(0.5, 1.5)).output
    assert isinstance(output, Struct)
    assert output.children[0].cls is Point
    assert output.children[0].children == (Slot(0), Slot(1))
