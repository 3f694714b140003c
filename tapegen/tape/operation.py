"""Rules as the tape runs them: what to keep of a call, and how to run a rule's body on what was kept."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from functools import lru_cache
from typing import Any

import numpy as np

from tapegen.rules.reading import Slice, sliced
from tapegen.rules.registry import Rule, rule_of

_VARIADIC = inspect.Parameter.VAR_POSITIONAL
_POSITIONAL = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)


class Plan:
    """What the backward sweep of a call needs when a given set of its parameters is tracked."""

    __slots__ = ("body", "names", "numbers", "reads_out")

    def __init__(self, part: Slice) -> None:
        self.body = part.call
        self.numbers = part.numbers
        self.reads_out = "out" in part.reads
        self.names = part.reads


class Operation:
    """One function with its rule."""

    __slots__ = ("func", "kind", "names", "nonfinite", "plans", "rule", "signature", "takes_out", "variadic")

    def __init__(self, func: Callable[..., Any], rule: Rule | None) -> None:
        self.func = func
        self.rule = rule
        self.kind: str = "missing" if rule is None else rule.kind
        self.nonfinite = rule is not None and rule.nonfinite
        self.plans: dict[Any, Plan] = {}
        self.names: tuple[str, ...] = ()
        self.variadic: str | None = None
        self.signature: inspect.Signature | None = None
        self.takes_out = False
        if rule is not None and rule.body is not None:
            self.signature = inspect.signature(rule.body)
            parameters = self.signature.parameters.values()
            self.names = tuple(p.name for p in parameters if p.kind in _POSITIONAL)
            self.variadic = next((p.name for p in parameters if p.kind is _VARIADIC), None)
            self.takes_out = rule.reads("out")

    @property
    def name(self) -> str:
        return getattr(self.func, "__name__", repr(self.func))

    def parameter(self, position: int) -> str | None:
        """The name of the parameter that takes a positional argument."""
        return self.names[position] if position < len(self.names) else self.variadic

    def derivable(self) -> tuple[str, ...]:
        """The parameters that the rule gives derivatives for, in its order."""
        assert self.rule is not None
        return self.names if self.kind == "partials" else self.rule.wrt

    def plan(self, wanted: tuple[str, ...]) -> Plan:
        """How to differentiate with respect to some of the parameters; they come in the order of the rule."""
        found = self.plans.get(wanted)
        if found is None:
            found = self.plans[wanted] = self._plan(wanted)
        return found

    def _plan(self, wanted: tuple[str, ...]) -> Plan:
        assert self.rule is not None and self.rule.body is not None
        every = self.derivable()
        part = sliced(self.rule.body, [every.index(name) for name in wanted], len(every))
        if self.kind == "linear":  # of what it is linear in, its transpose sees the structure alone
            part = Slice(part.call, part.reads - set(self.rule.wrt), part.numbers)
        return Plan(part)


_OPERATIONS: dict[Any, Operation] = {}


def operation_of(func: Callable[..., Any]) -> Operation:
    """The operation of a function; the same object as long as its rule is the same."""
    found = _OPERATIONS.get(func)
    if found is None or found.rule is not rule_of(func):
        found = _OPERATIONS[func] = Operation(func, rule_of(func))
    return found


@lru_cache(maxsize=4096)
def stand_in(shape: tuple[int, ...], dtype: np.dtype) -> np.ndarray:
    """An array that has a shape and a dtype, and no memory; nobody reads its elements."""
    return np.broadcast_to(np.zeros((), dtype), shape)
