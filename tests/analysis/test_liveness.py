"""Liveness against runs in which each branch and each number of iterations is drawn at random."""

from __future__ import annotations

import random
from collections import defaultdict

import pytest

from tapegen.analysis.liveness import Liveness, variables_read
from tapegen.ir import traversal
from tapegen.ir.nodes import Assign, Block, Break, Const, Continue, For, If, Return, Stmt, Var, While
from tapegen.ir.types import BOOL, FLOAT, INT

VALUES = [Var(name, FLOAT) for name in "uvwxyz"]
CONDITIONS = [Var(name, BOOL) for name in "ab"]
COUNTERS = [Var(name, INT) for name in "ij"]


def written(rng: random.Random, depth: int, *, in_loop: bool) -> Block:
    out: list[Stmt] = []
    for _ in range(rng.randint(1, 3)):
        match rng.choice(["assign", "assign", "if", "for", "while"] if depth else ["assign"]):
            case "assign":
                out.append(Assign((rng.choice(VALUES),), rng.choice(VALUES)))
            case "if":
                leaves = in_loop and rng.random() < 0.5
                sides = [written(rng, depth - 1, in_loop=in_loop) for _ in range(2)]
                if leaves:
                    sides[0] = (*sides[0], rng.choice([Break(), Continue()]))
                out.append(If(rng.choice(CONDITIONS), *sides))
            case "for":
                body = written(rng, depth - 1, in_loop=True)
                out.append(For(rng.choice(COUNTERS), Const(0), rng.choice(COUNTERS), Const(1), body))
            case "while":
                out.append(While(rng.choice(CONDITIONS), written(rng, depth - 1, in_loop=True)))
    return tuple(out)


class Run:
    """One run; `events` are the variables that are read and assigned, and the ends of statements, in order."""

    def __init__(self, rng: random.Random) -> None:
        self.rng = rng
        self.events: list[tuple[str, Var | Stmt]] = []

    def block(self, block: Block) -> type | None:
        for stmt in block:
            self.note("read", variables_read(stmt))
            left = None
            match stmt:
                case If():
                    left = self.block(self.rng.choice(stmt.blocks))
                case For() | While():
                    while self.rng.random() < 0.6:
                        self.note("assign", stmt.targets)
                        if self.block(stmt.body) is Break:
                            break
                        self.note("read", variables_read(stmt) if isinstance(stmt, While) else ())
                case Break() | Continue():
                    left = type(stmt)
                case _:
                    self.note("assign", stmt.targets)
            if left is not None:
                return left
            self.events.append(("end", stmt))
        return None

    def note(self, kind: str, names: object) -> None:
        self.events += [(kind, name) for name in names]  # type: ignore[attr-defined]

    def live(self) -> dict[Stmt, set[Var]]:
        """What was read after the end of each statement before it was assigned."""
        found: dict[Stmt, set[Var]] = defaultdict(set)
        read: set[Var] = set()
        for kind, what in reversed(self.events):
            if kind == "end":
                assert not isinstance(what, Var)
                found[what] |= read
            elif kind == "read":
                read.add(what)  # type: ignore[arg-type]
            else:
                read.discard(what)  # type: ignore[arg-type]
        return found


@pytest.mark.parametrize("seed", range(12))
def test_live_variables_are_those_that_some_run_reads(seed: int) -> None:
    rng = random.Random(seed)
    body = (*written(rng, 3, in_loop=False), Return((rng.choice(VALUES),)))
    liveness = Liveness()
    liveness.before(body)
    found: dict[Stmt, set[Var]] = defaultdict(set)
    for _ in range(600):
        run = Run(rng)
        run.block(body)
        for stmt, read in run.live().items():
            found[stmt] |= read
    for stmt, read in found.items():
        assert read <= liveness.after[stmt]
    reached = [stmt for stmt in traversal.statements(body) if stmt in found]
    assert sum(found[stmt] == liveness.after[stmt] for stmt in reached) >= 0.8 * len(reached)


def test_what_the_caller_reads_is_live_at_return() -> None:
    u, v = VALUES[:2]
    body = (Assign((u,), v), Return(()))
    liveness = Liveness(at_return=frozenset({u}))
    assert liveness.before(body) == {v}
    assert liveness.after[body[0]] == {u}
