"""Defects of what is known of memory and of sizes: views, copies, what is written, what is dead."""

from __future__ import annotations

from tapegen.analysis import memory_access
from tapegen.ir import builders
from tapegen.loops.analysis.view_layouts import Reshapes
from tapegen.transform.simplify import dead_code
from tapegen.transform.simplify.dead_code import Aliases
from tests.random_programs.defects.switch import edit, likely

VIEWS = likely(
    "tests/fuzzing/test_random_programs.py::test_programs_that_once_failed  "
    "tests/language/test_view_stores.py tests/language/test_unusual_arrays.py",
    edit(
        "a reshape is taken to be a view in any case",
        memory_access,
        "_may_copy",
        ("return not (contiguous and plain)", "return False"),
    ),
    edit(
        "parts of an array by a function are taken for copies",
        memory_access,
        "may_return_argument",
        ("if is_one_of(func, _UNFOLLOWED) or not _makes_fresh(func):", "if not _makes_fresh(func):"),
    ),
    edit("a diagonal is taken for a copy", builders, "is_fresh", ("expr.func is np.diag:", "False:")),
    edit("einsum is taken to copy", builders, "is_fresh", ("expr.func is np.einsum:", "False:")),
    edit(
        "an array of two is taken for the first",
        memory_access,
        "_move",
        ("(*_vars(args[1]), *_vars(args[2]))", "_vars(args[1])"),
        tests="tests/analysis/test_side_effects.py",
    ),
    edit(
        "a result in an array is taken for a new one",
        memory_access,
        "_move",
        ("if out is not None:", "if False:"),
        tests="tests/analysis/test_side_effects.py",
    ),
    edit(
        "an array that leaves a list is taken for a copy",
        memory_access,
        "_move",
        ("if func is intrinsics.item or func is intrinsics.pop:", "if func is intrinsics.item:"),
    ),
    edit(
        "functions are taken not to write",
        memory_access,
        "written",
        ("return (*found, *[var for arg in call.args for var in _vars(arg)])", "return found"),
        tests="tests/analysis/test_side_effects.py",
    ),
    edit(
        "an array put into a list is taken for a copy",
        memory_access,
        "list_stores",
        (
            "case Effect(Call(intrinsics.append | intrinsics.set_item, (sequence, *_, item))):",
            "case Effect() if False:",
        ),
        ("return [(sequence, var) for var in _vars(item)]  # type: ignore[misc]", "return []"),
    ),
    edit(
        "what is added to is taken not to be read",
        memory_access,
        "content_reads",
        ("if isinstance(stmt, Store) and stmt.accumulate:", "if False:"),
        tests="tests/analysis/test_side_effects.py",
    ),
    edit(
        "a result in an array is taken not to be written",
        memory_access,
        "_written_by_call",
        ("if not call.kwargs:", "if True:"),
        tests="tests/analysis/test_side_effects.py",
    ),
)

RESHAPES = likely(
    "tests/language/test_view_or_copy.py tests/language/test_memory_order.py",
    edit(
        "a store into what a reshape was made of is not looked at",
        Reshapes,
        "shows",
        (" or (names & others and live & views)", ""),
    ),
    edit(
        "a store into a reshape is not looked at",
        Reshapes,
        "shows",
        ("(names & views and live & others) or ", ""),
    ),
    edit(
        "a part with a step is taken to have no gaps",
        Reshapes,
        "_of_part",
        ("keeps = leads and (not isinstance(last, Slice) or last.step is None)", "keeps = leads"),
    ),
    edit(
        "a turned array is taken to be in rows",
        Reshapes,
        "_layout",
        ('{"C": "F", "F": "C"}.get(inner, inner)', "inner"),
    ),
)

DEAD = likely(
    "tests/transform/test_dead_code.py tests/fuzzing/test_random_programs.py::test_programs_that_once_failed",
    edit(
        "a draw that nobody reads is dropped",
        dead_code,
        "is_pure",
        ("return not any(map(intrinsics.changes, traversal.callees(value)))", "return True"),
        tests="tests/runtime/test_random_draws.py",
    ),
    edit(
        "zeros are left out although they are read in between",
        dead_code,
        "_cleared",
        ("if _reads(here, root, aliases):", "if False:"),
    ),
    edit(
        "zeros are left out although their index changes in between",
        dead_code,
        "_cleared",
        (" or not chosen.isdisjoint(here.targets)", ""),
    ),
    edit(
        "zeros are left out where an index is repeated",
        dead_code,
        "_cleared",
        (
            'if any(isinstance(part.type, Array) and part.type.dtype != "bool" for part in _parts(stmt.index)):',
            "if False:",
        ),
    ),
    edit(
        "zeros are left out where the sum reads them",
        dead_code,
        "_cleared",
        ("if _reads(stmt, root, aliases):", "if False:"),
    ),
    edit(
        "a loop that may raise is dropped",
        dead_code,
        "eliminate_dead_code",
        ("return not keep or primal_origin(stmt) is None or not _may_raise(stmt)", "return True"),
    ),
    edit(
        "an array of the caller is taken for one of the sweep",
        Aliases,
        "is_local",
        (" and root not in self.foreign", ""),
    ),
    edit(
        "an item of a list is taken for a copy of it",
        Aliases,
        "_relate",
        ("in sources(value):", "in () if isinstance(value, Call) else sources(value):"),
    ),
    edit(
        "a copy to itself is left out although it is written later",
        dead_code,
        "merge_stores",
        ("if copied and not aliases.stored(stmt.targets[0]):", "if copied:"),
    ),
)
