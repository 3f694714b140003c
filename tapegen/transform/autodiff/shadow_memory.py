"""Shadow memory: arrays whose aliasing is known only at run time, with cotangent arrays that the forward sweep creates.

The reverse sweep follows views and moves that it knows statically.  Two names may share memory on some paths only
(`b = a if c else z`, then `b[0] = x`, then `a` is read), a reshape may or may not copy, and arrays may be items of a
list: then aliasing is known only at run time.  Such arrays are *shadowed*: the forward sweep creates an array of
zeros for each of them, and applies to the shadow arrays what the program does with the references: views of them,
moves, merges, items of lists.  The shadow array of a variable is then its cotangent, and the shadow arrays of
variables that share memory share memory too.  A shadow array is zero outside the backward sweep.
"""

from __future__ import annotations

from collections.abc import Iterable, Set
from dataclasses import dataclass, field, replace

import numpy as np

from tapegen.analysis.alias_conflicts import Conflict, refusal_of
from tapegen.analysis.memory_access import components, moves, viewed
from tapegen.errors import AliasError
from tapegen.ir import intrinsics, traversal
from tapegen.ir.names import NameSupply, bar_name
from tapegen.ir.nodes import (
    Assign,
    Block,
    Call,
    Effect,
    Expr,
    Function,
    If,
    Load,
    Stmt,
    Tuple,
    Var,
)
from tapegen.ir.types import BOOL, Array, ListOf, is_floating


@dataclass(frozen=True, slots=True)
class ShadowArrays:
    """What `insert_shadows` returns besides the program.

    Attributes
    ----------
    of : dict
        Shadowed Var -> the Var that denotes its shadow array at the same point of the program.
    made : frozenset of Var
        Shadow arrays that are created where they are assigned; recomputing the assignment would create other ones.
    shares : dict
        Assign of a variable that is a view or a copy -> the Var that is true where it is a view.
    groups : tuple of frozenset of Var
        Shadow arrays that may share memory.
    """

    of: dict[Var, Var] = field(default_factory=dict)
    made: frozenset[Var] = frozenset()
    shares: dict[Stmt, Var] = field(default_factory=dict)
    groups: tuple[frozenset[Var], ...] = ()


def add_shadows(
    function: Function, conflicts: Iterable[Conflict], active: Set[Var], merges: Set[Var], names: NameSupply
) -> tuple[Function, ShadowArrays]:
    """Insert shadow arrays for the arrays whose aliasing is known only at run time.

    Parameters
    ----------
    function : Function
        The program that `reverse` will see.
    conflicts : iterable of Conflict
        Stores that another variable may see.
    active : set of Var
        Variables that carry a derivative.
    merges : set of Var
        Variables with several Assigns.
    names : NameSupply
        Supply of fresh names.
    """
    group_of = dict(components(function))
    wanted: dict[Var, Conflict | None] = {}
    for conflict in conflicts:
        wanted.setdefault(group_of[conflict.stored], conflict)
    for var in group_of:
        if isinstance(var.type, ListOf) and isinstance(var.type.item, Array):
            wanted.setdefault(group_of[var], None)
    live = {group_of[var] for var in active if var in group_of}
    members: dict[Var, list[Var]] = {}
    for var, group in group_of.items():
        if group in wanted and group in live and is_floating(var.type):
            members.setdefault(group, []).append(var)
    if not members:
        return function, ShadowArrays()
    for group, found in members.items():
        if any(not isinstance(var.type.item if isinstance(var.type, ListOf) else var.type, Array) for var in found):
            raise _refusal(wanted[group], found)
    writer = _Writer({var for found in members.values() for var in found}, merges, names, wanted, group_of)
    body = writer.block(function.body)
    params = [param for param in function.params if param in writer.of]
    reshaped = {group_of[var] for stmt in writer.shares for var in stmt.targets}
    head = [Assign((writer.of[param],), _zeros(param, beside=group_of[param] in reshaped)) for param in params]
    made = writer.made | {writer.of[param] for param in params}
    groups: dict[Var, set[Var]] = {}
    for var, other in writer.of.items():
        groups.setdefault(group_of.get(var, var), set()).add(other)
    result = replace(function, body=(*head, *body))
    return result, ShadowArrays(writer.of, frozenset(made), writer.shares, tuple(map(frozenset, groups.values())))


def _refusal(conflict: Conflict | None, found: list[Var]) -> AliasError:
    if conflict is None:
        return AliasError(
            f"'{found[0].name}' may share memory with the items of a list in a way that cannot be followed.",
            "Put copies into the list (items.append(x.copy())).",
        )
    return refusal_of(conflict)


def _zeros(var: Var, *, beside: bool = False) -> Expr:
    beside = beside and isinstance(var.type, Array) and var.type.layout != "C"
    return Call(intrinsics.zeros_beside if beside else np.zeros_like, (var,), (), var.type)


class _Writer:
    """Adds the shadow arrays to the forward program."""

    def __init__(
        self,
        members: Set[Var],
        merges: Set[Var],
        names: NameSupply,
        wanted: dict[Var, Conflict | None],
        group_of: dict[Var, Var],
    ) -> None:
        self.merges, self.names, self.wanted, self.group_of = merges, names, wanted, group_of
        self.of: dict[Var, Var] = {}
        self.made: set[Var] = set()
        self.shares: dict[Stmt, Var] = {}
        for var in sorted(members, key=lambda v: v.name):
            self.of[var] = Var(names.fresh(bar_name(var.name)), var.type)

    def block(self, block: Block) -> Block:
        out: list[Stmt] = []
        for stmt in block:
            match stmt:
                case Assign() if any(target in self.of for target in stmt.targets):
                    out += self._assign(stmt)
                case Effect(
                    Call(intrinsics.append | intrinsics.set_item, (Var() as sequence, *index, item), _, type_)
                ) if sequence in self.of:
                    assert isinstance(item, Var)
                    out.append(stmt)
                    out.append(Effect(Call(stmt.call.func, (self.of[sequence], *index, self.of[item]), (), type_)))
                case _:
                    inner = tuple(self.block(part) for part in stmt.blocks)
                    out.append(traversal.with_blocks(stmt, inner) if inner else stmt)
        return tuple(out)

    def _assign(self, stmt: Assign) -> list[Stmt]:
        """An Assign with its shadows; a merge takes its value from another variable, which has its own shadow array."""
        items = stmt.value.items if isinstance(stmt.value, Tuple) else (stmt.value,)
        if len(items) == len(stmt.targets):
            before: list[Stmt] = []
            values: list[Expr] = []
            for target, item in zip(stmt.targets, items, strict=True):
                if target in self.of and not isinstance(item, Var) and (target in self.merges or len(items) > 1):
                    fresh = self._fresh(target)
                    before += self._assign(Assign((fresh,), item, stmt.origin))
                    item = fresh
                values.append(item)
            pairs = [(t, v) for t, v in zip(stmt.targets, values, strict=True) if t in self.of]
            if before or all(isinstance(value, Var) for _, value in pairs):
                value = values[0] if len(values) == 1 else Tuple(tuple(values))
                moved = Assign(stmt.targets, value, stmt.origin) if before else stmt
                return [*before, moved, self._latch(pairs)]
        if len(stmt.targets) > 1:
            borrowed = [target for target, move in moves(stmt) if move.sources and target in self.of]
            if borrowed:
                raise _refusal(self.wanted[self.group_of[borrowed[0]]], list(stmt.targets))
            return [stmt, *(self._make(target) for target in stmt.targets if target in self.of)]
        return [stmt, *self._one(stmt, stmt.targets[0], stmt.value)]

    def _fresh(self, like: Var) -> Var:
        fresh = Var(self.names.fresh(like.name), like.type)
        self.of[fresh] = Var(self.names.fresh(bar_name(fresh.name)), fresh.type)
        self.group_of[fresh] = self.group_of[like]
        return fresh

    def _latch(self, pairs: list[tuple[Var, Expr]]) -> Assign:
        targets = tuple(self.of[target] for target, _ in pairs)
        values = tuple(self.of[value] for _, value in pairs)  # type: ignore[index]
        return Assign(targets, values[0] if len(values) == 1 else Tuple(values))

    def _make(self, target: Var) -> Assign:
        self.made.add(self.of[target])
        return Assign((self.of[target],), _zeros(target))

    def _one(self, stmt: Assign, target: Var, value: Expr) -> list[Stmt]:
        """The expression that creates the shadow array of a variable with one value."""
        mine = self.of[target]
        ((_, move),) = moves(stmt)
        if isinstance(value, Call) and value.func is intrinsics.primal_as:
            return [self._make(target)]  # the derivative goes to the formula
        if isinstance(value, Call) and value.func is intrinsics.new_list:
            self.made.add(mine)
            return [Assign((mine,), traversal.substitute(value, dict(self.of)))]
        if not move.sources:
            return [self._make(target)]
        if not isinstance(value, (Load, Call)) or not all(source in self.of for source in move.sources):
            raise _refusal(self.wanted[self.group_of[target]], [target])
        if isinstance(value, Call) and value.func in (intrinsics.item, intrinsics.pop, intrinsics.ifelse):
            self.made.add(mine)
            args = tuple(self.of.get(arg, arg) if isinstance(arg, Var) else arg for arg in value.args)
            return [Assign((mine,), replace(value, args=args))]
        if viewed(value) is not None and not (isinstance(value, Call) and value.func in intrinsics.READ_ONLY_VIEWS):
            return [Assign((mine,), self._view(value))]
        if isinstance(value, Call) and move.fresh and value.func in intrinsics.VIEW_CALLS:
            return self._view_or_copy(stmt, target, value)
        raise _refusal(self.wanted[self.group_of[target]], [target])

    def _view(self, value: Load | Call) -> Expr:
        """The view of the shadow array that corresponds to the view `value` of the array."""
        if isinstance(value, Load):
            return replace(value, array=self.of[value.array])
        base, *rest = value.args
        assert isinstance(base, Var)
        return replace(value, args=(self.of[base], *rest))

    def _view_or_copy(self, stmt: Assign, target: Var, value: Call) -> list[Stmt]:
        """A view of the shadow array if the result is a view of the array, else zeros."""
        base = value.args[0]
        mine = self.of[target]
        shares = self.shares[stmt] = Var(self.names.fresh(f"{target.name}_shares"), BOOL)
        made = Var(self.names.fresh(mine.name), mine.type)
        seen = Var(self.names.fresh(mine.name), mine.type)
        self.made |= {made, mine}
        return [
            Assign((shares,), Call(intrinsics.same_start, (target, base), (), BOOL)),
            If(
                shares,
                (Assign((seen,), self._view(value)), Assign((mine,), seen)),
                (Assign((made,), _zeros(target)), Assign((mine,), made)),
            ),
        ]
