"""Handlers of special-cased functions and methods, and the parameters that each supports.

A handler states its parameters as a `def` does, and the arguments of a call are bound to them, by position and by name,
before the handler sees them: `handles(sum, takes="iterable, /, start=0")`.  It gets positional arguments up to the
last one that is given, with declared defaults in the gaps, and keyword-only arguments by name.  Undeclared arguments
are refused here and nowhere else.  A handler that passes all its arguments on to another call, which binds them
itself, declares `PASSED_ON`.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from tapegen.errors import NotDifferentiable
from tapegen.frontend.values.context import Context
from tapegen.frontend.values.materialize import describe
from tapegen.frontend.values.pytree import StaticValue

Handler = Callable[[Context, list[Any], dict[str, Any], str | None], Any]

PASSED_ON = None
"""Instead of parameters: all arguments are passed on unbound."""


@dataclass(frozen=True, slots=True)
class Handled:
    """A handler, and the parameters that it supports; None where it passes all arguments on.

    Attributes
    ----------
    handler : callable
        Takes the context, positional arguments, keyword arguments and the name of the result.
    parameters : inspect.Signature or None
        Those of a method, without its receiver, which comes first.
    """

    handler: Handler
    parameters: inspect.Signature | None

    def call(self, cx: Context, func: Any, args: list[Any], kwargs: dict[str, Any], hint: str | None) -> Any:
        """The value of a call of a function."""
        if self.parameters is not None:
            try:
                args, kwargs = _by_parameter(self.parameters.bind(*args, **kwargs))
            except TypeError as error:
                _refuse(cx, func, f"'{func.__name__}'", args, kwargs, error)
        return self.handler(cx, args, kwargs, hint)

    def call_method(self, cx: Context, name: str, args: list[Any], kwargs: dict[str, Any], hint: str | None) -> Any:
        """The value of a call of a method; its receiver is the first argument."""
        if self.parameters is not None:
            receiver = args[0]
            try:
                args, kwargs = _by_parameter(self.parameters.bind(*args[1:], **kwargs))
            except TypeError as error:
                _refuse(cx, None, f"'{name}' of {describe(cx, receiver)}", args, kwargs, error)
            args = [receiver, *args]
        return self.handler(cx, args, kwargs, hint)


HANDLERS: dict[Any, Handled] = {}
METHODS: dict[tuple[str, str], Handled] = {}


def handles(*funcs: Any, takes: str | inspect.Signature | None) -> Callable[[Handler], Handler]:
    """Register the handler of a function, and the parameters that it supports."""

    def register(handler: Handler) -> Handler:
        assert not HANDLERS.keys() & set(funcs), "a function has one meaning"
        HANDLERS.update(dict.fromkeys(funcs, Handled(handler, _signature(takes))))
        return handler

    return register


def method(kind: str, name: str, *, takes: str | None) -> Callable[[Handler], Handler]:
    """Register the handler of a method; the receiver is the first argument, `takes` declares the others."""

    def register(handler: Handler) -> Handler:
        METHODS[kind, name] = Handled(handler, _signature(takes))
        return handler

    return register


def has_method(kind: str, name: str) -> bool:
    """Whether a method of a kind of value has a handler."""
    return (kind, name) in METHODS


def handled(func: Any) -> Handled | None:
    """The handler of a function, if it has one."""
    try:
        return HANDLERS.get(func)
    except TypeError:  # unhashable
        return None


def _signature(takes: str | inspect.Signature | None) -> inspect.Signature | None:
    return inspect.signature(eval(f"lambda {takes}: None")) if isinstance(takes, str) else takes


def _by_parameter(bound: inspect.BoundArguments) -> tuple[list[Any], dict[str, Any]]:
    """Positional arguments without gaps, and keyword-only arguments."""
    args: list[Any] = []
    kwargs: dict[str, Any] = {}
    waiting: list[Any] = []  # defaults of missing parameters, used only if a later one is given
    for name, parameter in bound.signature.parameters.items():
        if parameter.kind in (parameter.POSITIONAL_ONLY, parameter.POSITIONAL_OR_KEYWORD):
            if name in bound.arguments:
                args += [*waiting, bound.arguments[name]]
                waiting = []
            else:
                waiting.append(StaticValue(parameter.default))
        elif parameter.kind is parameter.VAR_POSITIONAL:
            args += bound.arguments.get(name, ())
        elif parameter.kind is parameter.VAR_KEYWORD:
            kwargs.update(bound.arguments.get(name, {}))
        elif name in bound.arguments:
            kwargs[name] = bound.arguments[name]
    return args, kwargs


def _refuse(cx: Context, func: Any, shown: str, args: list[Any], kwargs: dict[str, Any], error: TypeError) -> None:
    """Raise Python's own error for parameters that the function lacks; else refuse unsupported ones."""
    try:
        inspect.signature(func).bind(*args, **kwargs)
    except ValueError:  # compiled, without a signature
        pass
    except TypeError as wrong:
        if func is not None:
            cx.raise_(TypeError, f"{func.__name__}() {wrong}")
    raise cx.refusal(
        NotDifferentiable,
        f"{shown} is not supported with these arguments: {error}.",
        "Leave out the optional ones, or write a loop.",
    )
