"""Defects of how primal values reach the backward sweep: live, recomputed, counted, recorded on tapes."""

from __future__ import annotations

from tapegen.analysis.scopes import Scopes
from tapegen.transform.analyses import Facts
from tapegen.transform.recording.dead_shapes import DeadArrayShapes
from tapegen.transform.recording.plan import RecordingPlanner as Recorder
from tapegen.transform.recording.rematerialize import Rematerializer
from tapegen.transform.recording.tape_layout import _Layout as Layout
from tests.random_programs.defects.switch import edit, likely

_PUSHES = "out.extend(Push(tape, var) for var, tape in tapes.items() if var in scope.carried)"
_POPS = 'out.extend(Pop(d.var, d.tape) for d in decisions if d.way == "record")'
_BASE = "loop.target if builders.is_const(start, 0) else _minus(loop.target, start)"

DECISIONS = (
    edit("a save is dropped", Rematerializer, "is_live", ("return not owner.in_loop", "return True")),
    edit(
        "a value of a branch in a loop is not saved",
        Rematerializer,
        "is_live",
        ("not owner.in_loop", "not owner.is_loop"),
    ),
    edit(
        "a loop variable is taken for known after a break",
        Rematerializer,
        "from_induction",
        ("return self.sweeps.counters.get(loop, var)", "return var"),
    ),
    edit(
        "a counter is one ahead",
        Rematerializer,
        "from_induction",
        (
            "return builders.int_add(start, by)",
            "return builders.int_add(builders.int_add(start, by), Const(1))",
        ),
    ),
    edit(
        "a counter counts the other way",
        Rematerializer,
        "from_induction",
        ("by = summed(step, ", "by = summed(step * -1, "),
    ),
    edit(
        "a counter that pauses is taken for one that does not",
        Rematerializer,
        "_runs_each_iteration",
        ("if not other or not isinstance(other[-1], Break):", "if False:"),
    ),
    edit(
        "iterations are counted from the loop variable",
        Rematerializer,
        "_iteration",
        ("minus(loop.target, loop.start) if step > 0", "loop.target if step > 0"),
    ),
    edit(
        "an array that is written later is recomputed",
        Rematerializer,
        "definition",
        ("and self.effects.is_written(var)", "and False"),
    ),
    edit(
        "a variable of two branches is evaluated again as in one",
        Rematerializer,
        "definition",
        (" or self.scopes.is_merge(var):", ":"),
    ),
    edit(
        "a copy is taken before a loop that writes", Rematerializer, "_writes", ("return any(", "return False and any(")
    ),
    edit(
        "the value at the start of an iteration is taken for that before the loop",
        Scopes,
        "owner_seen_from",
        ("if var in inner.carried:", "if False:"),
    ),
)

FINALITY = (
    edit(
        "everything is taken for final",
        Facts,
        "is_final",
        ("return not self._is_renamed", "return True or not self._is_renamed"),
    ),
    edit(
        "buffers that change names are taken for final",
        Facts,
        "is_final",
        ("not self._is_renamed(array, self.scopes.at[stmt]) and ", ""),
        unfound="a written array whose name a loop assigns cannot be named after it, which is looked at as well",
    ),
    edit(
        "a buffer that changes names is taken to keep a value",
        Facts,
        "unmodified_element",
        ("if load is None or self._is_renamed(load.array, scope) else", "if load is None else"),
        unfound="a written array whose name a loop assigns cannot be named after it, which is looked at as well",
    ),
)

SAVES = (
    edit(
        "a carried value is saved after the iteration",
        Recorder,
        "_forward",
        (_PUSHES, _PUSHES.replace("out.extend", "late = list")),
        ("return tuple(out)", "return (*out, *late)"),
    ),
    edit(
        "the else-branch does not save",
        Recorder,
        "_forward",
        ('if d.way == "record"}', 'if d.way == "record" and not scope.branch}'),
    ),
    edit(
        "saved after the first write instead of the last",
        DeadArrayShapes,
        "last_definition",
        (
            "self.planner.order[anchor] > self.planner.order[last]",
            "self.planner.order[anchor] < self.planner.order[last]",
        ),
    ),
    edit(
        "restored in the wrong order",
        Recorder,
        "_restored",
        ("sorted(recomputed, key=self._position)", "sorted(recomputed, key=self._position, reverse=True)"),
    ),
    edit(
        "popped in the wrong order",
        Recorder,
        "_restored",
        (
            _POPS,
            'kept = [d for d in decisions if d.way == "record"]; '
            "out.extend(Pop(d.var, e.tape) for d, e in zip(kept, kept[::-1]))",
        ),
    ),
    edit(
        "evaluated again before what it needs is popped",
        Recorder,
        "_restored",
        (_POPS, "pass"),
        ("return out", f"{_POPS}; return out"),
    ),
    edit("an earlier value takes the name of the last one", Recorder, "_split_names", ("return apart", "return {}")),
    edit("the extent of the wrong axis", DeadArrayShapes, "_saved_extent", ("(var, Const(axis))", "(var, Const(0))")),
)

TAPES = (
    edit("a tape for too few iterations", Layout, "_count", ("builders.int_add(span, Const(abs(step) - 1))", "span")),
    edit(
        "a tape in single precision",
        Layout,
        "_tape",
        (
            "Array(type_.dtype, len(loops) + rank,",
            'Array("float32" if type_.dtype == "float64" else type_.dtype, len(loops) + rank,',
        ),
    ),
    edit(
        "a tape grows one iteration late",
        Layout,
        "_grown",
        ("(tape.counter, extent)", "(builders.int_add(tape.counter, Const(-1)), extent)"),
    ),
    edit("of two tapes with one counter one grows", Layout, "_grown", ("self.counted[id(tape.scope)]", "(tape,)")),
    edit("a position on a tape counts from zero", Layout, "_position", (_BASE, "loop.target")),
    edit("a position on a tape takes every step for one", Layout, "_position", ("if abs(step) == 1:", "if True:")),
    edit("a pop does not step back", Layout, "_backward", ("if k == last:", "if False:")),
    edit(
        "an array on a tape is not copied",
        Layout,
        "_stores_into_tapes",
        ("builders.copy(push.value) if", "push.value if"),
    ),
    edit(
        "a size made inside a loop is taken for known before it",
        Layout,
        "_fixed",
        ("return not assigns or self._before_loops(assigns[0])", "return True"),
    ),
    edit(
        "the iterations of an inner loop count a tape of all iterations",
        Layout,
        "_counter",
        (" and scope.parent is self.scopes.root", ""),
    ),
)

_TESTS = "tests/fuzzing/test_random_programs.py::test_programs_that_once_failed " + " ".join(
    [
        "tests/analysis/test_array_liveness.py",
        "tests/language/test_iteration.py",
        "tests/transform/test_loop_invariants.py",
        "tests/language/test_unusual_control_flow.py",
        "tests/backend/test_memory_limit.py",
        "tests/language/test_loop_carried_containers.py",
    ]
)
DEFECTS = likely(_TESTS, *DECISIONS, *FINALITY, *SAVES, *TAPES)
