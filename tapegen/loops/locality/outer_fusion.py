"""Fusion of outer loops: loops around loops are merged where they pass through the same rows.

Loop fusion merges perfect nests of the same loops.  A reduction along an axis is no perfect nest: it sets a scalar
before its inner loop, and stores it afterwards.  Here two loops are merged whatever their inner loops are, where one
reads rows that the other one writes: a row is then in cache, and the inner loops of an iteration may be merged as well.
Legal as loop fusion is: every element that both access, and one of them writes, is accessed in the same iteration.

Before::

    def f(x: "f8[:, :]", y: "f8[:]"):
        z = np.empty((x.shape[0], x.shape[1]))
        t = np.empty(x.shape[0])
        for i in range(x.shape[0]):
            for j in range(x.shape[1]):
                z[i, j] = x[i, j] * x[i, j]
        for i in range(x.shape[0]):
            s = 0.0
            for j in range(x.shape[1]):
                s = s + z[i, j]
            t[i] = s
        return t

After::

    def f(x, y):
        z = np.empty((x.shape[0], x.shape[1]))
        t = np.empty(x.shape[0])
        for i in range(x.shape[0]):
            s = 0.0
            for j in range(x.shape[1]):
                z[i, j] = x[i, j] * x[i, j]
            for j in range(x.shape[1]):
                s += z[i, j]
            t[i] = s
        return t
"""

from __future__ import annotations

from dataclasses import replace

from tapegen.ir import traversal
from tapegen.ir.nodes import For, Function, Var
from tapegen.loops.analysis.dependence import LoopNest, independent, may_share_loops
from tapegen.loops.analysis.flow_facts import FlowFacts
from tapegen.loops.locality.block_items import BlockItem, BlockPass, items_of, merged_comments, sweeps_apart
from tapegen.loops.locality.check_hoisting import hoisted

_LOOK_BACK = 12  # the number of statements that a loop may be moved across


def fuse_outer_loops(function: Function) -> Function:
    """The same program with one loop in place of several that pass through the same rows."""
    return traversal.with_body(function, _OuterFusion(function).block(function.body))


class _OuterFusion(BlockPass):
    def arrange(self, items: list[BlockItem]) -> list[BlockItem]:
        if sum(item.around is not None for item in items) < 2:
            return items
        known = FlowFacts(self.known)
        out: list[BlockItem] = []
        for item in items:
            if item.around is None or not self._merge(out, item, known):
                out.append(item)
            known.learn(item.stmt)
        return out

    def sweeps(self, items: list[BlockItem]) -> list[bool]:
        return sweeps_apart(items)

    def _merge(self, out: list[BlockItem], item: BlockItem, known: FlowFacts) -> bool:
        """Merge a loop with an earlier one, in the place of either."""
        second = item.around
        assert second is not None
        for k in range(len(out) - 1, max(-1, len(out) - 1 - _LOOK_BACK), -1):
            earlier, between = out[k], out[k + 1 :]
            if not _may_move_across(earlier):
                return False
            first = earlier.around
            if first is None or not self._joins(first, second, known):
                continue
            stmt = self._joined(first, second, item)
            if all(independent(other.stmt, item.stmt, self.memory) for other in between):
                out[k] = BlockItem(stmt, merged_comments(earlier, item), backward=earlier.backward)
                return True
            if all(independent(earlier.stmt, other.stmt, self.memory) for other in between):
                del out[k]
                out.append(BlockItem(stmt, merged_comments(earlier, item), backward=item.backward))
                return True
        return False

    def _joins(self, first: LoopNest, second: LoopNest, known: FlowFacts) -> bool:
        counters = {*first.counters, *second.counters}
        if counters & (first.assigned | second.assigned | first.first_read | second.first_read):
            return False
        inner = {stmt.target for nest in (first, second) for stmt in _loops_in(nest)}
        if (first.assigned & second.assigned) - inner or self.memory.lasting & (counters | inner):
            return False
        if not _share_rows(first, second):
            return False
        a, b = first.loops[0].stop, second.loops[0].stop
        if a != b and not known.facts.equal(known.facts.form(a), known.facts.form(b)):
            return False
        return may_share_loops(first, second, self.memory)

    def _joined(self, first: LoopNest, second: LoopNest, item: BlockItem) -> For:
        """Both bodies in the loop of the first, their inner loops next to each other."""
        (loop,) = first.loops
        renamed = dict(zip(second.counters, first.counters, strict=True))
        body = (*loop.body, *item.comments, *traversal.rename_block(second.body, renamed))
        items, tail = items_of(body)
        stmts = [stmt for each in hoisted(items, self.memory) for stmt in (*each.comments, each.stmt)]
        return replace(loop, body=(*stmts, *tail))


def _may_move_across(item: BlockItem) -> bool:
    return item.around is not None or item.role in ("plain", "element")


def _share_rows(first: LoopNest, second: LoopNest) -> bool:
    """Whether one loop reads rows, more than an element in each iteration, that the other one writes."""
    written, read = _rows(first)
    written_2, read_2 = _rows(second)
    return not (written.isdisjoint(read_2 | written_2) and read.isdisjoint(written_2))


def _rows(nest: LoopNest) -> tuple[set[Var], set[Var]]:
    """Arrays of which an iteration writes, and reads, a row."""
    (counter,) = nest.counters
    inner = {loop.target for loop in _loops_in(nest)}
    written: set[Var] = set()
    read: set[Var] = set()
    for access in nest.accesses:
        used = {var for item in access.index for var in traversal.free_vars(item)}
        if counter in used and not used.isdisjoint(inner):
            (written if access.writes else read).add(access.array)
    return written, read


def _loops_in(nest: LoopNest) -> list[For]:
    return [stmt for stmt in traversal.statements(nest.body) if type(stmt) is For]
