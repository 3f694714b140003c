"""The adjoint of one call: rules applied to IR operands, and un-broadcasting."""

from __future__ import annotations

import operator
from collections.abc import Iterable

import numpy as np

from tapegen.analysis.activity import active_operands
from tapegen.analysis.shape_functions import Extents
from tapegen.errors import NotDifferentiable
from tapegen.frontend.values.pytree import Abstract, Struct
from tapegen.ir import builders, intrinsics, traversal
from tapegen.ir.names import bar_name
from tapegen.ir.nodes import (
    Assign,
    Block,
    Call,
    Const,
    Effect,
    Expr,
    For,
    Index,
    Load,
    Routine,
    Slice,
    Store,
    Tuple,
    Var,
)
from tapegen.ir.types import INT, Array, ListOf, Scalar, TupleOf, Type, is_floating
from tapegen.rules.rule import Rule
from tapegen.transform.analyses import Facts
from tapegen.transform.autodiff.cotangents import CotangentMap
from tapegen.transform.autodiff.residuals import Residuals
from tapegen.transform.autodiff.rule_application import (
    bind_arguments,
    cotangents_of,
    expression_of,
    guards,
    has_pole,
    inlined,
    local_partials,
    needed,
    never_raising,
    refuse_other_active,
    rule_for,
)
from tapegen.transform.autodiff.zero_guards import guarded
from tapegen.transform.simplify.cse import Known

_BROADCASTS = frozenset(
    {
        *(np.where, np.maximum, np.minimum, np.fmax, np.fmin, np.full, np.full_like, np.broadcast_to, np.clip),
        *(np.broadcast_arrays, intrinsics.strong_mul, intrinsics.guarded, intrinsics.of_parts),
    }
)
_BATCHED = frozenset({operator.matmul, np.matmul, np.linalg.solve, np.linalg.inv})


def _count_of_arrays(operands: Iterable[Expr]) -> int:
    """The number of operands that have axes; tuples are searched too."""
    parts = (_count_of_arrays(x.items) if isinstance(x, Tuple) else builders.rank_of(x.type) > 0 for x in operands)
    return sum(parts)


class CallAdjoints:
    """Contributions of one forward statement to the cotangents of its operands."""

    def __init__(self, facts: Facts, cotangents: CotangentMap, residuals: Residuals) -> None:
        self.facts, self.scopes, self.shapes = facts, facts.scopes, facts.shapes
        self.cotangents, self.residuals, self.names = cotangents, residuals, cotangents.names
        self.known = Known(facts.scopes)

    def call(self, stmt: Assign, targets: tuple[Var, ...], call: Call, totals: tuple[Expr | None, ...]) -> None:
        """Reverse `targets = call`, the cotangents of the targets being `totals`."""
        if call.func is intrinsics.primal_as:
            self._add(targets[0], call.args[1], self._single(totals))
            return
        if call.func is intrinsics.item:
            self._item(stmt, targets[0], call, totals)
            return
        if isinstance(call.func, Routine):
            self._routine(stmt, targets, call, call.func, totals)
            return
        if not any(var in self.cotangents.active for var in active_operands(call)):
            return  # a constant under this name that becomes active later
        rule = rule_for(call, stmt)
        if rule.kind in ("inactive", "expands"):  # the formula next to the call carries the derivative
            return
        if rule.kind == "partials":
            self._partials(stmt, targets[0], call, rule, self._single(totals))
        else:
            self._transposed(stmt, targets, call, rule, totals)

    def _single(self, totals: tuple[Expr | None, ...]) -> Expr:
        assert totals[0] is not None
        return totals[0]

    # ---- kinds of rule -----------------------------------------------------------------------------------------------

    def _partials(self, stmt: Assign, target: Var, call: Call, rule: Rule, total: Expr) -> None:
        block, wanted = local_partials(call, rule, target, stmt, self._is_active, self.names)
        if not wanted:
            return
        facts = self.facts
        pole = has_pole(call, rule, facts.again)
        partials = [partial for _, partial in wanted]
        poles = guards(target, call, pole, block, partials, facts.ranges, facts.set_aside)
        number = builders.without_broadcast(total)
        tests = self.cotangents.guards.tests(target, call, number) if any(poles) else []
        given = number
        of_its_own = tests == [number]
        several = len(wanted) > 1 or number in tests or (isinstance(target.type, Scalar) and builders.is_guarded(total))
        if isinstance(target.type, Array) and isinstance(number.type, Scalar):
            # one scalar for all elements stays a scalar where the partial has the shape of the result
            number = self.cotangents.bind_number(number) if several else number
            cotangent: Expr = builders.rebroadcast(total, number)
        else:
            cotangent = number = self.cotangents.bind(total, target) if several else total
        # look up only what this statement reads: the cotangent may contain the same names with values of another time
        block, factors = self._primal_reads(stmt, target, block, partials)
        scope = self.scopes.at[stmt]
        terms: list[Expr] = []
        for (_, local), partial, is_guarded in zip(wanted, factors, poles, strict=True):
            factor = number if self._spans(local, target) else cotangent
            partial = self.known.looked_up(partial, scope)
            if pole or is_guarded:
                partial = traversal.map_expr(partial, never_raising)
            if not is_guarded or not tests:
                terms.append(builders.mul(partial, factor))
            elif of_its_own:
                terms.append(builders.strong_mul(factor, partial))
            else:
                terms.append(guarded(factor, partial, [cotangent if test == given else test for test in tests]))
        self.cotangents.emit_block(block)
        for (arg, _), term in zip(wanted, terms, strict=True):
            self.cotangents.contribute(arg, self.cotangents.as_variable(arg, self.unbroadcast(term, arg, target), stmt))

    def _spans(self, partial: Expr, target: Var) -> bool:
        """Whether a partial is known to have the shape of the result."""
        extents = self.shapes.of(target)
        arrays = [var for var in traversal.free_vars(partial) if isinstance(var.type, Array)]
        return any(self.shapes.of(var) == extents for var in arrays)

    def _transposed(
        self, stmt: Assign, targets: tuple[Var, ...], call: Call, rule: Rule, totals: tuple[Expr | None, ...]
    ) -> None:
        assert rule.body is not None
        bars: list[Expr] = []
        given_away: set[Expr] = set()
        for target, total in zip(targets, totals, strict=True):
            if total is None:
                total = builders.zero_like(target)
            if isinstance(target.type, Array) and not isinstance(total.type, Array):
                total = Call(np.full_like, (target, total), (), target.type)
            bars.append(self.cotangents.bind(total, target))
            # the cotangent of a value whose definition is being reversed has no other reader; it may still be a view
            if bars[-1] == self.cotangents.cotangent(target).name and (total == bars[-1] or builders.is_fresh(total)):
                given_away.add(bars[-1])
        given_away = {bar for bar in given_away if not self.cotangents.is_guarded(bar)}
        if any(isinstance(arg.type, ListOf) and self._is_active(arg) for arg in call.args):
            self._spread_over_list(stmt, targets[0], call, bars[0])
            return
        extra: dict[str, Expr] = {"out_bar": bars[0] if len(bars) == 1 else Tuple(tuple(bars))}
        if rule.reads("out"):
            extra["out"] = targets[0] if len(targets) == 1 else Tuple(targets)
        block, value = inlined(rule.body, call.args, dict(call.kwargs) | extra, self.names, stmt.origin)
        results = cotangents_of(rule, value, stmt)
        bound = bind_arguments(rule.body, call, stmt)
        wanted: list[tuple[Var, Expr]] = []
        for name, result in zip(rule.wrt, results, strict=True):
            wanted.extend(self._pairs(bound.get(name), result))
        refuse_other_active(call, rule, bound, stmt, self._is_active)
        if not wanted:
            return
        block, terms = self._primal_reads(stmt, targets, block, [expr for _, expr in wanted])
        self.cotangents.emit_block(block)
        for (arg, _), term in zip(wanted, terms, strict=True):
            owned = True if term in given_away and len(wanted) == 1 else None
            term = self.cotangents.as_variable(arg, self._fitted(call, rule, term, arg, targets[0]), stmt)
            self.cotangents.contribute(arg, term, owned=owned and not self.cotangents.is_guarded(term))

    def _routine(
        self, stmt: Assign, targets: tuple[Var, ...], call: Call, routine: Routine, totals: tuple[Expr | None, ...]
    ) -> None:
        """Reverse the call of a routine by a call of its derivative."""
        wrt = tuple(self._is_active(arg) and is_floating(arg.type) for arg in call.args)
        chosen = [arg for arg, wanted in zip(call.args, wrt, strict=True) if wanted and isinstance(arg, Var)]
        if not chosen:
            return
        bars: list[Expr] = []
        for target, total in zip(targets, totals, strict=True):
            if total is not None:
                if isinstance(target.type, Array) and not isinstance(total.type, Array):
                    total = Call(np.full_like, (target, total), (), target.type)
                bars.append(self.cotangents.bind(total, target))
        reverse = routine.derivative("vjp", wrt, tuple(total is not None for total in totals))
        args = [self.residuals.operand(stmt, arg) if isinstance(arg, Var) else arg for arg in call.args]
        made = tuple(Var(self.names.fresh(bar_name(arg.name)), _cotangent_type(arg.type)) for arg in chosen)
        type_ = made[0].type if len(made) == 1 else TupleOf(tuple(bar.type for bar in made))
        self.cotangents.emit(Assign(made, Call(reverse, (*args, *bars), (), type_), stmt.origin))
        for arg, bar in zip(chosen, made, strict=True):
            self.cotangents.contribute(arg, bar, owned=True)

    def _spread_over_list(self, stmt: Assign, target: Var, call: Call, bar: Expr) -> None:
        """Reverse `np.array(items)` and `sum(items)` of a run-time list: each item gets its part of the cotangent."""
        (sequence,) = [arg for arg in call.args if isinstance(arg.type, ListOf)]
        whole = call.func in (np.array, np.asarray, np.stack)
        if (not whole and call.func not in (sum, np.sum)) or len(call.args) > 1 or call.kwargs:
            raise NotDifferentiable(
                f"{call.func.__name__} of a list that grows has no derivative here",
                "Make an array of the list first (np.array(items)).",
                stmt.origin,
            )
        assert isinstance(sequence, Var) and isinstance(sequence.type, ListOf)
        bar = self.cotangents.bind(bar, target)
        k = Var(self.names.fresh("k"), INT)
        item_type = sequence.type.item
        if sequence in self.cotangents.shadows:
            kept = self.residuals.saved_items(stmt, sequence)
            assert isinstance(item_type, Array)
            item_bar = Var(self.names.fresh("item_bar"), item_type)
            part = Load(bar, (k,), item_type) if whole and isinstance(bar, Var) else bar
            body = (
                Assign((item_bar,), Call(intrinsics.item, (kept, k), (), item_type)),
                Store(item_bar, (), part, accumulate=True),
            )
            self.cotangents.emit(For(k, Const(0), Call(len, (kept,), (), INT), Const(1), body, stmt.origin))
            return
        items_bar = self.cotangents.materialize(sequence)
        part = Load(bar, (k,), item_type) if whole and isinstance(bar, Var) else bar
        held = Call(intrinsics.item, (items_bar, k), (), item_type)
        added = Effect(Call(intrinsics.set_item, (items_bar, k, builders.add(held, part)), ()))
        length = Call(len, (items_bar,), (), INT)
        self.cotangents.emit(For(k, Const(0), length, Const(1), (added,), stmt.origin))

    def _pairs(self, arg: Expr | None, result: Abstract) -> Iterable[tuple[Var, Expr]]:
        """Operands with their cotangents; sequences item by item."""
        if isinstance(arg, Tuple):
            if isinstance(result, Struct):
                for item, part in zip(arg.items, result.children, strict=True):
                    yield from self._pairs(item, part)
        elif isinstance(arg, Var) and self._is_active(arg):
            expr = expression_of(result)
            if expr is not None:
                yield arg, expr

    def _item(self, stmt: Assign, target: Var, call: Call, totals: tuple[Expr | None, ...]) -> None:
        sequence = call.args[0]
        assert isinstance(sequence, Var) and totals[0] is not None
        bar = self.cotangents.materialize(sequence)
        index = self.residuals.expression(stmt, call.args[1])
        assert isinstance(target.type, (Array, Scalar))
        held = Call(intrinsics.item, (bar, index), (), target.type)
        self.cotangents.emit(Effect(Call(intrinsics.set_item, (bar, index, builders.add(held, totals[0])), ())))

    def popped(self, call: Call, total: Expr) -> None:
        """Reverse `x = items.pop()`: the cotangent goes back to the end of the list."""
        (sequence,) = call.args
        assert isinstance(sequence, Var)
        bar = self.cotangents.materialize(sequence)
        self.cotangents.emit(Effect(Call(intrinsics.append, (bar, total), (), bar.type)))

    def new_list(self, stmt: Assign, target: Var, value: Expr) -> None:
        """Reverse `items = [a, b]`."""
        if not isinstance(value, Call) or value.func is not intrinsics.new_list:
            raise NotDifferentiable("this list cannot be followed backwards", "build it with append", stmt.origin)
        cot = self.cotangents.cotangent(target)
        if cot.empty or not isinstance(target.type, ListOf):
            return
        items: Expr = self.cotangents.materialize(target)
        if self.scopes.is_merge(target):  # before this statement, the name holds another list
            taken = self.cotangents.take(target)
            assert taken is not None
            items = taken.expr
        for k, arg in enumerate(value.args):
            if isinstance(arg, Var) and arg in self.cotangents.active:
                self.cotangents.contribute(arg, Call(intrinsics.item, (items, Const(k)), (), target.type.item))

    def list_effect(self, stmt: Effect) -> None:
        """Reverse `append` and `set_item` of a run-time list."""
        sequence, value = stmt.call.args[0], stmt.call.args[-1]
        assert isinstance(sequence, Var)
        if sequence not in self.cotangents.active or sequence in self.cotangents.shadows:
            return
        bar = self.cotangents.materialize(sequence)
        held = Var(self.names.fresh("item_bar"), value.type)
        if stmt.call.func is intrinsics.append:
            self.cotangents.emit(Assign((held,), Call(intrinsics.pop, (bar,), (), value.type)))
        else:
            index = self.residuals.expression(stmt, stmt.call.args[1])
            self.cotangents.emit(Assign((held,), Call(intrinsics.item, (bar, index), (), value.type)))
            self.cotangents.emit(Effect(Call(intrinsics.set_item, (bar, index, Const(0.0)), ())))
        if isinstance(value, Var) and value in self.cotangents.active:
            self.cotangents.contribute(value, held, owned=True)

    # ---- reads of primal values --------------------------------------------------------------------------------------

    def _primal_reads(
        self, stmt: Assign, out: Var | tuple[Var, ...], block: Block, exprs: list[Expr]
    ) -> tuple[Block, list[Expr]]:
        """Drop operands that are not needed, and replace arrays that are overwritten later by captured copies."""
        outs = out if isinstance(out, tuple) else (out,)
        block = needed(block, exprs)
        reads: set[Var] = set()
        for expr in exprs:
            reads |= traversal.reads_by_kind(expr)[0]
        for inner in traversal.statements(block):
            for header in inner.headers:
                reads |= traversal.reads_by_kind(header)[0]
        replaced: dict[Var, Expr] = {}
        for var in sorted(reads, key=lambda v: v.name):
            if isinstance(var.type, Array) and var in self.scopes.owner:
                kept = self.residuals.result(stmt, var) if var in outs else self.residuals.operand(stmt, var)
                if kept != var:
                    replaced[var] = kept
        if not replaced:
            return block, exprs
        return traversal.substitute_block(block, replaced), [traversal.substitute(expr, replaced) for expr in exprs]

    def _is_active(self, arg: Expr) -> bool:
        return isinstance(arg, Var) and arg in self.cotangents.active

    def _add(self, target: Var, value: Expr, total: Expr) -> None:
        if self._is_active(value):
            assert isinstance(value, Var)
            self.cotangents.contribute(value, self.unbroadcast(total, value, target))

    # ---- shapes ------------------------------------------------------------------------------------------------------

    def unbroadcast(self, term: Expr, like: Var, whole: Var | None = None) -> Expr:
        """Sum a term over the axes along which `like` was broadcast to make `whole`."""
        rank = builders.rank_of(like.type)
        if builders.rank_of(term.type) == 0:
            if rank == 0 or whole is None or builders.rank_of(whole.type) == 0:
                return term
            term = Call(np.full_like, (whole, term), (), whole.type)
        if not isinstance(like.type, Array):
            dtype = term.type.dtype  # type: ignore[union-attr]
            return Call(np.sum, (term,), (), Scalar(dtype, False))
        if whole is None:
            return self._sum_to(term, like)
        return self.summed(term, like, self.shapes.of(whole))

    def summed(self, term: Expr, like: Var, full: Extents) -> Expr:
        """Sum a term with the given extents to the shape of `like`."""
        assert isinstance(like.type, Array)
        axes = self.shapes.summed_axes(full, like)
        if axes is None:
            return self._sum_to(term, like)
        if not axes:
            return term
        lead = len(full) - like.type.rank
        prepended = tuple(axis for axis in axes if axis < lead)
        kept = tuple(axis - lead for axis in axes if axis >= lead)
        if prepended:
            term = _sum(term, prepended, False, like.type)
        if kept:
            term = _sum(term, kept, True, like.type)
        return term

    def _sum_to(self, term: Expr, like: Var) -> Expr:
        assert isinstance(like.type, Array)
        dtype = term.type.dtype  # type: ignore[union-attr]
        return Call(intrinsics.sum_to, (term, like), (), Array(dtype, like.type.rank, "A"))

    def _fitted(self, call: Call, rule: Rule, term: Expr, arg: Var, target: Var) -> Expr:
        """The cotangent of a transpose, summed where the argument was broadcast."""
        rank = builders.rank_of(arg.type)
        if call.func in _BROADCASTS:
            return self.unbroadcast(term, arg, target)
        if builders.rank_of(term.type) != rank or (
            call.func in _BATCHED and max(rank, builders.rank_of(target.type)) > 2
        ):
            dtype = term.type.dtype  # type: ignore[union-attr]
            return self._sum_to(term, arg) if rank else Call(np.sum, (term,), (), Scalar(dtype, False))
        if rank and rule.broadcasts and _count_of_arrays((*call.args, *(value for _, value in call.kwargs))) > 1:
            return self._sum_to(term, arg)
        return term

    def last_written(self, stmt: Store, bar: Var, index: tuple[Index, ...], part: Expr) -> Expr:
        """The cotangent of a store with repeated indices: only the last write to an element counts."""
        positions = [item.type for item in index if not isinstance(item, Slice) and isinstance(item.type, Array)]
        if any(type_.dtype == "bool" for type_ in positions):
            raise NotDifferentiable(
                "a store through a mask beside index arrays may write an element twice",
                "store through index arrays alone (np.nonzero(mask)), or in a loop",
                stmt.origin,
            )
        if len(index) > 1 or positions[0].rank > 1:
            return self._last_written_of_several(bar, index, part)
        (position,) = index
        assert isinstance(position, Var)
        names = self.names
        order = Var(names.fresh("order"), Array("int64", 1, "C"))
        writer = Var(names.fresh("writer"), Array("int64", 1, "C"))
        size = Call(intrinsics.dim, (position, Const(0)), (), INT)
        self.cotangents.emit(Assign((order,), Call(np.arange, (size,), (), order.type)))
        extent = Call(intrinsics.dim, (bar, Const(0)), (), INT)
        self.cotangents.emit(Assign((writer,), Call(np.zeros, (extent, Const(np.int64)), (), writer.type)))
        self.cotangents.emit(Store(writer, (position,), order))
        last = Call(operator.eq, (Load(writer, (position,), order.type), order), (), Array("bool", 1, "C"))
        if isinstance(part.type, Array) and part.type.rank > 1:
            column = Call(
                np.reshape,
                (last, Tuple((Const(-1), *(Const(1),) * (part.type.rank - 1)))),
                (),
                Array("bool", part.type.rank, "C"),
            )
            last = column
        return Call(np.where, (last, part, Const(0.0)), (), part.type)

    def _last_written_of_several(self, bar: Var, index: tuple[Index, ...], part: Expr) -> Expr:
        """Like `last_written`, for an index of several items: the selected elements are numbered in order."""
        names = self.names
        assert isinstance(part.type, Array) and isinstance(bar.type, Array)
        rank = part.type.rank
        held = Var(names.fresh("part"), Array(part.type.dtype, rank, "A"))
        order = Var(names.fresh("order"), Array("int64", rank, "C"))
        writer = Var(names.fresh("writer"), Array("int64", bar.type.rank, "C"))
        self.cotangents.emit(Assign((held,), part))
        count = Call(np.arange, (Call(np.size, (held,), (), INT),), (), Array("int64", 1, "C"))
        shape = Tuple(tuple(Call(intrinsics.dim, (held, Const(axis)), (), INT) for axis in range(rank)))
        self.cotangents.emit(Assign((order,), count if rank == 1 else Call(np.reshape, (count, shape), (), order.type)))
        extents = Tuple(tuple(Call(intrinsics.dim, (bar, Const(axis)), (), INT) for axis in range(bar.type.rank)))
        self.cotangents.emit(Assign((writer,), Call(np.zeros, (extents, Const(np.int64)), (), writer.type)))
        self.cotangents.emit(Store(writer, index, order))
        last = Call(operator.eq, (Load(writer, index, order.type), order), (), Array("bool", rank, "C"))
        return Call(np.where, (last, held, Const(0.0)), (), part.type)


def _cotangent_type(type_: Type) -> Type:
    return Array(type_.dtype, type_.rank, "C") if isinstance(type_, Array) else type_


def _sum(term: Expr, axes: tuple[int, ...], keepdims: bool, like: Array) -> Call:
    axis: Expr = Const(axes[0]) if len(axes) == 1 else Tuple(tuple(Const(axis) for axis in axes))
    kwargs: tuple[tuple[str, Expr], ...] = (("axis", axis),)
    if keepdims:
        kwargs += (("keepdims", Const(True)),)
    return Call(np.sum, (term,), kwargs, Array(term.type.dtype, like.rank, "C"))  # type: ignore[union-attr]
