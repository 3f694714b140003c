"""Memory limit of a call: half of what is free when it begins.

A loop that never ends records until memory is exhausted, and the machine stops responding long before Python raises an
error.  So tapes are checked when they grow, and so are large arrays of compiled code.
"""

# mypy: disable-error-code="no-untyped-call"

from __future__ import annotations

import ast
import ctypes
import functools
import re
import sys
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

TOO_MUCH = "this would take more than half of the free memory"
"""The message of the error that stops a call."""

LIST_FULL = "cannot resize list"
"""The same, where compiled code stores arrays in a list."""

ROOM, BEGIN, DIVIDE = "tapegen_room", "tapegen_begin", "tapegen_divide"
"""Functions that compiled code calls: whether there is memory, that new tapes begin, and that they are those of chunks
(1) or no longer (-1)."""

_LASTS = 0.5  # seconds for which a measurement is valid
_UNKNOWN = 2**62

_cells = (ctypes.c_int64 * 5)(_UNKNOWN, 0, _UNKNOWN, 0, 0)
"""The number of bytes that an array may take, the bytes of the tapes of a call so far, and the limit of these; when
compiled code last looked for an interrupt; how many calls run chunks with tapes of their own."""

POLL = "tapegen_interrupted"
"""The function that compiled code calls at checkpoints: whether Ctrl-C was pressed."""

_CYCLES = 2**28
"""Cycles of the processor between two looks, about a tenth of a second."""

stale = 0.0
"""When to measure again."""

current: int | float | None = None
"""The budget of the last call."""

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
    _cells[0] = (available() + workspaces.idle()) // 2
    limit_tapes(current)


def begin(budget: int | float | None = None) -> None:
    """A call begins that is not one of many similar calls; see `limit_tapes`."""
    _cells[1] = 0
    now = monotonic()
    if now >= stale:
        measure(now)
    limit_tapes(budget)


def limit_tapes(budget: int | float | None) -> None:
    """Set how much the tapes of a call may take: bytes, a fraction of the free memory, or half of it."""
    global current
    current = budget
    if budget is None:
        _cells[2] = _cells[0]
    else:
        _cells[2] = min(budget if isinstance(budget, int) else int(2 * _cells[0] * budget), sys.maxsize)


def tape_limit() -> int:
    """The bytes that the tapes of the present call may take."""
    return _cells[2]


def limit_of(budget: int | float | None) -> int:
    """The bytes that the tapes of a call may take that begins now."""
    now = monotonic()
    if now >= stale:
        measure(now)
    limit_tapes(budget)
    return _cells[2]


# ---- in compiled code ------------------------------------------------------------------------------------------------


@functools.cache
def provide() -> None:
    """Register the functions in LLVM, so that compiled code finds them by their names."""
    measure(monotonic())
    module = ir.Module("tapegen_memory")
    module.triple = llvm.get_process_triple()
    number, flag = ir.IntType(64), ir.IntType(32)
    cells = ir.Constant(number, ctypes.addressof(_cells)).inttoptr(ir.PointerType(number))

    begins = ir.Function(module, ir.FunctionType(ir.VoidType(), []), f"{BEGIN}_here")
    builder = ir.IRBuilder(begins.append_basic_block())
    one = ir.Constant(flag, 1)
    divided = builder.gep(cells, [ir.Constant(flag, 4)], source_etype=number)
    is_whole = builder.icmp_signed("==", builder.load(divided, typ=number), ir.Constant(number, 0))
    with builder.if_then(is_whole):
        builder.store(ir.Constant(number, 0), builder.gep(cells, [one], source_etype=number))
    builder.ret_void()

    divides = ir.Function(module, ir.FunctionType(ir.VoidType(), [number]), f"{DIVIDE}_here")
    builder = ir.IRBuilder(divides.append_basic_block())
    divided = builder.gep(cells, [ir.Constant(flag, 4)], source_etype=number)
    builder.atomic_rmw("add", divided, divides.args[0], "seq_cst")
    builder.ret_void()

    room = ir.Function(module, ir.FunctionType(flag, [number, flag]), f"{ROOM}_here")
    size, is_tape = room.args
    builder = ir.IRBuilder(room.append_basic_block())
    place = builder.gep(cells, [one], source_etype=number)
    held = builder.load(place, typ=number)
    factor = builder.zext(is_tape, number)
    of_tapes = builder.load(builder.gep(cells, [ir.Constant(flag, 2)], source_etype=number), typ=number)
    limit = builder.select(builder.trunc(is_tape, ir.IntType(1)), of_tapes, builder.load(cells, typ=number))
    held = builder.mul(held, factor)  # the contents of tapes do not count for other arrays: they may be freed again
    half = builder.ashr(size, ir.Constant(number, 1))  # the tape that is doubled is freed
    kept = builder.mul(half, factor)
    fits = builder.icmp_signed("<=", builder.add(held, size), limit)
    builder.atomic_rmw("add", place, builder.select(fits, kept, ir.Constant(number, 0)), "monotonic")
    builder.ret(builder.zext(fits, flag))

    _define_poll(module, cells)
    parsed = llvm.parse_assembly(str(module))
    engine = llvm.create_mcjit_compiler(parsed, llvm.Target.from_default_triple().create_target_machine())
    engine.finalize_object()
    for name in (BEGIN, ROOM, DIVIDE, POLL):
        llvm.add_symbol(name, engine.get_function_address(f"{name}_here"))
    _engines.append(engine)


def _python(builder: ir.IRBuilder, name: str, result: ir.Type, *args: ir.Value) -> ir.Value:
    """Call a function of CPython."""
    address = ctypes.cast(getattr(ctypes.pythonapi, name), ctypes.c_void_p).value
    kind = ir.FunctionType(result, [arg.type for arg in args])
    return builder.call(builder.inttoptr(ir.Constant(ir.IntType(64), address), kind.as_pointer()), args)


def _define_poll(module: ir.Module, cells: ir.Value) -> None:
    """Define the function that looks for an interrupt, at most once in some time."""
    number, flag = ir.IntType(64), ir.IntType(32)
    polls = ir.Function(module, ir.FunctionType(flag, []), f"{POLL}_here")
    builder = ir.IRBuilder(polls.append_basic_block())
    clock = ir.Function(module, ir.FunctionType(number, []), "llvm.readcyclecounter")
    now = builder.call(clock, [])
    place = builder.gep(cells, [ir.Constant(flag, 3)], source_etype=number)
    passed = builder.sub(now, builder.load(place, typ=number))
    with builder.if_then(builder.icmp_unsigned(">", passed, ir.Constant(number, _CYCLES)), likely=False):
        builder.store(now, place)
        state = _python(builder, "PyGILState_Ensure", flag)
        raised = _python(builder, "PyErr_CheckSignals", flag)  # runs the handlers
        is_raised = builder.icmp_signed("!=", raised, ir.Constant(flag, 0))
        with builder.if_then(is_raised):
            _python(builder, "PyErr_Clear", ir.VoidType())  # compiled code raises it
        _python(builder, "PyGILState_Release", ir.VoidType(), state)
        builder.ret(builder.zext(is_raised, flag))
    builder.ret(ir.Constant(flag, 0))


def is_interrupted(builder: ir.IRBuilder) -> ir.Value:
    """Emit the question whether Ctrl-C was pressed."""
    known = cgutils.get_or_insert_function(builder.module, ir.FunctionType(ir.IntType(32), []), POLL)
    return builder.icmp_unsigned("!=", builder.call(known, []), ir.IntType(32)(0))


def begin_tapes(builder: ir.IRBuilder) -> None:
    """Emit the call that reports that tapes begin."""
    known = cgutils.get_or_insert_function(builder.module, ir.FunctionType(ir.VoidType(), []), BEGIN)
    builder.call(known, [])


def divide_tapes(builder: ir.IRBuilder, change: int) -> None:
    """Emit the call that reports that the tapes that begin are those of chunks (1), or no longer (-1)."""
    number = ir.IntType(64)
    known = cgutils.get_or_insert_function(builder.module, ir.FunctionType(ir.VoidType(), [number]), DIVIDE)
    builder.call(known, [number(change)])


def has_room(builder: ir.IRBuilder, size: ir.Value, *, is_tape: bool) -> ir.Value:
    """Emit the check whether there is memory for an array; a tape is one that was doubled."""
    flag = ir.IntType(32)
    known = cgutils.get_or_insert_function(builder.module, ir.FunctionType(flag, [size.type, flag]), ROOM)
    return builder.icmp_unsigned("!=", builder.call(known, [size, flag(int(is_tape))]), flag(0))


_engines: list[Any] = []  # the address may be called as long as the process lives


# ---- in source that CPython runs -------------------------------------------------------------------------------------


def _take(size: int, kept: int) -> None:
    if _cells[1] + size > _cells[2]:
        raise MemoryError(TOO_MUCH)
    _cells[1] += kept


def longer(tape: np.ndarray) -> np.ndarray:
    """A copy of a tape with capacity for twice as many items."""
    _take(2 * tape.nbytes, tape.nbytes)
    return np.concatenate((tape, np.empty_like(tape)))


def tape(made: np.ndarray) -> np.ndarray:
    """A tape that need not grow: the system allocates memory when it is written."""
    if made.nbytes >= LARGE:
        _take(made.nbytes, made.nbytes)
    return made


class ListTape(list[Any]):
    """A tape of arrays, which checks the memory from time to time."""

    __slots__ = ("pending",)

    def __init__(self) -> None:
        super().__init__()
        self.pending = 0

    def append(self, item: Any) -> None:
        """Append one more array."""
        self.pending += getattr(item, "nbytes", 0) + AROUND
        if self.pending > min(LARGE, _cells[2] // 16):
            _take(self.pending, self.pending)
            self.pending = 0
        list.append(self, item)

    def pop(self, place: Any = -1) -> Any:
        """Take the last array, which counts no longer."""
        item = list.pop(self, place)
        self.pending -= getattr(item, "nbytes", 0) + AROUND
        if self.pending < -min(LARGE, _cells[2] // 16):
            _take(self.pending, self.pending)
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
