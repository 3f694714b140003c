"""Access relations: elements that an access may denote, as affine forms over counters, extents and free symbols."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from tapegen.analysis.memory_access import Move, is_one_of, moves
from tapegen.analysis.polyhedral.constraints import Formula, Linear, Symbol, at_least
from tapegen.analysis.polyhedral.index_extents import Extents
from tapegen.analysis.polyhedral.schedule import Definition, Site, Sites
from tapegen.analysis.side_effects import Effects
from tapegen.ir import intrinsics
from tapegen.ir.affine import Affine
from tapegen.ir.nodes import Assign, Call, Const, Expr, Load, Slice, Stmt, Tuple, Var
from tapegen.ir.types import Array

Coordinates = tuple[Linear | None, ...]  # None: any position on this axis

_SAME = frozenset({np.asarray, np.ascontiguousarray, np.real})
_PURE_MOVES = frozenset({intrinsics.ifelse, intrinsics.primal_as})


@dataclass(frozen=True, slots=True)
class Region:
    """Elements of one root.

    Attributes
    ----------
    root : str
        Name of the root.
    coordinates : tuple
        An affine form for each axis, None for any position; empty for the whole array.
    facts : tuple of Formula
        Constraints on the coordinates.
    instance : frozenset of Stmt
        Loops with one allocation per iteration, of which this access means the one of its own iteration.
    view : Var or None
        The coordinates are those of this variable, defined once in a call, whose relation to the root is not known;
        different coordinates are different elements.
    """

    root: str
    coordinates: Coordinates = ()
    facts: tuple[Formula, ...] = ()
    instance: frozenset[Stmt] = frozenset()
    view: Var | None = None


class Regions:
    """Translates accesses into regions.

    Parameters
    ----------
    sites, effects, extents : Sites, Effects, Extents
        Facts of the function.
    """

    def __init__(self, sites: Sites, effects: Effects, extents: Extents) -> None:
        self.sites, self.effects, self.extents = sites, effects, extents

    def regions(self, array: Var, index: Sequence[Any], site: Site) -> list[Region]:
        """The elements that `array[index]` may denote when it is evaluated at a site."""
        if not isinstance(array.type, Array):
            return list(self._whole(array))
        facts: list[Formula] = []
        coordinates = self._select(array, index, None, site, facts)
        return list(self._place(array, coordinates, facts, site))

    def _whole(self, *names: Var) -> Iterator[Region]:
        for root in sorted({root for name in names for root in self.effects.roots(name)}):
            yield Region(root)

    # ---- from a variable to its roots --------------------------------------------------------------------------------

    def _place(self, var: Var, coordinates: Coordinates, facts: list[Formula], site: Site) -> Iterator[Region]:
        facts = [*facts]
        for axis, form in enumerate(coordinates):
            if form is not None:
                facts += [at_least(form, 0), at_least(self.extents.extent(var, axis, site), form + 1)]
        definitions = self.sites.definitions.get(var, [])
        if not definitions or len(definitions) > 1 or var in self.sites.params or _is_move(definitions[0].value):
            yield from self._merged(var, coordinates, facts)
            return
        (definition,) = definitions
        move = _move(definition, var)
        current = definition.site.loops == site.loops[: len(definition.site.loops)]
        instance = frozenset(definition.site.loops) if current else frozenset()
        for root in self._allocated(definition, var, move):
            yield Region(root, coordinates, tuple(facts), instance)
        if not move.sources:
            return
        mapped = (
            self._through(definition.value, coordinates, definition.site, facts) if current and move.exact else None
        )
        if mapped is None:
            once = move.exact and not definition.site.loops and not _repeats(definition.value)
            for region in self._whole(*((var,) if move.items else move.sources)):
                yield Region(region.root, coordinates, tuple(facts), view=var) if once else region
        else:
            base, base_coordinates = mapped
            yield from self._place(base, base_coordinates, facts, site)

    def _merged(self, var: Var, coordinates: Coordinates, facts: list[Formula]) -> Iterator[Region]:
        """A phi denotes one of its sources, at the same coordinates."""
        seen, work = {var}, [var]
        whole: dict[str, None] = {}
        exact: dict[str, None] = {}
        while work:
            name = work.pop()
            if name in self.sites.params:
                exact[name.name] = None
            for definition in self.sites.definitions.get(name, []):
                move = _move(definition, name)
                exact.update(dict.fromkeys(self._allocated(definition, name, move)))
                if _is_move(definition.value):
                    work.extend(source for source in move.sources if source not in seen)
                    seen.update(move.sources)
                elif move.sources:
                    sources = (name,) if move.items else move.sources
                    whole.update(dict.fromkeys(region.root for region in self._whole(*sources)))
        for root in exact:
            yield Region(root, coordinates, tuple(facts))
        for root in whole:
            yield Region(root)

    def _allocated(self, definition: Definition, var: Var, move: Move) -> list[str]:
        """The roots that a definition of a variable allocates."""
        if move.sources and not move.fresh:
            return []
        return [
            root
            for root in sorted(self.effects.roots(var))
            if self.effects.allocations.get(root) is definition.site.stmt and root.partition("'")[0] == var.name
        ]

    # ---- coordinates through views -----------------------------------------------------------------------------------

    def _through(
        self, value: Expr | None, coordinates: Coordinates, site: Site, facts: list[Formula]
    ) -> tuple[Var, Coordinates] | None:
        """The base of a view, and the coordinates of its elements in the base; None if they are not known."""
        match value:
            case Load(array, index):
                return array, self._select(array, index, coordinates, site, facts)
            case Call(func, (Var() as base, *rest), kwargs) if isinstance(base.type, Array):
                if is_one_of(func, _SAME):
                    return base, coordinates
                if func is intrinsics.transpose_view or (func is np.transpose and not rest and not kwargs):
                    return base, coordinates[::-1]
                if func is np.transpose and len(rest) == 1 and not kwargs:
                    axes = _constants(rest[0])
                    if axes is not None and len(axes) == base.type.rank:
                        placed = {axis % base.type.rank: form for axis, form in zip(axes, coordinates)}
                        return base, tuple(placed[k] for k in range(base.type.rank))
                if func is np.flip and not rest:
                    return base, self._flipped(base, coordinates, dict(kwargs).get("axis"), site)
        return None

    def _flipped(self, base: Var, coordinates: Coordinates, axis: Expr | None, site: Site) -> Coordinates:
        flipped = None if axis is None else _constants(axis)
        if axis is not None and flipped is None:
            return (None,) * len(coordinates)
        chosen = range(len(coordinates)) if flipped is None else [k % len(coordinates) for k in flipped]
        return tuple(
            self.extents.extent(base, k, site) - 1 - form if form is not None and k in chosen else form
            for k, form in enumerate(coordinates)
        )

    def _select(
        self, array: Var, index: Sequence[Any], coordinates: Coordinates | None, site: Site, facts: list[Formula]
    ) -> Coordinates:
        """Where `array[index][coordinates]` lies in `array`; None for coordinates means every element."""
        assert isinstance(array.type, Array)
        inner = iter(coordinates or ())
        result: list[Linear | None] = []
        for item in index:
            if isinstance(item, Slice):
                result.append(self._along(array, len(result), item, next(inner, None), site, facts))
            elif isinstance(item, Const) and item.value is None:
                next(inner, None)
            elif isinstance(item.type, Array):
                result.extend([None] * (item.type.rank if item.type.dtype == "bool" else 1))
            else:
                form = self.extents.integers.value(item, site)
                extent = self.extents.extent(array, len(result), site)
                result.append(None if form is None else self.extents.position(form, extent, site))
        result.extend(next(inner, None) for _ in range(array.type.rank - len(result)))
        return tuple(result)

    def _along(
        self, array: Var, axis: int, item: Slice, inner: Linear | None, site: Site, facts: list[Formula]
    ) -> Linear | None:
        if item == Slice():
            return inner
        stretch = self.extents.stretch(item, self.extents.extent(array, axis, site), site)
        if stretch is None:
            return None
        if inner is None:
            inner = Affine.atom(Symbol(f"{array.name}_k", free=True, nonnegative=True))
        facts.append(at_least(stretch.count, inner + 1))
        return stretch.start + inner * stretch.step


def _is_move(value: Expr | None) -> bool:
    return isinstance(value, Var) or (isinstance(value, Call) and is_one_of(value.func, _PURE_MOVES))


def _repeats(value: Expr | None) -> bool:
    """Whether a view may show an element twice."""
    return isinstance(value, Call) and value.func is np.broadcast_to


def _move(definition: Definition, var: Var) -> Move:
    assert isinstance(definition.site.stmt, Assign)
    return next(move for target, move in moves(definition.site.stmt) if target == var)


def _constants(expr: Expr) -> tuple[int, ...] | None:
    """The integers of a constant axis argument."""
    items = expr.items if isinstance(expr, Tuple) else (expr,)
    values = [item.value if isinstance(item, Const) else None for item in items]
    if isinstance(values[0], tuple) and len(values) == 1:
        values = list(values[0])
    return tuple(values) if all(type(value) is int for value in values) else None  # type: ignore[arg-type]
