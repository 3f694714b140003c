"""Scatter-to-gather conversion of the adjoints of stencils.

The adjoint of a stencil adds one array, shifted, several times to another: one loop nest for each shift, each through
all of memory.  With a margin of zeros around the source array, every element of the target gathers its contributions
in one loop nest, whose stores never alias.  Legal where the source is allocated here, its elements are accessed only at
the counters of the loops, and the additions are linear in it.

Before, in a backward sweep::

    def f(y_bar: "f8[:]", u_bar: "f8[:]", n: "i8"):
        t_bar = np.empty(n)
        for i in range(n):
            t_bar[i] = 0.5 * y_bar[i]
        for i in range(n):
            u_bar[i] += t_bar[i]
        for i in range(n):
            u_bar[i + 2] += t_bar[i]
        return u_bar

After::

    def f(y_bar, u_bar, n):
        t_bar = np.zeros(n + 4)
        for i in range(n):
            t_bar[i + 2] = 0.5 * y_bar[i]
        if n > 0:
            for i in range(n + 2):
                u_bar[i] += t_bar[i + 2] + t_bar[i]
        return u_bar
"""

from __future__ import annotations

import functools
import operator
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from tapegen.ir import intrinsics, traversal
from tapegen.ir.affine import linear, plus
from tapegen.ir.nodes import Assign, Block, Call, Const, Expr, For, Function, If, Load, Stmt, Store, Tuple, Var, While
from tapegen.ir.types import BOOL, Array
from tapegen.loops.analysis.dependence import AliasSets, LoopNest, independent, nest_of
from tapegen.loops.analysis.flow_facts import FlowFacts
from tapegen.loops.analysis.symbolic_bounds import SymbolicBounds, dim
from tapegen.loops.legalize import precision
from tapegen.loops.locality.block_items import BlockItem, BlockPass

_LARGE = 1e30  # of a factor: products of several stay finite, of single precision too
_TINY = 1e-30  # a smaller factor may be a product that has lost its digits, or what cancellation left
_LOOK_BACK = 24  # the number of statements that an addition may be moved across


def convert_scatter_to_gather(function: Function) -> Function:
    """The same program with one gathering loop nest for each run of scattered additions."""
    stores = (stmt for stmt in traversal.statements(function.body) if isinstance(stmt, Store))
    if sum(store.accumulate for store in stores) < 2:
        return function
    return traversal.with_body(function, _Gathering(function).block(function.body))


class _Gathering(BlockPass):
    def __init__(self, function: Function) -> None:
        super().__init__(function)
        self.memory = AliasSets(function)  # it is told of margins, and of uses that disappear

    def arrange(self, items: list[BlockItem]) -> list[BlockItem]:
        return _gathered(items, self.memory, self.known, self.backward)

    def hoists(self, body: Block, loop: For | While) -> list[Stmt]:
        """New arrays with margins of zeros, and those that are created with them, if they serve all iterations."""
        found = self.lasting_allocations(body, loop)
        return found if any(stmt.targets[0] in self.memory.padded for stmt in found) else []


@dataclass(frozen=True)
class _Scatter:
    """`target[counters + shift] += value`, where the value is linear in elements `source[counters]`."""

    target: Var
    source: Var
    shift: tuple[int, ...]
    value: Expr
    counters: tuple[Var, ...]


def _gathered(items: list[BlockItem], memory: AliasSets, known: FlowFacts, backward: bool) -> list[BlockItem]:
    """The same statements, with each run of scattered additions as one gathering loop nest."""
    if all(item.nest is None for item in items):
        return items
    items = _together(_substituted(items, memory, known), memory)
    if sum(item.nest is not None and _scatter(item.nest) is not None for item in items) < 2:
        return items
    known = FlowFacts(known)
    start = 0
    while start < len(items):
        run = _run_at(items, start, known)
        shifts = {each.shift for each in run}
        any_order = backward or items[start].backward
        done = _with_margin(items, start, run, memory, known, any_order) if len(shifts) > 1 else None
        items = done or items
        known.learn(items[start].stmt)
        start += 1 if done else max(1, len(run))
    return items


def _together(items: list[BlockItem], memory: AliasSets) -> list[BlockItem]:
    """The items with additions of the same arrays next to each other: additions of other sweeps separate them."""
    out: list[BlockItem] = []
    last: dict[tuple[Var, Var], BlockItem] = {}  # of the additions of one array to another
    for item in items:
        place = len(out)
        if item.nest is not None and (scatter := _scatter(item.nest)) is not None:
            arrays = (scatter.target, scatter.source)
            for k in range(place - 1, max(-1, place - 1 - _LOOK_BACK), -1):
                if out[k] is last.get(arrays):
                    place = k + 1
                    break
                if _raises(out[k]) or not independent(out[k].stmt, item.stmt, memory):
                    break
            last[arrays] = item
        out.insert(place, item)
    return out


def _raises(item: BlockItem) -> bool:
    return item.nest is not None and item.nest.checks


def _run_at(items: list[BlockItem], start: int, known: FlowFacts) -> list[_Scatter]:
    """Consecutive scattered additions of the same arrays."""
    run: list[_Scatter] = []
    for item in items[start:]:
        scatter = None if item.nest is None else _scatter(item.nest)
        if scatter is None or item.nest is None or items[start].nest is None:
            break
        if run and (scatter.target, scatter.source) != (run[0].target, run[0].source):
            break
        if not _same_sizes(item.nest, items[start].nest, known):  # type: ignore[arg-type]
            break
        run.append(scatter)
    return run


def _same_sizes(a: LoopNest, b: LoopNest, known: FlowFacts) -> bool:
    if _sizes(a) == _sizes(b):
        return True
    pairs, facts = zip(_sizes(a), _sizes(b), strict=False), known.facts
    return len(a.loops) == len(b.loops) and all(facts.equal(facts.form(x), facts.form(y)) for x, y in pairs)


def _sizes(nest: LoopNest) -> tuple[Expr, ...]:
    return tuple(loop.stop for loop in nest.loops)


def _scatter(nest: LoopNest) -> _Scatter | None:
    match nest.body:
        case (Store(array, index, value, True),) if len(index) == len(nest.loops):
            forms = [linear(item) for item in index]  # type: ignore[arg-type]
            rest = [form.without(counter) for form, counter in zip(forms, nest.counters, strict=True)]
            ones = all(form.coefficient(c) == 1 for form, c in zip(forms, nest.counters, strict=True))
            sources = {load.array for load in traversal.loads(value)}
            fixed = ones and all(form.is_constant for form in rest) and len(sources) == 1 and array not in sources
            if fixed and _is_multiple(value, nest.counters, sums=True):
                return _Scatter(array, sources.pop(), tuple(form.constant for form in rest), value, nest.counters)
    return None


def _is_multiple(value: Expr, counters: tuple[Var, ...], sums: bool = False) -> bool:
    """Whether an expression is a constant multiple of elements at the counters, or a sum of such."""
    match value:
        case Load(_, index):
            return index == counters
        case Call(operator.mul, (a, b)):
            factor, other = (_constant(a), b) if _constant(a) is not None else (_constant(b), a)
            return factor is not None and abs(factor) < _LARGE and _is_multiple(other, counters, sums)
        case Call(operator.neg, (other,)):
            return _is_multiple(other, counters, sums)
        case Call(operator.add | operator.sub, (a, b)) if sums:
            return _is_multiple(a, counters, sums) and _is_multiple(b, counters, sums)
    return False


def _constant(expr: Expr) -> float | None:
    """The value of a floating constant of either precision."""
    match expr:
        case Const(value) if isinstance(value, (float, np.float32)):
            return float(value)
    return None


# ---- multiples of arrays ---------------------------------------------------------------------------------------------


def _substituted(items: list[BlockItem], memory: AliasSets, known: FlowFacts) -> list[BlockItem]:
    """Eliminate arrays that are a constant multiple of another and are only added to others."""
    here = FlowFacts(known)
    for item in items:
        match item.nest.body if item.nest is not None else ():
            case (Store(array, index, value, False),) if item.nest is not None and index == item.nest.counters:
                if _is_multiple(value, item.nest.counters):
                    rest = _inlined(items, item, array, value, memory, here)
                    if rest is not None:
                        return _substituted(rest, memory, known)
        here.learn(item.stmt)
    return items


def _inlined(
    items: list[BlockItem], made: BlockItem, array: Var, value: Expr, memory: AliasSets, known: FlowFacts
) -> list[BlockItem] | None:
    """The items with a value for the elements of an array, or None if that changes anything."""
    assert made.nest is not None
    (source,) = (load.array for load in traversal.loads(value))
    new = memory.own(array)
    start = next(k for k, item in enumerate(items) if item is made)
    if new is None or not any(item.stmt is new for item in items) or memory.own(source) is None:
        return None
    left = memory.uses.get(array, 0) - 1
    out = []
    for k, item in enumerate(items):
        nest = item.nest
        used = 0 if nest is None else sum(access.array == array for access in nest.accesses)
        if item is made or item.stmt is new:
            continue
        if k > start and used and nest is not None and _same_sizes(nest, made.nest, known):
            scatter = _scatter(nest)
            if scatter is None or scatter.source != array or scatter.target == source:
                return None  # what is added to the source itself has been read before
            left -= used
            renamed = dict(zip(made.nest.counters, nest.counters, strict=True))
            element = traversal.substitute(value, renamed)
            (store,) = nest.body
            inlined = nest.with_body([_replaced(store, array, element)])
            item = replace(item, stmt=inlined.stmt, nest=inlined)
        elif k > start and left and not independent(item.stmt, made.stmt, memory):
            return None  # the source changes
        out.append(item)
    if left:
        return None
    memory.uses[source] = memory.uses[source] + memory.uses[array] - 2
    return out


def _replaced(stmt: Stmt, array: Var, element: Expr) -> Stmt:
    def change(node: Any) -> Any:
        return element if isinstance(node, Load) and node.array == array else node

    return traversal.map_headers(stmt, lambda part: traversal.map_expr(part, change))


# ---- margins ---------------------------------------------------------------------------------------------------------


def _with_margin(
    items: list[BlockItem], start: int, run: list[_Scatter], memory: AliasSets, known: FlowFacts, any_order: bool
) -> list[BlockItem] | None:
    """The items with the source array inside a margin of zeros, and one loop nest in place of the run."""
    first = items[start].nest
    assert first is not None
    source = run[0].source
    low = [min(scatter.shift[k] for scatter in run) for k in range(len(first.loops))]
    margin = [max(scatter.shift[k] for scatter in run) - low[k] for k in range(len(first.loops))]
    new = memory.own(source)
    if new is None or not _only_at_counters(items, first, source, new, memory, known):
        return None
    memory.padded.add(source)
    out: list[BlockItem] = []
    for k, item in enumerate(items):
        if item.stmt is new:
            item = replace(item, stmt=_wider(new, margin))
        elif start <= k < start + len(run):
            if k < start + len(run) - 1:
                continue
            stmt = _gathering(first, run, low, margin, known.facts, any_order)
            comments = [comment for each in items[start : k + 1] for comment in each.comments]
            item = replace(item, stmt=stmt, comments=comments, nest=nest_of(stmt))
        elif item.nest is not None and any(access.array == source for access in item.nest.accesses):
            nest = item.nest.with_body(_shifted(stmt, source, margin) for stmt in item.nest.body)
            item = replace(item, stmt=nest.stmt, nest=nest)
        out.append(item)
    return out


def _only_at_counters(
    items: list[BlockItem], first: LoopNest, source: Var, new: Stmt, memory: AliasSets, known: FlowFacts
) -> bool:
    """Whether an array is allocated here, and only the loops access it: all elements, each at their counters."""
    if not any(item.stmt is new for item in items):
        return False
    if not (isinstance(new, Assign) and isinstance(new.value, Call) and new.value.func is np.empty):
        return False
    found = 0
    for item in items:
        for access in item.nest.accesses if item.nest is not None else ():
            if access.array == source:
                assert item.nest is not None
                if access.index != item.nest.counters or not _same_sizes(item.nest, first, known):
                    return False
                found += 1
    return found == memory.uses.get(source)


def _wider(new: Stmt, margin: list[int]) -> Stmt:
    """The array with zeros around it."""
    assert isinstance(new, Assign) and isinstance(new.value, Call)
    match new.value.args[0]:
        case Call(intrinsics.shape, (Var() as array,)):
            sizes = [dim(array, k) for k in range(len(margin))]
        case Tuple(items):
            sizes = list(items)
        case size:
            sizes = [size]
    extents = tuple(plus(size, 2 * width) for size, width in zip(sizes, margin, strict=True))
    shape = extents[0] if len(extents) == 1 else Tuple(extents)
    return replace(new, value=replace(new.value, func=np.zeros, args=(shape, *new.value.args[1:])))


def _shifted(stmt: Stmt, source: Var, by: Sequence[int]) -> Stmt:
    """A statement that accesses the elements of an array at shifted positions."""

    def moved(index: tuple[Any, ...]) -> tuple[Any, ...]:
        return tuple(plus(item, distance) for item, distance in zip(index, by, strict=True))

    def change(node: Any) -> Any:
        return replace(node, index=moved(node.index)) if isinstance(node, Load) and node.array == source else node

    stmt = traversal.map_headers(stmt, lambda part: traversal.map_expr(part, change))
    return replace(stmt, index=moved(stmt.index)) if isinstance(stmt, Store) and stmt.array == source else stmt


def _added(a: Expr, b: Expr) -> Expr:
    return Call(operator.add, (a, b), (), b.type)


def _combined(terms: list[Expr]) -> Expr:
    """The sum of multiples of elements, each of which is read once."""
    factors: dict[Expr, float] = {}
    for term in terms:
        _collect(term, 1.0, factors)
    if not all(_TINY < abs(factor) < _LARGE for factor in factors.values()):
        return functools.reduce(_added, terms)
    ordered = sorted(factors.items(), key=lambda item: item[1] < 0.0)  # a sum does not begin with a negative one
    (element, factor), *others = ordered
    total = _multiple(element, factor)
    for element, factor in others:
        func = operator.sub if factor < 0.0 else operator.add
        total = Call(func, (total, _multiple(element, abs(factor))), (), element.type)
    return total


def _multiple(element: Expr, factor: float) -> Expr:
    if factor == 1.0:
        return element
    return Call(
        operator.mul, (precision.convert(Const(factor), precision.dtype_of(element)), element), (), element.type
    )


def _collect(value: Expr, factor: float, factors: dict[Expr, float]) -> None:
    """Add the factors of the elements in a value (see `_is_multiple`)."""
    match value:
        case Load():
            factors[value] = factors.get(value, 0.0) + float(factor)
        case Call(operator.mul, (a, b)):
            own, other = (_constant(a), b) if _constant(a) is not None else (_constant(b), a)
            assert own is not None
            _collect(other, factor * own, factors)
        case Call(operator.neg, (other,)):
            _collect(other, -factor, factors)
        case Call(operator.add | operator.sub, (a, b)):
            _collect(a, factor, factors)
            _collect(b, factor if value.func is operator.add else -factor, factors)


def _gathering(
    first: LoopNest, run: list[_Scatter], low: list[int], margin: list[int], facts: SymbolicBounds, any_order: bool
) -> Stmt:
    """One loop nest over all elements that any of the additions reaches; the primal adds in its own order."""
    store = first.body[0]
    assert isinstance(store, Store) and isinstance(run[0].target.type, Array)
    terms: list[Expr] = []
    for scatter in run:
        by = [width + at - shift for width, at, shift in zip(margin, low, scatter.shift, strict=True)]
        value = traversal.substitute(scatter.value, dict(zip(scatter.counters, first.counters, strict=True)))
        given = _shifted(Assign((), value), scatter.source, by)
        assert isinstance(given, Assign)
        terms.append(given.value)
    index = tuple(plus(counter, at) for counter, at in zip(first.counters, low, strict=True))
    if any_order:
        store = replace(store, index=index, value=_combined(terms))
    else:
        place: Expr = Load(store.array, index, terms[0].type)
        store = replace(store, index=index, value=functools.reduce(_added, terms, place), accumulate=False)
    body: tuple[Stmt, ...] = (store,)
    for loop, width in zip(reversed(first.loops), reversed(margin), strict=True):
        body = (replace(loop, stop=plus(loop.stop, width), body=body),)
    (nest,) = body
    assert isinstance(nest, For)
    tests = [
        Call(operator.gt, (size, Const(0)), (), BOOL)
        for size in _sizes(first)
        if not facts.nonnegative(facts.form(size) - 1)
    ]
    if not tests:
        return nest
    test = tests[0]
    for part in tests[1:]:
        test = Call(intrinsics.and_, (test, part), (), BOOL)
    return If(test, (nest,), (), nest.origin)
