"""Passes of recording: what the backward sweep reads becomes live, recomputed or recorded."""

from __future__ import annotations

from tapegen.ir.nodes import (
    Var,
)
from tapegen.ir.types import INT
from tapegen.pipeline.passes.derivation import Derivation
from tapegen.transform.recording.checkpoints import checkpointed
from tapegen.transform.recording.decisions import Cut
from tapegen.transform.recording.loop_order import loops_of
from tapegen.transform.recording.plan import record
from tapegen.transform.recording.tape_layout import lay_out
from tapegen.transform.simplify.cleanup import resolve_primal_as
from tapegen.transform.simplify.cse import share_values


def plan_recording(derivation: Derivation, *, record_everything: bool) -> Derivation:
    """To-be-recorded analysis and rematerialization: make every read of the backward sweep possible.

    A value is live where nothing overwrites it before it is read, recomputed where that is cheaper than recording it (a
    minimum cut chooses), and else pushed by the forward sweep and popped by the backward sweep.

    In the program::

        def f(x: "f8", n: "i8"):
            for i in range(n):
                x = np.sin(n * x)
            return x

    Before::

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

    After::

        x_1 = x
        for i in range(0, n, 1):
            n_x = n * x_1
            push n_x@0, n_x
            x_1 = np.sin(n_x)
        # ---- backward sweep --------------------------------------------------
        for i in range(n - 1, -1, -1):
            n_x = pop n_x@0
            # x = np.sin(n * x)
            x_1_bar_1 = x_1_bar
            x_1_bar = n * (np.cos(n_x) * x_1_bar_1)
        x_1_bar_2 = x_1_bar
        x_bar = x_1_bar_2
    """
    derivation.recorded = record(
        derivation.program,
        derivation.sweeps,
        derivation.facts,
        derivation.names,
        derivation.user_names,
        everything=record_everything,
    )
    derivation.forward, derivation.backward = derivation.recorded.forward, derivation.recorded.backward
    return derivation


def lay_out_tapes(derivation: Derivation, *, parallel: bool) -> Derivation:
    """Tape layout: turn pushes and pops into stores into arrays and loads from them.

    A tape whose loops have known trip counts is an array with an axis for each loop; others grow, and count what they
    hold.  `primal_as` is resolved on the way: the backward sweep reads primal values.

    In the program::

        def f(x: "f8", n: "i8"):
            for i in range(n):
                x = np.sin(n * x)
            return x

    Before::

        x_1 = x
        for i in range(0, n, 1):
            n_x = n * x_1
            push n_x@0, n_x
            x_1 = np.sin(n_x)
        # ---- backward sweep --------------------------------------------------
        for i in range(n - 1, -1, -1):
            n_x = pop n_x@0
            # x = np.sin(n * x)
            x_1_bar_1 = x_1_bar
            x_1_bar = n * (np.cos(n_x) * x_1_bar_1)
        x_1_bar_2 = x_1_bar
        x_bar = x_1_bar_2

    After::

        x_1 = x
        for i in range(0, n, 1):
            n_x = n * x_1
            n_x_tape[i] = n_x
            x_1 = np.sin(n_x)
        # ---- backward sweep --------------------------------------------------
        for i in range(n - 1, -1, -1):
            n_x = n_x_tape[i]
            # x = np.sin(n * x)
            x_1_bar_1 = x_1_bar
            x_1_bar = n * (np.cos(n_x) * x_1_bar_1)
        x_1_bar_2 = x_1_bar
        x_bar = x_1_bar_2
    """
    facts, names = derivation.facts, derivation.names
    loops = loops_of(derivation.program.body)

    def fresh(name: str) -> Var:
        return Var(names.fresh(name), INT)

    derivation.cuts = [
        Cut(loops[position], fresh("interval"), fresh("checkpoints"), fresh("first"))
        for position in derivation.checkpointed
    ]
    derivation.laid = lay_out(
        derivation.recorded, derivation.sweeps, facts.scopes, facts.shapes, names, derivation.cuts, parallel=parallel
    )
    derivation.forward = resolve_primal_as(derivation.laid.forward)
    derivation.backward = resolve_primal_as(derivation.laid.backward)
    return derivation


def eliminate_common_subexpressions(derivation: Derivation) -> Derivation:
    """Common subexpression elimination: compute each value of the backward sweep once.

    Legal for scalars without side effects whose operands do not change in between.  It pays where the program writes an
    expression twice, for then both values are recomputed.

    In the program::

        def f(x: "f8[:]", k: "i8"):
            s = 0.0
            for i in range(len(x)):
                s += np.sin(x[i] * k) + np.log(x[i] * k)
            return s

    Before::

        s = 0.0
        for i in range(0, ops.dim(x, 0), 1):
            x_i = x[i]
            x_i_k = x_i * k
            sin_x = np.sin(x_i_k)
            x_i_k_1 = x_i * k
            log_x = np.log(x_i_k_1)
            x_total = sin_x + log_x
            s_1 = s + x_total
            s = s_1
        # ---- backward sweep --------------------------------------------------
        x_bar = np.zeros_like(x)
        for i in range(ops.dim(x, 0) - 1, -1, -1):
            x_i = x[i]
            x_i_k = x_i * k
            x_i_k_1 = x_i * k
            # s += np.sin(x[i] * k) + np.log(x[i] * k)
            s_bar_1 = s_bar
            # s += np.sin(x[i] * k) + np.log(x[i] * k)
            x_bar[i] += (k * (s_bar_1 / x_i_k_1)) + (k * (np.cos(x_i_k) * s_bar_1))
            s_bar = s_bar_1
        # s = 0.0
        s_bar_2 = s_bar

    After::

        s = 0.0
        for i in range(0, ops.dim(x, 0), 1):
            x_i = x[i]
            x_i_k = x_i * k
            sin_x = np.sin(x_i_k)
            x_i_k_1 = x_i * k
            log_x = np.log(x_i_k_1)
            x_total = sin_x + log_x
            s_1 = s + x_total
            s = s_1
        # ---- backward sweep --------------------------------------------------
        x_bar = np.zeros_like(x)
        for i in range(ops.dim(x, 0) - 1, -1, -1):
            x_i = x[i]
            x_i_k = x_i * k
            # s += np.sin(x[i] * k) + np.log(x[i] * k)
            s_bar_1 = s_bar
            # s += np.sin(x[i] * k) + np.log(x[i] * k)
            x_bar[i] += (k * (s_bar_1 / x_i_k)) + (k * (np.cos(x_i_k) * s_bar_1))
            s_bar = s_bar_1
        # s = 0.0
        s_bar_2 = s_bar
    """
    derivation.backward = share_values(derivation.backward, derivation.gradient_vars, derivation.user_names)
    return derivation


def checkpoint_loops(derivation: Derivation) -> Derivation:
    """Checkpointing: cut loops into segments, of which the tapes hold one at a time.

    Legal for loops whose state between iterations can be copied.  It runs where a call would exceed its bound of
    memory: the loop runs forward twice, and its tapes hold one segment.

    In the program, whose loop is checkpointed::

        def f(x: "f8", n: "i8"):
            for i in range(n):
                x = np.sin(n * x)
            return x

    Before::

        x_1 = x
        for i in range(0, n, 1):
            n_x = n * x_1
            n_x_tape[i - first] = n_x
            x_1 = np.sin(n_x)
        # ---- backward sweep --------------------------------------------------
        for i in range(n - 1, -1, -1):
            n_x = n_x_tape[i - first]
            # x = np.sin(n * x)
            x_1_bar_1 = x_1_bar
            x_1_bar = n * (np.cos(n_x) * x_1_bar_1)
        x_1_bar_2 = x_1_bar
        x_bar = x_1_bar_2

    After::

        starts = ops.new_list()
        x_1_checkpoints = ops.new_list()
        x_1 = x
        free = checkpoints
        segments = max(((n + interval) - 1) // interval, 0)
        following = 0
        for segment in range(0, segments, 1):
            if segment == following:
                following = segment + ops.checkpoint_distance((segments - segment) + 1, free)
                ops.append(starts, segment)
                ops.append(x_1_checkpoints, x_1)
                free = free - 1
            first = segment * interval
            until = min(first + interval, n)
            for i in range(first, until, 1):
                n_x = n * x_1
                x_1 = np.sin(n_x)
        # ---- backward sweep --------------------------------------------------
        n_x_tape = np.empty(interval)
        for segment in range(segments - 1, -1, -1):
            # ---- forward sweep ---------------------------------------------------
            start = ops.pop(starts)
            x_1_1 = ops.pop(x_1_checkpoints)
            free = free + 1
            following = start
            for current in range(start, segment + 1, 1):
                if (current == following) and (current < segment):
                    following = current + ops.checkpoint_distance((segment - current) + 1, free)
                    ops.append(starts, current)
                    ops.append(x_1_checkpoints, x_1_1)
                    free = free - 1
                first = current * interval
                until_1 = min(first + interval, n)
                for i_1 in range(first, until_1, 1):
                    n_x_1 = n * x_1_1
                    n_x_tape[i_1 - first] = n_x_1
                    x_1_1 = np.sin(n_x_1)
            # ---- backward sweep --------------------------------------------------
            first = segment * interval
            until_1 = min(first + interval, n)
            for i in range(until_1 - 1, first - 1, -1):
                n_x = n_x_tape[i - first]
                # x = np.sin(n * x)
                x_1_bar_1 = x_1_bar
                x_1_bar = n * (np.cos(n_x) * x_1_bar_1)
        x_1_bar_2 = x_1_bar
        x_bar = x_1_bar_2
    """
    if derivation.cuts:
        assert derivation.forward is not None
        derivation.forward, derivation.backward, derivation.checkpoints = checkpointed(
            derivation.forward,
            derivation.backward,
            derivation.cuts,
            derivation.program,
            derivation.sweeps,
            derivation.facts,
            derivation.names,
        )
    return derivation
