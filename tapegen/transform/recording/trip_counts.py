"""Trip-count bounds of inner loops by linear forms of integer expressions."""

from __future__ import annotations

import operator
from collections.abc import Callable, Mapping
from dataclasses import dataclass

from tapegen.ir import builders, traversal
from tapegen.ir.nodes import Call, Const, Expr, Var
from tapegen.ir.types import INT


@dataclass(frozen=True, slots=True)
class Linear:
    """`constant + sum(factor * atom)`; the atoms are loop counters and whole expressions of fixed values."""

    terms: Mapping[Expr, int]
    constant: int

    @classmethod
    def of(cls, expr: Expr) -> Linear:
        """The linear form of an expression; what is not linear is an atom."""
        match expr:
            case Const(int() as value):
                return cls({}, value)
            case Call(operator.add, (a, b)):
                return cls.of(a) + cls.of(b)
            case Call(operator.sub, (a, b)):
                return cls.of(a) - cls.of(b)
            case Call(operator.neg, (a,)):
                return cls.of(a).scaled(-1)
            case Call(operator.mul, (Const(int() as factor), a)) | Call(operator.mul, (a, Const(int() as factor))):
                return cls.of(a).scaled(factor)
        return cls({expr: 1}, 0)

    def __add__(self, other: Linear | int) -> Linear:
        if isinstance(other, int):
            return Linear(self.terms, self.constant + other)
        terms = dict(self.terms)
        for atom, factor in other.terms.items():
            terms[atom] = terms.get(atom, 0) + factor
        return Linear({atom: factor for atom, factor in terms.items() if factor}, self.constant + other.constant)

    def __sub__(self, other: Linear) -> Linear:
        return self + other.scaled(-1)

    def scaled(self, factor: int) -> Linear:
        terms = {atom: factor * own for atom, own in self.terms.items() if factor}
        return Linear(terms, factor * self.constant)

    def factor(self, atom: Var) -> int:
        """The coefficient of an atom."""
        return self.terms.get(atom, 0)

    def replaced(self, atom: Var, form: Linear) -> Linear:
        """Substitute a linear form for an atom."""
        rest = Linear({own: factor for own, factor in self.terms.items() if own != atom}, self.constant)
        return rest + form.scaled(self.factor(atom))

    def expression(self, fixed: Callable[[Var], bool]) -> Expr | None:
        """The linear form as an expression, if all of its atoms are made of fixed values."""
        total: Expr | None = None
        for atom, factor in sorted(self.terms.items(), key=lambda item: item[1] < 0):
            if not all(fixed(var) for var in traversal.free_vars(atom)):
                return None
            size = atom if abs(factor) == 1 else Call(operator.mul, (Const(abs(factor)), atom), (), INT)
            if total is None:
                total = size if factor > 0 else Call(operator.neg, (size,), (), INT)
            else:
                total = Call(operator.add if factor > 0 else operator.sub, (total, size), (), INT)
        return Const(self.constant) if total is None else builders.int_add(total, Const(self.constant))
