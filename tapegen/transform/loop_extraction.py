"""Loop extraction: loops of a program that runs as Python become functions of their own, which can be compiled.

A program that communicates runs as Python; its loops that do not communicate have no need to.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np

from tapegen.analysis.liveness import Liveness
from tapegen.analysis.side_effects import Effects, effects_of
from tapegen.ir import intrinsics, traversal
from tapegen.ir.names import NameSupply
from tapegen.ir.nodes import (
    Assign,
    Block,
    Call,
    Effect,
    For,
    Function,
    Pop,
    Push,
    Return,
    Routine,
    Slice,
    Stmt,
    Store,
    Var,
    While,
)
from tapegen.ir.types import Array, Scalar, TupleOf

Build = Callable[[Function], Callable[..., Any] | None]


def extract_loops(function: Function, build: Build) -> Function:
    """The program with calls in place of its loops over elements.

    Parameters
    ----------
    function : Function
        A finished program.
    build : callable
        Makes a callable of the function of a loop; None leaves the loop where it is.
    """
    return _Extraction(function, build).run()


class _Extraction:
    def __init__(self, function: Function, build: Build) -> None:
        self.function, self.build = function, build
        self.effects: Effects = effects_of(function)
        self.live = Liveness()
        self.live.before(function.body)
        params = [var.name for var in function.params]
        everything = (stmt for stmt in traversal.statements(function.body))
        self.names = NameSupply([function.name, *params, *(var.name for stmt in everything for var in stmt.targets)])
        self.defined = set(function.params)  # so far, in program order
        self.count = 0

    def run(self) -> Function:
        return traversal.with_body(self.function, self._block(self.function.body))

    def _block(self, block: Block) -> Block:
        return tuple([self._statement(stmt) for stmt in block])

    def _statement(self, stmt: Stmt) -> Stmt:
        found: Stmt | None = None
        if isinstance(stmt, For | While) and _is_over_elements(stmt):
            found = self._call(stmt)
        if found is None:
            self.defined.update(stmt.targets)
            inner = stmt.blocks
            found = traversal.with_blocks(stmt, tuple(map(self._block, inner))) if inner else stmt
        self.defined |= traversal.assigns(stmt)
        return found

    def _call(self, loop: For | While) -> Stmt | None:
        results = sorted(traversal.assigns(loop) & self.live.after[loop], key=lambda var: var.name)
        params = sorted(Liveness().before((loop,), frozenset(results)), key=lambda var: var.name)
        if not all(isinstance(var.type, Array | Scalar) and var in self.defined for var in params):
            return None
        first = {var: Var(self.names.fresh(f"{var.name}_0"), var.type) for var in results}
        given = tuple([first.get(var, var) for var in params])
        body = (*[Assign((var,), before) for var, before in first.items()], loop, Return(tuple(results)))
        separate = Function(
            self.names.fresh(f"{self.function.name}_loop_{self.count + 1}"),
            given,
            body,
            origin=loop.origin,
            globals=self.function.globals,
            tapes=tuple(tape for tape in self.function.tapes if tape in given),
            shared=self._shared(params, first),
            computed=given,
        )
        built = self.build(separate)
        if built is None:
            return None
        self.count += 1
        call = Call(_named(built, separate, results), tuple(params), (), TupleOf(tuple([var.type for var in results])))
        if not results:
            return Effect(call, loop.origin)
        value = call if len(results) > 1 else replace(call, type=results[0].type)
        return Assign(tuple(results), value, loop.origin)

    def _shared(self, params: list[Var], first: dict[Var, Var]) -> tuple[frozenset[Var], ...]:
        """The pairs of parameters that may share memory."""
        arrays = [var for var in params if isinstance(var.type, Array)]
        pairs = (
            frozenset({first.get(a, a), first.get(b, b)})
            for k, a in enumerate(arrays)
            for b in arrays[k + 1 :]
            if self.effects.may_alias(a, b)
        )
        return tuple(pairs)


def _is_over_elements(loop: For | While) -> bool:
    """Whether a loop reads or writes elements, and does nothing that only Python can do."""
    elements = False
    for stmt in traversal.statements((loop,)):
        if isinstance(stmt, Effect | Push | Pop):
            return False
        for header in stmt.headers:
            if any(intrinsics.changes(func) or isinstance(func, Routine) for func in traversal.callees(header)):
                return False
            elements |= any(isinstance(load.type, Scalar) for load in traversal.loads(header))
        if isinstance(stmt, Store) and stmt.index:
            elements |= all(not isinstance(item, Slice) and isinstance(item.type, Scalar) for item in stmt.index)
    return elements


def _named(built: Callable[..., Any], function: Function, results: list[Var]) -> Callable[..., Any]:
    """The callable under the name of the function; its results have the types that they have in Python."""
    kinds = [
        np.dtype(var.type.dtype).type if isinstance(var.type, Scalar) and not var.type.python else None
        for var in results
    ]

    def call(*args: Any) -> Any:
        found = built(*args)
        values = found if isinstance(found, tuple) else (found,)
        made = [value if kind is None else kind(value) for kind, value in zip(kinds, values, strict=False)]
        return made[0] if len(made) == 1 else tuple(made)

    call.__name__ = call.__qualname__ = function.name
    return call


__all__ = ["extract_loops"]
