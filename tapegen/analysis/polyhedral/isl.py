"""Satisfiability of affine constraints over the integers: all contact with isl, the integer set library."""

from __future__ import annotations

from collections.abc import Iterable
from functools import cached_property
from typing import Any

from tapegen.analysis.polyhedral.constraints import And, Atom, Formula, Or, Symbol, symbols_of

_OPERATIONS = 200_000
"""Bound on isl's work for one query (some tens of milliseconds)."""

_SPLITS = 300
"""Bound on the alternatives (disjuncts) tried for one query."""


_LARGEST = 2**31
"""Bound on coefficients; larger ones do not fit isl's interface, or make its integers explode."""


class _TooHard(Exception):
    """A query that exceeded its work budget."""


class Solver:
    """Decides formulas.  An undecided query (no islpy, too much work) counts as "possible".

    An instance belongs to one thread: it owns an isl context.
    """

    def __init__(self, operations: int = _OPERATIONS) -> None:
        self.operations = operations
        self.splits = 0
        self._context: Any = None
        self._numbers: dict[int, Any] = {}

    @cached_property
    def isl(self) -> Any:
        """The module islpy, or None where it is not installed."""
        try:
            import islpy  # slow to import, and many programs never need it
        except ImportError:
            return None
        return islpy

    @property
    def context(self) -> Any:
        if self._context is None:
            self._context = self.isl.Context()
            self._context.set_max_operations(self.operations)
        return self._context

    def number(self, value: int) -> Any:
        """An integer as an isl value, cached: mostly one of a few."""
        if value not in self._numbers:
            self._numbers[value] = self.isl.Val.int_from_si(self.context, value)
        return self._numbers[value]

    def possible(self, *formulas: Formula) -> bool:
        """Whether all formulas, with the facts about their symbols, may have a common integer solution.

        False is a proof.
        """
        atoms: list[Atom] = []
        choices: list[Or] = []
        columns = _gather(formulas, atoms, choices)
        if any(_is_false(atom) for atom in atoms):
            return False
        if self.isl is None:
            return True
        self.context.reset_operations()
        self.splits = 0
        question = _Question(self, columns)
        try:
            return question.search(question.universe, atoms, choices)
        except (_TooHard, self.isl.Error):
            return True


class _Question:
    """One formula being decided: a depth-first search over the alternatives, each conjunction decided by isl."""

    def __init__(self, solver: Solver, columns: dict[Symbol, int]) -> None:
        isl = solver.isl
        self.solver, self.columns = solver, columns
        self.dims = isl.dim_type.set
        space = isl.Space.set_alloc(solver.context, 0, len(columns))
        self.local_space = isl.LocalSpace.from_space(space)
        self.universe = isl.BasicSet.universe(space)

    def search(self, region: Any, atoms: Iterable[Atom], choices: list[Or]) -> bool:
        for atom in atoms:
            region = region.add_constraint(self.constraint(atom))
        if region.is_empty():
            return False
        if not choices:
            return True
        first, *rest = choices
        for part in first.parts:
            self.solver.splits += 1
            if self.solver.splits > _SPLITS:
                raise _TooHard
            inner: list[Atom] = []
            more: list[Or] = []
            _flatten(part, inner, more)
            if not any(_is_false(atom) for atom in inner) and self.search(region, inner, more + rest):
                return True
        return False

    def constraint(self, atom: Atom) -> Any:
        if any(abs(number) > _LARGEST for number in (atom.form.constant, *(c for _, c in atom.form.terms))):
            raise _TooHard
        isl, number = self.solver.isl, self.solver.number
        make = isl.Constraint.alloc_equality if atom.equality else isl.Constraint.alloc_inequality
        result = make(self.local_space)
        if atom.form.constant:
            result = result.set_constant_val(number(atom.form.constant))
        for symbol, coefficient in atom.form.terms:
            result = result.set_coefficient_val(self.dims, self.columns[symbol], number(coefficient))
        return result


def _gather(formulas: Iterable[Formula], atoms: list[Atom], choices: list[Or]) -> dict[Symbol, int]:
    """Flatten formulas and the facts about every symbol they mention; number the symbols."""
    columns: dict[Symbol, int] = {}
    work = list(formulas)
    while work:
        formula = work.pop()
        _flatten(formula, atoms, choices)
        for symbol in symbols_of(formula):
            if symbol not in columns:
                columns[symbol] = len(columns)
                work.extend(symbol.facts)
    choices.sort(key=lambda choice: len(choice.parts))
    return columns


def _flatten(formula: Formula, atoms: list[Atom], choices: list[Or]) -> None:
    if isinstance(formula, Atom):
        atoms.append(formula)
    elif isinstance(formula, And) or len(formula.parts) == 1:
        for part in formula.parts:
            _flatten(part, atoms, choices)
    else:
        choices.append(formula)


def _is_false(atom: Atom) -> bool:
    if atom.form.terms:
        return False
    return atom.form.constant != 0 if atom.equality else atom.form.constant < 0
