"""Symbolic shape inference: which arrays have equal extents, and which axes are known not to be 1.

An extent is a linear form over symbols (parameter extents, integer values); an unknown extent is a symbol of its own.
A parameter axis that its type does not mark as unit is not 1, because a size of 1 makes another specialization.
"""

from __future__ import annotations

import operator
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from tapegen.analysis.piecewise_linear import Piecewise
from tapegen.analysis.scopes import Scopes
from tapegen.analysis.shape_functions import Extent, Extents, Known, Symbol, arranged, plus
from tapegen.ir import intrinsics, traversal
from tapegen.ir.nodes import (
    Assign,
    Block,
    Call,
    Const,
    Effect,
    Expr,
    For,
    Function,
    If,
    Index,
    Load,
    Slice,
    Stmt,
    Store,
    Tuple,
    Var,
    While,
)
from tapegen.ir.types import Array, ListOf, Scalar
from tapegen.rules.registry import rule_of

_LIKE: frozenset[Any] = frozenset(
    (
        *(np.zeros_like, np.ones_like, np.empty_like, np.full_like, np.copy, np.negative, operator.neg, np.astype),
        *(np.sort, np.argsort, np.triu, np.tril, np.flip, np.roll, np.ascontiguousarray),
        *(np.linalg.inv, np.linalg.cholesky, np.real, np.imag, intrinsics.real_part, intrinsics.imaginary_part),
    )
)
_COMPARING: frozenset[Any] = frozenset(
    (
        *(operator.lt, operator.le, operator.gt, operator.ge, operator.eq, operator.ne),
        *(operator.and_, operator.or_, operator.xor, operator.invert),
    )
)
_SHAPED: frozenset[Any] = frozenset({np.zeros, np.ones, np.empty, np.full})


@dataclass(slots=True)
class Shapes:
    """Facts of `shapes_of`."""

    extents: dict[Var, Extents] = field(default_factory=dict)
    regions: dict[Stmt, Extents] = field(default_factory=dict)  # extents of the region that a Store writes
    not_unit: set[Symbol] = field(default_factory=set)
    cuts: dict[Symbol, tuple[Extent, Extent, Extent]] = field(default_factory=dict)
    """Extents of slices whose bounds may exceed the array: its extent, and the bounds, neither of them negative."""

    def of(self, var: Var) -> Extents:
        known = self.extents.get(var)
        if known is None:
            rank = var.type.rank if isinstance(var.type, Array) else 0
            known = tuple(
                (1, ()) if isinstance(var.type, Array) and var.type.is_unit(k) else _symbol("unknown", var.name, k)
                for k in range(rank)
            )
            self.extents[var] = known
        return known

    def is_not_unit(self, extent: Extent) -> bool:
        constant, terms = extent
        if not terms:
            return constant != 1
        return constant == 0 and len(terms) == 1 and terms[0][1] == 1 and terms[0][0] in self.not_unit

    def agree(self, a: Extent, b: Extent) -> bool:
        """Whether two extents that are combined in one operation are equal.

        `x[:k]` and `y[:k]` are, though either may be clipped: of arrays that do not have one element, only k = 1 gives
        a slice that could be broadcast.
        """
        return self._uncut(a) == self._uncut(b)

    def _uncut(self, extent: Extent) -> Extent:
        ((symbol, _),) = extent[1] if len(extent[1]) == 1 else ((None, 0),)
        if symbol in self.cuts:
            whole, lo, hi = self.cuts[symbol]
            if lo == (0, ()) and self.is_not_unit(whole):
                return hi
        return extent

    def simplified(self, extent: Extent) -> Extent:
        """An extent without the lengths of slices that the end of an array may truncate, where it equals such a form.

        `n + len(x[:1]) + len(x[-1:]) - 2` is `n` for n = 0 and from n = 2, and no size of a parameter is 1.
        """
        if not any(symbol in self.cuts for symbol, _ in extent[1]):
            return extent
        pieces = self._pieces(extent)
        found = pieces.tried(self.not_unit.__contains__)
        line = None if found is None else pieces.line(found[1])
        if found is None or line is None:
            return extent
        slope, offset = line
        return offset, ((found[0], slope),) if slope else ()

    def _pieces(self, extent: Extent) -> Piecewise[Symbol]:
        return Piecewise(
            extent[0],
            tuple((symbol, factor) for symbol, factor in extent[1] if symbol not in self.cuts),
            tuple(
                (_length_of_slice, tuple(map(self._pieces, self.cuts[symbol])), factor)
                for symbol, factor in extent[1]
                if symbol in self.cuts
            ),
        )

    def summed_axes(self, full: Extents, like: Var) -> tuple[int, ...] | None:
        """Axes of a whole along which `like` was broadcast, size-1 axes of `like` included; None when not known."""
        part = self.of(like)
        lead = len(full) - len(part)
        axes = list(range(lead))
        for k, extent in enumerate(part):
            whole = full[lead + k]
            if self.agree(extent, whole) or self.is_not_unit(extent):
                continue
            if extent == (1, ()) and self.is_not_unit(whole):
                axes.append(lead + k)
            else:
                return None
        return tuple(axes)


def _symbol(kind: str, name: str, axis: int) -> Extent:
    return 0, (((kind, name, axis), 1),)


def _length_of_slice(whole: int, lo: int, hi: int) -> int:
    return len(range(max(whole, 0))[max(lo, 0) : max(hi, 0)])


def _cut(extent: Extent, lo: Extent, hi: Extent) -> Symbol:
    """A name for `len(range(extent)[lo:hi])`."""
    return "cut", repr((extent, lo, hi)), 0


def shapes_of(function: Function, scopes: Scopes) -> Shapes:
    """Find the symbolic shapes of all arrays of a lowered function."""
    opaque: set[Var] = set()
    lists = _Lists(function)
    while True:
        shapes = Shapes()
        for param in function.params:
            if isinstance(param.type, Array):
                shapes.extents[param] = tuple(
                    (1, ()) if param.type.is_unit(k) else _symbol("param", param.name, k)
                    for k in range(param.type.rank)
                )
                shapes.not_unit |= {
                    ("param", param.name, k)
                    for k in range(param.type.rank)
                    if not param.type.is_unit(k) and not function.inner
                }
        pass_ = _Pass(shapes, scopes, opaque, lists)
        pass_.block(function.body)
        if not pass_.clashes:
            return shapes
        opaque |= pass_.clashes


class _Lists:
    """Variables that denote the same list, where every insertion into it is known."""

    def __init__(self, function: Function) -> None:
        self.parents: dict[Var, Var] = {}
        self.unseen: set[Var] = {param for param in function.params if isinstance(param.type, ListOf)}
        self._block(function.body)
        self.unseen = {self._first(var) for var in self.unseen}

    def group_of(self, sequence: Var) -> Var | None:
        """A representative of all variables of the same list; None if other code may insert items."""
        first = self._first(sequence)
        return None if first in self.unseen else first

    def _first(self, var: Var) -> Var:
        while var in self.parents:
            var = self.parents[var]
        return var

    def _block(self, block: Block) -> None:
        for stmt in block:
            if isinstance(stmt, Assign):
                for target, item in traversal.pairs(stmt):
                    if isinstance(target.type, ListOf):
                        self._bound(target, item)
                    self._note_escape(item)
                continue
            match stmt:
                case Effect(value):
                    self._note_escape(value)
                case If(_, body, orelse):
                    self._block(body)
                    self._block(orelse)
                case For(body=body) | While(body=body):
                    self._block(body)

    def _bound(self, target: Var, value: Expr) -> None:
        match value:
            case Var():
                left, right = self._first(target), self._first(value)
                if left != right:
                    self.parents[left] = right
            case Call(intrinsics.new_list):
                pass
            case _:
                self.unseen.add(target)

    def _note_escape(self, value: Expr) -> None:
        """A list that escapes into another one, or into a call, may get items there."""
        if isinstance(value, Call):
            own = value.func in (intrinsics.append, intrinsics.set_item, intrinsics.pop, intrinsics.item, len)
            given = value.args[1:] if own else value.args
            self.unseen.update(arg for arg in given if isinstance(arg, Var) and isinstance(arg.type, ListOf))


class _Pass:
    def __init__(self, shapes: Shapes, scopes: Scopes, opaque: set[Var], lists: _Lists) -> None:
        self.shapes, self.scopes, self.opaque, self.lists = shapes, scopes, opaque, lists
        self.items: dict[Var, Extents] = {}  # of each group of lists
        self.ints: dict[Var, Extent] = {}
        self.ranges: dict[Symbol, tuple[Extent | None, Extent | None]] = {}  # smallest and largest value of a counter
        self.clashes: set[Var] = set()

    def block(self, block: Block) -> None:
        for stmt in block:
            if isinstance(stmt, Assign):
                targets, value = stmt.targets, stmt.value
                if len(targets) == 1 or isinstance(value, Tuple):
                    for target, item in traversal.pairs(stmt):
                        self.assign(target, item)
                if isinstance(value, Call) and value.func is intrinsics.new_list:
                    for item in value.args:
                        self.add_item(targets[0], item)
                continue
            match stmt:
                case Effect(Call(intrinsics.append | intrinsics.set_item, (Var() as sequence, *_, item))):
                    self.add_item(sequence, item)
                case Store(array, index) if isinstance(array.type, Array):
                    rank = self.region_rank(array, index)
                    if rank is not None:
                        unknown = tuple(_symbol("unknown", f"{array.name}[]", k) for k in range(rank))
                        self.shapes.regions[stmt] = self.load(array, index, unknown)
                case If(_, body, orelse):
                    self.block(body)
                    self.block(orelse)
                case For():
                    self.counted(stmt)
                    self.block(stmt.body)
                case While():
                    self.block(stmt.body)

    def add_item(self, sequence: Var, item: Expr) -> None:
        """Record an item of a list.  Only extents of parameters are still the same when the item is read."""
        group = self.lists.group_of(sequence)
        if group is None or group in self.opaque or not isinstance(item.type, Array):
            return
        extents = self.shapes.of(item) if isinstance(item, Var) else None
        lasting = extents is not None and all(kind == "param" for _, terms in extents for (kind, _, _), _ in terms)
        if not lasting or extents is None or self.items.setdefault(group, extents) != extents:
            self.clashes.add(group)

    def counted(self, loop: For) -> None:
        """Record the range of a loop counter."""
        start, stop, step = self.integer(loop.start), self.integer(loop.stop), loop.step
        symbol = ("int", loop.target.name, 0)
        if isinstance(step, Const) and isinstance(step.value, int) and not self.scopes.is_merge(loop.target):
            if step.value > 0:
                self.ranges[symbol] = start, None if stop is None else plus(stop, (-1, ()))
            else:
                self.ranges[symbol] = None if stop is None else plus(stop, (1, ())), start

    def assign(self, target: Var, value: Expr) -> None:
        if isinstance(target.type, Scalar):
            if target.type.dtype == "int64" and not self.scopes.is_merge(target):
                form = self.integer(value)
                if form is not None:
                    self.ints[target] = form
            return
        if not isinstance(target.type, Array) or target in self.opaque:
            return
        extents = self.value(value, target)
        if not self.scopes.is_merge(target):
            self.shapes.extents[target] = extents
            return
        if any(kind in ("int", "mask") for _, terms in extents for (kind, _, _), _ in terms):
            self.clashes.add(target)  # the extent may belong to another iteration
        known = self.shapes.extents.setdefault(target, extents)
        if known != extents:
            self.clashes.add(target)

    def integer(self, expr: Expr) -> Extent | None:
        match expr:
            case Const(bool()):
                return None
            case Const(int() as value):
                return value, ()
            case Var(name, Scalar("int64")):
                return self.ints.get(expr, _symbol("int", name, 0))
            case Call(operator.add | operator.sub, (a, b)):
                left, right = self.integer(a), self.integer(b)
                if left is None or right is None:
                    return None
                return plus(left, right, 1 if expr.func is operator.add else -1)
            case Call(operator.mul, (Const(int() as factor), other)) | Call(
                operator.mul, (other, Const(int() as factor))
            ):
                form = self.integer(other)
                return (
                    None if form is None else (form[0] * factor, tuple((s, c * factor) for s, c in form[1] if factor))
                )
            case Call(intrinsics.dim, (Var() as array, Const(int() as axis))) if isinstance(array.type, Array):
                return self.shapes.of(array)[axis]
            case Call(np.size, (Var() as array,)) if isinstance(array.type, Array) and array.type.rank == 1:
                return self.shapes.of(array)[0]
        return None

    def value(self, expr: Expr, target: Var) -> Extents:
        unknown = self.unknown(target)
        match expr:
            case Var():
                return self.shapes.of(expr)
            case Load(array, index, Array()):
                return self.load(array, index, unknown)
            case Call(func, args, kwargs):
                if func in (intrinsics.item, intrinsics.pop) and isinstance(args[0], Var):
                    group = self.lists.group_of(args[0])
                    known = group is not None and group not in self.opaque
                    return self.items.get(group, unknown) if known else unknown  # type: ignore[arg-type]
                if func in _LIKE and isinstance(args[0], Var):
                    extents = self.extents_of(args[0]) or unknown
                    return extents if len(extents) == len(unknown) else unknown  # sorted without an axis: flat
                if func in _SHAPED:
                    return self.shape_argument(args[0], unknown)
                if intrinsics.is_draw(func):
                    size = intrinsics.drawn_size(args, kwargs, func)
                    return unknown if size is None else self.shape_argument(size, unknown)
                if func is np.eye or func is np.identity:
                    rows = self.integer(args[0])
                    columns = self.integer(args[1]) if len(args) > 1 else rows
                    return unknown if rows is None or columns is None or kwargs else (rows, columns)
                if func is intrinsics.primal_as:
                    return self.broadcast(args[:1], unknown)
                if func in (intrinsics.strong_mul, intrinsics.guarded, intrinsics.of_parts):
                    return self.broadcast(args, unknown)
                if func is intrinsics.sum_to and isinstance(args[1], Var) and isinstance(args[1].type, Array):
                    return self.shapes.of(args[1])
                if func is intrinsics.transpose_view and isinstance(args[0], Var):
                    return self.shapes.of(args[0])[::-1]
                if func is np.array:
                    return self.literal(args[0], unknown)
                if func is np.reshape and len(args) == 2:
                    return self.shape_argument(args[1], unknown)
                if func is np.arange and len(args) == 1:
                    form = self.integer(args[0])
                    return unknown if form is None or not self.at_least_zero(form) else (form,)
                if (found := arranged(Known(expr, self.extents_of, self.integer, unknown))) is not None:
                    return found
                rule = rule_of(func)
                if (rule is not None and rule.kind == "partials") or func is np.where or func in _COMPARING:
                    return self.broadcast(args, unknown)
                if isinstance(func, np.ufunc) and func.signature is None:
                    return self.broadcast(args, unknown)
        return unknown

    def extents_of(self, expr: Expr) -> Extents | None:
        return self.shapes.of(expr) if isinstance(expr, Var) and isinstance(expr.type, Array) else None

    def unknown(self, target: Var) -> Extents:
        assert isinstance(target.type, Array)
        return tuple(
            (1, ()) if target.type.is_unit(k) else _symbol("unknown", target.name, k) for k in range(target.type.rank)
        )

    def shape_argument(self, expr: Expr, unknown: Extents) -> Extents:
        items = expr.items if isinstance(expr, Tuple) else (expr,)
        if len(items) != len(unknown):
            return unknown
        return tuple(
            form if (form := self.integer(item)) is not None and form != (-1, ()) else other
            for item, other in zip(items, unknown, strict=True)
        )

    def literal(self, expr: Expr, unknown: Extents) -> Extents:
        """The extents of `np.array(expr)`: rows of rows, or of arrays, of which the first gives the extents."""
        extents: list[Extent] = []
        while isinstance(expr, Tuple) and expr.items:
            extents.append((len(expr.items), ()))
            expr = expr.items[0]
        if isinstance(expr, Var) and isinstance(expr.type, Array):
            extents.extend(self.shapes.of(expr))
        return tuple(extents) if len(extents) == len(unknown) else unknown

    def broadcast(self, args: tuple[Expr, ...], unknown: Extents) -> Extents:
        rank = len(unknown)
        result: list[Extent] = [(1, ())] * rank
        for arg in args:
            if isinstance(arg, Tuple):
                return unknown
            if not isinstance(arg, Var) or not isinstance(arg.type, Array):
                continue
            extents = self.shapes.of(arg)
            if len(extents) > rank:
                return unknown
            for k, extent in enumerate(extents, rank - len(extents)):
                if extent == (1, ()) or self.shapes.agree(extent, result[k]) or self.shapes.is_not_unit(result[k]):
                    continue
                if result[k] == (1, ()) or self.shapes.is_not_unit(extent):
                    result[k] = extent
                else:
                    result[k] = unknown[k]
        return tuple(result)

    def load(self, array: Var, index: tuple[Index, ...], unknown: Extents) -> Extents:
        whole = list(self.shapes.of(array))
        out: list[Extent] = []
        for item in index:
            if isinstance(item, Slice):
                out.append(self.sliced(whole.pop(0), item, unknown[len(out)] if len(out) < len(unknown) else (0, ())))
            elif isinstance(item, Const) and item.value is None:
                out.append((1, ()))
            elif isinstance(item, Var) and isinstance(item.type, Array):
                arrays = [part for part in index if not isinstance(part, Slice) and isinstance(part.type, Array)]
                if len(arrays) > 1:
                    return unknown
                if item.type.dtype == "bool":
                    del whole[: item.type.rank]
                    out.append(_symbol("mask", item.name, 0))
                else:
                    whole.pop(0)
                    out.extend(self.shapes.of(item))
            else:
                whole.pop(0)
        out.extend(whole)
        return tuple(out) if len(out) == len(unknown) else unknown

    def region_rank(self, array: Var, index: tuple[object, ...]) -> int | None:
        """The rank of `array[index]`; None with several index arrays."""
        assert isinstance(array.type, Array)
        rank = array.type.rank
        seen = False
        for item in index:
            if isinstance(item, Slice):
                continue
            if isinstance(item.type, Array):  # type: ignore[attr-defined]
                if seen:
                    return None
                seen = True
                rank += 1 - item.type.rank if item.type.dtype == "bool" else item.type.rank - 1  # type: ignore[attr-defined]
                continue
            rank += 1 if isinstance(item, Const) and item.value is None else -1
        return rank

    def sliced(self, extent: Extent, item: Slice, unknown: Extent) -> Extent:
        return self.shapes.simplified(self.slice_of(extent, item, unknown))

    def slice_of(self, extent: Extent, item: Slice, unknown: Extent) -> Extent:
        if item.step is not None and item.step != Const(1):
            if item.lo is None and item.hi is None and item.step == Const(-1):
                return extent
            return unknown
        lo = (0, ()) if item.lo is None else self.integer(item.lo)
        hi = extent if item.hi is None else self.integer(item.hi)
        if lo is None or hi is None:
            return unknown
        if item.hi is None and not lo[1] and lo[0] < 0 and extent[1]:
            lo, hi = (0, ()), (-lo[0], ())  # the last k elements are as many as the first k
        if not hi[1] and hi[0] < 0:
            end: Extent | None = plus(extent, hi)
        elif plus(extent, hi, -1) in ((0, ()), (1, ()), (2, ())):
            end = hi  # n - 2 is -1 for one element, which also gives an empty slice
        else:
            end = hi if self.at_least_zero(hi) and self.at_least_zero(plus(extent, hi, -1)) else None
        if end is not None and self.at_least_zero(lo):
            size = plus(end, lo, -1)
            if size[0] < 0 or all(kind != "int" for (kind, _, _), _ in size[1]) or self.at_least_zero(size):
                return size if size[1] else (max(size[0], 0), ())
        if not (extent[1] or lo[1] or hi[1]):
            return len(range(extent[0])[lo[0] : hi[0]]), ()
        symbol = _cut(extent, lo, hi)
        if self.at_least_zero(lo) and self.at_least_zero(hi):
            self.shapes.cuts[symbol] = extent, lo, hi
        return 0, ((symbol, 1),)

    def at_least_zero(self, form: Extent) -> bool:
        """Whether a form is known not to be negative: extents are not, and loop counters stay in their range."""
        for _ in range(8):  # the range of a counter may depend on the counters around it
            counter = next(((symbol, c) for symbol, c in form[1] if symbol in self.ranges), None)
            if counter is None:
                break
            symbol, coefficient = counter
            end = self.ranges[symbol][0 if coefficient > 0 else 1]
            if end is None:
                return False
            rest = form[0], tuple(term for term in form[1] if term[0] != symbol)
            form = plus(rest, (end[0] * coefficient, tuple((s, c * coefficient) for s, c in end[1])))
        return form[0] >= 0 and all(c > 0 and kind != "int" for (kind, _, _), c in form[1])
