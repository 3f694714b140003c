"""Live-range splitting (array renaming): an array that is assigned several times gets a variable for each live range.

The backward sweep reassigns variables of the forward sweep.  Legal where the array is allocated again in a block and is
not read after it; views and new arrays that nothing reads are dropped.  It pays because dependence analysis goes by
variables: loop nests of different live ranges can be fused.

Before::

    def f(x: "f8[:]"):
        t = np.empty(x.shape[0])
        for i in range(x.shape[0]):
            t[i] = x[i] * 2.0
        s = t[0]
        t = np.empty(x.shape[0])
        for i in range(x.shape[0]):
            t[i] = x[i] + s
        return t

After::

    def f(x):
        t_2 = np.empty(x.shape[0])
        for i in range(x.shape[0]):
            t_2[i] = x[i] * 2.0
        s = t_2[0]
        t_1 = np.empty(x.shape[0])
        for i in range(x.shape[0]):
            t_1[i] = x[i] + s
        return t_1
"""

from __future__ import annotations

from collections import Counter
from dataclasses import replace

import numpy as np

from tapegen.ir import intrinsics, traversal
from tapegen.ir.names import NameSupply
from tapegen.ir.nodes import Assign, Block, Break, Call, Continue, For, Function, If, Load, Return, Stmt, Var, While
from tapegen.ir.types import Array


def split_live_ranges(function: Function) -> Function:
    """The same program with a variable for each live range of an array."""
    return traversal.with_body(function, _Lives(function).block(function.body, set())[0])


class _Lives:
    def __init__(self, function: Function) -> None:
        names = {param.name for param in function.params} | {name for name, _ in function.globals} | {function.name}
        self.made: Counter[Var] = Counter(function.params)
        for stmt in traversal.statements(function.body):
            for var in stmt.targets:
                names.add(var.name)
                if isinstance(var.type, Array):
                    self.made[var] += 1
        self.names = NameSupply(names)
        self.leaving: list[set[Var]] = []  # for each enclosing loop, what is read after a Break or Continue

    def block(self, block: Block, live: set[Var]) -> tuple[Block, set[Var]]:
        """The block, and the arrays read in it or after it before their definition; `live` are those after it."""
        jumps = self.leaving and not _JUMPS.isdisjoint(map(type, traversal.statements(block)))
        escaping = live | (self.leaving[-1] if jumps else set())
        out: list[Stmt] = []  # in reverse
        end: dict[Var, int] = {}  # the number of its statements after the next definition of each variable
        for stmt in reversed(block):
            stmt, live, gone = self._statement(stmt, live)
            if gone:
                continue
            for var in _made(stmt):
                life = tuple(out[end.get(var, 0) :])
                end[var] = len(out) + 1
                if var not in escaping and self._lives_elsewhere(var, life):
                    own = {var: Var(self.names.fresh(var.name), var.type)}
                    out[len(out) - len(life) :] = traversal.rename_block(life, own)
                    assert isinstance(stmt, Assign)
                    stmt = replace(stmt, targets=(own[var],))
                escaping = escaping - {var}
            out.append(stmt)
        return tuple(reversed(out)), live

    def _lives_elsewhere(self, var: Var, life: Block) -> bool:
        """Whether a variable is defined more often than at the start of a live range and in it."""
        if self.made[var] == 1:
            return False
        reassigning = tuple(stmt for stmt in life if var in traversal.assigns(stmt))
        return self.made[var] > 1 + sum(var in stmt.targets for stmt in traversal.statements(reassigning))

    def _statement(self, stmt: Stmt, live: set[Var]) -> tuple[Stmt, set[Var], bool]:
        if isinstance(stmt, (For, While)) and not any(map(_is_array, traversal.assigns(stmt))):
            return stmt, live | {var for var in traversal.reads(stmt) if type(var.type) is Array}, False
        reads = _arrays_read(stmt)
        if isinstance(stmt, Assign):
            if any(map(_is_array, stmt.targets)):
                if len(stmt.targets) == 1 and stmt.targets[0] not in live and _is_idle(stmt.value):
                    return stmt, live, True
                live = live.difference(stmt.targets)
            return stmt, live if reads <= live else live | reads, False
        match stmt:
            case For() | While():
                head = live | reads | _exposed(stmt.body)
                self.leaving.append(head)
                body, _ = self.block(stmt.body, head)
                self.leaving.pop()
                return traversal.with_blocks(stmt, (body,)), head, False
            case If(_, body, orelse):
                sides = [self.block(side, live) for side in (body, orelse)]
                new = traversal.with_blocks(stmt, tuple(side for side, _ in sides))
                return new, sides[0][1] | sides[1][1] | reads, False
            case Break() | Continue():
                return stmt, set(self.leaving[-1]), False
            case Return():
                return stmt, reads, False
        return stmt, live if reads <= live else live | reads, False


_JUMPS = frozenset({Break, Continue})


def _is_array(var: Var) -> bool:
    return type(var.type) is Array


def _arrays_read(stmt: Stmt) -> set[Var]:
    if not stmt.blocks:
        return {var for var in traversal.reads(stmt) if type(var.type) is Array}
    return {var for part in stmt.headers for var in traversal.free_vars(part) if type(var.type) is Array}


def _made(stmt: Stmt) -> list[Var]:
    """The array that a statement defines without reading the variable's old value."""
    if isinstance(stmt, Assign) and len(stmt.targets) == 1 and isinstance(stmt.targets[0].type, Array):
        (target,) = stmt.targets
        return [] if target in traversal.free_vars(stmt.value) else [target]
    return []


def _is_idle(value: object) -> bool:
    """Whether a value may be dropped without losing an effect."""
    if isinstance(value, Call):
        return value.func in (np.empty, np.zeros, np.copy, np.transpose, intrinsics.transpose_view)
    return isinstance(value, (Var, Load))


def _exposed(body: Block) -> set[Var]:
    """Arrays that a block may read before it defines them."""
    found: set[Var] = set()
    made: set[Var] = set()
    for stmt in body:
        read = _arrays_read(stmt).union(*map(_exposed, stmt.blocks))
        found |= read - made
        made.update(_made(stmt))
    return found
