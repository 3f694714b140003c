"""Assembly of both sweeps into functions: joint, and split into record and pullback."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from tapegen.ir import builders, intrinsics, traversal
from tapegen.ir.names import BACKWARD, FORWARD, NameSupply, bar_name
from tapegen.ir.nodes import (
    Assign,
    Block,
    Call,
    Comment,
    Const,
    Expr,
    Function,
    Return,
    Stmt,
    Tuple,
    Var,
)
from tapegen.ir.types import Array, Scalar
from tapegen.transform.analyses import Facts
from tapegen.transform.autodiff.reverse import Sweeps
from tapegen.transform.recording.decisions import Tape
from tapegen.transform.simplify.cleanup import always_assigned

SCHEDULE = 1000
"""The iterations of a segment of a checkpointed loop, and the number of checkpoints, where the caller does not say."""


def joint_form(
    function: Function,
    forward: Block,
    backward: Block,
    last: Return,
    sweeps: Sweeps,
    gradients: tuple[Expr, ...],
    doc: tuple[str, ...],
    names: NameSupply,
    schedules: tuple[Var, ...] = (),
) -> Function:
    body: list[Stmt] = [Comment(FORWARD), *forward]
    overwritten = traversal.assigned_in(*backward)
    values: list[Expr] = []
    for value in last.values:
        if isinstance(value, Var) and value in overwritten:  # the backward sweep uses the name for earlier values
            kept = Var(names.fresh("value"), value.type)
            body.append(Assign((kept,), value, last.origin))
            value = kept
        values.append(value)
    if backward:
        body += [Comment(BACKWARD), *backward]
    body.append(Return((*values, *gradients)))
    scalar = len(sweeps.seeds) == 1 and isinstance(sweeps.seeds[0].type, Scalar)
    defaults = tuple((seed.name, _one(seed)) for seed in sweeps.seeds) if scalar else ()
    defaults += tuple((var.name, Const(SCHEDULE)) for var in schedules)
    return Function(
        f"{function.name}_value_and_grad",
        (*function.params, *sweeps.seeds, *schedules),
        tuple(body),
        defaults,
        (f"Value of {function.name} and the cotangents of its inputs.", "", *doc),
        function.origin,
        function.globals,
    )


def shorter_names(backward: Block, others: Iterable[Stmt], taken: Iterable[str]) -> dict[Var, Var]:
    """Cotangents without the number that told them from others, where those have been removed: `x_bar_1` is `x_bar`.

    `others` are the statements of the other sweep, and `taken` are names that stand for anything else.
    """
    own = traversal.assigned_in(*backward)
    foreign = {var for stmt in others for var in (*traversal.reads(stmt), *traversal.assigns(stmt))}
    present = own.union(foreign, *map(traversal.reads, backward))
    used = {var.name for var in present}.union(taken)
    found: dict[Var, Var] = {}
    for var in sorted(own - foreign, key=lambda var: var.name):
        base, _, number = var.name.rpartition("_")
        if number.isdecimal() and base == bar_name(base.removesuffix(bar_name(""))) and base not in used:
            used.add(base)
            found[var] = Var(base, var.type)
    return found


def _one(seed: Var) -> Expr:
    if isinstance(seed.type, Scalar) and seed.type.dtype == "float32":
        return Call(np.float32, (Const(1.0),), (), seed.type)
    return Const(1.0)


def record_form(
    function: Function,
    forward: Block,
    last: Return,
    kept: tuple[Var, ...],
    facts: Facts,
    doc: tuple[str, ...],
    schedules: tuple[Var, ...] = (),
) -> Function:
    """The forward sweep by itself: results, then what the pullback reads (arrays of the caller, and views of them, are
    copied).
    """
    theirs = frozenset(param.name for param in function.params)
    values: list[Expr] = []
    sure = always_assigned(forward) | {*function.params, *schedules}
    unset = tuple(Assign((var,), _placeholder(var)) for var in kept if var not in sure)
    for var in kept:
        caller_owned = isinstance(var.type, Array) and (var.name in theirs or facts.effects.roots(var) & theirs)
        values.append(builders.copy(var) if caller_owned else var)
    return Function(
        f"{function.name}_record",
        (*function.params, *schedules),
        (*unset, *forward, Return((*last.values, *values))),
        (),
        (f"Value of {function.name}, and what its pullback reads.", "", *doc),
        function.origin,
        function.globals,
    )


def _placeholder(var: Var) -> Expr:
    """A placeholder for a value that is defined in one branch only, and read only where that branch was taken."""
    if isinstance(var.type, Array):
        shape = Tuple((Const(0),) * var.type.rank)
        dtype = np.bool_ if var.type.dtype == "bool" else getattr(np, var.type.dtype)
        return Call(np.empty, (shape, Const(dtype)), (), var.type)
    if isinstance(var.type, Scalar):
        return Const({"bool": False, "int64": 0}.get(var.type.dtype, 0.0))
    return Call(intrinsics.new_list, (), (), var.type)


def pullback_form(
    function: Function,
    backward: Block,
    sweeps: Sweeps,
    gradients: tuple[Expr, ...],
    kept: tuple[Var, ...],
    doc: tuple[str, ...],
) -> Function:
    return Function(
        f"{function.name}_pullback",
        (*kept, *sweeps.seeds),
        (*backward, Return(gradients)),
        (),
        (f"Cotangents of the inputs of {function.name}.", "", *doc),
        function.origin,
        function.globals,
    )


def doc_of(
    function: Function, wrt: tuple[Var, ...], results: list[Var], sweeps: Sweeps, tapes: list[Tape], facts: Facts
) -> tuple[str, ...]:
    """The part of the docstring that all derivative kinds of a program share."""
    rows = [
        ("outputs:", listed(results) + (f"  (seed: {listed(sweeps.seeds)})" if sweeps.seeds else "")),
        ("differentiated inputs:", listed(wrt)),
        ("recorded:", listed(tape.var for tape in tapes)),
    ]
    return (*table(rows + mutated_row(function, facts, "cotangents")), *function.doc)


def table(rows: list[tuple[str, str]]) -> tuple[str, ...]:
    width = max(len(head) for head, _ in rows)
    return tuple(f"{head:<{width}}  {text}" for head, text in rows)


def mutated_row(function: Function, facts: Facts, kind: str) -> list[tuple[str, str]]:
    mutated = [param for param in function.params if param.name in facts.effects.mutated_params]
    return [("mutated:", f"{listed(mutated)}  ({kind} belong to the values on entry)")] if mutated else []


def listed(variables: Iterable[Var]) -> str:
    return ", ".join(var.name for var in variables) or "nothing"
