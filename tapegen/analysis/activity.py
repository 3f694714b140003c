"""Activity analysis: values are *varied* (depend on an input of interest) and *useful* (influence a result).

A Var is active when it is both.  The analysis is flow-insensitive per name, which structured SSA makes precise enough;
an array and its views share one answer.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from tapegen.analysis.memory_access import components, is_place_type, list_stores, moves, on_places
from tapegen.ir import intrinsics, traversal
from tapegen.ir.nodes import Assign, Block, Call, Const, Effect, Expr, Function, Load, Slice, Store, Tuple, Var
from tapegen.ir.types import Array, is_complex, is_floating
from tapegen.rules.registry import rule_of


@dataclass(frozen=True, slots=True)
class Activity:
    """Facts of `activity_of`; `sources`: for each floating value, the values it directly depends on."""

    varied: frozenset[Var]
    useful: frozenset[Var]
    sources: Mapping[Var, set[Var]]

    @property
    def active(self) -> frozenset[Var]:
        return self.varied & self.useful


def activity_of(function: Function, wrt: Iterable[Var], results: Iterable[Var]) -> Activity:
    """Find the varied and the useful Vars of a lowered function.

    Parameters
    ----------
    function : Function
        A lowered program.
    wrt : iterable of Var
        Parameters that the derivative is taken with respect to.
    results : iterable of Var
        Results that are differentiated.
    """
    onward: dict[Var, set[Var]] = defaultdict(set)
    back: dict[Var, set[Var]] = defaultdict(set)
    for source, sink in (*_flows(function.body), *_shared(function)):
        if is_floating(source.type):
            onward[source].add(sink)
            back[sink].add(source)
    return Activity(frozenset(closure(wrt, onward)), frozenset(closure(results, back)), back)


def closure(start: Iterable[Var], edges: Mapping[Var, set[Var]]) -> set[Var]:
    """All nodes that are reachable along edges, the start included."""
    seen = set(start)
    work = list(seen)
    while work:
        for other in edges.get(work.pop(), ()):
            if other not in seen:
                seen.add(other)
                work.append(other)
    return seen


def _shared(function: Function) -> Iterator[tuple[Var, Var]]:
    """Data flow against aliases: a store through one variable reaches every variable of that memory location."""
    group_of = components(function)
    inside = on_places(function)
    stored = {group_of[stmt.array] for stmt in inside if isinstance(stmt, Store)}
    for stmt in inside:
        if isinstance(stmt, Assign):
            for target, move in moves(stmt):
                if group_of[target] in stored:
                    yield from ((target, source) for source in move.sources if is_floating(source.type))
        for sequence, item in list_stores(stmt):
            if group_of[sequence] in stored and is_floating(item.type):
                yield sequence, item


def _flows(block: Block) -> Iterator[tuple[Var, Var]]:
    """For each floating value, the values that flow into it."""
    for stmt in traversal.statements(block):
        into: Sequence[tuple[Any, Any]] = ()
        if isinstance(stmt, Assign):
            into = traversal.pairs(stmt)
        elif isinstance(stmt, Store):
            into = ((stmt.array, stmt.value),)
        elif isinstance(stmt, Effect) and stmt.call.func in (intrinsics.append, intrinsics.set_item):
            into = ((stmt.call.args[0], stmt.call.args[-1]),)
        for target, value in into:
            if is_floating(target.type):
                for source in active_operands(value):
                    yield source, target


def active_operands(expr: Expr) -> list[Var]:
    """The Vars of an expression through which a derivative can flow."""
    kind = type(expr)
    if kind is Var:
        return [expr]  # type: ignore[list-item]
    if kind is Load:
        return [expr.array]  # type: ignore[union-attr]
    found: list[Var] = []
    if isinstance(expr, Tuple):
        for item in expr.items:
            found += active_operands(item)
    elif isinstance(expr, Call) and is_floating(expr.type) and not is_inactive(expr):  # no shape, no mask
        for arg in expr.args:
            if type(arg) is Var:
                found.append(arg)
            elif type(arg) is not Const:
                found += active_operands(arg)
        for _, arg in expr.kwargs:
            found += active_operands(arg)
    return found


def is_inactive(call: Call) -> bool:
    """Whether a call has no derivative by definition: for complex operands unless its rule covers them."""
    rule = rule_of(call.func)
    if rule is None or rule.kind != "inactive":
        return False
    return rule.of_complex or not is_floating(call.type) or not involves_complex(call)


def involves_complex(call: Call) -> bool:
    """Whether an operand or the result of a call is complex."""
    if is_complex(call.type) or any(is_complex(arg.type) for arg in call.args):
        return True
    return bool(call.kwargs) and any(is_complex(value.type) for _, value in call.kwargs)


def is_view(value: Expr) -> bool:
    """Whether an Assign of this value makes its target a view of the base array (invariant 6 of `tapegen.ir`)."""
    if isinstance(value, Load):
        return is_basic(value)
    return isinstance(value, Call) and value.func in intrinsics.VIEW_CALLS and is_place_type(value.args[0].type)


def is_basic(load: Load) -> bool:
    """Whether a Load has only integers, slices and new axes and yields an array (so a view)."""
    if not isinstance(load.type, Array):
        return False
    return all(isinstance(item, Slice) or not isinstance(item.type, Array) for item in load.index)
