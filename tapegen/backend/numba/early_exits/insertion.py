"""Where compiled code asks: before tapes and lists of arrays grow, and in loops that may take long."""

# mypy: disable-error-code="no-untyped-call, untyped-decorator"

from __future__ import annotations

import math
import operator
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from numba.core import ir
from numba.core.analysis import compute_cfg_from_blocks
from numba.core.compiler_machinery import FunctionPass, register_pass
from numba.core.ir_utils import build_definitions, get_definition, guard

from tapegen.backend.numba import memory_limit
from tapegen.backend.numba.allocation import longer_tape
from tapegen.backend.numba.early_exits import interrupts, questions

_OF_ARRAYS = 2**33
"""A bound of the iterations of loops over the elements of an array: its size."""

_DEEP = 3
"""How many loops over elements of arrays, one in the other, may take long."""

_INTERRUPT: tuple[Any, Any] = (KeyboardInterrupt, ())
_NO_MEMORY: tuple[Any, Any] = (MemoryError, (memory_limit.TOO_MUCH,))


@dataclass(frozen=True, slots=True)
class _Loop:
    """A loop that may take long.

    Attributes
    ----------
    header : int
        The label of its first block.
    entries : frozenset of int
        The blocks before it.
    iterator : numba.core.ir.Var or None
        The iterator of a loop over `range`; None for others.
    """

    header: int
    entries: frozenset[int]
    iterator: Any


def _long_loops(func_ir: Any) -> list[_Loop]:
    loops = compute_cfg_from_blocks(func_ir.blocks).loops()
    found = []
    for header, loop in sorted(loops.items()):
        iterator, call = _iterator(func_ir, func_ir.blocks[header])
        most = math.inf if call is None else sum(_largest(func_ir, arg) for arg in call.args[:2])
        inner = [other for label, other in loops.items() if label in loop.body]
        depth = max(sum(each.header in around.body for around in inner) for each in inner)
        if most > _OF_ARRAYS or (most > interrupts.LONGEST and depth >= _DEEP):
            found.append(_Loop(header, frozenset(loop.entries), iterator))
    return found


def _iterator(func_ir: Any, header: Any) -> tuple[Any, Any]:
    """The iterator of a loop over `range` that begins with a block, and the call of that; else None."""
    iterator = next((expr.value for expr in header.find_exprs(op="iternext")), None)
    made = iterator and guard(get_definition, func_ir, iterator)
    call = guard(get_definition, func_ir, made.value) if isinstance(made, ir.Expr) and made.op == "getiter" else None
    if isinstance(call, ir.Expr) and call.op == "call":
        func = guard(get_definition, func_ir, call.func)
        if isinstance(func, ir.Global) and func.value is range:
            return iterator, call
    return None, None


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
    """Inserts questions into one function of numba's IR."""

    def __init__(self, func_ir: Any) -> None:
        self.func_ir, self.blocks = func_ir, func_ir.blocks
        self.order: dict[int, tuple[int, int]] = {label: (label, 0) for label in self.blocks}
        self.first = len(self.order)
        self.last: dict[int, int] = {}  # of a block that was split, the one with its last statement
        self.next = max(self.blocks) + 1

    @property
    def is_changed(self) -> bool:
        """Whether anything was inserted that has blocks."""
        return len(self.order) > self.first

    def ask_for_memory(self) -> None:
        """Ask before tapes are extended, and arrays are appended to lists."""
        for label, block in list(self.blocks.items()):
            for k in reversed(range(len(block.body))):
                value = getattr(block.body[k], "value", None)
                if isinstance(value, ir.Expr) and value.op == "call" and len(value.args) == 1:
                    question = self._question(value)
                    if question is not None:
                        self._ask(label, k, *question, _NO_MEMORY)

    def _question(self, call: Any) -> tuple[Any, tuple[Any, ...]] | None:
        func = guard(get_definition, self.func_ir, call.func)
        if isinstance(func, ir.Global) and func.value is longer_tape:
            return questions.is_tape_too_long, tuple(call.args)
        if isinstance(func, ir.Expr) and func.op == "getattr" and func.attr == "append":
            return questions.is_list_too_long, (func.value, *call.args)
        return None

    def look_for_interrupts(self, loops: Sequence[_Loop]) -> None:
        """Look for interrupts in loops."""
        first = min(self.blocks)
        for loop in loops:
            made, length = self._call(self.blocks[first], questions.new_length)
            self.blocks[first].body[:0] = made
            header = self.blocks[loop.header]
            left = header.scope.redefine("$left", header.loc)
            if loop.iterator is None:
                self._count_down(loop, length, left)
            else:
                self._divide(loop, length, left)

    def _count_down(self, loop: _Loop, length: Any, left: Any) -> None:
        """Look for an interrupt where a loop has counted down the iterations of a segment."""
        header = self.blocks[loop.header]
        for label in loop.entries:
            self._insert_last(label, questions.length_of, length, target=left)
        rest, _ = self._split(loop.header, 0)
        poll, polled = self._new_block(header, loop.header)
        counted = self._call(header, questions.one_less, (left,), left)[0]
        asked, answer = self._call(header, questions.are_left, (left,))
        header.body = [*counted, *asked, ir.Branch(answer, rest, poll, header.loc)]
        polled.body = [*self._call(header, questions.length_of, (length,), left)[0], ir.Jump(rest, header.loc)]
        self._ask(poll, 0, questions.is_interrupted, (length,), _INTERRUPT)

    def _divide(self, loop: _Loop, length: Any, left: Any) -> None:
        """Let a loop run in segments, and look for interrupts between two of them."""
        header = self.blocks[loop.header]
        for label in loop.entries:
            self._insert_last(label, questions.take_all, loop.iterator, target=left)
        begin, segment = self._new_block(header, loop.header, before=True)
        segment.body = [
            *self._call(header, questions.give_segment, (loop.iterator, left, length), left)[0],
            ir.Jump(loop.header, header.loc),
        ]
        for label in loop.entries:
            self._retarget(self._end(label), {loop.header: begin})
        tested = self._end(loop.header)
        test = tested.body[-1]
        end, ended = self._new_block(header, test.falsebr, before=True)
        poll, polled = self._new_block(header, test.falsebr, before=True)
        more, answer = self._call(header, questions.are_left, (left,))
        ended.body = [*more, ir.Branch(answer, poll, test.falsebr, header.loc)]
        polled.body = [ir.Jump(begin, header.loc)]
        tested.body[-1] = ir.Branch(test.cond, test.truebr, end, test.loc)
        self._ask(poll, 0, questions.is_interrupted, (length,), _INTERRUPT)

    def _split(self, label: int, k: int) -> tuple[int, Any]:
        """Move the statements of a block from one on to a block of their own."""
        block = self.blocks[label]
        rest_label, rest = self._new_block(block, label)
        block.body, rest.body = block.body[:k], block.body[k:]
        self.last |= {whole: rest_label for whole in (label, *self.last) if self.last.get(whole, whole) == label}
        return rest_label, rest

    def _end(self, label: int) -> Any:
        """The block with the last statement of a block."""
        return self.blocks[self.last.get(label, label)]

    def _ask(self, label: int, k: int, func: Any, args: tuple[Any, ...], error: tuple[Any, Any]) -> None:
        """Ask before a statement of a block; where the answer is yes, the function raises an error."""
        block = self.blocks[label]
        loc = block.body[k].loc
        exit_label, leave = self._new_block(block, label)
        rest_label, _ = self._split(label, k)
        asked, answer = self._call(block, func, args)
        block.body += [*asked, ir.Branch(answer, exit_label, rest_label, loc)]
        if error is _INTERRUPT:
            leave.body = self._call(block, questions.raise_what_the_handler_raised)[0]
        leave.body.append(ir.StaticRaise(*error, loc))

    def _new_block(self, like: Any, place: int, *, before: bool = False) -> tuple[int, Any]:
        """A block that is compiled next to another one."""
        label, self.next = self.next, self.next + 1
        first, _ = self.order[place]
        self.order[label] = (first, label - 2**40 if before else label)
        made = self.blocks[label] = ir.Block(like.scope, like.loc)
        return label, made

    def _insert_last(self, label: int, func: Any, *args: Any, target: Any = None) -> None:
        """Call a function at the end of a block."""
        block = self._end(label)
        block.body[-1:-1] = self._call(block, func, args, target)[0]

    @staticmethod
    def _call(block: Any, func: Any, args: tuple[Any, ...] = (), target: Any = None) -> tuple[list[Any], Any]:
        """The statements of a call, and its result."""
        scope, loc = block.scope, block.body[-1].loc if block.body else block.loc
        callee = scope.redefine(f"${func.__name__}", loc)
        target = target or scope.redefine(f"${func.__name__}", loc)
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
    """Inserts the questions for memory and for interrupts."""

    _name = "early_exits"

    def __init__(self) -> None:
        super().__init__()

    def run_pass(self, state: Any) -> bool:
        """Whether there are any."""
        memory_limit.provide()
        interrupts.provide()
        loops = _long_loops(state.func_ir)
        made = _Rewriter(state.func_ir)
        made.look_for_interrupts(loops)
        made.ask_for_memory()
        if made.is_changed:
            made.number_blocks()
        return made.is_changed
