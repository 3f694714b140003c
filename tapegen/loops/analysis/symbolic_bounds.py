"""Symbolic bounds: facts about integers and sizes at a point of the program, and a prover of inequalities.

Facts are collected while a program is visited in textual order: definitions (`n = u.shape[0]`), inequalities (loop
counters, tests, checks that have passed) and the extents of arrays.  Facts that contain a variable are dropped when it
is assigned again.  `SymbolicBounds.nonnegative` is the only prover; a stronger one may replace it.
"""

from __future__ import annotations

import builtins
import functools
import math
import operator
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any, TypeGuard

import numpy as np

from tapegen.analysis.piecewise_linear import Piecewise
from tapegen.ir import intrinsics
from tapegen.ir.affine import Affine, is_int, linear
from tapegen.ir.nodes import Assign, Call, Const, Expr, For, If, Load, Raise, Stmt, Tuple, Var, While, node
from tapegen.ir.traversal import assigns, free_vars, parts, subexpressions
from tapegen.ir.types import INT, Array, ListOf

_DEPTH = 6  # how many inequalities a proof may combine
_LONGEST = 60  # nodes of a definition that is substituted for its variable
_MANY = 512  # axes whose sizes are cached
_QUESTIONS = 5  # how many nested queries may be open


@node()
class Extent:
    """The size of an array along one axis: `max(0, form)`, printed as `size`."""

    size: Expr
    form: Affine
    mentioned: frozenset[Var] | None = field(init=False, default=None, compare=False, repr=False)

    def __hash__(self) -> int:
        return hash((self.size, self.form))

    @property
    def is_unit(self) -> bool:
        return self.form == _ONE

    @property
    def names(self) -> frozenset[Var]:
        """The Vars in it; computed once."""
        if self.mentioned is None:
            self.mentioned = self.form.names | free_vars(self.size)  # type: ignore[misc]
        return self.mentioned


_ONE: Affine[Expr] = Affine(1)
UNIT = Extent(Const(1), _ONE)
Extents = tuple[Extent, ...]


@functools.lru_cache(maxsize=_MANY)
def dim(array: Var, axis: int) -> Expr:
    """`array.shape[axis]`: mostly one shared object, so that comparison by identity succeeds at once."""
    return Call(intrinsics.dim, (array, Const(axis)), (), INT)


@functools.lru_cache(maxsize=_MANY)
def own_extent(array: Var, axis: int) -> Extent:
    """The extent of an array read from its own shape."""
    size = dim(array, axis)
    return Extent(size, Affine.atom(size))


@dataclass(slots=True)
class SymbolicBounds:
    """The facts at the current point.

    Attributes
    ----------
    forms : dict
        Integer Vars by their definition.
    shapes : dict
        Extents of arrays in terms of values other than their own shape.
    inequalities : dict
        Forms that are known not to be negative, by their atoms.
    never_one : set
        Sizes that are known not to be 1.
    nonzero : set
        Vars that are known not to be 0.
    broadcasts : dict
        The outcomes of comparing sizes at run time, by the compared forms.
    selected : dict
        What a mask selects: the number of elements, and their positions; by the mask's element at an index.
    passed : set
        Error conditions that have been checked and do not hold.
    signs : dict
        Floating Vars that are not negative (see `math_domains.sign_of`).
    small : frozenset
        Floating Vars of magnitude 1 at most (see `math_domains.is_small`).
    """

    forms: dict[Var, Affine] = field(default_factory=dict)
    shapes: dict[Var, Extents] = field(default_factory=dict)
    inequalities: dict[Expr, tuple[Affine, ...]] = field(default_factory=dict)
    never_one: frozenset[Expr] = frozenset()
    nonzero: frozenset[Expr] = frozenset()
    broadcasts: dict[tuple[str, tuple[Affine, ...]], Any] = field(default_factory=dict)
    selected: dict[tuple[str, Expr], Any] = field(default_factory=dict)
    passed: frozenset[Expr] = frozenset()
    signs: dict[Var, str] = field(default_factory=dict)
    small: frozenset[Var] = frozenset()
    mentioned: set[Var] = field(default_factory=set)
    _asking: list[Affine] = field(default_factory=list)
    _answers: dict[Affine | tuple[Affine, ...], bool] = field(default_factory=dict)

    def copy(self) -> SymbolicBounds:
        return SymbolicBounds(
            dict(self.forms),
            dict(self.shapes),
            dict(self.inequalities),
            self.never_one,
            self.nonzero,
            dict(self.broadcasts),
            dict(self.selected),
            self.passed,
            dict(self.signs),
            self.small,
            set(self.mentioned),
        )

    def common(self, other: SymbolicBounds) -> SymbolicBounds:
        """The facts that hold in both of two states."""
        return SymbolicBounds(
            {var: form for var, form in self.forms.items() if other.forms.get(var) == form},
            {var: shape for var, shape in self.shapes.items() if other.shapes.get(var) == shape},
            {
                atom: tuple(form for form in forms if form in other.inequalities.get(atom, ()))
                for atom, forms in self.inequalities.items()
            },
            self.never_one & other.never_one,
            self.nonzero & other.nonzero,
            {key: found for key, found in self.broadcasts.items() if other.broadcasts.get(key) == found},
            {key: found for key, found in self.selected.items() if other.selected.get(key) == found},
            self.passed & other.passed,
            {var: sign for var, sign in self.signs.items() if other.signs.get(var) == sign},
            self.small & other.small,
            self.mentioned | other.mentioned,
        )

    # ---- updates -----------------------------------------------------------------------------------------------------

    def forget(self, names: Iterable[Var]) -> None:
        """Drop all facts that contain variables which are assigned."""
        gone = self.mentioned.intersection(names)
        if not gone:
            return
        independent = gone.isdisjoint
        self.forms = {v: f for v, f in self.forms.items() if v not in gone and independent(f.names)}
        self.shapes = {
            v: e
            for v, e in self.shapes.items()
            if v not in gone and all(map(independent, [extent.names for extent in e]))
        }
        self._answers = {}
        self.inequalities = {
            atom: remaining
            for atom, forms in self.inequalities.items()
            if independent(free_vars(atom))
            and (remaining := tuple([form for form in forms if independent(form.names)]))
        }
        self.never_one = frozenset([size for size in self.never_one if independent(free_vars(size))])
        self.nonzero = self.nonzero - gone
        self.broadcasts = {
            key: found
            for key, found in self.broadcasts.items()
            if all(map(independent, [form.names for form in key[1]]))
        }
        self.selected = {key: found for key, found in self.selected.items() if independent(free_vars(key[1]))}
        self.passed = frozenset([test for test in self.passed if independent(free_vars(test))])
        self.signs = {var: sign for var, sign in self.signs.items() if var not in gone}
        self.small = self.small - gone
        self.mentioned -= gone

    def set_number(self, var: Var, sign: str, small: bool) -> None:
        """Record the sign of a scalar that has just been assigned, and whether its magnitude is 1 at most."""
        if sign:
            self.signs[var] = sign
            self.mentioned.add(var)
        if small:
            self.small |= {var}
            self.mentioned.add(var)

    def define(self, var: Var, value: Expr) -> None:
        """Record an integer definition; a long one keeps its name, or a chain of them would grow without bound."""
        form = self.form(value)
        if sum([len(subexpressions(atom)) for atom, _ in form.terms]) > _LONGEST:
            return
        if stable(form) and var not in form.names:
            self.forms[var] = form
            self._answers = {}
            self.mentioned |= form.names
            self.mentioned.add(var)

    def shift(self, var: Var, by: int) -> None:
        """`var` becomes `var + by`: facts about it become facts about `var - by`."""
        moved = self.inequalities.get(var, ())
        self.forget([var])
        for form in moved:
            rest = form.without(var)
            if var not in rest.names:
                self.assume(form - form.coefficient(var) * by)

    def set_shape(self, var: Var, extents: Extents) -> None:
        """Record the extents of an array that has just been allocated."""
        self.shapes[var] = tuple(
            [
                extent if stable(extent.form) and var not in extent.names else own_extent(var, k)
                for k, extent in enumerate(extents)
            ]
        )
        self._answers = {}
        self.mentioned.add(var)
        for extent in self.shapes[var]:
            self.mentioned |= extent.names

    def assume(self, form: Affine) -> None:
        """Record that a form is not negative."""
        if not form.is_constant and stable(form):
            self._add(form)
            self.mentioned |= form.names

    def _add(self, form: Affine) -> None:
        self._answers = {}
        for atom in form.atoms:
            known = self.inequalities.get(atom, ())
            if form not in known:
                self.inequalities[atom] = (*known, form)

    @contextmanager
    def supposing(self, *forms: Affine) -> Iterator[None]:
        """Assume temporarily that some forms are not negative."""
        known, answers = self.inequalities, self._answers
        self.inequalities = dict(known)
        for form in forms:
            self._add(form)
        try:
            yield
        finally:
            self.inequalities, self._answers = known, answers

    def remember(self, what: str, forms: tuple[Affine, ...], found: Any) -> None:
        """Record the outcome of comparing sizes."""
        if all(map(stable, forms)):
            self.broadcasts[what, forms] = found
            for form in forms:
                self.mentioned |= form.names

    def select(self, what: str, mask: Expr, found: Any) -> None:
        """Record what a mask selects."""
        self.selected[what, mask] = found
        self.mentioned |= free_vars(mask)

    def has_passed(self, test: Expr) -> bool:
        """Whether a condition is known not to hold; afterwards it is."""
        if test in self.passed:
            return True
        if not any(isinstance(part, Load) or _is_list(part) for part in subexpressions(test)):
            self.passed |= {test}
            self.mentioned |= free_vars(test)
        return False

    def assume_equal(self, a: Affine, b: Affine) -> None:
        self.assume(a - b)
        self.assume(b - a)

    def assume_nonzero(self, var: Expr) -> None:
        if isinstance(var, Var):
            self.nonzero = self.nonzero | {var}
            self.mentioned.add(var)

    def assume_test(self, test: Expr, holds: bool = True) -> None:
        """Record what a condition implies for integers."""
        match test:
            case Call(intrinsics.and_ | operator.and_, parts) if holds:
                for part in parts:
                    self.assume_test(part)
            case Call(intrinsics.or_ | operator.or_, parts) if not holds:
                for part in parts:
                    self.assume_test(part, False)
            case Call(operator.not_, (inner,)):
                self.assume_test(inner, not holds)
            case Call(func, (a, b)) if is_int(a) and is_int(b):
                func = func if holds else _NEGATED.get(func, func)
                gap = self.form(b) - self.form(a)
                if func in (operator.lt, operator.gt):
                    self.assume(gap - 1 if func is operator.lt else -gap - 1)
                elif func in (operator.le, operator.ge):
                    self.assume(gap if func is operator.le else -gap)
                elif func is operator.eq:
                    self.assume_equal(self.form(a), self.form(b))
                elif func is operator.ne and self.nonnegative(gap):
                    self.assume(gap - 1)
                elif func is operator.ne and self.nonnegative(-gap):
                    self.assume(-gap - 1)

    def assume_counter(self, loop: For) -> None:
        """Record the bounds of a loop counter."""
        counter = Affine.atom(loop.target)
        self.mentioned.add(loop.target)
        match getattr(loop.step, "value", None):
            case int() as step if step > 0:
                self.assume(counter - self.form(loop.start))
                self.assume(self.form(loop.stop) - 1 - counter)
            case int() as step if step < 0:
                self.assume(self.form(loop.start) - counter)
                self.assume(counter - self.form(loop.stop) - 1)

    def learn(self, stmt: Stmt) -> None:
        """Record the facts after a statement: integers and sizes that it defines, checks that have passed."""
        if isinstance(stmt, Assign):
            self.forget(stmt.targets)
            target, value = stmt.targets[0], stmt.value
            if len(stmt.targets) > 1:
                return
            if is_int(target) and is_int(value):
                self.define(target, value)
            elif type(value) is Call and type(target.type) is Array:
                extents = self._of_new(value)
                if extents:
                    self.set_shape(target, extents)
        elif isinstance(stmt, (If, For, While)):
            self.forget(assigns(stmt))
            match stmt:
                case If(test, (*_, Raise()), ()):
                    self.assume_test(test, False)

    def _of_new(self, call: Call) -> Extents:
        """The extents of a new array, empty where they are not known."""
        if call.func not in _MAKING:
            return ()
        first = call.args[0]
        if call.func is np.copy:
            return self.extents(first) if isinstance(first, Var) else ()
        if isinstance(first, Tuple):
            return tuple([Extent(size, self.form(size)) for size in first.items])
        if isinstance(first, Call) and first.func is intrinsics.shape:
            return self.extents(first.args[0]) if isinstance(first.args[0], Var) else ()
        return (Extent(first, self.form(first)),) if is_int(first) else ()

    # ---- queries -----------------------------------------------------------------------------------------------------

    def form(self, expr: Expr) -> Affine:
        """The affine form of an integer expression with definitions substituted."""
        written = linear(expr)
        if not written.terms:
            return written
        if written.constant == 0 and len(written.terms) == 1:
            ((atom, coefficient),) = written.terms
            return self._atom(atom) * coefficient
        result: Affine[Expr] = Affine(written.constant)
        for atom, coefficient in written.terms:
            result = result.plus(self._atom(atom), coefficient)
        return result

    def _atom(self, atom: Expr) -> Affine:
        if type(atom) is Var:
            return self.forms.get(atom) or Affine.atom(atom)
        if type(atom) is not Call or atom.func not in _FORMED:
            return Affine.atom(atom)
        if atom.func in _SPELLED:
            if all(map(is_int, atom.args)):  # equal constants have one spelling
                atom = Call(atom.func, tuple([self.form(arg).expr for arg in atom.args]), (), INT)
            return Affine.atom(atom)
        match atom.func, atom.args:
            case intrinsics.dim, (Var() as array, Const(int() as axis)):
                assert isinstance(array.type, Array)
                if array.type.is_unit(axis % array.type.rank):
                    return _ONE
                if axis < 0:
                    atom = dim(array, axis % array.type.rank)
                if array in self.shapes:
                    form = self.shapes[array][axis].form
                    # otherwise the size is `max(0, form)`, an atom of its own
                    if atom not in form.atoms and self.nonnegative(form):
                        return form
            case ((builtins.len | np.size), (Var() as array,)) if isinstance(array.type, Array):
                if atom.func is len or array.type.rank == 1:
                    return self._atom(dim(array, 0))
            case intrinsics.item, (Call(intrinsics.shape | np.shape, (Var() as array,)), Const(int() as axis)):
                if isinstance(array.type, Array):
                    return self._atom(dim(array, axis % array.type.rank))
        return Affine.atom(atom)

    def extents(self, array: Var) -> Extents:
        """The extents of an array Var; a known non-negative form replaces the read of its shape in comparisons."""
        assert isinstance(array.type, Array)
        if array in self.shapes:
            return self.shapes[array]
        return tuple(UNIT if array.type.is_unit(k) else own_extent(array, k) for k in range(array.type.rank))

    def equal(self, a: Affine, b: Affine) -> bool:
        """Whether two sizes are known to be equal."""
        if a == b or (self.nonnegative(a - b) and self.nonnegative(b - a)):
            return True
        gap = a - b
        return any(map(_is_extreme, gap.atoms)) and self._vanishes(gap)

    def simplified(self, extent: Extent) -> Extent:
        """An extent without minima and maxima where it equals such a one for all values of the size it depends on.

        `n + min(1, n) + min(2, n) - 3`, of a slice of a vector with a halo, is `n` for n = 0 and from n = 2.
        """
        form = extent.form
        if not any(map(_is_extreme, form.atoms)):
            return extent
        pieces = self._pieces(form)
        found = self._tried(pieces)
        line = None if found is None else pieces.line(found[1])
        if found is None or line is None:
            return extent
        simple = Affine.atom(found[0]) * line[0] + line[1]
        return Extent(simple.expr, simple)

    def _vanishes(self, form: Affine) -> bool:
        """Whether a form of minima and maxima is 0 for all values of the size it depends on."""
        pieces = self._pieces(form)
        found = self._tried(pieces)
        return found is not None and not any(map(pieces.value, found[1]))

    def _pieces(self, form: Affine) -> Piecewise[Expr]:
        return Piecewise(
            form.constant,
            tuple((atom, factor) for atom, factor in form.terms if not _is_extreme(atom)),
            tuple(
                (atom.func, tuple(self._pieces(self.form(arg)) for arg in atom.args), factor)
                for atom, factor in form.terms
                if _is_extreme(atom)
            ),
        )

    def _tried(self, pieces: Piecewise[Expr]) -> tuple[Expr, list[int]] | None:
        """The only size in a form, which is not negative, and the values that represent all its values."""
        found = pieces.tried(lambda size: self.is_never_one(Affine.atom(size)))
        return found if found is not None and self.nonnegative(Affine.atom(found[0])) else None

    def constant(self, form: Affine) -> int | None:
        """The number that a size is known to be, from a check that it agrees with another one."""
        if form.is_constant or len(form.terms) != 1 or form.terms[0][1] != 1:
            return form.constant if form.is_constant else None
        for known in self.inequalities.get(form.atoms[0], ()):
            least = form - known
            if least.is_constant and self.nonnegative(least - form):
                return least.constant
        return None

    def is_never_one(self, form: Affine) -> bool:
        """Whether a size is known not to be 1."""
        if form.is_constant:
            return form.constant != 1
        if len(form.terms) == 1 and form.constant == 0 and form.terms[0][1] == 1 and form.atoms[0] in self.never_one:
            return True
        return self.nonnegative(form - 2) or self.nonnegative(-form)

    def nonnegative(self, form: Affine) -> bool:
        """Whether a form is known not to be negative."""
        if form.is_constant:
            return form.constant >= 0
        if form in self._asking or len(self._asking) >= _QUESTIONS:
            return False  # a proof must not depend on itself
        # a proof holds anywhere; a failed one may be due to the open queries around it
        asked = (form, *self._asking)
        answer = self._answers.get(form) or self._answers.get(asked)
        if answer is None:
            self._asking.append(form)
            try:
                answer = self._prove(form, _DEPTH)
            finally:
                self._asking.pop()
            self._answers[form if answer else asked] = answer
        return answer

    def _prove(self, form: Affine, depth: int) -> bool:
        # a term that prevents the proof needs an inequality that cancels it; negative terms come first, since their
        # bounds may cancel others too
        terms = form.terms
        hard: tuple[Expr, int] | None = None
        for term in terms:
            if term[1] < 0:
                hard = term
                break
        else:
            for term in terms:
                if not self._is_size(term[0]):
                    hard = term
                    break
            else:
                if form.constant >= 0:
                    return True
        if depth == 0 or not terms:
            return False
        for atom, coefficient in terms if hard is None else (hard,):
            cases = () if type(atom) is Var else _cases(atom, coefficient)
            if cases and all(
                self._prove(form.without(atom).plus(self.form(case), coefficient), depth - 1) for case in cases
            ):
                return True
            for known in self._about(atom):
                ours = known.coefficient(atom)
                if ours * coefficient > 0:
                    common = math.gcd(ours, coefficient)
                    rest = (form * (abs(ours) // common)).plus(known, -(abs(coefficient) // common))
                    if self._prove(rest, depth - 1):
                        return True
            droppable = hard is None and form.constant >= 0 and len(terms) > 1
            if droppable and self._prove(form.without(atom), depth - 1):
                return True
        return hard is not None and any(
            self._prove(form.plus(self.form(arg) - Affine.atom(atom), coefficient), depth - 1)
            for atom, coefficient in terms
            if coefficient > 0 and type(atom) is Call and atom.func is builtins.max and all(map(is_int, atom.args))
            for arg in atom.args
        )

    def _about(self, atom: Expr) -> Iterable[Affine]:
        """Inequalities that contain an atom."""
        known = self.inequalities.get(atom, ())
        return known if type(atom) is Var else [*known, *self._implied(atom)]

    def _implied(self, atom: Expr) -> list[Affine]:
        """Inequalities that the meaning of an atom implies."""
        own = Affine.atom(atom)
        if type(atom) is not Call:
            return []
        if atom.func is intrinsics.dim:
            array, axis = atom.args
            if isinstance(array, Var) and isinstance(axis, Const) and array in self.shapes:
                assert isinstance(axis.value, int)
                form = self.shapes[array][axis.value].form
                return [own] if atom in form.atoms else [own - form, own]
            return [own]
        func, args = atom.func, atom.args
        if func is operator.mod:
            if is_int(args[1]) and self._is_positive(args[1]):
                return [own, self.form(args[1]) - own - 1]
        elif func in _SPELLED and all(map(is_int, args)):
            if func is builtins.min:
                return [self.form(arg) - own for arg in args]
            if func is builtins.max:
                return [own - self.form(arg) for arg in args]
            divided, by = args
            if isinstance(by, Const) and isinstance(by.value, int) and by.value > 0:
                size = [own] if self._is_size(atom) else []
                return [*size, self.form(divided) - own * by.value, own * by.value + by.value - 1 - self.form(divided)]
        return [own] if self._is_size(atom) else []

    def _is_positive(self, n: Expr) -> bool:
        """Whether `% n` leaves a remainder in 0 <= r < n, given that n is not 0."""
        return self.nonnegative(self.form(n))

    def _is_size(self, atom: Expr) -> bool:
        """Whether an atom is non-negative by its kind."""
        if type(atom) is not Call:
            return False
        if atom.func in _SIZES:
            return True
        match atom:
            case Call(builtins.min, args):
                return all(is_int(arg) and self.nonnegative(self.form(arg)) for arg in args)
            case Call(builtins.max, args):
                return any(is_int(arg) and self.nonnegative(self.form(arg)) for arg in args)
            case Call(operator.floordiv, (a, Const(int() as d))):
                return d > 0 and is_int(a) and self.nonnegative(self.form(a))
            case Call(operator.mul, (a, b)) if is_int(a) and is_int(b):
                first, second = self.form(a), self.form(b)
                gap = first - second  # of consecutive integers no product is negative
                consecutive = gap.is_constant and abs(gap.constant) <= 1
                return consecutive or (self.nonnegative(first) and self.nonnegative(second))
            case Call(operator.mod, (_, n)):
                return is_int(n) and self._is_positive(n)
        return False


_MAKING: frozenset[Any] = frozenset({np.copy, np.empty, np.zeros})
_SIZES: frozenset[Any] = frozenset({intrinsics.dim, builtins.len, np.size, builtins.abs})
_SPELLED: frozenset[Any] = frozenset({builtins.min, builtins.max, operator.floordiv, operator.mod})
_FORMED: frozenset[Any] = _SPELLED | {intrinsics.dim, intrinsics.item, builtins.len, np.size}
_NEGATED: dict[Any, Any] = {
    operator.lt: operator.ge,
    operator.ge: operator.lt,
    operator.gt: operator.le,
    operator.le: operator.gt,
    operator.ne: operator.eq,
    operator.eq: operator.ne,
}


def _is_extreme(atom: Expr) -> TypeGuard[Call]:
    return type(atom) is Call and atom.func in (builtins.min, builtins.max) and all(map(is_int, atom.args))


def _cases(atom: Expr, coefficient: int) -> tuple[Expr, ...]:
    """Candidate values of an atom, one of which it has, where a bound on all of them is wanted."""
    if not isinstance(atom, Call):
        return ()
    extreme = builtins.max if coefficient < 0 else builtins.min
    parts = atom.args[1:] if atom.func is intrinsics.ifelse else atom.args if atom.func is extreme else ()
    return parts if all(map(is_int, parts)) else ()


def stable(form: Affine) -> bool:
    """Whether a form changes by assignments of variables alone, not by stores, changes of lists or calls."""
    return all(type(atom) is Var or _stable(atom) for atom, _ in form.terms)


def _stable(expr: Any) -> bool:
    kind = type(expr)
    if kind is Call:
        if expr.func is intrinsics.dim and type(expr.args[0]) is Var:
            return True
        return expr.func in _PURE_INTEGER and all(map(_stable, parts(expr)))
    if kind is Var:
        return not _is_list(expr)
    return kind is Const or (kind is Tuple and all(map(_stable, expr.items)))


def _is_list(expr: Any) -> bool:
    """Whether an expression is a list, whose length and items change without an assignment."""
    return type(expr) is Var and type(expr.type) is ListOf


_PURE_INTEGER = frozenset(
    {
        *(
            intrinsics.dim,
            intrinsics.shape,
            intrinsics.item,
            intrinsics.ifelse,
            np.size,
            np.shape,
            builtins.len,
            builtins.abs,
        ),
        *(builtins.min, builtins.max, builtins.int, operator.add, operator.sub, operator.mul, operator.neg),
        *(operator.floordiv, operator.mod, operator.lt, operator.le, operator.gt, operator.ge, operator.eq),
        *(operator.ne, operator.pow),
    }
)
