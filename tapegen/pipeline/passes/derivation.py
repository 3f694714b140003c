"""Derivations: a derivative under construction, and the programs that remain of it."""

from __future__ import annotations

from collections.abc import Mapping, Set
from dataclasses import dataclass, field, replace
from typing import Any

from tapegen.analysis.alias_conflicts import conflicts_of
from tapegen.errors import AliasError
from tapegen.ir import traversal
from tapegen.ir.names import BACKWARD, NameSupply
from tapegen.ir.nodes import (
    Block,
    Comment,
    Function,
    Return,
    Var,
)
from tapegen.ir.printer import block_text, function_text
from tapegen.transform.analyses import Facts, Places, facts_of
from tapegen.transform.autodiff.reverse import Sweeps
from tapegen.transform.autodiff.shadow_memory import ShadowArrays
from tapegen.transform.recording.decisions import Cut, Decision, Recorded, Tape
from tapegen.transform.recording.loop_order import reversed_loops
from tapegen.transform.recording.tape_layout import Laid
from tapegen.transform.recording.tape_sizes import LoopTapes, Sizes, added


@dataclass(slots=True)
class Stages:
    """Every program on the way from the lowered function to its derivative.

    Attributes
    ----------
    lowered : Function
        The primal as it was lowered.
    expanded : Function
        With the formulas of composite functions inlined.
    recorded : Recorded
        The two sweeps with Push and Pop, and the decisions.
    joint : Function
        Value and gradient in one function.
    record, pullback : Function
        The split pair: the forward sweep that returns its tapes, and the backward sweep that accepts them.
    kept : tuple of Var
        The values that `record` returns after the results and `pullback` accepts before the seeds.
    cuts : tuple of Cut
        The loops that are checkpointed; `joint` and `record` take their intervals and numbers of checkpoints last.
    recorded_bytes : str
        The bytes of the tapes, as a Python expression of the parameters; those of unknown size do not count.
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
    active_results: tuple[bool, ...] = ()
    cuts: tuple[Cut, ...] = ()
    recorded_bytes: str = "0"

    def loops(self) -> tuple[LoopTapes, ...]:
        """The loops that record, outermost first."""
        return self._sizes.loops(self.tapes, reversed_loops(self.sweeps))

    def checkpoint_bytes(self, cut: Cut) -> str | None:
        """The bytes of one checkpoint, as a Python expression of the parameters; None where that is unknown."""
        return added([self._sizes.of_value(var) for var in cut.state]) if cut.state else "0"

    @property
    def _sizes(self) -> Sizes:
        return Sizes(self.expanded, self.facts.scopes, self.facts.shapes)


@dataclass(eq=False)
class Derivation:
    """A derivative under construction: the results of the passes so far.

    Attributes
    ----------
    lowered : Function
        The primal as it was lowered.
    wrt : tuple of Var
        Parameters to differentiate with respect to.
    active_results : tuple of bool
        Which returned values are differentiated.
    user_names : set of str
        Names that occur in the user's source.
    names : NameSupply
        The supply of fresh names.
    differentiated_again : bool
        Whether the derivative will be differentiated again.
    checkpointed : tuple of int
        The loops that are checkpointed, by their positions among the loops of the primal.
    cuts : list of Cut
        The same loops, once the primal is final.
    checkpoints : list of Var
        The lists that hold their checkpoints.
    program : Function
        The primal as both modes use it; in forward mode, later, the program with tangents.
    prepared : Function
        In forward mode, the program without tangents.
    last : Return
        The return statement of the primal.
    results : list of Var
        The results that are differentiated.
    forward, backward : tuple of Stmt
        The sweeps, once there are two.
    """

    lowered: Function
    wrt: tuple[Var, ...]
    active_results: tuple[bool, ...]
    user_names: Set[str]
    differentiated_again: bool = False
    checkpointed: tuple[int, ...] = ()
    cuts: list[Cut] = field(init=False, default_factory=list)
    checkpoints: list[Var] = field(init=False, default_factory=list)
    names: NameSupply = field(init=False)
    program: Function = field(init=False)
    prepared: Function = field(init=False)
    last: Return = field(init=False)
    places: Places | None = field(init=False, default=None)
    results: list[Var] = field(init=False)
    merges: set[Var] = field(init=False)
    facts: Facts = field(init=False)
    shadows: ShadowArrays = field(init=False)
    selecting: Mapping[Any, Any] = field(init=False)
    sweeps: Sweeps = field(init=False)
    recorded: Recorded = field(init=False)
    laid: Laid = field(init=False)
    forward: Block | None = field(init=False, default=None)
    backward: Block = field(init=False)
    tangents: Mapping[Var, Var] = field(init=False)
    stages: Stages | None = field(init=False, default=None)

    def __post_init__(self) -> None:
        refuse_hidden_sharing(self.lowered)
        self.names = NameSupply(_names_of(self.lowered) | set(self.user_names), self.user_names)
        self.program = self.lowered

    def analyze(self, places: Places | None = None) -> None:
        """Analyze the program, with what is known of its memory."""
        again = self.differentiated_again
        self.facts = facts_of(self.program, self.wrt, self.results, places, again=again)

    @property
    def gradient_vars(self) -> set[Var]:
        """The expressions of the gradients."""
        return set().union(*(traversal.free_vars(expr) for expr in self.sweeps.gradients))

    def text(self) -> str:
        """The present program as readable source; once assembled, the joint function."""
        if self.stages is not None:
            return function_text(self.stages.joint)
        if self.forward is None:
            return function_text(self.program, types=True)
        return block_text((*self.forward, Comment(BACKWARD), *self.backward))


def refuse_hidden_sharing(function: Function) -> None:
    """A routine returns a copy of what may alias its arguments: refuse stores that would show the difference."""
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


def _names_of(function: Function) -> set[str]:
    variables = set(function.params).union(*map(traversal.reads, function.body), *map(traversal.assigns, function.body))
    return {function.name, *(var.name for var in variables)}


def in_one_sweep(lowered: Function) -> Function:
    """A program that is a gradient without the comment above its backward sweep, for all but its own tangents."""
    body = tuple([stmt for stmt in lowered.body if not isinstance(stmt, Comment)])
    return lowered if len(body) == len(lowered.body) else replace(lowered, body=body)
