"""Vector math substitution with loop versioning: elementary functions of several iterations at once.

The C library's functions take one number.  In loops whose iterations are independent `np.exp` and its like become the
functions of `ir.vector_math`, which LLVM makes vector instructions of.  Sine and cosine of numbers far from zero need
more than these do: where the program does not say that there are none, a loop in front counts them, and where it finds
one, the loop runs as it was.  So it is with what raises an error in Python, since a check keeps LLVM from vector
instructions. Legal where nothing that decides which way the program goes depends on the last place of a result.

Before::

    def f(x: "f8[:]", y: "f8[:]"):
        for i in range(x.shape[0]):
            y[i] = np.exp(x[i]) * np.sin(x[i])
        return y

After::

    def f(x, y):
        far = 0
        for i in range(x.shape[0]):
            far += abs(x[i]) > 32768.0
        if far > 0:
            for i in range(x.shape[0]):
                y[i] = np.exp(x[i]) * np.sin(x[i])
        else:
            for i in range(x.shape[0]):
                y[i] = vexp(x[i]) * vsin(x[i])
        return y
"""

from __future__ import annotations

import builtins
import functools
import itertools
import math
import operator
from collections.abc import Callable, Iterator, Mapping, Set
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from tapegen.ir import intrinsics, traversal, vector_math
from tapegen.ir.names import NameSupply
from tapegen.ir.nodes import Assign, Block, Call, Comment, Const, Expr, For, Function, If, Load, Stmt, Store, Var
from tapegen.ir.types import BOOL, INT, Scalar
from tapegen.loops.analysis.affine import is_float64, is_int, linear
from tapegen.loops.analysis.dependence import LoopNest
from tapegen.loops.analysis.flow_facts import FlowFacts
from tapegen.loops.analysis.independence import is_independent, is_short
from tapegen.loops.analysis.loop_visitor import InnermostLoopPass
from tapegen.loops.analysis.rounding_sensitive import deciding, overflowing
from tapegen.loops.vectorize.check_coalescing import whole


def vectorize_math(function: Function) -> Function:
    """The same program with elementary functions of several iterations at once, where these are independent."""
    if all(VECTORS.keys().isdisjoint(traversal.calls(stmt)) for stmt in function.body):
        return function
    return replace(function, body=_Vectorization(function).block(function.body))


class _Vectorization(InnermostLoopPass):
    def __init__(self, function: Function) -> None:
        super().__init__(function)
        self.sums: dict[Stmt, dict[Var, Var]] = {}  # for a strip's first loop: what its second one adds up, and to what

    def block(self, block: Block) -> Block:
        for first, second in itertools.pairwise(block):
            if (
                isinstance(first, For)
                and isinstance(second, For)
                and (first.target, first.stop) == (second.target, second.stop)
            ):
                self.sums[first] = dict(_added(second.body, second.target))
        return super().block(block)

    def concerns(self, stmt: Stmt) -> bool:
        return not VECTORS.keys().isdisjoint(traversal.calls(stmt))

    @functools.cached_property
    def deciding(self) -> set[Var]:
        """Names whose value must not change in its last place."""
        return deciding(self.function, self.memory)

    def lasts(self, array: Var) -> bool:
        """Whether the elements of an array are seen after an error."""
        return self.memory.own(array) is None

    def rewrite(self, nest: LoopNest, before: list[Stmt], outside: FlowFacts) -> list[Stmt]:
        """The loop with vector functions."""
        (loop,) = nest.loops
        head, values = _induction(nest)
        if is_short(loop) or not is_independent(nest, set(), self.memory.group, values):
            return [nest.stmt]
        sums: dict[Var, Var] = self.sums.get(loop, {})

        def is_exact(var: Var) -> bool:
            return self.memory.group(sums.get(var, var)) in self.deciding

        found = vector_form(nest.body[len(head) :], is_exact, self.lasts, self.names)
        return [nest.stmt] if found is None else found.loops(lambda body: replace(loop, body=(*head, *body)))


def _added(block: Block, counter: Var) -> Iterator[tuple[Var, Var]]:
    """Arrays whose elements at the counter a block adds to scalars, and these."""
    for stmt in block:
        match stmt:
            case Assign((target,), Call(operator.add | operator.sub, (first, Load(array, (index,))))):
                if first == target and index == counter:
                    yield array, target


def _induction(nest: LoopNest) -> tuple[Block, Mapping[Var, Expr]]:
    """What stands first in a strip: an integer that is the counter and what does not change, and its value."""
    match nest.body[0]:
        case Assign((target,), Call(np.uintp, (value,)) | value) if is_int(target) and not traversal.loads(value):
            if linear(value).coefficient(nest.counters[0]) == 1 and target not in nest.changing:
                return nest.body[:1], {target: value}
    return (), {}


@dataclass(frozen=True)
class VectorForm:
    """The iterations of a loop in another form.

    Attributes
    ----------
    body : tuple of Stmt
        An iteration with functions that become vector instructions.
    far : tuple of Stmt
        What an iteration does to count the numbers that are too far from zero for that, and errors; nothing where none
        can be.
    count : Var or None
        What it counts with.
    slow : tuple of Stmt
        What an iteration does where there are any.
    raises : bool
        Whether that ends with an error in any case.
    """

    body: Block
    far: Block = ()
    count: Var | None = None
    slow: Block = ()
    raises: bool = False

    def loops(self, loop: Callable[[Block], For]) -> list[Stmt]:
        """The loop with such functions; where a loop in front finds numbers far from zero or errors, the one without.

        Parameters
        ----------
        loop : callable
            Makes a loop of an iteration.
        """
        quick = loop(self.body)
        if self.count is None:
            return [quick]
        slow = loop(tuple(replace(stmt) for stmt in self.slow if not isinstance(stmt, Comment)))
        counting: list[Stmt] = [Assign((self.count,), Const(0), quick.origin), loop(self.far)]
        found = Call(operator.gt, (self.count, Const(0)), (), BOOL)
        if self.raises:
            return [*counting, If(found, (slow,), (), quick.origin), quick]
        return [*counting, If(found, (slow,), (quick,), quick.origin)]


def vector_form(
    body: Block, exact: Callable[[Var], bool], lasts: Callable[[Var], bool], names: NameSupply
) -> VectorForm | None:
    """The iterations of a loop, which are apart but for sums, with functions for vector instructions.

    None where an iteration calls no function that has such a form, or one that keeps LLVM from making vector
    instructions, or where it may raise an error and no loop in front can tell whether any iteration does.

    Parameters
    ----------
    body : tuple of Stmt
        An iteration.
    exact : callable
        Whether what a name holds must not change in its last place: the same value may be worked out elsewhere by the
        C library.
    lasts : callable
        Whether the elements of an array are seen after an error.
    names : NameSupply
        Where new names come from.
    """
    called = frozenset().union(*(traversal.calls(stmt) for stmt in body if not isinstance(stmt, If)))
    powers = (part for stmt in body for part in _parts(stmt) if part.func is operator.pow)
    if VECTORS.keys().isdisjoint(called) or not called - {operator.pow} <= VECTORS.keys() | _PLAIN:
        return None
    if not all(map(is_product, powers)):
        return None
    made = _made(body)
    checks: dict[Stmt, list[Expr]] = {stmt: [_wrong(stmt, body)] for stmt in body if isinstance(stmt, If)}
    if _needed(body, checks) is None:
        return None
    left = [stmt for stmt in body if any(exact(var) for var in _results(stmt))]
    far: dict[Stmt, list[Expr]] = {}
    for stmt in body:
        angles = [] if stmt in left else [part.args[0] for part in _parts(stmt) if part.func in _PERIODIC]
        always = _CONDITIONAL.isdisjoint(traversal.calls(stmt))
        for angle in angles:
            if _bound(angle, made) <= vector_math.LARGEST_ANGLE or (traversal.loads(angle) and not always):
                continue
            if _needed(body, {stmt: [_is_far(angle)]}) is not None:
                far.setdefault(stmt, []).append(angle)

    def changed(stmt: Stmt) -> Stmt:
        def chosen(expr: Any) -> Any:
            if not _is_call(expr) or expr.func not in VECTORS or not all(map(is_float64, expr.args)):
                return expr
            near = expr.func not in _PERIODIC or expr.args[0] in far.get(stmt, [])
            near = near or _bound(expr.args[0], made) <= vector_math.LARGEST_ANGLE
            return replace(expr, func=VECTORS[expr.func]) if near else expr

        return traversal.map_headers(stmt, lambda header: traversal.map_expr(header, chosen))

    new = tuple(stmt if stmt in left else changed(stmt) for stmt in body if not isinstance(stmt, If))
    if _CHOSEN.isdisjoint(frozenset().union(*map(traversal.calls, new))):
        return None
    counted = checks | {stmt: [_is_far(angle) for angle in angles] for stmt, angles in far.items()}
    if not counted:
        return VectorForm(new)
    count = Var(names.fresh("far"), INT)

    def adding(condition: Expr, stmt: Stmt) -> Stmt:
        return Assign((count,), Call(operator.add, (count, condition), (), INT))

    def raising(condition: Expr, stmt: Stmt) -> Stmt:
        assert isinstance(stmt, If)
        return replace(stmt, test=condition)

    raises = not far and not any(lasts(stmt.array) for stmt in body if isinstance(stmt, Store))
    slow = _each(_needed(body, checks), raising) if raises else body
    return VectorForm(new, _each(_needed(body, counted), adding), count, slow, raises)


def _results(stmt: Stmt) -> tuple[Var, ...]:
    return (stmt.array,) if isinstance(stmt, Store) else stmt.targets


def _made(body: Block) -> dict[Var, Expr | None]:
    """What the numbers of an iteration are made of; None where that is no one expression."""
    made: dict[Var, Expr | None] = {}
    for stmt in body:
        if isinstance(stmt, Assign):
            (target,) = stmt.targets
            made[target] = None if target in made or target in traversal.free_vars(stmt.value) else stmt.value
    return made


def _parts(stmt: Stmt) -> Iterator[Call]:
    return (part for header in stmt.headers for part in traversal.subexpressions(header) if _is_call(part))


def _bound(expr: Expr, made: Mapping[Var, Expr | None]) -> float:
    """What the size of a number does not exceed; NaN counts as small."""
    match expr:
        case Const(int() | float() as value):
            return abs(value)
        case Var() if (source := made.get(expr)) is not None:
            return _bound(source, made)
        case Call(func) if func in _AT_MOST_ONE:
            return 1.0
        case Call(operator.neg | builtins.abs, (a,)):
            return _bound(a, made)
        case Call(operator.add | operator.sub, (a, b)):
            return _bound(a, made) + _bound(b, made)
        case Call(operator.mul, (a, b)):
            sizes = _bound(a, made), _bound(b, made)
            return math.inf if math.inf in sizes else sizes[0] * sizes[1]
    return math.inf


def _is_far(angle: Expr) -> Expr:
    size = Call(builtins.abs, (angle,), (), angle.type)
    return Call(operator.gt, (size, Const(vector_math.LARGEST_ANGLE)), (), BOOL)


def _wrong(check: If, body: Block) -> Expr:
    """Where a check raises its error, as a condition without functions that take long."""
    number = overflowing(check)
    before = body[body.index(check) - 1]
    match before:
        case Assign((target,), Call(math.exp, (power,))) if target == number:
            large = Call(operator.gt, (power, Const(vector_math.LARGEST_POWER)), (), BOOL)
            return Call(operator.and_, (large, Call(operator.lt, (power, Const(math.inf)), (), BOOL)), (), BOOL)
    return check.test if traversal.loads(check.test) else whole(check.test)


_Needed = list[Assign | tuple[Expr, Stmt]]


def _needed(body: Block, conditions: Mapping[Stmt, list[Expr]]) -> _Needed | None:
    """The part of an iteration that tells which conditions hold in front of which statements.

    None where that takes more than arithmetic, elements that the loop writes, or numbers of the iteration before.
    """
    stored = {stmt.array for stmt in body if isinstance(stmt, Store)}
    assigned = frozenset().union(*[stmt.targets for stmt in body])
    found: _Needed = []
    names: frozenset[Var] = frozenset()
    for stmt in reversed(body):
        if isinstance(stmt, Assign) and stmt.targets[0] in names:
            if not _may_be_counted(stmt.value, stored, assigned):
                return None
            found.append(stmt)
            names = names - {*stmt.targets} | traversal.free_vars(stmt.value)
        for condition in conditions.get(stmt, []):
            if not _may_be_counted(condition, stored, assigned):
                return None
            found.append((condition, stmt))
            names |= traversal.free_vars(condition)
    return None if names & assigned else found[::-1]


def _each(parts: _Needed | None, made: Callable[[Expr, Stmt], Stmt]) -> Block:
    """The statements of such a part, with what is made of each condition, once."""
    out: list[Stmt] = []
    seen: set[Expr] = set()
    for part in parts or ():
        if isinstance(part, Assign):
            seen = {condition for condition in seen if traversal.free_vars(condition).isdisjoint(part.targets)}
            out.append(replace(part))
        elif part[0] not in seen:
            seen.add(part[0])
            out.append(made(*part))
    return tuple(out)


def _may_be_counted(expr: Expr, stored: Set[Var], assigned: Set[Var]) -> bool:
    """Whether an expression is made of floats by arithmetic, and of elements whose places the loop alone decides."""
    for part in traversal.subexpressions(expr):
        if isinstance(part, Load):
            moved = any(traversal.loads(item) or traversal.free_vars(item) & assigned for item in part.index)
            if moved or part.array in stored:
                return False
        elif isinstance(part, Call) and not (
            part.func in _ARITHMETIC or (part.func in _TESTS and all(map(_is_number_or_test, part.args)))
        ):
            return False
    return True


def is_product(power: Call) -> bool:
    """Whether compiled code multiplies for a power."""
    _, exponent = power.args
    return isinstance(exponent, Const) and isinstance(exponent.value, int)


def _is_call(part: Any) -> bool:
    return isinstance(part, Call)


def _is_number_or_test(expr: Expr) -> bool:
    """Whether it is no integer, which may be an index."""
    return isinstance(expr, Const) or (
        isinstance(expr.type, Scalar) and expr.type.dtype in ("float64", "float32", "bool")
    )


VECTORS: dict[Any, Any] = {
    np.exp: vector_math.vexp,
    np.log: vector_math.vlog,
    np.log1p: vector_math.vlog1p,
    np.sin: vector_math.vsin,
    np.cos: vector_math.vcos,
    np.tanh: vector_math.vtanh,
    math.exp: vector_math.vexp,
    math.log: vector_math.vlog,
    math.log1p: vector_math.vlog1p,
    math.sin: vector_math.vsin,
    math.cos: vector_math.vcos,
    math.tanh: vector_math.vtanh,
    math.erf: vector_math.verf,
}
"""The functions that have a form for vector instructions; where one raises an error in Python, a check says so."""

_CHOSEN = frozenset(VECTORS.values())
_PERIODIC = frozenset({np.sin, np.cos, math.sin, math.cos})
_AT_MOST_ONE = (
    _PERIODIC | {np.tanh, math.tanh, math.erf} | {VECTORS[func] for func in (np.sin, np.cos, np.tanh, math.erf)}
)
_CONDITIONAL: frozenset[Any] = frozenset({intrinsics.ifelse, intrinsics.and_, intrinsics.or_})
"""Calls whose operands need not all be looked at: an element among them may be none."""

_ARITHMETIC: frozenset[Any] = frozenset(
    {operator.add, operator.sub, operator.mul, operator.truediv, operator.neg, intrinsics.dim}
)
_TESTS: frozenset[Any] = frozenset(
    {
        *(operator.eq, operator.ne, operator.lt, operator.le, operator.gt, operator.ge, operator.not_),
        *(operator.and_, operator.or_, builtins.abs, math.fabs, np.sqrt, math.sqrt),
        *(np.isnan, math.isnan, math.isinf, math.isfinite),
    }
)
_PLAIN: frozenset[Any] = _ARITHMETIC | _TESTS | _CONDITIONAL | {builtins.float, np.maximum, np.minimum}
"""What LLVM makes vector instructions of by itself."""
