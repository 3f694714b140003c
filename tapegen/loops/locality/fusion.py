"""Loop fusion with array contraction: nests of the same loops are merged, and arrays local to one become scalars.

Two loop nests are fused where every element that both access, and one of them writes, is accessed in the same
iteration; errors must stay the same, with the same effects before them.  It always pays: one pass through memory, and
none for contracted arrays.  New arrays that serve all iterations of a loop are hoisted before it.

Before::

    def f(x: "f8[:]"):
        s = 0.0
        y = np.empty(x.shape[0])
        for i in range(x.shape[0]):
            y[i] = x[i] * x[i]
        for i in range(x.shape[0]):
            s = s + y[i]
        return s

After::

    def f(x):
        s = 0.0
        for i in range(x.shape[0]):
            y = x[i] * x[i]
            s += y
        return s
"""

from __future__ import annotations

from dataclasses import replace

from tapegen.ir import traversal
from tapegen.ir.nodes import (
    Assign,
    Block,
    Comment,
    Const,
    Expr,
    For,
    Function,
    If,
    Raise,
    Stmt,
    Var,
    While,
)
from tapegen.ir.types import Scalar
from tapegen.loops.analysis.dependence import LoopNest, in_loops, independent, may_share_loops
from tapegen.loops.locality.array_contraction import as_number, starts_with_store
from tapegen.loops.locality.block_items import (
    BlockItem,
    BlockPass,
    has_effects,
    is_new,
    merged_comments,
    remove_statements,
    sweeps_apart,
)

_LOOK_BACK = 12  # the number of statements that a loop nest may be moved across


def fuse_loops(function: Function) -> Function:
    """The same program with fewer loops and fewer arrays."""
    return _Fusion(function).run()


class _Fusion(BlockPass):
    def __init__(self, function: Function) -> None:
        super().__init__(function)
        self.gone: set[Stmt] = set()  # allocations of arrays that have become scalars

    def run(self) -> Function:
        """The function with its loop nests fused."""
        body = self.block(self.function.body)
        return replace(self.function, body=remove_statements(body, self.gone) if self.gone else body)

    def arrange(self, items: list[BlockItem]) -> list[BlockItem]:
        return items

    def written(self, item: BlockItem) -> Stmt:
        return item.stmt if item.nest is None else self._contracted(item.nest).stmt

    def sweeps(self, items: list[BlockItem]) -> list[bool]:
        return sweeps_apart(items)

    def hoists(self, body: Block, loop: For | While) -> list[Stmt]:
        return self.lasting_allocations(body, loop)

    # ---- fusion ------------------------------------------------------------------------------------------------------

    def place(self, out: list[BlockItem], item: BlockItem) -> None:
        """Merge a loop nest into an earlier one, or append it."""
        assert item.nest is not None
        item = replace(item, nest=self._counted(item.nest))
        assert item.nest is not None
        for k in range(len(out) - 1, max(-1, len(out) - 1 - _LOOK_BACK), -1):
            earlier = out[k]
            ordered = self._keeps_errors(earlier, item)
            if ordered and earlier.nest is not None and self._joins(earlier.nest, item.nest):
                nest = _joined(earlier.nest, item.nest, item.comments)
                out[k] = replace(earlier, comments=merged_comments(earlier, item), nest=nest)
                return
            if earlier.nest is None and earlier.role != "plain" and (item.nest.checks or earlier.role != "element"):
                break
            other = earlier.stmt if earlier.nest is None else earlier.nest.stmt
            if not ordered or not independent(other, item.stmt, self.memory):
                break
        out.append(item)

    def _counted(self, nest: LoopNest) -> LoopNest:
        """A loop nest with the numbers of iterations that checks before it imply: LLVM unrolls short loops."""
        loops = []
        for loop in nest.loops:
            facts = self.known.facts
            count = None if isinstance(loop.stop, Const) else facts.constant(facts.form(loop.stop))
            loops.append(loop if count is None else replace(loop, stop=Const(count)))
        counted = in_loops(tuple(loops), nest.body)
        return nest if counted is None else counted

    def _keeps_errors(self, earlier: BlockItem, item: BlockItem) -> bool:
        """Whether errors, and the effects before them, are the same if iterations of two loop nests are reordered.

        The backward sweep repeats checks of the forward sweep, which cannot fail there.
        """
        first, second = earlier.nest, item.nest
        if first is None or second is None or not (first.checks or second.checks):
            return True
        if first.checks and second.checks and (earlier.backward or not item.backward):
            return False
        return not (first.checks and self._is_seen(second)) and not (second.checks and self._is_seen(first))

    def _is_seen(self, nest: LoopNest) -> bool:
        """Whether a loop nest stores into arrays that may outlive an error."""
        return any(access.writes and self.memory.own(access.array) is None for access in nest.accesses)

    def _joins(self, first: LoopNest, second: LoopNest) -> bool:
        if len(first.loops) != len(second.loops):
            return False
        if not all(self._same_size(a.stop, b.stop) for a, b in zip(first.loops, second.loops, strict=True)):
            return False
        if self.memory.lasting & {*first.counters, *second.counters} and first.counters != second.counters:
            return False
        counters = {*first.counters, *second.counters}
        if counters & (first.assigned | second.assigned | first.first_read | second.first_read):
            return False
        return may_share_loops(first, second, self.memory)

    def _same_size(self, a: Expr, b: Expr) -> bool:
        if a == b:
            return True
        facts = self.known.facts
        return facts.equal(facts.form(a), facts.form(b))

    # ---- array contraction -------------------------------------------------------------------------------------------

    def _contracted(self, nest: LoopNest) -> LoopNest:
        """The loop nest with scalars in place of arrays that only it uses."""
        found: dict[Var, list[tuple]] = {}
        given = nest
        for access in nest.accesses:
            found.setdefault(access.array, []).append(access.index)
        for array, indices in found.items():
            if len(set(indices)) == 1 and self.memory.uses.get(array) == len(indices):
                made = self.memory.own(array)
                if made is None or not is_new(made) or not starts_with_store(nest.body, array):
                    continue
                used = {var for item in indices[0] for var in traversal.free_vars(item)}
                if used & nest.assigned or any(traversal.loads(item) for item in indices[0]):
                    continue
                self.gone.add(made)
                nest = nest.with_body(as_number(nest.body, array))
        return nest if nest is given else nest.with_body(without_repetitions(nest.body))


def without_repetitions(body: Block) -> Block:
    """A block without assignments of what a scalar holds already: what one sweep recorded, the other has at hand.

    Two scalars that are copies of each other hold the same; an expression has the same value until one of its operands
    is assigned, or any array is written if it reads elements.
    """
    out: list[Stmt] = []
    copies: dict[Var, Expr] = {}
    for stmt in body:
        made = _computed(stmt)
        if made is not None:
            target, value = made
            if copies.get(target) == value or (isinstance(value, Var) and copies.get(value) == target):
                continue
        out.append(stmt)
        if isinstance(stmt, Comment):
            continue
        changed = traversal.assigns(stmt)
        writes = not all(map(_writes_nothing, traversal.statements((stmt,))))
        copies = {
            var: expr
            for var, expr in copies.items()
            if var not in changed
            and traversal.free_vars(expr).isdisjoint(changed)
            and not (writes and traversal.loads(expr))
        }
        if made is not None and target not in traversal.free_vars(value):
            copies[target] = value
    return tuple(out)


def _writes_nothing(stmt: Stmt) -> bool:
    """Whether a statement apart from nested ones leaves arrays as they are."""
    return isinstance(stmt, (Comment, If, Raise)) or _computed(stmt) is not None


def _computed(stmt: Stmt) -> tuple[Var, Expr] | None:
    """The scalar that a statement assigns and its value, where it has no effect beside."""
    if isinstance(stmt, Assign) and len(stmt.targets) == 1 and isinstance(stmt.targets[0].type, Scalar):
        return None if has_effects(stmt.value) else (stmt.targets[0], stmt.value)
    return None


def _joined(first: LoopNest, second: LoopNest, comments: list[Stmt]) -> LoopNest:
    renamed = dict(zip(second.counters, first.counters, strict=True))
    return first.with_body((*first.body, *comments, *traversal.rename_block(second.body, renamed)))
