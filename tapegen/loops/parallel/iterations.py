"""What the iterations of a loop share: whether they may run in any order and at the same time.

Each iteration may read what no iteration writes, write elements of its own, and add to sums.  A loop is refused on
doubt, with a reason for the user.  Nothing is believed without proof: a loop over `prange` is judged like any other.
"""

from __future__ import annotations

import functools
import operator
from collections.abc import Hashable, Sequence, Set
from dataclasses import dataclass
from typing import Any

import numpy as np

from tapegen.analysis.liveness import Liveness
from tapegen.analysis.memory_access import expressions, is_place, operands, written
from tapegen.ir import intrinsics, traversal
from tapegen.ir.affine import Affine, is_int, linear
from tapegen.ir.nodes import (
    Assign,
    Block,
    Break,
    Call,
    Const,
    Effect,
    Expr,
    For,
    Function,
    If,
    Load,
    Return,
    Routine,
    Slice,
    Stmt,
    Store,
    Var,
)
from tapegen.ir.types import Array, ListOf, Scalar, is_floating
from tapegen.loops.analysis.dependence import alias_sets
from tapegen.loops.analysis.flow_facts import FlowFacts
from tapegen.loops.analysis.loop_liveness import Surroundings, is_only_name, read_after
from tapegen.loops.analysis.rounding_sensitive import deciding
from tapegen.loops.analysis.symbolic_bounds import SymbolicBounds
from tapegen.loops.parallel.chunk_tapes import Stack, stacks_of
from tapegen.loops.parallel.disjoint import Iterations, Place
from tapegen.loops.parallel.scratch import own_array


@dataclass(frozen=True)
class Shared:
    """What the iterations of a loop share beside what they only read.

    Attributes
    ----------
    sums : tuple of Var
        Scalars that they add to.
    totals : tuple of Var
        Arrays that they add to, anywhere.
    scratch : tuple of (Var, callable)
        Arrays from before the loop of which each chunk has its own, and how it makes that: see `scratch.own_array`.
    stacks : tuple of Stack
        Tapes that they extend.
    """

    sums: tuple[Var, ...] = ()
    totals: tuple[Var, ...] = ()
    scratch: tuple[tuple[Var, Any], ...] = ()
    stacks: tuple[Stack, ...] = ()


class Dependent(Exception):
    """The iterations of a loop must run in order, or their independence is not proved.

    Attributes
    ----------
    reason : str
        Why, as the end of the sentence "this loop runs in one thread: ...".
    """

    def __init__(self, reason: str) -> None:
        super().__init__(reason)
        self.reason = reason


@dataclass(frozen=True)
class _Access(Place):
    """An access of an array by an iteration; axes behind the last index are accessed as a whole."""

    adds: bool


def shared_by_iterations(function: Function, loop: For, around: Surroundings, facts: FlowFacts) -> Shared:
    """What the iterations of a loop share.

    Parameters
    ----------
    function : Function
        A program without array statements.
    loop : For
        One of its loops.
    around : Surroundings
        The blocks around the loop.
    facts : FlowFacts
        The facts before it.

    Raises
    ------
    Dependent
        If they may not run in any order.
    """
    return _Iterations(function, loop, around, facts).shared()


class _Iterations:
    def __init__(self, function: Function, loop: For, around: Surroundings, facts: FlowFacts) -> None:
        self.function, self.loop, self.around, self.facts = function, loop, around, facts
        self.memory = alias_sets(function)
        self.inside = traversal.statements(loop.body)
        self.assigned = traversal.assigned_in(*loop.body)
        self.later = read_after(around)
        self.integers = _definitions(self.inside)
        self.stacks = stacks_of(loop)
        self.views: dict[Var, tuple[Var, tuple[Any, ...]]] = {}  # parts of arrays from before: the array, the index
        self.accesses: dict[Var, list[_Access]] = {}  # of arrays from before the loop

    @functools.cached_property
    def deciding(self) -> set[Var]:
        """Variables whose value must not change in the last bit."""
        return deciding(self.function, self.memory)

    def shared(self) -> Shared:
        """See `shared_by_iterations`."""
        self._refuse_statements()
        sums = self._sums()
        for stmt in self.inside:
            self._note(stmt)
        stored = {array for array, found in self.accesses.items() if any(access.writes for access in found)}
        self.varying = {self.loop.target, *self.assigned, *stored}
        self._refuse_other_names(stored)
        totals, scratch = [], []
        for array in sorted(stored, key=lambda var: var.name):
            found = self.accesses[array]
            if self._is_separate(found) or self._never_meet(found, stored):
                continue
            if all(access.adds for access in found) and _may_be_total(array):
                if self.memory.group(array) in self.deciding:
                    raise Dependent(f"a decision depends on the rounding of what it adds to '{array.name}'")
                totals.append(array)
            elif (make := self._own(array)) is not None:
                scratch.append((array, make))
            else:
                raise Dependent(f"an iteration may access elements of '{array.name}' that another one writes")
        return Shared(sums, tuple(totals), tuple(scratch), self.stacks)

    # ---- statements ----

    def _refuse_statements(self) -> None:
        loop = self.loop
        if not isinstance(loop.step, Const):
            raise Dependent("its step is not known")
        if _breaks(loop.body):
            raise Dependent("an iteration may end it")
        if loop.target in self.later or loop.target in self.assigned:
            raise Dependent(f"'{loop.target.name}' is used after it")
        for stmt in self.inside:
            if isinstance(stmt, (Effect, Return)):
                name = getattr(getattr(getattr(stmt, "call", None), "func", None), "__name__", "a function")
                raise Dependent(f"it calls {name}, whose effects have an order")
            for header in stmt.headers:
                for var in traversal.free_vars(header):
                    if not isinstance(var.type, (Scalar, Array, ListOf)):
                        raise Dependent(f"it uses '{var.name}', whose effects have an order")
                for part in traversal.subexpressions(header):
                    if isinstance(part, Call) and not _is_pure(part.func):
                        raise Dependent(f"it calls {getattr(part.func, '__name__', 'a function')}")

    # ---- scalars ----

    def _sums(self) -> tuple[Var, ...]:
        """The scalars to which iterations add; others live in one iteration only."""
        lasting = (Liveness().before(self.loop.body) | self.later) & self.assigned
        lasting = lasting.difference(*(stack.variables for stack in self.stacks))
        found = []
        for var in sorted(lasting, key=lambda var: var.name):
            if not self._is_sum(var):
                if self._records_on:
                    raise Dependent("its iterations record as many values as they happen to take")
                raise Dependent(f"'{var.name}' keeps its value from one iteration to the next")
            if var in self.deciding and not is_int(var):
                raise Dependent(f"a decision depends on the rounding of '{var.name}'")
            found.append(var)
        return tuple(found)

    @property
    def _records_on(self) -> bool:
        """Whether iterations record on tapes that grow: where one begins, another one has ended."""
        growing = {
            stmt.targets[0]
            for stmt in traversal.statements(self.function.body)
            if isinstance(stmt, Assign) and isinstance(stmt.value, Call) and stmt.value.func is intrinsics.grown
        }
        return any(var in growing for stmt in self.inside for var in traversal.reads(stmt))

    def _is_sum(self, var: Var) -> bool:
        """Whether iterations only add to a scalar."""
        if not isinstance(var.type, Scalar) or var.type.dtype == "bool":
            return False
        for stmt in self.inside:
            if var in stmt.targets:
                match stmt:
                    case Assign((_,), Call(operator.add | operator.sub, (first, value))) if (
                        first == var and var not in traversal.free_vars(value)
                    ):
                        continue
                return False
            if any(var in traversal.free_vars(header) for header in stmt.headers):
                return False
        return True

    # ---- arrays ----

    def _note(self, stmt: Stmt) -> None:
        """Note the accesses of a statement."""
        for array, index, writes, adds in _accesses(stmt):
            base, front = self.views.get(array, (array, ()))
            if base not in self.assigned:
                whole = front if any(isinstance(item, Slice) for item in front) else (*front, *index)
                self.accesses.setdefault(base, []).append(_Access(stmt, whole, writes, adds))
        if isinstance(stmt, Assign) and isinstance(stmt.value, Load) and is_place(stmt.targets[0]):
            self._note_view(stmt.targets[0], stmt.value)

    def _note_view(self, target: Var, load: Load) -> None:
        """A part of an array, if it has one name: its accesses are those of the array."""
        basic = all(isinstance(item, Slice) or isinstance(item.type, Scalar) for item in load.index)
        if basic and sum(target in stmt.targets for stmt in self.inside) == 1:
            base, front = self.views.get(load.array, (load.array, ()))
            whole = (
                front if any(isinstance(item, Slice) for item in front) else (*front, *map(self._steady, load.index))
            )
            self.views[target] = base, whole

    def _steady(self, item: Any) -> Any:
        """An index that has one value in an iteration, in terms of the counter; any other as a slice."""
        if isinstance(item, Slice):
            return item
        value = traversal.substitute(item, self.integers)
        return value if traversal.free_vars(value).isdisjoint(self.assigned) else Slice()

    def _refuse_other_names(self, stored: Set[Var]) -> None:
        """Refuse a loop that may access an array it writes under another name."""
        written_groups = {self.memory.group(var) for stmt in self.inside for var in _written(stmt)}
        outer = {var for stmt in self.inside for var in traversal.reads(stmt) if is_place(var)} - self.assigned
        for var in sorted(filter(is_place, self.assigned), key=lambda var: var.name):
            for other in outer:
                group = self.memory.group(var)
                if group == self.memory.group(other) and group in written_groups and var not in self.views:
                    raise Dependent(f"'{var.name}' may share memory with '{other.name}'")
        for array in stored:
            for other in outer:
                if array == other or self.memory.group(array) != self.memory.group(other):
                    continue
                if not is_only_name(array, self.around) and not is_only_name(other, self.around):
                    raise Dependent(f"'{array.name}' may share memory with '{other.name}'")

    def _is_separate(self, found: Sequence[_Access]) -> bool:
        """Whether all accesses have one index on some axis, which differs between iterations."""
        for axis in range(min(len(access.index) for access in found)):
            forms = {self._form(access.index[axis]) for access in found}
            if len(forms) == 1 and None not in forms:
                return True
        return False

    def _own(self, array: Var) -> Any:
        return own_array(self.function, self.loop, self.around, self.within, array)

    @functools.cached_property
    def within(self) -> SymbolicBounds:
        """The facts in any iteration."""
        return self.facts.body(self.loop).facts

    def _never_meet(self, found: Sequence[_Access], stored: Set[Var]) -> bool:
        """Whether no iteration accesses an element that another one writes, by what is known of integers."""
        return Iterations(self.loop, self.within, stored).never_meet(found)

    def _form(self, item: Any) -> Affine[Expr] | None:
        """An index that differs between iterations and is the same within one, in terms of the counter."""
        if isinstance(item, Slice) or not is_int(item):
            return None
        form = linear(traversal.substitute(item, self.integers))
        rest = form.without(self.loop.target)
        return form if form.coefficient(self.loop.target) and rest.names.isdisjoint(self.varying) else None


# ---- queries ---------------------------------------------------------------------------------------------------------


def _accesses(stmt: Stmt) -> list[tuple[Var, tuple[Any, ...], bool, bool]]:
    """What a statement itself accesses: array, index, whether it writes, whether it adds."""
    found = [(array, index, False, False) for expr in expressions(stmt) for array, index in operands(expr)]
    if isinstance(stmt, Store):
        return [*found, (stmt.array, stmt.index, True, stmt.accumulate)]
    return [*found, *((array, (), True, False) for array in written(stmt))]


def _written(stmt: Stmt) -> Sequence[Var]:
    return (stmt.array,) if isinstance(stmt, Store) else written(stmt)


def _breaks(block: Block) -> bool:
    """Whether a loop's body contains a Break of the loop itself."""
    for stmt in block:
        if isinstance(stmt, Break) or (isinstance(stmt, If) and (_breaks(stmt.body) or _breaks(stmt.orelse))):
            return True
    return False


def _definitions(inside: Sequence[Stmt]) -> dict[Var, Expr]:
    """Integers of an iteration by their definitions, where there is one, which reads no array."""
    often: dict[Var, int] = {}
    for stmt in inside:
        for target in stmt.targets:
            often[target] = often.get(target, 0) + 1
    found: dict[Var, Expr] = {}
    for stmt in inside:
        if isinstance(stmt, Assign) and len(stmt.targets) == 1 and often[stmt.targets[0]] == 1:
            (target,), value = stmt.targets, stmt.value
            if is_int(target) and is_int(value) and not traversal.loads(value):
                value = traversal.substitute(value, found)
                if target not in traversal.free_vars(value):
                    found[target] = value
    return found


def _may_be_total(array: Var) -> bool:
    type_ = array.type
    return isinstance(type_, Array) and is_floating(type_) and (type_.rank == 0 or type_.layout == "C")


_ORDERED: frozenset[Any] = intrinsics.CHANGING | {intrinsics.append, intrinsics.set_item, intrinsics.tell, print}
_KNOWN = frozenset({"numpy", "scipy", "math", "cmath", "builtins", "operator", "_operator", "tapegen"})


def _is_pure(func: Any) -> bool:
    """Whether calls of a function have no effect, and may be made by several threads."""
    if isinstance(func, Routine):
        return not func.by_chunks
    if not isinstance(func, Hashable) or func in _ORDERED or intrinsics.tells(func):
        return False
    if hasattr(func, "__self__") and not isinstance(func.__self__, (type, np.ufunc, type(np))):
        return False  # a method of a generator
    module = getattr(func, "__module__", None) or type(func).__module__
    return module.partition(".")[0] in _KNOWN and not module.startswith("numpy.random")
