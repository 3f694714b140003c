"""Store-to-load forwarding: what an iteration stores and reads again is a scalar.

A loop that stores the elements of an array and computes with them then has the form of one that computes with scalars:
vector functions know the ranges of the values that vector functions computed.  Legal where no store between the two may
write that element; the element is stored all the same, and in the same order.  Loops without elementary functions are
left to LLVM, which forwards as well.

Before::

    def f(x: "f8[:]", v: "f8[:]"):
        for i in range(x.shape[0]):
            v[i] = np.tanh(x[i])
            x[i] = np.sin(v[i])
        return x

After::

    def f(x, v):
        for i in range(x.shape[0]):
            v_here = np.tanh(x[i])
            v[i] = v_here
            x[i] = np.sin(v_here)
        return x
"""

from __future__ import annotations

import itertools
import operator
from dataclasses import replace
from typing import Any

from tapegen.ir import traversal
from tapegen.ir.nodes import Assign, Call, Const, Expr, Function, Load, Stmt, Store, Var
from tapegen.ir.types import Scalar
from tapegen.loops.analysis.dependence import Access, LoopNest
from tapegen.loops.analysis.flow_facts import FlowFacts
from tapegen.loops.analysis.loop_visitor import InnermostLoopPass
from tapegen.loops.legalize.precision import dtype_of, stored
from tapegen.loops.vectorize.vector_calls import VECTORS

Element = tuple[Var, tuple[Any, ...]]

_FLOATS = frozenset({"float64", "float32"})


def forward_stores(function: Function) -> Function:
    """The same program with scalars for the elements that an iteration stores and then reads."""
    return traversal.with_body(function, _Forwarding(function).block(function.body))


class _Forwarding(InnermostLoopPass):
    def rewrite(self, nest: LoopNest, before: list[Stmt], outside: FlowFacts) -> list[Stmt]:
        """The loop with scalars for elements that it has stored."""
        (loop,) = nest.loops
        if VECTORS.keys().isdisjoint(itertools.chain.from_iterable(map(traversal.calls, loop.body))):
            return [nest.stmt]  # LLVM forwards as well
        read = {(access.array, access.index) for access in nest.accesses if not access.writes}
        if not any((access.array, access.index) in read for access in nest.accesses if access.writes):
            return [nest.stmt]
        iteration = _Iteration(self)
        for stmt in loop.body:
            iteration.add(stmt)
        return [replace(loop, body=tuple(itertools.chain(*iteration.out))) if iteration.has_changed else nest.stmt]


class _Iteration:
    """One iteration, statement by statement.

    Attributes
    ----------
    out : list of list of Stmt
        What has become of each statement.
    has_changed : bool
        Whether anything was read that has been stored.
    """

    def __init__(self, owner: _Forwarding) -> None:
        self.owner = owner
        self.out: list[list[Stmt]] = []
        self.has_changed = False
        self._stored: dict[Element, Expr | int] = {}  # the scalar in an element, or the place of its store in `out`

    def add(self, stmt: Stmt) -> None:
        """Add a statement, with scalars for what has been stored."""
        new = traversal.map_headers(stmt, lambda header: traversal.map_expr(header, self._forwarded))
        self.out.append([new])
        changed = {*stmt.targets}
        self._stored = {
            element: value
            for element, value in self._stored.items()
            if value not in changed and changed.isdisjoint(itertools.chain(*map(traversal.free_vars, element[1])))
        }
        if isinstance(new, Store):
            self._hold(new)

    def _hold(self, store: Store) -> None:
        access = Access(store.array, store.index, True)  # type: ignore[arg-type]
        self._stored = {
            element: value for element, value in self._stored.items() if not self.owner.may_alias(*element, access)
        }
        dtype = store.array.type.dtype  # type: ignore[union-attr]
        if dtype not in _FLOATS or any(traversal.loads(item) for item in access.index):
            return
        if isinstance(store.value, Const) or dtype_of(store.value) != dtype:
            return  # the array converts it
        place = len(self.out) - 1
        is_scalar = isinstance(store.value, Var) and not store.accumulate
        self._stored[access.array, access.index] = store.value if is_scalar else place

    def _forwarded(self, part: Any) -> Any:
        """The scalar in an element that has been stored."""
        if not isinstance(part, Load) or (value := self._stored.get((part.array, part.index))) is None:
            return part
        self.has_changed = True
        if not isinstance(value, int):
            return value
        (store,) = self.out[value]
        assert isinstance(store, Store)
        dtype = dtype_of(part)
        number = Var(self.owner.names.fresh(f"{part.array.name}_here"), Scalar(dtype, False))
        total = Call(operator.add, (part, store.value), (), number.type) if store.accumulate else store.value
        self.out[value] = [
            Assign((number,), stored(total, dtype), store.origin),
            replace(store, value=number, accumulate=False),
        ]
        self._stored[part.array, part.index] = number
        return number
