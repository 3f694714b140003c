"""Vector math substitution with loop versioning: elementary functions of several iterations at once.

The C library's functions accept one scalar.  In loops with independent iterations `np.exp` and similar functions become
those of `ir.vector_math`, which LLVM vectorizes.  Sine and cosine of large arguments need more than these provide:
where value ranges do not exclude such arguments, a loop before counts them, and if there are any, the original loop
runs.  Errors that Python raises are treated alike, since a check keeps LLVM from vectorizing.  Legal where neither
control flow nor indices depend on the last bit of a result.

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

from tapegen.ir import builders, intrinsics, traversal, vector_math
from tapegen.ir.affine import is_int, linear
from tapegen.ir.names import NameSupply
from tapegen.ir.nodes import Assign, Block, Call, Comment, Const, Expr, For, Function, If, Load, Stmt, Store, Var
from tapegen.ir.types import BOOL, INT, Scalar
from tapegen.loops.analysis.dependence import LoopNest
from tapegen.loops.analysis.flow_facts import FlowFacts
from tapegen.loops.analysis.independence import accesses_columns, is_independent, is_short
from tapegen.loops.analysis.loop_visitor import InnermostLoopPass
from tapegen.loops.analysis.rounding_sensitive import deciding, overflowing
from tapegen.loops.legalize.precision import dtype_of
from tapegen.loops.vectorize.check_coalescing import whole


def vectorize_math(function: Function) -> Function:
    """The same program with vector variants of elementary functions in loops with independent iterations."""
    if all(VECTORS.keys().isdisjoint(traversal.calls(stmt)) for stmt in function.body):
        return function
    return traversal.with_body(function, _Vectorization(function).block(function.body))


class _Vectorization(InnermostLoopPass):
    def __init__(self, function: Function) -> None:
        super().__init__(function)
        self.sums: dict[Stmt, dict[Var, Var]] = {}  # of the first loop of a strip: terms and their sums

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
        """Variables whose value must not change in the last bit."""
        return deciding(self.function, self.memory)

    def lasts(self, array: Var) -> bool:
        """Whether the elements of an array are visible after an error."""
        return self.memory.own(array) is None

    def rewrite(self, nest: LoopNest, before: list[Stmt], outside: FlowFacts) -> list[Stmt]:
        """The loop with vector functions."""
        (loop,) = nest.loops
        head, values = _induction(nest)
        if is_short(loop) or not is_independent(nest, set(), self.memory.group, values):
            return [nest.stmt]
        if accesses_columns(nest, values):
            return [nest.stmt]
        sums: dict[Var, Var] = self.sums.get(loop, {})

        def is_exact(var: Var) -> bool:
            return self.memory.group(sums.get(var, var)) in self.deciding

        found = vector_form(nest.body[len(head) :], is_exact, self.lasts, self.names)
        return [nest.stmt] if found is None else found.loops(lambda body: replace(loop, body=(*head, *body)))


def _added(block: Block, counter: Var) -> Iterator[tuple[Var, Var]]:
    """Arrays whose elements at the counter a block adds to scalars, and these scalars."""
    for stmt in block:
        match stmt:
            case Assign((target,), Call(operator.add | operator.sub, (first, Load(array, (index,))))):
                if first == target and index == counter:
                    yield array, target


def _induction(nest: LoopNest) -> tuple[Block, Mapping[Var, Expr]]:
    """The first statement of a strip: an integer made of the counter and invariants, and its value."""
    match nest.body[0]:
        case Assign((target,), Call(np.uintp, (value,)) | value) if is_int(target) and not traversal.loads(value):
            if linear(value).coefficient(nest.counters[0]) == 1 and target not in nest.changing:
                return nest.body[:1], {target: value}
    return (), {}


@dataclass(frozen=True)
class VectorForm:
    """The vectorizable variant of the iterations of a loop.

    Attributes
    ----------
    body : tuple of Stmt
        An iteration with functions that LLVM vectorizes.
    far : tuple of Stmt
        The statements of an iteration that count arguments that are too large, and errors; empty where there can be
        none.
    count : Var or None
        The variable of that count.
    slow : tuple of Stmt
        The iteration of the fallback loop.
    raises : bool
        Whether the fallback loop always ends with an error.
    """

    body: Block
    far: Block = ()
    count: Var | None = None
    slow: Block = ()
    raises: bool = False

    def loops(self, loop: Callable[[Block], For]) -> list[Stmt]:
        """The vectorized loop; with the original as fallback where a loop before finds large arguments or errors.

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
    """The vectorizable variant of a loop whose iterations are independent except for sums.

    None where an iteration calls no function that has a vector variant, or one that prevents vectorization,
    or where it may raise an error and no loop before can tell whether any iteration does.

    Parameters
    ----------
    body : tuple of Stmt
        An iteration.
    exact : callable
        Whether a variable must not change in its last bit: the C library may compute the same value
        elsewhere.
    lasts : callable
        Whether the elements of an array are visible after an error.
    names : NameSupply
        The supply of fresh names.
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
        angles = [] if stmt in left else [part.args[0] for part in _parts(stmt) if _variant(part) in _PERIODIC_VARIANTS]
        always = _CONDITIONAL.isdisjoint(traversal.calls(stmt))
        for angle in angles:
            if _is_near(angle, made) or (traversal.loads(angle) and not always):
                continue
            if _needed(body, {stmt: [_is_far(angle)]}) is not None:
                far.setdefault(stmt, []).append(angle)

    def changed(stmt: Stmt) -> Stmt:
        def chosen(expr: Any) -> Any:
            func = _variant(expr) if _is_call(expr) else None
            if func is None:
                return expr
            near = func not in _PERIODIC_VARIANTS or expr.args[0] in far.get(stmt, []) or _is_near(expr.args[0], made)
            return replace(expr, func=func) if near else expr

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
    """The definitions of the scalars of an iteration; None where one is no single expression."""
    made: dict[Var, Expr | None] = {}
    for stmt in body:
        if isinstance(stmt, Assign):
            (target,) = stmt.targets
            made[target] = None if target in made or target in traversal.free_vars(stmt.value) else stmt.value
    return made


def _parts(stmt: Stmt) -> Iterator[Call]:
    return (part for header in stmt.headers for part in traversal.subexpressions(header) if _is_call(part))


def _bound(expr: Expr, made: Mapping[Var, Expr | None]) -> float:
    """An upper bound of the magnitude of a scalar; NaN counts as small."""
    match expr:
        case Const(value) if isinstance(value, int | float | np.float32):
            return abs(float(value))
        case Var() if (source := made.get(expr)) is not None:
            return _bound(source, made)
        case Call(func) if func in _AT_MOST_ONE:
            return 1.0
        case Call(operator.neg | builtins.abs | builtins.float | np.float32, (a,)):
            return _bound(a, made)
        case Call(operator.add | operator.sub, (a, b)):
            return _bound(a, made) + _bound(b, made)
        case Call(operator.mul, (a, b)):
            sizes = _bound(a, made), _bound(b, made)
            return math.inf if math.inf in sizes else sizes[0] * sizes[1]
    return math.inf


def _variant(call: Call) -> Any:
    """The vector variant of a function for the precision of its operand, if there is one."""
    variants = VECTORS.get(call.func)
    return None if variants is None else variants.get(dtype_of(call.args[0]))


def _is_near(angle: Expr, made: Mapping[Var, Expr | None]) -> bool:
    return _bound(angle, made) <= _largest(angle)


def _is_far(angle: Expr) -> Expr:
    size = Call(builtins.abs, (angle,), (), angle.type)
    return Call(operator.gt, (size, builders.floating(_largest(angle), dtype_of(angle))), (), BOOL)


def _largest(angle: Expr) -> float:
    """The largest angle that the vector variants take."""
    return vector_math.LARGEST_ANGLE[dtype_of(angle)]


def _wrong(check: If, body: Block) -> Expr:
    """The error condition of a check, without expensive functions."""
    number = overflowing(check)
    before = body[body.index(check) - 1]
    match before:
        case Assign((target,), Call(math.exp, (power,))) if target == number:
            large = Call(operator.gt, (power, Const(vector_math.LARGEST_POWER)), (), BOOL)
            return Call(operator.and_, (large, Call(operator.lt, (power, Const(math.inf)), (), BOOL)), (), BOOL)
    return check.test if traversal.loads(check.test) else whole(check.test)


_Needed = list[Assign | tuple[Expr, Stmt]]


def _needed(body: Block, conditions: Mapping[Stmt, list[Expr]]) -> _Needed | None:
    """The part of an iteration that computes which conditions hold at which statements.

    None where that takes more than arithmetic, elements that the loop writes, or scalars of the previous iteration.
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
    """The statements of such a part, with the result for each condition, once."""
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
    """Whether an expression is made of floats by arithmetic, and of elements whose indices depend on the loop alone."""
    for part in traversal.subexpressions(expr):
        if isinstance(part, Load):
            moved = any(traversal.loads(item) or traversal.free_vars(item) & assigned for item in part.index)
            if moved or part.array in stored:
                return False
        elif isinstance(part, Call) and not (
            part.func in _ARITHMETIC
            or (part.func is operator.pow and is_product(part))
            or (part.func in _TESTS and all(map(_is_number_or_test, part.args)))
        ):
            return False
    return True


def is_product(power: Call) -> bool:
    """Whether compiled code computes a power by multiplication."""
    _, exponent = power.args
    return isinstance(exponent, Const) and isinstance(exponent.value, int)


def _is_call(part: Any) -> bool:
    return isinstance(part, Call)


def _is_number_or_test(expr: Expr) -> bool:
    """Whether it is no integer, which may be an index."""
    return isinstance(expr, Const) or (
        isinstance(expr.type, Scalar) and expr.type.dtype in ("float64", "float32", "bool")
    )


_EXP = {"float64": vector_math.vexp, "float32": vector_math.vexpf}
_LOG = {"float64": vector_math.vlog, "float32": vector_math.vlogf}
_LOG1P = {"float64": vector_math.vlog1p, "float32": vector_math.vlog1pf}
_SIN = {"float64": vector_math.vsin, "float32": vector_math.vsinf}
_COS = {"float64": vector_math.vcos, "float32": vector_math.vcosf}
_TANH = {"float64": vector_math.vtanh, "float32": vector_math.vtanhf}
_ERF = {"float64": vector_math.verf}

VECTORS: dict[Any, dict[str, Any]] = {
    **dict.fromkeys((np.exp, math.exp), _EXP),
    **dict.fromkeys((np.log, math.log), _LOG),
    **dict.fromkeys((np.log1p, math.log1p), _LOG1P),
    **dict.fromkeys((np.sin, math.sin), _SIN),
    **dict.fromkeys((np.cos, math.cos), _COS),
    **dict.fromkeys((np.tanh, math.tanh), _TANH),
    math.erf: _ERF,
    math.erfc: {"float64": vector_math.verfc},
}
"""The functions that have vector variants, for some dtypes; where one raises an error in Python, a check detects it.

The pipeline adds external functions.
"""

_PERIODIC_VARIANTS = frozenset({*_SIN.values(), *_COS.values()})
_CHOSEN = frozenset(vector_math.CALLED)
_PERIODIC = frozenset({np.sin, np.cos, math.sin, math.cos})
_AT_MOST_ONE = (
    _PERIODIC
    | {np.tanh, math.tanh, math.erf}
    | {func for several in (_SIN, _COS, _TANH, _ERF) for func in several.values()}
)
_CONDITIONAL: frozenset[Any] = frozenset({intrinsics.ifelse, intrinsics.and_, intrinsics.or_})
"""Calls whose operands are not all evaluated: an element among them may be out of bounds."""

_ARITHMETIC: frozenset[Any] = frozenset(
    {operator.add, operator.sub, operator.mul, operator.truediv, operator.neg, intrinsics.dim}
)
_TESTS: frozenset[Any] = frozenset(
    {
        *(operator.eq, operator.ne, operator.lt, operator.le, operator.gt, operator.ge, operator.not_),
        *(operator.and_, operator.or_, builtins.abs, math.fabs, np.sqrt, math.sqrt),
        *(np.isnan, math.isnan, math.isinf, math.isfinite),
        *(builtins.float, np.float32),
    }
)
_PLAIN: frozenset[Any] = _ARITHMETIC | _TESTS | _CONDITIONAL | {np.maximum, np.minimum}
"""The functions that LLVM vectorizes itself."""
