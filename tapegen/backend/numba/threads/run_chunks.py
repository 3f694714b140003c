"""The call of a function for each chunk of a loop: what `intrinsics.run_chunks` compiles to.

Arguments are handed over in a structure on the caller's stack.  A chunk that raises notes its error there; chunks that
come after it need not run, those before it do, and the caller raises the error of the first chunk that has one, as a
loop in order would.
"""

# mypy: disable-error-code="no-untyped-call, untyped-decorator"

from __future__ import annotations

import functools
from collections.abc import Sequence
from typing import Any

from llvmlite import ir
from numba import types
from numba.core import cgutils
from numba.core.callconv import RETCODE_EXC
from numba.core.typing.templates import AbstractTemplate, infer_global, signature
from numba.extending import lower_builtin

from tapegen.backend.numba import memory_limit
from tapegen.backend.numba.threads import pool
from tapegen.ir import intrinsics

_NUMBER, _CODE, _POINTER = ir.IntType(64), ir.IntType(32), cgutils.voidptr_t
_MOST = intrinsics.MOST_CHUNKS
_FAILED, _CODES, _ERRORS, _ARGUMENTS, _CALL = range(5)
"""The fields of the structure: the first chunk that failed, what chunks returned, their errors, arguments, the call."""


@functools.cache
def provide() -> None:
    """Let numba compile `intrinsics.run_chunks`, and start the threads."""
    pool.provide()
    infer_global(intrinsics.run_chunks)(_RunChunks)
    lower_builtin(intrinsics.run_chunks, types.Dispatcher, types.VarArg(types.Any))(_lower)


class _RunChunks(AbstractTemplate):
    def generic(self, args: Any, kws: Any) -> Any:
        function, *given = args
        found = function.get_call_type(self.context, (types.int64, *map(types.unliteral, given)), {})
        return signature(types.none, function, *found.args[1:])


def _without_owner(builder: ir.IRBuilder, kind: Any, value: ir.Value) -> ir.Value:
    """An array that the caller holds for the chunks: they need not count references to it, one thread against another.

    numba counts in the owner of an array whenever it takes a row of it, with an atomic addition.
    """
    if not isinstance(kind, types.Array):
        return value
    for k in range(2):  # its owner and its Python object
        value = builder.insert_value(value, ir.Constant(value.type.elements[k], None), k)
    return value


def _lower(context: Any, builder: ir.IRBuilder, typed: Any, args: Sequence[Any]) -> Any:
    function, *kinds = typed.args
    compiled = function.dispatcher.overloads[types.int64, *kinds]
    context.add_linking_libs([compiled.library])
    call = signature(types.none, types.int64, *kinds)
    has_tapes = any(isinstance(kind, types.List) for kind in kinds)
    values = list(args[1:])
    if not has_tapes:  # nothing keeps a view of an array for longer
        values = [_without_owner(builder, kind, value) for kind, value in zip(kinds, values, strict=True)]
    frame_type = ir.LiteralStructType(
        [
            _NUMBER,
            ir.ArrayType(_CODE, _MOST),
            ir.ArrayType(_POINTER, _MOST),
            ir.LiteralStructType([value.type for value in values]),
            ir.PointerType(_NUMBER),
        ]
    )

    def field(builder: ir.IRBuilder, frame: ir.Value, *path: Any) -> ir.Value:
        steps = [step if isinstance(step, ir.Value) else _CODE(step) for step in path]
        return builder.gep(frame, [_CODE(0), *steps], inbounds=True)

    name = builder.module.get_unique_name(f"{builder.function.name}.chunk")
    run = ir.Function(builder.module, ir.FunctionType(ir.VoidType(), [_POINTER, _NUMBER]), name)
    run.linkage = "internal"
    inner = ir.IRBuilder(run.append_basic_block())
    frame, chunk = run.args[0], run.args[1]
    frame = inner.bitcast(frame, frame_type.as_pointer())
    failed = field(inner, frame, _FAILED)
    with inner.if_then(inner.icmp_signed("<", inner.load_atomic(failed, "monotonic", 8), chunk)):
        inner.ret_void()
    memory_limit.join_call(inner, inner.load(field(inner, frame, _CALL)))
    given = [inner.load(field(inner, frame, _ARGUMENTS, k)) for k in range(len(values))]
    status, _ = context.call_internal_no_propagate(inner, compiled.fndesc, call, [chunk, *given])
    with cgutils.if_unlikely(inner, status.is_error):
        inner.store(status.code, field(inner, frame, _CODES, chunk))
        inner.store(inner.bitcast(status.excinfoptr, _POINTER), field(inner, frame, _ERRORS, chunk))
        inner.atomic_rmw("min", failed, chunk, "seq_cst")
    inner.ret_void()

    place = cgutils.alloca_once(builder, frame_type)
    count = values[0]
    builder.store(count, field(builder, place, _FAILED))
    account = memory_limit.account_of_call(builder)
    interrupted = memory_limit.field(builder, account, memory_limit.INTERRUPTED)
    builder.store(_NUMBER(0), interrupted)
    builder.store(account, field(builder, place, _CALL))
    for k, value in enumerate(values):
        builder.store(value, field(builder, place, _ARGUMENTS, k))
    known = cgutils.get_or_insert_function(
        builder.module, ir.FunctionType(ir.VoidType(), [_POINTER, _POINTER, _NUMBER]), pool.RUN
    )
    context_of_run = builder.bitcast(place, _POINTER)
    is_one = builder.icmp_signed("==", count, _NUMBER(1))
    if has_tapes:
        memory_limit.divide_tapes(builder, 1)
    with builder.if_else(is_one) as (alone, together):
        with alone:
            builder.call(run, [context_of_run, _NUMBER(0)])
        with together:
            builder.call(known, [builder.bitcast(run, _POINTER), context_of_run, count])
    if has_tapes:
        memory_limit.divide_tapes(builder, -1)
    first = builder.load(field(builder, place, _FAILED))
    with cgutils.if_unlikely(builder, builder.icmp_signed("<", first, count)):
        code = builder.load(field(builder, place, _CODES, first))
        error = builder.load(field(builder, place, _ERRORS, first))
        found = context.call_conv._get_return_status(builder, code, builder.bitcast(error, status.excinfoptr.type))
        context.call_conv.return_status_propagate(builder, found)
    is_interrupted = builder.icmp_signed("!=", builder.load(interrupted), _NUMBER(0))
    with cgutils.if_unlikely(builder, is_interrupted):  # while it waited, and all chunks have ended
        context.call_conv._return_errcode_raw(builder, RETCODE_EXC)
    return context.get_dummy_value()
