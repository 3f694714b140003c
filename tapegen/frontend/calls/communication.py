"""Calls of mpi4py: each method is text that is inlined, each operation in it is linked to the one before.

The link is the *order*, the only element of an array that the program makes on entry.  The results of the program
depend on what it holds at the end, and it depends on the arguments: so the backward sweep has the adjoint of every
operation.
"""

from __future__ import annotations

import inspect
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from types import FunctionType
from typing import Any

import numpy as np

from tapegen.errors import NotDifferentiable, Span, TapegenError
from tapegen.frontend.calls.handlers import PASSED_ON, handles
from tapegen.frontend.templates import mpi_methods
from tapegen.frontend.values.context import Context
from tapegen.frontend.values.materialize import describe, expr_of, struct_of
from tapegen.frontend.values.pytree import UNKNOWN, Leaf, StaticValue, Struct, tuple_of
from tapegen.frontend.values.state import known_value
from tapegen.ir import traversal
from tapegen.ir.intrinsics import is_acting
from tapegen.ir.nodes import Assign, Block, Call, Const, Load, Store, Var
from tapegen.ir.types import FLOAT, INT, Array, Scalar, TupleOf, is_floating
from tapegen.rules.mpi.order import begun, ended, finished

_ORDER = Array("float64", 1, "C")
_FIRST = (Const(0),)


@dataclass(slots=True)
class Communication:
    """What one program says to other ranks.

    Attributes
    ----------
    order : Var or None
        The array that links its operations; None before the first one.
    sites : dict
        Numbers of the places where messages are started.
    open : dict
        Those of them that are not waited for, by number.
    unclear : bool
        Whether some request that is waited for was made at one of several places: only the run can tell.
    """

    order: Var | None = None
    sites: dict[Span | None, int] = field(default_factory=dict)
    open: dict[int, Span | None] = field(default_factory=dict)
    unclear: bool = False


def of_mpi(func: Any) -> bool:
    """Whether this is a function or method of mpi4py."""
    return _owner(func) is not None


def _owner(func: Any) -> Any:
    """The communicator of a method, or the class of requests."""
    mpi = sys.modules.get("mpi4py.MPI")
    if mpi is None:
        return None
    owner = getattr(func, "__self__", None)
    if isinstance(owner, mpi.Comm) or owner is mpi.Request:
        return owner
    return None


def call_of_mpi(cx: Context, func: Any, args: Sequence[Any], kwargs: Mapping[str, Any]) -> Any:
    """The value of a call of a method of mpi4py."""
    owner, name = _owner(func), func.__name__
    if isinstance(owner, type):
        if name not in ("Waitall", "waitall"):
            raise cx.refusal(
                NotDifferentiable, f"'Request.{name}' has no adjoint.", "Call Wait of each request, or Request.Waitall."
            )
        return cx.call(cx, StaticValue(mpi_methods.wait_all), args, kwargs)
    text = mpi_methods.METHODS.get(name)
    if text is None:
        raise cx.refusal(
            NotDifferentiable,
            f"'{name}' of a communicator has no adjoint.",
            f"Those of {', '.join(mpi_methods.METHODS)} are followed; call others outside of the function.",
        )
    assert isinstance(text, FunctionType)
    first = [StaticValue(owner.py2f()), StaticValue(owner.Get_rank()), StaticValue(owner.Get_size())]
    given = inspect.signature(func).bind(*args, **kwargs).arguments
    given = {key: _argument(cx, name, key, value) for key, value in given.items()}
    if given.pop("status", None) not in (None, StaticValue(None)):
        raise cx.refusal(
            NotDifferentiable,
            f"the status that '{name}' fills is not followed.",
            "Leave it out: the derivative records source and tag of each message by itself.",
        )
    return cx.call(cx, StaticValue(text), first, given)


_OPERATIONS = ("SUM", "MAX", "MIN")


def _argument(cx: Context, method: str, name: str, value: Any) -> Any:
    """An argument as the text of a method takes it: arrays for buffers, names for operations."""
    mpi = sys.modules["mpi4py.MPI"]
    if name == "op":
        known = known_value(value)
        found = next((op for op in _OPERATIONS if known is getattr(mpi, op) or known == getattr(mpi, op)), None)
        if found is None:
            raise cx.refusal(
                NotDifferentiable,
                f"this operation of '{method}' has no adjoint.",
                "Those of MPI.SUM, MPI.MAX and MPI.MIN are followed; Allgather gives what others need.",
            )
        return StaticValue(found)
    if name not in ("buf", "sendbuf", "recvbuf"):
        return value
    if isinstance(value, StaticValue):
        if value.value is None:
            return value
        if value.value == mpi.IN_PLACE:
            return StaticValue("IN_PLACE")
    content = struct_of(cx, value)
    if content is not None and content.kind in ("tuple", "list") and len(content.children) == 2:
        array, datatype = content.children
        dtype = getattr(getattr(array, "type", None), "dtype", None)
        known = known_value(datatype)
        if (
            dtype is not None
            and isinstance(known, mpi.Datatype)
            and known == mpi.Datatype.fromcode(np.dtype(dtype).char)
        ):
            value = array
    if isinstance(value, Leaf) and isinstance(value.type, Array):
        return value
    if isinstance(value, Leaf) or content is None:
        shown = describe(cx, value)
    else:
        shown = "a buffer with a count or a datatype of its own"
    raise cx.refusal(
        NotDifferentiable,
        f"{shown} is passed to '{method}'.",
        "Pass an array: a slice for a part, a copy for a stride.",
    )


# ---- order -----------------------------------------------------------------------------------------------------------


def refuse_communication(cx: Context, body: Block) -> None:
    """Refuse a part of a program that is derived by itself, if it communicates: ranks may derive different ones."""
    headers = (header for stmt in traversal.statements(body) for header in stmt.headers)
    if any(is_acting(func) for header in headers for func in traversal.callees(header)):
        raise _apart(cx)


def _apart(cx: Context) -> TapegenError:
    return cx.refusal(
        NotDifferentiable,
        "this function communicates with other ranks, and is differentiated inside of another function, called for "
        "each instance of a batch, or recursive.",
        "Take first derivatives of it (grad, value_and_grad, vjp, jvp) outside of other functions.",
    )


def _communication(cx: Context) -> Communication:
    if cx.communication is None:
        raise _apart(cx)
    found: Communication = cx.communication
    if found.order is None:
        found.order = cx.new_var("order", _ORDER)
    return found


@handles(mpi_methods.ordered, takes=PASSED_ON)
def _ordered(cx: Context, args: list[Any], kwargs: dict[str, Any], hint: str | None) -> Any:
    """`templates.mpi_methods.ordered`."""
    operation, *operands = args
    communication = _communication(cx)
    array = communication.order
    assert array is not None
    before = cx.assign("order", Load(array, _FIRST, Scalar("float64", False)))
    results = list(cx.call(cx, operation, [Leaf(before), *operands], {}).children)
    place = 1 if isinstance(results[0].type, Array) else 0
    cx.store(array, _FIRST, expr_of(cx, results.pop(place)))
    return results[0] if len(results) == 1 else tuple_of(results)


@handles(mpi_methods.new_site, takes="")
def _new_site(cx: Context, args: list[Any], kwargs: dict[str, Any], hint: str | None) -> Any:
    found = _communication(cx)
    number = found.sites.setdefault(cx.origin, len(found.sites))  # the same in every pass over a loop
    if not found.unclear:
        found.open[number] = cx.origin
    return StaticValue(number)


@handles(mpi_methods.is_waited_for, takes="site")
def _is_waited_for(cx: Context, args: list[Any], kwargs: dict[str, Any], hint: str | None) -> Any:
    found, number = _communication(cx), known_value(args[0])
    if number is UNKNOWN:
        found.open, found.unclear = {}, True
    found.open.pop(number, None)
    return StaticValue(None)


def close(cx: Context, result: Any, params: Sequence[Var]) -> Any:
    """Begin and end the program: its result, which depends on all that it communicates.

    Raises
    ------
    NotDifferentiable
        A message is started and nowhere waited for.
    """
    found: Communication | None = cx.communication
    if found is None or found.order is None:
        return result
    for span in found.open.values():
        raise NotDifferentiable(
            "this starts a message, and no Wait of its request follows.", "Call Wait of each request.", span
        )
    array, number = found.order, Scalar("float64", False)
    start: list[Any] = [Assign((array,), Call(np.zeros, (Const(1),), (), array.type))]
    for param in params:
        if is_floating(param.type) and isinstance(param.type, Array | Scalar):
            before, after = cx.new_var("order", number), cx.new_var("order", FLOAT)
            start += [
                Assign((before,), Load(array, _FIRST, number)),
                Assign((after,), Call(begun, (before, param), (), FLOAT)),
                Store(array, _FIRST, after),
            ]
    cx.builder.items[:0] = start
    last = cx.assign("order", Load(array, _FIRST, number))
    end, count = cx.new_var("order", FLOAT), cx.new_var("count", INT)
    cx.emit(Assign((end, count), Call(finished, (last,), (), TupleOf((FLOAT, INT)))))
    if isinstance(result, StaticValue) and type(result.value) is int:
        result = StaticValue(float(result.value))  # a rank that returns a constant has a gradient all the same
    return _ended(cx, result, end)


def _ended(cx: Context, value: Any, order: Var) -> Any:
    """A result, as if it depended on the order."""
    if isinstance(value, Struct):
        children = tuple([_ended(cx, child, order) for child in value.children])
        return Struct(value.kind, value.keys, children, value.cls)
    if isinstance(value, StaticValue) and type(value.value) is float:
        value = Leaf(Const(value.value))
    if not isinstance(value, Leaf) or not is_floating(value.type) or not isinstance(value.type, Array | Scalar):
        return value
    type_ = value.type
    made = Array(type_.dtype, type_.rank, "C") if isinstance(type_, Array) else type_
    return Leaf(cx.assign("result", Call(ended, (cx.atom(value.expr), order), (), made)))


__all__ = ["Communication", "call_of_mpi", "close", "of_mpi", "refuse_communication"]
