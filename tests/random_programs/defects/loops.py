"""Defects of loop nests: which become one, what is held, filled, added up apart, and which checks may go."""

from __future__ import annotations

from tapegen.loops.analysis import dependence, independence
from tapegen.loops.analysis.dependence import AliasSets
from tapegen.loops.legalize import precision
from tapegen.loops.locality import (
    array_contraction,
    check_hoisting,
    scalar_replacement,
    zero_init_sinking,
)
from tapegen.loops.locality.block_items import BlockPass
from tapegen.loops.locality.fusion import _Fusion as Fusion
from tapegen.loops.locality.scalar_replacement import _ScalarReplacement as Holding
from tapegen.loops.locality.zero_init_sinking import _Filling as Filling
from tapegen.loops.stencils import scatter_to_gather
from tapegen.loops.vectorize import (
    height_reduction,
    loop_distribution,
    shifted_gather,
    strip_mining,
)
from tapegen.loops.vectorize.dot_fusion import _Joining as Joining
from tapegen.loops.vectorize.index_set_splitting import _Splitting as Splitting
from tapegen.loops.vectorize.loop_distribution import _Group as Group
from tapegen.loops.vectorize.strip_mining import _StripMining as StripMining
from tests.random_programs.defects.switch import edit, likely

_FUSE = "tests/loops/test_fusion.py::test_"
_NESTS = " ".join(
    [
        *(f"{_FUSE}loops_in_their_order", f"{_FUSE}shifted_additions_in_their_order", f"{_FUSE}numbers_stay"),
        *(f"{_FUSE}a_number_is_rounded_as_the_array_it_stands_for", "tests/loops/test_scalarization.py"),
    ]
)

FUSED = likely(
    _NESTS,
    edit(
        "loops of other sizes become one",
        Fusion,
        "_joins",
        (
            "if not all(self._same_size(a.stop, b.stop) for a, b in zip(first.loops, second.loops, strict=True)):",
            "if False:",
        ),
    ),
    edit(
        "loops that hand on a number become one",
        Fusion,
        "_joins",
        ("if counters & (first.assigned | second.assigned | first.first_read | second.first_read):", "if False:"),
        unfound="a body that assigns a counter is no nest, and a counter that is read outside is lasting",
    ),
    edit(
        "a counter that is read after its loop gets another name",
        Fusion,
        "_joins",
        (
            "if self.memory.lasting & {*first.counters, *second.counters} and first.counters != second.counters:",
            "if False:",
        ),
    ),
    edit(
        "a loop moves past what writes its elements",
        Fusion,
        "place",
        ("if not ordered or not independent(other, item.stmt, self.memory):", "if not ordered:"),
    ),
    edit(
        "an error leaves behind what comes after it",
        Fusion,
        "_keeps_errors",
        (
            "return not (first.checks and self._is_seen(second)) and not (second.checks and self._is_seen(first))",
            "return True",
        ),
    ),
    edit(
        "of two errors the later one comes first",
        Fusion,
        "_keeps_errors",
        ("if first.checks and second.checks and (earlier.backward or not item.backward):", "if False:"),
    ),
    edit(
        "an array that is read beside becomes a number",
        Fusion,
        "_contracted",
        ("if len(set(indices)) == 1 and self", "if self"),
    ),
    edit(
        "an array that is read before it is stored becomes a number",
        Fusion,
        "_contracted",
        (" or not starts_with_store(nest.body, array)", ""),
        unfound="what np.empty holds before is any number",
    ),
    edit(
        "an array that something else reads becomes a number",
        Fusion,
        "_contracted",
        (" and self.memory.uses.get(array) == len(indices)", ""),
    ),
    edit("what is added to a number replaces it", array_contraction, "as_number", ("if stmt.accumulate:", "if False:")),
    edit(
        "a number has more digits than the array it stands for",
        precision,
        "stored",
        ("return Call(getattr(np, dtype), (value,), (), Scalar(dtype, False))", "return value"),
    ),
    edit(
        "an array of another size on each iteration is made once",
        BlockPass,
        "_serves_all",
        ("if traversal.free_vars(shape) & traversal.assigned_in(loop) or traversal.loads(shape):", "if False:"),
        unfound="a size that a loop assigns is not known in front of it, and what is not known stays in the loop",
    ),
    edit(
        "a check moves past another one",
        check_hoisting,
        "hoisted",
        ('not (item.role == "check" and _checks(earlier))', "True"),
    ),
    edit(
        "a number of one loop is taken for that of another",
        dependence,
        "may_share_loops",
        ("if first.assigned & second.first_read or second.assigned & first.first_read:", "if False:"),
    ),
    edit(
        "two names for one array are taken for two arrays",
        dependence,
        "may_share_loops",
        ("if memory.group(a.array) != memory.group(b.array):", "if a.array != b.array:"),
    ),
    edit(
        "one equal axis is taken for all",
        dependence,
        "same_iteration",
        ("return found == counters", "return bool(found)"),
    ),
    edit(
        "an index that varies is taken to be apart",
        dependence,
        "_never_meet",
        ("fixed = not (traversal.free_vars(x) | traversal.free_vars(y)) & varying", "fixed = True"),
    ),
    edit(
        "a loop moves in front of what reads its elements",
        dependence,
        "independent",
        (" and writes_b.isdisjoint(touches_a)", ""),
    ),
    edit(
        "arrays of the caller are taken to share no memory",
        AliasSets,
        "__init__",
        ("for first, *others in map(tuple, function.shared):", "for first, *others in ():"),
    ),
    edit("an array with other names is taken for its own", AliasSets, "own", (" and var not in self._shared", "")),
)

GATHERED = likely(
    _NESTS,
    edit(
        "a multiple of what is written is read later",
        scatter_to_gather,
        "_inlined",
        (" or scatter.target == source:", ":"),
    ),
    edit(
        "a multiple of what changes is read later",
        scatter_to_gather,
        "_inlined",
        ("elif k > start and left and not independent(item.stmt, made.stmt, memory):", "elif False:"),
    ),
    edit(
        "an addition moves past what reads the sum",
        scatter_to_gather,
        "_together",
        ("if _raises(out[k]) or not independent(out[k].stmt, item.stmt, memory):", "if _raises(out[k]):"),
    ),
    edit("an addition moves past an error", scatter_to_gather, "_together", ("if _raises(out[k]) or not", "if not")),
    edit(
        "an infinite factor meets a margin of zeros",
        scatter_to_gather,
        "_is_multiple",
        (" and abs(factor) < _LARGE", ""),
    ),
    edit(
        "a margin is as wide as the largest shift",
        scatter_to_gather,
        "_with_margin",
        (
            "margin = [max(scatter.shift[k] for scatter in run) - low[k] for k in",
            "margin = [max(scatter.shift[k] for scatter in run) for k in",
        ),
    ),
    edit(
        "the margin is not walked through",
        scatter_to_gather,
        "_gathering",
        ("stop=plus(loop.stop, width)", "stop=loop.stop"),
    ),
    edit(
        "a stencil of nothing writes its margin",
        scatter_to_gather,
        "_gathering",
        ("if not facts.nonnegative(facts.form(size) - 1)", "if False"),
    ),
    edit(
        "an array that is read elsewhere gets a margin",
        scatter_to_gather,
        "_only_at_counters",
        ("return found == memory.uses.get(source)", "return True"),
    ),
    edit(
        "shifts along the second axis are taken for none",
        scatter_to_gather,
        "_gathering",
        ("plus(counter, at) for counter, at in", "plus(counter, low[0]) for counter, at in"),
    ),
)

HELD = likely(
    "tests/loops/test_scalar_replacement.py",
    edit("an element is held where an iteration may raise", Holding, "rewrite", ("if nest.checks:", "if False:")),
    edit(
        "an element that another access may be is held",
        Holding,
        "_elements",
        ("if any(self.may_alias(array, index, other) for other in others if written or other.writes):", "if False:"),
    ),
    edit(
        "an element is read although no iteration does",
        Holding,
        "_in_registers",
        ("test is None", "True"),
    ),
    edit(
        "an element that a condition leaves out is read",
        Holding,
        "_elements",
        ("if not written and element not in sure:", "if False:"),
        unfound="elements under conditions are branches by then, but for those within bounds",
    ),
    edit(
        "what is added to a held element replaces it",
        scalar_replacement,
        "_with_numbers",
        ("if stmt.accumulate:", "if False:"),
    ),
    edit(
        "an integer is held in an array of floats",
        scalar_replacement,
        "_with_numbers",
        ("convert(new.value, dtype)", "new.value"),
    ),
    edit(
        "a loop that counts down is taken to run where it does not",
        scalar_replacement,
        "_surely_runs",
        (
            "gap = minus(loop.start, loop.stop) if down else minus(loop.stop, loop.start)",
            "gap = minus(loop.start, loop.stop)",
        ),
    ),
)

FILLED = likely(
    "tests/loops/test_zero_init_sinking.py",
    edit("a loop that may be left makes all zeros", Filling, "_fills", (" or leaves(loop.body):", ":")),
    edit(
        "rows from the end are cleared where no iteration runs",
        Filling,
        "_rows",
        ("if not facts.nonnegative(facts.form(start)):", "if False:"),
    ),
    edit(
        "the part behind what is stored begins before the row",
        Filling,
        "_behind",
        ("if not inside.nonnegative(inside.form(start)):", "if False:"),
    ),
    edit(
        "what reads a new element stores into it",
        Filling,
        "_starting",
        ("if array not in traversal.free_vars(value):", "if True:"),
    ),
    edit(
        "what an iteration has stored before is stored over",
        Filling,
        "_storing",
        (
            "if places is None or not all(inside.nonnegative(inside.form(place) - stop) for place in places):",
            "if places is None:",
        ),
    ),
    edit(
        "a loop that counts down leaves out its first row",
        zero_init_sinking,
        "_end",
        ("plus(loop.start, 1)", "loop.start"),
    ),
    edit(
        "another row is taken for that of the iteration",
        zero_init_sinking,
        "_touches_row",
        ("if stmt.index[:1] != (row,):", "if False:"),
    ),
    edit(
        "another row is read before it has zeros",
        zero_init_sinking,
        "_reads_row",
        ("return index[:1] == (row,) and all(", "return all("),
    ),
    edit(
        "a loop that does not begin with the first row makes all zeros",
        Filling,
        "_fills",
        ("if not inside.equal(inside.form(first), Affine()) or", "if"),
    ),
    edit(
        "what an inner loop adds from its second element on is stored from the first",
        zero_init_sinking,
        "_storing_loop",
        ("if loop.start != Const(0) or loop.step", "if loop.step"),
    ),
)

NEIGHBOURS = likely(
    "tests/loops/test_shifted_gather.py tests/loops/test_recurrences.py",
    edit(
        "what an iteration resets is read after it",
        shifted_gather,
        "_additions",
        ("if not read.isdisjoint(written - fixed):", "if False:"),
    ),
    edit(
        "the first iterations of a gathered loop add nothing",
        shifted_gather,
        "_over_elements",
        ("for iteration in (*first, *last)", "for iteration in last"),
    ),
    edit(
        "a loop gathers from an iteration too far",
        shifted_gather,
        "_over_elements",
        ("rest = plus(size, min(shifts) - max(shifts))", "rest = plus(size, 1 + min(shifts) - max(shifts))"),
    ),
    edit(
        "a gathered loop keeps nothing for the rest of the program",
        shifted_gather,
        "_gathered",
        ("left = remove_dead(rest, lasting, ", "left = remove_dead(rest, (), "),
    ),
)

PEELED = likely(
    "tests/loops/test_index_set_splitting.py",
    edit(
        "one iteration is in no loop",
        Splitting,
        "_split",
        ("begin, end = plus(low, first), plus(high, -last)", "begin, end = plus(low, first), plus(high, -last - 1)"),
    ),
    edit(
        "a short loop runs its iterations twice",
        Splitting,
        "_split",
        ("Call(builtins.max, (begin, end), (), INT)", "end"),
    ),
    edit(
        "the first iterations of a loop that counts down come first",
        Splitting,
        "_split",
        (" if upward else [*above, *between, *below]", ""),
    ),
)

WAITING = likely(
    "tests/loops/test_recurrences.py",
    edit(
        "the margin of a row of numbers is not cleared",
        loop_distribution,
        "_parted",
        ("for k in range(margin):", "for k in range(0):"),
    ),
    edit(
        "a loop that counts down is taken to end one earlier",
        loop_distribution,
        "_parted",
        ("low = loop.start if upward else plus(loop.stop, 1)", "low = loop.start if upward else loop.stop"),
    ),
    edit(
        "a number that decides is added up in another order",
        loop_distribution,
        "_parted",
        (" if conflicts.group(stmt.array) not in decide\n", "\n"),
    ),
    edit(
        "an addition leaves a loop that reads the sum",
        shifted_gather,
        "disjoint_stores",
        ("if not any(conflicts.anywhere(accesses[stmt][0], other) for other in others)", "if True"),
    ),
    edit(
        "an addition of what the loop writes leaves it",
        loop_distribution,
        "_additions",
        ("and not any(group(load.array) in written for load in traversal.loads(stmt.value))", ""),
    ),
    edit(
        "a factor reads what the iteration has written",
        height_reduction,
        "_factored",
        ("or any(memory.group(load.array) in written for load in loads)", ""),
    ),
    edit(
        "zero no longer wins over an infinite factor",
        height_reduction,
        "_multiple",
        ("latency, strong=True)", "latency)"),
    ),
    edit(
        "of two factors one lets zero win",
        height_reduction,
        "_sum",
        ("left.strong or right.strong", "left.strong and right.strong"),
    ),
    edit(
        "what is subtracted is added",
        height_reduction,
        "_sum",
        ("factor = right.factor if func is operator.add else builders.neg(right.factor)", "factor = right.factor"),
    ),
    edit(
        "a factor that changes within the iteration is taken for fixed",
        height_reduction,
        "_fixed",
        ("var in found or var in changing", "var in found"),
    ),
    edit(
        "a loop apart reads its row without the margin",
        Group,
        "loop",
        ("plus(counter, margin - (shift - first))", "plus(counter, margin - shift)"),
    ),
    edit(
        "elements that lie apart in another axis collect as one",
        loop_distribution,
        "_groups",
        (
            "(stmt.array, stmt.value, axis) != (group.store.array, group.store.value, group.axis)",
            "(stmt.array, stmt.value) != (group.store.array, group.store.value)",
        ),
    ),
    edit(
        "a loop whose end changes is counted twice",
        loop_distribution,
        "_parted",
        ("any(traversal.free_vars(end) & nest.assigned or traversal.loads(end) for end in ends)", "False"),
    ),
    edit(
        "a sum beside a factor is forgotten",
        height_reduction,
        "_scaled",
        ("rest = None if multiple.rest is None else scale(multiple.rest)", "rest = multiple.rest"),
    ),
)

STRIPS = likely(
    "tests/loops/test_strip_mining.py tests/loops/test_vector_calls.py",
    edit(
        "iterations that read what another one writes are taken to be apart",
        independence,
        "is_independent",
        ("if other is not None and (access.array, access.index) != (other.array, other.index):", "if False:"),
    ),
    edit(
        "a number that goes from iteration to iteration is taken for a sum",
        independence,
        "is_independent",
        (" or nest.first_read & nest.assigned != sums:", ":"),
    ),
    edit(
        "a sum that is read on the way is added up later",
        strip_mining,
        "_sums",
        ("first == target and reads[target] == writes[target] == 1 and", "first == target and"),
    ),
    edit(
        "all iterations store the same element in any order",
        independence,
        "is_independent",
        ("return moving and all(", "return all("),
    ),
    edit(
        "a term is stored where its sum is",
        StripMining,
        "rewrite",
        ("value.args[1], False, stmt.origin)", "value.args[0], False, stmt.origin)"),
    ),
)

DOTS = likely(
    "tests/loops/test_dot_fusion.py",
    edit(
        "a product reads an array that has been stored into",
        Joining,
        "_changes",
        (" or not groups.isdisjoint(stored)", ""),
    ),
    edit(
        "a product reads a name that has another value",
        Joining,
        "_changes",
        ("not read.isdisjoint(traversal.assigned_in(*between)) or ", ""),
    ),
    edit(
        "a part of an array is taken for what it was",
        Joining,
        "_run",
        (
            "views = {var: view for var, view in views.items() "
            "if changed.isdisjoint((var, *traversal.free_vars(view)))}",
            "pass",
        ),
    ),
)
