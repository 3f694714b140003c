"""Memory limit of a call: half of what is free when it begins.

A loop that never ends records until memory is exhausted, and the machine stops responding long before Python raises an
error.  So tapes are checked when they grow, and so are large arrays of compiled code.  A call with a budget of its own
(`memory=`) has that as the limit of its tapes, and memory that is kept for later arrays counts: where a new array would
exceed the budget, as much of that is given back.
"""

# mypy: disable-error-code="no-untyped-call"

from __future__ import annotations

import ast
import ctypes
import functools
import re
import threading
from collections.abc import Collection
from time import monotonic
from typing import Any

import llvmlite.binding as llvm
import numpy as np
from llvmlite import ir
from numba.core import cgutils

from tapegen.backend.numba import workspaces
from tapegen.errors import BadArgument

LARGE = 2**24
"""Bytes from which compiled code checks an array."""

AROUND = 192
"""Approximate overhead in bytes of an array in a list."""

_NUMBER_IN_LIST = 40
"""Approximate bytes of a number in a list of generated Python."""

TOO_MUCH = "this would take more than half of the free memory"
"""The message of the error that stops a call."""

LIST_FULL = "cannot resize list"
"""The same, where compiled code stores arrays in a list."""

ROOM, BEGIN, DIVIDE = "tapegen_room", "tapegen_begin", "tapegen_divide"
"""Functions that compiled code calls: whether there is memory, that new tapes begin, and that they are those of chunks
(1) or no longer (-1)."""

CALL, JOIN = "tapegen_call", "tapegen_join"
"""Functions that compiled code calls: the account of the call that this thread runs; to run a chunk of such a call."""

_LASTS = 0.5  # seconds for which a measurement is valid
_UNKNOWN = 2**62

_largest_array = ctypes.c_int64(_UNKNOWN)
"""The number of bytes that an array may take."""

_HELD, _LIMIT, _DIVIDED, _REFUSED, _ITEMS = range(5)
"""The fields of the account of a call: the bytes of its tapes so far, and their limit, unknown where it is that of
arrays; how many loops run chunks with tapes of their own; the bytes for which there was no room, and the items of the
tape that was to have them.  Two more are those of `workspaces`."""

INTERRUPTED = 7
"""The field that says that a handler of signals has raised an error: threads that run chunks of the call stop."""

_Account = ctypes.c_int64 * 8
_OPEN = (0, _UNKNOWN, 0, 0, 0, _UNKNOWN, 0, 0)

_unknown_call = _Account(*_OPEN)
"""The account of threads that tapegen has not seen."""

_python = ctypes.pythonapi
_python.PyThread_tss_alloc.restype = ctypes.c_void_p
for _function in (_python.PyThread_tss_create, _python.PyThread_tss_set):
    _function.argtypes = [ctypes.c_void_p, ctypes.c_void_p][: 1 + (_function is _python.PyThread_tss_set)]
_key: int = _python.PyThread_tss_alloc()
_python.PyThread_tss_create(_key)


class _Call(threading.local):
    """The account of the call that a thread runs."""

    def __init__(self) -> None:
        self.account = _Account(*_OPEN)
        _python.PyThread_tss_set(_key, ctypes.addressof(self.account))


_call = _Call()

stale = 0.0
"""When to measure again."""

UNITS = {"B": 1, "kB": 10**3, "MB": 10**6, "GB": 10**9, "TB": 10**12, "KiB": 2**10, "MiB": 2**20, "GiB": 2**30}
"""The units of budgets."""

_BUDGET = re.compile(r"\s*([0-9]+(?:\.[0-9]*)?|\.[0-9]+)\s*([A-Za-z]+)\s*")


def budget_of(given: object) -> int | float | None:
    """A budget as bytes, as a fraction of the free memory, or None.

    Raises
    ------
    BadArgument
        If it is none.
    """
    if given is None:
        return None
    if isinstance(given, str):
        found = _BUDGET.fullmatch(given)
        unit = next((size for name, size in UNITS.items() if found and name.lower() == found[2].lower()), 0)
        size = int(float(found[1]) * unit) if found else 0
    elif isinstance(given, float | np.floating):
        if 0.0 < given <= 1.0:
            return float(given)
        size = 0
    else:
        is_int = isinstance(given, int | np.integer) and not isinstance(given, bool)
        size = int(given) if is_int else 0  # type: ignore[call-overload]
    if size <= 0:
        raise BadArgument(
            f"memory={given!r} is no amount of memory.",
            'Give text ("2GB", "1.5GiB"), a positive number of bytes, or a fraction of the free memory (0.25).',
        )
    return size


def available() -> int:
    """Bytes that may be allocated without swapping, within the limit of the container."""
    found = [_UNKNOWN]
    for line in _lines("/proc/meminfo"):
        name, _, value = line.partition(":")
        if name == "MemAvailable":
            found.append(1024 * int(value.split()[0]))
    for limit, used in _LIMITS:
        numbers = [line for file in (limit, used) for line in _lines(file)[:1]]
        if len(numbers) == 2 and all(number.strip().isdigit() for number in numbers):
            found.append(int(numbers[0]) - int(numbers[1]))
    return max(min(found), 0)


_LIMITS = (
    ("/sys/fs/cgroup/memory.max", "/sys/fs/cgroup/memory.current"),
    ("/sys/fs/cgroup/memory/memory.limit_in_bytes", "/sys/fs/cgroup/memory/memory.usage_in_bytes"),
)


def _lines(file: str) -> list[str]:
    try:
        with open(file, encoding="ascii") as text:
            return text.readlines()
    except (OSError, ValueError):
        return []


def measure(now: float) -> None:
    """Measure the free memory again."""
    global stale
    stale = now + _LASTS
    _largest_array.value = (available() + workspaces.idle()) // 2


def begin() -> None:
    """A call begins that is not one of many similar calls."""
    _call.account[_HELD] = _call.account[_ITEMS] = 0
    now = monotonic()
    if now >= stale:
        measure(now)


def limit_of(budget: int | float | None) -> int:
    """The bytes that tapes may take within a budget: bytes, a fraction of the free memory, or half of it."""
    half = _largest_array.value
    if budget is None:
        return half
    return min(budget if isinstance(budget, int) else int(2 * half * budget), _UNKNOWN - 1)


def measured_limit(budget: int | float | None) -> int:
    """The same, for a call that is not one of many similar calls."""
    now = monotonic()
    if now >= stale:
        measure(now)
    return limit_of(budget)


class Within:
    """The budget of the calls of this thread within a `with` statement.

    Calls of the user's own compiled code have none: what a call sets ends with it.
    """

    __slots__ = ("_before", "_budget")

    def __init__(self, budget: int | float | None) -> None:
        self._budget = budget
        self._before: tuple[int, int, int] = (0, 0, 0)

    def __enter__(self) -> None:
        account = _call.account
        self._before = account[_LIMIT], account[workspaces.ROOM], account[workspaces.RETAINED]
        if self._budget is None:
            account[_LIMIT], account[workspaces.ROOM], account[workspaces.RETAINED] = _UNKNOWN, _UNKNOWN, 0
            return
        limit = limit_of(self._budget)
        retained = workspaces.keep(limit)
        account[_LIMIT], account[workspaces.ROOM], account[workspaces.RETAINED] = limit, limit - retained, retained

    def __exit__(self, *_: object) -> None:
        account = _call.account
        account[_LIMIT], account[workspaces.ROOM], account[workspaces.RETAINED] = self._before


def how_far() -> str:
    """What the tapes of this thread's call held when there was no memory for a longer one; empty where there was."""
    account = _call.account
    if not account[_ITEMS]:
        return ""
    return f" (after {account[_ITEMS]:,} recorded iterations: {account[_HELD]:,} bytes, and {account[_REFUSED]:,} more)"


# ---- in compiled code ------------------------------------------------------------------------------------------------


@functools.cache
def provide() -> None:
    """Register the functions in LLVM, so that compiled code finds them by their names."""
    measure(monotonic())
    module = ir.Module("tapegen_memory")
    module.triple = llvm.get_process_triple()
    address = ir.PointerType(_NUMBER)

    finds = ir.Function(module, ir.FunctionType(address, []), f"{CALL}_here")
    builder = ir.IRBuilder(finds.append_basic_block())
    key = _NUMBER(_key).inttoptr(cgutils.voidptr_t)
    known = builder.bitcast(call_python(builder, "PyThread_tss_get", cgutils.voidptr_t, key), address)
    other = _NUMBER(ctypes.addressof(_unknown_call)).inttoptr(address)
    is_known = builder.icmp_unsigned("!=", builder.ptrtoint(known, _NUMBER), _NUMBER(0))
    builder.ret(builder.select(is_known, known, other))

    joins = ir.Function(module, ir.FunctionType(ir.VoidType(), [address]), f"{JOIN}_here")
    builder = ir.IRBuilder(joins.append_basic_block())
    given = builder.bitcast(joins.args[0], cgutils.voidptr_t)
    call_python(builder, "PyThread_tss_set", _FLAG, key, given)
    builder.ret_void()

    begins = ir.Function(module, ir.FunctionType(ir.VoidType(), []), f"{BEGIN}_here")
    builder = ir.IRBuilder(begins.append_basic_block())
    account = builder.call(finds, [])
    is_whole = builder.icmp_signed("==", builder.load(field(builder, account, _DIVIDED), typ=_NUMBER), _NUMBER(0))
    with builder.if_then(is_whole):
        builder.store(_NUMBER(0), field(builder, account, _HELD))
    builder.ret_void()

    divides = ir.Function(module, ir.FunctionType(ir.VoidType(), [_NUMBER]), f"{DIVIDE}_here")
    builder = ir.IRBuilder(divides.append_basic_block())
    divided = field(builder, builder.call(finds, []), _DIVIDED)
    builder.atomic_rmw("add", divided, divides.args[0], "seq_cst")
    builder.ret_void()

    _define_room(module, finds)
    parsed = llvm.parse_assembly(str(module))
    engine = llvm.create_mcjit_compiler(parsed, llvm.Target.from_default_triple().create_target_machine())
    engine.finalize_object()
    for name in (CALL, JOIN, BEGIN, ROOM, DIVIDE):
        llvm.add_symbol(name, engine.get_function_address(f"{name}_here"))
    workspaces.count_for(engine.get_function_address(f"{CALL}_here"))
    _engines.append(engine)


def _define_room(module: ir.Module, finds: ir.Function) -> None:
    """Define the function that says whether there is memory for an array or a tape, and counts the tape."""
    room = ir.Function(module, ir.FunctionType(_FLAG, [_NUMBER, _FLAG, _NUMBER]), f"{ROOM}_here")
    size, is_tape, items = room.args
    builder = ir.IRBuilder(room.append_basic_block())
    account = builder.call(finds, [])
    factor = builder.zext(is_tape, _NUMBER)
    largest = _NUMBER(ctypes.addressof(_largest_array)).inttoptr(ir.PointerType(_NUMBER))
    of_tapes = builder.load(field(builder, account, _LIMIT), typ=_NUMBER)
    is_given = builder.icmp_signed("!=", of_tapes, _NUMBER(_UNKNOWN))
    is_limited = builder.and_(builder.trunc(is_tape, ir.IntType(1)), is_given)
    limit = builder.select(is_limited, of_tapes, builder.load(largest, typ=_NUMBER))
    place = field(builder, account, _HELD)
    held = builder.mul(builder.load(place, typ=_NUMBER), factor)  # tapes do not count for other arrays: they may die
    fits = builder.icmp_signed("<=", builder.add(held, size), limit)
    with builder.if_else(fits) as (yes, no):
        with yes:
            half = builder.ashr(size, _NUMBER(1))  # the tape that is doubled is freed
            builder.atomic_rmw("add", place, builder.mul(half, factor), "monotonic")
        with no:
            builder.store(size, field(builder, account, _REFUSED))
            builder.store(items, field(builder, account, _ITEMS))
    builder.ret(builder.zext(fits, _FLAG))


_NUMBER, _FLAG = ir.IntType(64), ir.IntType(32)


def field(builder: ir.IRBuilder, account: ir.Value, k: int) -> ir.Value:
    """A field of the account of a call."""
    return builder.gep(account, [_FLAG(k)], source_etype=_NUMBER)


def call_python(builder: ir.IRBuilder, name: str, result: ir.Type, *args: ir.Value) -> ir.Value:
    """Call a function of CPython, in a function of this process."""
    address = ctypes.cast(getattr(_python, name), ctypes.c_void_p).value
    kind = ir.FunctionType(result, [arg.type for arg in args])
    return builder.call(builder.inttoptr(_NUMBER(address), kind.as_pointer()), args)


def begin_tapes(builder: ir.IRBuilder) -> None:
    """Emit the call that reports that tapes begin."""
    known = cgutils.get_or_insert_function(builder.module, ir.FunctionType(ir.VoidType(), []), BEGIN)
    builder.call(known, [])


def divide_tapes(builder: ir.IRBuilder, change: int) -> None:
    """Emit the call that reports that the tapes that begin are those of chunks (1), or no longer (-1)."""
    known = cgutils.get_or_insert_function(builder.module, ir.FunctionType(ir.VoidType(), [_NUMBER]), DIVIDE)
    builder.call(known, [_NUMBER(change)])


def account_of_call(builder: ir.IRBuilder) -> ir.Value:
    """Emit the question which call this thread runs."""
    kind = ir.FunctionType(ir.PointerType(_NUMBER), [])
    return builder.call(cgutils.get_or_insert_function(builder.module, kind, CALL), [])


def join_call(builder: ir.IRBuilder, account: ir.Value) -> None:
    """Emit that this thread runs a part of a call."""
    kind = ir.FunctionType(ir.VoidType(), [account.type])
    builder.call(cgutils.get_or_insert_function(builder.module, kind, JOIN), [account])


def has_room(builder: ir.IRBuilder, size: ir.Value, *, is_tape: bool, items: ir.Value | None = None) -> ir.Value:
    """Emit the check whether there is memory for an array; a tape is one that was doubled, and has `items`."""
    kind = ir.FunctionType(_FLAG, [_NUMBER, _FLAG, _NUMBER])
    known = cgutils.get_or_insert_function(builder.module, kind, ROOM)
    given = [size, _FLAG(int(is_tape)), _NUMBER(0) if items is None else items]
    return builder.icmp_unsigned("!=", builder.call(known, given), _FLAG(0))


_engines: list[Any] = []  # the address may be called as long as the process lives


# ---- in source that CPython runs -------------------------------------------------------------------------------------


def _tape_limit() -> int:
    limit = _call.account[_LIMIT]
    return limit if limit != _UNKNOWN else _largest_array.value


def _take(size: int, kept: int, items: int) -> None:
    account = _call.account
    if account[_HELD] + size > _tape_limit():
        account[_REFUSED], account[_ITEMS] = size, items
        raise MemoryError(TOO_MUCH)
    account[_HELD] += kept


def longer(tape: np.ndarray) -> np.ndarray:
    """A copy of a tape with capacity for twice as many items."""
    _take(2 * tape.nbytes, tape.nbytes, len(tape))
    return np.concatenate((tape, np.empty_like(tape)))


def tape(made: np.ndarray) -> np.ndarray:
    """A tape that need not grow: the system allocates memory when it is written."""
    if made.nbytes >= LARGE:
        _take(made.nbytes, made.nbytes, 0)
    return made


def _size_in_list(item: Any) -> int:
    return item.nbytes + AROUND if isinstance(item, np.ndarray) else _NUMBER_IN_LIST


class ListTape(list[Any]):
    """A tape of arrays, which checks the memory from time to time."""

    __slots__ = ("pending", "unit")

    def __init__(self) -> None:
        super().__init__()
        self.pending = 0
        self.unit = min(LARGE, _tape_limit() // 16)

    def append(self, item: Any) -> None:
        """Append one more array."""
        self.pending += _size_in_list(item)
        if self.pending > self.unit:
            _take(self.pending, self.pending, len(self))
            self.pending = 0
        list.append(self, item)

    def pop(self, place: Any = -1) -> Any:
        """Take the last array, which counts no longer."""
        item = list.pop(self, place)
        self.pending -= _size_in_list(item)
        if self.pending < -self.unit:
            _take(self.pending, self.pending, len(self))
            self.pending = 0
        return item


class Watched(ast.NodeTransformer):
    """Source whose tapes check the memory: it reads as before, and computes the same.

    Parameters
    ----------
    tapes : collection of str
        The names of the tapes.
    """

    def __init__(self, tapes: Collection[str]) -> None:
        self.tapes = tapes

    def visit_Assign(self, node: ast.Assign) -> ast.Assign:
        """`x_tape = np.concatenate((x_tape, np.empty_like(x_tape)))` and `x_tape = []` and
        `x_tape = np.empty(n)`.
        """
        match node:
            case ast.Assign([ast.Name(name)], ast.List([])) if name in self.tapes:
                node.value = self._call("list_tape", [], node.value)
            case ast.Assign(
                [ast.Name(name)],
                ast.Call(ast.Attribute(_, "concatenate"), [ast.Tuple([ast.Name(same), ast.Call()])], []),
            ) if name in self.tapes and name == same:
                node.value = self._call("longer", [ast.Name(name, ast.Load())], node.value)
            case ast.Assign([ast.Name(name)], ast.Call(ast.Attribute(_, "empty")) as value) if name in self.tapes:
                node.value = self._call("tape", [value], value)
        return node

    def _call(self, name: str, args: list[ast.expr], old: ast.expr) -> ast.expr:
        call = ast.Call(ast.Name(f" {name}", ast.Load()), args, [])  # no source has such a name
        return ast.fix_missing_locations(ast.copy_location(call, old))


NAMES = {" longer": longer, " list_tape": ListTape, " tape": tape}
"""The functions that such source calls."""
