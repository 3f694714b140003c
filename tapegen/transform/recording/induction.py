"""Induction variables: what one iteration of a loop adds to an integer, and the sum over iterations.

`k = k + 1`, `k = k + m`, `k = k + i` by the counter `i`, and such additions in an inner loop whose number of
iterations is affine in `i` have closed forms: indices of packed and flattened arrays need no tape.
"""

from __future__ import annotations

import operator

from tapegen.analysis.scopes import Scope, Scopes
from tapegen.ir import builders, intrinsics, traversal
from tapegen.ir.affine import Affine, linear
from tapegen.ir.nodes import Assign, Call, Const, Expr, For, Tuple, Var
from tapegen.ir.types import INT

_LONGEST = 8  # definitions that are followed


def assigned(stmt: Assign, var: Var) -> Expr | None:
    """The value that an Assign gives to one of its targets."""
    if len(stmt.targets) == 1:
        return stmt.value
    if isinstance(stmt.value, Tuple):
        return stmt.value.items[stmt.targets.index(var)]
    return None


def advance(var: Var, value: Expr | None, owner: Scope, scopes: Scopes) -> Affine[Expr] | None:
    """`value - var`, where `value` is what an iteration makes of an integer that it carries.

    Parameters
    ----------
    var : Var
        The integer.
    value : Expr or None
        Its value after the iteration.
    owner : Scope
        The body of the loop.
    scopes : Scopes
        The scopes of the program.

    Returns
    -------
    Affine or None
        A form in the counter of the loop and in values that no iteration changes.
    """
    if value is None:
        return None
    form = linear(value)
    if form.coefficient(var) == 1:
        return _resolved(form.without(var), owner, scopes)
    for atom, coefficient in form.terms:
        if coefficient == 1 and isinstance(atom, Var):
            inner = _through(var, atom, owner, scopes)
            rest = _resolved(form.without(atom), owner, scopes)
            if inner is not None and rest is not None:
                return inner + rest
    return None


def _through(var: Var, other: Var, owner: Scope, scopes: Scopes) -> Affine[Expr] | None:
    """`other - var`, where an iteration computes `other` from `var`, perhaps in an inner loop."""
    match scopes.assigns.get(other, ()):
        case [stmt] if scopes.at[stmt].within(owner):
            return advance(var, assigned(stmt, other), owner, scopes)
        case [first, latch] if scopes.at[first] is owner and scopes.at[latch].parent is owner:
            inner = scopes.at[latch]
            if not isinstance(inner.header, For) or inner.header in scopes.breaks:
                return None
            begun = advance(var, assigned(first, other), owner, scopes)
            step = advance(other, assigned(latch, other), inner, scopes)
            count = _iterations(inner.header, owner, scopes)
            if begun is None or step is None or count is None or not step.is_constant:
                return None
            return begun + count * step.constant
    return None


def _iterations(loop: For, owner: Scope, scopes: Scopes) -> Affine[Expr] | None:
    """The number of iterations of an inner loop, if it is affine and never negative."""
    if not isinstance(loop.step, Const) or loop.step.value not in (1, -1):
        return None
    span = _resolved(linear(loop.stop) - linear(loop.start), owner, scopes)
    if span is None:
        return None
    span = span * loop.step.value
    least, outer = span, owner.header
    if isinstance(outer, For) and (slope := span.coefficient(outer.target)):
        if not isinstance(outer.step, Const) or not isinstance(outer.step.value, int):
            return None
        rising = (outer.step.value > 0) == (slope > 0)
        end = linear(outer.start) if rising else linear(outer.stop) - (1 if outer.step.value > 0 else -1)
        least = _expanded(span.without(outer.target).plus(end, slope), scopes.root, scopes)
    sizes = all(coefficient > 0 and _is_size(atom, scopes) for atom, coefficient in least.terms)
    return span if sizes and least.constant >= 0 else None


def _is_size(atom: Expr, scopes: Scopes) -> bool:
    if isinstance(atom, Var) and len(scopes.assigns.get(atom, ())) == 1:
        value = assigned(scopes.assigns[atom][0], atom)
        return value is not None and _is_size(value, scopes)
    return isinstance(atom, Call) and atom.func is intrinsics.dim


def _resolved(form: Affine[Expr], owner: Scope, scopes: Scopes) -> Affine[Expr] | None:
    """A form in the counter of a loop and invariants; None where something else is part of it."""
    form = _expanded(form, owner, scopes)
    counter = owner.header.target if isinstance(owner.header, For) else None
    for atom in form.atoms:
        for var in traversal.free_vars(atom):
            if atom != counter and (var in owner.carried or scopes.owner[var].within(owner)):
                return None
    return form


def _expanded(form: Affine[Expr], owner: Scope, scopes: Scopes) -> Affine[Expr]:
    """A form with the definitions of the variables that a block defines once."""
    for _ in range(_LONGEST):
        inner = {
            atom: value
            for atom in form.atoms
            if isinstance(atom, Var)
            and len(scopes.assigns.get(atom, ())) == 1
            and scopes.at[scopes.assigns[atom][0]].within(owner)
            and (value := assigned(scopes.assigns[atom][0], atom)) is not None
        }
        if not inner:
            break
        for part, value in inner.items():
            form = form.without(part).plus(linear(value), form.coefficient(part))
    return form


def summed(step: Affine[Expr], loop: For | None, trip: Expr) -> Expr | None:
    """The sum of a form in a loop's counter over the iterations before one.

    Parameters
    ----------
    step : Affine
        The form.
    loop : For or None
        The loop, None where the form has no counter.
    trip : Expr
        The number of earlier iterations.
    """
    slope = 0 if loop is None else step.coefficient(loop.target)
    total: Expr | None = None
    if slope:
        assert loop is not None
        if not isinstance(loop.step, Const) or not isinstance(loop.step.value, int):
            return None
        step = step.without(loop.target).plus(linear(loop.start), slope)
        pairs = Call(operator.mul, (trip, builders.int_add(trip, Const(-1))), (), INT)
        slope *= loop.step.value
        half = Call(operator.floordiv, (pairs, Const(2)), (), INT)
        total = half if slope == 1 else Call(operator.mul, (Const(slope), half), (), INT)
    if step.is_constant and step.constant == 0:
        return Const(0) if total is None else total
    even: Expr = trip if step == Affine(1) else Call(operator.mul, (step.expr, trip), (), INT)
    return even if total is None else builders.int_add(even, total)
