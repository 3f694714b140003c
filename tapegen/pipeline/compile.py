"""The compilation pipelines from a lowered program to its derivatives.

`REVERSE_PASSES` and `FORWARD_PASSES` declare the order.  A pass works on a `Derivation`, which holds the results of
previous passes; `Stages` is what remains of it in the end.
"""

from __future__ import annotations

from collections.abc import Callable, Set
from dataclasses import replace

from tapegen.analysis.alias_conflicts import refusal_of
from tapegen.analysis.memory_access import components, moves
from tapegen.errors import AliasError
from tapegen.ir import traversal
from tapegen.ir.nodes import (
    Assign,
    Block,
    For,
    Function,
    Return,
    Routine,
    Store,
    Var,
    While,
)
from tapegen.ir.passes import Pass, run_passes
from tapegen.ir.types import INT, Array, is_complex
from tapegen.pipeline.derivation import Derivation, Stages, in_one_sweep, refuse_hidden_sharing
from tapegen.pipeline.preparation import PREPARATION
from tapegen.transform.analyses import Facts
from tapegen.transform.autodiff.forward import forward
from tapegen.transform.autodiff.reverse import Sweeps, reverse
from tapegen.transform.autodiff.selection_loops import selections
from tapegen.transform.autodiff.shadow_memory import add_shadows
from tapegen.transform.autodiff.vector_forward import Several, several
from tapegen.transform.autodiff.viewed_merges import name_viewed_merges
from tapegen.transform.messages import without_messages
from tapegen.transform.recording.assemble import (
    doc_of,
    joint_form,
    listed,
    mutated_row,
    pullback_form,
    record_form,
    shorter_names,
    table,
)
from tapegen.transform.recording.checkpoints import checkpointed, unread_tapes
from tapegen.transform.recording.decisions import Cut
from tapegen.transform.recording.loop_order import loops_of
from tapegen.transform.recording.plan import record
from tapegen.transform.recording.tape_layout import drop_unread_tapes, lay_out
from tapegen.transform.recording.tape_sizes import Sizes
from tapegen.transform.simplify.cleanup import clean_up, reads_of, resolve_primal_as
from tapegen.transform.simplify.cse import share_values
from tapegen.transform.simplify.dead_code import Aliases


def routines(function: Function, user_names: Set[str]) -> dict[Routine, Function]:
    """The programs of the routines that a program calls, directly or by each other, as readable source.

    Derivatives of routines are derived here, when a program that calls them is available.
    """
    found: dict[Routine, Function] = {}
    work = [function]
    while work:
        for routine in traversal.routines(work.pop().body):
            if routine in found:
                continue
            if routine.function is None:
                routine.function = _derived(routine, user_names)
            made = routine.function if routine.source is not None else primal(routine.function, user_names)
            found[routine] = made
            work.append(made)
    return found


def _derived(routine: Routine, user_names: Set[str]) -> Function:
    source = routine.source
    assert source is not None
    base = source.routine.function
    assert base is not None
    wrt = tuple(param for param, wanted in zip(base.params, source.wrt, strict=True) if wanted)
    if source.kind == "jvp":
        return replace(derive_forward(base, wrt, source.active, user_names), name=routine.name)
    base = without_messages(base)  # the forward sweep of the caller has written them
    stages = derive_reverse(base, wrt, source.active, user_names)
    *body, last = stages.joint.body
    assert isinstance(last, Return)
    gradients = last.values[len(last.values) - len(wrt) :]
    live = set().union(*(traversal.free_vars(value) for value in gradients))
    return replace(
        stages.joint,
        name=routine.name,
        body=(*clean_up(tuple(body), live, user_names), Return(gradients, last.origin)),
        defaults=(),
        doc=(f"Cotangents of the inputs of {base.name}.", *stages.joint.doc[1:]),
        inner=True,
    )


def primal(lowered: Function, user_names: Set[str]) -> Function:
    """The lowered program as readable source."""
    refuse_hidden_sharing(lowered)
    *body, last = in_one_sweep(lowered).body
    assert isinstance(last, Return)
    live = set().union(*(traversal.free_vars(value) for value in last.values))
    live |= {param for param in lowered.params if isinstance(param.type, Array)}
    return replace(lowered, body=(*clean_up(tuple(body), live, user_names, traversal.assigned_in(*lowered.body)), last))


# ---- reverse mode ----------------------------------------------------------------------------------------------------


def separate_viewed_merges(derivation: Derivation) -> Derivation:
    """Give a merge a second name where a view of it outlives its value."""
    program = name_viewed_merges(derivation.program, _merges(derivation), derivation.names)
    if program is not derivation.program:
        derivation.program = program
        derivation.analyze()
    return derivation


def insert_shadows(derivation: Derivation) -> Derivation:
    """Insert shadow arrays, which follow the program's references where aliasing is known only at run time."""
    _refuse_written_parts(derivation.program, derivation.facts)
    facts, merges = derivation.facts, _merges(derivation)
    derivation.program, derivation.shadows = add_shadows(
        derivation.program, facts.effects.conflicts, facts.activity.active, merges, derivation.names
    )
    if derivation.shadows.of:
        derivation.analyze()
    return derivation


def _merges(derivation: Derivation) -> Set[Var]:
    return {var for var, assigns in derivation.facts.scopes.assigns.items() if len(assigns) > 1}


def recognize_selections(derivation: Derivation) -> Derivation:
    """Find loops that select one of several candidates: the backward sweep reverses only that iteration."""
    derivation.selecting = {}
    if not derivation.shadows.of:
        body, derivation.selecting = selections(derivation.program.body, derivation.facts, derivation.names)
        if derivation.selecting:
            derivation.program = replace(derivation.program, body=body)
            derivation.analyze()
    return derivation


def derive_sweeps(derivation: Derivation) -> Derivation:
    """Build the forward sweep, and an ideal backward sweep, which may read any value."""
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


def plan_recording(derivation: Derivation, *, record_everything: bool) -> Derivation:
    """Make every read of the backward sweep possible: live, recomputed or recorded."""
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
    """Lay out tapes as arrays, and resolve `primal_as` to the primal values that the backward sweep reads."""
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
    """Compute each value of the backward sweep once."""
    derivation.backward = share_values(derivation.backward, derivation.gradient_vars, derivation.user_names)
    return derivation


def checkpoint_loops(derivation: Derivation) -> Derivation:
    """Cut loops into segments, of which the tapes hold one at a time."""
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


def clean_up_sweeps(derivation: Derivation) -> Derivation:
    """Drop what nothing reads, tapes included, and make the rest readable."""
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
    """Assemble the sweeps into functions: both in one, and one for each."""
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


REVERSE_PASSES: tuple[Pass[Derivation], ...] = (
    *PREPARATION,
    Pass("separate_viewed_merges", separate_viewed_merges, "views of a value that a loop replaces", False),
    Pass("insert_shadows", insert_shadows, "cotangents of arrays that may be one and the same", False),
    Pass("recognize_selections", recognize_selections, "argmin loops: the backward sweep visits one candidate", False),
    Pass("derive_sweeps", derive_sweeps, "reverse mode", False),
    Pass("plan_recording", plan_recording, "what is live, recomputed or recorded", False, ("record_everything",)),
    Pass("lay_out_tapes", lay_out_tapes, "tapes as arrays", False, ("parallel",)),
    Pass("eliminate_common_subexpressions", eliminate_common_subexpressions, "the backward sweep computes values once"),
    Pass("checkpoint_loops", checkpoint_loops, "loops in segments: the tapes hold one of them", False),
    Pass("clean_up_sweeps", clean_up_sweeps, "dead code, copies and tapes; names that a person would choose", False),
    Pass("assemble_forms", assemble_forms, "value and gradient in one function, and the split pair", False),
)


def derive_reverse(
    lowered: Function,
    wrt: tuple[Var, ...],
    active_results: tuple[bool, ...],
    user_names: Set[str],
    *,
    differentiated_again: bool = False,
    record_everything: bool = False,
    cut: tuple[int, ...] = (),
    parallel: bool = False,
    watch: Callable[[str, Derivation], None] | None = None,
) -> Stages:
    """Derive the joint and the split variant of the reverse derivative.

    Parameters
    ----------
    lowered : Function
        A lowered program.
    wrt : tuple of Var
        Parameters to differentiate with respect to.
    active_results : tuple of bool
        Which returned values are differentiated.
    user_names : set of str
        Names that occur in the user's source.
    differentiated_again : bool
        Whether the derivative will be differentiated again.
    record_everything : bool
        Switch the recording analysis off (tests: results must not change).
    cut : tuple of int
        The loops to checkpoint, by their positions among the loops of the prepared program.
    parallel : bool
        Whether the backward sweeps of iterations are to depend on no order, where that takes positions on tapes.
    watch : callable, optional
        Called with the derivation after each pass.
    """
    derivation = Derivation(in_one_sweep(lowered), wrt, active_results, user_names, differentiated_again, cut)
    return run_passes(REVERSE_PASSES, derivation, watch, record_everything=record_everything, parallel=parallel).stages


# ---- forward mode ----------------------------------------------------------------------------------------------------


def derive_tangents(derivation: Derivation) -> Derivation:
    """Insert a tangent next to each value that varies."""
    _refuse_conflicts(derivation.program, derivation.facts)
    derivation.prepared = derivation.program
    derivation.program, derivation.tangents = forward(
        derivation.program, derivation.wrt, derivation.active_results, derivation.facts, derivation.names
    )
    return derivation


def clean_up_tangents(derivation: Derivation) -> Derivation:
    """Drop what nothing reads, and make the rest readable."""
    derivation.program = _tidied(derivation.program, derivation.lowered, derivation.user_names)
    return derivation


TANGENT_PASSES: tuple[Pass[Derivation], ...] = (
    *PREPARATION,
    Pass("derive_tangents", derive_tangents, "forward mode", False),
)
"""The common start of forward mode in one direction and in several."""

FORWARD_PASSES: tuple[Pass[Derivation], ...] = (
    *TANGENT_PASSES,
    Pass("clean_up_tangents", clean_up_tangents, "dead code and copies; names that a person would choose", False),
)


def derive_forward(
    lowered: Function,
    wrt: tuple[Var, ...],
    active_results: tuple[bool, ...],
    user_names: Set[str],
    *,
    differentiated_again: bool = False,
) -> Function:
    """Derive the function that returns the results and the tangents of the active ones.

    The tangents of the parameters in `wrt` are its last parameters.  See `derive_reverse` for the arguments.
    """
    derivation = Derivation(lowered, wrt, active_results, user_names, differentiated_again)
    pushed = run_passes(FORWARD_PASSES, derivation).program
    last = pushed.body[-1]
    assert isinstance(last, Return)
    tangents = last.values[len(last.values) - sum(active_results) :]
    doc = [
        (
            "outputs:",
            f"{listed(derivation.results)}  (tangents: {listed(v for v in tangents if isinstance(v, Var))})",
        ),
        ("differentiated inputs:", f"{listed(wrt)}  (tangents: {listed(pushed.params[len(lowered.params) :])})"),
    ]
    head = f"Value of {lowered.name} and its tangent."
    return replace(
        pushed,
        inner=lowered.inner,
        doc=(head, "", *table(doc + mutated_row(derivation.prepared, derivation.facts, "tangents")), *lowered.doc),
    )


def drop_primal_outputs(pushed: Function, lowered: Function, count: int, user_names: Set[str]) -> Function:
    """A program with tangents that returns only these, its last `count` results; it raises the same errors."""
    *body, last = pushed.body
    assert isinstance(last, Return)
    tangents = last.values[len(last.values) - count :]
    head = f"Tangent of {lowered.name}."
    left = replace(pushed, body=(*body, replace(last, values=tangents)), doc=(head, *pushed.doc[1:]))
    return _tidied(left, lowered, user_names)


def derive_vector_forward(
    lowered: Function, wrt: tuple[Var, ...], active_results: tuple[bool, ...], user_names: Set[str]
) -> Several | None:
    """The same in several directions at once, where a vectorized variant exists; it may be differentiated again."""
    derivation = Derivation(in_one_sweep(lowered), wrt, active_results, user_names, True)
    tangents = run_passes(TANGENT_PASSES, derivation).tangents
    dots = tuple(tangents[var] for var in wrt)
    found = several(derivation.program, tangents, dots, sum(active_results), derivation.names)
    if found is None:
        return None
    return replace(found, function=_tidied(found.function, derivation.lowered, user_names))


def _tidied(pushed: Function, lowered: Function, user_names: Set[str]) -> Function:
    *body, last = pushed.body
    assert isinstance(last, Return)
    live = set().union(*(traversal.free_vars(value) for value in last.values))
    live |= {param for param in pushed.params if isinstance(param.type, Array)}
    body = list(clean_up(resolve_primal_as(tuple(body)), live, user_names, traversal.assigned_in(*lowered.body)))
    return replace(pushed, body=(*body, last))


# ---- queries of passes -----------------------------------------------------------------------------------------------


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
