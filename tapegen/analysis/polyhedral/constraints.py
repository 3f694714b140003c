"""Affine constraints: linear forms over integer symbols, and formulas of linear constraints, for integer sets."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import count

from tapegen.ir.affine import Affine
from tapegen.ir.nodes import Stmt

_serial = count()


class Symbol:
    """An unknown integer.

    A *shared* symbol has one value throughout a call (a parameter, an extent): it depends on no loop.  Any other symbol
    belongs to one execution of a statement: to compare two executions, one of them uses the `other_instance` symbol.  A
    *free* symbol ranges over all values that its facts allow (the elements of a slice).

    Attributes
    ----------
    loops : frozenset
        Loops whose iterations the value depends on; outside of them the symbol means nothing.
    facts : list of Formula
        Constraints on the value; they hold wherever the symbol occurs.
    """

    __slots__ = ("_other_instance", "facts", "free", "loops", "name", "nonnegative", "serial")

    def __init__(self, name: str, loops: Iterable[Stmt] = (), *, free: bool = False, nonnegative: bool = False) -> None:
        self.name = name
        self.serial = next(_serial)  # an order that is the same in every run
        self.loops = frozenset(loops)
        self.free = free
        self.nonnegative = nonnegative
        self.facts: list[Formula] = [at_least(Affine.atom(self), 0)] if nonnegative else []
        self._other_instance: Symbol | None = None

    def __repr__(self) -> str:
        return self.name

    @property
    def shared(self) -> bool:
        return not self.loops and not self.free

    @property
    def other_instance(self) -> Symbol:
        if self.shared:
            return self
        if self._other_instance is None:
            self._other_instance = Symbol(f"{self.name}'", self.loops, free=self.free)
            self._other_instance.nonnegative = self.nonnegative
            self._other_instance.facts = [fact.other_instance() for fact in self.facts]
        return self._other_instance


Linear = Affine[Symbol]
"""An affine form over symbols."""


def loops_of(form: Linear) -> frozenset[Stmt]:
    """The loops whose iterations the value of a form depends on."""
    return frozenset().union(*(symbol.loops for symbol in form.atoms))


def is_trivially_nonnegative(form: Linear) -> bool:
    """Whether a form is nonnegative for all values of its symbols (sufficient, not necessary)."""
    return form.constant >= 0 and all(c > 0 and symbol.nonnegative for symbol, c in form.terms)


def other_instance(form: Linear) -> Linear:
    """A form of another execution of the statement."""
    return Affine(form.constant, tuple((symbol.other_instance, c) for symbol, c in form.terms))


@dataclass(frozen=True, slots=True)
class Atom:
    """`form >= 0`, or `form == 0`."""

    form: Linear
    equality: bool = False

    def other_instance(self) -> Atom:
        return Atom(other_instance(self.form), self.equality)

    def negated(self) -> Formula:
        if self.equality:
            return Or((Atom(self.form - 1), Atom(-self.form - 1)))
        return Atom(-self.form - 1)


@dataclass(frozen=True, slots=True)
class And:
    parts: tuple[Formula, ...]

    def other_instance(self) -> And:
        return And(tuple(part.other_instance() for part in self.parts))

    def negated(self) -> Formula:
        return Or(tuple(part.negated() for part in self.parts))


@dataclass(frozen=True, slots=True)
class Or:
    parts: tuple[Formula, ...]

    def other_instance(self) -> Or:
        return Or(tuple(part.other_instance() for part in self.parts))

    def negated(self) -> Formula:
        return And(tuple(part.negated() for part in self.parts))


Formula = Atom | And | Or
TRUE = And(())


def at_least(a: Linear | int, b: Linear | int) -> Atom:
    """`a >= b`."""
    return Atom(_linear(a) - b)


def equal(a: Linear | int, b: Linear | int) -> Atom:
    """`a == b`."""
    return Atom(_linear(a) - b, True)


def _linear(value: Linear | int) -> Linear:
    return Affine(value) if isinstance(value, int) else value


def symbols_of(formula: Formula) -> Iterator[Symbol]:
    """The symbols that a formula mentions, with repetitions."""
    if isinstance(formula, Atom):
        yield from formula.form.atoms
    else:
        for part in formula.parts:
            yield from symbols_of(part)
