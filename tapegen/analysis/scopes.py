"""Scopes: the block that owns each value of a program, and loop-carried values."""

from __future__ import annotations

from dataclasses import dataclass, field

from tapegen.ir.nodes import Assign, Block, Break, For, Function, If, Stmt, Var, While


@dataclass(eq=False, slots=True)
class Scope:
    """One block of the program: the function body, a loop body or a branch."""

    parent: Scope | None
    header: Stmt | None  # the For, While or If the block belongs to
    block: Block
    branch: int = 0  # 0: body, 1: orelse
    carried: set[Var] = field(default_factory=set)  # loop body: phis, with their value at the start of the iteration
    chain: tuple[Scope, ...] = field(init=False)  # this scope and the ones around it, innermost first
    is_loop: bool = field(init=False)
    in_loop: bool = field(init=False)
    in_branch: bool = field(init=False)

    def __post_init__(self) -> None:
        outer = self.parent
        self.chain = (self,) if outer is None else (self, *outer.chain)
        self.is_loop = isinstance(self.header, (For, While))
        self.in_loop = self.is_loop or (outer is not None and outer.in_loop)
        self.in_branch = isinstance(self.header, If) or (outer is not None and outer.in_branch)

    def within(self, outer: Scope) -> bool:
        return outer in self.chain


@dataclass(slots=True)
class Scopes:
    """Facts of `scopes_of`.

    Attributes
    ----------
    root : Scope
        The function body.
    body, orelse : dict
        The scope of the block(s) of a For, While or If.
    at : dict
        The scope of a statement.
    owner : dict
        The scope in which a Var is defined.  A phi belongs to the scope that holds its loop or If; inside the loop it
        is in `Scope.carried`.
    """

    root: Scope
    body: dict[Stmt, Scope] = field(default_factory=dict)
    orelse: dict[Stmt, Scope] = field(default_factory=dict)
    at: dict[Stmt, Scope] = field(default_factory=dict)
    owner: dict[Var, Scope] = field(default_factory=dict)
    assigns: dict[Var, list[Assign]] = field(default_factory=dict)
    breaks: set[Stmt] = field(default_factory=set)  # loops that a Break leaves

    def is_merge(self, var: Var) -> bool:
        return len(self.assigns.get(var, ())) > 1

    def owner_seen_from(self, var: Var, scope: Scope) -> Scope:
        """The scope whose value of `var` a read in `scope` sees."""
        owner = self.owner[var]
        for inner in scope.chain:
            if inner is owner:
                return owner
            if var in inner.carried:
                return inner
        return owner


def scopes_of(function: Function) -> Scopes:
    """Find scopes, owners, loop-carried phis and loops with breaks."""
    root = Scope(None, None, function.body)
    facts = Scopes(root)
    for param in function.params:
        facts.owner[param] = root
    _visit(root, facts, None)
    for var, assigns in facts.assigns.items():
        places = [facts.at[stmt] for stmt in assigns]
        if var in facts.owner:  # a parameter that is also a phi
            places.append(root)
        owner = places[0]
        for place in places[1:]:
            owner = _common(owner, place)
        if len(places) > 1 and all(place is not owner for place in places):
            # joined: every Assign is in a branch; the owner holds the If
            while owner.header is not None and any(place is owner for place in places):
                owner = owner.parent  # type: ignore[assignment]
        facts.owner[var] = owner
        for place in places:
            for scope in place.chain:
                if scope is owner:
                    break
                if scope.is_loop:
                    scope.carried.add(var)
    return facts


def _common(a: Scope, b: Scope) -> Scope:
    around = set(map(id, a.chain))
    return next(scope for scope in b.chain if id(scope) in around)


def _visit(scope: Scope, facts: Scopes, loop: Stmt | None) -> None:
    for stmt in scope.block:
        facts.at[stmt] = scope
        if isinstance(stmt, Assign):
            for target in stmt.targets:
                facts.assigns.setdefault(target, []).append(stmt)
            continue
        match stmt:
            case For() | While():
                inner = Scope(scope, stmt, stmt.body)
                facts.body[stmt] = inner
                if isinstance(stmt, For):
                    facts.owner[stmt.target] = inner
                _visit(inner, facts, stmt)
            case If(_, body, orelse):
                facts.body[stmt] = Scope(scope, stmt, body)
                facts.orelse[stmt] = Scope(scope, stmt, orelse, 1)
                _visit(facts.body[stmt], facts, loop)
                _visit(facts.orelse[stmt], facts, loop)
            case Break():
                if loop is not None:
                    facts.breaks.add(loop)
