"""Affine forms: of integer expressions, by which indices and sizes are compared, folded and printed, or of unknowns."""

from __future__ import annotations

import builtins
import operator
from dataclasses import field
from typing import Any, Generic, TypeVar

from tapegen.ir.nodes import Call, Const, Expr, Var, node
from tapegen.ir.traversal import free_vars
from tapegen.ir.types import INT, Scalar

Unknown = TypeVar("Unknown")

_NUMPY_INT = Scalar("int64", False)


@node(eq=False)
class Affine(Generic[Unknown]):
    """`constant + sum of coefficient * atom`; an atom is a symbol, or an integer expression that is no sum."""

    constant: int = 0
    terms: tuple[tuple[Unknown, int], ...] = ()
    mentioned: frozenset[Var] | None = field(init=False, default=None, repr=False)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Affine) or self.constant != other.constant or len(self.terms) != len(other.terms):
            return False
        return self.terms == other.terms or (len(self.terms) > 1 and set(self.terms) == set(other.terms))

    def __hash__(self) -> int:
        return hash((self.constant, frozenset(self.terms)))

    @staticmethod
    def atom(expr: Unknown) -> Affine[Unknown]:
        return Affine(0, ((expr, 1),))

    def __add__(self, other: Affine[Unknown] | int) -> Affine[Unknown]:
        return Affine(self.constant + other, self.terms) if isinstance(other, int) else self.plus(other, 1)

    def __sub__(self, other: Affine[Unknown] | int) -> Affine[Unknown]:
        return Affine(self.constant - other, self.terms) if isinstance(other, int) else self.plus(other, -1)

    def plus(self, other: Affine[Unknown], factor: int) -> Affine[Unknown]:
        """`self + other * factor`."""
        constant = self.constant + other.constant * factor
        if not other.terms:
            return Affine(constant, self.terms)
        if not self.terms:
            return Affine(constant, (other * factor).terms)
        terms = dict(self.terms)
        for atom, coefficient in other.terms:
            terms[atom] = terms.get(atom, 0) + coefficient * factor
        return Affine(constant, tuple([term for term in terms.items() if term[1]]))

    def __mul__(self, factor: int) -> Affine[Unknown]:
        if factor == 1:
            return self
        return Affine(self.constant * factor, tuple([(a, c * factor) for a, c in self.terms]) if factor else ())

    def __neg__(self) -> Affine[Unknown]:
        return self * -1

    def coefficient(self, atom: Unknown) -> int:
        for own, coefficient in self.terms:
            if own is atom or own == atom:
                return coefficient
        return 0

    def without(self, atom: Unknown) -> Affine[Unknown]:
        return Affine(self.constant, tuple([term for term in self.terms if term[0] != atom]))

    @property
    def atoms(self) -> tuple[Unknown, ...]:
        return tuple([atom for atom, _ in self.terms])

    @property
    def names(self) -> frozenset[Var]:
        """The Vars in the form; computed once."""
        if self.mentioned is None:
            found = frozenset[Var]().union(*[free_vars(atom) for atom, _ in self.terms])
            object.__setattr__(self, "mentioned", found)
            return found
        return self.mentioned

    @property
    def is_constant(self) -> bool:
        return not self.terms

    @property
    def expr(self: Affine[Expr]) -> Expr:
        """The form as an expression: added terms first, the constant last where it reads better."""
        terms = sorted(self.terms, key=lambda term: term[1] < 0)
        constant = self.constant
        if not terms:
            return Const(constant)
        result: Expr
        if terms[0][1] > 0:
            result = _scaled(*terms.pop(0))
        elif constant > 0:
            result, constant = Const(constant), 0
        else:
            result = Call(operator.neg, (_scaled(*terms.pop(0)),), (), INT)
        for atom, coefficient in terms:
            func = operator.add if coefficient > 0 else operator.sub
            result = Call(func, (result, _scaled(atom, coefficient)), (), INT)
        if constant:
            result = Call(operator.add if constant > 0 else operator.sub, (result, Const(abs(constant))), (), INT)
        return result


def _scaled(atom: Expr, coefficient: int) -> Expr:
    factor = abs(coefficient)
    return atom if factor == 1 else Call(operator.mul, (Const(factor), atom), (), INT)


def linear(expr: Expr) -> Affine[Expr]:
    """The affine form of an expression as it is written; what is not affine becomes an atom."""
    if type(expr) is not Call:
        if type(expr) is Const and isinstance(expr.value, int) and not isinstance(expr.value, bool):
            return Affine(expr.value)
        return Affine(0, ((expr, 1),))
    if expr.linear is None:
        object.__setattr__(expr, "linear", _linear(expr) or False)
    return expr.linear or Affine.atom(expr)  # an atom would be part of its own cached value


def _linear(expr: Call) -> Affine[Expr] | None:
    if expr.func not in _LINEAR or not all(map(is_int, expr.args)):
        return None
    first, *others = map(linear, expr.args)
    if not others:
        return -first if expr.func is operator.neg else first
    (second,) = others
    if expr.func is operator.add:
        return first + second
    if expr.func is operator.sub:
        return first - second
    if first.is_constant:
        return second * first.constant
    return first * second.constant if second.is_constant else None


_LINEAR: frozenset[Any] = frozenset(
    {operator.add, operator.sub, operator.mul, operator.neg, operator.pos, builtins.int}
)


def is_float64(expr: Expr) -> bool:
    """Whether an expression is a 64-bit float."""
    return isinstance(expr.type, Scalar) and expr.type.dtype == "float64"


def is_real(expr: Expr) -> bool:
    """Whether an expression is a floating scalar."""
    return isinstance(expr.type, Scalar) and expr.type.dtype in ("float64", "float32")


def is_int(expr: Expr) -> bool:
    """Whether an expression is a 64-bit integer."""
    type_ = expr.type
    return type_ is INT or type_ is _NUMPY_INT


def folded(expr: Expr) -> Expr:
    """An integer expression with its constants combined."""
    return linear(expr).expr if isinstance(expr, Call) and is_int(expr) else expr


def plus(a: Expr, b: Expr | int) -> Expr:
    """`a + b`, folded."""
    return (linear(a) + (b if isinstance(b, int) else linear(b))).expr


def minus(a: Expr, b: Expr | int) -> Expr:
    """`a - b`, folded."""
    return (linear(a) - (b if isinstance(b, int) else linear(b))).expr


def times(a: Expr, b: Expr) -> Expr:
    """`a * b`, folded."""
    return folded(Call(operator.mul, (a, b), (), INT))
