"""Visitor of packing passes: it allocates their buffers once, where the size is known."""

from __future__ import annotations

import abc

import numpy as np

from tapegen.ir import builders, traversal
from tapegen.ir.names import NameSupply
from tapegen.ir.nodes import Assign, Block, For, Function, Stmt, Var
from tapegen.ir.types import Array
from tapegen.loops.analysis.block_queries import names_in
from tapegen.loops.analysis.dependence import alias_sets
from tapegen.loops.analysis.symbolic_bounds import dim


def has_matrices(function: Function) -> bool:
    """Whether there are arrays with columns."""
    mentioned = frozenset[Var]().union(*map(traversal.reads, function.body))
    return any(type(var.type) is Array and var.type.rank > 1 for var in mentioned)


class PackingPass(abc.ABC):
    """Rewrites the loops of one function by `loop`."""

    def __init__(self, function: Function) -> None:
        self.memory = alias_sets(function)
        self.names = NameSupply(names_in(function))
        self.body = function.body
        self.buffers: list[tuple[Var, Stmt]] = []  # arrays, and the allocations of buffers of their size

    @abc.abstractmethod
    def loop(self, loop: For) -> list[Stmt]:
        """The statements that replace a loop."""

    def buffer(self, name: str, dtype: str, array: Var, axis: int) -> Var:
        """A buffer of scalars of a dtype, as long as an axis of another array."""
        type_ = Array(dtype, 1, "C")
        row = Var(self.names.fresh(name), type_)
        self.buffers.append((array, Assign((row,), builders.new_array(np.empty, (dim(array, axis),), type_))))
        return row

    def whole(self) -> Block:
        """The new body.  Buffers are allocated once, where the array is known whose size they have."""
        out: list[Stmt] = []
        for stmt in self.body:
            new = self.block((stmt,))
            out += [*(buffer for _, buffer in self.buffers), *new]
            self.buffers = []
        return tuple(out)

    def block(self, block: Block) -> Block:
        outer, self.buffers = self.buffers, []
        made = traversal.assigned_in(*block)
        out: list[Stmt] = []
        for stmt in block:
            inner = stmt.blocks
            if isinstance(stmt, For):
                new = self.loop(stmt)
            else:
                new = [traversal.with_blocks(stmt, tuple(map(self.block, inner))) if inner else stmt]
            out += [*(buffer for array, buffer in self.buffers if array in made), *new]
            outer += [(array, buffer) for array, buffer in self.buffers if array not in made]
            self.buffers = []
        self.buffers = outer
        return tuple(out)
