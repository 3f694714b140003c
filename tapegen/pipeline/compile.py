"""The compilation pipelines from a lowered program to its derivatives.

`REVERSE_PASSES` and `FORWARD_PASSES` declare the order.  A pass works on a `Derivation`, which holds the results of
previous passes; `Stages` is what remains of it in the end.
"""

from __future__ import annotations

from collections.abc import Callable, Set
from dataclasses import replace

from tapegen.ir import traversal
from tapegen.ir.nodes import (
    Function,
    Return,
    Routine,
    Var,
)
from tapegen.ir.passes import Pass, run_passes
from tapegen.ir.types import Array
from tapegen.pipeline.passes.assembly import assemble_forms, clean_up_sweeps
from tapegen.pipeline.passes.derivation import Derivation, Stages, in_one_sweep, refuse_hidden_sharing
from tapegen.pipeline.passes.preparation import PREPARATION
from tapegen.pipeline.passes.recording import (
    checkpoint_loops,
    eliminate_common_subexpressions,
    lay_out_tapes,
    plan_recording,
)
from tapegen.pipeline.passes.reverse_sweeps import (
    derive_sweeps,
    insert_shadows,
    recognize_selections,
    separate_viewed_merges,
)
from tapegen.pipeline.passes.tangents import clean_up_tangents, derive_tangents, tidied
from tapegen.transform.autodiff.vector_forward import Several, several
from tapegen.transform.messages import without_messages
from tapegen.transform.recording.assemble import (
    listed,
    mutated_row,
    table,
)
from tapegen.transform.simplify.cleanup import clean_up


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
    options = {"record_everything": record_everything, "parallel": parallel}
    stages = run_passes(REVERSE_PASSES, derivation, watch, **options).stages
    assert stages is not None
    return stages


# ---- forward mode ----------------------------------------------------------------------------------------------------


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
    return tidied(left, lowered, user_names)


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
    return replace(found, function=tidied(found.function, derivation.lowered, user_names))
