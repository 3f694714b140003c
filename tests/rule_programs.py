"""A call of a library function as a program of its own: floating arguments are parameters, all else is constant."""

from __future__ import annotations

import functools
import inspect
import math
from collections.abc import Callable
from typing import Any

import numpy as np

from tapegen.frontend.source.synthesize import function_from_text
from tapegen.rules import Rule

WRITES = frozenset({np.copyto, np.fill_diagonal, np.place, np.put, np.put_along_axis, np.putmask})
"""Functions whose result is what they leave in their first argument."""

BORDERS = frozenset({"cval"})
"""Arguments by which a derivative is refused: what lies beyond an array."""


def _is_floating(value: Any) -> bool:
    return isinstance(value, float | np.floating) or (isinstance(value, np.ndarray) and value.dtype.kind == "f")


def program_of(rule: Rule, args: tuple, kwargs: dict[str, Any]) -> tuple[Callable[..., Any], tuple]:
    """`def program(x0, x1): return func(x0, "same", [x1])`, and its arguments."""
    values: list[Any] = []
    captured: dict[str, Any] = {"func": rule.func}
    assert rule.body is not None
    bound = inspect.signature(rule.body).bind_partial(*args, **kwargs).arguments
    constant = [id(value) for name, value in bound.items() if (rule.wrt and name not in rule.wrt) or name in BORDERS]

    def text(value: Any) -> str:
        if id(value) in constant and isinstance(value, float) and math.isfinite(value):
            return repr(float(value))
        infinite = isinstance(value, float) and math.isinf(value)  # the name of a norm
        if id(value) not in constant and _is_floating(value) and not infinite:
            values.append(value)
            return f"x{len(values) - 1}"
        if isinstance(value, list):
            return f"[{', '.join(map(text, value))}]"
        if isinstance(value, tuple):
            return f"({', '.join(map(text, value))}{',' if len(value) == 1 else ''})"
        if value is None or isinstance(value, bool | int | str):
            return repr(value)
        name = f"c{len(captured)}"
        captured[name] = value
        return name

    shown = [*map(text, args), *(f"{name}={text(value)}" for name, value in kwargs.items())]
    parameters = ", ".join(f"x{k}" for k in range(len(values)))
    call = f"func({', '.join(shown)})"
    written = shown[0].partition("=")[2] or shown[0]
    body = f"{call}\n    return {written}" if rule.func in WRITES else f"return {call}"
    source = f"def program({parameters}):\n    {body}\n"
    if len(captured) > 1:
        return function_from_text(source, captured), tuple(values)
    return _without_constants(rule.func, source), tuple(values)


@functools.cache
def _without_constants(func: Callable[..., Any], source: str) -> Callable[..., Any]:
    """One function for calls that differ in the shapes of their arrays: its programs are derived once."""
    return function_from_text(source, {"func": func})
