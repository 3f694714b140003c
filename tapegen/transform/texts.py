"""Functions said with others where numba takes them in part only: axes, stacks, more operands.

Texts are plain Python, as the bodies of rules are, and call only what has a form of its own.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from tapegen.ir.nodes import Call, Const, Expr
from tapegen.ir.types import Array

Chosen = Callable[..., Any] | None

TEXTS: dict[Any, Callable[[Call], Any]] = {}
"""Gives the text for a call, or None where the call has a form of its own."""


def written(*funcs: Any) -> Callable[[Callable[[Call], Chosen]], Callable[[Call], Chosen]]:
    """Decorator: enter what chooses the text of a call."""

    def register(choose: Callable[[Call], Chosen]) -> Callable[[Call], Chosen]:
        TEXTS.update(dict.fromkeys(funcs, choose))
        return choose

    return register


def _known(call: Call, position: int, name: str, default: Any) -> Any:
    """An argument that is known when compiling."""
    given: Expr = call.args[position] if position < len(call.args) else dict(call.kwargs).get(name, Const(default))
    return given.value if isinstance(given, Const) else default


def _rank(expr: Expr) -> int:
    return expr.type.rank if isinstance(expr.type, Array) else 0


# ---- sorting ---------------------------------------------------------------------------------------------------------


@written(np.sort)
def _sort(call: Call) -> Chosen:
    axis = _known(call, 1, "axis", -1)
    return None if axis is not None and axis % _rank(call.args[0]) == _rank(call.args[0]) - 1 else sort_along


def sort_along(a: Any, axis: Any = -1, kind: Any = None) -> Any:
    if axis is None:
        return np.sort(np.ravel(a))
    return np.moveaxis(np.sort(np.moveaxis(a, axis, -1)), -1, axis)
