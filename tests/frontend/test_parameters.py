"""Each function and method with a handler, with each parameter of its signature: the value of Python, or a refusal."""

from __future__ import annotations

import bisect
import contextlib
import copy
import dataclasses
import functools
import heapq
import inspect
import itertools
import math
import operator
import statistics
import warnings
from typing import Any, NamedTuple

import numpy as np
import pytest

import tapegen as tg
from tapegen.errors import NotDifferentiable, TapegenError
from tapegen.frontend.calls import handlers
from tapegen.frontend.source.synthesize import function_from_text
from tests.judged import raises_as_python, same
from tests.parameter_calls import FUNCTIONS, METHODS


@dataclasses.dataclass
class Point:
    x: float
    y: float


class Pair(NamedTuple):
    a: float
    b: float


KNOWN: dict[str, Any] = {
    **{
        module.__name__: module
        for module in (bisect, copy, dataclasses, functools, heapq, inspect, itertools, math, operator)
    },
    **{"statistics": statistics, "np": np, "tg": tg, "Point": Point, "Pair": Pair},
}
SOURCE = """def program(v, s):
    made = [3.0, 1.0, s]
    room = v * 1.0
    table = {{"x": v[0], "y": 2.0}}
    point = Point(v[0], 2.0)
    pair = Pair(v[0], 2.0)
    return {}
"""
V, S = np.array([0.7, 1.6, 2.3]), 1.25
CALLS = [call for parameters in FUNCTIONS + METHODS for call in parameters.calls()]


def kind(value: Any) -> Any:
    """A structure with its numbers, as the value of a program may be compared."""
    if isinstance(value, dict):
        return tuple((key, kind(item)) for key, item in value.items())
    return tuple(map(kind, value)) if isinstance(value, tuple | list) else value


def is_right(call: str) -> bool:
    """Whether a call has a derivative, which then is right; it is refused otherwise."""
    program = function_from_text(SOURCE.format(call), KNOWN)
    derived = tg.differentiable(program, backend="python", wrt=(0, 1))
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        try:
            expected = kind(program(V.copy(), S))
        except Exception:
            with pytest.raises(Exception):  # noqa: B017, PT011
                derived(V.copy(), S)
            return False
        try:
            value = derived(V.copy(), S)
            derived.inspect(V.copy(), S)
        except TapegenError:
            return False
        same(kind(value), expected)
        if not _floats(expected) or "float32" in call:
            return True
        try:
            tg.check_grads(program, V.copy(), S, modes=("reverse",), backend="python")
        except TapegenError:
            return False
        return True


def _floats(value: Any) -> bool:
    """Whether all there is can be differenced."""
    if isinstance(value, tuple):
        return all(map(_floats, value)) and len(value) > 0
    return isinstance(value, float) or (isinstance(value, np.ndarray) and value.dtype == np.float64)


def test_some_parameters() -> None:
    """Most of them are understood; the rest is refused."""
    sample = [*CALLS[::16], "sum([x * x for x in v], start=s)", "sum((x * x for x in v), start=s)"]
    assert sum(map(is_right, sample)) > 0.7 * len(sample)


@pytest.mark.whole
@pytest.mark.parametrize("call", CALLS)
def test_parameter(call: str) -> None:
    is_right(call)


def test_a_parameter_that_is_not_understood_is_refused() -> None:
    def first_of_several(v: np.ndarray, s: float) -> float:
        return s * [3.0, v[0]].index(3.0, 0)

    with pytest.raises(NotDifferentiable, match="'index' of a list is not supported with these arguments"):
        tg.grad(first_of_several, backend="python")(V, S)

    def searched(v: np.ndarray, s: float) -> float:
        return s * bisect.bisect_left(v, s, key=abs)

    with pytest.raises(NotDifferentiable, match=r"'bisect_left' is not supported with these arguments: .*'key'"):
        tg.grad(searched, backend="python")(V, S)


def unknown_to_python(v: np.ndarray, s: float) -> float:
    return sum(v, begin=s)


def with_a_base(v: np.ndarray, s: float) -> float:
    return int(s, base=8) * s


def test_what_python_does_not_know_raises_as_python_does() -> None:
    raises_as_python(unknown_to_python, V, S, backend="python")
    raises_as_python(with_a_base, V, S, backend="python")


def test_every_handler_is_called() -> None:
    """A new handler gets a line in tests/parameter_calls.py."""
    named = set()
    for parameters in FUNCTIONS:
        named.add(eval(parameters.call, KNOWN))
    own = ("tapegen.ir", "tapegen.rules", "tapegen.frontend")  # what only generated text calls
    drawn = ("numpy.random", "random")  # tests/runtime/test_random_draws.py
    missing = [
        func for func in handlers.HANDLERS if func not in named and not (_module(func) or "").startswith((*own, *drawn))
    ]
    apart = {object.__setattr__, object.__init__, super, range.__getitem__, np.mgrid, np.ogrid, tg.print_gradient}
    apart |= {contextlib._GeneratorContextManager}  # tests/language/test_try_and_with.py
    assert [func for func in missing if func not in apart] == []


def _module(func: Any) -> str | None:
    owner = getattr(func, "__objclass__", None) or getattr(func, "__self__", None)
    module = getattr(func, "__module__", None)
    return module if isinstance(module, str) else getattr(type(owner), "__module__", None) or owner.__module__


def test_every_method_is_called() -> None:
    called = {parameters.call.rpartition(".")[2] for parameters in METHODS}
    assert {name for _, name in handlers.METHODS} <= called | {"ptp"}
