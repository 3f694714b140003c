"""Defects of how generated code is called: arguments, results, and what a pullback keeps."""

from __future__ import annotations

from tapegen.runtime import fast_call
from tapegen.runtime.bound_call import BoundCall
from tapegen.transform.recording import assemble
from tests.random_programs.defects.switch import edit, likely

DEFECTS = likely(
    "tests/runtime/test_fast_calls.py tests/rules/test_conventions.py "
    "tests/transform/test_residuals.py tests/test_programs.py",
    edit(
        "a number comes back as the text left it",
        fast_call,
        "conversion",
        ("return kind, kind", "return kind, lambda value: value"),
        in_text=False,
    ),
    edit(
        "arguments are not put back after an exception",
        BoundCall,
        "restorer",
        ("array[...] = before", "pass"),
        in_text=False,
    ),
    edit(
        "a mutated argument is not copied back",
        BoundCall,
        "leaves",
        (
            "return list(copy.deepcopy(self.values) if self.owns_copies else self.values)",
            'return [x.copy() if hasattr(x, "shape") else x for x in self.values]',
        ),
        in_text=False,
    ),
    edit(
        "a pullback uses up its lists",
        BoundCall,
        "vjp",
        ("[list(item) if isinstance(item, list) else item for item in kept]", "kept"),
        in_text=False,
    ),
    edit(
        "a pullback reads the arrays of the caller",
        assemble,
        "record_form",
        ("builders.copy(var) if caller_owned else var", "var"),
    ),
    edit(
        "the value is read after the backward sweep has used its name",
        assemble,
        "joint_form",
        ("if isinstance(value, Var) and value in overwritten:", "if False:"),
    ),
)
