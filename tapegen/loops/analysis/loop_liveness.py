"""What surrounds a loop: what is read after it, and whether other variables share the memory of an array."""

from __future__ import annotations

from collections.abc import Sequence

from tapegen.analysis.liveness import Liveness
from tapegen.analysis.memory_access import is_place, sources
from tapegen.ir import traversal
from tapegen.ir.nodes import Assign, Block, Call, Effect, For, Stmt, Var, While

Surroundings = Sequence[tuple[Block, Block, For | While | None]]
"""For each block around a statement, the innermost first: what comes before it, what follows, whose body it is."""


def read_after(around: Surroundings) -> frozenset[Var]:
    """Variables that may be read after a statement before they are assigned again."""
    liveness = Liveness()
    live: frozenset[Var] = frozenset()
    for _, rest, loop in reversed(around):
        if loop is not None:
            start = liveness.before((loop,), live)
            liveness.exits.append((live, start))
            live = start
        live = liveness.before(rest, live)
    return live


def is_only_name(array: Var, around: Surroundings) -> bool:
    """Whether no other variable shares memory with an array at a statement: it was made, and never passed on."""
    for before, _, loop in around:
        for stmt in reversed(before):
            if isinstance(stmt, Assign) and array in stmt.targets:
                return isinstance(stmt.value, Call) and not any(sources(stmt.value))
            if _passes_on(stmt, array):
                return False
        if loop is not None and any(_passes_on(stmt, array) for stmt in loop.body):
            return False
    return False


def _passes_on(stmt: Stmt, array: Var) -> bool:
    """Whether a statement may give an array another name, or the name to another array."""
    if array not in traversal.reads(stmt) and array not in traversal.assigns(stmt):
        return False
    for inner in traversal.statements((stmt,)):
        if array in inner.targets:
            return True
        if isinstance(inner, Effect) and any(array in traversal.free_vars(header) for header in inner.headers):
            return True
        if isinstance(inner, Assign) and any(map(is_place, inner.targets)) and array in sources(inner.value):
            return True
    return False
