"""Check hoisting (code motion): checks and scalar definitions move before the loop nests that do not affect them.

Legal where the loop nest writes nothing that they read, and checks keep their order.  It pays because adjacent loop
nests can be fused.

Before::

    def f(x: "f8[:]", y: "f8[:]"):
        z = np.empty(x.shape[0])
        for i in range(x.shape[0]):
            z[i] = 2.0 * x[i]
        if y.shape[0] < 3:
            raise IndexError("index out of bounds")
        for i in range(x.shape[0]):
            z[i] += y[0]
        return z

After::

    def f(x, y):
        z = np.empty(x.shape[0])
        if y.shape[0] < 3:
            raise IndexError("index out of bounds")
        for i in range(x.shape[0]):
            z[i] = 2.0 * x[i]
        for i in range(x.shape[0]):
            z[i] += y[0]
        return z
"""

from __future__ import annotations

from dataclasses import replace

from tapegen.ir import traversal
from tapegen.ir.nodes import Function, Stmt
from tapegen.loops.analysis.dependence import AliasSets, independent
from tapegen.loops.locality.block_items import BlockItem, BlockPass


def hoist_checks(function: Function) -> Function:
    """The same program with adjacent loop nests where only checks and scalar definitions stood between them."""
    return traversal.with_body(function, _Hoisting(function).block(function.body))


class _Hoisting(BlockPass):
    def arrange(self, items: list[BlockItem]) -> list[BlockItem]:
        return hoisted(items, self.memory)


def hoisted(items: list[BlockItem], memory: AliasSets) -> list[BlockItem]:
    """Checks and scalar definitions before the loops that do not affect them."""
    if not any(map(_is_loop, items)):
        return items
    out: list[BlockItem] = []
    first: int | None = None  # of the loop nests in it
    left: list[Stmt] = []  # comments above a statement that has moved, and above the next one
    for item in items:
        if left and not item.comments:
            item = replace(item, comments=left)
        left = []
        place = len(out)
        if first is not None and item.role in ("check", "plain"):
            for k in range(len(out) - 1, first - 1, -1):
                earlier = out[k]
                passable = earlier.role == "plain"
                passable = passable or (earlier.role == "check" and not any(map(traversal.loads, item.stmt.headers)))
                passable = passable or (_is_loop(earlier) and not (item.role == "check" and _checks(earlier)))
                passable = passable or (item.role == "plain" and earlier.role == "element")
                if not passable or not independent(earlier.stmt, item.stmt, memory):
                    break
                if _is_loop(earlier):
                    place = k
        if place < len(out):
            left, item = item.comments, replace(item, comments=[])
        out.insert(place, item)
        if first is None and _is_loop(item):
            first = place
        elif first == place:
            first += 1
    return out


def _is_loop(item: BlockItem) -> bool:
    return item.nest is not None or item.around is not None


def _checks(item: BlockItem) -> bool:
    return item.nest is not None and item.nest.checks
