"""Protocols by which lower layers recognize objects of higher ones: by attributes, never by class."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from types import FunctionType, MethodType
from typing import Any, Literal, Protocol, TypeVar

import numpy as np

from tapegen.ir.nodes import Function, Var

Func = TypeVar("Func", bound=Callable[..., Any])
Kind = Literal["grad", "value_and_grad", "vjp", "jvp", "jacobian", "linearize", "batch"]
Mode = Literal["forward", "reverse"]


class Pipeline(Protocol):
    """Derives programs: the interface that the frontend uses for derivatives taken inside a program."""

    def primal(self, function: Function, modules: Mapping[str, str]) -> FunctionType:
        """Python text of a function from the parameters to the results."""

    def reverse(
        self, function: Function, wrt: tuple[Var, ...], active: tuple[bool, ...], modules: Mapping[str, str]
    ) -> FunctionType:
        """Python text that takes the parameters and a seed per active result; gives the results, then gradients."""

    def forward(
        self, function: Function, wrt: tuple[Var, ...], active: tuple[bool, ...], modules: Mapping[str, str]
    ) -> FunctionType:
        """Python text that takes the parameters and their tangents; gives the results, then the active tangents."""

    def jacobian(
        self,
        function: Function,
        wrt: tuple[Var, ...],
        active: tuple[bool, ...],
        modules: Mapping[str, str],
        mode: Mode | None,
        *,
        holomorphic: bool,
        kept: Sequence[int] = (),
    ) -> FunctionType:
        """Python text that takes the parameters; gives the results at `kept`, then the derivatives.

        There is one for each active result by each one of `wrt`.
        """

    def batch(self, function: Function, axes: Sequence[int | None], modules: Mapping[str, str]) -> FunctionType:
        """Python text that takes the number of instances and the parameters; gives the results of all instances.

        `axes` are those of the instances, None for a parameter that all of them share.
        """


@dataclass(frozen=True, slots=True)
class Mark:
    """Mark of a function or method that makes the derivative of its first argument, or of its object.

    Attributes
    ----------
    kind : str
        Which derivative.
    pipeline : Pipeline
        Derives the program.
    """

    kind: Kind
    pipeline: Pipeline


def marks(kind: Kind, pipeline: Pipeline) -> Callable[[Func], Func]:
    """Mark a function or method as one that takes derivatives.

    A marked method belongs to an object with the attributes `python` (the function) and `options` (with `wrt` and
    `has_aux`); one that makes Jacobians also has a `mode` and says whether the function is `holomorphic`.

    Methods of the kind "batch" belong to an object with a method `of`: it accepts the name of the marked method, and
    returns an object with the attributes `python`, `axes` and `names` (see `frontend.calls.batches`).
    """

    def mark(func: Func) -> Func:
        func.__tapegen_derivative__ = Mark(kind, pipeline)  # type: ignore[attr-defined]
        return func

    return mark


def mark_of(func: object) -> Mark | None:
    """The mark of a function or bound method, if it has one."""
    target = func.__func__ if isinstance(func, MethodType) else func
    found = getattr(target, "__tapegen_derivative__", None) if isinstance(target, FunctionType) else None
    return found if isinstance(found, Mark) else None


def refuses(target: Any, reason: str, advice: str) -> None:
    """Mark a function, method or class that cannot be differentiated: the reason, and what to write instead."""
    target.__tapegen_refusal__ = reason, advice


def refusal_by(target: object) -> tuple[str, str] | None:
    """The refusal mark of a function or class, if it has one."""
    target = target.__func__ if isinstance(target, MethodType) else target
    found = getattr(target, "__tapegen_refusal__", None) if isinstance(target, (FunctionType, type)) else None
    return found if isinstance(found, tuple) else None


def is_opaque(value: object) -> bool:
    """Whether the compiler treats an object as a single value, although it has attributes."""
    return getattr(type(value), "__tapegen_opaque__", False) is True


Recorder = Callable[[Any, tuple[Any, ...], dict[str, Any]], Any]
"""Calls a function with taped arguments, and records the call as one tape entry."""

_CONTAINERS = (tuple, list, dict)
_PLAIN = frozenset({np.ndarray, float, int, bool, complex, type(None)})
"""Classes of values that are not taped and contain no taped values."""


def recorder_of(args: tuple[Any, ...], kwargs: Mapping[str, Any], within: tuple[int, ...] = ()) -> Recorder | None:
    """The `__tapegen_call__` of the first taped value among arguments, structures included.

    `within` holds the structures being searched, so that a structure that contains itself is searched once.
    """
    for value in (*args, *kwargs.values()) if kwargs else args:
        kind = type(value)
        if kind in _PLAIN:
            continue
        found = getattr(kind, "__tapegen_call__", None)
        if found is None and issubclass(kind, _CONTAINERS) and id(value) not in within:
            inside = (*within, id(value))
            found = recorder_of((), value, inside) if issubclass(kind, dict) else recorder_of(tuple(value), {}, inside)
        if found is not None:
            return found
    return None
