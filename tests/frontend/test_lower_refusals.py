"""What cannot be followed is refused before any number is produced, at its place and with advice."""

from __future__ import annotations

import types
from typing import Any

import numpy as np
import pytest

from tapegen import differentiable
from tapegen.errors import BadArgument, CompileLimit, NotDifferentiable, TapegenError, UnsupportedSyntax
from tapegen.frontend.values.pytree import abstract_of
from tests.lowering import lower

X = np.array([0.5, -1.5, 2.0])
SHARED: list = [1.0]
SETTINGS = {"scale": 1.0}
SPRING = types.SimpleNamespace(stiffness=2.0)


def huge_integer(x):
    return x * 2**70


def huge_constant(x):
    return x * 18446744073709551616


def unknown_callable(x):
    return hash(x[0])


def two_dtypes(x):
    y = np.zeros(3, dtype=np.float32)
    for _ in range(2):
        y = x * 2.0 + y
    return y


def two_ranks(x, c):
    if c > 0.0:
        y = x
    else:
        y = np.outer(x, x)
    y[0] = 1.0
    return y


def recursion_that_appends(x, found):
    if x < 1.0:
        return x
    found.append(x)
    return recursion_that_appends(x * 0.5, found)


def recursion_with_a_list(x):
    return recursion_that_appends(x, [])


def axis_by_value(x):
    return np.sum(x[None] * 2.0, axis=int(x[0]))


def structure_by_value(x):
    pairs = [(x, 1.0), (x, 2.0)]
    return pairs[int(x)][1]


def identity_of_numbers(x):
    return x is not x + 1.0


def membership(x):
    items = [v for v in np.arange(3.0) if v < x]
    return x in items


def bare_generator(x):
    squares = (v * v for v in x)
    return squares


def where_of_ufunc(x):
    return np.sqrt(x, where=x > 0.0)


def items_of_different_kind(x):
    items = []
    for v in x:
        items.append({"v": v} if v > 0.0 else v)
    return items[0]


def source_of_a_choice(x):
    first, second = [x[0], x[1]], [x[1], x[1]]
    chosen = first if x[0] > 0.0 else second
    first[0] = 7.0 * x[1]
    return chosen[0]


def source_inside_a_choice(x):
    inner = [x[0]]
    chosen = (x[1], inner) if x[0] > 0.0 else (x[0], inner, 1.0)[:2]
    pair = {"a": inner} if x[1] > 0.0 else {"a": [x[0]]}
    inner[0] = 7.0 * x[1]
    return chosen[1][0] + pair["a"][0]


def source_of_a_loop(x):
    first = [x[0]]
    last = first
    for _ in range(int(x[1])):
        first[0] = last[0] * x[1]
        last = [last[0] * x[0]]
    return first[0] + last[0]


def choice_that_grows(x):
    first, second = [x[0]], []
    for v in x:
        second.append(v)
    chosen = first if x[0] > 0.0 else second
    chosen[0] = 7.0 * x[1]
    return first[0]


def name_of_a_growing_list(x):
    first = [x[0]]
    last = first
    for v in x[2:]:
        last = last + [v]
    last.append(x[1])
    return first[-1]


def row_of_a_growing_list(x):
    rows = []
    for v in x[x > 0.0]:
        row = [v, 1.0]
        rows.append(row)
        row[0] = 9.0 * x[0]
    return rows[1][0]


def first_row_of_a_growing_list(x):
    row = [x[0], x[1]]
    rows = [row]
    for v in x[x > 0.0]:
        rows.append([v, v])
    row[0] = 7.0 * x[0]
    return rows[0][0]


def identity_of_a_choice(x):
    first, second = [x[0]], [x[1]]
    chosen = first if x[0] > 0.0 else second
    return x[0] if chosen is first else x[1]


def item_of_two_types(x):
    single = np.float32(x[0])
    chosen = [single, 1.0] if x[0] > 0.0 else [float(x[1]), 1.0]
    return sum(chosen)


def item_of_two_types_in_a_loop(x):
    items = [np.float32(x[0])]
    for _ in range(2):
        items[0] = 0.5 * items[0]
        items[0] = float(x[1])
    return items[0]


def rounded_on_one_path(x):
    start, total = 0.0, 0.0
    for _ in range(2):
        part = start
        for j in range(2):
            part += np.float32(x[j])
        total += part
        start = start + 0.1
    return total


def single_bool_index(x, flag):
    return x[flag, 0]


def result_of_two_kinds(x):
    if x > 0.0:
        return "positive"
    return x


REFUSED: list[tuple[Any, tuple, type[TapegenError], str, str]] = [
    (huge_integer, (0.5,), BadArgument, "64 bits", "2**70"),
    (huge_constant, (0.5,), BadArgument, "64 bits", "18446744073709551616"),
    (unknown_callable, (X,), NotDifferentiable, "'hash' is not written in Python", "hash(x[0])"),
    (two_dtypes, (X,), BadArgument, "'y' has type float32[:]C on one path and float64[:]C on another", "y"),
    (two_ranks, (X, 1.0), BadArgument, "one of two kinds of value", ""),
    (recursion_with_a_list, (4.0,), NotDifferentiable, "changes a list", "found.append(x)"),
    (axis_by_value, (X,), NotDifferentiable, "'axis' of np.sum must be known", "np.sum("),
    (structure_by_value, (0.5,), NotDifferentiable, "index into this list must be known", "pairs[int(x)]"),
    (identity_of_numbers, (0.5,), UnsupportedSyntax, "'is' between values", "x is not x + 1.0"),
    (membership, (1.5,), UnsupportedSyntax, "'in a list'", "x in items"),
    (bare_generator, (X,), UnsupportedSyntax, "generator expression", "(v * v for v in x)"),
    (where_of_ufunc, (X,), NotDifferentiable, "'where='", "np.sqrt("),
    (items_of_different_kind, (X,), NotDifferentiable, "one of two kinds cannot be an item of a growing list", ""),
    (source_of_a_choice, (X,), NotDifferentiable, "'chosen' may be this list", "first[0]"),
    (source_inside_a_choice, (X,), NotDifferentiable, "may be this list", "inner[0]"),
    (source_of_a_loop, (X,), NotDifferentiable, "'last' may be this list", "first[0]"),
    (choice_that_grows, (X,), NotDifferentiable, "'chosen' may be a list that has another name", "chosen[0]"),
    (name_of_a_growing_list, (X,), NotDifferentiable, "'last' may be a list that has another name", "last.append("),
    (row_of_a_growing_list, (X,), NotDifferentiable, "changes an item of a list that grows", "row[0]"),
    (first_row_of_a_growing_list, (X,), NotDifferentiable, "changes an item of a list that grows", "row[0]"),
    (identity_of_a_choice, (X,), UnsupportedSyntax, "'is' between values", "chosen is first"),
    (item_of_two_types, (X,), BadArgument, "'chosen_0' is a Python number on one path", "sum(chosen)"),
    (item_of_two_types_in_a_loop, (X,), BadArgument, "float32", "items[0]"),
    (rounded_on_one_path, (X,), BadArgument, "'part' is a Python number on one path and a float32", "part"),
    (single_bool_index, (X, True), NotDifferentiable, "a bool among indices", "x[flag, 0]"),
    (result_of_two_kinds, (0.5,), BadArgument, "two kinds of value", ""),
]


@pytest.mark.parametrize("case", REFUSED, ids=lambda case: case[0].__name__)
def test_refused_with_place_and_advice(case: tuple[Any, tuple, type[TapegenError], str, str]) -> None:
    func, args, kind, reason, place = case
    with pytest.raises(kind) as caught:
        lower(func, *args)
    error = caught.value
    assert type(error) is kind
    assert reason in error.reason
    assert error.advice
    assert error.span is not None
    assert error.span.file == __file__
    assert place in error.span.text()


# ---- arguments -------------------------------------------------------------------------------------------------------

FLOATS = np.array([1.0, 2.0])

ARGUMENTS = [
    (FLOATS.astype(">f8"), ">f8", "astype(np.float64)"),
    (FLOATS.astype(np.longdouble), "longdouble", "astype(np.float64)"),
    (FLOATS.astype(np.float16), "float16", "astype(np.float64)"),
    (FLOATS.astype(object), "object", "astype(np.float64)"),
    (FLOATS.astype(np.clongdouble), "clongdouble", "astype(np.complex128)"),
    (np.array(["a"]), "<U1", "Pass numbers"),
    (np.array([(1.0, 2)], dtype=[("a", float), ("b", int)]), "'a'", "['a']"),
    (np.array(["2020-01-01"], dtype="M8[D]"), "datetime64", "np.timedelta64(1, 's')"),
    (np.ma.masked_array(FLOATS, [True, False]), "masked array", "filled"),
    (FLOATS.view(type("Subclass", (np.ndarray,), {})), "Subclass", "np.asarray"),
    (np.float16(1.0), "float16", "astype"),
    (memoryview(FLOATS), "memoryview", "np.asarray"),
    (2**70, "64 bits", "float"),
    (np.frombuffer(bytearray(17), dtype=np.uint8)[1:].view(np.float64), "aligned", "copy"),
]


@pytest.mark.parametrize(
    ("value", "reason", "advice"), ARGUMENTS, ids=lambda part: part if isinstance(part, str) else type(part).__name__
)
def test_arguments_that_are_refused(value: Any, reason: str, advice: str) -> None:
    for argument in (value, {"w": [value]}):
        with pytest.raises(BadArgument) as caught:
            abstract_of(argument, "x")
        assert "'x" in caught.value.reason
        if reason.endswith("longdouble"):
            reason = np.dtype(reason).name
        assert reason in caught.value.reason
        assert advice in caught.value.advice


def test_a_structure_that_contains_itself_is_refused() -> None:
    loop: list[Any] = []
    loop.append(loop)
    with pytest.raises(BadArgument, match="contains itself"):
        abstract_of(loop, "x")
    with pytest.raises(BadArgument, match="contains itself"):
        differentiable(lambda x: x[0]).grad(loop)


def test_a_pandas_argument_is_refused() -> None:
    pandas = pytest.importorskip("pandas")
    with pytest.raises(BadArgument, match="to_numpy"):
        abstract_of(pandas.Series([1.0]), "x")


def test_what_a_rule_does_not_cover_is_refused_at_the_statement_of_the_user() -> None:
    def widened(x: Any) -> Any:
        y = x * 2.0
        return np.pad(y, 1, mode="empty").sum()

    def padded(x: Any) -> Any:
        y = np.pad(x * 2.0, 2, mode="empty")
        return y.sum()

    for function, text in ((widened, "return np.pad"), (padded, "y = np.pad")):
        with pytest.raises(NotDifferentiable) as caught:
            differentiable(backend="python")(function).grad(np.ones(3))
        assert caught.value.span is not None
        assert caught.value.span.text().startswith(text)


def test_a_negative_power_of_numpys_integers_raises_as_in_numpy() -> None:
    def power(x: Any, n: Any) -> Any:
        return np.sum(x * n**-1)

    for n in (np.array([1, 2, 3]), np.int64(3)):
        with pytest.raises(ValueError, match="Integers to negative integer powers are not allowed") as caught:
            differentiable(backend="python")(power).grad(X, n)
        assert not isinstance(caught.value, TapegenError)


def holds_itself(x, n):
    k = 0
    while k < n:
        k += 1
        x = [x, x, x]
    return sum(np.sum(np.sin(e)) for e in x)


def holds_itself_several_times(x):
    for _ in range(9):
        x = (x, [x, x], {"a": x})
    return x[0]


@pytest.mark.parametrize(("func", "args"), [(holds_itself, (0.5, 3)), (holds_itself_several_times, (0.5,))])
def test_a_container_that_holds_itself_once_more_in_each_iteration(func: Any, args: tuple[Any, ...]) -> None:
    with pytest.raises(CompileLimit, match="more than 10000 numbers and arrays in containers"):
        differentiable(func).inspect(*args)


ITEMS = tuple((0.5 * k, "even" if k % 2 == 0 else k) for k in range(200))


def may_end_in_each_iteration(x):
    for weight, kind in ITEMS:
        if x > 20.0:
            break
        x = x * weight if kind == "even" else x + 1.0
    return x


def test_a_loop_that_is_written_out_and_may_end_in_each_iteration() -> None:
    with pytest.raises(CompileLimit, match="more than 95 iterations that may be the last one"):
        differentiable(may_end_in_each_iteration).inspect(0.5)
