"""Operations: rules as the tape runs them, which values of a call to save, and how to run a rule's body on them."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from dataclasses import replace
from functools import cache, lru_cache
from types import FunctionType
from typing import Any

import numpy as np

from tapegen.rules.registry import registered, rule_of
from tapegen.rules.rule import Rule
from tapegen.rules.saved_values import Slice, sliced

_VARIADIC = inspect.Parameter.VAR_POSITIONAL
_POSITIONAL = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)


_RECORDED_AS_THEY_ARE = ("partials", "linear", "pullback")


class Plan:
    """What the backward sweep of a call needs when a given set of its parameters is tracked.

    Attributes
    ----------
    body : callable
        The rule's body, sliced to the wanted derivatives.
    numbers : tuple
        For each of these its constant value, or None; `constant` if none of them is None.
    inverse : tuple of bool
        Which derivatives are returned as divisors of the cotangent.
    names : frozenset of str
        Parameters whose values the body reads.
    reads_out : bool
        Whether it reads the result; `takes_out`: whether the result must be passed to it.
    nonfinite : bool
        Whether a result can be infinite or NaN; `poles`: whether it can be so for complex numbers;
        `is_finite`: neither of them.
    """

    __slots__ = (
        "body",
        "constant",
        "elementwise",
        "inverse",
        "is_finite",
        "names",
        "nonfinite",
        "numbers",
        "operation",
        "poles",
        "reads_out",
        "takes_out",
    )

    def __init__(self, operation: Operation, part: Slice) -> None:
        self.operation = operation
        self.body = part.call
        self.numbers = part.numbers
        self.inverse = part.inverse
        self.constant = None not in part.numbers
        self.reads_out = "out" in part.reads
        self.names = part.reads
        self.takes_out = operation.takes_out
        self.elementwise = operation.kind == "partials"
        self.nonfinite = operation.nonfinite
        self.poles = operation.rule is not None and operation.rule.poles
        self.is_finite = not (self.nonfinite or self.poles)


class FlatPlan(Plan):
    """A plan for a call whose tensors are positional arguments themselves.

    Attributes
    ----------
    places : tuple
        For each tracked argument: the index among the results of the body, and its position.
    keep : tuple of bool
        Which arguments the body reads; `keeps_all`: whether it reads them all.
    steps : tuple
        `places` with, for each, the constant value of the partial derivative, and whether it is inverted.
    """

    __slots__ = ("keep", "keeps_all", "places", "steps")

    def __init__(self, operation: Operation, part: Slice, places: tuple[tuple[int, int], ...], count: int) -> None:
        super().__init__(operation, part)
        self.places = places
        self.steps = tuple((place, position, self.numbers[place], self.inverse[place]) for place, position in places)
        self.keep = tuple(operation.parameter(position) in part.reads for position in range(count))
        self.keeps_all = all(self.keep)


class Operation:
    """One function with its rule."""

    __slots__ = (
        "flat_plans",
        "func",
        "kind",
        "may_refuse",
        "names",
        "nonfinite",
        "of_complex",
        "options",
        "plans",
        "rule",
        "signature",
        "takes_out",
        "variadic",
    )

    def __init__(self, func: Callable[..., Any], rule: Rule | None) -> None:
        self.func = func
        self.rule = rule
        self.kind: str = "missing" if rule is None else rule.kind
        self.nonfinite = rule is not None and rule.nonfinite
        self.of_complex = rule is None or rule.of_complex
        self.may_refuse = rule is not None and rule.body is not None and _refuses(rule.body)
        self.plans: dict[Any, Plan] = {}
        self.flat_plans: dict[Any, FlatPlan | None] = {}
        self.names: tuple[str, ...] = ()
        self.variadic: str | None = None
        self.signature: inspect.Signature | None = None
        self.takes_out = False
        self.options: frozenset[str] | None = None
        if rule is not None and rule.body is not None:
            self.signature = inspect.signature(rule.body)
            parameters = self.signature.parameters.values()
            self.names = tuple(p.name for p in parameters if p.kind in _POSITIONAL)
            self.variadic = next((p.name for p in parameters if p.kind is _VARIADIC), None)
            self.takes_out = rule.reads("out")
            if self.kind in _RECORDED_AS_THEY_ARE:
                self.options = frozenset(self.signature.parameters) - {"out", "out_bar", *self.names[:1]}

    @property
    def name(self) -> str:
        return getattr(self.func, "__name__", repr(self.func))

    def parameter(self, position: int) -> str | None:
        """The name of the parameter for a positional argument."""
        return self.names[position] if position < len(self.names) else self.variadic

    def derivable(self) -> tuple[str, ...]:
        """The parameters that the rule returns derivatives for, in its order."""
        assert self.rule is not None
        return self.rule.wrt or self.names if self.kind == "partials" else self.rule.wrt

    def plan(self, wanted: tuple[str, ...]) -> Plan:
        """The plan for differentiating with respect to some of the parameters, which are in the order of the rule."""
        found = self.plans.get(wanted)
        if found is None:
            found = self.plans[wanted] = Plan(self, self._slice(wanted))
        return found

    def flat_plan(self, mask: tuple[bool, ...]) -> FlatPlan | None:
        """The plan for differentiating with respect to the positional arguments of the mask, if the rule covers it."""
        names = [self.parameter(position) for position, is_tracked in enumerate(mask) if is_tracked]
        found = None
        if self.kind in _RECORDED_AS_THEY_ARE and self.variadic not in names and not self.may_refuse:
            wanted = tuple(name for name in self.derivable() if name in names)
            if len(wanted) == len(names):
                positions = [self.names.index(name) for name in wanted]
                found = FlatPlan(self, self._slice(wanted), tuple(enumerate(positions)), len(mask))
        self.flat_plans[mask] = found
        return found

    def _slice(self, wanted: tuple[str, ...]) -> Slice:
        assert self.rule is not None and self.rule.body is not None
        every = self.derivable()
        part = sliced(self.rule.body, [every.index(name) for name in wanted], len(every), self.kind == "partials")
        if self.kind == "linear":  # where it is linear, its transpose needs only the structure
            part = replace(part, reads=part.reads - set(self.rule.wrt))
        return part


@cache
def _refuses(body: Any, depth: int = 2) -> bool:
    """Whether a rule, or a function that it calls, refuses some calls."""
    names = body.__code__.co_names
    called = (body.__globals__.get(name) for name in names)
    return "require" in names or any(
        isinstance(func, FunctionType) and depth > 0 and _refuses(func, depth - 1) for func in called
    )


class Named(Operation):
    """A function whose last positional arguments are passed by name, where its rule does not know these names."""

    __slots__ = ("keywords",)

    def __init__(self, operation: Operation, keywords: tuple[str, ...]) -> None:
        super().__init__(operation.func, operation.rule)
        self.kind = "missing"
        self.keywords = keywords


_OPERATIONS: dict[Any, Operation] = {}


def operation_of(func: Callable[..., Any]) -> Operation:
    """The operation of a function; the same object as long as its rule is the same."""
    found = _OPERATIONS.get(func)
    if found is not None and found.rule is not None and found.rule is registered(func):
        return found
    if found is None or found.rule is not rule_of(func):
        found = _OPERATIONS[func] = Operation(func, rule_of(func))
    return found


@lru_cache(maxsize=4096)
def stand_in(shape: tuple[int, ...], dtype: np.dtype) -> np.ndarray:
    """An array with a shape and a dtype, but without memory; nothing reads its elements."""
    return np.broadcast_to(np.zeros((), dtype), shape)


def is_stand_in(value: Any) -> bool:
    """Whether a saved value is only a shape and a dtype."""
    return isinstance(value, np.ndarray) and value is stand_in(value.shape, value.dtype)
