"""Containers, calls, arrays and captured values: the lowered program does what plain Python does."""

from __future__ import annotations

import dataclasses
import functools
import importlib.util
import math
import textwrap
from typing import Any, NamedTuple

import numba
import numpy as np
import pytest

from tapegen import differentiable
from tapegen.frontend.structure import Slot, Struct
from tapegen.ir.text import function_text
from tapegen.ir.types import Array, Scalar
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


# ---- arrays ----------------------------------------------------------------------------------------------------------


def indexing(m, i):
    return (
        m[1, 2],
        m[-1][0],
        m[i],
        m[:, 1],
        m[1:, ::2],
        m[..., -1],
        m[None, 1],
        m[:, None, i].shape,
        m[::-1, 1:3],
        m[i, 1:][0],
        m[[0, 2]],
        m[m > 0.0],
        m[np.array([0, 1]), np.array([2, 3])],
        m[1, np.array([3, 0])],
    )


def stores(m, x):
    m[0, 0] = x
    m[1] = 2.0
    m[:, 1] += m[:, 0]
    m[2, ::2] *= 3.0
    m[m > 1.0] -= 0.5
    m[[0, 2], 3] = [7.0, 8.0]
    m[0][1] = -1.0
    m[...] /= 2.0
    m.T[3, 1] = 9.0
    return m.sum()


def overlaps(x):
    x[1:] += x[:-1]
    x[:-1] = x[1:]
    x[::-1] = x
    v = x[1:4]
    v *= 2.0
    x += x
    return x


def overlap_of_matrix(m):
    square = m[:, :3]
    square += square.T
    return square


def repeated_index(x):
    idx = np.array([0, 0, 2])
    x[idx] += 1.0
    np.add.at(x, idx, 0.5)
    np.subtract.at(x, 3, 1.0)
    return x


def views_are_shared(x):
    a = x
    b = a.reshape(1, 5)
    b[0, 1] = 10.0
    c = x.copy()
    c[0] = -5.0
    flat = b.ravel()
    flat[2] = 20.0
    return x, c


def attributes(m):
    return m.shape, m.ndim, m.size, m.T, m.dtype == np.float64, m.shape[0] * 2, len(m), m[0].size


def methods(m, x):
    filled = np.empty(3)
    filled.fill(2.0)
    ordered = x.copy()
    ordered.sort()
    return (
        m.sum(axis=0),
        m.mean(),
        m.max(1),
        m.reshape(4, 3),
        m.reshape((2, -1)),
        m.flatten(),
        m.transpose(),
        m.dot(m.T),
        m.astype(np.float32),
        x.cumsum(),
        x.argmax(),
        x.clip(0.0, 1.0),
        filled,
        ordered,
        x.item(1),
        m.any(axis=0),
    )


def library(m, x):
    out = np.zeros(5)
    np.add(x, 1.0, out=out)
    return (
        np.where(x > 0.0, x, 0.0),
        np.maximum(x, 0.5),
        np.stack([x, x * 2.0]),
        np.concatenate((x, x[:2]), axis=0),
        np.outer(x, x),
        np.linalg.norm(x),
        np.sum(m, 0),
        np.sum([x[0], 2.0]),
        np.dot([1.0, 2.0], x[:2]),
        np.add.reduce(m),
        np.zeros_like(m),
        np.full((2, 2), x[0]),
        np.arange(x.size),
        np.linspace(0.0, x[0], 4),
        out,
        np.array([[x[0], 1.0], [x[1], x[2]]]),
        np.split(x[:4], 2),
        np.float64(2.0) * x[0],
        np.pi,
    )


def single_precision(x):
    s = 0.0
    for v in x:
        s = s + v * 2.0
    return s, x * 2.0, np.float32(3.0) * s, x[0] * np.float64(2.0)


def integers(idx, x):
    total = 0
    for i in idx:
        total += i
    idx[0] = 2.7
    idx[1] += 1
    return total, x[idx[0]], idx // 2, idx / 2, -idx[0] % 3


def zero_dimensional(a):
    a[...] = a * 2.0
    b = a + 1.0
    return a[()], b


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
    (indexing, M, 1),
    (stores, M, 0.5),
    (overlaps, X),
    (overlap_of_matrix, M),
    (repeated_index, X),
    (views_are_shared, X),
    (attributes, M),
    (methods, M, X),
    (library, M, X),
    (single_precision, X.astype(np.float32)),
    (integers, np.array([3, 1, 0]), X),
    (zero_dimensional, np.array(2.0)),
]


@pytest.mark.parametrize("program", PROGRAMS, ids=lambda program: program[0].__name__)
def test_does_what_python_does(program: tuple[Any, ...]) -> None:
    func, *args = program
    agree(func, *args)


# ---- errors of the program -------------------------------------------------------------------------------------------


def index_out_of_range(x, i):
    return x[i]


def tuple_out_of_range(x):
    return (x, x)[2]


def too_many_indices(x):
    return x[0, 1]


def float_index(x):
    return x[1.0]


def array_truth(x):
    if x > 0.0:
        return x
    return -x


def call_of_a_number(x):
    sum = x * 2.0
    return sum(x)


def missing_argument(x):
    return helper()


def surplus_keyword(x):
    return helper(x, z=1.0)


def unpacks_too_many(x):
    a, b, c = (x, x)
    return a


def no_such_key(x):
    return {"a": x}["b"]


def no_such_name(x):
    return x + undefined_name  # noqa: F821


def no_such_attribute(x):
    return Spring(x).mass


def step_of_zero(x):
    for i in range(0, 3, 0):
        x += i
    return x


def float_range(x):
    for i in range(x):
        x += i
    return x


def casts_in_place(idx):
    idx += 0.5
    return idx


FAILING: list[tuple[Any, ...]] = [
    (index_out_of_range, X, 7),
    (tuple_out_of_range, 0.5),
    (too_many_indices, X),
    (float_index, X),
    (array_truth, X),
    (call_of_a_number, 0.5),
    (missing_argument, 0.5),
    (surplus_keyword, 0.5),
    (unpacks_too_many, 0.5),
    (no_such_key, 0.5),
    (no_such_name, 0.5),
    (no_such_attribute, 0.5),
    (step_of_zero, 0.5),
    (float_range, 0.5),
]


@pytest.mark.parametrize("program", FAILING, ids=lambda program: program[0].__name__)
def test_fails_as_python_does(program: tuple[Any, ...]) -> None:
    func, *args = program
    agree(func, *args)


def test_a_float_does_not_fit_into_integers_in_place() -> None:
    text = function_text(lower(casts_in_place, np.array([1, 2])).function)
    assert "raise TypeError(\"Cannot cast ufunc 'add' output" in text


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


def test_integers_that_decide_about_the_form_are_static() -> None:
    def program(x, n):
        return np.sum(x, axis=n)

    x = np.ones((2, 3))
    lowered = lower(program, x, 1)
    assert lowered.statics == (("n", (), 1),)
    assert lowered.holds({"x": x, "n": 1})
    assert not lowered.holds({"x": x, "n": 0})
    assert [param.var.name for param in lowered.params] == ["x"]


def test_recursion_is_lowered_once_for_all_depths() -> None:
    lowered = agree(argument_recursion, 0.5, 4)
    assert lowered.statics == ()
    assert lowered.holds({"x": 0.5, "n": 5})
    assert run(lowered.function, 0.5, 20) == (argument_recursion(0.5, 20),)


def halves(x):
    n = x.size
    if n == 1:
        return x[0]
    return halves(x[: n // 2]) - halves(x[n // 2 :])


def collected(x, found):
    n = x.size
    if n == 1:
        found.append(x[0])
        return
    collected(x[: n // 2], found)
    collected(x[n // 2 :], found)


def leaves_of_halves(x):
    found = []
    collected(x, found)
    return found[0] * found[-1]


def test_recursion_over_arrays_is_lowered_once_for_all_sizes() -> None:
    lowered = agree(halves, np.array([1.0, 2.0, 4.0, 8.0]))
    assert lowered.statics == ()
    assert lowered.holds({"x": np.ones(8)})
    assert run(lowered.function, np.arange(9.0)) == (halves(np.arange(9.0)),)


def test_shapes_that_decide_about_recursion_are_static() -> None:
    """A list that the function appends to: it is written out, once for each size."""
    lowered = agree(leaves_of_halves, np.array([1.0, 2.0, 4.0, 8.0]))
    assert lowered.statics == (("x", (), (4,)),)
    assert not lowered.holds({"x": np.ones(8)})


def test_the_output_keeps_its_structure() -> None:
    output = lower(named_tuples, Point(0.5, 1.5)).output
    assert isinstance(output, Struct)
    assert output.children[0].cls is Point
    assert output.children[0].children == (Slot(0), Slot(1))


def test_types_tell_python_from_numpy_and_known_axes() -> None:
    def program(x, y, m):
        return x, y * 2.0, m[0, 0], m @ m.T, np.sum(m, axis=1, keepdims=True)

    values = lower(program, 0.5, np.float32(0.5), np.ones((2, 1))).function.body[-1].values
    types = [Scalar("float64"), Scalar("float32", False), Scalar("float64", False)]
    assert [value.type for value in values[:3]] == types
    assert values[4].type == Array("float64", 2, "C", (False, True))
    assert lower(program, 0.5, 0.5, np.ones((2, 1))).params[2].var.type.unit == (False, True)


def test_a_computed_item_of_python_floats_is_a_python_float() -> None:
    def powers(x: float, count: int) -> float:
        found = [x]
        for k in range(count):
            found.append(found[k] * x)
        return found[-1]

    assert agree(powers, 1.5, 3).function.body[-1].values[0].type == Scalar("float64")


def test_lists_of_other_items_merge_alike_every_time() -> None:
    def last(x: float, w: float, count: int) -> float:
        before = [x, x * x]
        for _ in range(count):
            now = [before[-1] * w]
            for k in range(len(before)):
                now.append(now[k] + before[k])
            before = now
        return before[-1]

    assert len({function_text(lower(last, 0.5, 1.1, 3).function) for _ in range(6)}) == 1


@pytest.mark.parametrize("backend", ["python", "numba"])
def test_long_conditions_and_integer_chains(tmp_path: Any, backend: str) -> None:
    """Text that a program has written: hundreds of terms in a condition, in the test of a loop, in an index."""
    count = range(150)
    source = f"""
    def f(x, k):
        i = {" + ".join(f"k % {n + 2}" for n in count)}
        while {" or ".join(f"i > {400 + 3 * n}" for n in count)}:
            i = i - 1
            x = x * 1.001
        if {" and ".join(f"x > {-n}.5" for n in count)}:
            x = x * x
        return x * i
    """
    path = tmp_path / "long_chains.py"
    path.write_text(textwrap.dedent(source))
    spec = importlib.util.spec_from_file_location("long_chains", path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    value, gradient = differentiable(module.f, backend=backend).value_and_grad(1.5, 6)
    assert value == pytest.approx(module.f(1.5, 6), rel=1e-14)
    assert gradient == pytest.approx(2.0 * value / 1.5, rel=1e-12)


def test_keywords_that_a_function_collects_are_parameters() -> None:
    def scaled(x, **options):
        scale = options.pop("scale", 2.0)
        return np.sum(x * x) * scale * options["p"]["w"] * sum(options["q"])

    f = differentiable(scaled, wrt=("x", "options"), backend="python")
    x = np.arange(3.0)
    value, (x_bar, bars) = f.value_and_grad(x, p={"w": 0.5}, q=[1.0, 2.0])
    assert value == scaled(x, p={"w": 0.5}, q=[1.0, 2.0]) == 15.0
    np.testing.assert_array_equal(x_bar, 6.0 * x)
    assert bars == {"p": {"w": 30.0}, "q": [5.0, 5.0]}
    assert f.grad(x, scale=3.0, p={"w": 0.5}, q=[1.0, 2.0])[1]["scale"] == 7.5
