"""Bailouts: a branch that only Python can execute raises in compiled code, and Python runs the call instead.

Legal where there is Python to run instead, and the program prints nothing else: that would be printed twice.  Without
bailouts one message in a branch that is never taken, of a kind that compiled code cannot hand over
(`loops.library.messages`), would keep the whole program uncompiled.

Before::

    def f(x: "f8[:]"):
        if x[0] > 5.0:
            warnings.warn("large", source=None)
        return x[0]

After::

    def f(x):
        if x[0] > 5.0:
            raise NotImplementedError("warnings.warn has no compiled form here")
        return x[0]
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from tapegen.ir import intrinsics, traversal
from tapegen.ir.nodes import Assign, Block, Const, Effect, For, Function, If, Raise, Stmt, While
from tapegen.ir.printer import callable_text
from tapegen.ir.types import STATIC
from tapegen.loops.library.messages import is_told

GIVES_UP = " has no compiled form here"
"""The end of the message of the `NotImplementedError`."""


def insert_bailouts(function: Function, *, bailouts: bool) -> Function:
    """The program with an error in place of such messages, if it prints nothing else.

    Parameters
    ----------
    function : Function
        A finished function.
    bailouts : bool
        Whether there is Python to run instead.
    """
    if not bailouts:
        return function
    called = frozenset[Any]().union(*map(traversal.calls, function.body))
    if not any(map(intrinsics.tells, called)):
        return function
    body = _block(function.body, inside=False)
    if any(isinstance(stmt, Effect) and intrinsics.tells(stmt.call.func) for stmt in traversal.statements(body)):
        return function  # Python would print it again
    return traversal.with_body(function, body)


def _block(block: Block, *, inside: bool) -> Block:
    out: list[Stmt] = []
    for stmt in block:
        match stmt:
            case If(_, body, orelse):
                out.append(replace(stmt, body=_block(body, inside=True), orelse=_block(orelse, inside=True)))
            case For(body=body) | While(body=body):
                out.append(replace(stmt, body=_block(body, inside=inside)))
            case Effect(call) if inside and intrinsics.tells(call.func) and not is_told(call):
                message = Const(f"{callable_text(call.func)}{GIVES_UP}")
                texts = [stmt for stmt in out if isinstance(stmt, Assign) and stmt.value.type == STATIC]
                remaining = [stmt for stmt in out if stmt not in texts]
                return (*remaining, Raise(NotImplementedError, (message,), stmt.origin))
            case _:
                out.append(stmt)
    return tuple(out)
