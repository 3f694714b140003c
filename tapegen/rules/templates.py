"""Registry of decompositions: what compiled code has in place of calls that numba and loops do not support.

A template is plain Python, like the body of a rule, and calls only functions that compile.  It is inlined in compiled
code, where its value may differ in the last digit; Python itself keeps calling the function.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

from tapegen.ir.nodes import Call
from tapegen.rules.registry import load_awaited

Body = TypeVar("Body", bound=Callable[..., Any])
Chooser = Callable[[Call], Callable[..., Any] | None]

_CHOOSERS: dict[Any, Chooser] = {}


def template(*funcs: Any) -> Callable[[Body], Body]:
    """Decorator: register the template of all calls of some functions."""

    def register(body: Body) -> Body:
        _CHOOSERS.update(dict.fromkeys(funcs, lambda call: body))
        return body

    return register


def template_by_call(*funcs: Any) -> Callable[[Chooser], Chooser]:
    """Decorator: register the function that selects the template of a call; None where the call is supported itself."""

    def register(choose: Chooser) -> Chooser:
        _CHOOSERS.update(dict.fromkeys(funcs, choose))
        return choose

    return register


def chooser_of(func: Any) -> Chooser | None:
    """What selects the template of a call of a function; None where it has none."""
    found = _CHOOSERS.get(func)
    return _CHOOSERS.get(func) if found is None and load_awaited() else found
