"""Recurrence height reduction: a loop-carried scalar is multiplied by one factor in each iteration.

The derivative of a recurrence is a linear recurrence, and the latency of the loop-carried scalar leaves a processor
time for everything else.  So that scalar, a cotangent or a tangent, is multiplied by one factor, which is computed
independently of it.  Legal where the scalar may change in its last bit: no control flow or index may depend on it
(`rounding_sensitive`), and primal values next to tangents do not change.  It pays where it saves two operations on the
critical path.

Before, in a backward sweep::

    def f(x: "f8[:]", x_bar: "f8[:]", s_bar: "f8"):
        for i in range(x.shape[0] - 1, -1, -1):
            t_bar = s_bar * x[i]
            u_bar = t_bar * 0.5 + t_bar * x[i]
            x_bar[i] = t_bar
            s_bar = u_bar * 3.0
        return s_bar

After::

    def f(x, x_bar, s_bar):
        for i in range(x.shape[0] - 1, -1, -1):
            t_bar = s_bar * x[i]
            u_bar = t_bar * 0.5 + t_bar * x[i]
            x_bar[i] = t_bar
            s_bar = 3.0 * (0.5 * x[i] + x[i] * x[i]) * s_bar
        return s_bar
"""

from __future__ import annotations

import functools
import operator
from collections.abc import Callable, Mapping, Set
from dataclasses import dataclass, replace
from typing import Any

from tapegen.ir import builders, intrinsics, traversal
from tapegen.ir.affine import is_float64
from tapegen.ir.names import NameSupply
from tapegen.ir.nodes import (
    Assign,
    Call,
    Const,
    Expr,
    Function,
    Stmt,
    Var,
)
from tapegen.ir.types import BOOL, Scalar
from tapegen.loops.analysis.block_queries import has_backward_sweep
from tapegen.loops.analysis.dependence import AliasSets, LoopNest
from tapegen.loops.analysis.flow_facts import FlowFacts
from tapegen.loops.analysis.iteration_order import IterationOrderPass
from tapegen.loops.analysis.rounding_sensitive import following

_LARGEST = 60  # nodes of a factor
_GAIN = 2  # the number of saved operations on the critical path that a factor is worth


@dataclass(frozen=True)
class _Multiple:
    """`factor * carried`, or `factor * carried + rest`.

    Attributes
    ----------
    factor : Expr
        Does not depend on the loop-carried scalar.
    waits : int
        The latency in operations from that scalar to this multiple of it.
    strong : bool
        Whether the product is zero where the scalar is, whatever the factor is.
    rest : Expr or None
        The addend.
    """

    factor: Expr
    latency: int
    strong: bool = False
    rest: Expr | None = None


def reduce_recurrence_height(function: Function) -> Function:
    """The same program with shorter loop-carried chains of operations."""
    if not function.tangents and not has_backward_sweep(function):
        return function
    return traversal.with_body(function, _HeightReduction(function).block(function.body))


class _HeightReduction(IterationOrderPass):
    @functools.cached_property
    def following(self) -> set[Var]:
        """Tangent variables."""
        return following(self.function, self.memory)

    def rewrite(self, nest: LoopNest, before: list[Stmt], outside: FlowFacts) -> list[Stmt]:
        """The loop with products for its loop-carried scalars."""
        if nest.checks or not self.is_stepwise(nest.loops[0]) or nest.first_read.isdisjoint(nest.assigned):
            return [nest.stmt]
        if self.function.tangents:
            nest = _factored(nest, self.memory, self.following - self.deciding, self.names, sums=True)
        shorter = _factored(nest, self.memory, nest.assigned - self.deciding, self.names) if self.backward else nest
        return [shorter.stmt if shorter is not nest and self.order(nest) == "carried" else nest.stmt]


def _factored(
    nest: LoopNest, memory: AliasSets, numbers: Set[Var], names: NameSupply, *, sums: bool = False
) -> LoopNest:
    """The loop nest with loop-carried scalars as products of two factors.

    Parameters
    ----------
    nest : LoopNest
        A single loop.
    memory : AliasSets
        Which variables may share memory.
    numbers : set of Var
        Variables whose value may change in its last bit.
    names : NameSupply
        The supply of fresh names.
    sums : bool
        Whether an addend to the product is allowed.
    """
    changing = nest.changing
    written = {memory.group(access.array) for access in nest.accesses if access.writes}
    for carried in sorted(nest.first_read & nest.assigned & numbers, key=lambda var: var.name):
        if not is_float64(carried):
            continue
        found: dict[Var, _Multiple] = {carried: _Multiple(Const(1.0), 0)}
        varying = set() if sums else changing
        body: list[Stmt] = []
        for k, stmt in enumerate(nest.body):
            if not isinstance(stmt, Assign):
                body.append(stmt)
                continue
            (target,) = stmt.targets
            multiple = _multiple(stmt.value, found, varying, sums=sums)
            if target == carried:
                loads = () if multiple is None else traversal.loads(multiple.factor)
                if (
                    multiple is None
                    or not _pays(multiple)
                    or any(memory.group(load.array) in written for load in loads)
                ):
                    break
                nest = nest.with_body([*body, replace(stmt, value=_product(multiple, carried)), *nest.body[k + 1 :]])
                break
            if multiple is not None and target not in changing:
                if sums:
                    multiple = _named_factor(multiple, target, changing, body, names)
                found[target] = multiple
            body.append(stmt)
    return nest


def _named_factor(
    multiple: _Multiple, target: Var, changing: Set[Var], before: list[Stmt], names: NameSupply
) -> _Multiple:
    """The same with new variables for what is assigned again later in the iteration."""

    def name(part: Expr | None, what: str, *, lasts: bool) -> Expr | None:
        if part is None or isinstance(part, Const) or lasts:
            return part
        var = Var(names.fresh(f"{target.name}_{what}"), Scalar("float64", False))
        before.append(Assign((var,), part))
        return var

    fixed = not traversal.loads(multiple.factor) and changing.isdisjoint(traversal.free_vars(multiple.factor))
    factor = name(multiple.factor, "factor", lasts=fixed)
    assert factor is not None
    alone = isinstance(multiple.rest, Var) and multiple.rest not in changing
    return replace(multiple, factor=factor, rest=name(multiple.rest, "rest", lasts=alone))


def _pays(multiple: _Multiple) -> bool:
    """Whether one product takes less time, and its factor is a sum of products."""
    if multiple.latency < 1 + multiple.strong + (multiple.rest is not None) + _GAIN:
        return False
    parts = list(traversal.subexpressions(multiple.factor))
    cheap = all(part.func in _CHEAP for part in parts if isinstance(part, Call))
    return cheap and len(parts) <= _LARGEST


_CHEAP: frozenset[Any] = frozenset(
    {operator.add, operator.sub, operator.mul, operator.truediv, operator.neg, operator.ne, intrinsics.ifelse}
)


def _product(multiple: _Multiple, carried: Var) -> Expr:
    product = builders.mul(multiple.factor, carried)
    product = _unless_zero(carried, product) if multiple.strong else product
    return product if multiple.rest is None else builders.add(product, multiple.rest)


def _unless_zero(number: Expr, value: Expr) -> Expr:
    if isinstance(number, Const):
        return value if number.value else Const(0.0)
    return Call(
        intrinsics.ifelse, (Call(operator.ne, (number, Const(0.0)), (), BOOL), value, Const(0.0)), (), value.type
    )


def _multiple(value: Expr, found: Mapping[Var, _Multiple], changing: Set[Var], *, sums: bool) -> _Multiple | None:
    """A value as a multiple of the loop-carried scalar, if it is one and reads nothing that changes in an iteration."""
    if isinstance(value, Var):
        return found.get(value)
    if not isinstance(value, Call):
        return None
    match value.func, value.args:
        case operator.neg, (a,):
            inner = _multiple(a, found, changing, sums=sums)
            return None if inner is None else _scaled(inner, builders.neg)
        case ((operator.add | operator.sub), (a, b)):
            return _sum(value.func, a, b, found, changing, sums=sums)
        case operator.mul, (a, b):
            for one, other in ((a, b), (b, a)):
                inner = _multiple(one, found, changing, sums=sums)
                if inner is not None and _fixed(other, found, changing):
                    return _scaled(inner, functools.partial(builders.mul, other))
        case operator.truediv, (a, b):
            inner = _multiple(a, found, changing, sums=sums)
            if inner is not None and _fixed(b, found, changing):
                return _scaled(inner, lambda part: Call(operator.truediv, (part, b), (), value.type), _DIVISION)
        case intrinsics.ifelse, (Call(operator.ne, (number, Const(0.0))), a, Const(0.0)):
            test, inner = (_multiple(part, found, changing, sums=sums) for part in (number, a))
            if test is not None and inner is not None and test.rest is None and inner.rest is None:
                latency = max(test.latency, inner.latency) + 1
                return _Multiple(_unless_zero(test.factor, inner.factor), latency, strong=True)
    return None


def _scaled(multiple: _Multiple, scale: Callable[[Expr], Expr], latency: int = 1) -> _Multiple:
    rest = None if multiple.rest is None else scale(multiple.rest)
    return _Multiple(scale(multiple.factor), multiple.latency + latency, multiple.strong, rest)


def _sum(
    func: Any, a: Expr, b: Expr, found: Mapping[Var, _Multiple], changing: Set[Var], *, sums: bool
) -> _Multiple | None:
    """The sum or difference of two multiples, or of one and an independent value."""
    join = builders.add if func is operator.add else builders.sub
    left, right = (_multiple(part, found, changing, sums=sums) for part in (a, b))
    if left is not None and right is not None:
        latency = max(left.latency, right.latency) + 1
        rest = left.rest if right.rest is None else join(left.rest or Const(0.0), right.rest)
        return _Multiple(join(left.factor, right.factor), latency, left.strong or right.strong, rest)
    if not sums:
        return None
    if left is not None and _fixed(b, found, changing):
        return replace(left, latency=left.latency + 1, rest=join(left.rest or Const(0.0), b))
    if right is not None and _fixed(a, found, changing):
        rest = a if right.rest is None else join(a, right.rest)
        factor = right.factor if func is operator.add else builders.neg(right.factor)
        return replace(right, factor=factor, latency=right.latency + 1, rest=rest)
    return None


_DIVISION = 3  # a division takes as long as this many products


def _fixed(value: Expr, found: Mapping[Var, _Multiple], changing: Set[Var]) -> bool:
    """Whether a value is independent of the loop-carried scalar, and does not change later in an iteration."""
    return not any(var in found or var in changing for var in traversal.free_vars(value))
