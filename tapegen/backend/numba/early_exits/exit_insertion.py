"""Where exit conditions are tested: before tapes and lists of arrays grow, and in loops that may take long."""

# mypy: disable-error-code="no-untyped-call, untyped-decorator"

from __future__ import annotations

import math
import operator
from collections.abc import Mapping, Sequence
from typing import Any

from numba.core import ir
from numba.core.analysis import compute_cfg_from_blocks
from numba.core.compiler_machinery import FunctionPass, register_pass
from numba.core.ir_utils import build_definitions, get_definition, guard

from tapegen.backend.numba import memory_limit
from tapegen.backend.numba.allocation import longer_tape
from tapegen.backend.numba.early_exits import exit_conditions, interrupts
from tapegen.backend.numba.patches import is_enabled

_OF_ARRAYS = 2**33
"""A bound of the iterations of loops over the elements of an array: its size."""

_INTERRUPT: tuple[Any, Any] = (KeyboardInterrupt, ())
_NO_MEMORY: tuple[Any, Any] = (MemoryError, (memory_limit.TOO_MUCH,))


def polled_blocks(func_ir: Any, *, reorders: bool) -> list[int]:
    """The blocks that begin an iteration of a loop that may take long.

    Those are all `while` loops, and the outermost loops over a `range` that nothing bounds, unless vector instructions
    may do their iterations: innermost loops over elements of arrays, and all innermost ones where sums are reordered.

    Parameters
    ----------
    func_ir : numba.core.ir.FunctionIR
        A function in numba's IR.
    reorders : bool
        Whether sums may be reordered.
    """
    loops = compute_cfg_from_blocks(func_ir.blocks).loops()
    polled: dict[int, int] = {}
    for header, loop in sorted(loops.items(), key=lambda item: -len(item[1].body)):
        first = _beyond_jumps(func_ir, header)
        iterator, call = _iterator(func_ir, first)
        if iterator is None:
            polled[header] = header
        elif call is not None and sum(_largest(func_ir, arg) for arg in call.args[:2]) > _OF_ARRAYS:
            is_inside = any(header in loops[around].body for around in polled)
            has_loops = any(other in loop.body for other in loops if other != header)
            body = [func_ir.blocks[label] for label in loop.body]
            if not is_inside and (has_loops or not (reorders or any(_has_elements(func_ir, block) for block in body))):
                polled[header] = first.terminator.truebr
    return list(polled.values())


def _beyond_jumps(func_ir: Any, label: int) -> Any:
    """The block that a block without statements of its own leads to: a long loop begins with an extended jump."""
    seen = set()
    while label not in seen and isinstance(func_ir.blocks[label].body[0], ir.Jump):
        seen.add(label)
        label = func_ir.blocks[label].terminator.target
    return func_ir.blocks[label]


def _has_elements(func_ir: Any, block: Any) -> bool:
    """Whether a block reads or writes elements of arrays, other than one at a constant index."""
    indices = [stmt.index for stmt in block.find_insts(ir.SetItem)]
    indices += [expr.index for expr in block.find_exprs(op="getitem")]
    return any(not isinstance(guard(get_definition, func_ir, index), ir.Const) for index in indices)


def _iterator(func_ir: Any, header: Any) -> tuple[Any, Any]:
    """The iterator of a loop that begins with a block, and the call of `range` that made it; else None."""
    iterator = next((expr.value for expr in header.find_exprs(op="iternext")), None)
    made = iterator and guard(get_definition, func_ir, iterator)
    call = guard(get_definition, func_ir, made.value) if isinstance(made, ir.Expr) and made.op == "getiter" else None
    if isinstance(call, ir.Expr) and call.op == "call":
        func = guard(get_definition, func_ir, call.func)
        if isinstance(func, ir.Global) and func.value is range:
            return iterator, call
    return iterator, None


def _largest(func_ir: Any, var: Any) -> float:
    """An upper bound of an integer."""
    made = guard(get_definition, func_ir, var)
    if isinstance(made, ir.Const) and isinstance(made.value, int):
        return made.value
    if not isinstance(made, ir.Expr):
        return math.inf
    if made.op in ("getitem", "static_getitem"):
        return _largest(func_ir, made.value)  # of a shape
    if made.op == "getattr" and made.attr in ("shape", "size"):
        return _OF_ARRAYS
    if made.op == "binop" and made.fn is operator.add:
        return _largest(func_ir, made.lhs) + _largest(func_ir, made.rhs)
    if made.op == "binop" and made.fn in (operator.sub, operator.floordiv):
        return _largest(func_ir, made.lhs)
    if made.op == "call":
        func = guard(get_definition, func_ir, made.func)
        if isinstance(func, ir.Global) and func.value in (min, max) and made.args:
            return float(func.value(_largest(func_ir, arg) for arg in made.args))
    return math.inf


class _Rewriter:
    """Inserts early exits into one function of numba's IR."""

    def __init__(self, func_ir: Any) -> None:
        self.func_ir, self.blocks = func_ir, func_ir.blocks
        self.order: dict[int, tuple[int, int]] = {label: (label, 0) for label in self.blocks}
        self.first = len(self.order)
        self.next = max(self.blocks) + 1

    @property
    def is_changed(self) -> bool:
        """Whether anything was inserted that has blocks."""
        return len(self.order) > self.first

    def check_memory(self) -> None:
        """Test for memory before tapes are extended, and arrays are appended to lists."""
        for label, block in list(self.blocks.items()):
            for k in reversed(range(len(block.body))):
                value = getattr(block.body[k], "value", None)
                if isinstance(value, ir.Expr) and value.op == "call" and len(value.args) == 1:
                    condition = self._memory_condition(value)
                    if condition is not None:
                        self._exit_if(label, k, *condition, _NO_MEMORY)

    def _memory_condition(self, call: Any) -> tuple[Any, tuple[Any, ...]] | None:
        func = guard(get_definition, self.func_ir, call.func)
        if isinstance(func, ir.Global) and func.value is longer_tape:
            return exit_conditions.is_tape_too_long, tuple(call.args)
        if isinstance(func, ir.Expr) and func.op == "getattr" and func.attr == "append":
            return exit_conditions.is_list_too_long, (func.value, *call.args)
        return None

    def poll_interrupts(self, labels: Sequence[int]) -> None:
        """Poll for interrupts where blocks begin."""
        for label in labels:
            self._exit_if(label, 0, exit_conditions.is_interrupted, (), _INTERRUPT)

    def _split(self, label: int, k: int) -> int:
        """Move the statements of a block from one on to a block of their own."""
        block = self.blocks[label]
        rest_label, rest = self._new_block(block, label)
        block.body, rest.body = block.body[:k], block.body[k:]
        return rest_label

    def _exit_if(self, label: int, k: int, func: Any, args: tuple[Any, ...], error: tuple[Any, Any]) -> None:
        """Test a condition before a statement of a block; where it holds, the function raises an error."""
        block = self.blocks[label]
        loc = block.body[k].loc
        exit_label, leave = self._new_block(block, label)
        rest_label = self._split(label, k)
        tested, answer = self._call(block, func, args)
        block.body += [*tested, ir.Branch(answer, exit_label, rest_label, loc)]
        leave.body.append(ir.StaticRaise(*error, loc))

    def _new_block(self, like: Any, place: int) -> tuple[int, Any]:
        """A block that is compiled next to another one."""
        label, self.next = self.next, self.next + 1
        first, _ = self.order[place]
        self.order[label] = (first, label)
        made = self.blocks[label] = ir.Block(like.scope, like.loc)
        return label, made

    @staticmethod
    def _call(block: Any, func: Any, args: tuple[Any, ...]) -> tuple[list[Any], Any]:
        """The statements of a call, and its result."""
        scope, loc = block.scope, block.body[-1].loc if block.body else block.loc
        callee = scope.redefine(f"${func.__name__}", loc)
        target = scope.redefine(f"${func.__name__}", loc)
        call = ir.Expr.call(callee, args, (), loc)
        return [ir.Assign(ir.Global(func.__name__, func, loc), callee, loc), ir.Assign(call, target, loc)], target

    @staticmethod
    def _retarget(block: Any, labels: Mapping[int, int]) -> None:
        """Let a block continue elsewhere."""
        last = block.body[-1]
        if isinstance(last, ir.Jump):
            block.body[-1] = ir.Jump(labels.get(last.target, last.target), last.loc)
        elif isinstance(last, ir.Branch):
            yes, no = (labels.get(target, target) for target in (last.truebr, last.falsebr))
            block.body[-1] = ir.Branch(last.cond, yes, no, last.loc)

    def number_blocks(self) -> None:
        """Number the blocks in the order in which they are compiled."""
        labels = {old: 2 * k for k, old in enumerate(sorted(self.blocks, key=self.order.__getitem__))}
        for block in self.blocks.values():
            self._retarget(block, labels)
        self.func_ir.blocks = {new: self.blocks[old] for old, new in labels.items()}
        self.func_ir._definitions = build_definitions(self.func_ir.blocks)


@register_pass(mutates_CFG=True, analysis_only=False)
class EarlyExits(FunctionPass):
    """Inserts the tests for memory and the polls for interrupts."""

    _name = "early_exits"

    def __init__(self) -> None:
        super().__init__()

    def run_pass(self, state: Any) -> bool:
        """Whether there are any."""
        memory_limit.provide()
        made = _Rewriter(state.func_ir)
        if is_enabled("interrupts"):
            interrupts.provide()
            made.poll_interrupts(polled_blocks(state.func_ir, reorders=bool(state.flags.fastmath)))
        if is_enabled("allocation"):
            made.check_memory()
        if made.is_changed:
            made.number_blocks()
        return made.is_changed
