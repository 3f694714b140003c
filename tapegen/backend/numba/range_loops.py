"""Range loop lowering: loops over `range(n)` in few instructions.

numba takes a hundred to begin such a loop and to advance to its next iteration: a division for the trip count,
and results that are passed through memory.  Generated source has such a loop for every array statement.
"""

# mypy: disable-error-code="no-untyped-call"

from __future__ import annotations

from typing import Any

from llvmlite.ir import Constant, IRBuilder, Undefined, Value
from numba.core import cgutils, ir, types
from numba.core.ir_utils import get_definition, guard


def is_count(func_ir: Any, var: Any) -> bool:
    """Whether a variable holds `range(n)`."""
    made = guard(get_definition, func_ir, var)
    if not isinstance(made, ir.Expr) or made.op != "call" or len(made.args) != 1 or made.vararg is not None:
        return False
    func = guard(get_definition, func_ir, made.func)
    return isinstance(func, ir.Global) and func.value is range


def is_counter(func_ir: Any, var: Any) -> bool:
    """Whether a variable holds the iterator of `range(n)`."""
    made = guard(get_definition, func_ir, var)
    return isinstance(made, ir.Expr) and made.op == "getiter" and is_count(func_ir, made.value)


def counter(context: Any, builder: IRBuilder, counts: Value) -> Value:
    """The iterator of `range(n)` of 64-bit integers."""
    type_ = context.get_value_type(types.range_iter64_type)
    stop = builder.extract_value(counts, 1)
    place = cgutils.alloca_once(builder, stop.type)
    left = cgutils.alloca_once(builder, stop.type)
    none = Constant(stop.type, 0)
    builder.store(none, place)
    builder.store(builder.select(builder.icmp_signed(">", stop, none), stop, none), left)
    return _packed(builder, type_, (place, stop, Constant(stop.type, 1), left))


def counted(context: Any, builder: IRBuilder, iterator: Value) -> Value:
    """The next integer of such an iterator, and whether there is one."""
    place, left = builder.extract_value(iterator, 0), builder.extract_value(iterator, 3)
    count, value = builder.load(left), builder.load(place)
    one = Constant(count.type, 1)
    found = builder.icmp_signed(">", count, Constant(count.type, 0))
    with builder.if_then(found):
        builder.store(builder.sub(count, one, flags=["nsw"]), left)
        builder.store(builder.add(value, one), place)
    return _packed(builder, context.get_value_type(types.Pair(types.int64, types.boolean)), (value, found))


def _packed(builder: IRBuilder, type_: Any, fields: tuple[Value, ...]) -> Value:
    made: Value = Constant(type_, Undefined)
    for k, field in enumerate(fields):
        made = builder.insert_value(made, field, k)
    return made
