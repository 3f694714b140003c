"""Register promotion (mem2reg): variables of compiled code as SSA values instead of stack slots.

numba keeps a variable that more than one block uses in a slot on the stack: whole arrays, with all their fields, are
stored there and loaded for each use.  Before every `raise` it loads all live arrays to release them, so that LLVM,
which promotes slots to values, took most of its time for code that never runs.  In generated source most variables are
assigned once, before all reads.  Those are values from the start; where it depends on the path whether an array has
been released, only its reference has a slot, and of arrays that have a slot only the reference is loaded when they are
released.
"""

# mypy: disable-error-code="no-untyped-call"

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from llvmlite.ir import AllocaInstr, Constant, Function, PhiInstr, StoreInstr
from numba.core import cgutils, ir, types

from tapegen.backend.numba.patches import is_enabled
from tapegen.backend.numba.two_tier_optimization import TwoTierLower


class RegisterPromotingLower(TwoTierLower):
    """numba's lowering, with fewer slots."""

    def init(self) -> None:
        super().init()
        self._references: dict[str, Any] = {}
        self._counted: set[str] = set()
        names = self.fndesc.typemap
        self._plain = {name: not self.refers(name) for name in names}
        self._promotes = is_enabled("register_promotion")
        if not self._promotes or self.func_ir.is_generator or self._disable_sroa_like_opt:
            return
        values = values_of(self.func_ir, self._plain)
        dominating = values_of(self.func_ir, dict.fromkeys(names, True))
        self._counted = {name for name in dominating - values if _has_one_reference(names[name])}
        self._singly_assigned_vars |= values | self._counted

    def lower_normal_function(self, fndesc: Any) -> None:
        super().lower_normal_function(fndesc)
        if self._promotes:
            _forget_first_zeros(self.function)

    def storevar(self, value: Any, name: str, argidx: Any = None) -> None:
        """Assign a variable; its old value is released."""
        if not self._promotes:
            super().storevar(value, name, argidx)
            return
        if name in self._counted:
            self._let_go(name, self._reference(name))
            self.builder.store(self.builder.extract_value(value, 0), self._reference(name))
        elif name not in self._singly_assigned_vars and argidx is None and _has_one_reference(self.typeof(name)):
            self._alloca_var(name, self.typeof(name))
            self._let_go(name, self._first_field(self.getvar(name)))
            self.builder.store(value, self.getvar(name))
            return
        super().storevar(value, name, argidx)

    def delvar(self, name: str) -> None:
        """Release the value of a variable."""
        if not self._promotes:
            super().delvar(name)
            return
        if self._plain[name]:
            return
        if name in self._counted:
            slot = self._reference(name)
        elif not _has_one_reference(self.typeof(name)):
            super().delvar(name)
            return
        elif name in self._singly_assigned_vars and name in self._blk_local_varmap:
            reference = self.builder.extract_value(self._blk_local_varmap[name], 0)
            self.decref(_reference_type(self.typeof(name)), reference)
            return
        else:
            self._singly_assigned_vars.discard(name)  # as numba does where a block releases what a later one assigns
            self._alloca_var(name, self.typeof(name))
            slot = self._first_field(self.getvar(name))
        self._let_go(name, slot)
        self.builder.store(Constant(slot.type.pointee, None), slot)

    def _reference(self, name: str) -> Any:
        if name not in self._references:
            type_ = self.context.get_value_type(_reference_type(self.typeof(name)))
            self._references[name] = cgutils.alloca_once(self.builder, type_, name=name)
        return self._references[name]

    def _first_field(self, slot: Any) -> Any:
        return cgutils.gep_inbounds(self.builder, slot, 0, 0)

    def _let_go(self, name: str, slot: Any) -> None:
        self.decref(_reference_type(self.typeof(name)), self.builder.load(slot))


def _has_one_reference(type_: Any) -> bool:
    """Whether values of a type have their only reference in the first field."""
    return isinstance(type_, types.Array | types.List)


def _reference_type(type_: Any) -> Any:
    return types.MemInfoPointer(type_.dtype)


@dataclass(slots=True)
class _Block:
    """The effects of a block on variables, each a bit of an integer."""

    read: int = 0  # what is read, or released, before the block assigns it
    given: int = 0  # what is assigned before the block releases it
    gained: int = 0
    lost: int = 0
    held: int = 0  # on every path, on entry
    perhaps: int = 0


def _forget_first_zeros(function: Function) -> None:
    """Drop zeros that numba stores into a slot when the function begins, where the slot is assigned before each use.

    A slot that a single block uses is promoted to a value at once.
    """
    entry = function.entry_basic_block
    uses: dict[Any, list[tuple[Any, Any]]] = {}
    for block in function.blocks:
        for instruction in block.instructions:
            for operand in _operands(instruction):
                if isinstance(operand, AllocaInstr):
                    uses.setdefault(operand, []).append((block, instruction))
    filled = {slot for slot, found in uses.items() if _is_filled(slot, entry, found)}
    entry.instructions[:] = [found for found in entry.instructions if not _zeroes(found, filled)]


def _is_filled(slot: Any, entry: Any, uses: list[tuple[Any, Any]]) -> bool:
    """Whether a single block other than the first uses a slot, after assigning it; the zeros do not count."""
    if len(uses) < 2 or uses[0][0] is not entry or not all(block is uses[1][0] for block, _ in uses[1:]):
        return False
    first = uses[1][1]
    return uses[1][0] is not entry and isinstance(first, StoreInstr) and first.operands[1] is slot


def _zeroes(instruction: Any, slots: set[Any]) -> bool:
    if not isinstance(instruction, StoreInstr):
        return False
    value, slot = instruction.operands
    return slot in slots and isinstance(value, Constant)


def _operands(instruction: Any) -> list[Any]:
    if isinstance(instruction, PhiInstr):
        return [value for value, _ in instruction.incomings]
    return list(instruction.operands)


def values_of(func_ir: Any, plain: Mapping[str, bool]) -> set[str]:
    """Variables that are assigned once, before all reads, and released exactly once after that.

    Parameters
    ----------
    func_ir : numba.core.ir.FunctionIR
        A function in numba's IR, with `Del` where variables are released.
    plain : mapping of str to bool
        Its variables, and whether their values need no release.
    """
    first = _given_once(func_ir)
    bits = {name: 1 << k for k, name in enumerate(first)}
    refused = 0
    blocks = {}
    for offset, block in func_ir.blocks.items():
        blocks[offset] = found = _Block()
        for kind, name in _events(block, plain):
            bit = bits.get(name, 0)
            if kind == "give":
                found.given |= bit & ~found.lost if not plain[name] else 0
                found.gained |= bit
                found.lost &= ~bit
                continue
            if offset < first.get(name, offset) or bit & found.lost:
                refused |= bit  # blocks are compiled in order; a released value is not released again
            found.read |= bit & ~found.gained
            if kind == "let go":
                found.gained &= ~bit
                found.lost |= bit
    _flow(func_ir, blocks, (1 << len(bits)) - 1)
    for found in blocks.values():
        refused |= found.read & ~found.held | found.given & found.perhaps
    return {name for name, bit in bits.items() if not bit & refused}


def _given_once(func_ir: Any) -> dict[str, int]:
    """Variables that a single statement assigns, and its block."""
    first: dict[str, int] = {}
    several = set()
    for offset, block in func_ir.blocks.items():
        for stmt in block.body:
            if isinstance(stmt, ir.Assign):
                name = stmt.target.name
                if name in first:
                    several.add(name)
                first[name] = offset
    return {name: offset for name, offset in first.items() if name not in several}


def _events(block: Any, plain: Mapping[str, bool]) -> Iterator[tuple[str, str]]:
    """The events of each variable, in order."""
    for stmt in block.body:
        if isinstance(stmt, ir.Del):
            if not plain[stmt.value]:
                yield "let go", stmt.value
            continue
        given = stmt.target.name if isinstance(stmt, ir.Assign) else None
        for var in _read(stmt.value) if isinstance(stmt, ir.Assign) else stmt.list_vars():
            yield "read", var.name
        if given is not None:
            yield "give", given


def _read(value: Any) -> list[Any]:
    if isinstance(value, ir.Var):
        return [value]
    return list(value.list_vars()) if isinstance(value, ir.Inst) else []


def _flow(func_ir: Any, blocks: Mapping[int, _Block], everything: int) -> None:
    """The variables that hold a reference when each block begins: on all paths, on some."""
    cfg = func_ir.variable_lifetime.cfg
    entry = cfg.entry_point()
    for offset, block in blocks.items():
        block.held = 0 if offset == entry else everything
    order = cfg.topo_order()
    changed = True
    while changed:
        changed = False
        for offset in order:
            if offset == entry:
                continue
            held, perhaps = everything, 0
            for before, _ in cfg.predecessors(offset):
                source = blocks[before]
                held &= source.held & ~source.lost | source.gained
                perhaps |= source.perhaps & ~source.lost | source.gained
            block = blocks[offset]
            if (held, perhaps) != (block.held, block.perhaps):
                block.held, block.perhaps, changed = held, perhaps, True
