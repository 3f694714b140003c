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
from tapegen.pipeline.passes.derivation import Derivation
from tapegen.transform.analyses import Facts, places_of
from tapegen.transform.autodiff.expand_formulas import expand, has_formula
from tapegen.transform.autodiff.rule_application import rule_for
from tapegen.transform.simplify.counted_loops import counted
from tapegen.transform.simplify.cse import accumulations, share_loads, split_merges
from tapegen.transform.simplify.licm import hoist
from tapegen.transform.simplify.lists_to_arrays import lists_to_arrays


def expand_formulas(derivation: Derivation) -> Derivation:
    """Formula expansion: inline the formulas of composite functions.

    Legal because a rule that is a formula equals the function wherever it has a derivative; `primal_as` keeps the
    value of the call.  It is no optimization: what has derivatives are the primitives of the formula.

    Before::

        def f(x: "f8[:]"):
            return np.trapezoid(x)

    After::

        def f(x):
            result_value = np.trapezoid(x)
            t = x[1:]
            t_1 = x[0:-1]
            pairs = t + t_1
            t_2 = 0.5 * pairs
            t_3 = np.sum(t_2, axis=-1)
            result = ops.primal_as(result_value, t_3)
            return result
    """
    derivation.program = _expanded(derivation.program, derivation.wrt, derivation.names)
    return derivation


def count_loops(derivation: Derivation) -> Derivation:
    """Induction variable recognition: turn `while` loops that count into `for` loops.

    Legal where one variable alone decides on the next iteration, changes by a constant step at the end of each, and the
    bound does not change.  It pays because a loop whose trip count is known records into arrays of known size, and no
    condition.

    Before::

        def f(x: "f8", n: "i8"):
            i = 0
            while i < n:
                x = x * x
                i += 1
            return x

    After::

        def f(x, n):
            x_1 = x
            for i in range(0, n, 1):
                x_1 = x_1 * x_1
            return x_1
    """
    derivation.program = counted(derivation.program)
    return derivation


def convert_lists(derivation: Derivation) -> Derivation:
    """Turn lists of numbers whose length is known into arrays.

    Legal where each append stands in a loop whose trip count is known before the list is made, and the list escapes
    nowhere.  It pays because an array is allocated once, and its elements may be live in the backward sweep.

    Before::

        def f(x: "f8", n: "i8"):
            powers = [x]
            for i in range(n):
                powers.append(powers[i] * x)
            return powers[n]

    After::

        def f(x, n):
            powers = np.empty(max(n, 0) + 1)
            powers[0] = x
            for i in range(0, n, 1):
                powers_item = powers[i]
                t = float(powers_item)
                product = t * x
                powers[i + 1] = product
            powers_item_1 = powers[n]
            result = float(powers_item_1)
            return result
    """
    derivation.program = lists_to_arrays(derivation.program, derivation.names)
    return derivation


def recognize_accumulations(derivation: Derivation) -> Derivation:
    """Reduction recognition: turn `a[i] = a[i] + x` into an accumulating store.

    Legal where nothing stores into the array, or changes the index, in between, and nothing else reads the loaded value
    or the sum.  It pays because the adjoint of an accumulating store overwrites and reads nothing.

    Before::

        def f(x: "f8", h: "f8[:]", i: "i8"):
            old = h[i]
            new = old + x
            h[i] = new
            return h

    After::

        def f(x, h, i):
            h[i] += x
            return h
    """
    program = derivation.program
    derivation.program = replace(program, body=accumulations(program.body, effects_of(program)))
    return derivation


def split_merged_values(derivation: Derivation) -> Derivation:
    """SSA renaming: give what paths merge variables of their own.

    Legal everywhere: each definition of a merge becomes a new name and a copy.  It is no optimization: analyses refer
    to a value by its name.  Cleanup joins the names again.

    Before::

        def f(x: "f8", n: "i8"):
            s = x
            for i in range(n):
                s = s * x
            return s

    After::

        def f(x, n):
            s = x
            for i in range(0, n, 1):
                s_1 = s * x
                s = s_1
            return s
    """
    program = derivation.program
    merges = {var for var, assigns in scopes_of(program).assigns.items() if len(assigns) > 1}
    derivation.merges = merges
    derivation.program = replace(program, body=split_merges(program.body, merges, derivation.names))
    return derivation


def eliminate_common_loads(derivation: Derivation) -> Derivation:
    """Redundant load elimination: load an element once where nothing is stored in between.

    Legal where no store may write the element on any path between the loads (`analysis.side_effects`).  It pays because
    what is read once is recorded once, and its cotangent is stored once.

    Before::

        def f(x: "f8[:]", i: "i8"):
            return x[i] * np.sin(x[i])

    After::

        def f(x, i):
            x_i = x[i]
            sin_x_i = np.sin(x_i)
            result = x_i * sin_x_i
            return result
    """
    program = derivation.program
    body = share_loads(program.body, effects_of(program), derivation.user_names, derivation.merges)
    derivation.program = replace(program, body=body)
    return derivation


def hoist_invariants(derivation: Derivation) -> Derivation:
    """Loop-invariant code motion of arithmetic on arrays.

    Legal for statements that cannot raise, since the loop may make no iteration.  It pays because an invariant array is
    recorded once, not in each iteration; scalars are left where they are, for they are recomputed.

    Before::

        def f(x: "f8[:]", c: "f8", n: "i8"):
            s = x
            for i in range(n):
                s = s * (c * x)
            return s

    After::

        def f(x, c, n):
            s = x
            c_x = c * x
            for i in range(0, n, 1):
                s_1 = s * c_x
                s = s_1
            return s
    """
    program = derivation.program
    places = places_of(program)
    body = hoist(program.body, places.effects, places.shapes, derivation.merges)
    if body is program.body:
        derivation.places = places
    else:
        derivation.program = replace(program, body=body)
    return derivation


def analyze_activity(derivation: Derivation) -> Derivation:
    """Activity analysis, and all other analyses that the sweeps depend on.

    It changes nothing.  A value is *varied* if it depends on a differentiated input, *useful* if an output depends on
    it, and *active* if both: only active values have cotangents.

    Before::

        def f(x: "f8", n: "i8"):
            k = 2.0 * n
            y = k * x
            t = y * y
            return np.sin(y)

    After::

        varied: result, t, x, y
        useful: k, result, x, y
        active: result, x, y
    """
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
