"""Loop builder: emission of statements, fresh names, facts and checks for the passes of this package."""

from __future__ import annotations

import builtins
import math
import operator
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Set
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from tapegen.errors import NoCompiledForm, Span
from tapegen.ir import intrinsics, traversal
from tapegen.ir.affine import Affine, is_int, is_real
from tapegen.ir.names import NameSupply
from tapegen.ir.nodes import Assign, Call, Comment, Const, Expr, For, Function, If, Load, Raise, Stmt, Var
from tapegen.ir.printer import callable_text
from tapegen.ir.types import BOOL, INT, Array, Scalar, Type
from tapegen.loops.analysis.alias_pairs import Sharing
from tapegen.loops.analysis.symbolic_bounds import Extent, Extents, SymbolicBounds, dim, stable
from tapegen.loops.legalize.math_domains import is_small, sign_of

Indices = tuple[Expr, ...]


@dataclass(frozen=True, eq=False)
class ElementRule:
    """An array as a rule for its elements.

    Attributes
    ----------
    extents : tuple of Extent
        Its shape.
    dtype : str
        Its dtype.
    at : callable
        Returns the element at an index (one non-negative expression for each axis); may emit temporaries first.
    weak : bool
        Whether it is a Python scalar, which takes the precision of the other operand.
    cost : int
        The work to compute one element, in additions; loading an element costs nothing.
    """

    extents: Extents
    dtype: str
    at: Callable[[Indices], Expr]
    weak: bool = False
    cost: int = 0

    @property
    def rank(self) -> int:
        return len(self.extents)


@dataclass(slots=True)
class Loop:
    """A loop of the program around the statement that is being emitted."""

    counter: Var | None  # None: a while loop
    start: Affine
    stop: Affine
    step: int  # 0 where it is known at run time only
    assigned: set[Var]  # by the program, and by statements emitted into the body
    leaves: bool  # whether a Break or Continue may skip statements of an iteration
    outside: SymbolicBounds = field(default_factory=SymbolicBounds)  # facts before it, whether it runs or not
    before: list[Stmt] = field(default_factory=list)
    lasting: list[Affine] = field(default_factory=list)  # checked before it unconditionally


class LoopBuilder(ABC):
    """State of the visitor of one function."""

    def __init__(self, function: Function, sharing: Sharing, boundscheck: bool, speculative: bool) -> None:
        used = {part.name for part in function.params} | {name for name, _ in function.globals} | {function.name}
        for stmt in traversal.statements(function.body):
            used |= {var.name for var in stmt.targets}
        self.names = NameSupply(used)
        self.sharing = sharing
        self.boundscheck = boundscheck
        self.speculative = speculative
        self.tapes = frozenset(function.tapes)
        self.facts = SymbolicBounds()
        self.views: dict[Var, tuple[ElementRule, frozenset[Var]]] = {}
        self.layouts: dict[Var, str] = {}  # of new arrays and views, where the type does not tell
        self.out: list[Stmt] = []
        self.loops: list[Loop] = []
        self.branches: list[int] = [0]  # for each enclosing loop, the number of conditions between it and this point
        self.statement: Stmt | None = None
        self.optional: set[Var] = set()  # views whose assignment may be dropped
        self._counters: list[Var] = []

    @property
    def origin(self) -> Span | None:
        return None if self.statement is None else self.statement.origin

    @abstractmethod
    def materialize(self, expr: Expr, base: str = "t") -> Var:
        """A Var that holds the array an expression denotes."""

    @abstractmethod
    def assign_array(self, target: Var, value: Expr) -> None:
        """`target = value` of an array."""

    @abstractmethod
    def fill_new(self, target: Var, value: ElementRule) -> None:
        """`target` = a new array with these elements."""

    @abstractmethod
    def call_new(self, target: Var, value: Expr) -> None:
        """`target` = the array that a call returns."""

    @abstractmethod
    def copied(self, array: Var) -> Var:
        """A contiguous copy."""

    @abstractmethod
    def view_of(self, expr: Expr) -> Expr:
        """An lvalue or view as an operand that numba supports."""

    @abstractmethod
    def is_written(self, array: Var) -> bool:
        """Whether something is stored into memory that may alias an array."""

    @abstractmethod
    def shows_sharing(self) -> bool:
        """Whether the program can observe if the current statement assigns a view or a copy."""

    @abstractmethod
    def in_rows(self, array: Expr) -> Expr | None:
        """An array of the same memory that is in C order for NumPy and for numba; None where there is none."""

    @abstractmethod
    def check_mask(self, array: ElementRule, mask: ElementRule) -> None:
        """Check that a mask has the sizes of the axes it selects from."""

    @abstractmethod
    def nonzero(self, mask: Expr) -> list[Var]:
        """For each axis of a boolean array, the indices of its true elements."""

    # ---- emission ----------------------------------------------------------------------------------------------------

    def emit(self, *stmts: Stmt) -> None:
        self.out.extend(stmts)

    @contextmanager
    def block(self) -> Iterator[list[Stmt]]:
        """Collect the statements that are emitted inside into a new block."""
        outer, self.out = self.out, []
        try:
            yield self.out
        finally:
            self.out = outer

    @contextmanager
    def conditional(self) -> Iterator[list[Stmt]]:
        """A block that is executed conditionally: its facts are dropped afterwards."""
        facts, views = self.facts, self.views
        self.facts, self.views = facts.copy(), dict(views)
        self.branches[-1] += 1
        try:
            with self.block() as out:
                yield out
        finally:
            self.branches[-1] -= 1
            self.facts, self.views = facts, views

    def fresh(self, base: str, type_: Type) -> Var:
        var = Var(self.names.fresh(base), type_)
        for loop in self.loops:
            loop.assigned.add(var)
        return var

    def bind(self, expr: Expr, base: str = "t") -> Expr:
        """`expr` itself if it is an atom, else a new variable for it, outside the loops in which it is invariant."""
        if isinstance(expr, (Var, Const)):
            return expr
        depth = self._depth(traversal.free_vars(expr)) if _is_arithmetic(expr) else len(self.loops)
        var = Var(self.names.fresh(base), expr.type)
        for loop in self.loops[:depth]:
            loop.assigned.add(var)
        made = Assign((var,), expr, self.origin)
        if depth < len(self.loops):
            self.loops[depth].before.append(made)
        else:
            self.emit(made)
        self.optional.add(var)
        if is_int(expr):
            self.facts.define(var, expr)
        else:
            self.facts.set_number(var, sign_of(expr, self.facts.signs), is_small(expr, self.facts.small))
        return var

    def _depth(self, read: Set[Var]) -> int:
        """The number of loops that assign some of these variables, or stand around such a loop."""
        depth = len(self.loops)
        while depth and self.loops[depth - 1].assigned.isdisjoint(read):
            depth -= 1
        return depth

    def counters(self, rank: int) -> list[Var]:
        """Loop counters: the same few letters in every loop nest."""
        letters = iter("ijklmpqr")
        while len(self._counters) < rank:
            letter = next((c for c in letters if c not in self.names), "i")
            self._counters.append(self.fresh(letter, INT))
        return self._counters[:rank]

    def comment(self, text: str) -> None:
        self.emit(Comment(text, self.origin))

    def unsupported(self, what: Any, how: str = "") -> NoCompiledForm:
        """The refusal of a function, perhaps of one variant of its calls; or of something else by its name."""
        name = what if isinstance(what, str) else spelled(what)
        return NoCompiledForm(f"{name} {how}".rstrip(), self.origin)

    # ---- facts -------------------------------------------------------------------------------------------------------

    def forget(self, names: Iterable[Var]) -> None:
        """Variables are assigned: drop the facts about their old values."""
        gone = set(names)
        self.facts.forget(gone)
        for var in gone:
            self.layouts.pop(var, None)
        self.forget_views(gone)

    def forget_views(self, gone: set[Var]) -> None:
        """Views of variables that are assigned now refer to their own variables."""
        if not self.views:
            return
        stale = [view for view, (_, mentions) in self.views.items() if view in gone or not gone.isdisjoint(mentions)]
        for view in stale:
            del self.views[view]

    def set_view(self, var: Var, lazy: ElementRule, keep: bool = False) -> None:
        """Record that a variable is a view of other arrays; with `keep` its assignment stays even if unused."""
        index = tuple(Var(f"?{k}", INT) for k in range(lazy.rank))
        mentions = traversal.free_vars(lazy.at(index)) - set(index)
        for extent in lazy.extents:
            mentions |= traversal.free_vars(extent.size)
        if var not in mentions:
            self.views[var] = (lazy, frozenset(mentions))
        self.facts.set_shape(var, lazy.extents)
        if not keep:
            self.optional.add(var)

    def array(self, var: Var) -> ElementRule:
        """The elements of an array Var, of the base array where it is a view."""
        if var in self.views:
            return self.views[var][0]
        assert isinstance(var.type, Array)
        type_ = Scalar(var.type.dtype, False)
        return ElementRule(self.facts.extents(var), var.type.dtype, lambda index: Load(var, index, type_))

    def layout(self, array: Var) -> str:
        """The memory layout of an array: "C", "F" or "A" for any."""
        assert isinstance(array.type, Array)
        return self.layouts.get(array, array.type.layout)

    def clamped(self, extent: Extent) -> Expr:
        """The size as an expression that is not negative."""
        if self.facts.nonnegative(extent.form):
            return extent.size
        return Call(max, (extent.size, Const(0)), (), INT)

    def extent(self, size: Expr) -> Extent:
        """The extent of a size expression."""
        return self.facts.simplified(Extent(size, self.facts.form(size)))

    def sizes(self, var: Var) -> Extents:
        """The extents of an array read from its own shape."""
        assert isinstance(var.type, Array)
        return tuple(self.extent(dim(var, k)) for k in range(var.type.rank))

    # ---- checks ------------------------------------------------------------------------------------------------------

    def check(self, wrong: Expr, exception: type[BaseException], message: str) -> None:
        """`if wrong: raise exception(message)`, unless that has been checked already."""
        if self.facts.has_passed(wrong):
            return
        read = traversal.free_vars(wrong)
        if not traversal.loads(wrong) and all(
            map(is_real, read)
        ):  # what integers are is known inside after a check there
            found = self._worst_iteration([], self._depth(read))
            if found is not None:
                depth, runs, _ = found
                self._check_before(depth, [*map(_reached, runs), wrong], exception, message)
                return
        self.emit(If(wrong, (Raise(exception, (Const(message),), self.origin),), (), self.origin))

    def require(self, form: Affine, exception: type[BaseException], message: str) -> None:
        """Ensure that a form is not negative: by proof, by a check before a loop, or by a check here."""
        if self.facts.nonnegative(form):
            return
        if self._hoisted(form, exception, message):
            return
        self.check(negative(form), exception, message)
        self.facts.assume(form)

    def _hoisted(self, form: Affine, exception: type[BaseException], message: str) -> bool:
        """Hoist a check out of the enclosing loops: the worst iteration is checked."""
        found = self._worst_iteration([-form - 1], 0)
        if found is None:
            return False
        depth, wrong, guards = found
        worst = -wrong[0] - 1
        if self.facts.nonnegative(worst):  # the loop bounds themselves imply it
            return True
        self._check_before(depth, [*map(_reached, wrong[1:]), negative(worst)], exception, message)
        self.facts.assume(worst)
        for inner in range(max(guards, default=depth - 1) + 1, len(self.loops)):
            self.loops[inner].lasting.append(worst)
        return True

    def _check_before(self, depth: int, tests: list[Expr], exception: type[BaseException], message: str) -> None:
        """A check before one of the enclosing loops, for an error where all the tests hold."""
        loop = self.loops[depth]
        test = tests[0] if len(tests) == 1 else Call(intrinsics.and_, tuple(tests), (), BOOL)
        if not loop.outside.has_passed(test):
            loop.before.append(If(test, (Raise(exception, (Const(message),), self.origin),), (), self.origin))

    def _worst_iteration(self, wrong: list[Affine], limit: int) -> tuple[int, list[Affine], list[int]] | None:
        """The outermost loop before which an error can be detected, and the forms none of which is negative then.

        A check may move only to where it is certain that some iteration fails it: besides its own form it tests
        whether the loops run.  All of these must be worst in the same iteration, the first or the last.  The third
        result are the loops that the other forms require to run.  The loops outside `limit` are not left.
        """
        depth: int | None = None
        guards: list[int] = []
        for outer in range(len(self.loops) - 1, limit - 1, -1):
            loop = self.loops[outer]
            if self.branches[outer + 1] or loop.leaves or loop.counter is None or not loop.step:
                break
            moved = _at_worst(loop, wrong)
            if moved is None:
                break
            depth, wrong = outer, moved
            iterations = (loop.stop - loop.start) * (1 if loop.step > 0 else -1)
            if not _follows(loop.outside, wrong, iterations):
                wrong.append(iterations - 1)
                guards.append(outer)
        return None if depth is None else (depth, wrong, guards)


def _at_worst(loop: Loop, forms: list[Affine]) -> list[Affine] | None:
    """Forms at the iteration of a loop at which all of them are largest; None where there is no such iteration."""
    counter = loop.counter
    assert counter is not None
    parts = (loop.start, loop.stop, *(form.without(counter) for form in forms))
    if any(not loop.assigned.isdisjoint(_vars_of(part)) for part in parts):
        return None
    if not all(map(stable, forms)):  # elements of arrays that bound an inner loop may differ between iterations
        return None
    coefficients = [form.coefficient(counter) for form in forms]
    if not any(coefficients):
        return list(forms)
    if abs(loop.step) != 1 or min(coefficients) < 0 < max(coefficients):
        return None
    upwards = (loop.step > 0) == (max(coefficients) > 0)
    last = loop.stop - loop.step if upwards else loop.start
    return [form.without(counter) + last * c for form, c in zip(forms, coefficients, strict=True)]


def _follows(outside: SymbolicBounds, wrong: list[Affine], iterations: Affine) -> bool:
    """Whether an error implies that the loop runs, by the facts before it."""
    if outside.nonnegative(iterations - 1):
        return True
    if not wrong:
        return False
    with outside.supposing(-iterations, *wrong[1:]):
        return outside.nonnegative(-wrong[0] - 1)


def spelled(func: Any) -> str:
    """A function in the user's spelling: `np.linalg.solve`, `math.comb`, `len`."""
    part_of: str = getattr(func, "part_of", "")
    if part_of:
        return part_of
    name = getattr(func, "__name__", repr(func))
    if intrinsics.is_draw(func):
        return func.__qualname__
    module = getattr(func, "__module__", None) or ""
    if module in ("builtins", "_operator") or module.startswith("tapegen."):
        return name
    if module.startswith("scipy."):
        return callable_text(func)
    return f"{module.replace('numpy', 'np', 1)}.{name}" if module else name


def _reached(form: Affine) -> Expr:
    """`form >= 0`."""
    return negative(-form - 1)


def negative(form: Affine) -> Expr:
    """`form < 0`, with each term on the side where it is positive."""
    plus = Affine(max(form.constant, 0), tuple(t for t in form.terms if t[1] > 0))
    minus = -Affine(min(form.constant, 0), tuple(t for t in form.terms if t[1] < 0))
    if minus.is_constant:
        return Call(operator.lt, (plus.expr, minus.expr), (), BOOL)
    if minus.constant > 0:
        return Call(operator.ge, ((minus - 1).expr, plus.expr), (), BOOL)
    return Call(operator.gt, (minus.expr, plus.expr), (), BOOL)


def _is_arithmetic(expr: Expr) -> bool:
    """Whether an expression is made of numbers by arithmetic that raises no error in compiled code."""
    if isinstance(expr, (Var, Const)):
        return not isinstance(expr.type, Array)
    return (
        isinstance(expr, Call)
        and expr.func in _ARITHMETIC
        and isinstance(expr.type, Scalar)
        and expr.type.dtype.startswith("float")
        and all(map(_is_arithmetic, expr.args))
    )


_ARITHMETIC: frozenset[Any] = frozenset(
    {operator.add, operator.sub, operator.mul, operator.truediv, operator.pow, operator.neg}
    | {np.sqrt, math.sqrt, np.exp, math.exp, np.log, math.log, builtins.float, builtins.abs}
)


def _vars_of(form: Affine) -> set[Var]:
    return {var for atom in form.atoms for var in traversal.free_vars(atom)}


def loop_over(counter: Var, size: Expr, body: list[Stmt], origin: Span | None) -> For:
    """`for counter in range(size)`."""
    return For(counter, Const(0), size, Const(1), tuple(body), origin)
