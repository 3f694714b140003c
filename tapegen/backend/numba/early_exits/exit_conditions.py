"""Conditions for early exits, as functions that numba compiles: no memory, and interrupts."""

# mypy: disable-error-code="no-untyped-call, untyped-decorator"

from __future__ import annotations

from typing import Any

from llvmlite import ir as llvm_ir
from llvmlite.ir import IRBuilder, Value
from numba.core import cgutils, types
from numba.core.extending import intrinsic
from numba.cpython.listobj import ListInstance
from numba.np.arrayobj import make_array

from tapegen.backend.numba import memory_limit
from tapegen.backend.numba.early_exits.interrupts import FIRST, POLL
from tapegen.backend.numba.list_operations import twice_the_bytes

_NUMBER = llvm_ir.IntType(64)


@intrinsic
def is_interrupted(typing: Any) -> Any:
    """Whether Ctrl-C was pressed; polled after as many iterations as the last poll said."""

    def emit(context: Any, builder: IRBuilder, sig: Any, args: Any) -> Value:
        poll = cgutils.get_or_insert_function(
            builder.module, llvm_ir.FunctionType(_NUMBER, [_NUMBER.as_pointer()]), POLL
        )
        poll.attributes.add("inaccessiblemem_or_argmemonly")  # loads from arrays move past it
        poll.attributes.add("cold")
        with builder.goto_entry_block():
            left, length = builder.alloca(_NUMBER, name="left"), builder.alloca(_NUMBER, name="length")
            for place in (left, length):
                builder.store(_NUMBER(FIRST), place)
        before = builder.block
        fewer = builder.sub(builder.load(left, typ=_NUMBER), _NUMBER(1))
        builder.store(fewer, left)
        with cgutils.if_unlikely(builder, builder.icmp_signed("==", fewer, _NUMBER(0))):
            next_length = builder.call(poll, [length])
            builder.store(next_length, left)
            found = builder.icmp_signed("==", next_length, _NUMBER(0))
            polled = builder.block
        answer = builder.phi(found.type)
        answer.add_incoming(cgutils.false_bit, before)
        answer.add_incoming(found, polled)
        return answer

    return types.boolean(), emit


@intrinsic
def is_tape_too_long(typing: Any, tape: Any) -> Any:
    """Whether there is no memory for a tape with twice the capacity."""
    if not isinstance(tape, types.Array):
        return None

    def emit(context: Any, builder: IRBuilder, sig: Any, args: Any) -> Value:
        full = make_array(tape)(context, builder, args[0])
        size = builder.mul(builder.mul(full.nitems, full.itemsize), _NUMBER(2))
        items = builder.extract_value(full.shape, 0)
        return builder.not_(memory_limit.has_room(builder, size, is_tape=True, items=items))

    return types.boolean(tape), emit


@intrinsic
def is_list_too_long(typing: Any, items: Any, item: Any) -> Any:
    """Whether there is no memory for one more array in a list."""

    def emit(context: Any, builder: IRBuilder, sig: Any, args: Any) -> Value:
        if not isinstance(items, types.List) or not isinstance(item, types.Array):
            return cgutils.false_bit
        size = twice_the_bytes(context, builder, item, args[1])  # as if it were a longer tape
        count = ListInstance(context, builder, items, args[0]).size
        return builder.not_(memory_limit.has_room(builder, size, is_tape=True, items=count))

    return types.boolean(items, item), emit
