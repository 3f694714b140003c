"""Defects of what is known of integers in loops, of checks of indices, and of integers that need more than 64 bits."""

from __future__ import annotations

from tapegen.analysis import integer_overflow
from tapegen.analysis.integer_overflow import _Sizes as Sizes
from tapegen.loops.analysis.flow_facts import FlowFacts
from tapegen.loops.analysis.symbolic_bounds import SymbolicBounds
from tapegen.loops.legalize import overflow_checks
from tapegen.loops.vectorize import check_coalescing
from tests.random_programs.defects.switch import edit, likely

BOUNDS = likely(
    "tests/loops/test_symbolic_facts.py tests/loops/test_bounds_checks.py",
    edit(
        "of two constant indices the smaller is looked at",
        check_coalescing,
        "_of_largest",
        ("if known[1] < least:", "if False:"),
    ),
    edit("a check moves past a break", check_coalescing, "_of_largest", ("if _leaves(stmt):", "if False:")),
    edit(
        "a check moves past a new value of its array", check_coalescing, "_of_largest", ("elif changed:", "elif False:")
    ),
    edit("two errors become one", check_coalescing, "_in_one", ("and _error(stmt) == _error(before)", "")),
    edit(
        "what a loop assigns is taken for known in it",
        FlowFacts,
        "body",
        ("self._passed.append((SymbolicBounds.forget, (assigns(loop),)))", "pass"),
    ),
    edit("both sides of a branch are taken to know its test", FlowFacts, "sides", ("(True, False)", "(True, True)")),
    edit(
        "a number that has a new value is taken for the old one",
        SymbolicBounds,
        "learn",
        ("self.forget(stmt.targets)", "pass"),
    ),
    edit(
        "after a branch its numbers are taken for the old ones",
        SymbolicBounds,
        "learn",
        ("self.forget(assigns(stmt))", "pass"),
    ),
    edit(
        "a counter is taken to stay below its stop by two",
        SymbolicBounds,
        "assume_counter",
        ("self.assume(self.form(loop.stop) - 1 - counter)", "self.assume(self.form(loop.stop) - 2 - counter)"),
    ),
    edit(
        "a counter that goes down is taken to stop above its end",
        SymbolicBounds,
        "assume_counter",
        ("self.assume(counter - self.form(loop.stop) - 1)", "self.assume(counter - self.form(loop.stop) - 2)"),
    ),
    edit(
        "less or equal is taken for less",
        SymbolicBounds,
        "assume_test",
        (
            "self.assume(gap if func is operator.le else -gap)",
            "self.assume(gap - 1 if func is operator.le else -gap - 1)",
        ),
    ),
    edit(
        "or is taken for and",
        SymbolicBounds,
        "assume_test",
        (
            "case Call(intrinsics.and_ | operator.and_, parts) if holds:",
            "case Call(intrinsics.and_ | operator.and_ | intrinsics.or_, parts) if holds:",
        ),
    ),
    edit(
        "a number that moves keeps its bounds",
        SymbolicBounds,
        "shift",
        ("self.assume(form - form.coefficient(var) * by)", "self.assume(form)"),
    ),
    edit(
        "a condition that holds in one branch is taken to have passed",
        SymbolicBounds,
        "common",
        ("self.passed & other.passed,", "self.passed | other.passed,"),
    ),
)

OVERFLOW = likely(
    "tests/analysis/test_integer_overflow.py",
    edit("a counter is taken to move once", Sizes, "_counted", ("step[1] * (_TRIPS if step[0] else 1.0)", "step[1]")),
    edit(
        "a product is taken to be as large as a sum",
        Sizes,
        "_call",
        ("return self.of(args[0]) * self.of(args[1])", "return self.of(args[0]) + self.of(args[1])"),
    ),
    edit(
        "arguments of 63 bits are taken for small ones",
        Sizes,
        "__init__",
        ("_LIMIT if wide else 2.0**ARGUMENT_BITS", "2.0**ARGUMENT_BITS"),
    ),
    edit(
        "what is stored into an array may wrap around",
        overflow_checks,
        "_block",
        ("stmt = replace(stmt, value=change(stmt.value))", "pass"),
    ),
    edit(
        "a number that doubles is taken to count",
        Sizes,
        "_step",
        ("if len(known) < len(parts) or (value.func in _ADDITIONS and moved > 1):", "if len(known) < len(parts):"),
    ),
    edit(
        "a number that goes through a tape is taken for an index",
        integer_overflow._Used,
        "_number",
        ("if part.array in self._tapes:", "if False:"),
        unfound="what the backward sweep reads from a tape as a number, the forward sweep has used as a number",
    ),
)
