"""IR verifier: checks the invariants of a lowered program (`tapegen.ir`).

Reading and rewriting of IR is in `tapegen.ir.traversal`.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from tapegen.ir import traversal
from tapegen.ir.nodes import (
    Assign,
    Block,
    Break,
    Call,
    Const,
    Continue,
    Effect,
    Expr,
    For,
    Function,
    If,
    Load,
    Raise,
    Return,
    Slice,
    Stmt,
    Tuple,
    Var,
    While,
)
from tapegen.ir.printer import block_text, expr_text
from tapegen.ir.types import BOOL, ListOf, Type, is_floating


class BrokenInvariant(AssertionError):
    """A program that violates an invariant of lowering."""


def check(function: Function) -> None:
    """Check a lowered program.

    Raises
    ------
    BrokenInvariant
        Naming the invariant and the statement.
    """
    if not function.body or not isinstance(function.body[-1], Return):
        raise BrokenInvariant("1: the body does not end in Return")
    checker = _Checker(function)
    scope = {param.name for param in function.params}
    for param in function.params:
        checker.typed(param)
    checker.block(function.body, scope, None)
    checker.merges()


@dataclass(frozen=True, slots=True)
class _Where:
    """The position of an Assign: its block, the position there, and the statements and blocks around it."""

    block: Block
    position: int
    around: tuple[tuple[Stmt, Block, int], ...]  # (statement, the block it stands in, its position), innermost first

    @property
    def enclosing(self) -> tuple[Stmt, ...]:
        return tuple(stmt for stmt, _, _ in self.around)


@dataclass(slots=True)
class _Checker:
    function: Function
    types: dict[str, Type] = field(default_factory=dict)
    assigns: dict[str, list[_Where]] = field(default_factory=lambda: defaultdict(list))

    def fail(self, number: int, reason: str, stmt: Stmt | None = None) -> None:
        text = f"\n{block_text((stmt,))}" if stmt is not None else ""
        raise BrokenInvariant(f"{number}: {reason}{text}")

    def typed(self, var: Var) -> None:
        if "#" in var.name:
            self.fail(2, f"{var.name} has no final name")
        if self.types.setdefault(var.name, var.type) != var.type:
            self.fail(2, f"{var.name} has two types: {self.types[var.name]} and {var.type}")

    # ---- statements --------------------------------------------------------------------------------------------------

    def block(
        self, block: Block, scope: set[str], loop: Stmt | None, around: tuple[tuple[Stmt, Block, int], ...] = ()
    ) -> None:
        """Check a block; its definitions are added to `scope`."""
        for k, stmt in enumerate(block):
            last = k == len(block) - 1
            if isinstance(stmt, (Break, Continue)) and (not last or loop is None):
                self.fail(4, "an escape that is not at the end of a block in a loop", stmt)
            if isinstance(stmt, Return) and (around or not last):
                self.fail(1, "Return inside the program", stmt)
            if isinstance(stmt, If) and not last and (_escapes(stmt.body) or _escapes(stmt.orelse)):
                self.fail(4, "statements after an If with an escaping branch", stmt)
            self.reads(stmt, scope)
            self.atoms(stmt)
            inner = ((stmt, block, k), *around)
            match stmt:
                case Assign(targets):
                    for target in targets:
                        self.typed(target)
                        self.assigns[target.name].append(_Where(block, k, around))
                        scope.add(target.name)
                case For(target, body=body):
                    self.typed(target)
                    self.assigns[target.name].append(_Where(block, k, around))
                    self.block(body, {*scope, target.name}, stmt, inner)
                case While(body=body):
                    self.block(body, set(scope), stmt, inner)
                case If(_, body, orelse):
                    first, second = set(scope), set(scope)
                    self.block(body, first, loop, inner)
                    self.block(orelse, second, loop, inner)
                    ends = [s for s, part in ((first, body), (second, orelse)) if _falls(part)]
                    joined = set.intersection(*ends) if ends else scope
                    scope |= {name for name in joined if len(self.assigns.get(name, ())) > 1 or len(ends) == 1}

    def reads(self, stmt: Stmt, scope: set[str]) -> None:
        for header in stmt.headers:
            for var in traversal.free_vars(header):
                if var.name not in scope:
                    self.fail(3, f"{var.name} is read where it is not defined", stmt)
                self.typed(var)

    # ---- atoms -------------------------------------------------------------------------------------------------------

    def atoms(self, stmt: Stmt) -> None:
        match stmt:
            case If() | While() | Raise():
                return  # conditions and messages are not split into atoms
            case Effect(Call(args=args)):
                exprs: Iterator[Any] = iter(args)
            case Assign(_, value):
                self.inside(value, stmt)
                return
            case _:
                exprs = iter(stmt.headers)
        for expr in exprs:
            if _floats(expr) and not isinstance(expr, (Var, Const, Tuple)):
                self.fail(5, f"{expr_text(expr)} has no name of its own", stmt)
            self.inside(expr, stmt)

    def inside(self, expr: Expr | Slice, stmt: Stmt) -> None:
        """Check the operands of a computation; conditions are not split into atoms."""
        if getattr(expr, "type", None) == BOOL:
            return
        for part in traversal.parts(expr):
            if _floats(expr) and not isinstance(expr, Load) and not _is_atom(part):
                self.fail(5, f"{expr_text(part)} is an operand of a floating call", stmt)
            if _floats(part) and not _is_atom(part) and not isinstance(part, Slice):
                self.fail(5, f"{expr_text(part)} has no name of its own", stmt)
            self.inside(part, stmt)

    # ---- phis --------------------------------------------------------------------------------------------------------

    def merges(self) -> None:
        params = {param.name for param in self.function.params}
        for name, places in self.assigns.items():
            if name in params:
                self.fail(3, f"the parameter {name} is assigned")
            if len(places) > 1 and not (self.is_carried(name, places) or self.is_joined(places)):
                self.fail(3, f"the assignments of {name} are neither those of a loop nor those of an If")

    def is_carried(self, name: str, places: list[_Where]) -> bool:
        """Whether a phi is assigned once before a loop, then at the ends of paths through its body."""
        first, *rest = places
        loops = [s for s in first.block[first.position + 1 :] if isinstance(s, (For, While))]
        for loop in loops:
            if all(loop in where.enclosing and self.ends_path(where, loop) for where in rest):
                return self.once_a_path(name, loop.body)
        return False

    def ends_path(self, where: _Where, loop: Stmt) -> bool:
        """Whether only other moves follow up to the end of the body."""
        if not _only_moves(where.block[where.position + 1 :]):
            return False
        for stmt, block, position in where.around:
            if stmt is loop:
                return True
            if not isinstance(stmt, If) or not _only_moves(block[position + 1 :]):
                return False
        return False

    def once_a_path(self, name: str, block: Block) -> bool:
        return _most_assigned(name, block) <= 1

    def is_joined(self, places: list[_Where]) -> bool:
        """Whether a phi is assigned once at the end of each branch of one If that falls through."""
        if len(places) != 2:
            return False
        owners = [where.enclosing[0] if where.enclosing else None for where in places]
        stmt = owners[0]
        if not isinstance(stmt, If) or owners[1] is not stmt:
            return False
        if {id(where.block) for where in places} != {id(stmt.body), id(stmt.orelse)}:
            return False
        return all(_only_moves(where.block[where.position + 1 :]) for where in places)


def _most_assigned(name: str, block: Block) -> int:
    count = 0
    for stmt in block:
        match stmt:
            case Assign(targets):
                count += any(target.name == name for target in targets)
            case If(_, body, orelse):
                count += max(_most_assigned(name, body), _most_assigned(name, orelse))
    return count


def _only_moves(block: Block) -> bool:
    return all(isinstance(stmt, (Assign, Break, Continue)) for stmt in block)


def _escapes(block: Block) -> bool:
    """Whether some path through a block ends in Break or Continue of the loop around it."""
    if not block:
        return False
    last = block[-1]
    if isinstance(last, (Break, Continue)):
        return True
    return isinstance(last, If) and (_escapes(last.body) or _escapes(last.orelse))


def _falls(block: Block) -> bool:
    """Whether some path reaches the end of a block."""
    if not block:
        return True
    last = block[-1]
    if isinstance(last, (Break, Continue, Raise)):
        return False
    return not isinstance(last, If) or _falls(last.body) or _falls(last.orelse)


def _floats(expr: object) -> bool:
    type_ = getattr(expr, "type", None)
    return type_ is not None and is_floating(type_) and not isinstance(type_, ListOf)


def _is_atom(expr: object) -> bool:
    if isinstance(expr, Tuple):
        return all(_is_atom(item) or not _floats(item) for item in expr.items)
    return isinstance(expr, (Var, Const)) or not _floats(expr)
