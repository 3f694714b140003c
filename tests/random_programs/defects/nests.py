"""Defects of passes over loops around loops, and of what makes short loops and lists of known length fit for them."""

from __future__ import annotations

from tapegen.loops.locality.array_contraction import _Contraction as Contraction
from tapegen.loops.locality.outer_fusion import _OuterFusion as OuterFusion
from tapegen.loops.parallel.chunk_tapes import ChunkTapes
from tapegen.loops.parallel.chunk_tapes import _Uses as TapeUses
from tapegen.loops.vectorize import short_loops
from tapegen.loops.vectorize.excluded_iterations import _Splitting as Splitting
from tapegen.loops.vectorize.short_loops import _Unrolling as Unrolling
from tapegen.transform.autodiff import viewed_merges
from tapegen.transform.simplify.lists_to_arrays import _Filling as ListFilling
from tests.random_programs.defects.switch import edit, likely

OUTER = likely(
    "tests/loops/test_outer_fusion.py",
    edit(
        "outer loops that pass through other rows are merged",
        OuterFusion,
        "_joins",
        ("return may_share_loops(first, second, self.memory)", "return True"),
    ),
    edit(
        "an outer loop moves past what writes its rows",
        OuterFusion,
        "_merge",
        ("if all(independent(other.stmt, item.stmt, self.memory) for other in between):", "if True:"),
    ),
    edit(
        "a scalar that two outer loops assign is taken for two",
        OuterFusion,
        "_joins",
        ("(first.assigned & second.assigned) - inner or", ""),
    ),
)

CONTRACTED = likely(
    "tests/loops/test_outer_fusion.py",
    edit(
        "the row of another iteration is taken for its own",
        Contraction,
        "_slice",
        ("if all(index[k] == loop.target", "if any(index[k] == loop.target"),
    ),
    edit(
        "a row from an earlier run of the loop is not kept",
        Contraction,
        "_loop",
        ("self._block(loop.body, contracted)", "self._block(loop.body, fresh | contracted)"),
    ),
    edit(
        "a size is read after it has changed",
        Contraction,
        "_slice",
        ("if sizes and not self._is_fixed(made):", "if False:"),
    ),
)

SHORT = likely(
    "tests/loops/test_short_loops.py",
    edit(
        "an element that is added to has no zero before",
        short_loops,
        "_stored_first",
        (" and not each.accumulate", ""),
    ),
    edit(
        "a size is compared where no iteration runs",
        Unrolling,
        "_hoisted",
        ("return replace(check, test=Call(intrinsics.and_, (test, check.test), (), BOOL))", "return check"),
    ),
    edit(
        "the last iteration of a short loop is left out",
        Unrolling,
        "_unrolled",
        ("for k in range(start, stop):", "for k in range(start, max(stop - 1, start + 1)):"),
    ),
)

EXCLUDED = likely(
    "tests/loops/test_excluded_iterations.py",
    edit(
        "the counter around is taken to be in the range of the loop",
        Splitting,
        "_split",
        (" or around[counter] != self._ends(loop)", ""),
    ),
    edit(
        "a loop that counts down runs the iteration that it leaves out",
        Splitting,
        "_split",
        ("plus(counter, -1)", "counter"),
    ),
)

LISTS = likely(
    "tests/transform/test_lists_to_arrays.py",
    edit(
        "an item that is not there yet is read",
        ListFilling,
        "_place",
        ("if not self._is_at_least(self.length - at, 1):", "if False:"),
    ),
    edit(
        "a list that is being filled has its final length",
        ListFilling,
        "_with_length",
        ("if self._is_final() else self.length.expr", ""),
    ),
    edit(
        "items are no numbers of Python",
        ListFilling,
        "_read",
        ("if not self.item.python:", "if True:"),
    ),
)

MERGES = likely(
    "tests/transform/test_viewed_merges.py",
    edit(
        "a view is taken to be one of the next value",
        viewed_merges,
        "_block",
        ("later |= merges & traversal.assigns(stmt)", "pass"),
    ),
)

CHUNKS = likely(
    "tests/loops/test_parallel_loops.py tests/loops/test_random_parallel_loops.py",
    edit(
        "positions on the tape of a chunk count from its own start",
        ChunkTapes,
        "_moved",
        ("return replace(stmt, accumulate=True)", "return stmt"),
    ),
    edit(
        "chunks put their values in one place",
        ChunkTapes,
        "after",
        ("copies.append(self._set(counter, plus(counter, count)))", "pass"),
    ),
    edit(
        "iterations that take values back are taken to put values only",
        TapeUses,
        "only_put",
        ("if linear(value) != Affine.atom(self.counter) + 1:", "if False:"),
    ),
)
