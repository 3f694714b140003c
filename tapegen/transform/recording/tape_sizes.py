"""Sizes of tapes and checkpoints, as Python expressions of the arguments of a call.

A size is known where all counts of iterations and all shapes follow from arguments; it is text, so that it can be
stored with a derived program, shown to the user, and evaluated for each call.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from tapegen.analysis.scopes import Scopes
from tapegen.analysis.shape_inference import Shapes
from tapegen.ir import intrinsics, traversal
from tapegen.ir.nodes import Call, Const, Expr, For, Function, Stmt, Var, While
from tapegen.ir.types import Array, ListOf, RandomGenerator, Scalar
from tapegen.transform.recording.decisions import Tape

AROUND = 192
"""Approximate overhead in bytes of an array in a list."""

OF_GENERATOR = 4096
"""Approximate bytes of a generator of random numbers."""

_DEPTH = 16
_SPELLED = {operator.add: "+", operator.sub: "-", operator.mul: "*", operator.floordiv: "//"}


@dataclass(frozen=True, slots=True)
class LoopTapes:
    """The tapes of a loop that the backward sweep reverses.

    Attributes
    ----------
    position : int
        Its position among the loops of the primal.
    loop : For or While
        The loop.
    total, each : str or None
        The bytes of its tapes, and those of one iteration; None where they do not follow from the arguments.
    count : str or None
        The number of its iterations.
    inner : tuple of LoopTapes
        The loops in it.
    """

    position: int
    loop: For | While
    total: str | None
    each: str | None
    count: str | None
    inner: tuple[LoopTapes, ...]


class Sizes:
    """Sizes in one program."""

    def __init__(self, program: Function, scopes: Scopes, shapes: Shapes) -> None:
        self.program, self.scopes, self.shapes = program, scopes, shapes
        self.params = set(program.params)

    def text(self, expr: Expr, depth: int = 0) -> str | None:
        """An integer as a Python expression of the parameters."""
        if depth > _DEPTH:
            return None
        match expr:
            case Const(int() as value):
                return str(value)
            case Call(intrinsics.dim, (Var() as array, Const(int() as axis))):
                return self._extent(array, axis, depth)
            case Call(func, args) if func in _SPELLED and len(args) == 2:
                parts = [self.text(arg, depth + 1) for arg in args]
                return None if None in parts else f"({parts[0]} {_SPELLED[func]} {parts[1]})"
            case Call(func, args) if func in (max, min):
                parts = [self.text(arg, depth + 1) for arg in args]
                return None if None in parts else f"{func.__name__}({', '.join(map(str, parts))})"
            case Var():
                if expr in self.params:
                    return expr.name if isinstance(expr.type, Scalar) else None
                assigns = self.scopes.assigns.get(expr, ())
                return self.text(assigns[0].value, depth + 1) if len(assigns) == 1 else None
        return None

    def _extent(self, array: Var, axis: int, depth: int) -> str | None:
        if array in self.params:
            return f"{array.name}.shape[{axis}]"
        if not isinstance(array.type, Array):
            return None
        constant, terms = self.shapes.of(array)[axis]
        found = [str(constant)] if constant or not terms else []
        for (kind, name, place), factor in terms:
            var = next((var for var in self.scopes.owner if var.name == name), None)
            part: str | None = None
            if var is not None and kind == "param" and var in self.params:
                part = f"{name}.shape[{place}]"
            elif var is not None and kind == "int":
                part = self.text(var, depth + 1)
            if part is None:
                return None
            found.append(part if factor == 1 else f"{factor} * {part}")
        return found[0] if len(found) == 1 else f"max({' + '.join(found)}, 0)"

    def of_value(self, var: Var) -> str | None:
        """The bytes of a value in a list of checkpoints."""
        if isinstance(var.type, Scalar):
            return str(np.dtype(var.type.dtype).itemsize)
        if isinstance(var.type, RandomGenerator):
            return str(OF_GENERATOR)
        if not isinstance(var.type, Array):
            return None
        extents = [self._extent(var, axis, 0) for axis in range(var.type.rank)]
        size = product([str(np.dtype(var.type.dtype).itemsize), *extents])
        return None if size is None else f"{size} + {AROUND}"

    def of_tape(self, tape: Tape, outside: int = 0) -> str | None:
        """The bytes of a tape, without its first axes."""
        if isinstance(tape.store.type, ListOf):
            return None
        assert isinstance(tape.store.type, Array)
        item = str(np.dtype(tape.store.type.dtype).itemsize)
        return product([item, *(self.text(extent) for extent in tape.shape[outside:])])

    def count(self, tapes: Sequence[Tape], loop: Stmt) -> str | None:
        """The number of iterations of a loop, as a tape of exact size has it."""
        for tape in tapes:
            loops = [around.header for around in tape.scope.chain if around.is_loop][::-1]
            if tape.exact and tape.counter is None and loop in loops:
                return self.text(tape.shape[loops.index(loop)])
        return None

    def loops(self, tapes: Sequence[Tape], reversed_: Mapping[Stmt, int]) -> tuple[LoopTapes, ...]:
        """The loops with tapes, outermost first."""
        order = [stmt for stmt in traversal.statements(self.program.body) if isinstance(stmt, (For, While))]
        return self._loops(self.program.body, tapes, reversed_, order, 0)

    def _loops(
        self, block: Iterable[Stmt], tapes: Sequence[Tape], reversed_: Mapping[Stmt, int], order: list[Any], depth: int
    ) -> tuple[LoopTapes, ...]:
        found: list[LoopTapes] = []
        for stmt in block:
            if not isinstance(stmt, (For, While)):
                for inner in stmt.blocks:
                    found += self._loops(inner, tapes, reversed_, order, depth)
                continue
            own = [tape for tape in tapes if any(around.header is stmt for around in tape.scope.chain)]
            if not own or stmt not in reversed_:
                continue
            growing = [not tape.exact or tape.index is None for tape in own]
            total = None if any(growing) else added([self.of_tape(tape) for tape in own])
            each = added([self._each(tape, stmt) for tape in own])
            inside = self._loops(stmt.body, own, reversed_, order, depth + 1)
            found.append(LoopTapes(order.index(stmt), stmt, total, each, self.count(own, stmt), inside))
        return tuple(found)

    def _each(self, tape: Tape, loop: Stmt) -> str | None:
        """The bytes that one iteration of a loop records on a tape."""
        loops = [around.header for around in tape.scope.chain if around.is_loop][::-1]
        if tape.counter is not None:
            return self.of_tape(tape, 1) if loops[-1] is loop else None
        return self.of_tape(tape, loops.index(loop) + 1)

    def total(self, tapes: Iterable[Tape]) -> str:
        """The bytes of all tapes whose size follows from the arguments."""
        known = [self.of_tape(tape) for tape in tapes if tape.exact]
        return added([size for size in known if size is not None and not size.isdecimal()]) or "0"


def product(factors: Sequence[str | None]) -> str | None:
    """The product of sizes, unless one is unknown."""
    known = [f"({factor})" if " " in factor and not _is_call(factor) else factor for factor in factors if factor]
    return None if None in factors else " * ".join(known)


def _is_call(text: str) -> bool:
    return text.startswith(("max(", "min(", "(")) and text.endswith(")") and text.count("(") == 1


def added(sizes: Sequence[str | None]) -> str | None:
    """The sum of sizes, unless one is unknown."""
    known = [size for size in sizes if size is not None]
    if len(known) < len(sizes):
        return None
    counted: dict[str, int] = {}
    for size in known:
        counted[size] = counted.get(size, 0) + 1
    return " + ".join(size if times == 1 else f"{times} * {_factor(size)}" for size, times in counted.items())


def _factor(size: str) -> str:
    return f"({size})" if " + " in size else size


def evaluated(text: str, names: Sequence[str]) -> Callable[..., int]:
    """A size as a function of the parameters."""
    found: Callable[..., int] = eval(  # text that `Sizes` has written
        f"lambda {', '.join([*names, '*_'])}: {text or 0}", {"max": max, "min": min, "__builtins__": {}}
    )
    return found
