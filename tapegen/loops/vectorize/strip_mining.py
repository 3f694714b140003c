"""Strip-mining of reductions: terms of sums are computed in blocks of 512, then added up in the same order.

A sum keeps LLVM from vector instructions, since it may not reorder the additions, and from overlapping iterations
during a division.  So a loop is strip-mined and distributed: the terms of a block go into a short buffer in independent
iterations, and a second loop adds them up; results stay the same in every bit.  Legal where only sums are loop-carried;
it pays where terms have vector variants (`vectorize_math`) or take many or long operations.

Before::

    def f(x: "f8[:]", y: "f8[:]"):
        s = 0.0
        for i in range(x.shape[0]):
            s = s + np.exp(x[i]) * y[i]
        return s

After::

    def f(x, y):
        s = 0.0
        terms = np.empty(512)
        for start in range(0, x.shape[0], 512):
            size = min(512, x.shape[0] - start)
            for k in range(size):
                i_1 = np.uint64(start + k)
                terms[k] = np.exp(x[i_1]) * y[i_1]
            for k in range(size):
                s += terms[k]
        return s
"""

from __future__ import annotations

import builtins
import functools
import math
import operator
from collections import Counter
from collections.abc import Callable, Set
from dataclasses import replace
from typing import Any

import numpy as np

from tapegen.ir import builders, intrinsics, traversal
from tapegen.ir.affine import is_real, minus, plus
from tapegen.ir.nodes import Assign, Block, Call, Const, Expr, For, Function, Load, Stmt, Store, Var
from tapegen.ir.types import INT, Array, Scalar
from tapegen.loops.analysis.dependence import Access, LoopNest
from tapegen.loops.analysis.flow_facts import FlowFacts
from tapegen.loops.analysis.independence import accesses_columns, is_independent, is_short, stride
from tapegen.loops.analysis.loop_visitor import InnermostLoopPass
from tapegen.loops.analysis.rounding_sensitive import deciding
from tapegen.loops.vectorize.vector_calls import is_product, vector_form

_LENGTH = 512
_CALLS, _IN_A_ROW = 3, 2
"""How many calls of the C library an iteration makes, and how many of them in sequence, where strip-mining pays."""


def strip_mine_reductions(function: Function) -> Function:
    """The same program with strip-mined sums where that pays."""
    if all(_is_fast(stmt) for stmt in function.body):
        return function
    mining = _StripMining(function)
    mined = traversal.with_body(function, mining.whole())
    if mining.terms:
        mined.known[deciding] = mining.deciding  # shared buffers would make all of their sums control-relevant
    return mined


class _StripMining(InnermostLoopPass):
    def __init__(self, function: Function) -> None:
        super().__init__(function)
        self.terms: dict[str, list[Var]] = {}  # for each dtype, buffers that no two loops use at the same time
        self.buffers: list[Stmt] = []

    def whole(self) -> Block:
        """The new body.  Buffers are allocated once, before their first use."""
        out: list[Stmt] = []
        for stmt in self.function.body:
            new = self.block((stmt,))
            out += [*self.buffers, *new]
            self.buffers = []
        return tuple(out)

    def concerns(self, stmt: Stmt) -> bool:
        return not _is_fast(stmt)

    @functools.cached_property
    def deciding(self) -> set[Var]:
        """Variables whose value must not change in the last bit."""
        return deciding(self.function, self.memory)

    @functools.cached_property
    def _read_beyond(self) -> set[Var]:
        """Counters that are read outside of the loops that count with them."""
        found: set[Var] = set()

        def look(block: Block, counters: frozenset[Var]) -> None:
            for stmt in block:
                found.update(*(traversal.free_vars(header) - counters for header in stmt.headers))
                inside = counters | {stmt.target} if isinstance(stmt, For) else counters
                for inner in stmt.blocks:
                    look(inner, inside)

        look(self.function.body, frozenset())
        return found

    def rewrite(self, nest: LoopNest, before: list[Stmt], outside: FlowFacts) -> list[Stmt]:
        """The strip-mined loop."""
        (loop,) = nest.loops
        sums = _sums(nest)
        if not sums or is_short(loop) or not is_independent(nest, set(sums), self.memory.group):
            return [nest.stmt]
        if not self._vectorizes(nest) and (nest.checks or not (_pays(nest) or takes_vectors(nest, self.memory.group))):
            return [nest.stmt]
        start, size, k = (Var(self.names.fresh(name), INT) for name in ("start", "size", "k"))
        terms = dict(zip(sums, self._buffers(sums, loop), strict=True))
        place = _place(plus(start, k), nest)
        target, body = loop.target, nest.body
        if isinstance(place, Call) and place.func is np.uintp and target not in self._read_beyond:
            # other loops count with the signed variable, and numba would make one float of both
            target = Var(self.names.fresh(target.name), INT)
            body = traversal.rename_block(body, {loop.target: target})
        first: list[Stmt] = [Assign((target,), place, loop.origin)]
        second: list[Stmt] = []
        for stmt in body:
            if isinstance(stmt, Assign) and stmt.targets[0] in terms:
                (total,), value = stmt.targets, stmt.value
                assert isinstance(value, Call)
                first.append(Store(terms[total], (k,), value.args[1], False, stmt.origin))
                term = Load(terms[total], (k,), Scalar(_dtype(value.args[1]), False))
                second.append(replace(stmt, value=replace(value, args=(total, term))))
            else:
                first.append(stmt)
        count = Call(builtins.min, (Const(_LENGTH), minus(loop.stop, start)), (), INT)
        strip: list[Stmt] = [
            Assign((size,), count, loop.origin),
            *(For(k, Const(0), size, Const(1), tuple(body), loop.origin) for body in (first, second)),
        ]
        return [For(start, loop.start, loop.stop, Const(_LENGTH), tuple(strip), loop.origin)]

    def _is_exact(self, var: Var) -> bool:
        return self.memory.group(var) in self.deciding

    def _vectorizes(self, nest: LoopNest) -> bool:
        """Whether the terms have a variant with vector functions."""

        def lasts(array: Var) -> bool:
            return self.memory.own(array) is None

        if accesses_columns(nest, {}):
            return False
        return vector_form(nest.body, self._is_exact, lasts, self.names.copy()) is not None

    def _buffers(self, sums: dict[Var, Expr], loop: For) -> list[Var]:
        """A buffer for the terms of each sum."""
        found: list[Var] = []
        for term in sums.values():
            own = self.terms.setdefault(_dtype(term), [])
            unused = [array for array in own if array not in found]
            if not unused:
                type_ = Array(_dtype(term), 1, "C")
                unused = [Var(self.names.fresh("terms"), type_)]
                own += unused
                made = builders.new_array(np.empty, (Const(_LENGTH),), type_)
                self.buffers.append(Assign((unused[0],), made, loop.origin))
            found.append(unused[0])
        return found


def _place(number: Expr, nest: LoopNest) -> Expr:
    """The iteration number; unsigned where it is only an index, which saves the test of its sign."""
    (target,) = nest.counters
    mentioned = Counter(var for stmt in nest.body for header in stmt.headers for var in _reads(header))
    as_index = sum(item == target for access in nest.accesses for item in access.index)
    return Call(np.uintp, (number,), (), INT) if mentioned[target] == as_index else number


def _sums(nest: LoopNest) -> dict[Var, Expr]:
    """Scalars to which each iteration adds once, and that it reads for nothing else; and what it adds."""
    reads = Counter(var for stmt in nest.body for header in stmt.headers for var in _reads(header))
    writes = Counter(var for stmt in nest.body for var in stmt.targets)
    found: dict[Var, Expr] = {}
    for stmt in nest.body:
        match stmt:
            case Assign((target,), Call(operator.add | operator.sub, (first, term))) if (
                first == target and reads[target] == writes[target] == 1 and is_real(target) and is_real(term)
            ):
                found[target] = term
    return found


def _dtype(number: Expr) -> str:
    assert isinstance(number.type, Scalar)
    return number.type.dtype


def _reads(header: Any) -> list[Var]:
    return [part for part in traversal.subexpressions(header) if isinstance(part, Var)]


def _pays(nest: LoopNest) -> bool:
    """Whether an iteration calls functions in sequence, and does nothing but compute."""
    rows: dict[Var, int] = {}
    calls = 0

    def row(expr: Expr) -> int:
        nonlocal calls
        match expr:
            case Var():
                return rows.get(expr, 0)
            case Call(func, args):
                long = func in LONG
                calls += long
                return max(map(row, args), default=0) + long
        return 0

    longest = 0
    for stmt in nest.body:
        if isinstance(stmt, (Assign, Store)):
            if not all(part.func in SHORT | LONG for part in traversal.subexpressions(stmt.value) if _is_call(part)):
                return False
            found = row(stmt.value)
            longest = max(longest, found)
            rows |= dict.fromkeys(stmt.targets, found)
    return calls >= _CALLS and longest >= _IN_A_ROW


def takes_vectors(nest: LoopNest, group: Callable[[Var], Var], funcs: Set[Any] = frozenset()) -> bool:
    """Whether LLVM would vectorize a loop except for its sums, and these are a small part of its work.

    Parameters
    ----------
    nest : LoopNest
        A single loop.
    group : callable
        The representative of the alias set of an array.
    funcs : set
        Functions of the C library that vector functions replace.
    """
    sums = _sums(nest)
    beside = all(_lies_beside(access, nest) for access in nest.accesses)
    if nest.checks or not beside or not is_independent(nest, set(sums), group):
        return False
    work = 0
    for stmt in nest.body:
        for part in (part for header in stmt.headers for part in traversal.subexpressions(header)):
            if isinstance(part, Call):
                if part.func not in SHORT | funcs or (part.func is operator.pow and not is_product(part)):
                    return False
                work += _MUCH if part.func in funcs else _WORK.get(part.func, 1)
    return work >= _MUCH + _WORK_OF_SUM * len(sums)


def _lies_beside(access: Access, nest: LoopNest) -> bool:
    """Whether an element is adjacent to that of the previous iteration, or the same."""
    type_, (counter,) = access.array.type, nest.counters
    if not isinstance(type_, Array) or type_.dtype not in ("float64", "float32"):
        return False
    varying = nest.assigned | {counter}
    *front, last = access.index or (Const(0),)
    if any(traversal.loads(item) or traversal.free_vars(item) & varying for item in front) or traversal.loads(last):
        return False
    return not traversal.free_vars(last) & varying or (stride(last, counter, varying) == 1 and type_.layout == "C")


def _is_call(part: Any) -> bool:
    return isinstance(part, Call)


LONG: set[Any] = set(
    {
        *(np.sin, np.cos, np.tan, np.arcsin, np.arccos, np.arctan, np.arctan2, np.sinh, np.cosh, np.tanh, np.hypot),
        *(np.arcsinh, np.arccosh, np.arctanh, np.exp, np.exp2, np.expm1, np.log, np.log2, np.log10, np.log1p, np.cbrt),
        *(math.sin, math.cos, math.tan, math.asin, math.acos, math.atan, math.atan2, math.sinh, math.cosh, math.tanh),
        *(math.exp, math.exp2, math.expm1, math.log, math.log2, math.log10, math.log1p, math.asinh, math.acosh),
        *(math.atanh, math.hypot, math.erf, math.erfc, math.gamma, math.lgamma),
    }
)
"""Functions for which compiled code calls a library; the pipeline adds external ones that have a vector variant."""

_SLOW: frozenset[Any] = frozenset({operator.truediv, np.sqrt, math.sqrt})
"""The operations with the longest latency, unless vectorized."""


def _is_fast(stmt: Stmt) -> bool:
    """Whether a statement contains no operation that vector instructions speed up much."""
    called = traversal.calls(stmt)
    return LONG.isdisjoint(called) and _SLOW.isdisjoint(called)


_WORK: dict[Any, int] = {operator.truediv: 10, np.sqrt: 16, math.sqrt: 16}
"""The latency of an operation, in sums and products without dependences."""
_WORK_OF_SUM, _MUCH = 4, 24

SHORT: frozenset[Any] = frozenset(
    {
        *(operator.add, operator.sub, operator.mul, operator.truediv, operator.neg, operator.pow, builtins.abs),
        *(operator.eq, operator.ne, operator.lt, operator.le, operator.gt, operator.ge, operator.not_),
        *(
            operator.and_,
            operator.or_,
            intrinsics.and_,
            intrinsics.or_,
            intrinsics.ifelse,
            intrinsics.dim,
            np.sqrt,
            math.sqrt,
            builtins.float,
            np.float32,
        ),
        *(np.maximum, np.minimum, np.isnan, math.isnan, math.fabs),
    }
)
"""Operations for which the processor has instructions."""
