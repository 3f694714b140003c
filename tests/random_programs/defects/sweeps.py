"""Defects of the reverse sweep: how cotangents are added, moved, cleared, and turned back."""

from __future__ import annotations

from tapegen.ir import builders
from tapegen.transform.autodiff import adjoint_control_flow
from tapegen.transform.autodiff.adjoint_calls import CallAdjoints
from tapegen.transform.autodiff.adjoint_control_flow import ControlFlowAdjoints
from tapegen.transform.autodiff.cotangents import CotangentMap
from tapegen.transform.autodiff.residuals import Residuals
from tapegen.transform.autodiff.reverse import ReverseSweepBuilder as Reverser
from tests.random_programs.defects.switch import edit, likely

_APPEND = "cot.pending.append(Contribution(expr, builders.is_fresh(expr) if owned is None else owned, self.origin))"
_UNDO_IF = "undo = If(test, body, orelse, stmt.origin)"

STORES = (
    edit(
        "an overwritten element keeps its cotangent",
        Reverser,
        "_store",
        ("self.cotangents.emit(Store(base_bar, index, zero))", "pass"),
    ),
    edit("a += clears the cotangent of what it adds to", Reverser, "_store", ("if not stmt.accumulate:", "if True:")),
    edit("= for += where an element is read", Reverser, "_load", ("accumulate=True", "accumulate=False")),
    edit("every write through a repeated index counts", Reverser, "_repeats", ("return any(", "return False and any(")),
    edit("the step of a slice is forgotten", Residuals, "_index_item", ("Slice(*parts)", "Slice(*tuple(parts)[:2])")),
)

SUMS = (
    edit(
        "a later term replaces the earlier ones",
        CotangentMap,
        "contribute",
        (_APPEND, "cot.pending[:] = [Contribution(expr, True, self.origin)]"),
    ),
    edit("= for += on the cotangent of an array", CotangentMap, "contribute", ("accumulate=True", "accumulate=False")),
    edit(
        "= for += on the cotangent of a number",
        CotangentMap,
        "materialize",
        ("Assign((cot.name,), builders.add(cot.name, total))", "Assign((cot.name,), total)"),
    ),
    edit(
        "a cotangent is given away twice",
        CotangentMap,
        "contribute",
        (_APPEND, "cot.pending.append(Contribution(expr, True, self.origin))"),
    ),
    edit(
        "a gradient is the cotangent of something else", Reverser, "_gradient", ("total = builders.copy(total)", "pass")
    ),
    edit(
        "a result returned twice has one cotangent",
        Reverser,
        "_seed",
        ("isinstance(type_, Scalar) and value not in self.cotangents.of", "isinstance(type_, Scalar)"),
    ),
    edit(
        "the second of several results is forgotten",
        Reverser,
        "_values",
        ("tuple(totals)", "(totals[0], *(None for _ in totals[1:]))"),
    ),
    edit(
        "a single-precision array takes a double cotangent",
        builders,
        "cast",
        ("isinstance(type_, Array) and type_.dtype != dtype", "False"),
    ),
)

MOVES = (
    edit(
        "a swap moves one cotangent after the other",
        Reverser,
        "_latch",
        ("moved.append((value, taken))", "self.cotangents.contribute(value, taken.expr, owned=taken.owned)"),
    ),
    edit("an overwritten variable keeps its cotangent", CotangentMap, "take", ("cot.named = False", "pass")),
    edit(
        "sums of a block are finished outside of it",
        Reverser,
        "nested",
        ("if cot.pending or not cot.named:", "if not cot.named:"),
    ),
    edit(
        "what one branch used up is gone for the other",
        ControlFlowAdjoints,
        "branches",
        ("self.cotangents.of[var].named = named", "pass"),
    ),
)

FLOW = (
    edit(
        "the branches are swapped",
        ControlFlowAdjoints,
        "branches",
        (_UNDO_IF, _UNDO_IF.replace("body, orelse", "orelse, body")),
    ),
    edit("the else-branch is forgotten", ControlFlowAdjoints, "branches", (_UNDO_IF, _UNDO_IF.replace("orelse", "()"))),
    edit(
        "a reversed range stops one iteration early",
        adjoint_control_flow,
        "_reversed_range",
        ("builders.int_add(start, Const(sign)),", "start,"),
    ),
    edit(
        "a range with a step starts backwards at its bound",
        adjoint_control_flow,
        "_reversed_range",
        ("return For(stmt.target, last,", "return For(stmt.target, builders.int_add(stop, Const(-sign)),"),
    ),
    edit(
        "a counted loop misses its last iteration",
        ControlFlowAdjoints,
        "_counted",
        ("For(k, builders.int_add(trips, Const(-1)),", "For(k, builders.int_add(trips, Const(-2)),"),
    ),
)

READS = (
    edit("a test is made again from values that have changed", Residuals, "expression", ("if all(", "if True or all(")),
    edit(
        "an overwritten operand is read as it is",
        Residuals,
        "operand",
        ("if not isinstance", "if True or not isinstance"),
    ),
    edit(
        "an overwritten result is read as it is",
        Residuals,
        "result",
        ("if not isinstance", "if True or not isinstance"),
    ),
    edit("an operand is kept after the statement", Residuals, "capture", ("self.before", "self.after")),
)

VIEWS = (
    edit("a view has a cotangent of its own", CotangentMap, "_has_shadow", ("if value is None:", "if True:")),
    edit(
        "the cotangent of a turned array is not turned",
        CotangentMap,
        "_shadow",
        ("return Call(value.func, (self.materialize(base), *rest), kwargs, type_)", "return self.materialize(base)"),
    ),
)

CALLS = (
    edit(
        "summed over the wrong axis where broadcast",
        CallAdjoints,
        "summed",
        ("tuple(axis for axis in axes if axis < lead)", "tuple(len(full) - 1 - axis for axis in axes if axis < lead)"),
    ),
    edit("not summed along an axis of size one", CallAdjoints, "summed", ("if kept:", "if False:")),
    edit("the mean where a sum is due", CallAdjoints, "unbroadcast", ("Call(np.sum,", "Call(np.mean,")),
    edit(
        "a zero cotangent times an infinite partial",
        CallAdjoints,
        "_partials",
        ("if not is_guarded or not tests:", "if True:"),
    ),
    edit("a partial that raises", CallAdjoints, "_partials", ("if pole or is_guarded:", "if False:")),
    edit(
        "a formula without derivative", CallAdjoints, "_add", ("self.cotangents.contribute(", "(lambda *args: None)(")
    ),
    edit("= for += on an item of a list", CallAdjoints, "_item", ("builders.add(held, totals[0])", "totals[0]")),
    edit(
        "an overwritten item keeps its cotangent",
        CallAdjoints,
        "list_effect",
        ("self.cotangents.emit(Effect(Call(intrinsics.set_item, (bar, index, Const(0.0)), ())))", "pass"),
    ),
    edit(
        "items of a list in the wrong order",
        CallAdjoints,
        "new_list",
        ("(items, Const(k))", "(items, Const(len(value.args) - 1 - k))"),
    ),
    edit("= for += over the items of a list", CallAdjoints, "_spread_over_list", ("builders.add(held, part)", "part")),
)

_TESTS = "tests/fuzzing/test_random_programs.py::test_programs_that_once_failed " + " ".join(
    [
        "tests/transform/test_infinite_partials.py",
        "tests/transform/test_zero_guards.py",
        "tests/language/test_growing_lists.py",
        "tests/language/test_containers.py",
        "tests/rules/test_own_rules.py",
        "tests/api/test_higher_orders.py",
        "tests/loops/test_stdlib_math.py",
    ]
)
DEFECTS = likely(_TESTS, *STORES, *SUMS, *MOVES, *FLOW, *READS, *VIEWS, *CALLS)
