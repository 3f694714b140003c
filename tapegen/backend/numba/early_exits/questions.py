"""Questions of compiled code, as functions that numba compiles: for memory, for interrupts, for segments of loops."""

# mypy: disable-error-code="no-untyped-call, untyped-decorator"

from __future__ import annotations

from typing import Any

from llvmlite import ir as llvm_ir
from llvmlite.ir import IRBuilder, Value
from numba.core import cgutils, types
from numba.core.callconv import RETCODE_EXC
from numba.core.extending import intrinsic
from numba.cpython.listobj import ListInstance
from numba.np.arrayobj import make_array

from tapegen.backend.numba import memory_limit
from tapegen.backend.numba.early_exits.interrupts import FIRST, POLL
from tapegen.backend.numba.list_operations import twice_the_bytes

_NUMBER, _FLAG = llvm_ir.IntType(64), llvm_ir.IntType(32)
_POINTER = llvm_ir.PointerType(_NUMBER)


def _count_of(builder: IRBuilder, iterator: Value) -> Value:
    """Where an iterator of a range has the number of its iterations."""
    return builder.extract_value(iterator, 3)


@intrinsic
def new_length(typing: Any) -> Any:
    """Where a loop has the length of its segments."""

    def emit(context: Any, builder: IRBuilder, sig: Any, args: Any) -> Value:
        with builder.goto_entry_block():
            place = builder.alloca(_NUMBER)
            builder.store(_NUMBER(FIRST), place)
        return builder.ptrtoint(place, _NUMBER)

    return types.intp(), emit


@intrinsic
def length_of(typing: Any, place: Any) -> Any:
    """The length of the next segment."""

    def emit(context: Any, builder: IRBuilder, sig: Any, args: Any) -> Value:
        return builder.load(builder.inttoptr(args[0], _POINTER), typ=_NUMBER)

    return types.intp(types.intp), emit


@intrinsic
def one_less(typing: Any, left: Any) -> Any:
    """The iterations that are left of a segment."""

    def emit(context: Any, builder: IRBuilder, sig: Any, args: Any) -> Value:
        return builder.sub(args[0], _NUMBER(1))

    return types.intp(types.intp), emit


@intrinsic
def take_all(typing: Any, iterator: Any) -> Any:
    """The iterations of a loop that begins, which are taken from it."""

    def emit(context: Any, builder: IRBuilder, sig: Any, args: Any) -> Value:
        place = _count_of(builder, args[0])
        count = builder.load(place)
        builder.store(count.type(0), place)
        return count if count.type == _NUMBER else builder.sext(count, _NUMBER)

    return types.intp(iterator), emit


@intrinsic
def give_segment(typing: Any, iterator: Any, left: Any, place: Any) -> Any:
    """Give a loop its next iterations; those that are left after them."""

    def emit(context: Any, builder: IRBuilder, sig: Any, args: Any) -> Value:
        length = builder.load(builder.inttoptr(args[2], _POINTER), typ=_NUMBER)
        given = builder.select(builder.icmp_signed("<", args[1], length), args[1], length)
        place = _count_of(builder, args[0])
        item = place.type.pointee
        builder.store(given if item == _NUMBER else builder.trunc(given, item), place)
        return builder.sub(args[1], given)

    return types.intp(iterator, types.intp, types.intp), emit


@intrinsic
def are_left(typing: Any, left: Any) -> Any:
    """Whether iterations are left, of which there are never less than none."""

    def emit(context: Any, builder: IRBuilder, sig: Any, args: Any) -> Value:
        return builder.icmp_signed("!=", args[0], _NUMBER(0))

    return types.boolean(types.intp), emit


@intrinsic
def is_interrupted(typing: Any, place: Any) -> Any:
    """Whether Ctrl-C was pressed; the length of segments changes."""

    def emit(context: Any, builder: IRBuilder, sig: Any, args: Any) -> Value:
        known = cgutils.get_or_insert_function(builder.module, llvm_ir.FunctionType(_FLAG, [_POINTER]), POLL)
        known.attributes.add("inaccessiblemem_or_argmemonly")  # loads from arrays move past it
        known.attributes.add("cold")
        found = builder.call(known, [builder.inttoptr(args[0], _POINTER)])
        return builder.icmp_unsigned("!=", found, _FLAG(0))

    return types.boolean(types.intp), emit


@intrinsic
def raise_what_the_handler_raised(typing: Any) -> Any:
    def emit(context: Any, builder: IRBuilder, sig: Any, args: Any) -> Value:
        with builder.if_then(cgutils.true_bit):
            context.call_conv._return_errcode_raw(builder, RETCODE_EXC)
        return context.get_dummy_value()

    return types.none(), emit


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
