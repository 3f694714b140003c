"""The last passes of reverse mode: readable sweeps, assembled into functions."""

from __future__ import annotations

from dataclasses import replace

from tapegen.ir import traversal
from tapegen.ir.nodes import (
    Block,
    For,
    Var,
    While,
)
from tapegen.ir.types import Array
from tapegen.pipeline.passes.derivation import Derivation, Stages
from tapegen.transform.autodiff.reverse import Sweeps
from tapegen.transform.recording.assemble import (
    doc_of,
    joint_form,
    pullback_form,
    record_form,
    shorter_names,
)
from tapegen.transform.recording.checkpoints import unread_tapes
from tapegen.transform.recording.tape_layout import drop_unread_tapes
from tapegen.transform.recording.tape_sizes import Sizes
from tapegen.transform.simplify.cleanup import clean_up, reads_of
from tapegen.transform.simplify.dead_code import Aliases


def clean_up_sweeps(derivation: Derivation) -> Derivation:
    """Dead code elimination, dead store elimination and copy propagation in both sweeps.

    Legal for what nothing reads and what cannot raise; tapes that nothing reads go with their stores.  It pays because
    sweeps are written without regard to what a rule needs of its operands.

    In the program::

        def f(x: "f8", n: "i8"):
            for i in range(n):
                x = np.sin(n * x)
            return x

    Before::

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

    After::

        x_1 = x
        n_x_tape = np.empty(max(n, 0))
        for i in range(0, n, 1):
            n_x = n * x_1
            n_x_tape[i] = n_x
            x_1 = np.sin(n_x)
        # ---- backward sweep --------------------------------------------------
        for i in range(n - 1, -1, -1):
            # x = np.sin(n * x)
            x_1_bar = n * (np.cos(n_x_tape[i]) * x_1_bar)
        x_bar = x_1_bar
    """
    forward, lowered, sweeps, laid = derivation.forward, derivation.lowered, derivation.sweeps, derivation.laid
    assert forward is not None
    ends, user_names = derivation.gradient_vars, derivation.user_names
    groups = Aliases(forward, derivation.shadows.groups).groups()
    derivation.backward = clean_up(derivation.backward, ends, user_names, shared=groups)
    if derivation.cuts:
        of_segments = {var for cut in derivation.cuts for stmt in cut.create for var in stmt.targets}
        kept = drop_unread_tapes(derivation.backward, unread_tapes(derivation.backward, of_segments))
        derivation.backward = clean_up(kept, ends, user_names, shared=groups)
    used = reads_of(derivation.backward)
    wanted = used | set().union(*(traversal.free_vars(value) for value in derivation.last.values))
    wanted |= {param for param in lowered.params if isinstance(param.type, Array)}
    wanted |= ends
    made = {var for stmt in laid.create for var in stmt.targets}
    used |= {tape.var for tape in laid.tapes if tape.store in used and tape.var in made}  # counters that are recorded
    create = tuple(stmt for stmt in laid.create if any(var in used for var in stmt.targets))
    forward = drop_unread_tapes(forward, made - used)
    forward = drop_unread_tapes(forward, _uncounted(forward, sweeps) - used)
    wanted |= reads_of(create)  # the sizes of tapes
    forward = clean_up(forward, wanted, user_names, traversal.assigned_in(*lowered.body))
    derivation.forward = _with_tapes(forward, create)
    return derivation


def assemble_forms(derivation: Derivation) -> Derivation:
    """Assemble the sweeps into functions: both in one, and one for each.

    The joint function takes the seeds as its last parameters, and returns values and gradients.  Of the split pair,
    `record` returns what the backward sweep reads, and `pullback` accepts it.  Here is the joint function.

    In the program::

        def f(x: "f8", k: "i8"):
            return np.sin(x * k)

    Before::

        result = np.sin(x * k)
        # ---- backward sweep --------------------------------------------------
        x_bar = k * (np.cos(x * k) * result_bar)

    After::

        def f_value_and_grad(x, k, result_bar):
            # ---- forward sweep ---------------------------------------------------
            result = np.sin(x * k)
            # ---- backward sweep --------------------------------------------------
            x_bar = k * (np.cos(x * k) * result_bar)
            return result, x_bar
    """
    forward, last = derivation.forward, derivation.last
    assert forward is not None
    sweeps, facts, shadows, program = derivation.sweeps, derivation.facts, derivation.shadows, derivation.program
    taken = {*derivation.user_names, *(name for name, _ in program.globals)}
    taken |= {var.name for var in (*program.params, *sweeps.seeds)}
    shorter = shorter_names(derivation.backward, (*forward, last), taken)
    backward = traversal.rename_block(derivation.backward, shorter)
    gradients = tuple([traversal.substitute(value, shorter) for value in sweeps.gradients])
    ends = set().union(*map(traversal.free_vars, gradients))
    used = reads_of(backward)
    present = used | traversal.assigned_in(*backward)
    tapes = [tape for tape in derivation.laid.tapes if tape.store in present]
    doc = doc_of(derivation.program, derivation.wrt, derivation.results, sweeps, tapes, facts)
    schedules = tuple(var for cut in derivation.cuts for var in (cut.interval, cut.checkpoints))
    joint = joint_form(derivation.program, forward, backward, last, sweeps, gradients, doc, derivation.names, schedules)
    stores = (*(tape.store for tape in tapes), *derivation.checkpoints)
    reads = used | (ends - traversal.assigned_in(*backward))
    kept = tuple(sorted((v for v in reads if v not in sweeps.seeds), key=lambda v: v.name))
    computed = tuple(var for var in (*kept, *sweeps.seeds) if var not in derivation.lowered.params)
    derivation.stages = Stages(
        derivation.lowered,
        derivation.program,
        facts,
        sweeps,
        derivation.recorded,
        derivation.laid,
        replace(joint, computed=sweeps.seeds, tapes=stores),
        replace(record_form(derivation.program, forward, last, kept, facts, doc, schedules), tapes=stores),
        replace(
            pullback_form(derivation.program, backward, sweeps, gradients, kept, doc),
            backward=True,
            computed=computed,
            tapes=stores,
            shared=tuple(
                found
                for group in shadows.groups
                if (found := (group & set(kept)) | {tape.store for tape in tapes if tape.var in group})
            ),
        ),
        kept,
        derivation.wrt,
        sweeps.seeds,
        derivation.recorded.decisions,
        tapes,
        derivation.active_results,
        tuple(derivation.cuts),
        Sizes(derivation.program, facts.scopes, facts.shapes).total(tapes),
    )
    return derivation


def _uncounted(forward: Block, sweeps: Sweeps) -> set[Var]:
    """Iteration counters that only the forward sweep increments."""
    trips = set(sweeps.trips.values())
    read: set[Var] = set()
    for stmt in traversal.statements([stmt for stmt in forward if not trips.isdisjoint(traversal.reads(stmt))]):
        read.update(*[traversal.free_vars(header).difference(stmt.targets) for header in stmt.headers])
    return trips - read


def _with_tapes(forward: Block, create: Block) -> Block:
    """Create the tapes as late as their sizes allow: just before the first loop."""
    if not create:
        return forward
    for k, stmt in enumerate(forward):
        if any(isinstance(inner, (For, While)) for inner in traversal.statements((stmt,))) or any(
            var in traversal.assigned_in(*create) for header in stmt.headers for var in traversal.free_vars(header)
        ):
            return (*forward[:k], *create, *forward[k:])
    return (*forward, *create)
