"""Iteration domains and schedule: enclosing loops, execution order and guarding conditions of statements."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal

from tapegen.ir import traversal
from tapegen.ir.nodes import (
    Assign,
    Block,
    Break,
    Continue,
    Expr,
    For,
    Function,
    If,
    Raise,
    Return,
    Stmt,
    Tuple,
    Var,
    While,
)

Order = Literal["before", "same", "after", "exclusive"]


@dataclass(frozen=True, eq=False, slots=True)
class Site:
    """The schedule position of a statement (of a compound statement: of its header).

    Attributes
    ----------
    loops : tuple of Stmt
        The loops in which it runs, outermost first.  The test of a While runs inside that loop.
    path : tuple of (branch, position)
        The path from the function body to the statement.
    guards : tuple of (test, sense, site)
        Conditions that hold when it runs, evaluated at `site`.
    """

    stmt: Stmt
    loops: tuple[Stmt, ...]
    path: tuple[tuple[int, int], ...]
    guards: tuple[tuple[Expr, bool, Site], ...]

    def order(self, other: Site) -> Order:
        """Execution order relative to `other`, within one iteration of all common loops."""
        for (branch, k), (other_branch, other_k) in zip(self.path, other.path):
            if branch != other_branch:
                return "exclusive"
            if k != other_k:
                return "before" if k < other_k else "after"
        if len(self.path) == len(other.path):
            return "same"
        return "before" if len(self.path) < len(other.path) else "after"  # headers run before their blocks

    def common_loops(self, other: Site) -> tuple[Stmt, ...]:
        """The loops around both, outermost first."""
        count = 0
        for mine, theirs in zip(self.loops, other.loops):
            if mine is not theirs:
                break
            count += 1
        return self.loops[:count]


@dataclass(frozen=True, eq=False, slots=True)
class Definition:
    """One assignment of a variable; `value` is None where it is an item of a multi-valued result."""

    site: Site
    value: Expr | None


@dataclass(slots=True)
class Sites:
    """All sites of a function, and the definitions of its variables."""

    params: frozenset[Var]
    at: dict[Stmt, Site] = field(default_factory=dict)
    tests: dict[Stmt, Site] = field(default_factory=dict)  # where a While evaluates its test
    definitions: dict[Var, list[Definition]] = field(default_factory=dict)
    counted: dict[Var, list[For]] = field(default_factory=dict)  # the loops that have a variable as their counter

    def counting(self, var: Var, site: Site) -> For | None:
        """The enclosing loop whose counter a variable is, if the loop body does not assign the variable."""
        if var in self.definitions or var in self.params:
            return None
        counted = self.counted.get(var, ())
        around = [loop for loop in counted if loop in site.loops]
        if len(around) != 1 or any(around[0] in self.at[loop].loops for loop in counted):
            return None
        return around[0]

    def header(self, stmt: Stmt) -> Site | None:
        """Where a statement evaluates its own expressions; None for a statement of another function."""
        return self.tests.get(stmt) or self.at.get(stmt)


def sites_of(function: Function) -> Sites:
    """Find the sites and definitions of a lowered function."""
    sites = Sites(frozenset(function.params))
    _block(sites, function.body, 0, (), (), ())
    return sites


def _block(
    sites: Sites,
    block: Block,
    branch: int,
    loops: tuple[Stmt, ...],
    path: tuple[tuple[int, int], ...],
    guards: tuple[tuple[Expr, bool, Site], ...],
) -> None:
    for k, stmt in enumerate(block):
        site = Site(stmt, loops, (*path, (branch, k)), guards)
        sites.at[stmt] = site
        if isinstance(stmt, Assign):
            several = len(stmt.targets) > 1 and not isinstance(stmt.value, Tuple)
            for target, value in traversal.pairs(stmt):
                sites.definitions.setdefault(target, []).append(Definition(site, None if several else value))
            continue
        match stmt:
            case If(test, body, orelse):
                _block(sites, body, 0, loops, site.path, (*guards, (test, True, site)))
                _block(sites, orelse, 1, loops, site.path, (*guards, (test, False, site)))
                if escapes(body):
                    guards = (*guards, (test, False, site))
                if escapes(orelse):
                    guards = (*guards, (test, True, site))
            case For() | While():
                if isinstance(stmt, For):
                    sites.counted.setdefault(stmt.target, []).append(stmt)
                else:
                    sites.tests[stmt] = Site(stmt, (*loops, stmt), (*site.path, (0, -1)), guards)
                _block(sites, stmt.body, 0, (*loops, stmt), site.path, guards)


def escapes(block: Block) -> bool:
    """Whether the end of a block is unreachable."""
    if not block:
        return False
    match block[-1]:
        case Break() | Continue() | Raise() | Return():
            return True
        case If(_, body, orelse):
            return escapes(body) and escapes(orelse)
    return False
