"""Selection frontiers: where a cotangent left the last selection, so that its zeros are selected or computed.

A zero is *selected* where the program discards a value (a choice, a slice, a mask, a store over it, a branch that does
not run) or multiplies it by a factor without derivative.  Such a zero wins over an infinite partial.  All other zeros
are computed, and a product with them is a plain product.  Between the last selection and a value there are only
products, so the cotangent right after that selection was reversed, the *frontier* of the value, shows if a zero was
selected.
"""

from __future__ import annotations

import builtins
import itertools
import math
import operator
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from enum import Enum, auto
from typing import Any

import numpy as np

from tapegen.analysis.activity import active_operands
from tapegen.analysis.interval_arithmetic import DIVISIONS, EXPONENTIALS, POWERS, PRODUCTS
from tapegen.analysis.masked_values import CHOOSING, is_nonzero
from tapegen.analysis.scopes import Scope, Scopes
from tapegen.analysis.shape_inference import Shapes
from tapegen.analysis.side_effects import Effects
from tapegen.ir import intrinsics, traversal
from tapegen.ir.nodes import (
    Assign,
    Call,
    Const,
    Effect,
    Expr,
    For,
    Function,
    If,
    Return,
    Routine,
    Stmt,
    Store,
    Tuple,
    Var,
    While,
)
from tapegen.ir.types import Array, Scalar, is_floating
from tapegen.rules.registry import rule_of


@dataclass(frozen=True, slots=True)
class Place:
    """A cotangent that has just left a selection: the contribution of one use, or of all uses (None)."""

    var: Var
    use: Stmt | None


Frontier = frozenset[Place]
"""A zero is selected where all of these are zero; an empty frontier means never."""

PLAIN: Frontier = frozenset()


class _ZeroTransfer(Enum):
    """How the zeros of a result become those of an operand."""

    EACH = auto()  # element by element, by a partial derivative
    WHOLE = auto()  # each element of the operand contributes to some element of the result
    SELECTION = auto()


DENSE: frozenset[Any] = frozenset(
    {
        *(builtins.sum, np.sum, np.mean, np.prod, np.var, np.std, np.linalg.norm, np.cumsum, np.cumprod),
        *(np.copy, np.reshape, np.ravel, np.transpose, intrinsics.transpose_view, np.swapaxes, np.moveaxis, np.squeeze),
        *(np.expand_dims, np.flip, np.roll, np.asarray, np.array, np.ascontiguousarray, np.concatenate, np.stack),
        *(np.broadcast_to, builtins.float, np.astype, math.prod, math.fsum),
    }
)
MATRIX_PRODUCTS: frozenset[Any] = frozenset(
    {operator.matmul, np.matmul, np.dot, np.vdot, np.inner, np.outer, np.linalg.solve, np.linalg.inv, np.linalg.det}
)
SUMS: frozenset[Any] = frozenset(
    {operator.add, np.add, operator.sub, np.subtract, operator.neg, np.negative, operator.pos, np.positive, np.square}
)
VANISHING: frozenset[Any] = frozenset({*EXPONENTIALS, np.tanh, math.tanh, math.erf, math.erfc})


@dataclass(frozen=True, slots=True)
class _Use:
    """One statement that reads a value; `result` is the result of a call."""

    stmt: Stmt
    way: _ZeroTransfer
    result: Var | None = None
    keeps_growth: bool = False  # sums, products and powers
    is_exponential: bool = False
    vanishes: bool = False  # a result that is zero or constant where the operand is infinite
    is_one_term: bool = True  # its contribution is one expression


@dataclass(slots=True)
class Frontiers:
    """Facts of `frontiers_of`."""

    plain: Mapping[Var, Frontier]
    overflowing: Mapping[Var, Frontier]

    def of(self, var: Var, *, overflow: bool) -> Frontier:
        """The frontier that shows whether a zero cotangent of a value was selected.

        `overflow`: for a partial derivative that is infinite because an exponential overflows (or a product with
        one).  There a zero counts as selected also because a quotient vanishes: `1 / (1 + np.exp(x))` ends in a
        constant, whose derivative is 0.
        """
        return (self.overflowing if overflow else self.plain).get(var, frozenset({Place(var, None)}))


def frontiers_of(
    function: Function, scopes: Scopes, effects: Effects, shapes: Shapes, active: frozenset[Var]
) -> Frontiers:
    """Find where the cotangents of the active values of a lowered program left the last selection."""
    uses = _uses(function, active)
    return Frontiers(*_Search(scopes, effects, shapes, uses).run())


# ---- uses ------------------------------------------------------------------------------------------------------------


def _uses(function: Function, active: frozenset[Var]) -> Mapping[Var, list[_Use]]:
    found: dict[Var, list[_Use]] = defaultdict(list)
    for stmt in traversal.statements(function.body):
        match stmt:
            case Assign(targets, Tuple(items)) if len(items) == len(targets):
                for target, item in zip(targets, items, strict=True):
                    _add(found, _of_value(stmt, (target,), item, active))
            case Assign(targets, value):
                _add(found, _of_value(stmt, targets, value, active))
            case Store(array, _, value) if array in active:
                _add(found, ((var, _Use(stmt, _ZeroTransfer.SELECTION)) for var in active_operands(value)))
            case Effect(call):
                _add(
                    found,
                    ((var, _Use(stmt, _ZeroTransfer.SELECTION, is_one_term=False)) for var in active_operands(call)),
                )
            case Return(values):
                # the caller's cotangents may be zero, unless the result is one scalar
                single = len(values) == 1 and isinstance(values[0].type, Scalar)
                way = _ZeroTransfer.WHOLE if single else _ZeroTransfer.SELECTION
                returned = [var for value in values for var in active_operands(value)]
                _add(found, ((var, _Use(stmt, way, is_one_term=False)) for var in returned))
    return found


def _add(found: dict[Var, list[_Use]], uses: Iterable[tuple[Var, _Use]]) -> None:
    for var, use in uses:
        if use not in found[var]:
            found[var].append(use)


def _of_value(stmt: Stmt, targets: tuple[Var, ...], value: Expr, active: frozenset[Var]) -> Iterator[tuple[Var, _Use]]:
    if not active.intersection(targets):
        return
    if isinstance(value, Var) and len(targets) == 1:
        yield value, _Use(stmt, _ZeroTransfer.EACH, targets[0], keeps_growth=True)
    elif isinstance(value, Call) and len(targets) == 1 and isinstance(targets[0].type, (Array, Scalar)):
        for var in active_operands(value):
            yield var, _of_operand(stmt, targets[0], value, var, active)
    else:
        is_one = isinstance(value, Call) and not isinstance(value.func, Routine)
        yield from ((var, _Use(stmt, _ZeroTransfer.SELECTION, is_one_term=is_one)) for var in active_operands(value))


def _of_operand(stmt: Stmt, target: Var, call: Call, var: Var, active: frozenset[Var]) -> _Use:
    func: Any = call.func
    args = call.args
    rule = rule_of(func) if func is not intrinsics.primal_as else None
    if func is intrinsics.primal_as:
        return _Use(stmt, _ZeroTransfer.EACH, target, keeps_growth=True)
    if func in CHOOSING or (call.kwargs and "where" in dict(call.kwargs)):
        return _Use(stmt, _ZeroTransfer.SELECTION)
    if func in PRODUCTS:
        is_factor = all(arg == var or arg in active or is_nonzero(arg) for arg in args)
        return _Use(
            stmt, _ZeroTransfer.EACH if is_factor else _ZeroTransfer.SELECTION, target if is_factor else None, True
        )
    if func in MATRIX_PRODUCTS:
        dense = all(arg in active for arg in args)
        return _Use(stmt, _ZeroTransfer.WHOLE if dense else _ZeroTransfer.SELECTION, target if dense else None, True)
    if func in DENSE:
        return _Use(stmt, _ZeroTransfer.WHOLE, target, keeps_growth=True)
    if rule is None or rule.kind != "partials":
        return _Use(stmt, _ZeroTransfer.SELECTION)
    inverse = _exponent(call) if func in POWERS else None
    grows = func in SUMS or (inverse is not None and inverse >= 1.0)
    grows = grows or (func in DIVISIONS and args[1] != var)
    vanishes = func is np.reciprocal or (func in DIVISIONS and args[1] == var) or func in VANISHING
    vanishes = vanishes or (inverse is not None and inverse < 0.0)
    return _Use(stmt, _ZeroTransfer.EACH, target, grows, func in EXPONENTIALS, vanishes)


def _exponent(call: Call) -> float | None:
    exponent = call.args[1]
    value = exponent.value if isinstance(exponent, Const) else None
    return float(value) if isinstance(value, (int, float)) else None


# ---- the search ------------------------------------------------------------------------------------------------------


@dataclass(slots=True)
class _Search:
    scopes: Scopes
    effects: Effects
    shapes: Shapes
    uses: Mapping[Var, list[_Use]]
    plain: dict[Var, Frontier] = field(default_factory=dict)
    overflowing: dict[Var, Frontier] = field(default_factory=dict)

    def run(self) -> tuple[dict[Var, Frontier], dict[Var, Frontier]]:
        """The frontiers of all values, from the end of the program to its beginning, until nothing changes."""
        floating = [var for var in self.uses if is_floating(var.type)]
        order = [(var, overflow) for var in reversed(floating) for overflow in (True, False)]
        given_up: set[tuple[Var, bool]] = set()
        for turn in itertools.count():
            changed = False
            for var, overflow in order:
                found = self._found(overflow)
                own = frozenset({Place(var, None)})
                new = own if (var, overflow) in given_up else self._of(var, overflow)
                if new is None or new == found.get(var):
                    continue
                found[var] = new
                changed = True
                if turn >= _MOST or (self.scopes.is_merge(var) and new == own):
                    given_up.add((var, overflow))
            if not changed:
                return self.plain, self.overflowing
        raise AssertionError

    def _found(self, overflow: bool) -> dict[Var, Frontier]:
        return self.overflowing if overflow else self.plain

    def _of(self, var: Var, overflow: bool) -> Frontier | None:
        """The frontier of a value, None as long as nothing is known."""
        own = frozenset({Place(var, None)})
        uses = self.uses[var]
        if isinstance(var.type, Array) and self.effects.is_written(var):
            return own
        if not isinstance(var.type, (Array, Scalar)):
            return own
        groups: dict[int, list[Frontier | None]] = defaultdict(list)
        for use in uses:
            at = self.scopes.at[use.stmt]
            seen = self.scopes.owner_seen_from(var, at)
            groups[id(seen)].append(self._of_use(var, use, at, seen, len(uses) == 1, overflow))
        if not self.scopes.is_merge(var):
            return _any_of(*groups.values()) if len(groups) == 1 else own
        if not self._versions(var) <= groups.keys():
            return own  # the last value, or one of the others, is dead
        known = {one for one in map(_any_of, groups.values()) if one is not None}
        if not known:
            return None
        return known.pop() if len(known) == 1 else own

    def _versions(self, var: Var) -> set[int]:
        """The blocks that must read a phi if each of its values is to be read."""
        found = {id(self.scopes.owner[var])}
        for stmt in self.scopes.assigns[var]:
            found.update([id(scope) for scope in self.scopes.at[stmt].chain if var in scope.carried][:1])
        return found

    def _of_use(self, var: Var, use: _Use, at: Scope, seen: Scope, is_only: bool, overflow: bool) -> Frontier | None:
        own = frozenset({Place(var, None)})
        mine = own if is_only else frozenset({Place(var, use.stmt)})
        runs = _always_runs(at, seen)
        if not runs:
            return own
        if at is not seen or not use.is_one_term:
            mine = own
        if use.way is _ZeroTransfer.SELECTION or (overflow and use.vanishes):
            return mine
        if use.result is None:
            return PLAIN
        # a selection that masks an overflowing exponential masks its exponent, too
        handed = self._found(use.is_exponential or (overflow and use.keeps_growth)).get(use.result)
        if handed is None or handed == PLAIN:
            return handed
        return handed if self._fits(var, use, handed, seen) else mine

    def _fits(self, var: Var, use: _Use, handed: Frontier, seen: Scope) -> bool:
        """Whether a frontier of a result can be tested where its operand is reversed, element by element."""
        assert use.result is not None
        for place in handed:
            if isinstance(place.var.type, Array) and not (
                use.way is _ZeroTransfer.EACH and self._has_equal_shape(var, use.result)
            ):
                return False
            if self.scopes.is_merge(place.var):
                if self.scopes.at[use.stmt] is not seen:
                    return False
            elif not seen.within(self.scopes.owner[place.var]):
                return False
        return True

    def _has_equal_shape(self, var: Var, result: Var) -> bool:
        return isinstance(var.type, Array) and self.shapes.summed_axes(self.shapes.of(result), var) == ()


_MOST = 12
"""After so many rounds a value whose frontier still changes becomes its own frontier."""


def _any_of(group: list[Frontier | None]) -> Frontier | None:
    """The frontier of a value with several uses: a zero is selected where all of them selected it."""
    known = [one for one in group if one is not None]
    if not known:
        return None
    return PLAIN if PLAIN in known else frozenset().union(*known)


def _always_runs(at: Scope, seen: Scope) -> bool:
    """Whether a block runs whenever its parent block does."""
    for scope in at.chain:
        if scope is seen:
            return True
        header = scope.header
        if isinstance(header, (If, While)) or not isinstance(header, For) or not _has_trips(header):
            return False
    return True


def _has_trips(loop: For) -> bool:
    match loop:
        case For(_, Const(int(start)), Const(int(stop)), Const(int(step))) if step:
            return bool(range(start, stop, step))
    return False
