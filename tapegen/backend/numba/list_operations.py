"""Outlined list operations: list methods of compiled code as functions that are called.

numba inlines each `append` and `pop`, with code that allocates and frees memory: two hundred
instructions.  Recorded arrays go into lists and are read again in dozens of places, and the optimizer spent up to a
third of its time on these.  Here each of the two, and a new list, is one function for each type of list.  Scalars are
appended as in numba, which is faster than a call.
"""

# mypy: disable-error-code="no-untyped-call"

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from llvmlite.ir import Constant, Function, IRBuilder, Value
from numba.core import cgutils, types
from numba.core.typing.templates import signature
from numba.cpython.listobj import ListInstance

from tapegen.backend.numba import memory_limit

Body = Callable[[Any, IRBuilder, Any, Sequence[Value]], Value]


def _new_list(context: Any, builder: IRBuilder, sig: Any, args: Sequence[Value]) -> Value:
    made = ListInstance.allocate(context, builder, sig.return_type, args[0])
    made.size = args[0]
    return made.value


def _list_append(context: Any, builder: IRBuilder, sig: Any, args: Sequence[Value]) -> Value:
    items = ListInstance(context, builder, sig.args[0], args[0])
    size = items.size
    items.resize(builder.add(size, Constant(size.type, 1)))
    items.inititem(size, args[1], incref=False)
    return context.get_dummy_value()


def twice_the_bytes(context: Any, builder: IRBuilder, type_: Any, item: Value) -> Value:
    """Twice the bytes of an array in a list."""
    array = context.make_array(type_)(context, builder, item)
    size = builder.mul(array.itemsize, array.nitems)
    return builder.mul(builder.add(size, size.type(memory_limit.AROUND)), size.type(2))


def _list_pop(context: Any, builder: IRBuilder, sig: Any, args: Sequence[Value]) -> Value:
    items = ListInstance(context, builder, sig.args[0], args[0])
    size = items.size
    last = builder.sub(size, Constant(size.type, 1))
    item = items.getitem(last)
    items.zfill(last, size)  # from now on the result owns the reference
    items.resize(last)
    if isinstance(sig.return_type, types.Array):  # it counts no longer
        twice = twice_the_bytes(context, builder, sig.return_type, item)
        memory_limit.has_room(builder, builder.neg(twice), is_tape=True)
    return item


_ERRORS: dict[Body, str] = {  # of memory, the only errors, which get the line of the caller
    _new_list: "cannot allocate list",
    _list_append: memory_limit.LIST_FULL,
    _list_pop: "cannot resize list",
}


def new_list(context: Any, builder: IRBuilder, type_: Any, items: Sequence[Value]) -> Value:
    """A list of given items."""
    size = Constant(context.get_value_type(types.intp), len(items))
    made = called(_new_list, context, builder, signature(type_, types.intp), (size,))
    instance = ListInstance(context, builder, type_, made)
    for k, item in enumerate(items):
        instance.inititem(Constant(size.type, k), item)
    return made


def list_method(context: Any, func: Any, sig: Any) -> Body | None:
    """The function for a method of a list; None for what numba inlines."""
    key = getattr(func, "typing_key", None)
    if key not in ("list.append", "list.pop") or not isinstance(sig.args[0], types.List):
        return None
    if not context.data_model_manager[sig.args[0].dtype].contains_nrt_meminfo():
        return None
    if key == "list.append":
        return _appended
    return _popped if len(sig.args) == 1 else None


def _appended(context: Any, builder: IRBuilder, sig: Any, args: Sequence[Value]) -> Value:
    context.nrt.incref(builder, sig.args[1], args[1])
    return called(_list_append, context, builder, sig, args)


def _popped(context: Any, builder: IRBuilder, sig: Any, args: Sequence[Value]) -> Value:
    items = ListInstance(context, builder, sig.args[0], args[0])
    cgutils.guard_zero(context, builder, items.size, (IndexError, "pop from empty list"))
    return called(_list_pop, context, builder, sig, args)


def called(body: Body, context: Any, builder: IRBuilder, sig: Any, args: Sequence[Value]) -> Value:
    """Call a function; its first call adds it to the module."""
    name = f"{body.__name__} {sig}"
    made = builder.module.globals.get(name) or _define(name, body, context, builder, sig)
    status, result = context.call_conv.call_function(builder, made, sig.return_type, sig.args, args)
    with cgutils.if_unlikely(builder, status.is_error):
        if body in _ERRORS:
            context.call_conv.return_user_exc(builder, MemoryError, (_ERRORS[body],))
        else:
            context.call_conv.return_status_propagate(builder, status)
    return result


def _define(name: str, body: Body, context: Any, builder: IRBuilder, sig: Any) -> Function:
    made = Function(builder.module, context.call_conv.get_function_type(sig.return_type, sig.args), name)
    made.linkage = "internal"
    made.attributes.add("noinline")
    inner = IRBuilder(made.append_basic_block())
    given = context.call_conv.decode_arguments(inner, sig.args, made)
    result = body(context, inner, sig, given)
    context.call_conv.return_value(inner, context.get_return_value(inner, sig.return_type, result))
    return made
