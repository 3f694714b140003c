"""Compiled fallback: calls that no rule covers are derived by the compiler where a gradient needs them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cached_property, lru_cache
from typing import Any

import numpy as np

from tapegen.api import Differentiable
from tapegen.errors import InternalError, MissingRule, Span, TapegenError
from tapegen.frontend.source.synthesize import function_from_text
from tapegen.pipeline.options import Options
from tapegen.rules.registry import refusal_of
from tapegen.tape.engine.operations import Operation
from tapegen.tape.engine.stack_frames import user_span
from tapegen.tape.tensors import compiled_calls
from tapegen.tape.tensors.closures import Closure
from tapegen.tape.tensors.tensor import known_as


class CompiledFallback(Closure):
    """A call that its rule does not cover: a keyword, a method of a ufunc, a list that the rule does not know.

    Attributes
    ----------
    form : Form
        The form of the call.
    """

    __slots__ = ("form",)

    def __init__(self, operation: Operation, form: Form, tracked: set[int]) -> None:
        late = _Late(operation, form, tuple(k for k, number in enumerate(form.ids) if number in tracked))
        super().__init__(operation.name, late.pull, late.push)
        self.form = form


class _Late:
    """The derivative of a call, made on demand."""

    def __init__(self, operation: Operation, form: Form, wrt: tuple[int, ...]) -> None:
        self.operation = operation
        self.form = form
        self.wrt = wrt
        self.span = user_span()

    @cached_property
    def applied(self) -> compiled_calls.Applied:
        form = self.form
        pairs = zip(form.values, form.ids, strict=True)
        operands = tuple(known_as(value, number) if number else value for value, number in pairs)
        function = _function(tuple(form.pieces), tuple(form.objects), len(operands))
        return compiled_calls.Applied(function, operands, {}, self.wrt)

    def pull(self, *bars: Any) -> Sequence[Any]:
        try:
            found = iter(self.applied.pull(*bars))
        except InternalError:
            raise
        except TapegenError as error:
            raise self._refusal(error) from error
        return [next(found) if k in self.wrt else None for k in range(len(self.form.values))]

    def push(self, *dots: Any) -> Sequence[Any] | None:
        try:
            return self.applied.push(*(dots[k] for k in self.wrt))
        except InternalError:
            raise
        except TapegenError as error:
            raise self._refusal(error) from error

    def _refusal(self, error: TapegenError) -> MissingRule:
        if self.operation.rule is None:
            return missing(self.operation, self.span)
        name = self.operation.name
        reason = f"gradient registry has no entry for: {name} in this form ({error.reason.rstrip('.')})"
        return MissingRule(reason, error.advice, self.span)


def missing(operation: Operation, span: Span | None) -> MissingRule:
    """The error for a gradient that would pass through a function without a rule."""
    refusal = refusal_of(operation.func)
    if refusal is not None:
        reason = f"gradient registry has no entry for: {operation.name} ({refusal.reason.rstrip('.')})"
        return MissingRule(reason, refusal.advice, span)
    return MissingRule(
        f"gradient registry has no entry for: {operation.name}",
        "Write it with functions that have a rule, register one (tg.partials, tg.linear, tg.pullback, tg.expands), "
        "or declare that it has no derivative (tg.inactive).",
        span,
    )


class Form:
    """A call as source text.

    Attributes
    ----------
    values, ids : list
        The arrays and floats among the arguments, and the numbers of those that are tensors.
    objects : list
        The functions and types that the text refers to.
    pieces : list
        The text; `k` is the operand k, and `~k` the object k.
    """

    def __init__(self, func: Callable[..., Any]) -> None:
        self.values: list[Any] = []
        self.ids: list[int] = []
        self.objects: list[Any] = []
        self.pieces: list[str | int] = []
        owner = getattr(func, "__self__", None)
        if isinstance(owner, np.ufunc):
            self._add(owner, 0)
            self.pieces.append(f".{func.__name__}(")
        else:
            self._add(func, 0)
            self.pieces.append("(")

    def argument(self, name: str, value: Any, number: Any) -> None:
        """One more argument; a name makes it a keyword."""
        separator = "" if str(self.pieces[-1]).endswith("(") else ", "
        self.pieces.append(f"{separator}{name}=" if name else separator)
        self._add(value, number)

    def _add(self, value: Any, number: Any) -> None:
        if isinstance(value, list | tuple):
            numbers = number if type(number) is tuple else (0,) * len(value)
            self.pieces.append("[" if isinstance(value, list) else "(")
            for k, pair in enumerate(zip(value, numbers, strict=True)):
                self.pieces.append(", " if k else "")
                self._add(*pair)
            self.pieces.append("]" if isinstance(value, list) else ",)" if len(value) == 1 else ")")
        elif number or isinstance(value, float | complex | np.ndarray | np.floating):
            self.pieces.append(len(self.values))
            self.values.append(value.copy() if isinstance(value, np.ndarray) and not number else value)
            self.ids.append(number)
        elif value is None or isinstance(value, bool | int | str | np.bool_ | np.integer):
            self.pieces.append(repr(value.item() if isinstance(value, np.generic) else value))
        else:
            self.pieces.append(~len(self.objects))
            self.objects.append(value)


def written(pieces: Sequence[str | int], operands: Sequence[str], objects: Sequence[str]) -> str:
    """A call with variable names for its operands and objects."""
    parts = [p if isinstance(p, str) else operands[p] if p >= 0 else objects[~p] for p in pieces]
    return f"{''.join(parts)})"


@lru_cache(maxsize=1024)
def _function(pieces: tuple[str | int, ...], objects: tuple[Any, ...], count: int) -> Differentiable:
    parameters = [f"x_{k}" for k in range(count)]
    names = {f"object_{k}": item for k, item in enumerate(objects)}
    text = f"def call({', '.join(parameters)}):\n    return {written(pieces, parameters, list(names))}\n"
    return Differentiable(function_from_text(text, names), Options(backend="python"))
