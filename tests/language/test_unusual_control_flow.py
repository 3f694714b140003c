"""Awkward control flow and corners of the language."""

from __future__ import annotations

import functools
import logging
import math
import re
import sys
import warnings
from typing import Any

import numpy as np
import pytest

from tapegen import differentiable, jacobian
from tapegen.errors import BadArgument, NotDifferentiable, TapegenError, UnsupportedSyntax
from tests.judged import both, raises_as_python, right
from tests.sources import define

X = np.array([0.5, -1.5, 2.0])


# ---- loops ---------------------------------------------------------------------------------------------------------


def decay(x: float, limit: float) -> float:
    total = 0.0
    while x > limit:
        total += x * x
        x = x * 0.5
    return total


@both
def test_c27_while_with_any_number_of_trips(backend: str) -> None:
    right(decay, 3.0, 0.1, backend=backend)
    derived = right(decay, 0.05, 0.1, backend=backend)  # no iteration at all
    assert derived.value_and_grad(0.05, 0.1) == (0.0, 0.0)


def search(a: np.ndarray, limit: float) -> float:
    total = 0.0
    for i in range(a.shape[0]):
        for j in range(a.shape[1]):
            if a[i, j] < 0.0:
                continue
            if a[i, j] > limit:
                break
            total += a[i, j] ** 2
        else:
            total += a[i, 0]
            if total > 20.0:
                return total * 3.0
    else:
        total = total * a[0, 0]
    return total


@both
def test_c28_break_continue_return_and_else(backend: str) -> None:
    a = np.array([[1.0, -2.0, 0.5], [0.3, 4.0, 7.0]])
    for limit in (0.1, 2.0, 5.0, 9.0):
        right(search, a, limit, backend=backend)


# ---- names without a value -----------------------------------------------------------------------------------------


def bound_in_loop(x: float, n: int) -> float:
    for i in range(n):
        last = x * i
    return last * x  # the name may be unbound


def bound_in_branch(x: float) -> float:
    if x > 0.0:
        y = x * x
    return y * 2.0  # the name may be unbound


@both
def test_c29_name_bound_in_a_loop_without_trips(backend: str) -> None:
    right(bound_in_loop, 1.5, 3, backend=backend)
    raises_as_python(bound_in_loop, 1.5, 0, backend=backend, at="return last * x")


@both
def test_c30_name_bound_in_one_branch(backend: str) -> None:
    right(bound_in_branch, 1.5, backend=backend)
    raises_as_python(bound_in_branch, -1.5, backend=backend, at="return y * 2.0")


# ---- a name whose type changes -------------------------------------------------------------------------------------


def number_widens(x: float, n: int) -> float:
    total = 0
    for _ in range(n):
        total = total + x * 0.5
    return total * x


def scalar_becomes_array(x: np.ndarray) -> float:
    y = 0.0
    y = y + x
    y = y.sum() * 2.0
    return y


def rank_changes_in_loop(x: np.ndarray, n: int) -> Any:
    y = 0.0
    for _ in range(n):
        y = y + x
    return y


@both
def test_c31_type_of_a_name_changes(backend: str) -> None:
    right(number_widens, 1.5, 3, backend=backend)
    right(number_widens, 1.5, 0, backend=backend)
    right(scalar_becomes_array, X, backend=backend)


def test_c31_rank_that_depends_on_the_trips() -> None:
    derived = differentiable(rank_changes_in_loop)
    value, pullback = derived.vjp(X, 2)
    np.testing.assert_array_equal(value, rank_changes_in_loop(X, 2))
    np.testing.assert_array_equal(pullback(np.ones(3)), np.full(3, 2.0))
    with pytest.raises(BadArgument, match="a number on this path, and an array on others") as caught:
        derived.vjp(X, 0)
    assert caught.value.span is not None


# ---- overwriting ---------------------------------------------------------------------------------------------------


def rebinding(x: np.ndarray) -> float:
    a = x * 2.0
    b = a
    a = a + 1.0
    b[0] = a[1] * 3.0
    c = b
    b = b * a
    return (b * c).sum()


@both
def test_c32_alias_and_rebinding(backend: str) -> None:
    right(rebinding, X, backend=backend)


def iterated(x: float, n: int) -> float:
    for _ in range(n):
        x = math.sin(x) * x + 0.1
    return x


@both
def test_c33_loop_carried_overwrite(backend: str) -> None:
    right(iterated, 1.3, 4, backend=backend)


def overwritten_results(x: float, y: np.ndarray, n: int) -> float:
    for _ in range(n):
        x = math.exp(-x)
        x = math.tanh(x) + 0.5
        x = math.sqrt(x)
        x = math.tan(x) / 3.0
        x = 1.0 / (1.0 + math.exp(-x))
        y = np.exp(-y)
        y = np.tanh(y)
        y = np.sqrt(y + x)
        y = np.tan(y * 0.5)
        y = 1.0 / y
        y = x / (1.0 + np.exp(-y))
    return x + y.sum()


@both
def test_c34_rules_that_use_their_result(backend: str) -> None:
    right(overwritten_results, 0.7, np.array([0.3, 0.9]), 3, backend=backend, wrt=(0, 1))


# ---- range and the loop variable -----------------------------------------------------------------------------------


def stepping(x: np.ndarray, start: int, stop: int, step: int) -> float:
    total = 0.0
    for i in range(start, stop, step):
        total = total * 0.5 + x[i] * x[i]
    return total


@both
def test_c35_range(backend: str) -> None:
    x = np.linspace(0.5, 2.0, 7)
    for bounds in ((6, -1, -1), (6, 0, -2), (0, 7, 3), (5, 5, 1), (0, -4, 1), (3, 100, -1), (2, -(2**62), 1)):
        right(stepping, x, *bounds, backend=backend)
    raises_as_python(stepping, x, 0, 5, 0, backend=backend, at="for i in range(start, stop, step):")


def loop_variable(x: np.ndarray, n: int) -> float:
    total = 0.0
    for i in range(n):
        total += x[i] * i
        i = i + 10
        total += x[0] * i
    return total * i


@both
def test_c36_loop_variable(backend: str) -> None:
    right(loop_variable, X, 3, backend=backend)
    raises_as_python(loop_variable, X, 0, backend=backend, at="return total * i")


# ---- expressions ---------------------------------------------------------------------------------------------------


def unpacking(x: np.ndarray, n: int) -> float:
    a, b = x[0], x[1]
    first, *rest = (a * b, b, x[2], a)
    for _ in range(n):
        a, b = b * 1.5, a
        x[0], x[1] = x[1], x[0]
    return a * 2.0 + b * first + rest[1] * len(rest) + x[0] * 7.0


@both
def test_c37_unpacking_and_swaps(backend: str) -> None:
    for trips in (0, 1, 3):
        right(unpacking, X, trips, backend=backend)


def counted(x: np.ndarray, calls: np.ndarray) -> float:
    calls[0] += 1
    return x[0] * x[1]


def once_each(x: np.ndarray, calls: np.ndarray) -> float:
    total = 0.0
    if -9.0 < counted(x, calls) < 5.0:
        total += 1.0
    total += counted(x, calls) or 2.0
    total += x[2] if (t := counted(x, calls)) > 0.0 else -t
    if not (counted(x, calls) > 0.0 and counted(x, calls) < 7.0):
        total *= x[2]
    return total


@both
def test_c38_operands_are_evaluated_once(backend: str) -> None:
    right(once_each, X, np.zeros(1, np.int64), backend=backend)
    right(once_each, np.abs(X), np.zeros(1, np.int64), backend=backend)


# ---- syntax --------------------------------------------------------------------------------------------------------

SYNTAX = {
    "try": "try:\n        y = 1.0 / x\n    except ZeroDivisionError:\n        y = x",
    "with": "with open('x') as file:\n        y = x",
    "yield": "y = yield x",
    "set": "y = {x, x * x}",
    "class": "class C:\n        pass\n    y = x",
}


@pytest.mark.parametrize("construct", SYNTAX)
def test_c39_refused_syntax(construct: str) -> None:
    func = define(f"def f(x):\n    {SYNTAX[construct]}\n    return y\n")
    with pytest.raises((UnsupportedSyntax, NotDifferentiable)) as caught:
        differentiable(func).grad(2.0)
    assert caught.value.span is not None
    assert caught.value.advice


def accepted_syntax(x: np.ndarray, name: str) -> float:
    """Comprehensions, assertions, messages."""
    squares = [v * v for v in x if v > 0.0]
    assert len(squares) > 0, f"no positive numbers in {name}"
    if x.size > 100:
        raise ValueError(f"{name}: {x.size} numbers")
    return sum(squares)


@both
def test_c39_accepted_syntax(backend: str) -> None:
    right(accepted_syntax, X, "x", backend=backend)
    raises_as_python(accepted_syntax, -np.abs(X), "x", backend=backend, at="assert len(squares) > 0")
    raises_as_python(accepted_syntax, np.ones(101), "x", backend=backend, at="raise ValueError")


# ---- recursion -----------------------------------------------------------------------------------------------------


def power(x: float, n: int) -> float:
    return 1.0 if n == 0 else x * power(x, n - 1)


def even(x: float, n: int) -> float:
    return x if n == 0 else math.sin(odd(x, n - 1))


def odd(x: float, n: int) -> float:
    return x * 2.0 if n == 0 else even(x, n - 1) * x


def endless(x: float) -> float:
    return endless(x) * 2.0


def too_deep(x: float) -> float:
    return x if x < 1e-300 else too_deep(x * 0.999) + x


def by_value(x: float) -> float:
    return x if x < 0.1 else by_value(x * 0.5) * x


@both
def test_c40_recursion(backend: str) -> None:
    right(power, 1.2, 5, backend=backend)
    right(even, 0.7, 5, backend=backend)
    right(by_value, 2.0, backend=backend)


@both
def test_c40_recursion_without_an_end(backend: str) -> None:
    raises_as_python(endless, 2.0, backend=backend, at="return endless(x) * 2.0")
    raises_as_python(too_deep, 2.0, backend=backend, at="too_deep(x * 0.999)")


# ---- what has no meaning for arrays and numbers --------------------------------------------------------------------


def truth_of_an_array(x: np.ndarray) -> float:
    if x > 0.0:
        return x.sum()
    return -x.sum()


@both
def test_c41_truth_of_an_array(backend: str) -> None:
    raises_as_python(truth_of_an_array, X, backend=backend, at="if x > 0.0:")


@pytest.mark.parametrize(
    "body", ["return x[0] * len(str(x[0]) + '1')", "return {x[0]: 1.0}[x[0]]", "return x[0] if id(x[0]) else x[1]"]
)
def test_c42_objects_made_of_active_numbers(body: str) -> None:
    func = define(f"def f(x):\n    {body}\n")
    with pytest.raises(TapegenError) as caught:
        differentiable(func).grad(X)
    assert caught.value.span is not None
    assert caught.value.advice


def membership(x: np.ndarray, mode: str) -> float:
    if mode in ("twice", "double"):
        return 2.0 * x[0]
    if x[0] in (1.0, 2.0):
        return x[1] * x[0]
    return x[2] * x[0]


@both
def test_c42_membership_decides_a_branch(backend: str) -> None:
    derived = differentiable(membership, backend=backend)
    for mode in ("twice", "other"):
        for first in (2.0, 3.0):
            x = np.array([first, 5.0, 7.0])
            value, gradient = derived.value_and_grad(x, mode)
            assert value == membership(x, mode)
            expected = {"twice": [2.0, 0.0, 0.0]}.get(mode, [5.0, 2.0, 0.0] if first == 2.0 else [7.0, 0.0, 3.0])
            np.testing.assert_array_equal(gradient, expected)


# ---- functions that are flat ----------------------------------------------------------------------------------------


def flat(x: float, a: np.ndarray) -> float:
    whole = x // 0.3 + round(x) + math.floor(x) + math.ceil(x) + math.trunc(x) + int(x * 3.0)
    whole += np.sign(a).sum() + np.floor(a).sum() + np.rint(a).sum() + np.argmax(a) + (a > 0.1).sum() + (x > 1.0)
    return whole + a.max() * 0.0


def remainder(x: float, a: np.ndarray) -> float:
    return x % 0.7 + np.mod(a, 0.7).sum() + math.fmod(x, 0.3) + (a % x).sum() + divmod(x, 0.4)[1]


@both
def test_c43_flat_functions_have_gradient_zero(backend: str) -> None:
    derived = right(flat, 1.63, X + 0.13, backend=backend, wrt=(0, 1))
    gradient = derived.grad(1.63, X + 0.13)
    assert gradient[0] == 0.0
    np.testing.assert_array_equal(gradient[1], np.zeros(3))
    right(remainder, 1.63, X + 0.13, backend=backend, wrt=(0, 1))


# ---- what happens outside ------------------------------------------------------------------------------------------


def talkative(x: float) -> float:
    print("x is", x)
    return x * x


@both
def test_c44_print_happens_once(backend: str, capfd: pytest.CaptureFixture[str]) -> None:
    derived = differentiable(talkative, backend=backend)
    assert derived.value_and_grad(3.0) == (9.0, 6.0)
    assert capfd.readouterr().out == "x is 3.0\n"


LOG = logging.getLogger(__name__)


def in_words(x: float, n: int) -> float:
    LOG.info("%d steps from %s", n, x)
    for k in range(n):
        x = math.sin(x) - 0.5
        if x < -1.2:
            warnings.warn(f"small in step {k}: {x:.2f}", RuntimeWarning, stacklevel=2)
            LOG.debug("%s is small", k)
    while n > 0:
        n -= 1
        logging.warning(f"{n} left, x = {x:.3f}")
    return x


def test_c44_messages_are_kept(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO)
    derived = differentiable(in_words, backend="python")
    for start in (0.5, -1.0, -1.0):
        told = []
        for call in (in_words, derived.value_and_grad):
            caplog.clear()
            with warnings.catch_warnings(record=True) as caught:
                warnings.simplefilter("always")
                call(start, 3)
                messages = [record.getMessage() for record in caplog.records if record.name != "tapegen"]
                told.append((messages, [(str(w.message), w.category) for w in caught]))
        assert told[0] == told[1]
        assert len(caught) == (0 if start == 0.5 else 3)
    text = re.sub(r"\s+", "", str(derived.inspect(0.5, 3).joint))  # a long line may be broken
    assert f'logging.getLogger("{__name__}").info("%dstepsfrom%s",n,x)' in text


def warns_if_small(x: np.ndarray, steps: int) -> Any:
    x *= 2.0
    for k in range(steps):
        x[:] = np.sin(x) - 0.5
        if x[0] < -0.9:
            warnings.warn("small", RuntimeWarning, stacklevel=2)
            if x[0] < -1.45:
                raise ValueError("too small")
        elif x[0] > 0.4:
            print(f"{k}: {x[0]:.2f}")
    return (x * x).sum()


@pytest.mark.compiled
def test_c44_messages_in_branches_are_compiled(capfd: pytest.CaptureFixture[str]) -> None:
    derived, python = differentiable(warns_if_small), differentiable(warns_if_small, backend="python")
    for start, message in ((0.0, ""), (-0.4, "small"), (0.785, ""), (-0.4, "small")):
        caught = []
        for each in (derived, python):
            with warnings.catch_warnings(record=True) as told:
                warnings.simplefilter("always")
                given = np.array([start, 0.3])
                value, gradient = each.value_and_grad(given, 1)
            caught.append((value, gradient.tolist(), given.tolist(), capfd.readouterr().out))
            assert [str(w.message) for w in told] == ([message] if message else [])
        np.testing.assert_allclose(caught[0][0], caught[1][0], rtol=1e-14)
        np.testing.assert_allclose(caught[0][1], caught[1][1], rtol=1e-14)
        assert caught[0][2:] == caught[1][2:]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        raises_as_python(warns_if_small, np.array([-0.4, 0.3]), 3, backend="auto", at='raise ValueError("too small")')


def to_a_file(x: float) -> float:
    print(x, file=sys.__stdin__)
    return x


@functools.cache
def repeated(x: float, n: int) -> float:
    return x if n < 1 else x * repeated(x, n - 1)


class Cached:
    @functools.lru_cache  # noqa: B019
    def squared(self, x: float) -> float:
        return x * x


SAID = {
    "to_a_file(x)": "logging",
    "repeated(x, 3)": "Leave out the decorator",
    "globals()['math'].sin(x)": "the name of the global",
    "len(f'{x:.3f}') * x": "numbers themselves",
    "float(str(x))": "numbers themselves",
    "x.hex()": "operators",
}


@pytest.mark.parametrize("text", SAID)
def test_c44_what_to_write_instead(text: str) -> None:
    func: Any = define(f"import math\ndef f(x):\n    y = {text}\n    return y\n")
    func.__globals__.update(to_a_file=to_a_file, repeated=repeated)
    with pytest.raises(NotDifferentiable) as caught:
        differentiable(func).grad(1.5)
    assert SAID[text] in caught.value.advice
    assert caught.value.span is not None
    assert (caught.value.span.source_line().strip()) in (f"y = {text}", "print(x, file=sys.__stdin__)")


def chosen_by_a_test(x: float) -> float:
    made = Cached()
    return made.squared(x) + (x, x * x)[x > 1.0] + [1.0, x][x < 1.0]


def test_c42_tests_as_indices() -> None:
    for x in (0.7, 1.5):
        right(chosen_by_a_test, x, backend="python")


RANDOM = {
    "random.random": "x * random.random()",
    "time": "x * time.time()",
}


@pytest.mark.parametrize("name", RANDOM)
def test_c44_randomness_of_python_and_time_are_refused(name: str) -> None:
    func = define(f"import random, time\ndef f(x):\n    return {RANDOM[name]}\n")
    with pytest.raises(NotDifferentiable) as caught:
        differentiable(func).grad(2.0)
    assert caught.value.span is not None
    assert RANDOM[name] in caught.value.span.source_line()
    assert caught.value.advice


# ---- integers ------------------------------------------------------------------------------------------------------


def big_constant(x: float) -> float:
    return x * (2**70)


def wraps(x: float, n: int) -> float:
    return x * (n + 1)


def wraps_in_loop(x: float, n: int) -> float:
    k = 1
    for _ in range(n):
        k = k * 1000
    return x * k


def shifted(x: float, n: int) -> float:
    return x * (1 << n)


def powers(x: float, base: int, n: int) -> float:
    return x * base**n


@both
def test_c45_integers_never_wrap(backend: str) -> None:
    outcomes: list[tuple[Any, tuple[Any, ...]]] = [
        (big_constant, (1.5,)),
        (wraps, (1.5, 2**63 - 1)),
        (wraps_in_loop, (1.5, 22)),
        (shifted, (1.5, 64)),
        (shifted, (1.5, 63)),
        (powers, (1.5, 3, 41)),
    ]
    for func, args in outcomes:
        for how in ("__call__", "value_and_grad"):
            try:
                found = getattr(differentiable(func, backend=backend), how)(*args)
            except (TapegenError, OverflowError) as error:
                assert isinstance(error, BadArgument | OverflowError | NotDifferentiable)  # noqa: PT017
            else:
                value = found if how == "__call__" else found[0]
                assert value == func(*args), (func.__name__, how)
                if how != "__call__":
                    assert found[1] == func(*args) / args[0], func.__name__


@both
def test_c46_negative_powers_of_integers(backend: str) -> None:
    for n in (-1, 0, 3, -2):
        right(powers, 1.5, 2, n, backend=backend)


def test_squeeze_does_not_guess_which_axes_have_one_entry() -> None:
    """The rank of the result is fixed when compiling; a part that happens to have one row has a program of its own."""

    def part(table: np.ndarray, n: int) -> float:
        return np.sum(np.squeeze(table[:n]) * np.ones(3))

    f = differentiable(part, wrt=0, backend="python")
    table = np.arange(6.0).reshape(2, 3)
    assert np.array_equal(f.grad(table, 2), np.ones((2, 3)))
    assert np.array_equal(f.grad(table, 1), np.array([[1.0, 1.0, 1.0], [0.0, 0.0, 0.0]]))


def test_squeeze_of_what_no_argument_decides() -> None:
    """Rows that are chosen by their values are counted when the program runs; one that is left is refused."""

    def part(table: np.ndarray) -> float:
        return np.sum(np.squeeze(table[table[:, 0] > 1.0]) * np.ones(3))

    f = differentiable(part, backend="python")
    table = np.arange(9.0).reshape(3, 3)
    assert np.array_equal(f.grad(table), np.array([[0.0] * 3, [1.0] * 3, [1.0] * 3]))
    table[1, 0] = 0.0
    with pytest.raises(BadArgument, match="name the axes to take away"):
        f.grad(table)


def first_rows(table: np.ndarray, n: int) -> Any:
    rows = table * 1.0
    for _ in range(n):
        rows = table[:1]
    return np.squeeze(rows)


def first_row_on_a_path(table: np.ndarray, n: int) -> Any:
    rows = table * 1.0
    if table[0, 0] < n:
        rows = table[:1]
    return rows.squeeze()


@pytest.mark.parametrize("function", [first_rows, first_row_on_a_path])
def test_squeeze_of_arrays_of_several_paths(function: Any) -> None:
    """Where paths meet, a type says nothing of axes with one entry: they are counted when the program runs."""
    f = differentiable(function, wrt=0, backend="python")
    table = np.arange(6.0).reshape(2, 3)
    assert np.array_equal(jacobian(f)(table, 0).reshape(6, 6), np.eye(6))
    for mode in ("forward", "reverse"):
        with pytest.raises(BadArgument, match="name the axes to take away"):
            jacobian(f, mode=mode)(table, 1)


def test_squeeze_of_views_of_one_entry() -> None:
    def turned(table: np.ndarray) -> float:
        return np.squeeze(table[::-1, 0:1, ::2]) @ np.array([2.0, 3.0])

    table = np.arange(4.0).reshape(1, 1, 4)
    gradient = differentiable(turned, wrt=0, backend="python").grad(table)
    assert np.array_equal(gradient, np.array([[[2.0, 0.0, 3.0, 0.0]]]))
