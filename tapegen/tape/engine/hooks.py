"""Hooks: callbacks of tensors to modules that are built on tensors; `tapegen.tape.tensors` sets them.

A tensor is indexed, passed to NumPy's functions and stacked by functions that create tensors.  They are reached through
these hooks, so that the modules import each other in one direction only.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any


def _unset(*_: Any) -> Any:
    raise AssertionError("tapegen.tape.tensors sets the hooks")


@dataclass(slots=True)
class Hooks:
    """Functions that `tapegen.tape.tensors.tensor` calls.

    Attributes
    ----------
    getitem : callable
        An element or a part of a tensor: `getitem(x, index)`.
    ufunc, function : callable
        Calls that NumPy's protocols pass on: `ufunc(func, method, inputs, kwargs)`, `function(func, args, kwargs)`.
    stack : callable
        Nested lists of tensors as one tensor.
    call_compiled : callable
        A differentiable function called with tensors: `call_compiled(function, args, kwargs)`.
    """

    getitem: Callable[[Any, Any], Any] = _unset
    ufunc: Callable[[Any, str, tuple[Any, ...], dict[str, Any]], Any] = _unset
    function: Callable[[Any, tuple[Any, ...], dict[str, Any]], Any] = _unset
    stack: Callable[[Any], Any] = _unset
    call_compiled: Callable[[Any, tuple[Any, ...], dict[str, Any]], Any] = _unset


HOOKS = Hooks()
