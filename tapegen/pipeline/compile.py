"""The ordered pipeline from a lowered program to the texts that run.

`Stages` keeps every intermediate program, so that each can be printed and checked.
"""

from __future__ import annotations

import warnings
from collections.abc import Mapping, Set
from dataclasses import dataclass, field, replace
from typing import Any

from tapegen.analysis.activity import active_operands, activity_of
from tapegen.analysis.alias_conflicts import conflicts_of, refusal_of
from tapegen.analysis.memory_access import components, moves
from tapegen.analysis.scopes import scopes_of
from tapegen.analysis.side_effects import effects_of
from tapegen.errors import AliasError
from tapegen.ir import intrinsics, traversal
from tapegen.ir.names import NameSupply
from tapegen.ir.nodes import (
    Assign,
    Block,
    Call,
    Comment,
    For,
    Function,
    Return,
    Routine,
    Stmt,
    Store,
    Var,
    While,
)
from tapegen.ir.types import Array, is_complex, is_floating
from tapegen.transform.analyses import Facts, facts_of, places_of
from tapegen.transform.autodiff.expand_formulas import expand, has_formula
from tapegen.transform.autodiff.forward import forward
from tapegen.transform.autodiff.reverse import Sweeps, reverse
from tapegen.transform.autodiff.rule_application import rule_for
from tapegen.transform.autodiff.selection_loops import selections
from tapegen.transform.autodiff.shadow_memory import mirror
from tapegen.transform.autodiff.vector_forward import Several, several
from tapegen.transform.recording.assemble import (
    doc_of,
    joint_form,
    listed,
    mutated_row,
    pullback_form,
    record_form,
    table,
)
from tapegen.transform.recording.decisions import Decision, Recorded
from tapegen.transform.recording.plan import record
from tapegen.transform.recording.tape_layout import Laid, Tape, lay_out, without
from tapegen.transform.simplify.cleanup import reads_of, resolve_primal_as, tidy
from tapegen.transform.simplify.cse import accumulations, share_loads, share_values, split_merges
from tapegen.transform.simplify.dead_code import Aliases
from tapegen.transform.simplify.licm import hoist


@dataclass(slots=True)
class Stages:
    """Every program on the way from the lowered function to its derivative.

    Attributes
    ----------
    lowered : Function
        The primal as it was lowered.
    expanded : Function
        With the formulas of composite functions written out.
    recorded : Recorded
        The two sweeps with Push and Pop, and the decisions.
    joint : Function
        Value and gradient in one function.
    record, pullback : Function
        The split pair: the forward sweep that returns its tapes, and the backward sweep that takes them.
    kept : tuple of Var
        What `record` returns after the results and `pullback` takes before the seeds.
    """

    lowered: Function
    expanded: Function
    facts: Facts
    sweeps: Sweeps
    recorded: Recorded
    laid: Laid
    joint: Function
    record: Function
    pullback: Function
    kept: tuple[Var, ...]
    wrt: tuple[Var, ...]
    seeds: tuple[Var, ...]
    decisions: list[Decision] = field(default_factory=list)
    tapes: list[Tape] = field(default_factory=list)


def routines(function: Function, user_names: Set[str]) -> dict[Routine, Function]:
    """The programs of the routines that a program calls, directly or by each other, as text a person would read.

    Derivatives of routines are derived here, when a program that calls them is at hand.
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
        return replace(push_forward(base, wrt, source.active, user_names), name=routine.name)
    stages = differentiate(base, wrt, source.active, user_names)
    *body, last = stages.joint.body
    assert isinstance(last, Return)
    gradients = last.values[len(last.values) - len(wrt) :]
    live = set().union(*(traversal.free_vars(value) for value in gradients))
    return replace(
        stages.joint,
        name=routine.name,
        body=(*tidy(tuple(body), live, user_names), Return(gradients, last.origin)),
        defaults=(),
        doc=(f"Cotangents of the inputs of {base.name}.", *stages.joint.doc[1:]),
        inner=True,
    )


def primal(lowered: Function, user_names: Set[str]) -> Function:
    """The lowered program as text a person would read."""
    _refuse_hidden_sharing(lowered)
    *body, last = _in_one_sweep(lowered).body
    assert isinstance(last, Return)
    live = set().union(*(traversal.free_vars(value) for value in last.values))
    live |= {param for param in lowered.params if isinstance(param.type, Array)}
    return replace(lowered, body=(*tidy(tuple(body), live, user_names, traversal.assigned_in(*lowered.body)), last))


def differentiate(
    lowered: Function,
    wrt: tuple[Var, ...],
    active_results: tuple[bool, ...],
    user_names: Set[str],
    *,
    again: bool = False,
    record_everything: bool = False,
) -> Stages:
    """Derive the joint and the split form of the reverse derivative.

    Parameters
    ----------
    lowered : Function
        A lowered program.
    wrt : tuple of Var
        Parameters to differentiate with respect to.
    active_results : tuple of bool
        Which returned values are differentiated.
    user_names : set of str
        Names that stand in the user's source.
    again : bool
        Whether the derivative will be derived once more.
    record_everything : bool
        Switch the recording analysis off (tests: results must not change).
    """
    _refuse_hidden_sharing(lowered)
    lowered = _in_one_sweep(lowered)
    names = NameSupply(_names_of(lowered) | set(user_names), user_names)
    expanded, facts, results = _prepared(lowered, wrt, active_results, user_names, names, again)
    _refuse_written_parts(expanded, facts)
    last = expanded.body[-1]
    assert isinstance(last, Return)
    merges = {var for var, assigns in facts.scopes.assigns.items() if len(assigns) > 1}
    expanded, mirrors = mirror(expanded, facts.effects.conflicts, facts.activity.active, merges, names)
    body, selecting = (expanded.body, {}) if mirrors.of else selections(expanded.body, facts, names)
    if mirrors.of or selecting:
        expanded = replace(expanded, body=body)
        facts = facts_of(expanded, wrt, results, again=again)
    sweeps = reverse(expanded, wrt, active_results, facts, mirrors, names, selecting)
    recorded = record(expanded, sweeps, facts, names, user_names, everything=record_everything)
    laid = lay_out(recorded, sweeps, facts.scopes, facts.shapes, names)

    sweep = resolve_primal_as(laid.forward)
    gradients = sweeps.gradients
    ends = set().union(*(traversal.free_vars(expr) for expr in gradients)) if gradients else set()
    backward = share_values(resolve_primal_as(laid.backward), ends, user_names)
    backward = tidy(backward, ends, user_names, shared=Aliases(sweep, mirrors.groups).groups())
    used = reads_of(backward)
    wanted = used | set().union(*(traversal.free_vars(value) for value in last.values))
    wanted |= {param for param in lowered.params if isinstance(param.type, Array)}
    wanted |= ends
    made = {var for stmt in laid.create for var in stmt.targets}
    create = tuple(stmt for stmt in laid.create if any(var in used for var in stmt.targets))
    sweep = without(sweep, made - used)
    sweep = without(sweep, _uncounted(sweep, sweeps) - used)
    wanted |= reads_of(create)  # the sizes of tapes
    sweep = tidy(sweep, wanted, user_names, traversal.assigned_in(*lowered.body))
    sweep = _with_tapes(sweep, create)
    backward_reads = used | (ends - traversal.assigned_in(*backward))

    tapes = [tape for tape in laid.tapes if tape.store in used]
    doc = doc_of(expanded, wrt, results, sweeps, tapes, facts)
    joint = joint_form(expanded, sweep, backward, last, sweeps, gradients, doc, names)
    stores = tuple(tape.store for tape in tapes)
    kept = tuple(sorted((v for v in backward_reads if v not in sweeps.seeds), key=lambda v: v.name))
    computed = tuple(var for var in (*kept, *sweeps.seeds) if var not in lowered.params)
    return Stages(
        lowered,
        expanded,
        facts,
        sweeps,
        recorded,
        laid,
        replace(joint, computed=sweeps.seeds, tapes=stores),
        replace(record_form(expanded, sweep, last, kept, facts, doc), tapes=stores),
        replace(
            pullback_form(expanded, backward, sweeps, gradients, kept, doc),
            backward=True,
            computed=computed,
            tapes=stores,
            shared=tuple(
                found
                for group in mirrors.groups
                if (found := (group & set(kept)) | {tape.store for tape in tapes if tape.var in group})
            ),
        ),
        kept,
        wrt,
        sweeps.seeds,
        recorded.decisions,
        tapes,
    )


def push_forward(
    lowered: Function,
    wrt: tuple[Var, ...],
    active_results: tuple[bool, ...],
    user_names: Set[str],
    *,
    again: bool = False,
) -> Function:
    """Derive the function that returns the results and the tangents of the active ones.

    The tangents of the parameters in `wrt` are its last parameters.  See `differentiate` for the arguments.
    """
    names = NameSupply(_names_of(lowered) | set(user_names), user_names)
    expanded, facts, results, pushed, _ = _pushed(lowered, wrt, active_results, user_names, names, again)
    pushed = _tidied(pushed, lowered, user_names)
    last = pushed.body[-1]
    assert isinstance(last, Return)
    tangents = last.values[len(last.values) - sum(active_results) :]
    doc = [
        ("useful results:", f"{listed(results)}  (tangents: {listed(v for v in tangents if isinstance(v, Var))})"),
        ("varying inputs:", f"{listed(wrt)}  (tangents: {listed(pushed.params[len(lowered.params) :])})"),
    ]
    head = f"Value of {lowered.name} and its tangent."
    return replace(
        pushed,
        inner=lowered.inner,
        doc=(head, "", *table(doc + mutated_row(expanded, facts, "tangents")), *lowered.doc),
    )


def without_value(pushed: Function, lowered: Function, count: int, user_names: Set[str]) -> Function:
    """A program with tangents that returns only these, its last `count` results; it raises what it raised."""
    *body, last = pushed.body
    assert isinstance(last, Return)
    tangents = last.values[len(last.values) - count :]
    head = f"Tangent of {lowered.name}."
    left = replace(pushed, body=(*body, replace(last, values=tangents)), doc=(head, *pushed.doc[1:]))
    return _tidied(left, lowered, user_names)


def push_several(
    lowered: Function, wrt: tuple[Var, ...], active_results: tuple[bool, ...], user_names: Set[str]
) -> Several | None:
    """The same in several directions at once, where the program has such a form; it may be derived once more."""
    lowered = _in_one_sweep(lowered)
    names = NameSupply(_names_of(lowered) | set(user_names), user_names)
    _, _, _, pushed, tangents = _pushed(lowered, wrt, active_results, user_names, names, True)
    dots = tuple(tangents[var] for var in wrt)
    found = several(pushed, tangents, dots, sum(active_results), names)
    if found is None:
        return None
    return replace(found, function=_tidied(found.function, lowered, user_names))


def _pushed(
    lowered: Function,
    wrt: tuple[Var, ...],
    active_results: tuple[bool, ...],
    user_names: Set[str],
    names: NameSupply,
    again: bool,
) -> tuple[Function, Facts, list[Var], Function, Mapping[Var, Var]]:
    """The program prepared, what is known of it, and the program with tangents, as they were made."""
    _refuse_hidden_sharing(lowered)
    expanded, facts, results = _prepared(lowered, wrt, active_results, user_names, names, again)
    _refuse_conflicts(expanded, facts)
    return expanded, facts, results, *forward(expanded, wrt, active_results, facts, names)


def _tidied(pushed: Function, lowered: Function, user_names: Set[str]) -> Function:
    *body, last = pushed.body
    assert isinstance(last, Return)
    live = set().union(*(traversal.free_vars(value) for value in last.values))
    live |= {param for param in pushed.params if isinstance(param.type, Array)}
    body = list(tidy(resolve_primal_as(tuple(body)), live, user_names, traversal.assigned_in(*lowered.body)))
    return replace(pushed, body=(*body, last))


def _prepared(
    lowered: Function,
    wrt: tuple[Var, ...],
    active_results: tuple[bool, ...],
    user_names: Set[str],
    names: NameSupply,
    again: bool,
) -> tuple[Function, Facts, list[Var]]:
    """The program as both modes take it: formulas written out, shared loads, results with names of their own."""
    expanded = _expanded(lowered, wrt, names)
    accumulating = replace(expanded, body=accumulations(expanded.body, effects_of(expanded)))
    # formulas have loops of their own
    merges = {var for var, assigns in scopes_of(accumulating).assigns.items() if len(assigns) > 1}
    split = replace(accumulating, body=split_merges(accumulating.body, merges, names))
    expanded = replace(split, body=share_loads(split.body, effects_of(split), user_names, merges))
    places = places_of(expanded)
    hoisted = hoist(expanded.body, places.effects, places.shapes, merges)
    if hoisted is not expanded.body:
        expanded = replace(expanded, body=hoisted)
        places = places_of(expanded)
    last = expanded.body[-1]  # it may name the values that others turned out to share
    assert isinstance(last, Return)
    results = [v for v, active in zip(last.values, active_results, strict=True) if active and isinstance(v, Var)]
    facts = facts_of(expanded, wrt, results, places, again=again)
    _warn_of_truncation(facts, expanded.body)
    return expanded, facts, results


def _expanded(lowered: Function, wrt: tuple[Var, ...], names: NameSupply) -> Function:
    """The program with formulas written out, if it calls what has one; the same program if not."""
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
        # a formula may share memory where its call does not, so that more is thought to vary
        body = list(lowered.body[:-1])
        varied = activity_of(lowered, wrt, ()).varied


def _in_one_sweep(lowered: Function) -> Function:
    """A program that is a gradient without the comment above its backward sweep, for all but its own tangents."""
    body = tuple([stmt for stmt in lowered.body if not isinstance(stmt, Comment)])
    return lowered if len(body) == len(lowered.body) else replace(lowered, body=body)


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


def _refuse_hidden_sharing(function: Function) -> None:
    """A routine returns a copy of what may be part of its arguments: refuse stores that would tell."""
    if not traversal.routines(function.body):
        return
    sure = {(found.statement, found.stored, found.other) for found in conflicts_of(function)}
    for found in conflicts_of(function, of_routines=True):
        if (found.statement, found.stored, found.other) not in sure:
            raise AliasError(
                "this writes into an argument or a result of a function that calls itself, and the result may be part "
                "of the argument",
                "Return a copy (return x.copy()), or copy before the store.",
                found.statement.origin,
            )


def _refuse_conflicts(function: Function, facts: Facts) -> None:
    """Tangents move as the references of the program do, but a view of one may be a copy where the other's is none."""
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
    """Of a part of a complex array no view of the cotangent is the cotangent, and what is stored would be lost."""
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


def _names_of(function: Function) -> set[str]:
    variables = set(function.params).union(*map(traversal.reads, function.body), *map(traversal.assigns, function.body))
    return {function.name, *(var.name for var in variables)}


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
                    stacklevel=6,
                )


def _uncounted(forward: Block, sweeps: Sweeps) -> set[Var]:
    """Counters of trips that the forward sweep itself only counts."""
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
