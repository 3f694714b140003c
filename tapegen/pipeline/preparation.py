"""Preparation passes, which both modes run first on the primal."""

from __future__ import annotations

import warnings
from collections.abc import Set
from dataclasses import replace
from typing import Any

from tapegen.analysis.activity import active_operands, activity_of
from tapegen.analysis.scopes import scopes_of
from tapegen.analysis.side_effects import effects_of
from tapegen.errors import frames_of_tapegen
from tapegen.ir import intrinsics, traversal
from tapegen.ir.names import NameSupply
from tapegen.ir.nodes import (
    Assign,
    Block,
    Call,
    Function,
    Return,
    Stmt,
    Store,
    Var,
)
from tapegen.ir.passes import Pass
from tapegen.ir.types import is_floating
from tapegen.pipeline.derivation import Derivation
from tapegen.transform.analyses import Facts, places_of
from tapegen.transform.autodiff.expand_formulas import expand, has_formula
from tapegen.transform.autodiff.rule_application import rule_for
from tapegen.transform.simplify.counted_loops import counted
from tapegen.transform.simplify.cse import accumulations, share_loads, split_merges
from tapegen.transform.simplify.licm import hoist
from tapegen.transform.simplify.lists_to_arrays import lists_to_arrays


def expand_formulas(derivation: Derivation) -> Derivation:
    """Inline the formulas of composite functions."""
    derivation.program = _expanded(derivation.program, derivation.wrt, derivation.names)
    return derivation


def count_loops(derivation: Derivation) -> Derivation:
    """Turn `while` loops that count into `for` loops."""
    derivation.program = counted(derivation.program)
    return derivation


def convert_lists(derivation: Derivation) -> Derivation:
    """Turn lists of numbers whose length is known into arrays."""
    derivation.program = lists_to_arrays(derivation.program, derivation.names)
    return derivation


def recognize_accumulations(derivation: Derivation) -> Derivation:
    """Turn `a[i] = a[i] + x` into an accumulating store, whose adjoint reads nothing."""
    program = derivation.program
    derivation.program = replace(program, body=accumulations(program.body, effects_of(program)))
    return derivation


def split_merged_values(derivation: Derivation) -> Derivation:
    """Rename values that paths merge into variables of their own; formulas have loops of their own."""
    program = derivation.program
    merges = {var for var, assigns in scopes_of(program).assigns.items() if len(assigns) > 1}
    derivation.merges = merges
    derivation.program = replace(program, body=split_merges(program.body, merges, derivation.names))
    return derivation


def eliminate_common_loads(derivation: Derivation) -> Derivation:
    """Load an element once where nothing is stored in between."""
    program = derivation.program
    body = share_loads(program.body, effects_of(program), derivation.user_names, derivation.merges)
    derivation.program = replace(program, body=body)
    return derivation


def hoist_invariants(derivation: Derivation) -> Derivation:
    """Compute loop invariants before the loop."""
    program = derivation.program
    places = places_of(program)
    body = hoist(program.body, places.effects, places.shapes, derivation.merges)
    if body is program.body:
        derivation.places = places
    else:
        derivation.program = replace(program, body=body)
    return derivation


def analyze_activity(derivation: Derivation) -> Derivation:
    """Run activity analysis, and all other analyses that the sweeps depend on."""
    last = derivation.program.body[-1]  # it may refer to values that others turned out to share
    assert isinstance(last, Return)
    derivation.last = last
    pairs = zip(last.values, derivation.active_results, strict=True)
    derivation.results = [value for value, active in pairs if active and isinstance(value, Var)]
    derivation.analyze(derivation.places)
    _warn_of_truncation(derivation.facts, derivation.program.body)
    return derivation


PREPARATION: tuple[Pass[Derivation], ...] = (
    Pass("expand_formulas", expand_formulas, "composite functions as what has a rule for its derivative", False),
    Pass("count_loops", count_loops, "loops that count have a number of iterations"),
    Pass("convert_lists", convert_lists, "lists of known length as arrays: one allocation, elements that may be live"),
    Pass("recognize_accumulations", recognize_accumulations, "adjoints of additions in place read nothing"),
    Pass("split_merged_values", split_merged_values, "a value has one name, whichever path it comes from", False),
    Pass("eliminate_common_loads", eliminate_common_loads, "an element that is read once is recorded once"),
    Pass("hoist_invariants", hoist_invariants, "what does not change in a loop is recorded once"),
    Pass("analyze_activity", analyze_activity, "what carries a derivative, and what may share memory", False),
)


def _expanded(lowered: Function, wrt: tuple[Var, ...], names: NameSupply) -> Function:
    """The program with formulas inlined, if it calls functions that have one; else the same program."""
    called = frozenset[Any]().union(*map(traversal.calls, lowered.body))
    drawing = any(map(intrinsics.is_draw, called))
    if not drawing and not any(map(has_formula, called)):
        return lowered
    *body, last = lowered.body
    varied = activity_of(lowered, wrt, ()).varied
    if drawing:
        _refuse_draws(tuple(body), varied)
    written: set[Stmt] = set()
    while True:
        before = len(written)
        lowered = replace(lowered, body=(*expand(tuple(body), varied, names, written), last))
        if len(written) == before:
            return lowered
        # a formula may share memory where its call does not, so that more values are assumed to vary
        body = list(lowered.body[:-1])
        varied = activity_of(lowered, wrt, ()).varied


def _refuse_draws(body: Block, varied: Set[Var]) -> None:
    """A draw depends on its parameters even where its result is an integer, or is only compared."""
    for stmt in traversal.statements(body):
        if not isinstance(stmt, Assign) or not isinstance(stmt.value, Call) or not intrinsics.is_draw(stmt.value.func):
            continue
        call = stmt.value
        size = intrinsics.drawn_size(call.args, call.kwargs, call.func)
        given = (arg for arg in (*call.args, *(value for _, value in call.kwargs)) if arg is not size)
        if any(not varied.isdisjoint(active_operands(arg)) for arg in given):
            rule_for(call, stmt)


def _warn_of_truncation(facts: Facts, body: Block) -> None:
    for stmt in traversal.statements(body):
        if isinstance(stmt, Store) and not is_floating(stmt.array.type):
            varied = [var for var in traversal.free_vars(stmt.value) if var in facts.activity.varied]
            if varied and is_floating(stmt.value.type):
                place = "" if stmt.origin is None else f"{stmt.origin.file}:{stmt.origin.line}: "
                warnings.warn(
                    f"{place}'{stmt.array.name}' holds integers: the fraction of what is stored is lost, and the "
                    "gradient through it is zero",
                    UserWarning,
                    stacklevel=frames_of_tapegen(),
                )
