"""Common subexpression elimination: equal loads and values are shared, and accumulating stores recognized.

`u[i] * u[i]` loads once, so that its derivative is `2.0 * u[i]` and records once; `u[i] = u[i] + x` accumulates, so
that its adjoint reads `u_bar[i]` and leaves it unchanged.  Equal values that a backward sweep recomputes are shared.
"""

from __future__ import annotations

import math
import operator
from collections import Counter
from collections.abc import Hashable, Iterator, Mapping, Set
from dataclasses import replace
from typing import Any

import numpy as np

from tapegen.analysis.activity import is_view
from tapegen.analysis.scopes import Scope, Scopes
from tapegen.analysis.side_effects import Effects
from tapegen.ir import builders, traversal
from tapegen.ir.names import NameSupply
from tapegen.ir.nodes import Assign, Block, Call, Expr, Load, Slice, Stmt, Store, Tuple, Var
from tapegen.ir.types import INT, NARROW_INTEGERS, Array, Scalar, is_floating
from tapegen.rules.registry import rule_of
from tapegen.transform.simplify.dead_code import is_pure

_FUNCTIONS: frozenset[Any] = frozenset(
    getattr(module, name)
    for module in (math, np)
    for name in ("sin", "cos", "tan", "sinh", "cosh", "tanh", "exp", "log", "sqrt")
)


def share_loads(block: Block, effects: Effects, user_names: Set[str], merges: Set[Var]) -> Block:
    """Let equal scalar loads between two writes share one variable, and equal views among the operands of one call.

    Parameters
    ----------
    block : Block
        A lowered block.
    effects : Effects
        What its statements write.
    user_names : set of str
        Variables of the user; their assignments are kept.
    merges : set of Var
        Variables with several values.
    """
    out: list[Stmt] = []
    known: dict[Load, Var] = {}
    same: dict[Var, Var] = {}
    for k, original in enumerate(block):
        stmt = traversal.substitute_block((original,), same)[0] if same else original
        inner = stmt.blocks
        if inner:
            stmt = traversal.with_blocks(stmt, tuple(share_loads(part, effects, user_names, merges) for part in inner))
        parts = traversal.statements((original,)) if inner else (original,)
        written = frozenset().union(*map(effects.written_by, parts))
        assigned = traversal.assigns(original)
        if (
            isinstance(stmt, Assign)
            and isinstance(stmt.value, Load)
            and (isinstance(stmt.value.type, Scalar) or is_view(stmt.value))
            and stmt.targets[0] not in merges
        ):
            earlier = known.get(stmt.value)
            (target,) = stmt.targets
            if (
                earlier is not None
                and target.name not in user_names
                and earlier.type == target.type
                and (isinstance(target.type, Scalar) or _read_together(block[k + 1 :], earlier, target))
            ):
                same[target] = earlier
                continue
            known[stmt.value] = target
        if written or assigned:
            known = {
                load: var
                for load, var in known.items()
                if not effects.roots(load.array) & written
                and (var not in assigned or var in _targets(stmt))
                and not (traversal.free_vars(load) & assigned)
            }
        out.append(stmt)
    return tuple(out)


def _read_together(block: Block, first: Var, second: Var) -> bool:
    """Whether the first statement that reads one view reads an equal one too.

    Not all equal views are shared: the contributions of the operands of a stencil are gathered best one by one.
    """
    return next((first in traversal.reads(stmt) for stmt in block if second in traversal.reads(stmt)), False)


def share_values(block: Block, live_out: Set[Var], user_names: Set[str]) -> Block:
    """Let equal scalars that a backward sweep recomputes share one variable.

    Parameters
    ----------
    block : Block
        A backward sweep.
    live_out : set of Var
        Vars that are read after it.
    user_names : set of str
        Variables of the user; their assignments are kept.
    """
    made = [stmt.value for stmt in traversal.statements(block) if isinstance(stmt, Assign) and _is_number(stmt.value)]
    if len(set(made)) == len(made):
        return block
    changing = _changing(block)
    reads = Counter([var for stmt in block for var in traversal.occurring(stmt)])

    def shared(block: Block, around: Mapping[Expr, Var]) -> Block:
        out: list[Stmt] = []
        known = dict(around)
        same: dict[Var, Expr] = {}
        for k, original in enumerate(block):
            stmt = traversal.substitute_block((original,), same)[0] if same else original
            if inner := stmt.blocks:
                stmt = traversal.with_blocks(stmt, tuple([shared(part, known) for part in inner]))
            elif isinstance(stmt, Assign) and _is_steady(stmt, changing):
                (target,) = stmt.targets
                earlier = known.setdefault(stmt.value, target)
                if earlier is not target and earlier.type == target.type and target.name not in user_names:
                    here = sum(traversal.occurring(later).count(target) for later in block[k + 1 :])
                    if here == reads[target] and target not in live_out:
                        same[target] = earlier
                        continue
            out.append(stmt)
        return tuple(out)

    return shared(block, {})


def _changing(block: Block) -> set[Var]:
    """Variables that have several values: of several statements, or one on entry and one that is assigned."""
    found: set[Var] = set()
    seen: set[Var] = set()
    for stmt in traversal.statements(block):
        if isinstance(stmt, Assign):
            seen |= traversal.reads(stmt)
        else:
            seen.update(*map(traversal.free_vars, stmt.headers))
        defined = stmt.targets
        found.update([var for var in defined if var in seen])
        seen.update(defined)
    return found


def _is_steady(stmt: Assign, changing: Set[Var]) -> bool:
    """Whether a statement computes a scalar from other scalars, all of which have a single value."""
    value = stmt.value
    return (
        _is_number(value)
        and is_pure(value)
        and not traversal.loads(value)
        and changing.isdisjoint(stmt.targets)
        and all(isinstance(var.type, Scalar) and var not in changing for var in traversal.free_vars(value))
    )


def _is_number(value: Expr) -> bool:
    return isinstance(value, Call) and isinstance(value.type, Scalar) and isinstance(value.func, Hashable)


def _targets(stmt: Stmt) -> tuple[Var, ...]:
    return stmt.targets if isinstance(stmt, Assign) else ()


def accumulations(block: Block, effects: Effects) -> Block:
    """Write `t = a[i]; t_1 = t + x; a[i] = t_1` as `a[i] += x`, where nothing else reads t and t_1.

    Parameters
    ----------
    block : Block
        The body of a lowered function.
    effects : Effects
        What its statements write.
    """
    reads = Counter([var for stmt in block for var in traversal.occurring(stmt)])
    return _accumulated(block, effects, reads)


def _accumulated(block: Block, effects: Effects, reads: Counter[Var]) -> Block:
    out: list[Stmt] = []
    for stmt in block:
        inner = stmt.blocks
        if inner:
            stmt = traversal.with_blocks(stmt, tuple(_accumulated(part, effects, reads) for part in inner))
        elif isinstance(stmt, Store) and not stmt.accumulate and isinstance(stmt.value, Var) and reads[stmt.value] == 1:
            stmt = _accumulation(out, stmt, effects, reads)
        out.append(stmt)
    return tuple(out)


def _accumulation(before: list[Stmt], stmt: Store, effects: Effects, reads: Counter[Var]) -> Store:
    """The store as an accumulating one if it adds to what it overwrites; its load and sum are removed from `before`."""
    added = _definition(before, stmt.value)
    if added is None or not isinstance(before[added], Assign):
        return stmt
    total = before[added].value  # type: ignore[union-attr]
    if not isinstance(total, Call) or total.func not in (operator.add, operator.sub):
        return stmt
    for position in (0, 1) if total.func is operator.add else (0,):
        held, other = total.args[position], total.args[1 - position]
        loaded = _definition(before, held)
        if loaded is None or held == other or reads[held] != 1:  # type: ignore[index]
            continue
        load = before[loaded].value  # type: ignore[union-attr]
        if not isinstance(load, Load) or (load.array, load.index) != (stmt.array, stmt.index):
            continue
        if any(isinstance(item.type, Array) for item in load.index if not isinstance(item, Slice)):
            continue  # with a repeated index it would add more than once
        if load.type != total.type and builders.rank_of(load.type) != builders.rank_of(total.type):
            continue
        roots = effects.roots(stmt.array)
        between = [part for k in range(loaded, len(before)) for part in traversal.statements((before[k],))]
        if any(effects.written_by(part) & roots for part in between):
            continue
        value: Expr = other
        dtype = stmt.array.type.dtype  # type: ignore[union-attr]
        if not is_floating(stmt.array.type) and getattr(total.type, "dtype", dtype) != dtype:
            continue  # what is stored is the sum as an integer, which may be out of bounds
        if total.func is operator.sub:
            if other.type == INT and dtype in NARROW_INTEGERS:
                continue  # the negative of it might be out of bounds
            value = Var(held.name, other.type)  # type: ignore[union-attr]
            before[added] = Assign((value,), Call(operator.neg, (other,), (), other.type), before[added].origin)
        else:
            del before[added]
        del before[loaded]
        return replace(stmt, value=value, accumulate=True)
    return stmt


def _definition(before: list[Stmt], value: Expr) -> int | None:
    for k in range(len(before) - 1, -1, -1):
        stmt = before[k]
        if isinstance(stmt, Assign) and stmt.targets == (value,):
            return k
    return None


def split_merges(block: Block, merges: Set[Var], names: NameSupply) -> Block:
    """Rename a result that its derivative may read: `x = exp(x)` becomes `x_1 = exp(x); x = x_1`.

    In the backward sweep `x` means the value at the start of the iteration.
    """
    out: list[Stmt] = []
    for stmt in block:
        inner = stmt.blocks
        if inner:
            stmt = traversal.with_blocks(stmt, tuple(split_merges(part, merges, names) for part in inner))
        elif isinstance(stmt, Assign) and _reads_result(stmt) and not merges.isdisjoint(stmt.targets):
            fresh = tuple(Var(names.fresh(t.name), t.type) if t in merges else t for t in stmt.targets)
            out.append(Assign(fresh, stmt.value, stmt.origin))
            moved = [(t, new) for t, new in zip(stmt.targets, fresh, strict=True) if t != new]
            targets, values = tuple(t for t, _ in moved), tuple(new for _, new in moved)
            stmt = Assign(targets, values[0] if len(values) == 1 else Tuple(values), stmt.origin)
        out.append(stmt)
    return tuple(out)


def _reads_result(stmt: Assign) -> bool:
    """Whether a derivative may need both the result and the previous value of one variable."""
    if not isinstance(stmt.value, Call):
        return False
    rule = rule_of(stmt.value.func)
    return (rule is not None and rule.reads("out")) or not traversal.free_vars(stmt.value).isdisjoint(stmt.targets)


class Known:
    """Function values that a block computes anyway: next to `cos(x)` the derivative of `sin(x)` is free."""

    def __init__(self, scopes: Scopes) -> None:
        self.scopes = scopes
        self._found: dict[Scope, dict[tuple[str, tuple[Expr, ...]], Var]] = {}

    def looked_up(self, expr: Expr, scope: Scope) -> Expr:
        """An expression of the adjoint of a statement, with calls replaced by values that the block computes."""
        if scope not in self._found:
            self._found[scope] = dict(self._values(scope))
        found = self._found[scope]
        if not found:
            return expr

        def change(part: Expr) -> Expr:
            if isinstance(part, Call) and (key := _signature(part)) in found:
                value = found[key]
                return value if value.type.dtype == part.type.dtype else part  # type: ignore[union-attr]
            return part

        return traversal.map_expr(expr, change)

    def _values(self, scope: Scope) -> Iterator[tuple[tuple[str, tuple[Expr, ...]], Var]]:
        for stmt in scope.block:
            if isinstance(stmt, Assign) and len(stmt.targets) == 1 and isinstance(stmt.value, Call):
                key = _signature(stmt.value)
                if key is not None and not self.scopes.is_merge(stmt.targets[0]):
                    yield key, stmt.targets[0]


def _signature(call: Call) -> tuple[str, tuple[Expr, ...]] | None:
    """The name and the operands of a function of scalars that has the same name in `math` and NumPy.

    An array without axes is not a scalar: a store between two calls may have changed it.
    """
    if call.func not in _FUNCTIONS or not all(isinstance(part.type, Scalar) for part in (call, *call.args)):
        return None
    return call.func.__name__, call.args
