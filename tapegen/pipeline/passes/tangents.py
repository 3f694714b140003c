"""Passes of forward mode: tangents next to the values of a prepared primal."""

from __future__ import annotations

from collections.abc import Set
from dataclasses import replace

from tapegen.analysis.alias_conflicts import refusal_of
from tapegen.analysis.memory_access import components, moves
from tapegen.ir import traversal
from tapegen.ir.nodes import (
    Assign,
    Function,
    Return,
)
from tapegen.ir.types import Array
from tapegen.pipeline.passes.derivation import Derivation
from tapegen.transform.analyses import Facts
from tapegen.transform.autodiff.forward import forward
from tapegen.transform.simplify.cleanup import clean_up, resolve_primal_as


def derive_tangents(derivation: Derivation) -> Derivation:
    """Forward mode: insert a tangent next to each value that varies.

    Statements keep their order, and tangents follow control flow and references of the program, so nothing is recorded.
    Stores whose aliases are unclear are refused, since the tangent of a view may be a copy.

    Before::

        def f(x: "f8", n: "i8"):
            for i in range(n):
                x = np.sin(n * x)
            return x

    After::

        def f_jvp(x, n, x_dot):
            x_1_dot = x_dot
            x_1 = x
            for i in range(0, n, 1):
                n_x = n * x_1
                n_x_dot = n * x_1_dot
                x_1 = np.sin(n_x)
                x_1_dot = np.cos(n_x) * n_x_dot
            return x_1, x_1_dot
    """
    _refuse_conflicts(derivation.program, derivation.facts)
    derivation.prepared = derivation.program
    derivation.program, derivation.tangents = forward(
        derivation.program, derivation.wrt, derivation.active_results, derivation.facts, derivation.names
    )
    return derivation


def clean_up_tangents(derivation: Derivation) -> Derivation:
    """Dead code elimination and copy propagation in a program with tangents.

    Legal for what nothing reads and what cannot raise.  It pays because rules write the tangents of all their operands.

    In the program::

        def f(x: "f8", n: "i8"):
            for i in range(n):
                x = np.sin(n * x)
            return x

    Before::

        def f_jvp(x, n, x_dot):
            x_1_dot = x_dot
            x_1 = x
            for i in range(0, n, 1):
                n_x = n * x_1
                n_x_dot = n * x_1_dot
                x_1 = np.sin(n_x)
                x_1_dot = np.cos(n_x) * n_x_dot
            return x_1, x_1_dot

    After::

        def f_jvp(x, n, x_dot):
            x_1_dot = x_dot
            x_1 = x
            for i in range(0, n, 1):
                n_x = n * x_1
                x_1 = np.sin(n_x)
                x_1_dot = np.cos(n_x) * (n * x_1_dot)
            return x_1, x_1_dot
    """
    derivation.program = tidied(derivation.program, derivation.lowered, derivation.user_names)
    return derivation


def tidied(pushed: Function, lowered: Function, user_names: Set[str]) -> Function:
    """A program with tangents, cleaned up."""
    *body, last = pushed.body
    assert isinstance(last, Return)
    live = set().union(*(traversal.free_vars(value) for value in last.values))
    live |= {param for param in pushed.params if isinstance(param.type, Array)}
    body = list(clean_up(resolve_primal_as(tuple(body)), live, user_names, traversal.assigned_in(*lowered.body)))
    return replace(pushed, body=(*body, last))


def _refuse_conflicts(function: Function, facts: Facts) -> None:
    """Refuse stores whose aliases are unclear: where an array is a view, its tangent may be a copy."""
    group_of = components(function)
    unsure = {
        group_of[target]
        for stmt in traversal.statements(function.body)
        if isinstance(stmt, Assign)
        for target, move in moves(stmt)
        if move.fresh and move.sources
    }
    for conflict in facts.effects.conflicts:
        if group_of[conflict.stored] in unsure:
            raise refusal_of(conflict)
