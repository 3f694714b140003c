"""Signatures that are found once are those that numba finds."""

from __future__ import annotations

import math
import operator
from typing import Any

import numpy as np
import pytest
from numba import njit, types
from numba.core.cpu import CPUContext
from numba.core.errors import TypingError
from numba.core.registry import cpu_target
from numba.core.typing.templates import _TemplateTargetHelperMixin

from tapegen.backend.numba import call_resolution
from tapegen.backend.numba.call_resolution import call_type, calls_resolved_once

NUMBERS = (types.int64, types.uint64, types.float32, types.float64, types.boolean, types.complex128, types.literal(3))
VECTOR, MATRIX = types.float64[::1], types.float64[:, :]
CALLS = [
    *((func, (a, b)) for func in (operator.add, operator.truediv, operator.ne) for a in NUMBERS[:5] for b in NUMBERS),
    *((operator.lt, (a, b)) for a in NUMBERS[:5] for b in NUMBERS[:5]),
    *(
        (func, (a,))
        for func in (operator.neg, operator.not_, abs, math.sin, np.sin)
        for a in (types.int64, types.float64)
    ),
    *((operator.pow, (types.float64, b)) for b in (types.int64, types.literal(2), types.float64)),
    *((operator.getitem, (VECTOR, types.int64)), (operator.getitem, (MATRIX, types.UniTuple(types.int64, 2)))),
    *((max, (types.int64, types.int64)), (operator.iadd, (MATRIX, VECTOR)), (len, (types.List(types.float64),))),
]


def function_type(func: Any) -> Any:
    cpu_target.typing_context.refresh()
    return cpu_target.typing_context.resolve_value_type(func)


@pytest.mark.parametrize(("func", "args"), CALLS)
def test_signatures_are_those_of_numba(func: Any, args: tuple[Any, ...]) -> None:
    function, context = function_type(func), cpu_target.typing_context
    wanted = function.get_call_type(context, args, {})
    key = function.get_impl_key(wanted)
    with calls_resolved_once():
        for _ in range(2):
            found = function.get_call_type(context, args, {})
            assert (found.return_type, found.args) == (wanted.return_type, wanted.args)
            assert function.get_impl_key(found) is key


def test_what_does_not_fit_is_refused_each_time() -> None:
    function, context = function_type(operator.sub), cpu_target.typing_context
    with calls_resolved_once():
        for _ in range(2):
            with pytest.raises(TypingError):
                function.get_call_type(context, (types.unicode_type, types.float64), {})


def test_numba_is_asked_once() -> None:
    function, context = function_type(operator.getitem), cpu_target.typing_context
    with calls_resolved_once():
        first = call_type(function, context, (VECTOR, types.int64), {})
        assert call_type(function, context, (VECTOR, types.int64), {}) is first
        assert call_resolution._found
    assert not call_resolution._found  # which would keep types alive


def test_implementations_follow_the_options_of_their_caller() -> None:
    """Overloads are compiled with the options of each caller, under one key."""

    def total(x: Any) -> Any:
        return np.sum(x) + np.sum(x)

    with calls_resolved_once():
        texts = []
        for options in ({}, {"fastmath": True}, {}):
            compiled = njit(**options)(total)
            assert compiled(np.arange(5.0)) == 20.0
            texts.append(compiled.inspect_llvm(compiled.signatures[0]))
    assert ["fadd fast" in text for text in texts] == [False, True, False]


class Template(_TemplateTargetHelperMixin):
    def __init__(self, **metadata: str) -> None:
        self.metadata, self.context = metadata, cpu_target.typing_context


@pytest.mark.parametrize("metadata", [{}, {"target": "generic"}, {"target": "cpu"}])
def test_the_registry_is_that_of_numba_without_a_refresh(
    metadata: dict[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    made, refreshed = Template(**metadata), []
    wanted = made._get_target_registry("test")
    monkeypatch.setattr(CPUContext, "refresh", lambda self: refreshed.append(self))
    with calls_resolved_once():
        assert made._get_target_registry("test") is wanted
    assert not refreshed
    assert made._get_target_registry("test") is wanted
    assert refreshed
