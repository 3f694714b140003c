"""Defects of forward mode, of several directions at once, of zeros that a selection made, and of winners of loops."""

from __future__ import annotations

from tapegen.analysis import selection_frontiers
from tapegen.analysis.selection_frontiers import _Search as Search
from tapegen.ir import affine
from tapegen.ir.affine import Affine
from tapegen.transform.autodiff import selection_loops, zero_guards
from tapegen.transform.autodiff.forward import _Pusher as Pusher
from tapegen.transform.autodiff.vector_forward import _Widener as Widener
from tapegen.transform.autodiff.zero_guards import Guards
from tapegen.transform.recording.tape_layout import _Layout as Layout
from tests.random_programs.defects.switch import edit, likely

FORWARD = likely(
    "tests/transform/test_forward_mode.py",
    edit(
        "a constant that is stored leaves the tangent",
        Pusher,
        "_store",
        ("elif not stmt.accumulate:", "elif False:"),
    ),
    edit(
        "the tangent is stored where the index means another element",
        Pusher,
        "_store",
        ("before = any(self._reads(item, stmt.array) for item in stmt.index)", "before = False"),
    ),
    edit(
        "the tangent is loaded where the index means another element",
        Pusher,
        "_assign",
        (
            "order = (stmt, tangent) if traversal.free_vars(value).isdisjoint(targets) else (tangent, stmt)",
            "order = (stmt, tangent)",
        ),
    ),
    edit(
        "the tangent of an item that nobody reads stays in its list",
        Pusher,
        "_statement",
        (
            "case Assign((target,), Call(intrinsics.pop, (Var() as array,))) if (",
            "case Assign((target,), Call(intrinsics.pop, (Var() as array,))) if False and (",
        ),
    ),
    edit(
        "two tangents share memory that is written",
        Pusher,
        "_define",
        ("if shared and any(self.effects.is_written(place) for place in places):", "if False:"),
    ),
    edit(
        "a tangent has another memory order than its value",
        Pusher,
        "_define",
        ("if self.effects.roots(target) & self.flattened and not _is_new(expr):", "if False:"),
    ),
    edit(
        "the constants of a linear function are added to the tangent",
        Pusher,
        "_linear",
        (" if name not in rule.constant", ""),
    ),
    edit(
        "a zero tangent times an infinite partial",
        Pusher,
        "_partials",
        (
            "builders.strong_mul(dot, partial) if is_guarded else builders.mul(partial, dot)",
            "builders.mul(partial, dot)",
        ),
    ),
    edit("a tangent has the shape of one operand", Pusher, "_partials", ("self._spread(total, target, read)", "total")),
    edit(
        "an argument without a tangent has none where it is written",
        Pusher,
        "run",
        ("if param in self.active and param not in self.wrt:", "if False:"),
    ),
    edit(
        "the tangents of a swap move one after the other",
        Pusher,
        "_latch",
        (
            "self.emit(Assign(tangents, sources[0] if len(sources) == 1 else Tuple(sources), stmt.origin))",
            "self.out.extend(Assign((t,), v, stmt.origin) for t, v in moved)",
        ),
    ),
    edit(
        "a loop is not carried over to the tangents of its block",
        Pusher,
        "_item",
        ("if sequence in self.active:", "if False:"),
    ),
)

DIRECTIONS = likely(
    "tests/transform/test_vector_forward.py",
    edit(
        "tangents are made after their sizes have changed",
        Widener,
        "_disturbs",
        ("mentioned.update(self._sized_by(inner))", "pass"),
    ),
    edit(
        "tangents are made after what they read has another value",
        Widener,
        "_disturbs",
        ("if traversal.assigns(stmt) & mentioned:", "if False:"),
    ),
    edit(
        "tangents are made after what they read has been written",
        Widener,
        "_disturbs",
        (
            "return any(not self.effects.written_by(part).isdisjoint(read) for part in traversal.statements((stmt,)))",
            "return False",
        ),
    ),
    edit(
        "tangents are not made where a block is left",
        Widener,
        "_disturbs",
        (
            "if any(isinstance(inner, (Break, Continue, Raise, Return)) for inner in traversal.statements((stmt,))):",
            "if False:",
        ),
    ),
    edit(
        "a part of a table is given for a table",
        Widener,
        "_result",
        ("return table if whole else builders.copy(table)", "return table"),
    ),
    edit(
        "the direction is taken for an axis that an index leaves out",
        Widener,
        "_index",
        ("*(Slice() for _ in range(missing)), ", ""),
        unfound="where directions are last, loops over them access elements alone; of views all directions are taken",
    ),
    edit(
        "a flattened table is taken for a view",
        Widener,
        "_check_flattened",
        ("raise _NotCovered", "pass"),
    ),
    edit(
        "a name for a table that is written is taken for a copy",
        Widener,
        "_check_copied",
        ("if stmt.value == arrays[0] or any(", "if stmt.value == arrays[0] or False and any("),
    ),
    edit(
        "other names of a tangent that is stored into have no directions",
        Widener,
        "_carrying",
        ("elif isinstance(stmt, Store) and traversal.reads(stmt) & found:", "elif False:"),
    ),
)

ZEROS = likely(
    "tests/transform/test_infinite_partials.py tests/transform/test_zero_guards.py "
    "tests/analysis/test_masked_values.py",
    edit(
        "a store is taken not to select",
        selection_frontiers,
        "_uses",
        (
            "_Use(stmt, _ZeroTransfer.SELECTION)) for var in active_operands(value)",
            "_Use(stmt, _ZeroTransfer.WHOLE)) for var in active_operands(value)",
        ),
    ),
    edit("a choice is taken not to select", selection_frontiers, "_of_operand", ("if func in CHOOSING or (", "if (")),
    edit(
        "a factor without derivative is taken not to select",
        selection_frontiers,
        "_of_operand",
        ("is_factor = all(arg == var or arg in active or is_nonzero(arg) for arg in args)", "is_factor = True"),
    ),
    edit(
        "a quotient that vanishes is taken not to select",
        selection_frontiers,
        "_of_operand",
        ("vanishes = vanishes or (inverse is not None and inverse < 0.0)", "vanishes = False"),
    ),
    edit("a branch is taken not to select", Search, "_of_use", ("if not runs:", "if False:")),
    edit(
        "one use that selects is taken for all",
        selection_frontiers,
        "_any_of",
        ("return PLAIN if PLAIN in known else frozenset().union(*known)", "return frozenset().union(*known)"),
    ),
    edit(
        "a frontier of another shape is tested element by element",
        Search,
        "_fits",
        ("if isinstance(place.var.type, Array) and not (", "if False and not ("),
    ),
    edit(
        "whoever pulls back arrays is taken to give no zeros",
        selection_frontiers,
        "_uses",
        ("single = len(values) == 1 and isinstance(values[0].type, Scalar)", "single = True"),
    ),
    edit(
        "of uses that are not kept none is tested",
        Guards,
        "tests",
        ("if not frontier <= self.kept.keys():", "if False:"),
    ),
    edit(
        "a known zero is taken to be used", Guards, "tests", ("if any(test.value != 0 for test in known):", "if known:")
    ),
    edit(
        "of two uses in one statement the last is tested",
        Guards,
        "keep",
        ("self.kept[place] = (*before, test)", "self.kept[place] = (test,)"),
    ),
    edit(
        "a guard within another is dropped",
        zero_guards,
        "_without_guards",
        ("if used == builders.is_used(tests):", "if True:"),
    ),
    edit(
        "a pole is taken to need no frontier",
        Guards,
        "_may_be_infinite",
        ("if has_pole(call, rule, self.facts.again) and not ranges.has_finite_partials(call):", "if False:"),
    ),
)

WINNERS = likely(
    "tests/loops/test_check_hoisting.py tests/language/test_iteration.py tests/language/test_unusual_control_flow.py "
    "tests/fuzzing/test_random_programs.py::test_programs_that_once_failed tests/test_programs.py",
    edit("a difference of bounds is taken for a sum", Layout, "_most", ("linear(high) - ", "linear(high) + ")),
    edit("the constant of a bound is not multiplied", Affine, "plus", ("other.constant * factor", "other.constant")),
    edit("a factor of a bound is forgotten", affine, "_scaled", ("if factor == 1 else", "if True else")),
    edit(
        "a loop without a winner is undone for its first iteration",
        selection_loops,
        "_remembered",
        ("builders.int_add(stmt.start, Const(-stmt.step.value))", "stmt.start"),
    ),
    edit(
        "the iteration that wins is that which stays",
        selection_loops,
        "_remembered",
        ("first = branch.wins == 0", "first = True"),
    ),
    edit(
        "of a loop that selects and adds the winner alone is undone",
        selection_loops,
        "_selecting",
        ("if len(carried) != 1 or not", "if not"),
        ("(selected,) = carried", "selected = carried[0]"),
    ),
    edit(
        "a candidate that depends on the selected value is taken for another",
        selection_loops,
        "_passes_on",
        ("if traversal.free_vars(value) & not_read:", "if False:"),
    ),
    edit(
        "a product is taken for linear",
        selection_loops,
        "_passes_on",
        ("(operator.add, operator.sub, operator.neg)", "(operator.add, operator.sub, operator.neg, operator.mul)"),
    ),
)
