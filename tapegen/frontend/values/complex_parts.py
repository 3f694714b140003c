"""The real and imaginary parts of complex arrays where a program stores into them.

`z.real` is a view of `z` for NumPy.  The reverse sweep has no such view of a cotangent, whose imaginary part counts the
other way round, so in a program that stores through one (`Recursion.parts`) a part stands for itself until somebody
reads it: what is stored into it is stored into the complex array, and what is read is the part as it is then.
"""

from __future__ import annotations

import dataclasses
from typing import Any

import numpy as np

from tapegen.frontend.values.context import Again, Context
from tapegen.frontend.values.pytree import Leaf
from tapegen.ir import builders, intrinsics
from tapegen.ir.names import TEMPORARY
from tapegen.ir.nodes import Call, Load, Slice, Var
from tapegen.ir.types import Array

PARTS = {"real": intrinsics.real_part, "imag": intrinsics.imaginary_part}

VIEWS_OF_PARTS = frozenset(
    {intrinsics.transpose_view, np.transpose, np.reshape, np.swapaxes, np.moveaxis, np.expand_dims, np.squeeze, np.flip}
)
"""Views that are the same ones of a part and of the whole."""


def follow_parts(cx: Context) -> None:
    """Lower the program once more, with parts that can be stored into; where that has been done, do nothing."""
    if not cx.recursion.parts and not cx.rules:
        cx.recursion.parts = True
        raise Again


def is_part(value: Any) -> bool:
    """Whether a value is a part of a complex array that nobody has read yet."""
    return isinstance(value, Leaf) and isinstance(value.type, Array) and _is_part(value.expr)


def _is_part(expr: Any) -> bool:
    return isinstance(expr, Call) and expr.func in PARTS.values() and isinstance(expr.args[0], Var)


def part_of(cx: Context, func: Any, whole: Any) -> Leaf:
    """A part of a complex array, not read yet."""
    if cx.roots_of(whole) is None and whole not in cx.definitions:
        # another array may have that name when the part is read
        index = (Slice(None, None, None),) * whole.type.rank
        whole = cx.assign(TEMPORARY, Load(whole, index, dataclasses.replace(whole.type, layout="A")))
        cx.roots[whole] = None
    return Leaf(Call(func, (whole,), (), builders.real_part(whole).type))


def unread(cx: Context, value: Any) -> Any:
    """What a variable holds; a part of a complex array as that, to be stored into or read anew."""
    if cx.recursion.parts and isinstance(value, Leaf) and isinstance(value.expr, Var):
        made = cx.definitions.get(value.expr)
        if made is not None and isinstance(value.type, Array) and _is_part(made):
            return Leaf(made)
    return value
