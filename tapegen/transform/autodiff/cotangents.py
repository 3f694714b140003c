"""Cotangent accumulation in one backward sweep: the contributions to each cotangent, and the variable that holds it."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from tapegen.analysis.memory_access import viewed
from tapegen.analysis.selection_frontiers import Place
from tapegen.errors import Span
from tapegen.ir import builders, intrinsics, traversal
from tapegen.ir.names import NameSupply, bar_name
from tapegen.ir.nodes import (
    Assign,
    Call,
    Const,
    Effect,
    Expr,
    For,
    Function,
    Load,
    Stmt,
    Store,
    Tuple,
    Var,
)
from tapegen.ir.types import INT, Array, ListOf, Scalar
from tapegen.transform.analyses import Facts
from tapegen.transform.autodiff.residuals import Residuals
from tapegen.transform.autodiff.shadow_memory import ShadowArrays
from tapegen.transform.autodiff.zero_guards import Guards


@dataclass(slots=True)
class Contribution:
    """One term.

    Attributes
    ----------
    owned : bool
        An array term is fresh or given away, so it may be updated in place under another name.
    origin : Span or None
        The primal statement whose adjoint the term is.
    """

    expr: Expr
    owned: bool
    origin: Span | None = None


@dataclass(slots=True)
class Cotangent:
    """The cotangent of one Var: what `name` holds (if `named`) plus the pending contributions."""

    name: Var
    named: bool = False
    pending: list[Contribution] = field(default_factory=list)

    @property
    def empty(self) -> bool:
        return not self.named and not self.pending


class CotangentMap:
    """Cotangents by the primal value they belong to, and the backward block under construction.

    Parameters
    ----------
    residuals : Residuals
        Reads of primal values.
    reverse_view : callable
        Adds the cotangent of a view to that of its base: `reverse_view(statement, view, call, cotangent)`.
    """

    def __init__(
        self,
        function: Function,
        facts: Facts,
        shadows: ShadowArrays,
        names: NameSupply,
        residuals: Residuals,
        reverse_view: Callable[[Assign, Var, Call, Expr], None],
    ) -> None:
        self.facts, self.scopes, self.effects = facts, facts.scopes, facts.effects
        self.shadows, self.names, self.residuals = shadows.of, names, residuals
        self._reverse_view = reverse_view
        self.active = facts.activity.active | shadows.of.keys()
        self.of: dict[Var, Cotangent] = {}
        self.here: tuple[Stmt, bool] | None = None  # a statement, and whether the backward sweep is still after it
        self.stands_at: dict[Stmt, Stmt] = {}  # parts of moves reversed separately -> statements of the program
        self.flattened = frozenset().union(  # arrays with views that need their elements in C order
            *(facts.effects.roots(var) for var, value in self.residuals.views.items() if _flattens(value))
        )
        self.apart = {  # views whose cotangent is an array of its own
            var: value
            for var, value in self.residuals.views.items()
            if isinstance(value, Call) and value.func in intrinsics.READ_ONLY_VIEWS and var not in self.shadows
        }
        self.shadowed: set[Var] = set()  # views whose cotangent is a view
        self.out: list[Stmt] = []  # the backward block under construction
        self.origin: Span | None = None  # of the primal statement that is being reversed
        self.guards = Guards(function, facts)

    # ---- emitting ----------------------------------------------------------------------------------------------------

    def emit(self, stmt: Stmt, origin: Span | None = None) -> None:
        """Emit an adjoint statement, by default as one of the primal statement that is being reversed."""
        origin = origin or self.origin
        self.out.append(stmt if stmt.origin or not origin else replace(stmt, origin=origin.of_adjoint))

    def emit_block(self, stmts: Iterable[Stmt]) -> None:
        for stmt in stmts:
            self.emit(stmt)

    # ---- cotangents --------------------------------------------------------------------------------------------------

    def cotangent(self, var: Var) -> Cotangent:
        cot = self.of.get(var)
        if cot is None and var in self.shadows:
            cot = self.of[var] = Cotangent(self.shadows[var], named=True)
        if cot is None:
            type_ = var.type
            if isinstance(type_, Array):
                turned = type_.layout == "F" and self._is_flattened(var)
                type_ = replace(type_, layout="F" if turned else "C")
            cot = Cotangent(Var(self.names.fresh(bar_name(var.name)), type_))
            self.of[var] = cot
        return cot

    def contribute(self, var: Var, expr: Expr, *, owned: bool | None = None) -> None:
        """Add a term to the cotangent of a Var; `expr` has the shape of `var`."""
        if builders.is_const(expr, 0.0):
            return
        if isinstance(var.type, (Array, Scalar)):
            expr = builders.fitted(expr, var.type)
        cot = self.cotangent(var)
        if cot.named and isinstance(var.type, Array):
            self.emit(Store(cot.name, (), builders.without_broadcast(expr), accumulate=True))
            return
        cot.pending.append(Contribution(expr, builders.is_fresh(expr) if owned is None else owned, self.origin))

    def _sum(self, cot: Cotangent) -> Expr | None:
        terms = [term.expr for term in cot.pending]
        return builders.add_all(terms) if terms else None

    def origin_of(self, cot: Cotangent) -> Span | None:
        """The primal statement that all pending contributions come from, if it is one."""
        origins = {term.origin for term in cot.pending}
        return origins.pop() if len(origins) == 1 else None

    def materialize(self, var: Var) -> Var:
        """Give the cotangent its name, holding all contributions so far; it may then be updated in place."""
        cot = self.cotangent(var)
        if not cot.named and self._has_shadow(var):
            cot.named = True
            self.shadowed.add(var)
            self.emit(Assign((cot.name,), self._shadow(var)))
        total = None if isinstance(var.type, ListOf) else self._sum(cot)
        origin = self.origin_of(cot)
        is_array = isinstance(var.type, Array)
        if isinstance(var.type, ListOf):
            self._materialize_list(var, cot)
        elif cot.named:
            if total is not None:
                if is_array:
                    self.emit(Store(cot.name, (), builders.without_broadcast(total), accumulate=True), origin)
                else:
                    self.emit(Assign((cot.name,), builders.add(cot.name, total)), origin)
        elif total is None:
            self.emit(Assign((cot.name,), self._zeros(var)))
        elif is_array and self._is_flattened(var):
            # a sum may have the memory order of its terms; the view of the cotangent must be a view too
            self.emit(Assign((cot.name,), self._zeros(var)))
            self.emit(Store(cot.name, (), builders.without_broadcast(total), accumulate=True), origin)
        else:
            total = full(total, var)
            if is_array and not (len(cot.pending) > 1 or cot.pending[0].owned or builders.is_fresh(total)):
                total = builders.copy(total)
            self.emit(Assign((cot.name,), total), origin)
        cot.named = True
        cot.pending = []
        return cot.name

    def _materialize_list(self, var: Var, cot: Cotangent) -> None:
        """The same for a run-time list: contributions through its other names, which have as many items, are added."""
        assert isinstance(var.type, ListOf)
        terms = [term.expr for term in cot.pending]
        if not cot.named and not terms:
            assert self.here is not None
            terms = [builders.zero_items(var.type, self.residuals.length_at(*self.here, var))]
        first, *others = [cot.name, *terms] if cot.named else terms
        if not cot.named:
            self.emit(Assign((cot.name,), first))
        for other in others:
            k = Var(self.names.fresh("k"), INT)
            held, term = (Call(intrinsics.item, (items, k), (), var.type.item) for items in (cot.name, other))
            body: tuple[Stmt, ...] = (Effect(Call(intrinsics.set_item, (cot.name, k, builders.add(held, term)), ())),)
            if isinstance(var.type.item, Array):  # other variables hold the same cotangent
                item_bar = Var(self.names.fresh("item_bar"), var.type.item)
                body = Assign((item_bar,), held), Store(item_bar, (), term, accumulate=True)
            self.emit(For(k, Const(0), Call(len, (cot.name,), (), INT), Const(1), body))

    def _is_flattened(self, var: Var) -> bool:
        return not self.flattened.isdisjoint(self.facts.effects.roots(var))

    def _zeros(self, var: Var) -> Expr:
        """Zeros like a value; where views flatten it, with axes in the same memory order."""
        type_ = var.type
        if not isinstance(type_, Array) or type_.layout != "F" or not self._is_flattened(var):
            return builders.zero_like(var)
        turned = replace(type_, layout="C", unit=type_.unit[::-1])
        shape = tuple(Call(intrinsics.dim, (var, Const(axis)), (), INT) for axis in reversed(range(type_.rank)))
        dtype = () if type_.dtype == "float64" else (Const(getattr(np, type_.dtype)),)
        rows = Var(self.names.fresh("rows"), turned)
        self.emit(Assign((rows,), Call(np.zeros, (Tuple(shape), *dtype), (), turned)))
        return Call(intrinsics.transpose_view, (rows,), (), type_)

    def flush(self, stmt: Stmt) -> None:
        """Add the pending contributions to the memory locations that a statement writes.

        Those contributions are of reads after the statement: they must have been added before the cotangent of what it
        overwrites is cleared, also when they were made through another view of the location.
        """
        roots = frozenset().union(
            *(self.facts.effects.writes.get(inner, frozenset()) for inner in traversal.statements((stmt,)))
        )
        if not roots:
            return
        while True:
            for var, cot in list(self.of.items()):
                if cot.pending and var not in self.apart and self._is_of(var, roots):
                    self.materialize(var)
            found = ((var, self.of.get(var)) for var in self.apart)
            waiting = [var for var, cot in found if cot is not None and not cot.empty and self._is_of(var, roots)]
            if not waiting:
                return
            for var in waiting:
                self._hand_to_base(var)

    def _is_of(self, var: Var, roots: frozenset[str]) -> bool:
        """Whether a name may denote one of these memory locations."""
        return isinstance(var.type, Array) and not roots.isdisjoint(self.effects.roots(var))

    def _hand_to_base(self, var: Var) -> None:
        """Reverse the creation of a view whose cotangent is an array of its own, as if it were created here again."""
        total = self.consume(var)
        stmt, value = self.scopes.assigns[var][0], self.apart[var]
        assert total is not None
        self._reverse_view(stmt, var, value, total)
        for other in (var, *self.shadowed):
            if other == var or self._looks_into(other, var):
                self.forget(other)  # contributions of reads before the store are added to zeros

    def _looks_into(self, view: Var, base: Var) -> bool:
        """Whether the cotangent of `view` is a view of the cotangent of `base`."""
        while view in self.shadowed:
            value = self.residuals.views[view]
            view = value.array if isinstance(value, Load) else value.args[0]  # type: ignore[assignment]
        return view == base

    def _has_shadow(self, var: Var) -> bool:
        value = self.residuals.views.get(var)
        if value is None:
            return False
        base = value.array if isinstance(value, Load) else value.args[0]
        if not isinstance(base, Var) or base not in self.active:
            return False
        # what may be a copy gets a cotangent of its own: where that would matter, the array has a shadow array
        return viewed(value) is not None and var not in self.apart

    def _shadow(self, var: Var) -> Expr:
        """The same view of the cotangent of the base, for a view that elements are added to."""
        value = self.residuals.views[var]
        stmt = self.scopes.assigns[var][0]
        type_ = self.cotangent(var).name.type
        if isinstance(value, Load):
            return Load(self.materialize(value.array), self.residuals.index(stmt, value.index), type_)
        base = value.args[0]
        assert isinstance(base, Var)
        rest = tuple(self.residuals.expression(stmt, arg) for arg in value.args[1:])
        kwargs = tuple((name, self.residuals.expression(stmt, arg)) for name, arg in value.kwargs)
        return Call(value.func, (self.materialize(base), *rest), kwargs, type_)

    def consume(self, var: Var) -> Expr | None:
        """All contributions to a value whose definition is being reversed; None when there are none."""
        if var in self.shadows:
            return self.taken(var)
        cot = self.of.get(var)
        if cot is None or cot.empty:
            return None
        total = self._sum(cot)
        if cot.named:
            if total is None:
                return cot.name
            if isinstance(var.type, Array):
                self.emit(Store(cot.name, (), total, accumulate=True), self.origin_of(cot))
                cot.pending = []
                return cot.name
            return builders.add(cot.name, total)
        return total

    def taken(self, var: Var) -> Var:
        """The contents of the shadow array of a value; it is zero afterwards, ready for the next backward sweep."""
        mine = self.shadows[var]
        held = Var(self.names.fresh(bar_name(var.name)), builders.copy(mine).type)
        self.emit(Assign((held,), builders.copy(mine)))
        self.emit(Store(mine, (), Const(0.0)))
        return held

    def forget(self, var: Var) -> None:
        """Drop contributions that have been passed on."""
        if var in self.shadows:
            return
        cot = self.of[var]
        cot.named = False
        cot.pending = []

    def take(self, var: Var) -> Contribution | None:
        """Like `consume`, for a merge: its cotangent is zero afterwards."""
        cot = self.of.get(var)
        if cot is None or cot.empty:
            return None
        owned = cot.named or len(cot.pending) > 1 or cot.pending[0].owned
        total = self.consume(var)
        assert total is not None
        if cot.named:
            # the name is assigned later in this block, so its present value moves to a variable of its own
            held = Var(self.names.fresh(cot.name.name), cot.name.type)
            self.emit(Assign((held,), total))
            total = held
        cot.named = False
        cot.pending = []
        return Contribution(total, owned)

    def as_variable(self, var: Var, expr: Expr, use: Stmt | None = None) -> Expr:
        """A cotangent, or the contribution of a use to it, as a variable that guards may test as long as it is live."""
        place = Place(var, use)
        if place not in self.guards.wanted or var in self.shadows or not isinstance(var.type, (Array, Scalar)):
            return expr
        number = builders.without_broadcast(expr)
        stays = isinstance(number, Const) or (isinstance(number, Var) and not self._has_several_definitions(number))
        if not stays:
            own_name = use is None and number is expr and not self.scopes.is_merge(var)
            number = self.bind(number, var) if own_name else self._bound_anew(number)
        self.guards.keep(place, number, again=use is None)
        return builders.rebroadcast(expr, number)

    def _has_several_definitions(self, name: Var) -> bool:
        """Whether a cotangent variable has several assignments, as that of a merge does."""
        return any(cot.name == name and self.scopes.is_merge(var) for var, cot in self.of.items())

    def is_guarded(self, expr: Expr) -> bool:
        """Whether guards may still test an array, so that it must not be modified."""
        return isinstance(expr, Var) and expr in self.guards.names

    def bind(self, expr: Expr, like: Var) -> Var | Const:
        """Bind an expression that is read more than once to a variable."""
        if isinstance(expr, (Var, Const)):
            return expr
        cot = self.cotangent(like)
        if isinstance(like.type, Array) and like.type.rank == 0:
            expr = full(expr, like)  # an array, which may be updated in place
        self.emit(Assign((cot.name,), expr), self.origin_of(cot))
        return cot.name

    def bind_number(self, expr: Expr) -> Expr:
        """Bind a scalar that is read more than once to a variable."""
        return expr if isinstance(expr, (Var, Const)) else self._bound_anew(expr)

    def _bound_anew(self, expr: Expr) -> Var:
        name = Var(self.names.fresh("part"), expr.type)
        self.emit(Assign((name,), expr))
        return name


# ---- helpers ---------------------------------------------------------------------------------------------------------


def _flattens(value: Load | Call) -> bool:
    return isinstance(value, Call) and value.func in (np.reshape, np.ravel)


_GIVES_ARRAYS = frozenset[Any]({np.copy, np.zeros_like, np.full_like, np.zeros, np.array}) | intrinsics.VIEW_CALLS
"""Functions that return an array without axes where other functions return a scalar."""


def full(total: Expr, var: Var) -> Expr:
    """A scalar that represents a whole array, broadcast to its shape."""
    if isinstance(var.type, Array):
        number = builders.without_broadcast(total)
        if isinstance(number, Call) and var.type.rank == 0 and number.func not in _GIVES_ARRAYS:
            number = builders.number(number)  # NumPy returns a scalar for arrays without axes
        if not isinstance(number.type, Array):
            return Call(np.full_like, (var, number), (), Array(var.type.dtype, var.type.rank, "C", var.type.unit))
    return total
