"""Generated text as files: `python -m tests.goldens` writes `tests/golden` anew, `--check` compares.

For each program `NAME.py` is the joint text, as a scientist would commit it.  For some there is also the split pair
(`NAME_forward.py`, `NAME_backward.py`) and what numba gets (`NAME_compiled.py`).  The files of `examples/written` are
written anew too.
"""

from __future__ import annotations

import argparse
import contextlib
import dataclasses
import hashlib
import inspect
import pathlib
import shlex
import sys
from collections.abc import Iterator
from typing import Any

from tapegen import cli
from tapegen.backend.numba.build import build_python
from tapegen.pipeline import compile
from tapegen.pipeline.artifacts.generated_text import compiled_text, readable_text
from tapegen.runtime.calls.cotangents import cotangents_of
from tests.test_programs import PROGRAMS, Program

FOLDER = pathlib.Path(__file__).parent / "golden"

# one or two programs for each row of the language, each where it is read best
JOINT = """
alias-at_top assert_raise_print-at_top augmented_scalar-in_for boolean_mask-at_top boolean_operators-in_for
break_continue-in_for buffers-at_top builtins-at_top callee_other_module-in_for chained_comparison-in_branch
closures-in_while columns-in_for comprehensions-in_for dataclass_methods-in_for deep_nesting
default_and_keyword_arguments-in_for element_store-in_for element_store_2d-in_while empty_and_single float32-in_for
for_over_array-in_for functions_as_arguments-in_for global_values-at_top if_elif_else-in_for
integer_arithmetic-in_while integer_index-in_for local_lists-in_for loop_else-in_while math_functions-in_while
mutated_arguments-in_for mutating_callee-in_for newaxis_ellipsis-at_top np_arithmetic-in_while
np_broadcasting-at_top np_creation-in_for np_exponential-at_top np_joining-in_branch np_linalg-in_for
np_products-in_branch np_reductions-at_top np_shapes-in_while np_triangles_and_sums-at_top np_where-in_branch
numba_functions-in_for numpy_scalars-in_for options overlap-in_while overwritten_in_loop range_steps-in_for
recursion-at_top recursion_by_value recursive_closures-in_branch returns_anywhere-in_while same_array_twice
slice_store-in_while structures_in ternary-in_for
transpose_reshape_views-at_top unpacking-in_while variable_arguments view_store-in_for walrus-in_while
while_data_dependent-in_while zip_enumerate_reversed-in_branch
""".split()

SPLIT = """
break_continue-in_for element_store-in_for local_lists-in_for mutated_arguments-in_for structures_out-in_for
view_store-in_for while_data_dependent-in_while
""".split()

COMPILED = "boolean_mask-at_top buffers-at_top np_broadcasting-at_top np_products-in_branch overlap-in_while".split()


@dataclasses.dataclass(frozen=True)
class Golden:
    """One program of the language and the forms of it that are kept."""

    program: Program
    forms: tuple[str, ...]

    @property
    def name(self) -> str:
        return self.program.name.removeprefix("language/").replace("-", "_")

    def path(self, form: str) -> pathlib.Path:
        return FOLDER / (f"{self.name}.py" if form == "joint" else f"{self.name}_{form}.py")

    def derived(self, *, record_everything: bool = False) -> Derived:
        return Derived(self.program, record_everything)

    def texts(self) -> dict[str, str]:
        """The text of each form."""
        derived = self.derived()
        return {form: derived.text(form) for form in self.forms}


class Derived:
    """The generated programs of one program, and its flat arguments."""

    def __init__(self, program: Program, record_everything: bool = False) -> None:
        self.program = program
        self.call = program.decorated("python")._specializer.specialise(
            program.args(), program.kwargs(), program.decorated("python").options
        )
        target = self.call.program
        self.stages = compile.derive_reverse(
            target.lowered.function,
            target.wrt_vars(),
            target.selection.active_results(scalar=program.is_scalar),
            target.user_names,
            record_everything=record_everything,
        )

    def text(self, form: str) -> str:
        if form == "compiled":
            return compiled_text(self.call.program, self.stages.joint).text
        function = {"joint": self.stages.joint, "forward": self.stages.record, "backward": self.stages.pullback}[form]
        return readable_text(self.call.program, function).text

    def leaves(self, args: tuple[Any, ...] | None = None) -> list[Any]:
        """The flat arguments; fresh ones, or those of a call."""
        args = self.program.args() if args is None else args
        bound = inspect.signature(self.program.function).bind(*args, **self.program.kwargs())
        bound.apply_defaults()
        return self.call.program.lowered.leaves(bound.arguments)

    def built(self) -> Any:
        """The joint text, run by CPython."""
        return build_python(readable_text(self.call.program, self.stages.joint))

    def seeds(self, value: Any) -> list[Any]:
        """The cotangents of the results."""
        objective = self.call.program.selection.objective
        return cotangents_of(objective, value, self.program.value_bar(), self.stages.seeds)

    def value_of(self, results: tuple[Any, ...]) -> Any:
        return self.call._result(results, "joint")

    def gradient_of(self, gradients: tuple[Any, ...]) -> Any:
        return self.call._gradient(gradients, "joint")

    def results(self) -> int:
        """How many values the program returns."""
        return len(self.stages.lowered.body[-1].values)  # type: ignore[union-attr]


def goldens() -> Iterator[Golden]:
    """What is kept, in order of name."""
    programs = {program.name.removeprefix("language/"): program for program in PROGRAMS}
    for name in sorted({*JOINT, *SPLIT, *COMPILED}):
        forms = ["joint"] if name in JOINT else []
        forms += ["forward", "backward"] if name in SPLIT else []
        forms += ["compiled"] if name in COMPILED else []
        yield Golden(programs[name], tuple(forms))


def wanted() -> dict[pathlib.Path, str]:
    """Every file and what it should hold."""
    return {golden.path(form): text for golden in goldens() for form, text in golden.texts().items()}


def written_examples() -> list[list[str]]:
    """The commands that write the derivatives of the examples."""
    lines = (FOLDER.parent.parent / "examples" / "written" / "README.md").read_text(encoding="utf-8").splitlines()
    return [shlex.split(line)[3:] for line in lines if line.startswith("python -m tapegen")]


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.goldens", description=__doc__)
    parser.add_argument("--check", action="store_true", help="compare, write nothing")
    parser.add_argument("--digest", action="store_true", help="print a digest of all texts, write nothing")
    options = parser.parse_args()
    files = wanted()
    if options.digest:
        print(hashlib.blake2b("".join(files.values()).encode()).hexdigest())
        return 0
    stale = [path for path, text in files.items() if not path.exists() or path.read_text(encoding="utf-8") != text]
    extra = [path for path in sorted(FOLDER.glob("*.py")) if path not in files]
    for path in (*stale, *extra):
        print(f"{'differs' if options.check else 'written' if path in files else 'deleted'}: {path.name}")
    if options.check:
        return 1 if stale or extra else 0
    FOLDER.mkdir(exist_ok=True)
    with contextlib.chdir(FOLDER.parent.parent):
        for command in written_examples():
            cli.main(command)
    for path in stale:
        path.write_text(files[path], encoding="utf-8")
    for path in extra:
        path.unlink()
    return 0


if __name__ == "__main__":
    sys.exit(main())
