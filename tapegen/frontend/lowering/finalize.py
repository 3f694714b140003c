"""SSA finalization: resolves phis, orders latches, removes dead code and assigns final names."""

from __future__ import annotations

import operator
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

from tapegen.errors import Span
from tapegen.frontend.lowering.temporary_names import TemporaryNames
from tapegen.frontend.values.context import Builder, Context, OpenIf, OpenLatch, OpenLoop
from tapegen.ir import builders, intrinsics, traversal
from tapegen.ir.dead_code import remove_dead
from tapegen.ir.names import TEMPORARY, NameSupply
from tapegen.ir.nodes import Assign, Block, Call, Comment, Const, Expr, For, If, Load, Stmt, Store, Tuple, Var, While
from tapegen.ir.types import BOOL, is_floating


@dataclass(slots=True)
class Finished:
    """The statements of a program, and the final Var of each Var that was used while lowering."""

    body: Block
    names: dict[Var, Var]

    def rename(self, node: Any) -> Any:
        return traversal.substitute(node, self.names)


def finish(
    cx: Context, builder: Builder, results: Iterable[Expr], params: Sequence[Var], supply: NameSupply
) -> Finished:
    """Close all blocks, remove dead code, and assign names in program order."""
    closer = _Closer(cx)
    closed = closer.block(builder)
    kept = [closer.resolve(result) for result in results]
    ends = cx.sweep_ends == (id(builder), len(builder.items))  # the last derivative ends the program
    closed = _without_dead(closed, kept, cx.sweep if ends else None)
    assigned = Counter(_defined(closed))
    reads = _reads(closed, kept)
    closed = _coalesced(closed, closer.firsts, {var for var in reads if reads[var] == assigned[var] == 1})
    supply.reserve(var.name for var in reads.keys() - assigned.keys() - set(params))  # names of the surrounding program
    final: dict[Var, Var] = {}
    for var in params:
        _name(var, supply, final)
    titles = cx.symbols.titles
    temporaries = None if cx.rules else TemporaryNames(closed, titles)  # operands of rules have names of their own
    for var in _defined(closed):
        _name(var, supply, final, titles.get(var), temporaries)
    return Finished(traversal.rename_block(closed, final), final)


def resolved(cx: Context, node: Any) -> Any:
    """An expression with all substitutions applied."""
    return _Closer(cx).resolve(node)


@dataclass(slots=True)
class _Closer:
    cx: Context
    firsts: set[Stmt] = field(default_factory=set)  # first values of carried variables
    _final: dict[Var, Expr] = field(default_factory=dict)

    def resolve(self, node: Any) -> Any:
        if not self.cx.symbols.substitution:
            return node
        return traversal.map_expr(node, self._replace)

    def _replace(self, part: Any) -> Any:
        if not isinstance(part, Var) or part not in self.cx.symbols.substitution:
            return part
        if part not in self._final:
            self._final[part] = self.resolve(self.cx.symbols.substitution[part])
        return self._final[part]

    def block(self, builder: Builder) -> Block:
        out: list[Stmt] = []
        for item in builder.items:
            match item:
                case OpenIf():
                    out.append(self._if(item))
                case OpenLoop():
                    out.append(self._loop(item))
                case OpenLatch(pairs, origin, True):
                    firsts = [Assign((var,), self.resolve(value), origin) for var, value in pairs]
                    self.firsts.update(firsts)
                    out.extend(firsts)
                case OpenLatch(pairs, origin):
                    pairs = [(var, self.resolve(value)) for var, value in pairs]
                    self._latch(out, [(var, value) for var, value in pairs if var != value], origin)
                case Store(array) if not isinstance(held := self.resolve(array), Var):
                    out.append(Assign((array,), held, item.origin))  # the placeholder of an array that no path has
                    index = tuple(self.resolve(part) for part in item.index)
                    out.append(Store(array, index, self.resolve(item.value), item.accumulate, item.origin))
                case _:
                    out.append(traversal.map_headers(item, self.resolve))
        return tuple(out)

    def _if(self, item: OpenIf) -> Stmt:
        test, body, orelse = self.resolve(item.test), self.block(item.body), self.block(item.orelse)
        if isinstance(test, Call) and test.func is operator.not_ and orelse:
            test, body, orelse = test.args[0], orelse, body
        flag = _flag(test, body, orelse)
        return If(test, body, orelse, item.origin) if flag is None else flag

    def _loop(self, item: OpenLoop) -> Stmt:
        body = self.block(item.body)
        if item.target is None:
            return While(self.resolve(item.test), body, item.origin)
        assert item.bounds is not None
        start, stop, step = (self.resolve(part) for part in item.bounds)
        return For(item.target, start, stop, step, body, item.origin)

    # ---- latches -----------------------------------------------------------------------------------------------------

    def _latch(self, out: list[Stmt], pairs: list[tuple[Var, Expr]], origin: Span | None) -> None:
        """Sequentialize parallel assignments of carried variables: none is read after it is written."""
        waiting = self._sunk(out, pairs)
        while waiting:
            for pair in waiting:
                others = [value for var, value, _ in waiting if var != pair[0]]
                if not any(pair[0] in traversal.free_vars(value) for value in others):
                    out.append(Assign((pair[0],), pair[1], pair[2] or origin))
                    waiting.remove(pair)
                    break
            else:
                targets = tuple(var for var, _, _ in waiting)
                out.append(Assign(targets, Tuple(tuple(value for _, value, _ in waiting)), origin))
                return

    def _sunk(self, out: list[Stmt], pairs: list[tuple[Var, Expr]]) -> list[tuple[Var, Expr, Span | None]]:
        """`s_1 = s + t` and the latch `s = s_1` become `s = s + t` where nothing else reads `s_1`."""
        reads: Counter[Var] = Counter()
        for _, value in pairs:
            reads.update(traversal.free_vars(value))
        carried = {var for var, _ in pairs}
        sunk: dict[Var, tuple[Expr, Span | None]] = {}
        for k in range(len(out) - 1, -1, -1):
            stmt = out[k]
            if not isinstance(stmt, Assign) or len(stmt.targets) != 1:
                break
            (target,) = stmt.targets
            free = traversal.free_vars(stmt.value)
            wanted = [var for var, value in pairs if value == target]
            if (
                len(wanted) == 1
                and reads[target] == 1
                and wanted[0].type == target.type
                and not (free & (carried - {wanted[0]}))
                and _movable(stmt.value)
            ):
                sunk[target] = (stmt.value, stmt.origin)
                del out[k]
            reads.update(free)
        return [
            (var, *sunk.get(value, (value, None))) if isinstance(value, Var) else (var, value, None)
            for var, value in pairs
        ]


def _flag(test: Expr, body: Block, orelse: Block) -> Assign | None:
    """`if test: x = True` and `else: x = False` as `x = test`; None where a branch does anything else."""
    match body, orelse:
        case (Assign((var,), Const(bool() as here), origin),), (Assign((other,), Const(bool() as there)),):
            if var == other and here != there and test.type == var.type == BOOL:
                return Assign((var,), test if here else builders.not_(test), origin)
    return None


def _movable(value: Expr) -> bool:
    """Whether a computation without side effects may be sunk past other computations."""
    return isinstance(value, Load) or (isinstance(value, Call) and not intrinsics.changes(value.func))


# ---- first values --------------------------------------------------------------------------------------------


def _reads(body: Block, results: Sequence[Expr]) -> Counter[Var]:
    """The number of reads of each Var."""
    counts = Counter([var for stmt in body for var in traversal.occurring(stmt)])
    counts.update([var for result in results for var in traversal.occurrences(result)])
    return counts


def _coalesced(body: Block, firsts: set[Stmt], single: set[Var]) -> Block:
    """`s = 0.0` and the first value `s_1 = s` of a carried variable become `s_1 = 0.0`.

    `single` are the Vars that are assigned once and read once.
    """
    out: list[Stmt] = []
    defined: dict[Var, int] = {}
    for stmt in body:
        if stmt in firsts and isinstance(stmt, Assign) and isinstance(stmt.value, Var):
            (target,), value = stmt.targets, stmt.value
            made = out[defined[value]] if value in defined and value in single else None
            if isinstance(made, Assign) and (value.type == target.type or isinstance(made.value, Const)):
                out[defined.pop(value)] = Assign((target,), made.value, made.origin)
                continue
        if isinstance(stmt, Assign) and len(stmt.targets) == 1:
            defined[stmt.targets[0]] = len(out)
        inner = stmt.blocks
        if inner:
            stmt = traversal.with_blocks(stmt, tuple(_coalesced(block, firsts, single) for block in inner))
        out.append(stmt)
    return tuple(out)


# ---- dead code -------------------------------------------------------------------------------------------------------


def _without_dead(body: Block, results: Sequence[Expr], sweep: Comment | None) -> Block:
    """Drop dead moves of values and constants (unused phis), and the sweep comments of other derivatives."""

    def may_go(stmt: Stmt) -> bool:
        if isinstance(stmt, Assign):
            return _is_move(stmt.value)
        if isinstance(stmt, If):
            return not traversal.may_raise(stmt.test)
        return isinstance(stmt, Comment) and stmt is not sweep

    return remove_dead(body, set().union(*map(traversal.free_vars, results)), may_go)


def _is_move(value: Expr) -> bool:
    """Whether a computation can be removed without an effect."""
    if isinstance(value, Tuple):
        return all(map(_is_move, value.items))
    if isinstance(value, (Var, Const)):
        return True
    if not isinstance(value, Call):
        return False
    return value.func is intrinsics.dim or _is_integer_arithmetic(value)


def _is_integer_arithmetic(value: Call) -> bool:
    simple = (operator.add, operator.sub, operator.mul, operator.neg, operator.not_, bool, float)
    return value.func in simple and not is_floating(value.type) and all(map(_is_move, value.args))


def surroundings(body: Block, values: Sequence[Expr], own: Iterable[Var]) -> dict[Var, None]:
    """The free variables of an outlined program with parameters `own`, which belong to the surrounding program."""
    defined = {*_defined(body), *own}
    headers = [header for stmt in traversal.statements(body) for header in stmt.headers]
    parts = (part for node in (*headers, *values) for part in traversal.subexpressions(node))
    return {part: None for part in parts if isinstance(part, Var) and part not in defined}


# ---- names ---------------------------------------------------------------------------------------------------------


def _defined(body: Block) -> Iterator[Var]:
    for stmt in traversal.statements(body):
        yield from stmt.targets


def _name(
    var: Var,
    supply: NameSupply,
    final: dict[Var, Var],
    title: str | None = None,
    temporaries: TemporaryNames | None = None,
) -> None:
    base, mark, _ = var.name.partition("#")
    if mark and var not in final:
        base = title or base
        described = temporaries.of(var) if temporaries is not None and base == TEMPORARY else None
        final[var] = Var(supply.fresh(base) if described is None else supply.fresh_temporary(described), var.type)
