"""Generated text of a program: to read, and for numba."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from tapegen.analysis.memory_access import sources
from tapegen.analysis.side_effects import effects_of
from tapegen.backend.cache.derived_programs import Derived
from tapegen.backend.printer.module import emit
from tapegen.backend.printer.source import PythonSource
from tapegen.errors import NoCompiledForm
from tapegen.ir.nodes import Function, Return, Routine
from tapegen.ir.passes import deep, without_passes
from tapegen.pipeline.artifacts.program import Form, Program
from tapegen.transform.simplify.real_domain import with_real_values

if TYPE_CHECKING:
    from tapegen.loops.legalize.short_axes import ShortAxes
    from tapegen.loops.parallel.outlining import Verdict
    from tapegen.pipeline.passes.derivation import Derivation, Stages


def compiled_source(program: Program, form: Form, *, general: bool) -> PythonSource:
    """The source for numba of one of the programs: from the disk cache, or derived and stored there."""
    place, stored = program.on_disk(form, general=general)
    if stored is not None:
        return program.keep(stored.source)
    sizes = () if general else program.assumed_sizes(form)
    source = compiled_text(program, program.function(form), general=general, short_axes=sizes)
    if place is not None:
        reverse = form in ("joint", "record", "pullback")
        stages = program.stages(scalar=form == "joint") if reverse else None
        found = Derived(source)
        if stages is not None:
            found = Derived(source, stages.seeds, stages.kept, stages.recorded_bytes)
        place.save(found)
    return source


def compiled_text(
    program: Program, function: Function, *, general: bool = False, short_axes: ShortAxes = ()
) -> PythonSource:
    """The source for numba; the `general` one runs where assumptions of the usual one do not hold."""
    return program.keep(_compiled_text(program, function, general=general, short_axes=short_axes))


def readable_text(program: Program, function: Function) -> PythonSource:
    """The readable source."""
    routines = routines_of(program, function, compiled=False)
    with program.boundary("printing"):
        text = with_real_values(function)
        return program.keep(emit(text, modules=program.lowered.modules, header=program.header, routines=routines))


def stage_text(program: Program, stages: Stages, stage: str) -> str:
    """The derivative of `stages` after some pass."""
    from tapegen.pipeline import compile
    from tapegen.pipeline.stages import LOOP_STAGES

    if stage in LOOP_STAGES:
        return _compiled_text(program, stages.joint, general=False, short_axes=program.short_axes, stage=stage).text
    found: list[str] = []

    def watch(name: str, derivation: Derivation) -> None:
        if name == stage:
            found.append(derivation.text())

    with program.boundary("deriving"), deep(), without_passes(program.disabled):
        compile.derive_reverse(
            program.lowered.function,
            stages.wrt,
            stages.active_results,
            program.user_names,
            cut=program.checkpointed,
            parallel=program.options.parallel,
            watch=watch,
        )
    return found[0]


def _compiled_text(
    program: Program, function: Function, *, general: bool, short_axes: ShortAxes, stage: str = ""
) -> PythonSource:
    """The source for numba, or its state after some pass."""
    from tapegen.loops.parallel.outlining import chunks_of

    with program.boundary("printing"), without_passes(program.disabled):
        programs: dict[str, Function] = {}
        with deep():
            try:
                watch = programs.__setitem__
                loops = _loops(program, function, general=general, short_axes=short_axes, verdicts=[], watch=watch)
            except NoCompiledForm:
                if stage not in programs:
                    raise
            else:
                programs[""] = loops
            routines = routines_of(program, programs["insert_bailouts"], compiled=True, messages=True)
            routines |= chunks_of(programs[stage])
        modules, header, decorator = program.lowered.modules, program.header, program.decorator
        source = emit(programs[stage], modules=modules, header=header, decorator=decorator, routines=routines)
        return replace(source, only_reads=_only_reads(function) and not (routines or source.namespace))


def _loops(
    program: Program,
    function: Function,
    *,
    general: bool,
    short_axes: ShortAxes,
    verdicts: list[Verdict],
    watch: Any = None,
) -> Function:
    """The loops of a program, before they are printed."""
    from tapegen.loops.pipeline import lower_to_loops

    with deep():
        return lower_to_loops(
            function,
            boundscheck=program.options.boundscheck,
            wide=general,
            speculative=not general,
            short_axes=short_axes,
            bailouts=program.options.backend == "auto",
            messages=True,
            verdicts=verdicts if program.options.parallel else None,
            watch=watch,
        )


def verdicts(program: Program, function: Function) -> list[Verdict]:
    """What becomes of the loops of a program, if threads may run them."""
    found: list[Verdict] = []
    if program.options.parallel and program.options.backend != "python":
        with program.boundary("printing"), without_passes(program.disabled), suppress(NoCompiledForm):
            _loops(program, function, general=False, short_axes=program.short_axes, verdicts=found)
    return found


def routines_of(
    program: Program, function: Function, *, compiled: bool, messages: bool = False
) -> dict[Routine, Function]:
    """The programs of the routines that a program calls, as they are printed; see `lower_to_loops`."""
    from tapegen.loops.pipeline import lower_to_loops
    from tapegen.pipeline import compile

    with program.boundary("deriving"), without_passes(program.disabled):
        found = compile.routines(function, program.user_names)
        if not compiled:
            return {routine: with_real_values(text) for routine, text in found.items()}
        check = program.options.boundscheck
        return {
            routine: lower_to_loops(text, boundscheck=check, wide=True, messages=messages)
            for routine, text in found.items()
        }


def _only_reads(function: Function) -> bool:
    """Whether a program certainly writes into no parameter and returns no part of one."""
    effects = effects_of(function)
    last = function.body[-1] if function.body else None
    returned = [var for value in last.values for var in sources(value)] if isinstance(last, Return) else []
    params = {param.name for param in function.params}
    return not effects.mutated_params and all(params.isdisjoint(effects.roots(var)) for var in returned)
