"""Zero guards of products whose partial derivative may be infinite: selected zeros win, computed zeros do not.

Where a zero comes from is known at the frontier of a value (`analysis.selection_frontiers`), so the backward sweep
binds the cotangents there to variables, and tests them at the product.
"""

from __future__ import annotations

import operator
from collections.abc import Sequence, Set
from typing import Any

import numpy as np

from tapegen.analysis.interval_arithmetic import DIVISIONS, EXPONENTIALS, PRODUCTS
from tapegen.analysis.selection_frontiers import PLAIN, Frontier, Place
from tapegen.ir import builders, intrinsics, traversal
from tapegen.ir.nodes import Assign, Call, Const, Expr, Function, Var
from tapegen.rules.registry import rule_of
from tapegen.transform.analyses import Facts
from tapegen.transform.autodiff.rule_application import has_pole


class Guards:
    """The tests of one backward sweep.

    Attributes
    ----------
    wanted : set of Place
        The cotangents that later products test.
    kept : dict
        Those that the sweep has reached -> their variables, or known values.
    names : set of Expr
        All variables so far.
    """

    def __init__(self, function: Function, facts: Facts) -> None:
        self.facts = facts
        self.kept: dict[Place, tuple[Expr, ...]] = {}
        self.names: set[Expr] = set()
        self.wanted: Set[Place] = frozenset().union(
            *(
                self.frontier(stmt.targets[0], stmt.value) - {Place(stmt.targets[0], None)}
                for stmt in traversal.statements(function.body)
                if isinstance(stmt, Assign) and isinstance(stmt.value, Call) and self._may_be_infinite(stmt)
            )
        )

    def frontier(self, target: Var, call: Call) -> Frontier:
        """Where to test whether a zero in the cotangent of `target = call` was selected."""
        overflow = call.func in EXPONENTIALS or call.func in PRODUCTS
        return self.facts.frontiers.of(target, overflow=overflow)

    def tests(self, target: Var, call: Call, cotangent: Expr) -> list[Expr]:
        """What to test for `target = call`: nothing if its cotangent has no selected zeros."""
        frontier = self.frontier(target, call)
        if frontier == PLAIN:
            return []
        found = [test for place in frontier for test in self.kept.get(place, ())]
        if not frontier <= self.kept.keys():
            found.append(cotangent)  # it is zero where both the testable parts and the other parts are
        known = [test for test in found if isinstance(test, Const)]
        if any(test.value != 0 for test in known):
            return []
        names = sorted({test for test in found if isinstance(test, Var)}, key=lambda test: test.name)
        return [*names, *(test for test in found if not isinstance(test, (Var, Const)))] or [cotangent]

    def keep(self, place: Place, test: Expr, *, again: bool = False) -> None:
        """Remember a cotangent at a frontier; there are several where one use reads a value twice."""
        before = () if again else self.kept.pop(place, ())
        self.kept[place] = (*before, test)
        self.names.add(test)

    def _may_be_infinite(self, stmt: Assign) -> bool:
        call: Any = stmt.value
        rule = rule_of(call.func)
        if rule is None or rule.kind != "partials":
            return False
        if call.func in DIVISIONS and isinstance(call.args[1], Const):
            return False
        ranges = self.facts.ranges
        if has_pole(call, rule, self.facts.again) and not ranges.has_finite_partials(call):
            return True
        (target, *_) = stmt.targets
        read = {target, *traversal.free_vars(call)}
        return target in self.facts.set_aside and any(map(ranges.may_be_nonfinite, read))


def guarded(factor: Expr, partial: Expr, tests: Sequence[Expr]) -> Expr:
    """A cotangent times a partial derivative, or divided by its inverse, where one of the tests is not zero."""
    func, divisor = builders.as_factor(partial)
    factor = _without_guards(factor, tests)
    if divisor is partial:
        return builders.guarded(builders.mul(factor, partial), tests)
    return builders.guarded(
        Call(func, (factor, divisor), (), builders.broadcast_type(factor.type, divisor.type)), tests
    )


def _without_guards(factor: Expr, tests: Sequence[Expr]) -> Expr:
    """A product without the nested guards that the guard around it repeats."""
    match factor:
        case Call(intrinsics.guarded, (inner, used)) if used == builders.is_used(tests):
            return _without_guards(inner, tests)
        case Call(intrinsics.strong_mul, (cotangent, partial)) if [cotangent] == list(tests):
            func, divisor = builders.as_factor(partial)
            return Call(func, (cotangent, divisor), (), factor.type)
        case Call(operator.mul | operator.truediv | operator.neg | np.divide, (first, *rest)):
            args = (_without_guards(first, tests), *(_without_guards(arg, tests) for arg in rest))
            return factor if args == factor.args else Call(factor.func, args, factor.kwargs, factor.type)
    return factor
