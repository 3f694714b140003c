"""Real and imaginary parts of complex arrays, in programs that store into them.

In NumPy, `z.real` is a view of `z`.  The reverse sweep has no such view of a cotangent, whose imaginary part has the
opposite sign, so in a program that stores through one (`Recursion.parts`) a part is lazy until it is read: a store into
it becomes a store into the complex array, and a read evaluates the part at that time.
"""

from __future__ import annotations

import dataclasses
from typing import Any

import numpy as np

from tapegen.frontend.values.context import Context, Restart
from tapegen.frontend.values.pytree import Leaf
from tapegen.ir import builders, intrinsics
from tapegen.ir.names import TEMPORARY
from tapegen.ir.nodes import Call, Load, Slice, Var
from tapegen.ir.types import Array

PARTS = {"real": intrinsics.real_part, "imag": intrinsics.imaginary_part}

VIEWS_OF_PARTS = frozenset(
    {intrinsics.transpose_view, np.transpose, np.reshape, np.swapaxes, np.moveaxis, np.expand_dims, np.squeeze, np.flip}
)
"""View functions that commute with taking a part."""


def follow_parts(cx: Context) -> None:
    """Restart lowering with lazy parts that can be stored into, unless that has been done."""
    if not cx.recursion.parts and not cx.rules:
        cx.recursion.parts = True
        raise Restart


def is_part(value: Any) -> bool:
    """Whether a value is a lazy part of a complex array."""
    return isinstance(value, Leaf) and isinstance(value.type, Array) and _is_part(value.expr)


def _is_part(expr: Any) -> bool:
    return isinstance(expr, Call) and expr.func in PARTS.values() and isinstance(expr.args[0], Var)


def part_of(cx: Context, func: Any, whole: Any) -> Leaf:
    """A lazy part of a complex array."""
    if cx.symbols.roots_of(whole) is None and whole not in cx.symbols.definitions:
        # the variable may denote another array when the part is read
        index = (Slice(None, None, None),) * whole.type.rank
        whole = cx.assign(TEMPORARY, Load(whole, index, dataclasses.replace(whole.type, layout="A")))
        cx.symbols.roots[whole] = None
    return Leaf(Call(func, (whole,), (), builders.real_part(whole).type))


def unread(cx: Context, value: Any) -> Any:
    """The value of a variable; a part of a complex array stays lazy, so that it can be stored into or read again."""
    if cx.recursion.parts and isinstance(value, Leaf) and isinstance(value.expr, Var):
        made = cx.symbols.definitions.get(value.expr)
        if made is not None and isinstance(value.type, Array) and _is_part(made):
            return Leaf(made)
    return value
