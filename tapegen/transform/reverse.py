"""Reverse mode: from a lowered program to a forward sweep and an *ideal* backward sweep.

The backward sweep has the nesting of the forward sweep upside down and reads any primal value that its forward block
saw; `tapegen.transform.record` then makes those reads real.  What is read from an array that the program overwrites
later is captured in a value of its own first, so every Load that appears in the backward sweep is final.
"""

from __future__ import annotations

import operator
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

import numpy as np

from tapegen.analysis.activity import active_operands, is_view
from tapegen.analysis.places import moves, viewed
from tapegen.analysis.scopes import Scope
from tapegen.errors import AliasError, NotDifferentiable
from tapegen.ir import build, ops, rewrite
from tapegen.ir.names import NameSupply, bar_name
from tapegen.ir.nodes import (
    Assign,
    Block,
    Break,
    Call,
    Comment,
    Const,
    Continue,
    Effect,
    Expr,
    For,
    Function,
    If,
    Index,
    Load,
    Raise,
    Return,
    Slice,
    Stmt,
    Store,
    Tuple,
    Var,
    While,
)
from tapegen.ir.types import BOOL, INT, Array, ListOf, Scalar, is_floating
from tapegen.transform.adjoint import Adjoints
from tapegen.transform.facts import Facts
from tapegen.transform.mirror import Mirrors
from tapegen.transform.select import Selection


@dataclass(slots=True)
class Contribution:
    """One term.  `owned`: an array term is fresh or given away, so it may be updated in place under another name."""

    expr: Expr
    owned: bool


@dataclass(slots=True)
class Cotangent:
    """The cotangent of one Var: what `name` holds (if `named`) plus the pending contributions."""

    name: Var
    named: bool = False
    pending: list[Contribution] = field(default_factory=list)

    @property
    def empty(self) -> bool:
        return not self.named and not self.pending


@dataclass(slots=True)
class Sweeps:
    """What `reverse` returns: the backward sweep, and what the forward sweep must add for it.

    Attributes
    ----------
    backward : Block
        The ideal backward sweep.
    seeds : tuple of Var
        Cotangents of the active results, in order.
    gradients : tuple of Expr
        Cotangents of the `wrt` parameters, read at the end of the backward sweep.
    scopes_of : dict
        Backward For/If -> the forward scopes whose values its body (and orelse) may read.
    before, after : dict
        Captures around a forward statement.
    tests : dict
        Forward If -> the Var that keeps its test.
    flags : dict
        Those of them that can be evaluated again -> the test.
    captured : dict
        (forward statement, expression) -> the Var that keeps the value it had there.
    captures : set of Var
        Values that exist only because the backward sweep reads them; they cannot be evaluated again.
    trips : dict
        Forward loop -> its trip counter, where the number of trips is not known on entry.
    trip_index : dict
        Forward loop -> the Var that counts its trips down in the backward sweep, where there is one.
    counters : dict
        Forward For with a trip counter -> its loop variable as a function of the trip.
    references : frozenset of Var
        Mirrors: arrays of the forward sweep that the backward sweep reads and writes by reference.
    made : frozenset of Var
        Those of them that are made where they are assigned, and cannot be evaluated again.
    """

    backward: Block
    seeds: tuple[Var, ...]
    gradients: tuple[Expr, ...]
    scopes_of: dict[Stmt, tuple[Scope, ...]]
    before: dict[Stmt, list[Assign]]
    after: dict[Stmt, list[Assign]]
    tests: dict[Stmt, Var]
    flags: dict[Var, Expr]
    captured: dict[tuple[Stmt, Expr], Var]
    captures: set[Var]
    trips: dict[Stmt, Var]
    trip_index: dict[Stmt, Var]
    counters: dict[Stmt, Expr]
    references: frozenset[Var]
    made: frozenset[Var]


def reverse(
    function: Function,
    wrt: tuple[Var, ...],
    active_results: tuple[bool, ...],
    facts: Facts,
    mirrors: Mirrors,
    names: NameSupply,
    selecting: Mapping[Stmt, Selection],
) -> Sweeps:
    """Build the backward sweep of a lowered function.

    Parameters
    ----------
    function : Function
        The lowered program, expansions already inlined.
    wrt : tuple of Var
        Parameters whose cotangents are wanted.
    active_results : tuple of bool
        Which of the returned values are differentiated.
    facts : Facts
        Analyses of `function`.
    mirrors : Mirrors
        The arrays whose cotangents the forward sweep makes.
    names : NameSupply
        Supply of fresh names; knows every name of `function`.
    selecting : mapping
        Loops of which only one trip is undone.
    """
    return _Reverser(function, wrt, active_results, facts, mirrors, names, selecting).run()


class _Reverser:
    def __init__(
        self,
        function: Function,
        wrt: tuple[Var, ...],
        active_results: tuple[bool, ...],
        facts: Facts,
        mirrors: Mirrors,
        names: NameSupply,
        selecting: Mapping[Stmt, Selection],
    ) -> None:
        self.function = function
        self.selecting = selecting
        self.wrt = wrt
        self.active_results = active_results
        self.mirrors = mirrors.of
        self.shares, self.made = mirrors.shares, mirrors.made
        self.active = facts.activity.active | mirrors.of.keys()
        self.facts = facts
        self.scopes, self.shapes = facts.scopes, facts.shapes
        self.names = names
        self.cotangents: dict[Var, Cotangent] = {}
        self.views = {var: value for var, value in _views(function.body).items() if not self.scopes.is_merge(var)}
        self.flattened = frozenset().union(  # places with views that need their elements in the order of C
            *(facts.effects.roots(var) for var, value in self.views.items() if _flattens(value))
        )
        self.shadowed: set[Var] = set()  # views whose cotangent is a view
        self.out: list[Stmt] = []  # the backward block being written
        self.scopes_of: dict[Stmt, tuple[Scope, ...]] = {}
        self.before: dict[Stmt, list[Assign]] = {}
        self.after: dict[Stmt, list[Assign]] = {}
        self.tests: dict[Stmt, Var] = {}
        self.flags: dict[Var, Expr] = {}
        self.captured: dict[tuple[Stmt, Expr], Var] = {}
        self.captures: set[Var] = set()
        self.trips: dict[Stmt, Var] = {}
        self.trip_index: dict[Stmt, Var] = {}
        self.counters: dict[Stmt, Expr] = {}
        self.adjoints = Adjoints(self)

    # ---- driver ------------------------------------------------------------------------------------------------------

    def run(self) -> Sweeps:
        *body, last = self.function.body
        assert isinstance(last, Return)
        seeds = self._seed(last)
        self._block(tuple(body))
        gradients = tuple(self._gradient(param) for param in self.wrt)
        for param in self.function.params:
            if param in self.mirrors and param not in self.wrt:
                self.emit(Store(self.mirrors[param], (), Const(0.0)))
        return Sweeps(
            tuple(self.out),
            seeds,
            gradients,
            self.scopes_of,
            self.before,
            self.after,
            self.tests,
            self.flags,
            self.captured,
            self.captures,
            self.trips,
            self.trip_index,
            self.counters,
            frozenset(self.mirrors.values()),
            self.made,
        )

    def _seed(self, last: Return) -> tuple[Var, ...]:
        seeds: list[Var] = []
        for position, (value, active) in enumerate(zip(last.values, self.active_results, strict=True)):
            if not active:
                continue
            base = value.name if isinstance(value, Var) else self.function.name
            taken = any(seed.name == bar_name(base) for seed in seeds)
            name = self.names.fresh(bar_name(base) if not taken else f"{bar_name(base)}_{position}")
            type_ = value.type
            if isinstance(type_, Array):
                type_ = Array(type_.dtype, type_.rank, "A", type_.unit)
            seed = Var(name, type_)
            seeds.append(seed)
            if isinstance(value, Var) and value in self.active:
                if isinstance(type_, Scalar) and value not in self.cotangents:
                    self.cotangents[value] = Cotangent(seed, named=True)
                else:
                    self.contribute(value, seed, owned=False)
        return tuple(seeds)

    def _gradient(self, param: Var) -> Expr:
        if param in self.mirrors:
            return self._taken(param)
        cot = self.cotangent(param)
        owned = cot.named or len(cot.pending) > 1 or (bool(cot.pending) and cot.pending[0].owned)
        total = self._consume(param)
        if total is None:
            total = build.zero_like(param)
        elif isinstance(param.type, Array):
            total = _full(total, param)
            if not owned and not build.is_fresh(total):  # results share no memory with each other or with the seed
                total = build.copy(total)
        if total != cot.name:
            self.emit(Assign((cot.name,), total))
        return cot.name

    # ---- emitting ----------------------------------------------------------------------------------------------------

    def emit(self, stmt: Stmt) -> None:
        self.out.append(stmt)

    def emit_block(self, stmts: Iterable[Stmt]) -> None:
        self.out.extend(stmts)

    # ---- cotangents --------------------------------------------------------------------------------------------------

    def cotangent(self, var: Var) -> Cotangent:
        cot = self.cotangents.get(var)
        if cot is None and var in self.mirrors:
            cot = self.cotangents[var] = Cotangent(self.mirrors[var], named=True)
        if cot is None:
            type_ = var.type
            if isinstance(type_, Array):
                type_ = Array(type_.dtype, type_.rank, "C", type_.unit)
            cot = Cotangent(Var(self.names.fresh(bar_name(var.name)), type_))
            self.cotangents[var] = cot
        return cot

    def contribute(self, var: Var, expr: Expr, *, owned: bool | None = None) -> None:
        """Add a term to the cotangent of a Var; `expr` has the shape of `var`."""
        if build.is_const(expr, 0.0):
            return
        if isinstance(var.type, Array | Scalar):
            expr = build.cast(expr, var.type.dtype)
        cot = self.cotangent(var)
        if cot.named and isinstance(var.type, Array):
            self.emit(Store(cot.name, (), build.without_broadcast(expr), accumulate=True))
            return
        cot.pending.append(Contribution(expr, build.is_fresh(expr) if owned is None else owned))

    def _sum(self, cot: Cotangent) -> Expr | None:
        terms = [term.expr for term in cot.pending]
        return build.add_all(terms) if terms else None

    def settle(self, var: Var) -> Var:
        """Give the cotangent its name, holding all that was contributed so far; it may then be updated in place."""
        cot = self.cotangent(var)
        if not cot.named and self._has_shadow(var):
            cot.named = True
            self.shadowed.add(var)
            self.emit(Assign((cot.name,), self._shadow(var)))
        total = self._sum(cot)
        is_array = isinstance(var.type, Array)
        if isinstance(var.type, ListOf):
            if len(cot.pending) + cot.named > 1:
                raise NotDifferentiable(
                    f"'{var.name}' is a list that goes by several names here, and both are read",
                    "Use an array, or copy the list (list(items)).",
                    self.scopes.assigns[var][0].origin if var in self.scopes.assigns else None,
                )
            if not cot.named:
                self.emit(Assign((cot.name,), build.zero_like(var) if total is None else total))
        elif cot.named:
            if total is not None:
                if is_array:
                    self.emit(Store(cot.name, (), build.without_broadcast(total), accumulate=True))
                else:
                    self.emit(Assign((cot.name,), build.add(cot.name, total)))
        elif total is None:
            self.emit(Assign((cot.name,), build.zero_like(var)))
        elif is_array and not self.flattened.isdisjoint(self.facts.effects.roots(var)):
            # a sum may have the order of its terms; the view of the cotangent must be one too
            self.emit(Assign((cot.name,), build.zero_like(var)))
            self.emit(Store(cot.name, (), build.without_broadcast(total), accumulate=True))
        else:
            total = _full(total, var)
            if is_array and not (len(cot.pending) > 1 or cot.pending[0].owned or build.is_fresh(total)):
                total = build.copy(total)
            self.emit(Assign((cot.name,), total))
        cot.named = True
        cot.pending = []
        return cot.name

    def _flush(self, stmt: Stmt) -> None:
        """Settle what has been contributed to the places that a statement writes.

        Those contributions are of reads after the statement: they must have arrived before the cotangent of what it
        overwrites is cleared, also when they were made through another view of the place.
        """
        roots = frozenset().union(
            *(self.facts.effects.writes.get(inner, frozenset()) for inner in rewrite.statements((stmt,)))
        )
        if not roots:
            return
        for var, cot in list(self.cotangents.items()):
            if cot.pending and isinstance(var.type, Array) and not roots.isdisjoint(self.facts.effects.roots(var)):
                if var in self.views and _is_read_only(self.views[var]):
                    raise self._read_only_view(var)
                self.settle(var)

    def _has_shadow(self, var: Var) -> bool:
        value = self.views.get(var)
        if value is None:
            return False
        base = value.array if isinstance(value, Load) else value.args[0]
        if not isinstance(base, Var) or base not in self.active:
            return False
        # what may be a copy gets a cotangent of its own: where that would matter, the array is mirrored
        return viewed(value) is not None and not _is_read_only(value)

    def _read_only_view(self, var: Var) -> AliasError:
        value = self.views[var]
        assert isinstance(value, Call)
        return AliasError(
            f"{value.func.__name__} gives a view here, and what it shows is written while the view is in use",
            f"Copy it first (np.{value.func.__name__}(...).copy()).",
            self.scopes.assigns[var][0].origin,
        )

    def _shadow(self, var: Var) -> Expr:
        """The same view of the cotangent of the base, for a view that elements are added to."""
        value = self.views[var]
        stmt = self.scopes.assigns[var][0]
        type_ = self.cotangent(var).name.type
        if isinstance(value, Load):
            return Load(self.settle(value.array), self.index(stmt, value.index), type_)
        base = value.args[0]
        assert isinstance(base, Var)
        rest = tuple(self.expression(stmt, arg) for arg in value.args[1:])
        kwargs = tuple((name, self.expression(stmt, arg)) for name, arg in value.kwargs)
        return Call(value.func, (self.settle(base), *rest), kwargs, type_)

    def _consume(self, var: Var) -> Expr | None:
        """All contributions to a value whose definition is being reversed; None when there are none."""
        if var in self.mirrors:
            return self._taken(var)
        cot = self.cotangents.get(var)
        if cot is None or cot.empty:
            return None
        total = self._sum(cot)
        if cot.named:
            if total is None:
                return cot.name
            if isinstance(var.type, Array):
                self.emit(Store(cot.name, (), total, accumulate=True))
                cot.pending = []
                return cot.name
            return build.add(cot.name, total)
        return total

    def _taken(self, var: Var) -> Var:
        """What the mirror of a value holds; it is zero afterwards, ready for the next backward sweep."""
        mine = self.mirrors[var]
        held = Var(self.names.fresh(bar_name(var.name)), build.copy(mine).type)
        self.emit(Assign((held,), build.copy(mine)))
        self.emit(Store(mine, (), Const(0.0)))
        return held

    def take(self, var: Var) -> Contribution | None:
        """Like `_consume`, for a merge: its cotangent is zero afterwards."""
        cot = self.cotangents.get(var)
        if cot is None or cot.empty:
            return None
        owned = cot.named or len(cot.pending) > 1 or cot.pending[0].owned
        total = self._consume(var)
        assert total is not None
        if cot.named:
            # the name is given a new value later in this block, so what it holds now moves to a name of its own
            held = Var(self.names.fresh(cot.name.name), cot.name.type)
            self.emit(Assign((held,), total))
            total = held
        cot.named = False
        cot.pending = []
        return Contribution(total, owned)

    def bind(self, expr: Expr, like: Var) -> Var | Const:
        """Name an expression that is read more than once."""
        if isinstance(expr, Var | Const):
            return expr
        name = self.cotangent(like).name
        self.emit(Assign((name,), expr))
        return name

    def bind_number(self, expr: Expr) -> Expr:
        """Name a number that is read more than once."""
        if isinstance(expr, Var | Const):
            return expr
        name = Var(self.names.fresh("part"), expr.type)
        self.emit(Assign((name,), expr))
        return name

    # ---- blocks ------------------------------------------------------------------------------------------------------

    def _block(self, block: Block) -> None:
        """Reverse a block into `self.out`."""
        for stmt in reversed(block):
            start = len(self.out)
            self._statement(stmt)
            if len(self.out) > start and not isinstance(stmt, For | While | If):
                text = stmt.origin.text() if stmt.origin is not None else ""
                if text:
                    self.out.insert(start, Comment(text, stmt.origin))

    def nested(self, block: Block, touched: Iterable[Var]) -> Block:
        """Reverse a nested block into a block of its own; `touched` cotangents are settled at its end."""
        outer_out, self.out = self.out, []
        self._block(block)
        for var in touched:
            cot = self.cotangents[var]
            if cot.pending or not cot.named:
                self.settle(var)
        inner, self.out = self.out, outer_out
        return tuple(inner)

    def _touched(self, stmt: For | While | If) -> tuple[list[Var], list[Var]]:
        """Active Vars that reversing a nested statement reads or adds to, in order of the program.

        The first list has those that live on around the statement, the second those that it defines (joins, and
        values read after it) and that hold a contribution.
        """
        inside = {id(self.scopes.body[stmt])}
        if stmt in self.scopes.orelse:
            inside.add(id(self.scopes.orelse[stmt]))
        around: dict[Var, None] = {}
        defined: dict[Var, None] = {}
        joined = self._joined(stmt)
        for var in _mentioned(stmt):
            if var not in self.active or not is_floating(var.type):
                continue
            if var in joined or any(id(scope) in inside for scope in self.scopes.owner[var].chain()):
                cot = self.cotangent(var) if var in self.mirrors else self.cotangents.get(var)
                if cot is not None and not cot.empty:
                    defined.setdefault(var)
            else:
                around.setdefault(var)
        return list(around), list(defined)

    def _joined(self, stmt: Stmt) -> set[Var]:
        """Merges that an If defines: all their Assigns stand inside it."""
        if not isinstance(stmt, If):
            return set()
        inside = {id(self.scopes.body[stmt]), id(self.scopes.orelse[stmt])}
        return {
            var
            for var, assigns in self.scopes.assigns.items()
            if all(any(id(scope) in inside for scope in self.scopes.at[assign].chain()) for assign in assigns)
            and not any(id(scope) in inside for scope in self.scopes.owner[var].chain())
        }

    # ---- statements --------------------------------------------------------------------------------------------------

    def _statement(self, stmt: Stmt) -> None:
        match stmt:
            case Assign():
                self._assign(stmt)
            case Store():
                if stmt.array in self.active:
                    self._flush(stmt)
                    self._store(stmt)
            case Effect(Call(ops.append | ops.set_item)):
                self.adjoints.list_effect(stmt)
            case If():
                self._if(stmt)
            case For():
                self._for(stmt)
            case While():
                self._while(stmt)
            case Effect() | Raise() | Break() | Continue() | Comment():
                pass
            case _:
                raise AssertionError(f"cannot reverse {type(stmt).__name__}")

    def _assign(self, stmt: Assign) -> None:
        targets, value = stmt.targets, stmt.value
        if not any(target in self.active for target in targets):
            return
        if stmt in self.shares:
            self._view_or_copy(stmt, targets[0])
            return
        if any(target in self.mirrors for target in targets) and any(move.sources for _, move in moves(stmt)):
            self._moved(stmt)
            return
        if isinstance(value, Tuple) and len(value.items) == len(targets):
            self._latch(targets, value.items)
        elif len(targets) == 1 and isinstance(value, Var | Const):
            self._latch(targets, (value,))
        elif len(targets) == 1:
            self._value(stmt, targets[0], value)
        else:
            self._values(stmt)

    def _moved(self, stmt: Assign) -> None:
        """Of a move, a view or an item the mirror is one of the source."""
        if isinstance(stmt.value, Call) and stmt.value.func is ops.primal_as:
            self._value(stmt, stmt.targets[0], stmt.value)
        elif isinstance(stmt.value, Tuple | Var):
            items = stmt.value.items if isinstance(stmt.value, Tuple) else (stmt.value,)
            rest = [(t, item) for t, item in zip(stmt.targets, items, strict=True) if t not in self.mirrors]
            self._latch(tuple(t for t, _ in rest), tuple(item for _, item in rest))

    def _view_or_copy(self, stmt: Assign, target: Var) -> None:
        """A copy hands its cotangent on; a view has nothing of its own."""
        outer, self.out = self.out, []
        self._value(stmt, target, stmt.value)
        inner, self.out = self.out, outer
        self.emit(If(Call(operator.not_, (self.shares[stmt],), (), Scalar("bool")), tuple(inner), (), stmt.origin))

    def _latch(self, targets: tuple[Var, ...], values: tuple[Expr, ...]) -> None:
        """`x, y = y, x`, or one move: the cotangents move back, all taken before any is added."""
        moved = []
        for target, value in zip(targets, values, strict=True):
            if target not in self.active:
                continue
            taken = self.take(target)
            if taken is not None and isinstance(value, Var) and value in self.active:
                moved.append((value, taken))
        for value, taken in moved:
            self.contribute(value, taken.expr, owned=taken.owned)

    def _value(self, stmt: Assign, target: Var, value: Expr) -> None:
        if target in self.shadowed and self.cotangent(target).named:
            self._forget(target)  # what was added to a shadow view is in its base already
            return
        if isinstance(target.type, ListOf):
            if target not in self.mirrors:
                self.adjoints.new_list(stmt, target, value)
            return
        if self.scopes.is_merge(target):
            taken = self.take(target)
            total = taken.expr if taken is not None else None
        else:
            total = self._consume(target)
        if isinstance(value, Call) and value.func is ops.pop:
            self.adjoints.popped(value, build.zero_like(target) if total is None else total)
            self._forget(target)
            return
        if total is None:
            return
        if isinstance(value, Load):
            self._load(stmt, value, total)
        elif isinstance(value, Call):
            self.adjoints.call(stmt, (target,), value, (total,))
        if not self.scopes.is_merge(target):
            self._forget(target)

    def _values(self, stmt: Assign) -> None:
        totals = [self._consume(target) if target in self.active else None for target in stmt.targets]
        if any(total is not None for total in totals) and isinstance(stmt.value, Call):
            self.adjoints.call(stmt, stmt.targets, stmt.value, tuple(totals))

    def _forget(self, var: Var) -> None:
        if var in self.mirrors:
            return
        cot = self.cotangents[var]
        cot.named = False
        cot.pending = []

    def _load(self, stmt: Assign, load: Load, total: Expr) -> None:
        if load.array not in self.active:
            return
        if isinstance(load.array.type, ListOf):
            raise AssertionError("lists are read through ops.item")
        base_bar = self.settle(load.array)
        self.emit(Store(base_bar, self.index(stmt, load.index), total, accumulate=True))

    def _store(self, stmt: Store) -> None:
        base_bar = self.settle(stmt.array)
        index = self.index(stmt, stmt.index)
        value = stmt.value
        part_type = self._part_type(stmt)
        reads = isinstance(value, Var) and value in self.active
        is_scalar = isinstance(part_type, Scalar)
        if reads:
            assert isinstance(value, Var)
            part: Expr = Load(base_bar, index, part_type) if index or is_scalar else base_bar
            if not stmt.accumulate and self._repeats(stmt.index):
                part = self.adjoints.last_written(stmt, base_bar, index, part)
            if not is_scalar or not stmt.accumulate:
                held = Var(
                    self.names.fresh(bar_name(value.name) if self._fits(value, part_type) else "part_bar"), part_type
                )
                self.emit(Assign((held,), part if is_scalar or build.is_fresh(part) else build.copy(part)))
                part = held
            else:
                held = Var(self.names.fresh(bar_name(value.name)), part_type)
                self.emit(Assign((held,), part))
                part = held
            region = self.shapes.regions.get(stmt)
            if isinstance(value.type, Array) and region is not None:
                term = self.adjoints.summed(part, value, region)
            else:
                term = self.adjoints.unbroadcast(part, value)
        if not stmt.accumulate:
            zero: Expr = Const(0.0)
            self.emit(Store(base_bar, index, zero))
        if reads:
            assert isinstance(value, Var)
            self.contribute(value, term, owned=True)

    def _fits(self, value: Var, type_: object) -> bool:
        return build.rank_of(value.type) == build.rank_of(type_)  # type: ignore[arg-type]

    def _part_type(self, stmt: Store) -> Array | Scalar:
        array = stmt.array.type
        assert isinstance(array, Array)
        rank = array.rank
        fancy = 0
        for item in stmt.index:
            if isinstance(item, Slice):
                continue
            if isinstance(item, Const) and item.value is None:
                rank += 1
            elif isinstance(item.type, Array):
                if item.type.dtype == "bool":
                    rank -= item.type.rank
                    fancy = max(fancy, 1)
                else:
                    rank -= 1
                    fancy = max(fancy, item.type.rank)
            else:
                rank -= 1
        rank += fancy
        if rank == 0 and stmt.index:
            return Scalar(array.dtype, False)
        return Array(array.dtype, rank, "A")

    @staticmethod
    def _repeats(index: tuple[Index, ...]) -> bool:
        """Whether an index can name an element twice."""
        return any(
            not isinstance(item, Slice) and isinstance(item.type, Array) and item.type.dtype != "bool" for item in index
        )

    # ---- control flow ------------------------------------------------------------------------------------------------

    def _if(self, stmt: If) -> None:
        around, defined = self._touched(stmt)
        if not around and not defined:
            return
        self._flush(stmt)
        for var in (*around, *defined):
            self.settle(var)
        state = {var: self.cotangents[var].named for var in defined}
        body = self.nested(stmt.body, around)
        for var, named in state.items():
            self.cotangents[var].named = named
        orelse = self.nested(stmt.orelse, around)
        for var in defined:
            self._forget(var)
        scopes = (self.scopes.body[stmt], self.scopes.orelse[stmt])
        body, orelse = (block if _does_something(block) else () for block in (body, orelse))
        if not body and not orelse:
            return
        test = self._test(stmt)
        if not body:
            test, body, orelse, scopes = build.not_(test), orelse, (), scopes[::-1]
        undo = If(test, body, orelse, stmt.origin)
        self.scopes_of[undo] = scopes
        self.emit(undo)

    def _test(self, stmt: If) -> Expr:
        """The test of an If, under a name of its own: it may be better to record the answer than what it is made of."""
        test = self.expression(stmt, stmt.test)
        is_bool = isinstance(test.type, Scalar) and test.type.dtype == "bool"
        is_flag = is_bool and not isinstance(test, Var | Const) and self.scopes.at[stmt].in_loop
        if not is_flag and not (isinstance(test, Var) and test in self.captures):
            return test
        if is_flag:
            flag = self.capture(stmt, test, "test")
            self.captures.discard(flag)
            self.flags[flag] = test
            test = flag
        assert isinstance(test, Var)
        self.tests[stmt] = test
        return test

    def _for(self, stmt: For) -> None:
        if stmt in self.selecting:
            self._selection(stmt, self.selecting[stmt])
            return
        body = self._loop_body(stmt, stmt.body)
        if body is None:
            return
        start = self.expression(stmt, stmt.start)
        step = stmt.step
        if stmt in self.scopes.breaks or not isinstance(step, Const):
            k = Var(self.names.fresh("trip"), INT)
            scaled: Expr = (
                k if build.is_const(step, 1) else Call(operator.mul, (self.expression(stmt, step), k), (), INT)
            )
            self.counters[stmt] = build.int_add(start, scaled)
            self._counted(stmt, k, body)
        else:
            stop = self.expression(stmt, stmt.stop)
            assert isinstance(step.value, int)
            undo = _reversed_range(stmt, start, stop, step.value, body)
            self.scopes_of[undo] = (self.scopes.body[stmt],)
            self.emit(undo)

    def _selection(self, stmt: For, selection: Selection) -> None:
        """Undo the one trip of a loop that has a derivative."""
        body = self._loop_body(stmt, selection.trip)
        if body is None:
            return
        self.emit(Assign((stmt.target,), selection.winner))
        undo = If(Call(operator.ne, (selection.winner, selection.nobody), (), BOOL), body, (), stmt.origin)
        self.scopes_of[undo] = (self.scopes.body[stmt], self.scopes.body[stmt])
        self.emit(undo)

    def _while(self, stmt: While) -> None:
        body = self._loop_body(stmt, stmt.body)
        if body is not None:
            self._counted(stmt, Var(self.names.fresh("trip"), INT), body)

    def _counted(self, stmt: For | While, k: Var, body: Block) -> None:
        """Undo a loop whose number of trips is counted in the forward sweep."""
        trips = Var(self.names.fresh("trips"), INT)
        self.trips[stmt] = trips
        self.trip_index[stmt] = k
        self.scopes.owner[trips] = self.scopes.at[stmt]
        self.captures.add(trips)
        undo = For(k, build.int_add(trips, Const(-1)), Const(-1), Const(-1), body, stmt.origin)
        self.scopes_of[undo] = (self.scopes.body[stmt],)
        self.emit(undo)

    def _loop_body(self, stmt: For | While, trip: Block) -> Block | None:
        around, _ = self._touched(stmt)
        if not around:
            return None
        self._flush(stmt)
        for var in around:
            self.settle(var)
        body = self.nested(trip, around)
        return body if _does_something(body) else None

    # ---- reads of primal values --------------------------------------------------------------------------------------

    def expression(self, stmt: Stmt, expr: Expr) -> Expr:
        """An integer or boolean expression of a forward statement, for use in the backward sweep."""
        loads, places = rewrite.loads(expr), rewrite.whole_reads(expr)
        if all(self.facts.is_final(stmt, load.array, load.index) for load in loads) and all(
            self.facts.is_final(stmt, place, ()) for place in places
        ):
            return expr
        is_test = isinstance(expr.type, Scalar) and expr.type.dtype == "bool"
        return self.capture(stmt, expr, "test" if is_test else "k")

    def index(self, stmt: Stmt, index: tuple[Index, ...]) -> tuple[Index, ...]:
        """An index of a forward statement, for use in the backward sweep."""
        return tuple(self._index_item(stmt, item) for item in index)

    def _index_item(self, stmt: Stmt, item: Index) -> Index:
        if isinstance(item, Slice):
            parts = (None if part is None else self.expression(stmt, part) for part in (item.lo, item.hi, item.step))
            return Slice(*parts)
        if isinstance(item, Var) and isinstance(item.type, Array):
            return self.operand(stmt, item)
        return self.expression(stmt, item)

    def operand(self, stmt: Stmt, var: Var) -> Var:
        """An array operand of a forward statement: itself when its contents are final, else a captured copy."""
        if not isinstance(var.type, Array) or self.facts.is_final(stmt, var, ()):
            return var
        return self.capture(stmt, build.copy(var), self._root_name(var))

    def _root_name(self, var: Var) -> str:
        """The name of the array that a view looks into."""
        while var in self.views:
            value = self.views[var]
            base = value.array if isinstance(value, Load) else value.args[0]
            if not isinstance(base, Var):
                break
            var = base
        return var.name

    def result(self, stmt: Assign, var: Var) -> Var:
        """The result of a forward statement, as the statement left it."""
        if not isinstance(var.type, Array) or self.facts.is_final(stmt, var, ()):
            return var
        key = (stmt, var)
        if key not in self.captured:
            kept = Var(self.names.fresh(f"{var.name}_kept"), build.copy(var).type)
            self._own_capture(stmt, Assign((kept,), build.copy(var), stmt.origin), self.after)
            self.captured[key] = kept
        return self.captured[key]

    def capture(self, stmt: Stmt, expr: Expr, base: str) -> Var:
        """Keep the value that an expression has at a forward statement."""
        key = (stmt, expr)
        if key not in self.captured:
            kept = Var(self.names.fresh(f"{base}_kept" if isinstance(expr.type, Array) else base), expr.type)
            self._own_capture(stmt, Assign((kept,), expr, stmt.origin), self.before)
            self.captured[key] = kept
        return self.captured[key]

    def kept_items(self, stmt: Stmt, sequence: Var) -> Var:
        """The mirrors in a list, as they were at a forward statement."""
        key = (stmt, sequence)
        if key not in self.captured:
            kept = Var(self.names.fresh(f"{self.mirrors[sequence].name}_kept"), sequence.type)
            items = Call(list, (self.mirrors[sequence],), (), sequence.type)
            self._own_capture(stmt, Assign((kept,), items, stmt.origin), self.before)
            self.captured[key] = kept
        return self.captured[key]

    def _own_capture(self, stmt: Stmt, kept: Assign, where: dict[Stmt, list[Assign]]) -> None:
        where.setdefault(stmt, []).append(kept)
        (var,) = kept.targets
        self.captures.add(var)
        self.scopes.owner[var] = self.scopes.at[kept] = self.scopes.at[stmt]
        self.scopes.assigns[var] = [kept]


# ---- helpers ---------------------------------------------------------------------------------------------------------


def _is_read_only(view: Load | Call) -> bool:
    """Whether a view cannot be added to, so that none of it can be made of a cotangent."""
    return isinstance(view, Call) and view.func in (np.diagonal, np.broadcast_to)


def _flattens(value: Load | Call) -> bool:
    return isinstance(value, Call) and value.func in (np.reshape, np.ravel)


def _full(total: Expr, var: Var) -> Expr:
    """A number that stands for a whole array is spread out."""
    if isinstance(var.type, Array):
        number = build.without_broadcast(total)
        if not isinstance(number.type, Array):
            return Call(np.full_like, (var, number), (), Array(var.type.dtype, var.type.rank, "C", var.type.unit))
    return total


def _reversed_range(stmt: For, start: Expr, stop: Expr, step: int, body: Block) -> For:
    if abs(step) == 1:
        sign = -step
        return For(
            stmt.target,
            build.int_add(stop, Const(sign)),
            build.int_add(start, Const(sign)),
            Const(sign),
            body,
            stmt.origin,
        )
    # last value: start + ((stop - start - s) // step) * step, s being the sign of step
    sign = 1 if step > 0 else -1
    span = (
        Call(operator.sub, (build.int_add(stop, Const(-sign)), start), (), INT)
        if not build.is_const(start, 0)
        else build.int_add(stop, Const(-sign))
    )
    count = Call(operator.floordiv, (span, Const(step)), (), INT)
    last = build.int_add(start, Call(operator.mul, (count, Const(step)), (), INT))
    return For(stmt.target, last, build.int_add(start, Const(-sign)), Const(-step), body, stmt.origin)


def _does_something(block: Block) -> bool:
    return any(not isinstance(stmt, Comment) for stmt in block)


def _views(block: Block) -> dict[Var, Load | Call]:
    """Views and what makes them."""
    return {
        stmt.targets[0]: stmt.value
        for stmt in rewrite.statements(block)
        if isinstance(stmt, Assign)
        and len(stmt.targets) == 1
        and isinstance(stmt.value, Load | Call)
        and is_view(stmt.value)
    }


def _mentioned(stmt: Stmt) -> Iterable[Var]:
    """Vars through which derivatives flow inside a nested statement, in order of the program."""
    for inner in rewrite.statements((stmt,)):
        match inner:
            case Assign(targets, value):
                yield from targets
                yield from active_operands(value)
            case Store(array, _, value):
                yield array
                yield from active_operands(value)
            case Effect(call):
                yield from active_operands(call)
