"""New arrays in compiled code, written in place of each `np.empty` and `np.zeros`.

numba compiles a function of its own for every kind of argument of these two, and three more for zeros.  Generated text
makes many arrays of many kinds, and that took a tenth of the time of its compilation.
"""

# mypy: disable-error-code="no-untyped-call"

from __future__ import annotations

from typing import Any

import numpy as np
from llvmlite.ir import IRBuilder, Value
from numba.core import cgutils, ir, types
from numba.core.compiler_machinery import FunctionPass, register_pass
from numba.core.extending import intrinsic
from numba.core.ir_utils import build_definitions, get_definition, guard
from numba.core.typing.npydecl import parse_dtype, parse_shape
from numba.core.typing.templates import Signature
from numba.np.arrayobj import _empty_nd_impl, _parse_empty_args

from tapegen.backend import algebra


def _typed(shape: Any, dtype: Any, given: tuple[Any, ...], make: Any) -> Any:
    """The types of a call, and how it is written out; None if it has none, as of NumPy's own function."""
    item, rank = types.float64 if dtype is None else parse_dtype(dtype), parse_shape(shape)
    return None if item is None or rank is None else (types.Array(item, rank, "C")(*given), make)


def _made(context: Any, builder: IRBuilder, sig: Signature, args: Any) -> Any:
    return _empty_nd_impl(context, builder, *_parse_empty_args(context, builder, sig, args))


def _empty(context: Any, builder: IRBuilder, sig: Signature, args: Any) -> Value:
    return _made(context, builder, sig, args)._getvalue()


def _zeros(context: Any, builder: IRBuilder, sig: Signature, args: Any) -> Value:
    array = _made(context, builder, sig, args)
    cgutils.memset(builder, array.data, builder.mul(array.itemsize, array.nitems), 0)
    return array._getvalue()


@intrinsic
def _empty_floats(typing: Any, shape: Any) -> Any:
    return _typed(shape, None, (shape,), _empty)


@intrinsic
def _empty_of(typing: Any, shape: Any, dtype: Any) -> Any:
    return _typed(shape, dtype, (shape, dtype), _empty)


@intrinsic
def _zero_floats(typing: Any, shape: Any) -> Any:
    return _typed(shape, None, (shape,), _zeros)


@intrinsic
def _zeros_of(typing: Any, shape: Any, dtype: Any) -> Any:
    return _typed(shape, dtype, (shape, dtype), _zeros)


_WRITTEN: dict[tuple[str, int], Any] = {
    ("empty", 1): _empty_floats,
    ("empty", 2): _empty_of,
    ("zeros", 1): _zero_floats,
    ("zeros", 2): _zeros_of,
    ("dot", 2): algebra.product,
    ("linalg.solve", 2): algebra.solve,
}
"""By the name in NumPy and the number of arguments."""


def _name_in_numpy(func_ir: Any, var: Any) -> str:
    """How NumPy calls what a variable holds."""
    definition = guard(get_definition, func_ir, var)
    if isinstance(definition, ir.Expr) and definition.op == "getattr":
        owner = guard(get_definition, func_ir, definition.value)
        if isinstance(owner, ir.Global) and owner.value is np:
            return definition.attr
        return f"{_name_in_numpy(func_ir, definition.value)}.{definition.attr}"
    return ""


@register_pass(mutates_CFG=False, analysis_only=False)
class NewArrays(FunctionPass):
    """Calls of `np.empty`, `np.zeros` and a few others become those of functions of our own."""

    _name = "new_arrays"

    def __init__(self) -> None:
        super().__init__()

    def run_pass(self, state: Any) -> bool:
        """Whether there are any."""
        found = False
        for block in state.func_ir.blocks.values():
            for call in block.find_exprs(op="call"):
                if call.kws or call.vararg is not None:
                    continue
                written = _WRITTEN.get((_name_in_numpy(state.func_ir, call.func), len(call.args)))
                found |= self._replaced(block, call, written)
        if found:
            state.func_ir._definitions = build_definitions(state.func_ir.blocks)
        return found

    def _replaced(self, block: Any, call: Any, written: Any) -> bool:
        if written is None:
            return False
        for stmt in block.body:
            if isinstance(stmt, ir.Assign) and stmt.target == call.func:
                stmt.value = ir.Global(written.__name__, written, stmt.loc)
                return True
        return False
