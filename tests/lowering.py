"""Lower a function, run the program directly and compare with plain Python."""

from __future__ import annotations

import copy
import inspect
from collections.abc import Callable
from typing import Any

import numpy as np

from tapegen.frontend.lower import lower_function
from tapegen.frontend.lowered import Lowered
from tapegen.frontend.source.callables import unwrap
from tapegen.frontend.values.pytree import Struct, abstract_of, flatten
from tapegen.ir.verifier import check
from tests.interpret import run


def lower(func: Callable[..., Any], *args: Any, **kwargs: Any) -> Lowered:
    """The program for these arguments; its invariants hold."""
    function, bound = _bound(func, args, kwargs)
    positional: list[Any] = []
    keyword: dict[str, Any] = {}
    for name, value in bound.arguments.items():
        abstract = abstract_of(value, name)
        kind = bound.signature.parameters[name].kind
        if kind is inspect.Parameter.VAR_POSITIONAL:
            assert isinstance(abstract, Struct)
            positional.extend(abstract.children)
        elif kind is inspect.Parameter.VAR_KEYWORD:
            assert isinstance(abstract, Struct)
            keyword.update(zip(abstract.keys, abstract.children, strict=True))
        elif kind is inspect.Parameter.KEYWORD_ONLY:
            keyword[name] = abstract
        else:
            positional.append(abstract)
    lowered = lower_function(function, tuple(positional), keyword)
    check(lowered.function)
    return lowered


def _bound(func: Callable[..., Any], args: tuple, kwargs: dict[str, Any]) -> tuple[Any, inspect.BoundArguments]:
    function, first, more = unwrap(func)
    bound = inspect.signature(function).bind(*first, *args, **{**more, **kwargs})
    bound.apply_defaults()
    return function, bound


def outcome(call: Callable[..., Any], args: tuple, kwargs: dict[str, Any]) -> tuple[Any, ...]:
    """What a call gives: a value, or the type of the exception and its text."""
    with np.errstate(all="ignore"):
        try:
            return "value", call(*args, **kwargs)
        except Exception as error:
            return "error", type(error), str(error)


def agree(func: Callable[..., Any], *args: Any, lowered_for: tuple | None = None, **kwargs: Any) -> Lowered:
    """Assert that the lowered program does what the function does: value, exception, what becomes of the arguments.

    Parameters
    ----------
    func : callable
        The function.
    *args, **kwargs
        What it is called with.
    lowered_for : tuple, optional
        Arguments of the same types to lower for, when they differ from those of the call.
    """
    lowered = lower(func, *(args if lowered_for is None else lowered_for), **kwargs)
    plain, mine = copy.deepcopy(args), copy.deepcopy(args)
    want = outcome(func, plain, kwargs)
    _, bound = _bound(func, mine, kwargs)

    def program(*_: Any, **__: Any) -> Any:
        values = run(lowered.function, *lowered.leaves(bound.arguments))
        return lowered.restore(values)

    got = outcome(program, (), {})
    assert got[0] == want[0], f"plain Python: {want}, lowered: {got}"
    if want[0] == "error":
        assert got[1] is want[1]
        # pytest adds to the text of assertions in test modules
        assert want[2].startswith(got[2]) if want[1] is AssertionError else got[2] == want[2]
    else:
        same(got[1], want[1])
    same(mine, plain)
    return lowered


def same(got: Any, want: Any) -> None:
    """Assert that two structures of numbers and arrays are equal in kind, dtype, shape and value."""
    if isinstance(want, tuple | list):
        assert type(got) is type(want)
        assert len(got) == len(want)
        for a, b in zip(got, want, strict=True):
            same(a, b)
        return
    if isinstance(want, dict):
        assert list(got) == list(want)
        for key in want:
            same(got[key], want[key])
        return
    leaves = flatten(want)
    if not leaves:
        assert got is want or got == want
        return
    if len(leaves) > 1 or leaves[0] is not want:
        same(flatten(got), leaves)
        return
    if isinstance(want, np.ndarray):
        assert isinstance(got, np.ndarray)
        assert (got.dtype, got.shape) == (want.dtype, want.shape)
        np.testing.assert_array_equal(got, want)
    else:
        assert np.asarray(got).dtype == np.asarray(want).dtype
        assert got == want or (got != got and want != want)
