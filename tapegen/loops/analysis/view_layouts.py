"""View or copy by layout: where a program can observe the difference, and what numba would choose.

NumPy considers the strides that an array has at run time.  numba decides by the type of the variable: an array in C
order for NumPy may be in another order there where its sizes are 1, and a variable with several layouts has any.
Where a store makes the difference visible, compiled code may contain a reshape only if it is a view for both.
"""

from __future__ import annotations

from functools import cached_property
from itertools import permutations
from typing import Any

import numpy as np

from tapegen.analysis.liveness import Liveness
from tapegen.analysis.memory_access import content_reads, is_one_of, is_place, list_stores, sources, written
from tapegen.ir import intrinsics, traversal
from tapegen.ir.nodes import Assign, Call, Const, Expr, Function, Load, Slice, Stmt, Tuple, Var
from tapegen.ir.types import Array
from tapegen.loops.legalize.registry import LAZY
from tapegen.loops.legalize.scalar_ops import OPERATIONS

_SAME: frozenset[Any] = frozenset({np.asarray, np.asanyarray, np.real})
_ARRANGED: frozenset[Any] = frozenset(
    {
        intrinsics.transpose_view,
        np.transpose,
        np.permute_dims,
        np.matrix_transpose,
        np.swapaxes,
        np.moveaxis,
        np.rollaxis,
    }
    | {np.expand_dims, np.squeeze}
)
_ALLOCATED: frozenset[Any] = frozenset(
    {np.zeros, np.ones, np.empty, np.empty_like, np.full, np.concatenate, np.stack, np.array}
)


class Reshapes:
    """Facts about one function, computed on demand."""

    def __init__(self, function: Function) -> None:
        self.function = function

    def shows(self, stmt: Stmt | None) -> bool:
        """Whether the program can observe that an assigned value is a view of its source, or a copy.

        It can where one of the two is read after a store into the other.
        """
        if not isinstance(stmt, Assign):
            return False
        given = next((made for made in self._moves if made[0] is stmt), None)
        if given is None:
            return False
        group = self._reached(set(given[2]), both_ways=True)
        stores = [(store, group.intersection(written(store))) for store in self._stores]
        if not any(names for _, names in stores):
            return False
        views = self._reached(set(given[1]))
        others = self._reached(group - views, through=stmt)
        for store, names in stores:
            live = self._live.after.get(store, frozenset()) if names else frozenset()
            if (names & views and live & others) or (names & others and live & views):
                return True
        return False

    def in_rows(self, array: Expr) -> Expr | None:
        """An array of the same memory that is in C order for NumPy and for numba; None where there is none.

        Axes of size 1 may be anywhere: where an array and its transpose are both in C order, so are their elements.
        """
        while getattr(array.type, "layout", "") == "C":
            if self._layout(array, self._layouts) == "C":
                return array
            made = self._made_once.get(array) if isinstance(array, Var) else array
            if not isinstance(made, Call) or not is_one_of(made.func, _ARRANGED):
                break
            array = made.args[0]
            if isinstance(array, Var) and array not in self._made_once and array not in self.function.params:
                break
        return None

    # ---- computed once -----------------------------------------------------------------------------------------------

    @cached_property
    def _moves(self) -> list[tuple[Stmt | None, list[Var], list[Var]]]:
        """The statements that pass memory on, with the variables that get it and those it comes from."""
        shared = [pair for group in self.function.shared for pair in permutations(group, 2)]
        found: list[tuple[Stmt | None, list[Var], list[Var]]] = [(None, [a], [b]) for a, b in shared]
        for stmt in traversal.statements(self.function.body):
            if isinstance(stmt, Assign):
                targets = [target for target in stmt.targets if is_place(target)]
                if targets and (given := list(sources(stmt.value))):
                    found.append((stmt, targets, given))
            found += [(stmt, [sequence], [item]) for sequence, item in list_stores(stmt)]
        return found

    @cached_property
    def _stores(self) -> list[Stmt]:
        return [stmt for stmt in traversal.statements(self.function.body) if written(stmt)]

    @cached_property
    def _live(self) -> Liveness:
        # the caller sees the final contents of its arrays
        live = Liveness(content_reads, at_return=frozenset(filter(is_place, self.function.params)))
        live.before(self.function.body)
        return live

    @cached_property
    def _given(self) -> dict[Var, list[Expr]]:
        """The values assigned to each array."""
        found: dict[Var, list[Expr]] = {}
        for stmt in traversal.statements(self.function.body):
            if isinstance(stmt, Assign):
                items = stmt.value.items if isinstance(stmt.value, Tuple) else (stmt.value,)
                if len(items) != len(stmt.targets):
                    items = (Const(None),) * len(stmt.targets)
                for target, item in zip(stmt.targets, items, strict=True):
                    if isinstance(target.type, Array):
                        found.setdefault(target, []).append(item)
        return found

    @cached_property
    def _made_once(self) -> dict[Var, Expr]:
        params = set(self.function.params)
        return {var: values[0] for var, values in self._given.items() if len(values) == 1 and var not in params}

    @cached_property
    def _layouts(self) -> dict[Var, str]:
        """By variable; the largest solution, since a loop may pass an array on from iteration to iteration."""
        found = {var: var.type.layout for var in self.function.params if isinstance(var.type, Array)}
        changed = True
        while changed:
            changed = False
            for var, values in self._given.items():
                each = {self._layout(value, found, var.type) for value in values} - {""}  # type: ignore[arg-type]
                both = each | ({found[var]} if var in found else set())
                new = next(iter(both)) if len(both) == 1 else "A" if both else ""
                if new and found.get(var) != new:
                    found[var] = new
                    changed = True
        return found

    def _layout(self, expr: Expr, found: dict[Var, str], type_: Array | None = None) -> str:
        """By variables of known layout; "" where it is not known yet.  A new array has the layout of its variable."""
        if not isinstance(expr.type, Array):
            return "A"
        new = type_ or expr.type
        match expr:
            case Var():
                return found.get(expr, "")
            case Load(array, index):
                return self._of_part(found.get(array, ""), index)
            case Call(intrinsics.transpose_view, (array,)) | Call(np.transpose, (array,), ()):
                inner = self._layout(array, found)
                return inner if expr.type.rank < 2 else {"C": "F", "F": "C"}.get(inner, inner)
            case Call(func, (array, *_)) if is_one_of(func, _ARRANGED) and _is_vector(array) and _is_vector(expr):
                return self._layout(array, found)
            case Call(np.reshape | np.ravel):
                return "C"
            case Call(func, (array, *_)) if func in _SAME and isinstance(array.type, Array):
                return self._layout(array, found)
            case Call(func) if func in OPERATIONS or func in _ALLOCATED:
                return "F" if new.layout == "F" and new.rank > 1 else "C"
            case Call(func) if func in LAZY and not any(sources(expr)):
                return "F" if new.layout == "F" and new.rank > 1 else "C"
        return "A"

    @staticmethod
    def _of_part(base: str, index: tuple[Expr | Slice, ...]) -> str:
        """For a part of an array: C order is kept by integers followed by a slice."""
        if any(not isinstance(item, Slice) and isinstance(item.type, Array) for item in index):
            return "C"
        if not index:
            return base
        *front, last = index
        leads = not any(isinstance(item, Slice) or item == Const(None) for item in front) and last != Const(None)
        keeps = leads and (not isinstance(last, Slice) or last.step is None)
        return base if base in ("", "C") and keeps else "A"

    def _reached(self, names: set[Var], *, both_ways: bool = False, through: Stmt | None = None) -> set[Var]:
        """These variables and those that get their memory, or had it before; not by way of one statement."""
        found = set(names)
        count = 0
        while len(found) > count:
            count = len(found)
            for stmt, targets, given in self._moves:
                if stmt is through and stmt is not None:
                    continue
                if not found.isdisjoint(given):
                    found.update(targets)
                if both_ways and not found.isdisjoint(targets):
                    found.update(given)
        return found


def _is_vector(expr: Expr) -> bool:
    return isinstance(expr.type, Array) and expr.type.rank == 1
