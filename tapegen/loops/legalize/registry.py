"""Registry of lowerings by function.  The other modules of this package fill these tables when they are imported."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Protocol, TypeVar

import numpy as np

from tapegen.ir.nodes import Call, Const, Expr, Var
from tapegen.loops.legalize.builder import ElementRule, LoopBuilder

SCALAR: dict[Any, Callable[[LoopBuilder, Call], Expr]] = {}
"""Functions of arrays that return a scalar."""

LAZY: dict[Any, Callable[[LoopBuilder, Call], ElementRule]] = {}
"""Functions whose result is a rule for elements: permutations of an array, constant arrays, ..."""

FILL: dict[Any, Callable[[LoopBuilder, Call, Var], None]] = {}
"""Functions whose result is assigned to a new array, by loops or by a call that numba supports."""

SEVERAL: dict[Any, Callable[[LoopBuilder, Call], tuple[Expr, ...]]] = {}
"""Functions that return several arrays: an expression for each."""

REWRITE: dict[Any, Callable[[LoopBuilder, Call], Expr]] = {}
"""Functions that are decomposed into other functions."""

Handler = TypeVar("Handler", bound=Callable[..., Any])


class _Register(Protocol):
    def __call__(self, handler: Handler) -> Handler: ...


def handles(table: dict[Any, Any], *funcs: Any) -> _Register:
    """Decorator: register a handler for some functions in a table."""

    def register(handler: Handler) -> Handler:
        table.update(dict.fromkeys(funcs, handler))
        return handler

    return register


_FLATTENS = frozenset({np.concatenate, np.sort, np.argsort, np.take_along_axis})


def arguments(w: LoopBuilder, call: Call, *names: str) -> list[Any]:
    """The arguments of a call by position or keyword; None where an argument is missing.

    A None in the call means the same, except for an axis with another default (`_FLATTENS`): that stays `Const(None)`.
    """
    given = dict(zip(names, call.args)) | dict(call.kwargs)
    unknown = given.keys() - set(names)
    if unknown or len(call.args) > len(names):
        what = ", ".join(f"{name}=" for name in sorted(unknown)) or f"{len(call.args)} arguments"
        raise w.unsupported(call.func, f"with {what}")
    absent = (None,) if call.func in _FLATTENS else (None, Const(None))
    return [None if given.get(name) in absent else given[name] for name in names]
