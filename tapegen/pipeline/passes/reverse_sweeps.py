"""Passes of reverse mode: from a prepared primal to its two sweeps."""

from __future__ import annotations

from collections.abc import Set
from dataclasses import replace

from tapegen.errors import AliasError
from tapegen.ir.nodes import (
    Function,
    Store,
    Var,
)
from tapegen.ir.types import Array, is_complex
from tapegen.pipeline.passes.derivation import Derivation
from tapegen.transform.analyses import Facts
from tapegen.transform.autodiff.reverse import reverse
from tapegen.transform.autodiff.selection_loops import selections
from tapegen.transform.autodiff.shadow_memory import add_shadows
from tapegen.transform.autodiff.viewed_merges import name_viewed_merges


def separate_viewed_merges(derivation: Derivation) -> Derivation:
    """SSA renaming: give a merge a second name where a view of it outlives its value.

    Legal everywhere, for the second name denotes the same array.  It is no optimization: the cotangent of the view is a
    view of the cotangent of this value, and not of the next one.

    In the program::

        def f(w: "f8[:]"):
            for _ in range(3):
                v = w[::-1]
                w = v
                if v[0] > 0.5:
                    continue
                w = v * v[1]
            return w[0]

    Before::

        def f(w):
            w_1 = w
            for __1 in range(0, 3, 1):
                v = w_1[::-1]
                if v[0] > 0.5:
                    w_1 = v
                else:
                    v_at_1 = v[1]
                    w_2 = v * v_at_1
                    w_1 = w_2
            result = w_1[0]
            return result

    After::

        def f(w):
            w_1 = w
            for __1 in range(0, 3, 1):
                w_1_1 = w_1
                v = w_1_1[::-1]
                if v[0] > 0.5:
                    w_1 = v
                else:
                    v_at_1 = v[1]
                    w_2 = v * v_at_1
                    w_1 = w_2
            result = w_1[0]
            return result
    """
    program = name_viewed_merges(derivation.program, _merges(derivation), derivation.names)
    if program is not derivation.program:
        derivation.program = program
        derivation.analyze()
    return derivation


def insert_shadows(derivation: Derivation) -> Derivation:
    """Shadow memory: cotangent arrays of arrays whose aliasing is known only at run time.

    Legal where the program allocates the arrays itself, so that each allocation has a shadow; anything else is refused.
    It is no optimization: shadows follow the references of the program, and so share memory where the arrays do.

    In the program::

        def f(x: "f8", n: "i8"):
            a = np.full(n, x)
            b = np.zeros(n)
            t = b
            if x > 0.0:
                t = a
            t[0] = x
            return a[0] * b[0]

    Before::

        def f(x, n):
            a = np.full(n, x)
            b = np.zeros(n)
            if x > 0.0:
                t = a
            else:
                t = b
            t[0] = x
            a_at_0 = a[0]
            b_at_0 = b[0]
            result = a_at_0 * b_at_0
            return result

    After::

        def f(x, n):
            a = np.full(n, x)
            a_bar = np.zeros_like(a)
            b = np.zeros(n)
            b_bar = np.zeros_like(b)
            if x > 0.0:
                t = a
                t_bar = a_bar
            else:
                t = b
                t_bar = b_bar
            t[0] = x
            a_at_0 = a[0]
            b_at_0 = b[0]
            result = a_at_0 * b_at_0
            return result
    """
    _refuse_written_parts(derivation.program, derivation.facts)
    facts, merges = derivation.facts, _merges(derivation)
    derivation.program, derivation.shadows = add_shadows(
        derivation.program, facts.effects.conflicts, facts.activity.active, merges, derivation.names
    )
    if derivation.shadows.of:
        derivation.analyze()
    return derivation


def recognize_selections(derivation: Derivation) -> Derivation:
    """Argmax recognition: find loops that select one of several candidates.

    Legal where an iteration that does not select leaves all active values as they are.  It pays because only the
    iteration that was selected is reversed, and only its index recorded.

    In the program::

        def f(x: "f8[:]"):
            best = x[0]
            for i in range(1, len(x)):
                if x[i] > best:
                    best = x[i]
            return best

    Before::

        def f(x):
            best = x[0]
            for i in range(1, ops.dim(x, 0), 1):
                if x[i] > best:
                    best_1 = x[i]
                else:
                    best_1 = best
                best = best_1
            return best

    After::

        def f(x):
            best = x[0]
            i_best = 0
            for i in range(1, ops.dim(x, 0), 1):
                if x[i] > best:
                    best_1 = x[i]
                    i_best_1 = i
                else:
                    best_1 = best
                    i_best_1 = i_best
                best = best_1
                i_best = i_best_1
            return best
    """
    derivation.selecting = {}
    if not derivation.shadows.of:
        body, derivation.selecting = selections(derivation.program.body, derivation.facts, derivation.names)
        if derivation.selecting:
            derivation.program = replace(derivation.program, body=body)
            derivation.analyze()
    return derivation


def derive_sweeps(derivation: Derivation) -> Derivation:
    """Reverse mode: build the forward sweep, and an ideal backward sweep, which may read any value.

    Statements are reversed from the last to the first, loops run backwards, and each active value passes its cotangent
    to what it was computed from.  Which values the backward sweep can read is left to `plan_recording`.

    In the program::

        def f(x: "f8", n: "i8"):
            for i in range(n):
                x = np.sin(n * x)
            return x

    Before::

        def f(x, n):
            x_1 = x
            for i in range(0, n, 1):
                n_x = n * x_1
                x_1 = np.sin(n_x)
            return x_1

    After::

        x_1 = x
        for i in range(0, n, 1):
            n_x = n * x_1
            x_1 = np.sin(n_x)
        return x_1
        # ---- backward sweep --------------------------------------------------
        for i in range(n - 1, -1, -1):
            # x = np.sin(n * x)
            x_1_bar_1 = x_1_bar
            x_1_bar = n * (np.cos(n_x) * x_1_bar_1)
        x_1_bar_2 = x_1_bar
        x_bar = x_1_bar_2
    """
    derivation.sweeps = reverse(
        derivation.program,
        derivation.wrt,
        derivation.active_results,
        derivation.facts,
        derivation.shadows,
        derivation.names,
        derivation.selecting,
    )
    derivation.forward, derivation.backward = derivation.program.body, derivation.sweeps.backward
    return derivation


def _merges(derivation: Derivation) -> Set[Var]:
    return {var for var, assigns in derivation.facts.scopes.assigns.items() if len(assigns) > 1}


def _refuse_written_parts(function: Function, facts: Facts) -> None:
    """A view of a part of a complex array has no view of the cotangent as its cotangent, so stores would be lost."""
    effects = facts.effects
    allocated = {root: stmt.targets for root, stmt in effects.allocations.items()}
    for stmt, roots in effects.writes.items():
        if isinstance(stmt, Store) and stmt.array in facts.activity.active and not is_complex(stmt.array.type):
            places = {target for root in roots for target in allocated.get(root, ())}
            places |= {param for param in function.params if param.name in roots}
            if any(isinstance(place.type, Array) and is_complex(place.type) for place in places):
                raise AliasError(
                    "this writes into an array that may be a part of a complex one (z.real, z.imag).",
                    "Write z.real[...] = x on each path.",
                    stmt.origin,
                )
