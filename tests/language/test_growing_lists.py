"""Lists that grow: arrays made of them, slices, and changes at other places than their end."""

from __future__ import annotations

import functools
import operator
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from tapegen import check_grads, differentiable
from tapegen.errors import NotDifferentiable
from tests.grown.checks import judge
from tests.judged import both, right

X = np.array([0.3, 0.7, 1.1, 0.2])


def rows_of(x: Any) -> list[Any]:
    rows = []
    for k in range(3):
        rows.append(x * (k + 1))
    return rows


def arrays_of_rows(x: Any) -> Any:
    rows = rows_of(x)
    total = (np.vstack(rows)[1:] ** 2).sum() + (np.stack(rows, axis=1)[0] ** 2).sum() + np.stack(rows).max()
    total += (np.column_stack(rows)[1] ** 3).sum() + (np.concatenate(rows)[2:5] ** 2).sum()
    return total + (np.hstack(rows)[1::2] ** 2).sum() + np.mean(rows)


def parts_of_several_sizes(x: Any) -> Any:
    blocks, parts = [], [np.ones(2)]
    for k in range(3):
        blocks.append(np.outer(x[: k + 1], x))
        parts.append(np.zeros(k + 1) * x[1] + x[k])
    total = (np.vstack(blocks) ** 2).sum() + np.concatenate(blocks, axis=0)[-1, 0]
    return total + (np.concatenate(parts) ** 2).sum() * np.hstack(parts)[-1]


def numbers(x: Any) -> Any:
    items = []
    for k in range(len(x)):
        items.append(x[k] ** 2)
    total = sum(v * (i + 1) for i, v in enumerate(items[::-1]))
    total += sum(items[1::2]) + sum(items[-1:0:-1]) * x[0] + sum(items[:-3:-1]) + len(items[5:9:2])
    items.reverse()
    total += items[0]
    items.insert(1, x[0])
    total += items[1] * items[2]
    items.insert(-1, x[1])
    total += items[-2] * 3
    items.insert(100, 2.0 * x[0])
    total += items[-1] + np.vstack(items)[1, 0] + np.hstack(items).sum() + np.array(items, dtype=float).prod()
    items.clear()
    return total + len(items)


def history(x: Any) -> Any:
    steps, slopes = [], []
    for k in range(4):
        direction = x * 1.0
        for s, y in reversed(list(zip(steps, slopes, strict=True))):
            direction = direction - s * y.sum()
        for s, y in zip(steps, slopes, strict=True):
            direction = direction + s * y[0]
        steps.append(x * k)
        slopes.append(direction)
        if len(steps) > 2:
            steps.pop(0)
            slopes.pop(0)
    return sum(y.sum() for y in slopes)


def shifted_by_hand(x: Any) -> Any:
    """The first iteration knows how long the list is, and later ones do not."""
    items = [0.2]
    for k in range(len(x)):
        size = len(items)
        items.append(x[k])
        for j in range(size, 0, -1):
            items[j] = items[j - 1] * 1.1
        items[0] = x[k] ** 2
    total = 0.0
    for k in range(len(x)):
        total += items[k] * x[k]
    return total


def two_that_grow_together(x: Any) -> Any:
    rows, scales = [x], [2.0 * x]
    for k in range(4):
        made = x * k
        if len(rows) > 2:
            for j in range(len(rows)):
                made = made + rows[j] * scales[j]
        rows.append(made)
        scales.append(made * x)
    return rows[-1].sum()


def tables_of_tuples(x: Any) -> Any:
    rows, nested, of_arrays = [], [], []
    for k in range(len(x)):
        rows.append((x[0] * k, 2))
        nested.append(([x[k] * k, 1.0], (x[1], x[1] ** k)))
        of_arrays.append((x * k, np.sin(x)))
    a, b, c = np.array(rows), np.asarray(nested, dtype=float), np.array(of_arrays)
    edges = np.array([(i, j) for i in range(len(x)) for j in range(len(x)) if i < j])
    total = a[:, 0] @ a[:, 1] * b[1, 0, 1] + np.sum(b[:, 0, 0] * b[:, 1, 1]) + np.sum(c[:, 0, 1] * c[:, 1, 2])
    return total + np.sum((x[edges[:, 0]] - x[edges[:, 1]]) ** 2) + a.ndim + b.ndim + (edges.dtype == np.int64)


PROGRAMS = [
    tables_of_tuples,
    arrays_of_rows,
    parts_of_several_sizes,
    numbers,
    history,
    two_that_grow_together,
    shifted_by_hand,
]


@pytest.mark.parametrize("program", PROGRAMS)
def test_value_and_gradient(program: Callable[[Any], Any]) -> None:
    assert differentiable(program, backend="python").value_and_grad(X)[0] == pytest.approx(program(X), rel=1e-14)
    check_grads(program, X, modes=("forward", "reverse"), backend="python")


@pytest.mark.compiled
@pytest.mark.parametrize("program", PROGRAMS)
def test_compiled(program: Callable[[Any], Any]) -> None:
    check_grads(program, X, backend="numba")


# ---- sequences of one array ------------------------------------------------------------------------------------------

ONE = {
    "split": lambda x: (np.split(x * 2.0, 1)[0] ** 2).sum(),
    "array_split": lambda x: (np.array_split(x, 1)[0] ** 2).sum(),
    "meshgrid": lambda x: (np.meshgrid(x)[0] ** 2).sum(),
    "broadcast_arrays": lambda x: (np.broadcast_arrays(x)[0] ** 2).sum(),
}


@pytest.mark.parametrize("program", [pytest.param(program, id=name) for name, program in ONE.items()])
def test_a_sequence_of_one_array(program: Callable[[Any], Any]) -> None:
    check_grads(program, X, modes=("forward", "reverse"), backend="python")


def test_the_only_part_of_a_split_is_a_view() -> None:
    def stored(x: Any) -> Any:
        y = x * 1.0
        (part,) = np.split(y, 1)
        part[1] = 2.0 * x[0]
        return y[1] * y[2]

    check_grads(stored, X, backend="python")


# ---- stores through index arrays of several axes ---------------------------------------------------------------------

ROWS, COLUMNS = np.array([[0, 1], [1, 0]]), np.array([[1], [2]])


def assembled(x: Any) -> Any:
    matrix = np.zeros((4, 4))
    place = np.array([0, 2, 3])
    for k in range(2):
        matrix[np.ix_(place, place)] += np.outer(x[:3], x[:3]) * (k + 1)
        matrix[np.ix_(place, place[:2])] *= 1.5
    return (matrix**2).sum() + matrix[np.ix_(place, place)][0, 1]


def scattered(x: Any) -> Any:
    matrix = np.outer(x, x)
    matrix[ROWS, COLUMNS] = x[ROWS] * 2
    matrix[ROWS, COLUMNS] += x[:2]
    matrix[np.array([0, 1])[:, None], [1, 2]] -= x[:2]
    return (matrix**3).sum()


def written_twice(x: Any) -> Any:
    y = x * 1
    y[ROWS] = x[1:3] * np.array([[1.0], [2.0]])
    y[ROWS] += x[:2] ** 2
    y[ROWS] *= x[2]
    return (y**2).sum()


@pytest.mark.parametrize("program", [assembled, scattered, written_twice])
def test_stores_through_index_arrays_of_several_axes(program: Callable[[Any], Any]) -> None:
    check_grads(program, X, modes=("forward", "reverse"), backend="python")


@pytest.mark.compiled
@pytest.mark.parametrize("program", [assembled, scattered, written_twice])
def test_stores_through_index_arrays_compiled(program: Callable[[Any], Any]) -> None:
    check_grads(program, X, backend="numba")


# ---- sizes of what is taken out ------------------------------------------------------------------------------------


def states_kept(x: Any, n: int) -> Any:
    states = [x * 2.0]
    for _ in range(n):
        states.append(np.sin(states[-1]) * x)
    total = 0.0
    for k in range(n - 1, -1, -1):
        total += np.sum(np.exp(states[k]) * states[k + 1])
    return total


def shorter_and_shorter(x: Any, n: int) -> Any:
    parts = [x]
    for k in range(n):
        parts.append(np.sin(parts[-1][k:]) + 1.0)
    total = 0.0
    for k in range(n, -1, -1):
        total += np.sum(np.exp(parts[k]) ** 2)
    return total


def in_a_list_of_lists(x: Any, n: int) -> Any:
    inner = [x]
    for _ in range(n):
        outer = [inner, inner]
        outer[n % 2].append(np.sin(inner[-1][1:]))
    return sum(np.sum(part**2) for part in inner)


def test_what_is_taken_out_has_the_size_that_was_put_in() -> None:
    function = differentiable(states_kept)
    assert "_n0_tape" not in function.inspect(X, 3).forward
    assert "np.empty((max(n, 0), x.shape[0]))" in function.inspect(X, 3).forward


@pytest.mark.parametrize("program", [states_kept, shorter_and_shorter, in_a_list_of_lists])
def test_sizes_that_stay_and_sizes_that_change(program: Callable[..., Any]) -> None:
    check_grads(differentiable(backend="python", wrt=0)(program), X, 2)


def repeated_many_times(x: Any, n: int) -> Any:
    items, pairs = [x[0]], []
    for k in range(n):
        items.append(items[-1] * x[k])
        pairs.append((x[k], k + 1.0))
    twice = items * 2
    twice[0] = x[1]
    before, many = (n - 1) * items, pairs * np.int64(3)
    return sum(twice) * len(before) + sum(before) + sum(a * b for a, b in many) + items[0] + len(items * -1)


@pytest.mark.parametrize("n", [0, 1, 3])
def test_repetition(n: int) -> None:
    function = differentiable(backend="python", wrt=0)(repeated_many_times)
    assert function.value_and_grad(X, n)[0] == pytest.approx(repeated_many_times(X, n), rel=1e-14)
    check_grads(function, X, n)


@pytest.mark.parametrize("count", [np.float64(2.0), np.float32(2.0)])
def test_floats_of_numpy_do_not_repeat(count: Any) -> None:
    def repeated(x: Any, factor: Any, n: int, known: bool) -> Any:
        items = [x[0]]
        for _ in range(0 if known else n):
            items.append(x[1])
        return sum(factor * [x[0], x[1]]) if known else sum(items * factor)

    for known in (True, False):
        with pytest.raises(TypeError, match="can't multiply sequence by non-int"):
            differentiable(repeated, backend="python").value_and_grad(X, count, 2, known)
    value, gradient = differentiable(repeated, backend="python").value_and_grad(X, np.array(2.0), 2, True)
    assert value == repeated(X, np.array(2.0), 2, True) == 2.0
    assert gradient.tolist() == [2.0, 2.0, 0.0, 0.0]


def steps_of_a_wave(x: Any, n: int) -> Any:
    old, now = np.zeros(x.size), np.zeros(x.size)
    now[1] = 1.0
    for _ in range(n):
        old, now = now, 2.0 * now - old + x**2 * np.roll(now, 1)
    return np.sum(now**2)


def test_the_size_of_an_array_is_its_extent() -> None:
    function = differentiable(steps_of_a_wave)
    assert "_n0_tape" not in function.inspect(X, 3).forward
    check_grads(differentiable(backend="python", wrt=0)(steps_of_a_wave), X, 3)


def test_two_rows_of_a_table() -> None:
    def table(x: Any, made: Callable[[Any], Any], smallest: float | None = None) -> Any:
        before, now = made([0.0, 0.0, 0.0, 0.0]), made([x, 2.0 * x, x * x])
        while len(now) > 1:
            after = []
            for k in range(len(now) - 1):
                gap = now[k + 1] - now[k]
                if smallest is not None and abs(gap) < smallest:
                    return now[k + 1]
                after.append(before[k + 1] + 1.0 / gap)
            before, now = now, made(after)
            if smallest is not None and len(now) == 1:
                break
        return now[0]

    function = differentiable(backend="python")(table)
    gradient = function.grad(0.7, np.array)
    check_grads(function, 0.7, np.array)
    for made in (list, lambda items: items):
        assert function.grad(0.7, made) == pytest.approx(gradient, rel=1e-14)
    assert function.grad(0.7, np.array, 1e-9) == pytest.approx(gradient, rel=1e-14)
    for made in (list, lambda items: items):
        assert function.grad(0.7, made, 1e-9) == pytest.approx(gradient, rel=1e-14)


def test_a_float32_among_numbers_of_python_says_what_to_convert() -> None:
    def stored(x: float, y: Any, n: int, made: Callable[[Any], Any]) -> Any:
        items = [x, 2.0]
        for k in range(n):
            items[k % 2] = made(y) * 1.0
        return items[0] * items[1] * x

    function = differentiable(backend="python", wrt=(0, 1))(stored)
    with pytest.raises(NotDifferentiable, match=r"the items of a list differ(.|\n)*items\[k % 2\](.|\n)*float\(x\)"):
        function.value_and_grad(0.5, np.float32(1.5), 1, np.float32)
    value, gradient = function.value_and_grad(0.5, np.float32(1.5), 1, float)
    assert value == stored(0.5, np.float32(1.5), 1, float) == 1.5
    assert gradient == (3.0, 1.0)


def ordered_by_what_is_computed(x: Any) -> Any:
    pairs = [("a", (x[0], x[1])), ("bc", (x[1], x[2])), ("d", (x[0], x[2]))]
    ordered = sorted(pairs, key=lambda pair: pair[1][0])
    return ordered[0][1][0]


def test_items_that_differ_inside_say_so() -> None:
    with pytest.raises(NotDifferentiable, match=r"the items of a list differ: .* is not the same kind of value"):
        differentiable(ordered_by_what_is_computed, backend="python").vjp(X)


def lengths_kept_in_containers(x: Any, n: int) -> Any:
    items = [x[0]]
    for k in range(n):
        items.append(x[k])
    kept, table = [1, 2], {"size": len(items) + 1, "both": (len(items), [len(items)]), "last": items.pop()}
    kept.append(len(items) % 5)
    kept[0] = len(items) * 3
    pair, part = ((len(items), 1), 2), slice(0, len(items))

    def scaled(factor: int = len(items) + 1) -> Any:
        return factor * x[1]

    times = functools.partial(operator.mul, len(items) + 2)
    items.append(x[2])
    items.append(x[3])
    sizes = sum(kept) * table["size"] + 7 * table["both"][0] + 11 * table["both"][1][0] + 13 * pair[0][0]
    return sizes * x[0] + scaled() + table["last"] + np.sum(x[part] ** 2) + times(x[2])


def sizes_of_lists_in_a_loop(x: Any, n: int) -> Any:
    sizes, total = [1, 2], 0.0
    for k in range(n):
        part = x[: len(sizes)]
        total += np.sum(part**2) * x[sizes[-1]] * x[: len(sizes)][-1] + np.sum(np.full(len(sizes), x[0]) ** 2)
        sizes.append(k)
    return total


@pytest.mark.parametrize("program", [lengths_kept_in_containers, sizes_of_lists_in_a_loop])
@pytest.mark.parametrize("n", [1, 2])
def test_lengths_and_items_are_those_of_the_time_they_were_read(program: Callable[..., Any], n: int) -> None:
    function = differentiable(backend="python", wrt=0)(program)
    assert function.value_and_grad(X, n)[0] == pytest.approx(program(X, n), rel=1e-14)
    check_grads(function, X, n)


def range_under_a_name(x: Any) -> Any:
    items = [v * 2 for v in x]
    up, down = range(1, len(items)), range(len(items) - 1, -1, -1)
    numbered = enumerate(range(len(items)))
    items.append(x[2])
    total = 0.0
    for k in up:
        total += items[k] * (k + 1)
    items.pop()
    items.pop()
    for k in down:
        total += x[k] * (k + 1)
    for a, b in numbered:
        total += x[a] * b
    return total


def range_in_containers(x: Any) -> Any:
    def visited(indices: Any) -> Any:
        items.append(x[0])
        return sum(x[k] * k for k in indices)

    items = [v * 2 for v in x]
    items.pop()
    kept, pair = [range(len(items))], (range(len(items)), 1.0)
    total = visited(range(len(items)))
    items.append(x[0])
    return total + sum(x[k % 3] * k for k in kept[0]) + sum(x[k % 3] * k for k in pair[0])


@pytest.mark.parametrize("program", [range_under_a_name, range_in_containers])
@both
def test_a_range_keeps_the_length_that_the_list_had(program: Any, backend: str) -> None:
    right(program, np.array([0.3, 0.5, 0.7]), backend=backend)


TESTS_OF_ITEMS = (
    "cols[1]",
    "not cols[k] or cols[0]",
    "bool(cols[k])",
    "sum(t for t in rows[1]) > 0",
    "max(rows[k]) > 0 and any(t > 0 for t in rows[1])",
    "rows[1].flat[0] > 0",
    "np.sum(rows[1][::-1]) > 0",
    "mats[1].T.flat[2] > 0",
    "mats[k].sort() is None",
    "rows[k].fill(2.0) is None",
    "np.squeeze(mats[k])[0, 0] > 0",
    "2.0 in rows[0]",
)

TESTED_ITEMS = """
import numpy as np

def f(v, j, k):
    cols = [j for _ in range(2)]
    rows = [v for _ in range(len(v))]
    mats = [np.outer(v, v) * t for t in v]
    s = np.sum(v * v) * j
    {head} {test}:
        s = s * 2.0 + np.sum(rows[0])
        {end}
    return s

def arguments():
    return (np.array([-0.99, 0.37, -1.04]), np.array(-1.24), 1)
"""


@pytest.mark.parametrize("test", TESTS_OF_ITEMS)
def test_conditions_on_arrays_in_lists(test: str) -> None:
    """A condition is one expression where it can be; an array in it that has no name needs statements."""
    for head, end in (("if", "pass"), ("while", "break")):
        verdict = judge(TESTED_ITEMS.format(head=head, test=test, end=end), ("primal", "reverse"))
        assert verdict.kind == "right", verdict
