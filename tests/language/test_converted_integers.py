"""Numbers that NumPy converts to integers: where they are out of bounds it raises, and so does compiled code."""

from __future__ import annotations

import functools
import warnings
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest

from tapegen import differentiable
from tests import strict
from tests.grown.program import load, unload

VALUES = [
    *("k + n", "n - k", "k[1] * n", "n // k", "k[0] % n", "k | n", "n & k[2]", "k ^ n", "k * 70000", "k[0] - 70000"),
    *("np.minimum(k, n)", "np.maximum(n, k[0])", "np.gcd(k, n)", "divmod(k, n)[0]", "divmod(k[0], n)[1]", "k ** 2 - n"),
    *(
        "np.full(3, n, k.dtype)",
        "np.full_like(k, n)",
        "np.asarray(n, dtype=k.dtype)",
        "np.array([n, 1], dtype=k.dtype)",
    ),
    *("np.insert(k, 0, n)", "k == n", "k[0] < n", "k / n"),
    *("np.clip(k, n, None)", "np.clip(k, 0, n)", "k.clip(n, 9)", "np.clip(k[0], 1, n)"),
]
STORES = [
    *(
        "k[1] = n",
        "k[:] = n",
        "k[k > 2] = n",
        "k[[0, 2]] = n",
        "k += n",
        "k -= n",
        "k[0] -= n",
        "k[1:] *= n",
        "k[0] = -n",
    ),
    *("k[k > 2] -= n", "k[1] = k[1] - n", "k[:3] = [n, 1, 2]", "k[1:] = (n, n)", "k[k > 2] = [n, 1]", "k[k > 2] += n"),
    *(
        "k.fill(n)",
        "np.put(k, [0], n)",
        "np.put(k, [0, 1], [n, 1])",
        "np.putmask(k, k > 2, n)",
        "np.place(k, k > 2, [n])",
    ),
    "np.add(k, n, out=k)",
]
PROGRAM = """
import numpy as np

def f(x, k, n):
    {store}
    return x * float(np.sum({value}))

def arguments():
    return (1.5, np.array([3, 2, 5], "{dtype}"), 1)
"""
CASES = [("pass", value) for value in VALUES] + [(store, "k") for store in STORES]


@pytest.fixture(autouse=True)
def quiet() -> Iterator[None]:
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        yield


def value_of(derived: Any, *args: Any) -> Any:
    return derived.value_and_grad(*args)[0]


def outcome(call: Callable[..., Any], args: tuple[Any, ...], n: int) -> tuple[Any, list[int]]:
    x, k, _ = args
    k = k.copy()
    try:
        return call(x, k, n), k.tolist()
    except OverflowError as error:
        return str(error), k.tolist()


@pytest.mark.parametrize(("store", "value"), CASES, ids=[value if store == "pass" else store for store, value in CASES])
def test_numbers_out_of_bounds_raise(store: str, value: str, monkeypatch: pytest.MonkeyPatch) -> None:
    strict.use(monkeypatch)
    for dtype in ("int16", "uint8", "uint64"):
        loaded = load(PROGRAM.format(store=store, value=value, dtype=dtype))
        args = loaded.arguments()
        derived = differentiable(loaded.function, backend="numba", cache=False)
        try:
            for n in (1, -1, 70000):
                expected = outcome(loaded.function, args, n)
                assert outcome(derived, args, n) == expected
                assert outcome(functools.partial(value_of, derived), args, n) == expected
        finally:
            unload(loaded)


def of_elements(x: Any, k: Any, n: Any) -> Any:
    total = 0.0
    for i in range(k.size):
        total += x[i] * (k[i] + n)
    k[1:] = n
    k -= n
    return total + x[0] * np.sum(np.clip(k, n, None))


def cast(x: Any, k: Any, n: Any) -> Any:
    k[0] = np.int64(n)
    return x[0] * np.sum(np.where(k > 2, k, n))


@pytest.mark.compiled
@pytest.mark.parametrize("function", [of_elements, cast])
@pytest.mark.parametrize("dtype", ["int8", "uint16"])
def test_compiled_numbers_out_of_bounds_raise(function: Callable[..., Any], dtype: str) -> None:
    args = (np.array([0.5, 1.5, 2.5]), np.array([3, 2, 5], dtype), 1)
    derived = differentiable(function, backend="numba")
    for n in (2, -1, 70000):
        assert outcome(derived, args, n) == outcome(function, args, n)


def test_bounds_are_checked_before_loops() -> None:
    def scaled(x: Any, k: Any, n: Any) -> Any:
        return np.sum(x * (k * n + n)) + np.sum(x * (k + 7))

    text = str(differentiable(scaled).inspect(np.ones(3), np.ones(3, np.int32), 4).compiled)
    value = text.split("def ", 2)[1]
    assert value.count("raise OverflowError") == 1
    assert value.rindex("raise OverflowError") < value.index("for ")


NUMBERS = ["x[0]", "float(x[0])", "j[0]", "x[0] * np.ones(3)", "[x[0], 1, 2]", "(float(x[0]), 1, 2)", "k[1] + j[0]"]
NUMBER_STORES = [
    *(f"k[:] = {number}" for number in NUMBERS),
    *(f"k[1] = {number}" for number in (*NUMBERS[:3], NUMBERS[-1])),
    *(f"k[k > 2] = {number}" for number in NUMBERS[:3]),
    *(
        "k[1] += j[0]",
        "k[1] -= j[0]",
        "k[[0, 1]] = float(x[0])",
        "k.fill(x[0])",
        "k[1] = k[1] * j[0]",
        "k[1] = k[1] + j[0]",
    ),
    "k = np.full(3, j[0], k.dtype)",
]
NUMBER_PROGRAM = """
import numpy as np

def f(x, k, j):
    {store}
    return x[1] * float(np.sum(k))

def arguments():
    return (np.array([1.5, 2.5]), np.array([3, 2, 5], "{dtype}"), np.array([7]))
"""


@pytest.mark.compiled
@pytest.mark.parametrize("store", NUMBER_STORES)
def test_numbers_that_no_integer_holds_raise(store: str) -> None:
    for dtype in ("int64", "int16", "uint8"):
        loaded = load(NUMBER_PROGRAM.format(store=store, dtype=dtype))
        _, k, _ = loaded.arguments()
        derived = differentiable(loaded.function, backend="numba", cache=False)
        try:
            for number in (np.nan, np.inf, 1e30, 70000.5, -3.5, 40.25):
                j = np.array([70000 if number > 1e4 else -3])
                found = []
                for call in (loaded.function, derived):
                    given = np.array([number, 2.0]), k.copy(), j
                    try:
                        found.append((call(*given), given[1].tolist()))
                    except (ValueError, OverflowError) as error:
                        found.append((str(error), given[1].tolist()))
                if not (dtype == "uint8" and not np.abs(number) < 1e9):  # NumPy casts these as the processor does
                    assert found[0] == found[1], number
        finally:
            unload(loaded)


REMAINDERS = [(5, 3), (-5, 3), (5, -3), (-5, -3), (5, 0), (7, -1)]


def remainders(x: Any, a: Any, b: Any) -> Any:
    return x * float(np.sum(np.fmod(a, b) * np.arange(a.size)) + np.fmod(a[1], b[1]) + np.fmod(a[3], -2))


def mixed(x: Any, a: Any, b: Any) -> Any:
    return x * (a[0] // b[0] + a[1] % b[1] + np.sum(a // b) + np.sum(a % b) + np.sum(np.fmod(a, b)) + a[0] * b[1])


@pytest.mark.compiled
@pytest.mark.parametrize("dtype", ["int64", "int8"])
def test_compiled_remainders_have_the_sign_of_the_dividend(dtype: str) -> None:
    a, b = np.array(REMAINDERS, dtype).T.copy()
    assert differentiable(remainders, backend="numba")(1.5, a, b) == remainders(1.5, a, b)


@pytest.mark.compiled
def test_compiled_operations_with_signs_and_without_are_those_of_floats() -> None:
    a, b = np.array([9, 2**63 + 2048, 5], np.uint64), np.array([4, -3, 2])
    assert differentiable(mixed, backend="numba")(1.5, a, b) == mixed(1.5, a, b)


def test_ends_of_differences_have_the_dtype_of_the_array() -> None:
    def ends(x: Any, a: Any) -> Any:
        return np.ediff1d(x, to_begin=a, to_end=[1.0])

    args = (np.array([1.5, 2.5], np.float32), np.array([0.1]))
    value = differentiable(ends, backend="python").jvp(args, (args[0], None))[0]
    assert value.dtype == np.float32
    np.testing.assert_array_equal(value, ends(*args))
