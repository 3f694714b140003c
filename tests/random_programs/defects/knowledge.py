"""Defects of what the analyses claim, and of what the passes that make text readable take for equal."""

from __future__ import annotations

import dataclasses

from tapegen.analysis import activity, memory_access, shape_functions
from tapegen.analysis.polyhedral.access_relations import Regions
from tapegen.analysis.polyhedral.array_liveness import ArrayLiveness
from tapegen.analysis.shape_inference import Shapes
from tapegen.analysis.shape_inference import _Pass as Shaping
from tapegen.pipeline.passes import tangents
from tapegen.transform.simplify import cleanup, cse, dead_code
from tapegen.transform.simplify.copy_propagation import CopyPropagation
from tests.random_programs.defects.switch import edit, likely

ACTIVITY = (
    edit(
        "what is stored into an array is taken for inactive",
        activity,
        "_flows",
        ("into = ((stmt.array, stmt.value),)", "into = ()"),
    ),
    edit(
        "what is stored through a view is taken for inactive",
        activity,
        "_shared",
        ("yield from ((target, source) for source in move.sources if is_floating(source.type))", "pass"),
    ),
    edit(
        "what is appended to a list is taken for inactive",
        activity,
        "_flows",
        ("into = ((stmt.call.args[0], stmt.call.args[-1]),)", "into = ()"),
    ),
)

SHAPES = (
    edit(
        "an axis of unknown size is taken not to be one",
        Shapes,
        "is_not_unit",
        ("return constant == 0 and", "return True or"),
    ),
    edit(
        "operands are taken to have the shape of the result",
        Shapes,
        "summed_axes",
        ("if self.agree(extent, whole) or", "if True or"),
    ),
    edit("a variable is taken to keep its first shape", Shaping, "assign", ("if known != extents:", "if False:")),
    edit("a slice is taken to start at zero", Shaping, "slice_of", ("size = plus(end, lo, -1)", "size = end")),
    edit(
        "a sum is taken over the other axis",
        shape_functions,
        "_without",
        ("if k not in axes", "if len(extents) - 1 - k not in axes"),
    ),
    edit(
        "a broadcast is taken to have the shape of its first operand",
        Shaping,
        "broadcast",
        ("if extent == (1, ()) or", "if extent == (1, ()) or result[k] != (1, ()) or"),
    ),
)

MEMORY = (
    dataclasses.replace(
        edit(
            "two names for one array are not seen to clash",
            tangents,
            "_refuse_conflicts",
            ("facts.effects.conflicts", "()"),
            in_text=False,  # of reverse mode
        ),
        needs=r"\.(T|ravel|reshape)\b",
    ),
    edit(
        "a second name is taken for a copy",
        memory_access,
        "_move",
        ("return Move((value,), exact=True)", "return Move()"),
    ),
    edit(
        "a view is taken for a copy",
        memory_access,
        "_move",
        ("Move((value.array,), exact=True) if basic else Move()", "Move()"),
    ),
    edit(
        "a turned array is taken for a copy",
        memory_access,
        "_move",
        ("if is_one_of(func, intrinsics.VIEW_CALLS):", "if False:"),
    ),
)

FINALITY = (
    edit(
        "later iterations of a loop are not looked at",
        ArrayLiveness,
        "_later",
        ("cases.append(And((*equal_so_far, at_least(gap, 1))))", "pass"),
    ),
    edit(
        "an element is taken to keep what was put into it",
        ArrayLiveness,
        "unmodified_element",
        ("and self.is_final(store, store.array, store.index, after=True)", ""),
    ),
    edit("the start of a slice is not looked at", Regions, "_along", ("stretch.start + inner", "inner")),
    edit(
        "a turned axis is taken for a straight one",
        Regions,
        "_flipped",
        ("if form is not None and k in chosen else form", "if False else form"),
    ),
    edit(
        "a negative index is taken for a position",
        Regions,
        "_select",
        ("self.extents.position(form, extent, site)", "form"),
    ),
)

SHARING = (
    edit("a load is shared across a store", cse, "share_loads", ("if written or assigned:", "if assigned:")),
    edit(
        "x - a[i] is taken for an accumulation",
        cse,
        "_accumulation",
        ("(0, 1) if total.func is operator.add else (0,)", "(0, 1)"),
    ),
    edit(
        "an accumulation is moved past a store",
        cse,
        "_accumulation",
        ("if any(effects.written_by(part) & roots for part in between):", "if False:"),
    ),
    edit(
        "a repeated index is taken to add once",
        cse,
        "_accumulation",
        ("if any(isinstance(item.type, Array) for item in load.index if not isinstance(item, Slice)):", "if False:"),
    ),
    edit(
        "a result and the value before it share a name",
        cse,
        "_reads_result",
        ("if not isinstance(", "if True or not isinstance("),
    ),
)

READABLE = (
    edit(
        "an expression is moved past a store",
        CopyPropagation,
        "_inline",
        ("if arrays and self._writes(here, arrays):", "if False:"),
    ),
    edit(
        "an expression is moved past an assignment",
        CopyPropagation,
        "_inline",
        ("if not inputs.isdisjoint(traversal.assigns(here)):", "if False:"),
    ),
    edit(
        "a name is replaced where it means another value",
        CopyPropagation,
        "_propagate",
        ("if isinstance(value, Var) and self._assigned_after", "if False and self._touched_after"),
    ),
    edit(
        "two values get one name",
        CopyPropagation,
        "_merge",
        (" and self._mergeable(stmts, start, k, value, target)", ""),
    ),
    edit(
        "a store through another name is taken for dead",
        dead_code,
        "eliminate_dead_code",
        ("remove_dead(block, live_out, may_go, aliases.root)", "remove_dead(block, live_out, may_go)"),
    ),
    edit(
        "a statement that may raise is taken for dead",
        dead_code,
        "eliminate_dead_code",
        ("and (isinstance(value, (Var, Const)) or", "and (True or"),
    ),
    edit(
        "a formula gives the value", cleanup, "resolve_primal_as", ("return node.args[0] if", "return node.args[1] if")
    ),
)

_TESTS = "tests/fuzzing/test_random_programs.py::test_programs_that_once_failed " + " ".join(
    [
        "tests/analysis/test_array_liveness.py",
        "tests/analysis/test_array_liveness_cases.py",
        "tests/rules/test_rule_broadcasting.py",
        "tests/transform/test_dead_code.py",
        "tests/api/test_nested_modes.py",
        "tests/language/test_view_stores.py",
        "tests/language/test_overlapping_stores.py",
    ]
)
DEFECTS = likely(_TESTS, *ACTIVITY, *SHAPES, *MEMORY, *FINALITY, *SHARING, *READABLE)
