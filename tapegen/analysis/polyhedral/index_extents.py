"""Extents of array axes, and positions of indices on them, as affine forms."""

from __future__ import annotations

import operator
from dataclasses import dataclass

import numpy as np

from tapegen.analysis.memory_access import is_one_of
from tapegen.analysis.polyhedral.constraints import (
    And,
    Formula,
    Linear,
    Or,
    Symbol,
    at_least,
    equal,
    is_trivially_nonnegative,
    loops_of,
)
from tapegen.analysis.polyhedral.isl import Solver
from tapegen.analysis.polyhedral.scalar_evolution import Integers
from tapegen.analysis.polyhedral.schedule import Definition, Site, Sites
from tapegen.ir import intrinsics
from tapegen.ir.affine import Affine
from tapegen.ir.nodes import Call, Const, Expr, Load, Slice, Tuple, Var
from tapegen.ir.types import Array, Scalar

_LIKE: frozenset[object] = frozenset(
    {
        np.zeros_like,
        np.ones_like,
        np.empty_like,
        np.full_like,
        np.copy,
        np.astype,
        np.asarray,
        np.ascontiguousarray,
        np.real,
        np.flip,
        intrinsics.primal_as,
    }
)
_SHAPED: frozenset[object] = frozenset({np.zeros, np.ones, np.empty, np.full})
_ARITHMETIC: frozenset[object] = frozenset(
    {operator.add, operator.sub, operator.mul, operator.truediv, operator.pow, operator.neg, operator.pos, abs}
)
_ONE: Linear = Affine(1)


@dataclass(frozen=True, slots=True)
class IndexInterval:
    """The positions that a slice selects on an axis: `start + step * k` for `k = 0 .. count - 1`."""

    start: Linear
    step: int
    count: Linear


class Extents:
    """Extents of axes and positions on them.  `integers` evaluates integer expressions to affine forms.

    Parameters
    ----------
    sites : Sites
        Sites and definitions of the function.
    solver : Solver
        Decides whether an index can be negative.
    """

    def __init__(self, sites: Sites, solver: Solver) -> None:
        self.sites, self.solver = sites, solver
        self.integers = Integers(sites, self.extent)
        self._known: dict[tuple[Var, int], Linear | None] = {}
        self._log: list[tuple[Var, int]] = []  # keys of _known, in order of creation
        self._signs: dict[tuple[Linear, Site], bool] = {}

    def extent(self, array: Var, axis: int, site: Site) -> Linear:
        """The extent of an axis of the array that a variable denotes at a site."""
        form = self._extent(array, axis)
        if form is not None and loops_of(form) <= set(site.loops):
            return form
        return self.integers.unknown(f"{array.name}.shape[{axis}]", site, nonnegative=True)

    # ---- positions ---------------------------------------------------------------------------------------------------

    def is_nonnegative(self, form: Linear, site: Site) -> bool:
        """Whether a form is proved not to be negative whenever a site is reached."""
        if not form.terms or is_trivially_nonnegative(form):
            return form.constant >= 0
        key = (form, site)
        if key not in self._signs:
            self._signs[key] = not self.solver.possible(self.integers.domain(site), at_least(-1, form))
        return self._signs[key]

    def position(self, index: Linear, extent: Linear, site: Site) -> Linear:
        """The position of an integer index: negative ones count from the end."""
        if self.is_nonnegative(index, site):
            return index
        if not index.terms:
            return index + extent

        def fact(result: Linear) -> Formula:
            return Or(
                (
                    And((at_least(index, 0), equal(result, index))),
                    And((at_least(-1, index), equal(result, index + extent))),
                )
            )

        return self.integers.derive(("position", index, extent), [index, extent], fact)

    def stretch(self, item: Slice, extent: Linear, site: Site) -> IndexInterval | None:
        """The interval that a slice selects on an axis of the given extent; None where the bounds are not affine."""
        step = 1 if item.step is None else item.step.value if isinstance(item.step, Const) else None
        if type(step) is not int or step == 0:
            return None
        least: Linear = Affine(0 if step > 0 else -1)
        lowest, highest = (least, extent) if step > 0 else (least, extent - 1)
        start = self._bound(item.lo, lowest if step > 0 else highest, (lowest, highest), extent, site)
        stop = self._bound(item.hi, highest if step > 0 else lowest, (lowest, highest), extent, site)
        if start is None or stop is None:
            return None
        size = abs(step)
        length = (stop - start) * (1 if step > 0 else -1)
        count = self.integers.quotient(length + (size - 1), size) if size > 1 else length
        if not self.is_nonnegative(count, site):
            count = self.integers.extreme([count, Affine()], 1)
        return IndexInterval(start, step, count)

    def _bound(
        self, expr: Expr | None, default: Linear, limits: tuple[Linear, Linear], extent: Linear, site: Site
    ) -> Linear | None:
        if expr is None:
            return default
        form = self.integers.value(expr, site)
        if form is None:
            return None
        lowest, highest = limits
        place = self.position(form, extent, site)
        if not self.is_nonnegative(place, site):
            place = self.integers.extreme([place, lowest], 1)
        if place == highest or self.is_nonnegative(highest - place, site):
            return place
        return self.integers.extreme([place, highest], -1)

    # ---- extents -----------------------------------------------------------------------------------------------------

    def _extent(self, var: Var, axis: int) -> Linear | None:
        key = (var, axis)
        if key not in self._known:
            assert isinstance(var.type, Array)
            definitions = self.sites.definitions.get(var, [])
            is_param = var in self.sites.params
            if var.type.is_unit(axis):
                self._keep(key, _ONE)
            elif len(definitions) + is_param > 1:
                self._merge(key, definitions, is_param)
            elif not definitions:
                self._keep(key, self._opaque(key, ()))
            else:
                form = self._measure(definitions[0], axis)
                self._keep(key, self._opaque(key, definitions[0].site.loops) if form is None else form)
        return self._known[key]

    def _keep(self, key: tuple[Var, int], form: Linear | None) -> None:
        self._known[key] = form
        self._log.append(key)

    @staticmethod
    def _opaque(key: tuple[Var, int], loops: tuple[object, ...]) -> Linear:
        return Affine.atom(Symbol(f"{key[0].name}.shape[{key[1]}]", loops, nonnegative=True))  # type: ignore[arg-type]

    def _merge(self, key: tuple[Var, int], definitions: list[Definition], is_param: bool) -> None:
        """All sources of a phi must agree; a loop-carried variable is assumed to keep its initial extent."""
        axis = key[1]
        mark = len(self._log)
        self._keep(key, None)
        first = self._opaque(key, ()) if is_param else self._measure(definitions[0], axis)
        if first is None or loops_of(first):
            return
        self._known[key] = first
        if any(self._measure(definition, axis) != first for definition in definitions[0 if is_param else 1 :]):
            for other in self._log[mark:]:
                self._known.pop(other, None)
            del self._log[mark:]
            self._keep(key, None)

    def _measure(self, definition: Definition, axis: int) -> Linear | None:
        """The extent of an axis of an assigned value."""
        site = definition.site
        match definition.value:
            case Var() as var:
                return self._extent(var, axis)
            case Load(array, index):
                return self.extent_of_load(array, index, axis, site)
            case Call(func, args, kwargs):
                if is_one_of(func, _SHAPED) and "shape" not in dict(kwargs) and args:
                    return self._shape_argument(args[0], axis, site)
                if is_one_of(func, _LIKE) and "shape" not in dict(kwargs):
                    return self._extent_of(args[0], axis)
                if func is intrinsics.ifelse:
                    then, other = self._extent_of(args[1], axis), self._extent_of(args[2], axis)
                    return then if then == other else None
                if func is intrinsics.transpose_view:
                    return self._extent_of(args[0], -1 - axis)
                if func is np.arange and len(args) == 1:
                    form = self.integers.value(args[0], site)
                    return form if form is not None and self.is_nonnegative(form, site) else None
                if is_one_of(func, _ARITHMETIC) or (
                    isinstance(func, np.ufunc) and func.signature is None and not kwargs
                ):
                    return self._broadcast(args, axis)
        return None

    def _extent_of(self, expr: Expr, axis: int) -> Linear | None:
        if not isinstance(expr, Var) or not isinstance(expr.type, Array):
            return None
        return self._extent(expr, axis % expr.type.rank)

    def _shape_argument(self, shape: Expr, axis: int, site: Site) -> Linear | None:
        size: Expr | None = shape
        match shape:
            case Tuple(items):
                size = items[axis]
            case Call(intrinsics.shape, (Var() as array,)):
                return self._extent_of(array, axis)
            case Var(_, Scalar()) | Const() | Call():
                size = shape if isinstance(shape.type, Scalar) else None
        return None if size is None else self.integers.value(size, site)

    def _broadcast(self, args: tuple[Expr, ...], axis: int) -> Linear | None:
        arrays = [arg for arg in args if isinstance(arg.type, Array)]
        rank = max((arg.type.rank for arg in arrays), default=0)  # type: ignore[union-attr]
        sizes = set()
        for arg in arrays:
            own = axis - (rank - arg.type.rank)  # type: ignore[union-attr]
            if own >= 0:
                sizes.add(self._extent_of(arg, own))
        sizes -= {_ONE} if len(sizes) > 1 else set()
        return sizes.pop() if len(sizes) == 1 else None

    def extent_of_load(self, array: Var, index: tuple[Expr | Slice, ...], axis: int, site: Site) -> Linear | None:
        """The extent of an axis of `array[index]` evaluated at a site, None if it is not affine."""
        position = result_axis = 0
        for item in index:
            if isinstance(item, Slice):
                if result_axis == axis:
                    stretch = self.stretch(item, self.extent(array, position, site), site)
                    return None if stretch is None else stretch.count
                result_axis += 1
                position += 1
            elif isinstance(item, Const) and item.value is None:
                if result_axis == axis:
                    return _ONE
                result_axis += 1
            elif isinstance(item.type, Array):
                return None
            else:
                position += 1
        return self.extent(array, position + axis - result_axis, site)
